"""Google's Gemini API: a request to its reply, as a stream of parts or as one object."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from tests.support.model_server.faults import Faults, Reply
from tests.support.model_server.steps import Kind, Step, Tool, Turn, next_step, tokens

ERRORS = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
    403: ("PERMISSION_DENIED", "Your key may not use this."),
    404: ("NOT_FOUND", "There is no such model."),
    429: ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
}
TOO_LONG = "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."
DAILY = "You exceeded your current quota, please check your plan and billing details."
CACHED = 0.8  # of a prompt


def step_of(body: dict[str, Any]) -> Step:
    """What the conversation asks for."""
    return next_step([turn for content in body.get("contents") or () for turn in _turns(content)])


def reply(body: dict[str, Any], faults: Faults) -> Reply:
    """The answer to `POST …/models/M:generateContent`, or `:streamGenerateContent` where the body says `stream`."""
    if failed := _failure(faults):
        return failed
    parts = _parts(step_of(body), list(_tools(body)))
    usage = _usage(body, parts, faults)
    stop = "SAFETY" if "refuse" in faults else "STOP"
    if not body.get("stream"):
        return Reply(body=_answer(parts, usage, stop))
    pieces = [_answer([part], usage) for part in parts[:-1]] + [_answer(parts[-1:], usage, stop)]
    return Reply(events=tuple(("", piece) for piece in pieces))


def _turns(content: dict[str, Any]) -> Iterator[Turn]:
    kind = Kind.USER if content.get("role") == "user" else Kind.MODEL
    for part in content.get("parts") or ():
        if "functionResponse" in part:
            yield Turn(Kind.TOOL)
        elif part.get("text") and not part.get("thought"):
            yield Turn(kind, part["text"])


def _tools(body: dict[str, Any]) -> Iterator[Tool]:
    for group in body.get("tools") or ():
        for each in group.get("functionDeclarations") or ():
            yield Tool(each["name"], each.get("parametersJsonSchema") or _plain(each.get("parameters") or {}))


def _plain(schema: Any) -> Any:
    """A schema as others write it: here the types are in capitals."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: each.lower() if name == "type" and isinstance(each, str) else _plain(each)
        for name, each in schema.items()
    }


def _parts(step: Step, tools: list[Tool]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"text": step.think, "thought": True}] if step.think and tools else []
    calls = step.calls(tools)
    if step.text or not calls:
        parts.append({"text": step.text or "ok"})
    return parts + [{"functionCall": {"id": _new(), "name": each.name, "args": each.arguments}} for each in calls]


def _usage(body: dict[str, Any], parts: list[dict[str, Any]], faults: Faults) -> dict[str, int]:
    prompt = faults.input_tokens or tokens(body.get("contents"), body.get("systemInstruction") or "", body.get("tools"))
    output = tokens(parts)
    return {
        "promptTokenCount": prompt,
        "cachedContentTokenCount": int(prompt * CACHED),
        "candidatesTokenCount": output,
        "thoughtsTokenCount": 0,
        "totalTokenCount": prompt + output,
    }


def _answer(parts: list[dict[str, Any]], usage: dict[str, int], stop: str | None = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    if stop:
        candidate["finishReason"] = stop
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "stand-in", "responseId": _new()}


def _failure(faults: Faults) -> Reply | None:
    if "ctx" in faults:
        return _error(400, "INVALID_ARGUMENT", TOO_LONG)
    if "plan" in faults:
        return _error(429, "RESOURCE_EXHAUSTED", DAILY)
    if (status := faults.status) is None:
        return None
    name, text = ERRORS.get(status, ("INTERNAL", "An internal error has occurred."))
    return _error(status, name, text, faults[str(status)])


def _error(status: int, name: str, text: str, after: str = "") -> Reply:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{after}s"}] if after else []
    return Reply(status=status, body={"error": {"code": status, "message": text, "status": name, "details": details}})


def _new() -> str:
    return uuid.uuid4().hex[:24]
