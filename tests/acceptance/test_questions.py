"""Questions and answers, as the person sees them who has to answer."""

from __future__ import annotations

import re

from tests.support.cli import Cli


def ask(cli: Cli, title: str, text: str, kind: str = "question") -> str:
    """A task that waits for a person."""
    uid = cli.add(title)
    with cli.store() as store:
        store.block(uid, kind, text, by="agent").result()
    return uid


def test_questions_lists_what_waits(cli: Cli) -> None:
    """Every blocked task is listed with what it asks, since when and who asked; without one, only a note says so."""
    assert cli.ok("questions") == (0, "", "nothing waits for you\n")
    assert cli.json("questions") == []
    one = ask(cli, "deploy", "Which host?")
    two = ask(cli, "clean up", "May I delete /srv/old?", "destructive")
    lines = cli.ok("questions").lines
    assert lines[0::2] == [f"{one}  deploy", f"{two}  clean up"]
    assert re.fullmatch(r"  question, \d+s ago, by agent: Which host\?", lines[1])
    assert re.fullmatch(r"  destructive, \d+s ago, by agent: May I delete /srv/old\?", lines[3])
    found = cli.json("questions")
    assert [(each["id"], each["kind"], each["text"]) for each in found] == [
        (one, "question", "Which host?"),
        (two, "destructive", "May I delete /srv/old?"),
    ]


def test_an_answer_queues_the_task_and_is_written_down(cli: Cli) -> None:
    """The task is queued again; question and answer stand in its Q&A.md, in the form that agents read."""
    uid = ask(cli, "deploy", "Which host?")
    assert cli.ok("answer", uid, "builder-1\n").out == f"Answered {uid}: it is queued again\n"
    assert cli.json("ready")[0]["id"] == uid
    text = cli.task_file(uid, "artifacts/Q&A.md").read_text()
    assert re.fullmatch(r"## Q: Which host\?\n\n## A: \d{4}-\d\d-\d\d \d\d:\d\d\n\nbuilder-1\n", text)
    assert cli.ok("task", uid, "qa").out == text
    assert cli.ok("questions").out == ""


def test_an_answer_follows_what_the_agent_wrote(cli: Cli) -> None:
    """A question that the agent wrote itself is not repeated, and what it wrote stays, whatever bytes it is."""
    uid = ask(cli, "deploy", "Which host?")
    file = cli.task_file(uid, "artifacts/Q&A.md")
    file.write_bytes(b"# Notes \xff\n\n## Q: Which host?\n")
    cli.ok("answer", uid, "builder-1")
    data = file.read_bytes()
    assert data.startswith(b"# Notes \xff\n\n## Q: Which host?\n\n## A: ")
    assert data.count(b"## Q:") == 1
    with cli.store() as store:
        store.block(uid, "question", "And the port?", by="agent").result()
    cli.ok("answer", uid, "8080")
    parts = re.findall(rb"## ([QA]): (.*)", file.read_bytes())
    assert [kind for kind, _ in parts] == [b"Q", b"A", b"Q", b"A"]
    assert parts[2][1] == b"And the port?"
    assert file.read_bytes().endswith(b"\n\n8080\n")


def test_the_first_answer_wins(cli: Cli) -> None:
    """A second answer is refused with exit 1 and changes neither the ledger nor the file."""
    uid = ask(cli, "deploy", "Which host?")
    cli.ok("answer", uid, "builder-1")
    before, text = cli.events(), cli.task_file(uid, "artifacts/Q&A.md").read_bytes()
    done = cli.run("answer", uid, "builder-2")
    assert (done.code, done.out) == (1, "")
    assert done.err == f"error: task {uid} is queued; it waits for no answer\n"
    assert (cli.events(), cli.task_file(uid, "artifacts/Q&A.md").read_bytes()) == (before, text)


def test_answers_come_from_words_a_file_or_stdin(cli: Cli) -> None:
    """@FILE and - are read, an empty answer is refused, and --json gives the task."""
    uid = ask(cli, "deploy", "Which host?")
    for text, given in (("", ""), (" ", b""), ("-", b""), ("-", b"\xff")):
        done = cli.run("answer", uid, text, input=given)
        assert (done.code, done.out) == (2, "")
    (cli.cwd / "answer.md").write_text("from the file\n")
    assert cli.json("answer", uid, "@answer.md")["state"] == "queued"
    with cli.store() as store:
        store.block(uid, "question", "Sure?", by="agent").result()
    cli.ok("answer", uid, "-", input="from stdin\n")
    written = cli.task_file(uid, "artifacts/Q&A.md").read_text()
    assert "\n\nfrom the file\n" in written
    assert written.endswith("\n\nfrom stdin\n")


def test_an_answer_that_cannot_be_written_down_is_recorded_all_the_same(cli: Cli) -> None:
    """When Q&A.md cannot be written the answer is in the ledger, the task is queued, and the error says both."""
    uid = ask(cli, "deploy", "Which host?")
    cli.task_file(uid, "artifacts/Q&A.md").mkdir()
    done = cli.run("answer", uid, "builder-1")
    assert done.code == 1
    assert done.err.startswith(f"error: {uid} is answered, but ")
    assert "cannot be written: Is a directory\nhint: the answer is kept in the ledger" in done.err
    assert cli.json("ready")[0]["id"] == uid
    assert "builder-1" in cli.ok("task", uid, "events").out


def test_all_that_a_session_asks_is_asked(cli: Cli) -> None:
    """Several questions of one session wait together for one answer, each once; the graver kind is that of all."""
    asks = "fleet ask 'Which port?'; fleet ask --kind permission 'May I push?'; fleet ask 'Which port?'; fleet ask Why?"
    uid = cli.add("Start the shop", "--coder", "command", "-d", asks)
    cli.run("run", "--drain", "-q")
    (question,) = cli.json("questions")
    assert (question["kind"], question["text"]) == ("permission", "Which port?\nMay I push?\nWhy?")
    assert cli.ok("task", uid, "qa").out == "## Q: Which port?\nMay I push?\nWhy?\n"


def test_one_answer_to_several(cli: Cli) -> None:
    """Each that asks gets it, and one that asks nothing is told; a word that is no id means that nobody is answered."""
    one, two, idle = ask(cli, "deploy", "Go on?"), ask(cli, "clean", "Go on?"), cli.add("idle")
    lost = cli.run("answer", one, two, "go", "on")
    assert (lost.code, lost.out) == (4, "")
    assert lost.err == (
        "error: no task `go`; nothing was answered\nhint: a TEXT of several words needs quotes around it\n"
    )
    done = cli.run("answer", one, idle, two, "Yes.")
    assert (done.code, done.lines) == (1, [f"Answered {uid}: it is queued again" for uid in (one, two)])
    assert done.err == f"error: task {idle} is queued; it waits for no answer\n"
    assert "Yes." in cli.task_file(two, "artifacts/Q&A.md").read_text()


def test_an_answer_that_cannot_be_noted_is_told_of_that_task_alone(cli: Cli) -> None:
    """It is answered all the same, and so are the others."""
    one, two = ask(cli, "deploy", "Go on?"), ask(cli, "clean", "Go on?")
    cli.task_file(one, "artifacts/Q&A.md").mkdir(parents=True)
    done = cli.run("answer", one, two, "Yes.")
    assert (done.code, done.lines) == (1, [f"Answered {two}: it is queued again"])
    assert done.err.startswith(f"error: {one} is answered, but ")
    assert {task["id"] for task in cli.json("ready")} == {one, two}
