"""Launching: from a claimed task to an agent that is known to have begun.

Until `start` returned the session is either startable once or not at all, on whatever line we are killed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from fleet.coders.coder import Work
from fleet.coders.prompts import compose_prompt
from fleet.coders.prompts.brief import InputFile, brief, plain
from fleet.config.settings import MODELLESS
from fleet.errors import NotStarted, TransportError
from fleet.hosts.launch_file import DEFAULT_RULES, Rules
from fleet.model.launch import Launch
from fleet.model.session import Progress
from fleet.model.states import Result
from fleet.store import qafile
from fleet.supervisor import briefing, carrying, workplace
from fleet.supervisor.attempt import Attempt
from fleet.supervisor.gathering import MISSING
from fleet.supervisor.scoring import commit_of

MOST_OF_ONE, MOST_INPUT = 8 << 10, 32 << 10  # bytes of one input file, and of all, that enter a prompt


async def launch(attempt: Attempt) -> None:
    """The steps, in order. A UsageError or NotFound of any says that the task can never be launched as it is.

    TransportError: the host did not answer, and was not told to start anything. CutShort: it shall end before it began.
    """
    if attempt.verifies:
        briefing.make_ready(attempt)
        await carrying.send(attempt)
        work = briefing.compose(attempt)
    elif attempt.dispatch is not None:
        async with attempt.unless_it_shall_end():
            await attempt.dispatch.make_ready(attempt)
            await carrying.send(attempt)
        work = attempt.dispatch.compose(attempt, compose(attempt))
    else:
        async with attempt.unless_it_shall_end():
            await workplace.make_ready(attempt)
            await carrying.send(attempt)
            inputs = await _inputs(attempt)
        work = compose(attempt, inputs)
    launch, secrets = _equipped(attempt, attempt.coder.launch(work))
    parser, commit = attempt.history.parser_state(), await commit_of(attempt)
    attempt.progress = replace(attempt.progress, coder_session=launch.coder_session, commit_before=commit)
    attempt.keep_state(attempt.coder.begin(parser))
    attempt.house.at("claimed")
    marks = not attempt.verifies and attempt.task.terms.writable_paths is not None
    await attempt.hosted.prepare(launch, _rules(attempt), at_start=not marks)
    if marks:
        await workplace.mark(attempt)
    attempt.house.at("prepared")
    if parser is not None or attempt.progress != Progress(parser=attempt.progress.parser):
        await attempt.commit()  # else a successor begins as we do
    attempt.house.at("launching")
    await _start(attempt, secrets)


def _rules(attempt: Attempt) -> Rules:
    """What the runner sees to by itself: a host that would sleep is kept awake no longer than the session may run, one
    that agreed to it ends an agent that nobody attends, and every host ends one that prints without end."""
    seconds = attempt.limits.seconds or DEFAULT_RULES.awake_seconds
    dead_man = attempt.site.reach.dead_man_seconds if attempt.site.reach is not None else 0
    awake = min(seconds, DEFAULT_RULES.awake_seconds)
    printed = attempt.limits.output_bytes
    return replace(DEFAULT_RULES, awake_seconds=awake, dead_man_seconds=dead_man, most_output_bytes=printed)


async def _inputs(attempt: Attempt) -> list[InputFile]:
    """The input files of the task: the first part of each that is text, up to a bound on all of them."""
    files: list[InputFile] = []
    left = MOST_INPUT
    for path in attempt.task.terms.input_files:
        place = os.path.join(attempt.cwd, path)
        try:
            data = await attempt.site.transport.get(place, limit=min(MOST_OF_ONE, left) + 1) if left > 0 else b""
        except TransportError:  # what cannot be read is for others to judge
            data = b""
        text = _text(data[: min(MOST_OF_ONE, left)])
        left -= len(data)
        files.append(InputFile(path, text or None, len(data) <= MOST_OF_ONE and left >= 0))
    return files


def _text(data: bytes) -> str:
    """What is text in it; nothing where it is none. A character that was cut off at the end is left out."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        return data[: exc.start].decode("utf-8") if len(data) - exc.start < 4 else ""


def compose(attempt: Attempt, inputs: Sequence[InputFile] = ()) -> Work:
    """What the coder is asked to do, and where."""
    task, session, home = attempt.task, attempt.session, attempt.house.home
    resume = attempt.history.resumable()
    cwd = attempt.cwd
    prompt = compose_prompt(
        task=task.uid,
        title=task.title,
        description=brief(task.description, task.terms, inputs),
        cwd=cwd,
        task_dir=attempt.task_dir,
        artifact_dir=attempt.artifacts,
        attempt=task.charged + 1,
        resumed=resume is not None,
        feedback=feedback(attempt),
        answered=qafile.exchange(home, task.uid) if attempt.history.asked() else "",
    )
    allowed = [os.path.join(cwd, path) for path in task.terms.writable_paths or ()]
    return Work(
        task=task.uid,
        session=session.id,
        prompt=plain(task.title, task.description, task.terms) if session.coder in MODELLESS else prompt,
        command=(task.terms.command,) if task.terms.command else (),
        cwd=cwd,
        model=session.model,
        program=attempt.program,
        as_root=attempt.as_root,  # some must be told
        role=task.terms.role,
        tool_profile=task.terms.tool_profile,
        tools=task.terms.tools,
        writable=(attempt.artifacts, f"{attempt.hosted.directory}/outbox", *allowed),
        new_uuid=attempt.conversation,
        resume=resume,
    )


def feedback(attempt: Attempt) -> str:
    """Why the attempt before this one did not pass, in its verifier's words; empty where there is nothing to say."""
    if not attempt.task.receipts:
        return ""
    last = attempt.house.store.receipts(task=attempt.task.uid)[-1]
    judged = last.scorer is not None or last.reason.startswith(MISSING)
    if last.result not in (Result.FAIL, Result.TIMEOUT) or not judged:
        return ""
    return "\n".join([last.reason, *(line for line in last.evidence if line != last.reason)])


def _equipped(attempt: Attempt, launch: Launch) -> tuple[Launch, Mapping[str, str]]:
    """The launch with the environment of its task, and the values of the secrets that it names."""
    house, task = attempt.house, attempt.task
    launch = workplace.equipped(attempt, launch)
    passed_on = attempt.reach.env_allowlist if attempt.reach is not None else ()
    if attempt.dispatch is not None:
        launch = attempt.dispatch.on_terminal(launch)
        passed_on = (*passed_on, *attempt.dispatch.pool.env)
    secrets = house.secrets_for((*launch.secrets, *attempt.options.secrets, *passed_on))
    env = launch.env | {
        "FLEET_TASK_ID": task.uid,
        "FLEET_TASK_DIR": attempt.task_dir,
        "FLEET_ARTIFACT_DIR": attempt.artifacts,
    }
    if attempt.verifies:
        env |= briefing.environment(attempt)
    elif said := feedback(attempt):
        env["FLEET_FEEDBACK"] = said
    return replace(launch, env=env, secrets=tuple(secrets)), secrets  # the host refuses one that it is not given


async def _start(attempt: Attempt, secrets: Mapping[str, str]) -> None:
    """Start it once, however often the host must be asked."""
    house = attempt.house
    while True:
        try:
            attempt.attended()
            started = await attempt.hosted.start(secrets)
            attempt.attended()
            break
        except NotStarted:
            raise
        except TransportError as exc:  # it may have started: starting again cannot run it twice
            house.log("start_unknown", session=attempt.session.id, error=str(exc))
            await attempt.pause_after_silence()
    house.at("launched")
    attempt.session = await house.store.started(attempt.session.fence, started.pid, by=house.name)
    house.at("started")
    house.log("session_started", session=attempt.session.id, coder=attempt.session.coder, pid=started.pid)
