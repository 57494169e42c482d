"""`fleet receipts`, `fleet artifacts`, `fleet verify`: looking at verdicts, checking them again, settling them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Cli


@pytest.fixture
def at_work(cli: Cli) -> Cli:
    """A home whose tasks are tried once, and soon."""
    cli.home.toml.write_text(
        '[supervisor]\ncoder = "scripted"\nmax_attempts = 1\ngrace_seconds = 1\nbackoff_seconds = 0\n'
    )
    return cli


def run(cli: Cli, *tasks: dict[str, Any], code: int = 0) -> str:
    """The run that a spec with these tasks makes."""
    file = cli.cwd / "work.json"
    file.write_text(json.dumps({"name": "work", "tasks": tasks}))
    done = cli.run("run", str(file), "--json")
    assert done.code == code, done
    found: str = json.loads(done.out)["run"]["id"]
    return found


def results(cli: Cli, *words: str) -> list[tuple[str, str, str | None]]:
    """What the receipts say, in order."""
    return [(one["task_id"], one["result"], one["source"]) for one in cli.json("receipts", *words)]


REPORT = {"id": "a", "command": 'echo "all 3 passed" >"$FLEET_ARTIFACT_DIR/report.md"'}
MATCH = {"kind": "regex_match", "pattern": r"\d+ passed", "path": "report.md"}


def kept(cli: Cli, kind: str) -> Path:
    """Where the content of an artifact of task a is kept."""
    return Path(cli.json("artifacts", "a", "--open", kind)["kept_at"])


def test_receipts_tell_everything(at_work: Cli) -> None:
    """A receipt names task and run, result, scorer, score, evidence, artifacts, coder, host, attempt and durations."""
    run_id = run(at_work, REPORT | {"expected_artifacts": ["log", "report"], "scorer": MATCH})
    (receipt,) = at_work.json("receipts", "--run", run_id)
    expected = {"task_id": "a", "run_id": run_id, "result": "pass", "source": None, "final": True, "attempt": 1}
    assert {name: receipt[name] for name in expected} == expected
    assert (receipt["scorer"], receipt["score"], receipt["coder"]) == ("regex_match", 1, "command")
    assert receipt["evidence"] == ["regex_match: report.md, line 1: 3 passed"]
    refs = {ref["kind"]: ref for ref in receipt["artifacts"]}
    assert refs["report"]["size"] == len("all 3 passed\n")
    assert len(refs["report"]["sha256"]) == 64
    assert refs["report"]["mime_type"] == "text/markdown"
    text = at_work.ok("receipts", "a").out
    assert "regex_match, score 1" in text
    assert at_work.ok("receipts", "--run", run_id).out.splitlines() == [text.splitlines()[0]]


def test_artifacts_are_listed_and_opened(at_work: Cli) -> None:
    """The list holds references; one is printed as it was kept; what is not there is told with what is."""
    run(at_work, REPORT | {"expected_artifacts": ["report"]})
    (listed,) = at_work.json("artifacts", "a")
    assert (listed["kind"], listed["place"], listed["path"]) == ("report", "artifacts", "report.md")
    header, line = at_work.ok("artifacts", "a").lines
    assert header.split() == ["KIND", "FILE", "BYTES", "TYPE", "SHA256"]
    assert line.split()[:2] == ["report", "artifacts:report.md"]
    none = at_work.add("none")
    assert at_work.ok("artifacts", none).err.startswith(f"{none} has left nothing that was kept; of what was too large")
    assert at_work.ok("artifacts", "a", "--open", "report").out == "all 3 passed\n"
    assert at_work.ok("artifacts", "a", "--open", "report.md").out == "all 3 passed\n"
    missing = at_work.run("artifacts", "a", "--open", "log")
    assert (missing.code, "it left: report" in missing.err) == (4, True)


def test_an_unverified_pass_is_shown_as_such(at_work: Cli) -> None:
    """Without a scorer a pass says that nothing stands behind it."""
    run(at_work, {"id": "a", "command": "true"})
    assert "pass, unverified" in at_work.ok("receipts").out
    assert at_work.json("receipts")[0]["scorer"] is None


def test_a_check_finds_what_was_changed(at_work: Cli) -> None:
    """Checksums and scores are computed again; a content that was changed, or is gone, makes the code 1."""
    run(at_work, REPORT | {"expected_artifacts": ["report"], "scorer": MATCH})
    assert at_work.ok("receipts", "check").out == "OK: 1 receipt, 2 artifacts, 1 score\n"
    file = kept(at_work, "report")
    file.chmod(0o600)
    file.write_text("all 0 passed\n")
    changed = at_work.run("receipts", "check", "a")
    assert (changed.code, "artifact report (report.md) has changed" in changed.out) == (1, True)
    assert at_work.run("artifacts", "a", "--open", "report").code == 1
    file.unlink()
    gone = at_work.run("receipts", "check", "--json")
    assert gone.code == 1
    assert "cannot be read" in json.loads(gone.out)[0]["problems"][0]


def test_a_check_runs_the_scorers_again(at_work: Cli) -> None:
    """Evidence whose content is sound, but does not give the score of the receipt, is told."""
    run(at_work, REPORT | {"scorer": MATCH})
    evidence = kept(at_work, "evidence")
    (receipt,) = at_work.json("receipts")
    assert at_work.run("receipts", "check", receipt["id"]).code == 0
    assert at_work.run("receipts", "check", f"{receipt['id']}9").code == 4
    assert json.loads(evidence.read_text())["files"]["report.md"]["found"] == "file"


def test_a_verifier_settles_within_the_run(at_work: Cli) -> None:
    """A run waits for its verifiers: their receipts supersede the partial ones, and the code tells what came of it."""
    good = {"id": "good", "command": "true", "scorer": {"kind": "command", "command": "true"}}
    bad = {"id": "bad", "command": "true", "scorer": {"kind": "command", "command": "echo no >&2; exit 1"}}
    run_id = run(at_work, good, bad, code=1)
    found = results(at_work, "--run", run_id)
    assert sorted(found) == [
        ("bad", "fail", "task"),
        ("bad", "partial", None),
        ("good", "partial", None),
        ("good", "pass", None),
    ]
    partial, final = at_work.json("receipts", "good")
    assert (final["supersedes"], final["final"], partial["final"]) == (partial["id"], True, False)
    assert "exit code 1" in at_work.ok("receipts", "bad").out


def test_a_person_settles_a_manual_scorer(at_work: Cli) -> None:
    """The run is not over until a person says pass or fail; the note stands in the receipt; it may be taken back."""
    run(at_work, {"id": "a", "command": "true", "scorer": {"kind": "manual", "note": "look"}}, code=3)
    assert "--pass, or --fail" in at_work.json("why", "a")["action"]
    (needs,) = at_work.json("status")["to_verify"]
    assert f"settle with: fleet verify {needs['id']} --pass" in at_work.ok("status").out
    waits = at_work.run("verify", "a")
    assert (waits.code, "--pass" in waits.err) == (1, True)
    passed = at_work.run("verify", "a", "--pass", "--note", "it looks right")
    assert (passed.code, passed.out.endswith("is completed: it looks right\n")) == (0, True)
    assert at_work.json("status")["to_verify"] == []
    assert at_work.run("verify", "a", "--fail", "--note", "on second thought").code == 1
    assert results(at_work) == [("a", "partial", None), ("a", "pass", None), ("a", "fail", "task")]
    first, second, third = at_work.json("receipts")
    assert (second["supersedes"], third["supersedes"]) == (first["id"], second["id"])
    assert [one["final"] for one in (first, second, third)] == [False, False, True]


def test_a_broken_verifier_is_run_again(at_work: Cli) -> None:
    """A verifier that could not judge fails the task by its own fault; once it is mended it is run again."""
    verifier = at_work.cwd / "verifier"
    scorer = {"kind": "command", "command": str(verifier)}
    run(
        at_work,
        {"id": "a", "command": "true", "scorer": scorer},
        {"id": "b", "command": "true", "needs": ["a"]},
        code=1,
    )
    assert at_work.json("status")["counts"]["verifier_failed"] == 1
    why = at_work.json("why", "a")
    assert (why["classification"], "fleet verify" in why["action"]) == ("verifier", True)
    verifier.write_text("#!/bin/sh\necho looks good\n")
    verifier.chmod(0o755)
    again = at_work.run("verify", "a")
    assert (again.code, "looks good" in at_work.ok("receipts", "a").out) == (0, True), again
    assert results(at_work)[-1] == ("a", "pass", None)
    assert {task["state"] for task in at_work.json("tasks", "--status", "all")} == {"completed", "queued"}


def test_a_scorer_that_cannot_judge_leaves_it_to_a_person(at_work: Cli) -> None:
    """A file too large to be searched fails the task by the verifier's fault; a person may judge in its place."""
    scorer = {"kind": "regex_match", "pattern": "x", "path": "large"}
    run(at_work, {"id": "a", "command": "head -c 17000000 /dev/zero >large", "scorer": scorer}, code=1)
    assert results(at_work) == [("a", "fail", "verifier")]
    hinted = at_work.run("verify", "a")
    assert (hinted.code, "--pass, or --fail" in hinted.err) == (1, True)
    assert hinted.err.rstrip().endswith("--pass, or --fail")
    assert at_work.ok("why", "a").out.rstrip().endswith("--pass, or --fail")
    assert at_work.run("verify", "a", "--pass", "--note", "looked at it").code == 0
    assert results(at_work)[1:] == [("a", "pass", None)]
    assert at_work.run("receipts", "check").code == 0  # the scorer says what it said; a person stands above it


def test_work_that_failed_is_not_verified_away(at_work: Cli) -> None:
    """Neither a verifier nor a person makes a pass of a session that failed."""
    run(at_work, {"id": "a", "command": "exit 1", "scorer": {"kind": "command", "command": "true"}}, code=1)
    for words in ([], ["--pass"]):
        refused = at_work.run("verify", "a", *words)
        assert (refused.code, "no result that could be verified" in refused.err) == (1, True)
    assert results(at_work) == [("a", "fail", "task")]


def test_an_agent_cannot_verify(at_work: Cli) -> None:
    """Inside a session the command is refused, by the word that agents have and by the program itself."""
    run(at_work, {"id": "a", "command": "fleet verify x --pass; true", "scorer": {"kind": "manual"}}, code=3)
    at_work.env["FLEET_TASK_ID"] = "x"
    refused = at_work.run("verify", "a", "--pass")
    assert (refused.code, "inside a session" in refused.err) == (1, True)
    del at_work.env["FLEET_TASK_ID"]
    assert results(at_work) == [("a", "partial", None)]


def test_a_restart_revives_what_was_skipped(at_work: Cli) -> None:
    """A task that does not pass gives its dependents a skip receipt; restarted, it revives them, and all end well."""
    made = at_work.cwd / "made"
    first = {"id": "a", "command": "true", "scorer": {"kind": "file_exists", "path": str(made.name)}}
    run(at_work, first, {"id": "b", "command": "true", "needs": ["a"]}, code=1)
    assert results(at_work) == [("a", "fail", "task"), ("b", "skip", None)]
    made.write_text("x")
    at_work.ok("restart", "a", "--force")
    assert at_work.run("run", "--drain", "--quiet").code == 0
    assert results(at_work)[2:] == [("a", "pass", None), ("b", "pass", None)]
