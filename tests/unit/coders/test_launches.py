"""The exact words with which each program is started."""

from __future__ import annotations

from typing import Any

import pytest

from fleet import plugins
from fleet.coders.coder import SupportsResume, Work
from fleet.coders.template import TemplateCoder
from fleet.errors import UsageError
from fleet.model.launch import Launch

UUID = "11111111-2222-4333-8444-555555555555"


def launched(coder: str, prompt: str = "do it", **fields: Any) -> Launch:
    """The launch of some work."""
    work = Work(task="fleet-abc", session="s-1", prompt=prompt, cwd="/srv/app", new_uuid=UUID, **fields)
    launch: Launch = plugins.load("coders", coder).launch(work)
    return launch


def test_claude_is_started_unattended_under_a_name_of_ours() -> None:
    """The first session names the conversation, so that it can be resumed even if it never says its name."""
    launch = launched("claude", model="opus")
    flags = ["claude", "-p", "--output-format", "stream-json", "--verbose", "--session-id"]
    assert launch.argv == (*flags, UUID, "--model", "opus", "--dangerously-skip-permissions", "--", "do it")
    assert launch.coder_session == UUID
    assert launch.env["CLAUDE_CODE_MAX_RETRIES"] == "2"
    assert {"DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"} <= set(launch.env)


def test_claude_is_told_that_it_is_in_a_sandbox_only_as_root() -> None:
    """As root it refuses to skip permissions without that word; otherwise the word would be untrue."""
    assert launched("claude", as_root=True).env["IS_SANDBOX"] == "1"
    assert "IS_SANDBOX" not in launched("claude").env


def test_claude_resumes_by_the_conversation() -> None:
    """A resumed session takes no new name."""
    argv = launched("claude", resume="conv-7").argv
    assert argv[argv.index("--resume") + 1] == "conv-7"
    assert "--session-id" not in argv


def test_claude_is_held_to_a_list_of_tools() -> None:
    """Allowed tools run, every other call is denied, and the list ends before the prompt."""
    argv = launched("claude", tools=("Read", "Bash(git *)")).argv
    assert argv[-7:] == ("--permission-mode", "dontAsk", "--allowedTools", "Read", "Bash(git *)", "--", "do it")
    assert "--dangerously-skip-permissions" not in argv
    assert "--allowedTools" not in launched("claude", tools=()).argv


def test_codex_is_started_without_its_sandbox_and_its_plugins() -> None:
    """Its own sandbox refuses in silence; its plugins wait for the network."""
    argv = launched("codex", model="gpt-5.5").argv
    assert argv[:2] == ("codex", "exec")
    assert {"--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"} <= set(argv)
    assert argv[argv.index("--disable") + 1] == "plugins"
    assert argv[-4:] == ("-m", "gpt-5.5", "--", "do it")


def test_codex_resumes_a_thread_and_reads_a_long_prompt_from_stdin() -> None:
    """A dash in the prompt's place means stdin."""
    launch = launched("codex", "x" * 200_000, resume="thread-7")
    assert launch.argv[:3] == ("codex", "exec", "resume")
    assert launch.argv[-3:] == ("--", "thread-7", "-")
    assert launch.prompt_on_stdin
    assert launch.coder_session == "thread-7"


def test_gemini_takes_its_prompt_in_one_piece() -> None:
    """A prompt that begins with a dash would be a flag."""
    launch = launched("gemini", "--yes", model="gemini-2.5-pro")
    flags = [
        "gemini",
        "--output-format",
        "stream-json",
        "--yolo",
        "--skip-trust",
        "-m",
        "gemini-2.5-pro",
        "--session-id",
    ]
    assert launch.argv == (*flags, UUID, "--prompt=--yes")
    assert not any(item.startswith("--prompt") for item in launched("gemini", "x" * 200_000).argv)


def test_opencode_reads_its_prompt_from_stdin() -> None:
    """As an argument it would be put in quotes."""
    launch = launched("opencode", model="anthropic/claude-sonnet-5-5", resume="ses_7")
    flags = [
        "opencode",
        "run",
        "--format",
        "json",
        "--auto",
        "--model",
        "anthropic/claude-sonnet-5-5",
        "--session",
        "ses_7",
    ]
    assert launch.argv == tuple(flags)
    assert launch.prompt_on_stdin


def test_agy_gets_a_long_clock_and_an_effort_with_its_model() -> None:
    """Its own time-out is five minutes and lies; a model without an effort is ignored."""
    argv = launched("agy", model="gemini-3-pro").argv
    assert argv[:3] == ("agy", "-p", "do it")
    assert argv[argv.index("--print-timeout") + 1] == "24h"
    assert argv[-4:] == ("--model", "gemini-3-pro", "--effort", "medium")
    long = launched("agy", "x" * 200_000)
    assert long.prompt.startswith('{"event":"user"')
    assert "-p" not in long.argv


def test_a_command_is_run_as_it_is() -> None:
    """Several words are an argv, a single one is a line of shell; the prompt is on stdin."""
    assert launched("command", command=("make", "test")).argv == ("make", "test")
    assert launched("command", command=("make test | tail",)).argv == ("sh", "-c", "make test | tail")
    assert launched("command", command=("cat",)).prompt_on_stdin
    assert launched("command", "echo hi").argv == ("sh", "-c", "echo hi")
    assert launched("command", "#" * 200_000).argv == ("sh", "-s")


def test_only_what_can_resume_says_so() -> None:
    """Extra powers are found by asking."""
    can = {name for name in plugins.names("coders") if isinstance(plugins.load("coders", name), SupportsResume)}
    assert can >= {"agy", "claude", "codex", "gemini", "opencode"}
    assert not can & {"command", "scripted"}


def test_a_template_leaves_out_what_has_no_value() -> None:
    """A place without a value goes, and the flag before it too; a switch before the prompt stays."""
    coder = TemplateCoder(
        "mine", ["mine", "--model", "{model}", "--dir={cwd}", "--resume", "{resume}", "-p", "{prompt}"]
    )
    work = Work(task="t", session="s", prompt="hi {model}", cwd="/srv")
    assert coder.launch(work).argv == ("mine", "--dir=/srv", "-p", "hi {model}")
    assert coder.resumable
    long = Work(task="t", session="s", prompt="x" * 200_000, cwd="/srv", model="m")
    assert coder.launch(long).argv == ("mine", "--model", "m", "--dir=/srv")
    assert coder.launch(long).prompt_on_stdin


@pytest.mark.parametrize(("argv", "output"), [([], "text"), (["{prompt}"], "text"), (["mine"], "xml")])
def test_a_template_that_cannot_work_is_refused(argv: list[str], output: str) -> None:
    """A template needs a program and a known output."""
    with pytest.raises(UsageError):
        TemplateCoder("mine", argv, output=output)
