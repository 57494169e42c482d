"""The routes of the API: the same objects as the commands, the same verbs, the same record."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fleet.config.tokens import Role
from fleet.hosts.collect import Shelf
from fleet.hosts.machine import local_host
from fleet.model.alert import AlertKind
from fleet.model.delivery import Delivery
from fleet.model.receipt import ArtifactRef
from fleet.model.session import Fence
from fleet.model.states import Result
from fleet.projections.queue import questions
from fleet.projections.runs import run_view
from fleet.projections.whole import whole
from fleet.testing.builders import DEFAULTS, EXITED, a_pass, a_slot
from tests.support.api import Asked, asked

SPEC = {
    "name": "two",
    "tasks": [{"id": "a", "name": "A", "command": ["true"]}, {"id": "b", "command": ["true"], "needs": ["a"]}],
}


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Asked]:
    """The API of a home with nothing in it."""
    with asked(tmp_path) as found:
        yield found


def plain(value: object) -> Any:
    """A view as JSON has it."""
    return msgspec.json.decode(msgspec.json.encode(whole(value)))


def running(api: Asked, worker: str = "w#1") -> str:
    """A task that a supervisor has at work."""
    (uid,) = [api.post("/tasks", {"title": "x"}).json()["id"]]
    api.store.join("sup", machine="local@here", pid=os.getpid(), seconds=60).result()
    (claimed,) = api.store.claim("sup", [a_slot(worker)], DEFAULTS).result()
    session = claimed.session
    api.store.started(Fence(session=session.id, epoch=session.epoch), 1, by="sup").result()
    return str(uid)


def finish(api: Asked, uid: str, artifacts: tuple[ArtifactRef, ...] = ()) -> None:
    """The session of a task ends with a pass."""
    session = api.store.sessions(task=uid)[-1]
    verdict = msgspec.structs.replace(a_pass(), artifacts=artifacts)
    api.store.finish(Fence(session=session.id, epoch=session.epoch), EXITED, verdict, by="sup").result()


def last_by(api: Asked) -> str:
    """Who stands in the newest event."""
    return api.store.last(1)[-1].event.by


def test_a_run_from_its_spec_to_its_stop(api: Asked) -> None:
    """A spec becomes a run; it is listed, shown with its tasks, and stopped, each in the token's name."""
    made = api.post("/runs?max_workers=2", SPEC, role=Role.OPERATE)
    assert made.status_code == 201, made.text
    run = made.json()["run"]["id"]
    assert made.json()["run"] == plain(run_view(api.store, run))
    assert made.json()["run"]["max_workers"] == 2
    assert list(made.json()["tasks"]) == ["a", "b"]
    assert last_by(api) == "operate-person"
    assert [one["id"] for one in api.get("/runs")["runs"]] == [run]
    assert api.get("/runs")["counts"]["queued"] == 2
    detail = api.get(f"/runs/{run[:-1]}")
    assert [task["id"] for task in detail["tasks"]] == ["a", "b"]
    assert api.get(f"/runs/{run}/live") == {"run": detail["run"], "live": []}
    stopped = api.post(f"/runs/{run}/stop", {"reason": "enough"}).json()["stopped"]
    assert {one["id"]: one["state"] for one in stopped} == dict.fromkeys(made.json()["tasks"].values(), "cancelled")
    assert api.get(f"/runs/{run}")["run"]["state"] == "stopped"
    assert api.get("/runs")["counts"]["cancelled"] == 2, "what was kept for /runs is not given after a change"
    assert last_by(api) == "admin-person"


@pytest.mark.parametrize("role", list(Role))
def test_a_token_learns_what_it_is_good_for(api: Asked, role: Role) -> None:
    """Whoever asks is told their name and role, so that a page offers only what they may do."""
    assert api.get("/me", role=role) == {"name": f"{role.value}-person", "role": role.value}
    assert api.ask("GET", "/v1/fleet/me", role=None).status_code == 401


def test_a_spec_that_cannot_be_used_is_told_whole(api: Asked) -> None:
    """Every problem of a spec is told at once, with its path, and nothing enters the queue."""
    found = api.post("/runs", {"name": "x", "tasks": [{"id": "a", "nme": "A"}, {"id": "a", "command": ["true"]}]})
    assert found.status_code == 422
    assert found.headers["content-type"] == "application/problem+json"
    assert any("nme" in line for line in found.json()["problems"])
    assert api.store.counts() == {}
    twice = b'{"name":"x","name":"y","tasks":[]}'
    found = api.ask("POST", "/v1/fleet/runs", content=twice, headers={"content-type": "application/json"})
    assert found.status_code == 422
    assert "given twice" in found.json()["detail"]


def test_workers_are_inspected_and_interrupted(api: Asked) -> None:
    """A worker is found by its name, its task or its session; interrupting it records the wish of who asked."""
    uid = running(api)
    for word in ("w#1", "w", uid, f"{uid}.1"):
        assert api.get(f"/workers/{word.replace('#', '%23')}")["task"] == uid, word
    assert [one["id"] for one in api.get("/sessions")] == [f"{uid}.1"]
    assert api.get(f"/sessions/{uid}.1")["worker"] == "w#1"
    found = api.post("/workers/w%231/interrupt", {"reason": "wrong branch"}, role=Role.OPERATE)
    assert found.status_code == 202
    assert (found.json()["verb"], found.json()["by"]) == ("interrupt", "operate-person")
    (intent,) = api.store.intents(target=uid)
    assert (intent.args, intent.by) == ({"reason": "wrong branch"}, "operate-person")
    again = api.post(f"/workers/{uid}/restart")
    assert (again.status_code, again.json()["verb"]) == (202, "restart")


def test_an_ended_task_is_restarted_only_where_that_is_allowed(api: Asked) -> None:
    """What has passed is 409 with a hint, as on the command line; with force it is queued again."""
    uid = running(api)
    finish(api, uid)
    found = api.post("/workers/w/restart")
    assert (found.status_code, found.json()["title"]) == (409, "Conflict")
    assert "--force" in found.json()["hint"]
    assert api.post("/workers/w/restart", {"force": True}).json()["state"] == "queued"
    assert api.post(f"/workers/{uid}/interrupt").status_code == 409


def test_fencing(api: Asked) -> None:
    """With If-Match a verb happens only while the thing is as it was seen; else 409, and nothing is done."""
    uid = running(api)
    seen = api.ask("GET", f"/v1/fleet/workers/{uid}").headers["etag"]
    assert seen == api.ask("GET", f"/v1/fleet/tasks/{uid}").headers["etag"]
    finish(api, uid)
    stale = api.post(f"/workers/{uid}/restart", {"force": True}, headers={"if-match": seen})
    assert stale.status_code == 409
    assert "moved on" in stale.json()["detail"]
    assert api.get(f"/tasks/{uid}")["state"] == "completed"
    now = api.ask("GET", f"/v1/fleet/tasks/{uid}").headers["etag"]
    assert api.post(f"/workers/{uid}/restart", {"force": True}, headers={"if-match": now}).status_code == 200
    assert api.post(f"/workers/{uid}/stop", headers={"if-match": '"x"'}).status_code == 409
    assert api.post(f"/workers/{uid}/stop", headers={"if-match": "*"}).status_code == 200


def test_a_run_is_fenced_too(api: Asked) -> None:
    """A run that somebody stopped meanwhile is 409 for who saw it before."""
    run = api.post("/runs", SPEC).json()["run"]["id"]
    seen = api.ask("GET", f"/v1/fleet/runs/{run}").headers["etag"]
    assert api.post(f"/runs/{run}/stop", headers={"if-match": seen}).status_code == 200
    run = api.post("/runs", SPEC).json()["run"]["id"]
    seen = api.ask("GET", f"/v1/fleet/runs/{run}").headers["etag"]
    api.store.stop_run(run, "by another", by="ana").result()
    assert api.post(f"/runs/{run}/stop", headers={"if-match": seen}).status_code == 409


def test_a_key_makes_a_request_happen_once(api: Asked) -> None:
    """The same key gives the same answer and does nothing again; with another request, or another's, it does not."""
    key = {"idempotency-key": "k-1"}
    first = api.post("/tasks", {"title": "once"}, headers=key)
    again = api.post("/tasks", {"title": "once"}, headers=key)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert api.store.counts()["queued"] == 1
    assert api.post("/tasks", {"title": "other"}, headers=key).status_code == 422
    assert api.post("/tasks", {"title": "once"}, headers=key, role=Role.OPERATE).status_code == 201
    assert api.store.counts()["queued"] == 2
    assert api.post("/tasks", {"title": "x"}, headers={"idempotency-key": "a b"}).status_code == 400


def test_a_key_that_was_refused_may_be_used_again(api: Asked) -> None:
    """What was refused has changed nothing, so that the same key can be tried when it may succeed."""
    key = {"idempotency-key": "k"}
    assert api.post("/workers/w/interrupt", headers=key).status_code == 404
    running(api)
    assert api.post("/workers/w/interrupt", headers=key).status_code == 202


def test_a_request_whose_end_is_not_known_is_not_done_again(api: Asked) -> None:
    """After a crash between the verb and its answer, the key is 409: nobody knows, and nothing is done twice."""
    key = {"idempotency-key": "k"}
    api.post("/tasks", {"title": "x"}, headers=key)
    (kept,) = api.home.requests.iterdir()
    asked_for = msgspec.json.decode(kept.read_bytes())["request"]
    kept.write_bytes(msgspec.json.encode({"request": asked_for}))
    assert api.post("/tasks", {"title": "x"}, headers=key).status_code == 409
    assert api.store.counts()["queued"] == 1


def test_questions_and_answers(api: Asked) -> None:
    """What agents ask is listed; the first answer queues the task again, the second finds nothing to answer."""
    uid = api.post("/tasks", {"title": "x"}).json()["id"]
    api.store.block(uid, "question", "Which database?", by="agent").result()
    assert api.get("/questions") == plain(questions(api.store))
    answered = api.post(f"/questions/{uid}/answer", {"text": "staging"}, role=Role.OPERATE)
    assert (answered.status_code, answered.json()["state"]) == (200, "queued")
    assert last_by(api) == "operate-person"
    assert api.post(f"/questions/{uid}/answer", {"text": "production"}).status_code == 409


def test_what_goes_on_is_one_look(api: Asked) -> None:
    """The board and a run while it goes on come in one answer each, as the screen and the table need them."""
    run = api.post("/runs", SPEC).json()["run"]["id"]
    api.store.join("sup", machine="local@here", pid=os.getpid(), seconds=60).result()
    (claimed,) = api.store.claim("sup", [a_slot("w#1", host=local_host())], DEFAULTS).result()
    board, live = api.get("/board", role=Role.READ), api.get(f"/runs/{run}/live", role=Role.READ)
    assert [each["session"] for each in board["running"]] == [claimed.session.id]
    assert [(each["title"], each["needs"]) for each in board["queued"]] == [("b", 1)]
    assert board["supervisors"] == ["sup"]
    assert [(each["id"], each["task"], each["worker"]) for each in live["live"]] == [
        ("a", claimed.task.uid, claimed.session.worker)
    ]
    assert (live["run"]["counts"]["running"], live["run"]["over"]) == (1, False)


def test_tasks_are_listed_and_shown(api: Asked) -> None:
    """Tasks by state, by run and by tag; one in full, with why it is where it is."""
    one, two = (api.post("/tasks", {"title": title, "priority": 1}).json()["id"] for title in ("one", "two"))
    api.post(f"/workers/{one}/stop")
    assert [task["id"] for task in api.get("/tasks")] == [one, two]
    assert [task["id"] for task in api.get("/tasks?status=queued&status=running")] == [two]
    assert [task["id"] for task in api.get("/tasks?limit=1")] == [one]
    assert api.get("/tasks?tag=none") == []
    assert api.get(f"/tasks/{two}")["priority"] == 1
    assert api.get(f"/tasks/{one}/why")["state"] == "cancelled"
    assert api.get("/status")["counts"]["queued"] == 1
    assert [host["kind"] for host in api.get("/hosts")] == ["local"]
    assert api.post("/tasks", {"title": "x", "cwd": "here"}).status_code == 400


def test_what_is_not_there_is_404(api: Asked) -> None:
    """An unknown id, route or method is a problem with its status, never a page or a trace."""
    for path in (
        "/runs/no",
        "/runs/no/live",
        "/events?run=no",
        "/events?task=no",
        "/events?seq=9",
        "/workers/no",
        "/tasks/no",
        "/tasks/no/logs",
        f"/tasks/{'0' * 256}/logs",
        f"/tasks/{'0' * 256}/log",
        f"/tasks/{'0' * 256}/files/plan",
        "/sessions/no.1",
        "/tasks/no/artifacts",
        "/no",
    ):
        found = api.ask("GET", f"/v1/fleet{path}")
        assert (found.status_code, found.headers["content-type"]) == (404, "application/problem+json"), path
        assert found.json()["status"] == 404
    assert api.ask("DELETE", "/v1/fleet/runs").status_code == 405
    for path in (
        "/tasks?limit=0",
        "/tasks?status=odd",
        "/tasks/%00",
        "/events?after=x",
        "/events?kind=x",
        "/tasks?limit=99999",
    ):
        assert api.ask("GET", f"/v1/fleet{path}").status_code == 400, path
    assert api.post("/tasks", {"title": "x", "unknown": 1}).status_code == 400
    assert api.told == []


def test_the_last_words_of_who_is_at_work(api: Asked) -> None:
    """What an agent said last and what it has begun since, from the end of a log of any length; long words are cut."""
    assert api.get("/words") == []
    uid = running(api)
    log = api.home.task_dir(uid) / "log.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    assert api.get("/words") == []

    def say(session: str, **said: Any) -> bytes:
        return msgspec.json.encode({"session": session, "offset": 0, "at": 7, "said": said}) + b"\n"

    long = say(f"{uid}.1", kind="text", text="old") + say(f"{uid}.1", kind="notice", text="z" * 1000) * 3000
    words = say(f"{uid}.1", kind="text", text="Rounding " * 100)
    tool = say(f"{uid}.1", kind="tool_started", id="1", name="edit", input="cart.py")
    after = say(f"{uid}.1", kind="used", input_tokens=3) + say(f"{uid}.2", kind="text", text="another's") + b'{"sess'
    log.write_bytes(long)
    assert [each["kind"] for each in api.get("/words")[0]["said"]] == ["notice"]
    log.write_bytes(long + words + tool + tool + after)
    (found,) = api.get("/words")
    assert (found["task"], found["session"], found["at"]) == (uid, f"{uid}.1", 7)
    assert [each["kind"] for each in found["said"]] == ["text", "tool_started"]
    assert (found["said"][0]["text"], found["said"][1]["name"]) == (("Rounding " * 100)[:300], "edit")
    finish(api, uid)
    assert api.get("/words") == []


def test_logs_are_bounded_and_of_one_session(api: Asked) -> None:
    """The end of a log comes as records; of one session alone where its id is given; a torn last line is left out."""
    uid = running(api)
    assert api.get(f"/tasks/{uid}/logs")["records"] == []
    file = api.home.task_dir(uid) / "log.jsonl"
    lines = [msgspec.json.encode({"session": f"{uid}.{1 + n % 2}", "n": n}) for n in range(2000)]
    file.write_bytes(b"\n".join(lines) + b'\n{"torn')
    found = api.get(f"/tasks/{uid}/logs?lines=3")["records"]
    assert [record["n"] for record in found] == [1997, 1998, 1999]
    found = api.get(f"/tasks/{uid}.1/logs?lines=2")["records"]
    assert [record["n"] for record in found] == [1996, 1998]
    assert api.ask("GET", f"/v1/fleet/tasks/{uid}/logs?lines=999999").status_code == 400


def test_files_of_a_task_are_its_own(api: Asked) -> None:
    """What the agent wrote is given as text; a link that leads elsewhere is refused, a pipe is not waited for."""
    uid = running(api)
    plan = api.home.task_dir(uid) / "artifacts" / "PLAN_AND_STATUS.md"
    assert api.get(f"/tasks/{uid}/files/plan") == {"task": uid, "file": str(plan), "text": None, "left_out": 0}
    plan.write_text("1. begin")
    assert api.get(f"/tasks/{uid}/files/plan", role=Role.READ)["text"] == "1. begin"
    plan.unlink()
    plan.symlink_to(api.home.tokens)
    found = api.ask("GET", f"/v1/fleet/tasks/{uid}/files/plan")
    assert (found.status_code, "leads out" in found.json()["detail"]) == (409, True)
    plan.unlink()
    os.mkfifo(plan)
    assert api.get(f"/tasks/{uid}/files/plan")["text"] == ""
    assert api.ask("GET", f"/v1/fleet/tasks/{uid}/files/task.json").status_code == 400
    said = api.get(f"/tasks/{uid}/events")
    assert [line["event"]["kind"] for line in said] == ["task.submitted", "task.claimed", "session.started"]
    assert {line["about"]["title"] for line in said} == {"x"}


def test_all_tasks_are_read_in_pieces(api: Asked) -> None:
    """From an empty `after` on, each by the id of the last; with the filters that there are, and in either order."""
    uids = [api.post("/tasks", {"title": f"t{n}", "priority": n % 3}).json()["id"] for n in range(5)]

    def pieces(more: str) -> list[str]:
        read: list[str] = []
        while piece := api.get(f"/tasks?limit=2&after={read[-1] if read else ''}{more}"):
            read += [one["id"] for one in piece]
        return read

    assert pieces("") == uids
    api.post(f"/workers/{uids[2]}/stop")
    assert pieces("&status=queued") == [*uids[:2], *uids[3:]]
    assert pieces("&newest=true") == uids[::-1]
    assert api.ask("GET", "/v1/fleet/tasks?after=fleet-zzz").status_code == 404


def test_what_a_task_left_is_read_in_pieces(api: Asked) -> None:
    """Whatever its size: the files in its directory are listed, kept or not; none but those can be named."""
    uid = running(api)
    own = api.home.task_dir(uid)
    (own / "artifacts" / "deep").mkdir()
    (own / "artifacts" / "deep" / "big.bin").write_bytes(b"0123456789")
    (own / "artifacts" / os.fsdecode(b"odd\xff")).write_bytes(b"odd")
    (own / "artifacts" / "token").symlink_to(api.home.tokens)
    (own / "artifacts" / "away").symlink_to(api.home.path)
    os.mkfifo(own / "artifacts" / "pipe")
    (own / "stderr.log").write_bytes(b"oh")
    found = api.get(f"/tasks/{uid}/files", role=Role.READ)
    assert {one["path"]: one["size"] for one in found} == {
        "artifacts/deep/big.bin": 10,
        "artifacts/odd\N{REPLACEMENT CHARACTER}": 3,
        "stderr.log": 2,
    }
    path = f"/v1/fleet/tasks/{uid}/files/bytes"
    piece = api.ask("GET", path, params={"path": "artifacts/deep/big.bin", "offset": 4, "limit": 3}, role=Role.READ)
    assert (piece.content, piece.headers["content-type"]) == (b"456", "application/octet-stream")
    assert api.ask("GET", path, params={"path": found[1]["path"]}).content == b"odd"
    for word in ("artifacts/token", "artifacts/away/api-tokens", "artifacts/pipe", "task.json", "../../api-tokens"):
        assert api.ask("GET", path, params={"path": word}).status_code == 404, word
    assert api.get(f"/tasks/{uid}/files/stderr?limit=1") == {
        **api.get(f"/tasks/{uid}/files/stderr"),
        "text": "o",
        "left_out": 1,
    }


def test_artifacts_are_downloaded_by_checksum_alone(api: Asked) -> None:
    """Bytes come as they were kept, under a harmless type and name; nothing else in the home can be named."""
    uid = running(api)
    sha = Shelf(api.home.artifacts).put(b"<script>hello</script>")
    named = 'x"; filename=evil\r\nset-cookie: a=b.html'
    ref = ArtifactRef(kind="report", path=f"out/{named}", place="workspace", size=22, mime_type="text/html", sha256=sha)
    finish(api, uid, (ref,))
    assert [one["sha256"] for one in api.get(f"/tasks/{uid}/artifacts")] == [sha]
    found = api.ask("GET", f"/v1/fleet/tasks/{uid}/artifacts/{sha}")
    assert hashlib.sha256(found.content).hexdigest() == sha
    assert found.headers["content-type"] == "application/octet-stream"
    assert found.headers["content-disposition"].startswith("attachment; filename*=UTF-8''x%22%3B")
    assert "set-cookie" not in found.headers
    other = Shelf(api.home.artifacts).put(b"of another")
    for word in (other, "0" * 64):
        assert api.ask("GET", f"/v1/fleet/tasks/{uid}/artifacts/{word}").status_code == 404
    for word in ("..%2f..%2ffleet.toml", "%2e%2e", "....//fleet.toml", sha.upper(), sha[:12]):
        code = api.ask("GET", f"/v1/fleet/tasks/{uid}/artifacts/{word}").status_code
        assert code in (400, 404), word
    for word in ("..%2f..%2fapi-tokens", "%2e%2e%2f%2e%2e", "..", "/etc/passwd"):
        assert api.ask("GET", f"/v1/fleet/tasks/{word}/logs").status_code in (400, 404), word


def test_receipts_and_verdicts(api: Asked) -> None:
    """Receipts come as the command prints them; a person's verdict through the API stands under the token's name."""
    uid = running(api)
    finish(api, uid)
    (receipt,) = api.get(f"/tasks/{uid}/receipts")
    assert (receipt["result"], receipt["final"]) == (Result.PASS.value, True)
    refused = api.post(f"/tasks/{uid}/verify", {"passed": False, "note": "no"})
    assert refused.status_code == 409, "what nobody was to verify is not judged"


def test_settings_hold_no_secret(api: Asked) -> None:
    """The settings are those in force; what looks like a secret in them is put out."""
    api.home.toml.write_text('[supervisor]\nmax_concurrent = 7\nmodel = "sk-abcdefghijklmnopqrstuvwx"\n')
    found = api.get("/config")
    assert found["settings"]["supervisor"]["max_concurrent"] == 7
    assert "sk-abc" not in str(found)
    api.home.toml.write_text("broken [")
    assert api.ask("GET", "/v1/fleet/tasks").status_code == 200, "a broken edit keeps the old settings"


def test_the_ledger_is_replayed(api: Asked) -> None:
    """Events are read in pieces from any position; a position of another ledger is 409."""
    uids = [api.post("/tasks", {"title": str(n)}).json()["id"] for n in range(5)]
    found, position = [], ""
    while True:
        piece = api.get(f"/events/replay?limit=2&after={position}")
        found += [line["event"]["subject"] for line in piece["events"]]
        position = piece["next"]
        if not piece["more"]:
            break
    assert found == uids
    assert api.ask("GET", "/v1/fleet/events/replay?after=99").status_code == 409
    assert api.ask("GET", "/v1/fleet/events?after=99").status_code == 409
    assert api.ask("GET", "/v1/fleet/events/replay?after=1.2").status_code == 409


def test_alerts_are_listed(api: Asked) -> None:
    """What people were told, with its outcome; the newest first, and no more than was asked for."""
    first = Delivery(id="1", channel="ops", about="a", alert=AlertKind.STALE, reason="silent", raised_at=1, by="sup")
    api.store.announce([first, msgspec.structs.replace(first, id="2", reason="again")]).result()
    api.store.delivered("1", "sent", by="sup").result()
    found = api.get("/alerts")
    assert [(one["id"], one["outcome"]) for one in found] == [("2", None), ("1", "sent")]
    assert [one["id"] for one in api.get("/alerts?limit=1")] == ["2"]


def test_metrics(api: Asked) -> None:
    """Counts of tasks and of answers, in Prometheus' format; no id and no token among the labels."""
    assert "fleet_sessions_unpriced_total{" not in api.ask("GET", "/metrics").text
    finish(api, running(api))
    uid = api.post("/tasks", {"title": "x"}).json()["id"]
    api.get(f"/tasks/{uid}")
    text = api.ask("GET", "/metrics").text
    assert 'fleet_tasks{state="queued"} 1.0' in text
    assert 'fleet_sessions_unpriced_total{coder="scripted"} 1.0' in text
    assert 'route="/v1/fleet/tasks/{task_id}",status="200"' in text
    assert uid not in text
    assert api.tokens[Role.ADMIN] not in text
