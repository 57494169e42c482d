"""The exact words with which each program is started."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from fleet import plugins
from fleet.coders.coder import SupportsResume, Work
from fleet.coders.template import TemplateCoder
from fleet.errors import UsageError
from fleet.model.launch import Launch
from fleet.model.permission import Hold

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
    """Reading, the kinds, programs and tools named and Fleet's own commands; the list ends before the prompt."""
    argv = launched("claude", tools=("edit", "git", "WebFetch", "Bash(make *)"), writable=("/art",)).argv
    words = argv[argv.index("--allowedTools") + 1 : argv.index("--")]
    assert words[:5] == ("Read", "Glob", "Grep", "Task", "TodoWrite")
    assert words[5:9] == ("Edit", "Write", "NotebookEdit", "Edit(//art/**)")
    assert words[9:] == ("Bash(git *)", "Bash(fleet *)", "Bash(bd *)", "WebFetch", "Bash(make *)")
    assert argv[argv.index("--permission-mode") + 1] == "dontAsk"
    assert argv[argv.index("--setting-sources") + 1] == "user"
    assert "--dangerously-skip-permissions" not in argv
    assert "--allowedTools" not in launched("claude", tool_profile="full").argv


def test_claude_may_write_nothing_in_a_directory_that_it_may_only_read() -> None:
    """A rule denies it, whatever the operator's own allow; not where that rule would cover what must be writable."""
    argv = launched("claude", tool_profile="read-only", writable=("/art",)).argv
    assert argv[argv.index("--disallowedTools") + 1] == "Edit(//srv/app/**)"
    assert "Bash" not in argv
    assert "--disallowedTools" not in launched("claude", tool_profile="read-only", writable=("/srv/app/out",)).argv


def test_codex_gets_its_sandbox_only_to_read() -> None:
    """Everything can be read, only what it must write can be written; also when it resumes."""
    for resume in (None, "thread-7"):
        argv = launched("codex", tool_profile="read-only", writable=("/my art",), resume=resume).argv
        assert "--dangerously-bypass-approvals-and-sandbox" not in argv
        assert 'permissions.fleet.filesystem={":root" = "read", "/my art" = "write"}' in argv
        assert {'default_permissions="fleet"', 'approval_policy="never"'} <= set(argv)


def test_gemini_is_given_what_needs_no_consent_and_what_is_named() -> None:
    """Nobody is there to consent, so all else is denied."""
    argv = launched("gemini", tools=("git", "edit", "web_fetch")).argv
    assert "--yolo" not in argv
    assert "--approval-mode=default" in argv
    allowed = [word.partition("=")[2] for word in argv if word.startswith("--allowed-tools=")]
    shell = [f"run_shell_command({program})" for program in ("git", "fleet", "bd")]
    assert allowed == ["write_file", "replace", *shell, "web_fetch"]


def test_opencode_is_given_rules_of_which_the_last_counts() -> None:
    """In its environment, where a repository cannot change them."""
    env = launched("opencode", tools=("git",), tool_profile="read-only", writable=("/srv/art",)).env
    rules = json.loads(env["OPENCODE_PERMISSION"])
    assert next(iter(rules.items())) == ("*", "deny")
    assert rules["edit"] == {"*": "deny", "../art/**": "allow", "art/**": "allow", "srv/art/**": "allow"}
    assert list(rules["bash"]) == ["*", "git", "git *", "fleet", "fleet *", "bd", "bd *", "*>*"]
    assert env["OPENCODE_DISABLE_PROJECT_CONFIG"] == "1"
    assert "OPENCODE_PERMISSION" not in launched("opencode").env


@pytest.mark.parametrize(
    ("tools", "profile", "refused"),
    [
        (("edit",), "read-only", "tools"),
        (("Bash",), "read-only", "tools"),
        (("git",), "full", "tools"),
        ((), "generous", "tool_profile"),
    ],
)
def test_permissions_that_contradict_each_other_are_refused(tools: Any, profile: str, refused: str) -> None:
    """With the field that is wrong, before anything is started."""
    answers = plugins.load("coders", "claude").permissions(tools, profile)
    assert [each.field for each in answers if each.hold is Hold.REFUSED] == [refused]


def test_a_template_can_be_told_the_role() -> None:
    """In a place of its own; without a role its flag is left out."""
    coder = TemplateCoder("mine", ["mine", "--as", "{role}", "{prompt}"])
    work = Work(task="t", session="s", prompt="p", cwd="/", role="reviewer")
    assert coder.launch(work).argv == ("mine", "--as", "reviewer", "p")
    assert coder.launch(msgspec.structs.replace(work, role=None)).argv == ("mine", "p")


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
        "--skip-trust",
        "--yolo",
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
        "--thinking",
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
