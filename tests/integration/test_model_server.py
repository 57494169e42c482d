"""The stand-in for the models itself: what the real coders are tested against must be right first."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.model_server import ModelServer, script

SHELL = {"name": "Bash", "input_schema": {"properties": {"command": {"type": "string"}}, "required": ["command"]}}
EXEC = {"type": "function", "name": "exec_command", "parameters": {"properties": {"cmd": {"type": "string"}}}}


@pytest.fixture(name="model", scope="module")
def a_model() -> Iterator[ModelServer]:
    """A server."""
    with ModelServer() as server:
        yield server


def post(url: str, path: str, body: dict[str, Any], timeout: float = 5) -> tuple[http.client.HTTPResponse, bytes]:
    """The answer, and all of its body."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=timeout)
    try:
        connection.request("POST", f"{address.path}/v1/{path}", json.dumps(body), {"x-api-key": "sk-test"})
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def events(data: bytes) -> list[dict[str, Any]]:
    """The events of a stream."""
    return [json.loads(line[6:]) for line in data.decode().split("\n") if line.startswith("data: ")]


def messages(*content: Any, **fields: Any) -> dict[str, Any]:
    """A request to Anthropic's API; a list is what a tool gave."""
    turns = [{"role": "user", "content": each} for each in content]
    return {"model": "m", "messages": turns, "tools": [SHELL], **fields}


RESULT = [{"type": "tool_result", "tool_use_id": "t", "content": "done"}]


def test_the_step_is_found_in_the_request_alone(model: ModelServer) -> None:
    """As many results of tools as came after the script, so many steps are done; a repeated request changes nothing."""
    prompt = script("one", {"sh": ["two", "three"]}, {"text": "four"})

    def commands(*content: Any) -> list[str]:
        _, data = post(model.url(), "messages", messages(prompt, *content))
        return [
            block.get("input", block)["command" if "input" in block else "text"]
            for block in json.loads(data)["content"]
        ]

    assert commands() == commands() == ["one"]
    assert commands(RESULT) == commands(RESULT, RESULT) == ["two", "three"]
    assert commands(RESULT, RESULT, RESULT) == ["four"]
    assert commands(RESULT, "a word from somebody else") == ["two", "three"]


def test_anthropic_streams_what_it_would_say_at_once(model: ModelServer) -> None:
    """Put together, the deltas are the message."""
    prompt = script({"sh": "echo 'a rather long command'", "say": "Watch.", "think": "Well."})
    _, data = post(model.url(), "messages", messages(prompt, stream=True))
    told = events(data)
    deltas = [each["delta"] for each in told if each["type"] == "content_block_delta"]
    assert "".join(delta.get("partial_json", "") for delta in deltas) == '{"command": "echo \'a rather long command\'"}'
    assert [each["content_block"]["type"] for each in told if each["type"] == "content_block_start"] == [
        *("thinking", "text", "tool_use")
    ]
    assert told[-2]["delta"]["stop_reason"] == "tool_use"
    assert told[-1] == {"type": "message_stop"}


def test_openai_streams_calls_and_then_text(model: ModelServer) -> None:
    """The call has the client's own argument, and its output counts as a result."""
    prompt = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": script("ls", {"text": "end"})}],
    }
    body = {"model": "m", "input": [prompt], "tools": [EXEC], "stream": True}
    *_, last = events(post(model.url(), "responses", body)[1])
    (call,) = last["response"]["output"]
    assert (last["type"], json.loads(call["arguments"])) == ("response.completed", {"cmd": "ls"})
    body["input"] = [prompt, call, {"type": "function_call_output", "call_id": call["call_id"], "output": "x"}]
    *_, last = events(post(model.url(), "responses", body)[1])
    assert last["response"]["output"][0]["content"][0]["text"] == "end"


@pytest.mark.parametrize("api", ["messages", "responses"])
def test_a_fault_strikes_as_often_as_it_says(model: ModelServer, api: str) -> None:
    """Counted for each address by itself, and kept in the record with what was asked."""
    url = model.url("429:7*2")
    said = [post(url, api, {"input": "x", "messages": []}) for _ in range(3)]
    assert [response.status for response, _ in said] == [429, 429, 200]
    assert said[0][0].headers["retry-after"] == "7"
    assert [asked.key for asked in model.to(url)] == ["sk-test"] * 3
    assert post(model.url("429:7*2"), api, {})[0].status == 429


@pytest.mark.parametrize(("faults", "status"), [("401", 401), ("529", 529), ("ctx", 400), ("plan", 429)])
@pytest.mark.parametrize("api", ["messages", "responses"])
def test_a_failure_has_its_vendors_shape(model: ModelServer, api: str, faults: str, status: int) -> None:
    """An error with a message."""
    response, data = post(model.url(faults), api, {})
    assert response.status == status
    assert json.loads(data)["error"]["message"]


@pytest.mark.parametrize("api", ["messages", "responses"])
def test_usage_can_be_made_up(model: ModelServer, api: str) -> None:
    """All of a prompt together is what the address says."""
    _, data = post(model.url("usage:150000"), api, {"input": "x", "messages": []})
    usage = json.loads(data)["usage"]
    assert usage["input_tokens"] + usage.get("cache_read_input_tokens", 0) == 150_000


def test_a_stream_that_is_cut_has_no_end(model: ModelServer) -> None:
    """The connection is closed in the middle."""
    _, data = post(model.url("cut"), "messages", messages(script({"text": "Some words to say."}), stream=True))
    assert events(data)
    assert events(data)[-1]["type"] != "message_stop"


def test_closing_frees_whoever_waits() -> None:
    """A request that hangs does not hold the test."""
    with ModelServer() as server:
        url = server.url("hang")
        errors: list[Exception] = []

        def wait() -> None:
            try:
                post(url, "messages", {}, timeout=30)
            except (http.client.HTTPException, OSError) as exc:
                errors.append(exc)

        waiting = threading.Thread(target=wait)
        waiting.start()
        while not server.to(url):
            assert waiting.is_alive()
    waiting.join(5)
    assert not waiting.is_alive()
    assert errors


GEMINI_SHELL = {
    "name": "run_shell_command",
    "parameters": {"type": "OBJECT", "properties": {"command": {"type": "STRING"}}},
}
CHAT_SHELL = {"type": "function", "function": {"name": "bash", "parameters": EXEC["parameters"]}}


def test_gemini_says_the_same_streamed_and_at_once(model: ModelServer) -> None:
    """A call in the middle, then the end; what the tool gave is counted, and other requests get plain text."""
    text = {"role": "user", "parts": [{"text": script({"sh": "ls", "say": "I look."}, {"text": "Done."})}]}
    given = {"role": "user", "parts": [{"functionResponse": {"name": "run_shell_command", "response": {}}}]}
    body = {"contents": [text], "tools": [{"functionDeclarations": [GEMINI_SHELL]}]}

    def parts(answers: list[dict[str, Any]]) -> list[Any]:
        found = [part for answer in answers for part in answer["candidates"][0]["content"]["parts"]]
        return [part.get("text") or part["functionCall"]["args"] for part in found]

    _, data = post(model.url(), "models/m:generateContent", body)
    _, streamed = post(model.url(), "models/m:streamGenerateContent?alt=sse", body)
    assert parts([json.loads(data)]) == parts(events(streamed)) == ["I look.", {"command": "ls"}]
    assert events(streamed)[-1]["candidates"][0]["finishReason"] == "STOP"
    _, data = post(model.url(), "models/m:generateContent", {**body, "contents": [text, given]})
    assert parts([json.loads(data)]) == ["Done."]
    _, data = post(model.url(), "models/m:generateContent", {"contents": [text]})
    assert parts([json.loads(data)]) == ["I look."]


def test_chat_completions_say_the_same_streamed_and_at_once(model: ModelServer) -> None:
    """A call in the middle, then the end, then what was used, then the word that it is over."""
    body: dict[str, Any] = {
        "messages": [{"role": "user", "content": script({"sh": "ls", "think": "Hm."}, {"text": "Done."})}],
        "tools": [CHAT_SHELL],
    }
    _, data = post(model.url(), "chat/completions", body)
    choice = json.loads(data)["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"]) == {"cmd": "ls"}
    _, streamed = post(model.url(), "chat/completions", {**body, "stream": True})
    assert streamed.endswith(b"data: [DONE]\n\n")
    *said, used = events(streamed.removesuffix(b"data: [DONE]\n\n"))
    deltas = [each["choices"][0]["delta"] for each in said]
    assert [each["reasoning_content"] for each in deltas if "reasoning_content" in each] == ["Hm."]
    assert [each["tool_calls"][0]["function"]["name"] for each in deltas if "tool_calls" in each] == ["bash"]
    assert used["usage"]["total_tokens"] > 0
    body["messages"] += [{"role": "assistant", "content": ""}, {"role": "tool", "content": "x"}]
    _, data = post(model.url(), "chat/completions", body)
    assert json.loads(data)["choices"][0]["message"]["content"] == "Done."


@pytest.mark.parametrize(("path", "code"), [("models/m:generateContent", 401), ("chat/completions", "invalid_api_key")])
def test_their_errors_have_their_own_shapes(model: ModelServer, path: str, code: Any) -> None:
    """As the programs look for them."""
    response, data = post(model.url("401"), path, {})
    assert (response.status, json.loads(data)["error"]["code"]) == (401, code)
