"""Anthropic's Messages: a request to its reply, as a stream of events or as one object."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

from tests.support.model_server.faults import Faults, Reply
from tests.support.model_server.steps import Kind, Step, Tool, Turn, next_step, text_turns, tokens

ERRORS = {
    401: ("authentication_error", "invalid x-api-key"),
    403: ("permission_error", "Your key may not use this."),
    404: ("not_found_error", "There is no such model."),
    429: ("rate_limit_error", "This request would exceed your account's rate limit."),
    529: ("overloaded_error", "Overloaded"),
}
CACHED = 0.8  # of a prompt
CUT = 16  # characters in one event


def step_of(body: dict[str, Any]) -> Step:
    """What the conversation asks for."""
    return next_step([turn for message in body.get("messages", ()) for turn in _turns(message)])


def reply(body: dict[str, Any], faults: Faults) -> Reply:
    """The answer to `POST /v1/messages`."""
    if failed := _failure(faults):
        return failed
    step = step_of(body)
    blocks = _blocks(step, [Tool(each["name"], each.get("input_schema") or {}) for each in body.get("tools") or ()])
    stop = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    message = {
        "id": _new("msg"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": blocks,
        "stop_reason": "refusal" if "refuse" in faults else stop,
        "stop_sequence": None,
        "usage": _usage(body, blocks, faults),
    }
    headers = _windows("allowed", 0.42) if "limits" in faults else ()
    if body.get("stream"):
        return Reply(headers=headers, events=tuple(_events(message)))
    return Reply(headers=headers, body=message)


def _turns(message: dict[str, Any]) -> Iterator[Turn]:
    kind = Kind.USER if message.get("role") == "user" else Kind.MODEL
    content = message.get("content")
    for part in [content] if isinstance(content, str) else content or ():
        if isinstance(part, dict) and part.get("type") == "tool_result":
            yield Turn(Kind.TOOL)
        else:
            yield from text_turns(kind, part if isinstance(part, str) else [part])


def _blocks(step: Step, tools: list[Tool]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if step.think:
        blocks.append({"type": "thinking", "thinking": step.think, "signature": "c2lnbmVk"})
    calls = step.calls(tools)
    if step.text or not calls:
        blocks.append({"type": "text", "text": step.text or "ok"})
    for call in calls:
        blocks.append({"type": "tool_use", "id": _new("toolu"), "name": call.name, "input": call.arguments})
    return blocks


def _usage(body: dict[str, Any], blocks: list[dict[str, Any]], faults: Faults) -> dict[str, Any]:
    prompt = faults.input_tokens or tokens(body.get("messages"), body.get("system") or "", body.get("tools") or [])
    cached = int(prompt * CACHED)
    return {
        "input_tokens": prompt - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": tokens(blocks),
    }


def _events(message: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    begun = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    yield _event("message_start", message=begun)
    for index, block in enumerate(message["content"]):
        yield _event("content_block_start", index=index, content_block=_empty(block))
        for delta in _deltas(block):
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=ended, usage=message["usage"])
    yield _event("message_stop")


def _event(name: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    return name, {"type": name, **fields}


def _empty(block: dict[str, Any]) -> dict[str, Any]:
    nothing = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {name: nothing.get(name, value) if name != block["type"] else "" for name, value in block.items()}


def _deltas(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if block["type"] == "text":
        yield from ({"type": "text_delta", "text": part} for part in _cut(block["text"]))
    elif block["type"] == "thinking":
        yield {"type": "thinking_delta", "thinking": block["thinking"]}
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        written = json.dumps(block["input"])
        yield from ({"type": "input_json_delta", "partial_json": part} for part in _cut(written))


def _cut(text: str) -> Iterator[str]:
    return (text[at : at + CUT] for at in range(0, len(text), CUT))


def _failure(faults: Faults) -> Reply | None:
    if "plan" in faults:
        headers = (*_windows("rejected", 1.0), ("x-should-retry", "false"))
        return _error(429, "rate_limit_error", "You have reached your usage limit.", headers)
    if "ctx" in faults:
        return _error(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
    if (status := faults.status) is None:
        return None
    kind, text = ERRORS.get(status, ("api_error", "Internal server error"))
    after = faults[str(status)]
    return _error(status, kind, text, (("retry-after", after),) if after else ())


def _error(status: int, kind: str, text: str, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    error = {"type": "error", "error": {"type": kind, "message": text}, "request_id": _new("req")}
    return Reply(status=status, headers=headers, body=error)


def _windows(status: str, used: float) -> tuple[tuple[str, str], ...]:
    """What a subscription is told of its five hours."""
    reset = str(int(time.time()) + 3600)
    said = {
        "status": status,
        "reset": reset,
        "representative-claim": "five_hour",
        "5h-status": status,
        "5h-utilization": str(used),
        "5h-reset": reset,
    }
    return tuple((f"anthropic-ratelimit-unified-{name}", value) for name, value in said.items())


def _new(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:24]}"
