// Owns the form that puts a task in the queue, as `fleet add` does.
import { me, post } from "./api.js";
import { byId, put } from "./dom.js";
import { go } from "./route.js";

export function openAdd() {
  if (!me.operates) return;
  const form = byId("add-form");
  form.hidden = false;
  form.elements.title.focus();
}

// Whether it was open.
export function closeAdd() {
  const form = byId("add-form");
  const was = !form.hidden;
  form.hidden = true;
  return was;
}

export function wireAdd() {
  const form = byId("add-form");
  const told = form.querySelector(".told");
  byId("add").addEventListener("click", openAdd);
  form.querySelector("[data-close]").addEventListener("click", closeAdd);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const { title, description, coder, priority } = form.elements;
    const body = { title: title.value.trim(), description: description.value, priority: Number(priority.value) };
    if (coder.value.trim()) body.coder = coder.value.trim();
    const button = form.querySelector("[type=submit]");
    button.disabled = true;
    put(told, "…");
    try {
      const made = await post("/tasks", body);
      form.reset();
      put(told);
      closeAdd();
      go("task", { id: made.id });
    } catch (problem) {
      put(told, problem.words);
    } finally {
      button.disabled = false;
    }
  });
}
