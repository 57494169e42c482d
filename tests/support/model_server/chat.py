"""OpenAI's chat completions, as every compatible provider speaks them: a request to its reply, streamed or as one."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

from tests.support.model_server import openai
from tests.support.model_server.faults import Faults, Reply
from tests.support.model_server.steps import Kind, Step, Tool, Turn, next_step, text_turns, tokens

CACHED = 0.8  # of a prompt
CUT = 16  # characters in one event


def step_of(body: dict[str, Any]) -> Step:
    """What the conversation asks for."""
    return next_step([turn for message in body.get("messages") or () for turn in _turns(message)])


def reply(body: dict[str, Any], faults: Faults) -> Reply:
    """The answer to `POST /v1/chat/completions`."""
    if failed := openai.failure(faults):
        return failed
    message = _message(step_of(body), [_tool(each["function"]) for each in body.get("tools") or ()])
    stop = "tool_calls" if "tool_calls" in message else "content_filter" if "refuse" in faults else "stop"
    base = {"id": f"chatcmpl-{uuid.uuid4().hex[:24]}", "created": int(time.time()), "model": body.get("model")}
    usage = _usage(body, message, faults)
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": stop}
        return Reply(body={**base, "object": "chat.completion", "choices": [choice], "usage": usage})
    return Reply(events=tuple(("", event) for event in _events(base, message, stop, usage)))


def _turns(message: dict[str, Any]) -> Iterator[Turn]:
    if message.get("role") == "tool":
        yield Turn(Kind.TOOL)
        return
    kind = Kind.USER if message.get("role") == "user" else Kind.MODEL
    yield from text_turns(kind, message.get("content"))


def _tool(function: dict[str, Any]) -> Tool:
    return Tool(function["name"], function.get("parameters") or {})


def _message(step: Step, tools: list[Tool]) -> dict[str, Any]:
    calls = [
        {
            "id": f"call_{uuid.uuid4().hex[:24]}",
            "type": "function",
            "function": {"name": each.name, "arguments": json.dumps(each.arguments)},
        }
        for each in step.calls(tools)
    ]
    message: dict[str, Any] = {"role": "assistant", "content": step.text or ("" if calls else "ok")}
    if step.think and tools:
        message["reasoning_content"] = step.think
    return {**message, "tool_calls": calls} if calls else message


def _usage(body: dict[str, Any], message: dict[str, Any], faults: Faults) -> dict[str, Any]:
    prompt = faults.input_tokens or tokens(body.get("messages"), body.get("tools") or [])
    output = tokens(message)
    return {
        "prompt_tokens": prompt,
        "prompt_tokens_details": {"cached_tokens": int(prompt * CACHED)},
        "completion_tokens": output,
        "completion_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + output,
    }


def _events(
    base: dict[str, Any], message: dict[str, Any], stop: str, usage: dict[str, Any]
) -> Iterator[dict[str, Any] | str]:
    def piece(delta: dict[str, Any], ended: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": ended}
        return {**base, "object": "chat.completion.chunk", "choices": [choice]}

    yield piece({"role": "assistant", "content": ""})
    if thought := message.get("reasoning_content"):
        yield piece({"reasoning_content": thought})
    text = message["content"]
    yield from (piece({"content": text[at : at + CUT]}) for at in range(0, len(text), CUT))
    for index, call in enumerate(message.get("tool_calls") or ()):
        yield piece({"tool_calls": [{"index": index, **call}]})
    yield piece({}, stop)
    yield {**base, "object": "chat.completion.chunk", "choices": [], "usage": usage}
    yield "[DONE]"
