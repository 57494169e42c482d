"""`fleet mcp` as manager agents use it: the official client, over both transports."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Implementation, TextContent

from fleet.config import tokens
from fleet.config.tokens import Role
from tests.support.cli import FLEET, Cli, line_from

SECONDS = 60
LOOKS = ["status", "tasks", "inspect", "why", "logs", "artifacts", "receipts", "questions", "cost", "wait"]
STEERS = ["add", "run", "restart", "interrupt", "stop", "answer", "ask", "verify"]
ROBOT = Implementation(name="robot", version="1")
SPEC = {"name": "night", "tasks": [{"id": "a", "command": ["true"]}, {"id": "b", "command": ["true"], "needs": ["a"]}]}


def talk(cli: Cli, *argv: str, say: Callable[[Client], Awaitable[None]], mode: str = "auto") -> None:
    """Talk to `fleet mcp` on its stdin and stdout, as a coding agent does."""
    server = StdioServerParameters(command=FLEET[0], args=[*FLEET[1:], "mcp", *argv], env=cli.env, cwd=cli.cwd)

    async def whole() -> None:
        async with asyncio.timeout(SECONDS), Client(stdio_client(server), mode=mode, client_info=ROBOT) as client:
            await say(client)

    asyncio.run(whole())


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """The typed result of a tool that must succeed; the client holds it to the tool's output schema."""
    found = await client.call_tool(tool, arguments)
    assert not found.is_error, found.content
    return found.structured_content


def refused(found: CallToolResult) -> str:
    """What a tool said that failed."""
    assert found.is_error
    (said,) = found.content
    assert isinstance(said, TextContent)
    return said.text


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_manager_agent_works_through_its_tools(cli: Cli, mode: str) -> None:
    """Every tool does what its command does, by both generations of the protocol, and the ledger says who did it."""

    async def say(client: Client) -> None:
        uid = (await call(client, "add", title="Write it", description="All of it.", cwd=str(cli.cwd)))["id"]
        assert (await call(client, "status"))["counts"]["queued"] == 1
        assert (await call(client, "ask", id=uid, text="Which one?"))["question"] == "Which one?"
        assert [one["id"] for one in (await call(client, "questions"))["questions"]] == [uid]
        assert (await call(client, "why", id=uid))["classification"] == "needs-human"
        assert (await call(client, "answer", id=uid, text="The first."))["state"] == "queued"
        stopped = await call(client, "stop", id=uid, reason="no longer wanted")
        assert [(one["id"], one["state"]) for one in stopped["tasks"]] == [(uid, "cancelled")]
        assert (await call(client, "restart", id=uid, force=True))["task"]["state"] == "queued"
        assert (await call(client, "inspect", id=uid))["latest_event"]["by"] == "mcp:robot"
        made = await call(client, "run", spec=SPEC)
        run = made["run"]["id"]
        lines = (await call(client, "tasks", run=run))["tasks"]
        assert [one["id"] for one in lines] == list(made["tasks"].values())
        waited = await call(client, "wait", run=run, timeout_seconds=1)
        assert (waited["run"]["over"], waited["exit_code"]) == (False, 3)
        for look in ("logs", "artifacts"):
            assert await call(client, look, id=uid)
        assert (await call(client, "receipts", run=run))["receipts"] == []

    talk(cli, "--profile", "operate", say=say, mode=mode)
    assert "(mcp:robot)" in cli.ok("ledger", "tail", "-n", "1").out


def test_a_run_is_waited_for_and_its_verdicts_are_read(cli: Cli) -> None:
    """What ran is told with receipts, logs and artifacts that fit their schemas."""
    spec = cli.cwd / "spec.json"
    spec.write_text('{"name": "n", "tasks": [{"id": "a", "command": ["sh", "-c", "echo hello"]}]}')
    cli.ok("run", "spec.json", "--quiet")
    (line,) = cli.json("tasks", "--status", "all")

    async def say(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == LOOKS
        (receipt,) = (await call(client, "receipts", id=line["id"]))["receipts"]
        assert (receipt["result"], receipt["final"]) == ("pass", True)
        assert (await call(client, "wait", run=receipt["run"]))["exit_code"] == 0
        assert [each["name"] for each in (await call(client, "cost", by="run"))["lines"]] == [receipt["run"]]
        assert "hello" in str((await call(client, "logs", id=line["id"]))["records"])
        assert (await call(client, "inspect", id=line["id"]))["receipt"]["id"] == receipt["id"]
        assert "needs the role operate" in refused(await client.call_tool("stop", {"all": True}))

    talk(cli, say=say)


def test_tools_say_what_they_are_and_what_went_wrong(cli: Cli) -> None:
    """A tool that fails says why and what helps; each says whether it changes or destroys; the runbook is there."""

    async def say(client: Client) -> None:
        uid = (await call(client, "add", title="Write it"))["id"]
        missing = "error: no worker, task or session `nope`\nhint: `fleet tasks --status all` lists them"
        assert refused(await client.call_tool("inspect", {"id": "nope"})) == missing
        assert "hint: " in refused(await client.call_tool("verify", {"id": uid}))
        assert "$.lines" in refused(await client.call_tool("logs", {"id": uid, "lines": 100_000}))
        assert "unknown field `extra`" in refused(await client.call_tool("status", {"extra": 1}))
        assert "give one of id, run and all" in refused(await client.call_tool("stop", {}))
        bad = refused(await client.call_tool("run", {"spec": {"tasks": [{"id": "a", "wrong": 1}]}}))
        assert "wrong" in bad
        assert "hint: " in bad
        await described(client)

    async def described(client: Client) -> None:
        found = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(found) == LOOKS + STEERS
        for name, tool in found.items():
            hints = tool.annotations
            assert hints
            assert tool.description
            assert tool.output_schema
            assert (tool.input_schema["type"], tool.output_schema["type"]) == ("object", "object")
            assert hints.read_only_hint is (name in LOOKS)
            assert hints.destructive_hint is (name in ("restart", "interrupt", "stop", "verify"))
        (prompt,) = (await client.list_prompts()).prompts
        (message,) = (await client.get_prompt(prompt.name)).messages
        (resource,) = (await client.list_resources()).resources
        (text,) = (await client.read_resource(resource.uri)).contents
        assert isinstance(message.content, TextContent)
        assert message.content.text == getattr(text, "text", None)
        for word in ("transient", "task", "verifier", "needs-human", "Requested decision:", "Next owner"):
            assert word in message.content.text

    talk(cli, "--profile", "operate", say=say)


@contextlib.asynccontextmanager
async def reached(url: str, token: str) -> AsyncIterator[Client]:
    """The official client, with a token, over streamable HTTP."""
    headers = {"authorization": f"Bearer {token}"}
    async with (
        asyncio.timeout(SECONDS),
        httpx2.AsyncClient(headers=headers) as http,
        Client(streamable_http_client(url, http_client=http), client_info=ROBOT) as client,
    ):
        yield client


def test_http_needs_a_token_and_ends_at_its_role(cli: Cli) -> None:
    """Over HTTP the gate of the API stands before it: no token, another Host or Origin, and nothing is reached."""
    reader = tokens.add(cli.home, "eve", Role.READ).secret
    operator = tokens.add(cli.home, "bob", Role.OPERATE).secret
    with cli.started("mcp", "--http", "127.0.0.1:0", "--profile", "operate") as process:
        said = line_from(process.stderr, seconds=SECONDS)
        found = re.search(r"http://\S+/mcp", said)
        assert found, said
        url = found[0]

        async def say() -> None:
            async with reached(url, operator) as client:
                made = await call(client, "add", title="Write it")
                assert made["created_by"] == "mcp:robot@bob"
            async with reached(url, reader) as client:
                assert [tool.name for tool in (await client.list_tools()).tools] == LOOKS
                assert (await call(client, "status"))["total"] == 1
                assert "operate" in refused(await client.call_tool("stop", {"all": True}))

        asyncio.run(say())
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        shown = {"authorization": f"Bearer {operator}", "accept": "application/json, text/event-stream"}
        for headers, status in (
            ({}, 401),
            ({"authorization": "Bearer wrong"}, 401),
            ({**shown, "host": "evil.example"}, 421),
            ({**shown, "origin": "http://evil.example"}, 403),
            ({**shown, "content-encoding": "gzip"}, 415),
        ):
            assert httpx.post(url, json=ping, headers=headers, timeout=SECONDS).status_code == status
        assert httpx.get(url.removesuffix("/mcp") + "/v1/fleet/status", headers=shown).status_code == 404
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
        rest = process.stderr.read() if process.stderr else b""
        assert (b"flt_" in rest, b"Traceback" in rest) == (False, False)


def test_it_leaves_when_told_or_when_its_client_does(cli: Cli) -> None:
    """The end of stdin ends it well; a signal ends it at once, though nothing comes on stdin."""
    hello = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
    done = cli.run("mcp", input=hello)
    assert (done.code, '"id":1' in done.out) == (0, True)
    argv = [*FLEET, "mcp"]
    with subprocess.Popen(argv, env=cli.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin
        process.stdin.write(hello)
        assert '"id":1' in line_from(process.stdout, seconds=SECONDS)
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 143


def test_an_agent_does_not_steer_its_own_fleet(cli: Cli) -> None:
    """Inside a session only the profile that looks is served."""
    done = cli.run("mcp", "--profile", "operate", env={"FLEET_TASK_ID": "fleet-abc"})
    assert (done.code, "does not steer its fleet" in done.err) == (1, True)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--http", "7879"], "--http takes HOST:PORT"),
        (["--http", "0.0.0.0:0"], "tokens would travel in the clear"),
    ],
)
def test_where_it_may_listen(cli: Cli, argv: list[str], said: str) -> None:
    """A place that makes no sense, or from which others could read the tokens, is refused."""
    done = cli.run("mcp", *argv)
    assert done.code == 2
    assert said in done.err


def test_without_the_sdk_it_says_what_to_install(cli: Cli) -> None:
    """Fleet works without the extra; the one command that needs it says so."""
    code = (
        "import sys; sys.modules['mcp'] = None\n"  # as if it were not installed
        "from fleet.cli import main; sys.exit(main(['mcp']))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=cli.env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert " -m pip install 'mcp'" in done.stderr
