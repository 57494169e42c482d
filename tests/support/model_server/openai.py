"""OpenAI's Responses: a request to its reply, as a stream of events or as one object."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

from tests.support.model_server.faults import Faults, Reply
from tests.support.model_server.steps import Kind, Step, Tool, Turn, next_step, text_turns, tokens

ERRORS: dict[int, tuple[str, str | None, str]] = {
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided: sk-****."),
    403: ("invalid_request_error", "forbidden", "Your key may not use this."),
    404: ("invalid_request_error", "model_not_found", "There is no such model."),
    429: ("rate_limit_exceeded", "rate_limit_exceeded", "Rate limit reached. Please try again in 1s."),
}
TOO_LONG = "Your input exceeds the context window of this model. Please adjust your input and try again."
FAILURES = {
    "context_length_exceeded": TOO_LONG,
    "rate_limit_exceeded": "Rate limit reached. Please try again in 0.1s.",
    "server_is_overloaded": "The server is overloaded.",
}
CACHED = 0.8  # of a prompt


def step_of(body: dict[str, Any]) -> Step:
    """What the conversation asks for."""
    return next_step([turn for item in _input(body) for turn in _turns(item)])


def reply(body: dict[str, Any], faults: Faults) -> Reply:
    """The answer to `POST /v1/responses`."""
    if failed := failure(faults):
        return failed
    items = _items(step_of(body), list(_tools(_offered(body))))
    begun: dict[str, Any] = {
        "id": _new("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "model": body.get("model"),
        "status": "in_progress",
        "output": [],
        "usage": None,
        "error": None,
    }
    ended = {**begun, "status": "completed", "output": items, "usage": _usage(body, items, faults)}
    headers = _windows("37.5") if "limits" in faults else ()
    if not body.get("stream"):
        return Reply(headers=headers, body=ended)
    events = _failed(begun, faults["failed"]) if "failed" in faults else _events(begun, ended, items)
    return Reply(headers=headers, events=tuple(_numbered(events)))


def _input(body: dict[str, Any]) -> list[dict[str, Any]]:
    given = body.get("input") or []
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _turns(item: dict[str, Any]) -> Iterator[Turn]:
    kind = item.get("type") or "message"
    if kind == "message":
        yield from text_turns(Kind.USER if item.get("role") == "user" else Kind.MODEL, item.get("content"))
    elif kind.endswith("_output"):
        yield Turn(Kind.TOOL)


def _offered(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The tools stand by themselves, or, for newer models, in the conversation."""
    yield from body.get("tools") or ()
    for item in _input(body):
        if item.get("type") == "additional_tools":
            yield from item["tools"]


def _tools(offered: Any) -> Iterator[Tool]:
    for each in offered:
        if each.get("type") == "namespace":
            yield from _tools(each.get("tools") or ())
        elif each.get("type") == "function":
            yield Tool(each["name"], each.get("parameters") or {})
        elif each.get("type") == "custom":
            yield Tool(each["name"], {}, takes_code=True)


def _items(step: Step, tools: list[Tool]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if step.think:
        summary = [{"type": "summary_text", "text": step.think}]
        items.append({"type": "reasoning", "id": _new("rs"), "summary": summary, "encrypted_content": "c2VjcmV0"})
    calls = step.calls(tools)
    if step.text or not calls:
        content = [{"type": "output_text", "text": step.text or "ok", "annotations": [], "logprobs": []}]
        items.append(
            {"type": "message", "id": _new("msg"), "role": "assistant", "status": "completed", "content": content}
        )
    for call in calls:
        given = {"type": "function_call", "id": _new("fc"), "arguments": json.dumps(call.arguments)}
        if call.code:
            given = {"type": "custom_tool_call", "id": _new("ctc"), "input": call.code}
        items.append({**given, "call_id": _new("call"), "name": call.name, "status": "completed"})
    return items


def _usage(body: dict[str, Any], items: list[dict[str, Any]], faults: Faults) -> dict[str, Any]:
    prompt = faults.input_tokens or tokens(body.get("input"), body.get("instructions") or "", body.get("tools") or [])
    output = tokens(items)
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": int(prompt * CACHED)},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + output,
    }


def _events(begun: dict[str, Any], ended: dict[str, Any], items: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(items):
        at = {"item_id": item["id"], "output_index": index}
        yield {"type": "response.output_item.added", "output_index": index, "item": {**item, **_empty(item)}}
        if item["type"] == "message":
            part = item["content"][0]
            at["content_index"] = 0
            yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
            yield {"type": "response.output_text.delta", **at, "delta": part["text"]}
            yield {"type": "response.output_text.done", **at, "text": part["text"]}
            yield {"type": "response.content_part.done", **at, "part": part}
        elif item["type"] == "function_call":
            yield {"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]}
            yield {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": ended}


def _empty(item: dict[str, Any]) -> dict[str, Any]:
    nothing: dict[str, dict[str, Any]] = {
        "message": {"status": "in_progress", "content": []},
        "reasoning": {"summary": []},
        "function_call": {"status": "in_progress", "arguments": ""},
        "custom_tool_call": {"status": "in_progress", "input": ""},
    }
    return nothing[item["type"]]


def _failed(begun: dict[str, Any], code: str) -> Iterator[dict[str, Any]]:
    error = {"code": code, "message": FAILURES.get(code, "The server had an error.")}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.failed", "response": {**begun, "status": "failed", "error": error}}


def _numbered(events: Iterator[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, event in enumerate(events):
        yield event["type"], {**event, "sequence_number": number}


def failure(faults: Faults) -> Reply | None:
    """The answer where it is only an error; chat completions have the same ones."""
    if "plan" in faults:  # what a ChatGPT login is told
        error: dict[str, Any] = {
            "type": "usage_limit_reached",
            "message": "The usage limit has been reached",
            "plan_type": "plus",
            "resets_at": int(time.time()) + 3600,
            "resets_in_seconds": 3600,
        }
        return Reply(status=429, headers=_windows("100"), body={"error": error})
    if "ctx" in faults:
        return _error(400, "invalid_request_error", "context_length_exceeded", TOO_LONG)
    if (status := faults.status) is None:
        return None
    after = faults[str(status)]
    kind, code, text = ERRORS.get(status, ("server_error", None, "The server had an error."))
    return _error(status, kind, code, text, (("retry-after", after),) if after else ())


def _error(status: int, kind: str, code: str | None, text: str, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    error = {"message": text, "type": kind, "param": None, "code": code}
    return Reply(status=status, headers=headers, body={"error": error})


def _windows(used_percent: str) -> tuple[tuple[str, str], ...]:
    """What a plan is told of its five hours."""
    return (
        ("x-codex-primary-used-percent", used_percent),
        ("x-codex-primary-window-minutes", "300"),
        ("x-codex-primary-reset-at", str(int(time.time()) + 3600)),
    )


def _new(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:24]}"
