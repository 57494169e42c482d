"""A spec that can be run is read whole; of one that cannot, everything that is wrong is told at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from fleet.config.specs.document import MOST_DEPTH, PARSERS
from fleet.config.specs.draft import draft
from fleet.control.specs import Coders, ReadSpec, read_spec
from fleet.errors import NotFound, SpecError
from fleet.model.reach import Reach
from fleet.model.spec import A_TOKEN
from fleet.model.terms import Budget, RetryPolicy
from fleet.plugins import check_coder, load

CODERS = Coders(
    default="claude",
    check=check_coder,
    permissions=lambda name, task: load("coders", name).permissions(task.worker.tools, task.worker.tool_profile),
)
ANY = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=20),
    lambda below: some.lists(below, max_size=4) | some.dictionaries(some.text(max_size=12), below, max_size=4),
    max_leaves=12,
)
HERE = {"kind": "local"}
SSH = {"kind": "ssh", "host": "h", "working_directory": "/srv", "codewhale_binary": "/usr/local/bin/codewhale"}
FIELDS = some.sampled_from(["id", "name", "needs", "budget", "scorer", "worker", "workspace", "command", "cwd", "tags"])


def written(path: Path, value: Any, name: str = "spec.json") -> str:
    """A file with that in it."""
    file = path / name
    file.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return str(file)


def taken(path: Path, value: Any, name: str = "spec.json") -> ReadSpec:
    """A spec that is taken."""
    return read_spec(written(path, value, name), base=str(path), coders=CODERS)


def problems(path: Path, value: Any, name: str = "spec.json") -> list[str]:
    """What is said of a spec that is refused."""
    with pytest.raises(SpecError) as caught:
        taken(path, value, name)
    assert caught.value.exit_code == 2
    return list(caught.value.problems)


def a_task(**fields: Any) -> dict[str, Any]:
    """A task that says the least."""
    return {"id": "a", "instructions": "do it", **fields}


def test_the_same_in_three_languages(tmp_path: Path) -> None:
    """JSON, TOML and YAML say the same; the name of the file is that of the run where it has none."""
    as_json = taken(tmp_path, {"tasks": [a_task(tags=["x"], budget={"max_usd": 0.5})]}, "nightly build.json").spec
    as_toml = taken(
        tmp_path,
        '[[tasks]]\nid = "a"\ninstructions = "do it"\ntags = ["x"]\nbudget = {max_usd = 0.5}\n',
        "nightly build.toml",
    ).spec
    as_yaml = taken(
        tmp_path,
        "tasks:\n- id: a\n  instructions: do it\n  tags: [x]\n  budget: {max_usd: 0.5}\n",
        "nightly build.yaml",
    ).spec
    assert as_json == as_toml == as_yaml
    assert (as_json.name, as_json.tasks[0].cwd) == ("nightly build", str(tmp_path))


@pytest.mark.parametrize("value", [a_task(), [a_task()], {"tasks": [a_task()]}])
def test_a_task_alone_and_a_list_are_runs(tmp_path: Path, value: Any) -> None:
    """A bare task, a bare list of tasks and a whole run are all taken."""
    assert [task.id for task in taken(tmp_path, value).spec.tasks] == ["a"]


def test_where_a_problem_is(tmp_path: Path) -> None:
    """The path of a problem is that of the shape that was written."""
    assert problems(tmp_path, a_task(tag=[])) == ["tag: unknown field; did you mean `tags`?"]
    assert problems(tmp_path, [a_task(tag=[])]) == ["[0].tag: unknown field; did you mean `tags`?"]
    assert problems(tmp_path, {"tasks": [a_task(tag=[])]}) == ["tasks[0].tag: unknown field; did you mean `tags`?"]


def test_everything_becomes_a_term(tmp_path: Path) -> None:
    """What a spec asks for is kept with the task, in Fleet's own units."""
    (tmp_path / "sub").mkdir()
    spec = taken(
        tmp_path,
        a_task(
            objective="done",
            worker={"role": "reviewer", "tools": ["rg"], "capabilities": ["rust"]},
            workspace={"root": "sub", "writable_paths": [], "environment": {"allowlist": ["LANG"]}},
            budget={"max_usd": 1.5, "max_tokens": 5, "on_exceeded": "pause"},
            retry_policy={"max_attempts": 2},
            scorer={"kind": "all", "of": [{"kind": "exit_code"}, {"kind": "manual"}]},
            metadata={"class": {"x": [1]}},
            name="发布说明",
        ),
    ).spec
    new = spec.tasks[0].new()
    assert (new.title, new.cwd, new.capabilities) == ("发布说明", str(tmp_path / "sub"), ("rust",))
    assert new.terms.budget == Budget(max_tokens=5, max_microusd=1_500_000, pause=True)
    assert new.terms.retry == RetryPolicy(max_attempts=2)
    assert (new.terms.writable_paths, new.terms.environment_allowlist) == ((), ("LANG",))
    assert new.terms.scorer == {"kind": "all", "of": [{"kind": "exit_code"}, {"kind": "manual"}]}
    assert new.terms.metadata == {"class": {"x": [1]}}


@pytest.mark.parametrize(
    ("repository", "name"),
    [
        ("https://github.com/acme/shop.git", "shop"),
        ("git@github.com:acme/shop", "shop"),
        ("builder:shop.git/", "shop"),
        ("ssh://git@example.com:2222/srv/shop", "shop"),
        ("/srv/git/shop.git", "shop"),
    ],
)
def test_a_repository_is_worked_on_in_a_directory_of_its_name(tmp_path: Path, repository: str, name: str) -> None:
    """Where no other is named; it need not be there yet."""
    new = taken(tmp_path, a_task(workspace={"repository": repository, "branch": "release/1.2"})).spec.tasks[0].new()
    assert new.cwd == str(tmp_path / name)
    assert (new.terms.repository, new.terms.branch) == (repository, "release/1.2")


def test_a_command_needs_no_coder(tmp_path: Path) -> None:
    """A task with a command is run by the `command` coder; a list of words is quoted."""
    new = taken(tmp_path, {"id": "a", "command": ["make", "all tests"]}).spec.tasks[0].new()
    assert (new.coder, new.terms.command) == ("command", "make 'all tests'")
    assert problems(tmp_path, a_task(command="make", coder="claude")) == [
        "command: coder `claude` is given too; a task has one of them"
    ]
    assert problems(tmp_path, a_task(command="make", model="o3")) == ["model: is given too; a command has none"]


def test_every_problem_at_once(tmp_path: Path) -> None:
    """Problems of shape and of meaning, in several tasks, are told together, in the order of the file."""
    found = problems(
        tmp_path,
        {
            "lables": {},
            "tasks": [
                a_task(retries=3, max_tokens=5, priority=9),
                a_task(id="b", needs=["biuld", "b"], coder="cluade"),
                a_task(id="b", needs=["build"]),
                a_task(id="build", needs=["b"]),
                {"name": "no id"},
                5,
            ],
        },
    )
    assert found == [
        "lables: unknown field; did you mean `labels`?",
        "tasks[0].max_tokens: unknown field; did you mean `budget.max_tokens`?",
        "tasks[0].priority: expected an integer from 0 to 4, found 9",
        "tasks[0].retries: unknown field; did you mean `retry_policy`?",
        "tasks[1].coder: unknown coder `cluade`; did you mean `claude`?",
        "tasks[1].needs[0]: no task has the id `biuld`; did you mean `build`?",
        "tasks[1].needs[1]: `b` cannot need itself",
        "tasks[2].id: `b` is also the id of tasks[1]",
        "tasks[3].needs: a circle of needs: b -> build -> b",
        f"tasks[4].id: is missing; expected {A_TOKEN['x-expected']}",
        "tasks[5]: expected an object, found 5",
    ]


def test_a_wrong_field_hides_no_other_problem(tmp_path: Path) -> None:
    """The rules are told of a task whose shape is wrong too, save those that what is wrong may be the cause of."""
    found = problems(
        tmp_path,
        {
            "tasks": [
                a_task(id="build", retries=3),
                a_task(id="test", needs=["biuld"], budget={"max_tokens": "ten"}),
                a_task(id="test", coder="nobody", timeout_seconds=-4, tags=["x", "x"]),
                {"id": "notes", "command": 5},  # not: nothing says what is to be done
                a_task(id="far", cwd=5, input_files=["../x"]),  # not: of a directory that is not known
                a_task(id="../x", needs=["bulid"], priority=9),
                a_task(id="apart", isolation="tree", setup="make deps"),  # not: setup belongs to a worktree
                a_task(id="tools", coder=5, worker={"tools": ["rg"]}),
            ]
        },
    )
    assert [each.partition(":")[0] for each in found] == [
        "tasks[0].retries",
        "tasks[1].budget.max_tokens",
        "tasks[1].needs[0]",
        "tasks[2].coder",
        "tasks[2].id",
        "tasks[2].tags[1]",
        "tasks[2].timeout_seconds",
        "tasks[3].command",
        "tasks[4].cwd",
        "tasks[5].id",
        "tasks[5].priority",
        "tasks[6].isolation",
        "tasks[7].coder",
    ]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"budget": {"max_tokens": "ten"}}, 'budget.max_tokens: expected an integer of at least 1, found "ten"'),
        ({"budget": []}, "budget: expected an object, found a list"),
        ({"scorer": {}}, "scorer.kind: is missing; expected one of exit_code, "),
        ({"scorer": {"type": "exit_code"}}, "scorer.type: unknown field; did you mean `kind`?"),
        ({"scorer": {"kind": "exitcode"}}, "did you mean `exit_code`?"),
        ({"scorer": {"kind": "file_exists"}}, "scorer.path: is missing; expected text that is not empty"),
        ({"scorer": {"kind": "any", "of": [{"kind": "manual", "x": 1}]}}, "scorer.of[0].x: unknown field"),
        ({"scorer": {"kind": "regex_match", "path": "a", "pattern": "("}}, "scorer.pattern: is no regular expression"),
        ({"scorer": {"kind": "json_path", "path": "a", "expression": "$["}}, "scorer.expression: is no JSONPath: "),
        ({"scorer": {"kind": "json_path", "path": "a", "expression": "$" + "[?(@" * 999}}, "is no JSONPath: "),
        ({"scorer": {"kind": "regex_match", "pattern": "a"}}, "scorer: expected one of path and source"),
        ({"scorer": {"kind": "file_exists", "path": "../x"}}, "scorer.path: ../x leads out of the workspace"),
        ({"workspace": {"required_files": ["/etc/passwd"]}}, "required_files[0]: /etc/passwd must be relative"),
        ({"workspace": {"writable_paths": ["a/../../b"]}}, "writable_paths[0]: a/../../b leads out"),
        ({"input_files": ["~/x"]}, "input_files[0]: ~/x must be relative to the workspace"),
        ({"input_files": ["out/x"]}, "input_files[0]: out/x is a link that leads out of the workspace"),
        ({"workspace": {"root": "../up"}}, "workspace.root: ../up leads out of"),
        ({"workspace": {"root": "out"}}, "workspace.root: out is a link that leads out of"),
        ({"workspace": {"root": "nowhere"}}, "nowhere is not a directory"),
        (
            {"workspace": {"repository": "https://u:secret@x.org/r"}},
            "workspace.repository: expected a URL that git clones",
        ),
        ({"workspace": {"repository": "ext::sh -c id"}}, "workspace.repository: expected a URL that git clones"),
        (
            {"workspace": {"repository": "ssh://u:secret@x.org/r"}},
            "workspace.repository: expected a URL that git clones",
        ),
        ({"workspace": {"repository": "-u"}}, "workspace.repository: expected a URL that git clones"),
        ({"workspace": {"repository": "/r", "branch": "a..b"}}, "workspace.branch: expected the name of a branch"),
        ({"workspace": {"branch": "main"}}, "workspace.branch: belongs to a repository, which is not given"),
        ({"cwd": ".", "workspace": {"root": "in"}}, "workspace.root: in is not the directory of cwd"),
        ({"workspace": {"environment": {"allowlist": ["GH_TOKEN"]}}}, "allowlist[0]: GH_TOKEN looks like a secret"),
        ({"coder": "agy", "worker": {"tools": ["rg"]}}, "worker.tools: coder `agy` refuses it: "),
        ({"worker": {"tool_profile": "reed-only"}}, "worker.tool_profile: coder `claude` refuses it: "),
        ({"scorer": {"kind": "verifier_prompt", "prompt": "x", "coder": "no"}}, "scorer.coder: unknown coder `no`"),
        ({"scorer": {"kind": "plugin", "name": "nobody"}}, "scorer.name: no scorer `nobody` is registered"),
        ({"name": "two\nlines"}, "name: expected one printable line"),
        ({"tags": ["x", "x"]}, "tags[1]: `x` is given twice"),
        ({"timeout_seconds": 0}, "timeout_seconds: expected an integer from 1 to 2592000, found 0"),
        ({"setup": "make deps"}, 'setup: belongs to isolation = "worktree", which is not asked for'),
        ({"id": "../x"}, "id: expected letters, digits"),
        ({"id": "a\n"}, "id: expected letters, digits"),
        ({"command": []}, "command: is empty; expected at least one"),
        ({"coder": "command"}, "command: is missing: coder `command` runs a command"),
    ],
)
def test_what_a_task_may_not_say(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    """One problem, with its path, what was found and what was meant."""
    (tmp_path / "in").mkdir()
    (tmp_path / "out").symlink_to("/etc")
    (found,) = problems(tmp_path, a_task(**fields))
    assert said in found


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"workers": [{"id": "b", "host": "nobody"}]}, "workers[0].host: no host of fleet.toml is named `nobody`"),
        ({"workers": [{"id": "b", "host": {"kind": "ssh"}}]}, "workers[0].host.host: is missing; an ssh host needs"),
        ({"workers": [{"id": "b", "host": {"kind": "docker"}}]}, "workers[0].host.kind: expected one of local, "),
        (
            {"workers": [{"id": "b", "host": {**HERE, "working_directory": "/srv"}}]},
            "workers[0].host.working_directory: means nothing for a worker on this machine",
        ),
        ({"workers": [{"id": "b", "host": HERE}] * 2}, "workers[1].id: `b` is also the id of workers[0]"),
        (
            {"alerts": {"adapters": {"p": {"kind": "pager_duty", "routing_key_env": "e93facc04764012d7bfb002500d5"}}}},
            "alerts.adapters.p.routing_key_env: give the NAME of a variable, not its value",
        ),
        (
            {"alerts": {"adapters": {"s": {"kind": "slack", "webhook_env": "https://hooks.example/hunter2"}}}},
            "alerts.adapters.s.webhook_env: expected the NAME of an environment variable, not a value, found something",
        ),
        ({"alerts": {"routes": [{"adapter": "x", "events": ["stail"]}]}}, "alerts.routes[0].events[0]: "),
        ({"alerts": {"routes": [{"adapter": "x"}]}}, "alerts.routes[0].adapter: no adapter is named `x`"),
        ({"labels": {"a": 1}}, "labels.a: expected text, found 1"),
        ({"tasks": []}, "tasks: is empty; expected at least one task"),
        ({"task": []}, "task: unknown field; did you mean `tasks`?"),
    ],
)
def test_what_a_run_may_not_say(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    """Problems of the run itself have their path too."""
    found = problems(tmp_path, {"tasks": [a_task()], **fields})
    assert any(said in text for text in found), found


def test_what_no_worker_can_do(tmp_path: Path) -> None:
    """Capabilities that no declared worker has together are refused; without workers everything can be done."""
    workers = [{"id": name, "host": HERE, "capabilities": [name]} for name in ("rust", "gpu")]
    tasks = [a_task(worker={"capabilities": ["rust", "gpu"]})]
    (said,) = problems(tmp_path, {"workers": workers, "tasks": tasks})
    assert said == "tasks[0].worker.capabilities: no worker has all of gpu, rust; the workers have gpu, rust"
    assert taken(tmp_path, {"tasks": tasks}).warnings == []


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ('{"id": "a", "id": "b"}', "x.json", "the key 'id' is given twice"),
        ("id: a\nid: b\n", "x.yaml", "the key 'id' is given twice, at line 1"),
        ('id = "a"\nid = "b"\n', "x.toml", "it is not TOML"),
        ('{"id": "a", "metadata": {"x": NaN}}', "x.json", "NaN is no number of JSON"),
        ("id: a\nmetadata: {x: .inf}\n", "x.yaml", "metadata.x: inf is no number"),
        ("id: a\nmetadata: {1: x}\n", "x.yaml", "metadata.1: a name must be text"),
        (
            'id = "a"\n[metadata]\nx = 2026-01-01\n',
            "x.toml",
            "metadata.x: expected text, a number, a list or an object",
        ),
        ('{"id": "a", "name": "\\ud800"}', "x.json", "name: holds a NUL or half a character"),
        ('{"id": "a", "metadata": {"x": 99999999999999999999999}}', "x.json", "metadata.x: the number is too large"),
        ('{"id": ' + "[" * 100 + "]" * 100 + "}", "x.json", f"at most {MOST_DEPTH} levels"),
        ("[" * 100_000, "x.json", "nested too deeply"),
        ("- " * 500_000 + "x", "x.yaml", "nested too deeply"),
        ("[" * 500_000, "x.yaml", "nested too deeply"),
        ("{a: " * 500_000, "x.yaml", "nested too deeply"),
        ("a = " + "[" * 500_000, "x.toml", "nested too deeply"),
        ("a" + ".a" * 100_000 + " = 1", "x.toml", "nested too deeply"),
        ("[a" + ' . "a"' * 100_000 + "]", "x.toml", "nested too deeply"),
        ("5", "x.json", "expected a run, a list of tasks or a task, found 5"),
        ("hello", "spec", "its format cannot be told"),
        ("", "x.json", "it is not JSON"),
        ("", "x.yaml", "expected a run, a list of tasks or a task, found nothing"),
        ("[]", "x.json", "is empty; expected at least one task"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, text: str, name: str, said: str) -> None:
    """What a file cannot be used for is said in one sentence, whatever is in it."""
    (found,) = problems(tmp_path, text, name)
    assert said in found


def test_what_grows_when_it_is_read(tmp_path: Path) -> None:
    """A few lines of YAML that stand for a billion values are refused, and soon."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    (said,) = problems(tmp_path, "\n".join(lines), "laughs.yaml")
    assert "it holds more than" in said


def test_yaml_has_its_references(tmp_path: Path) -> None:
    """What is written once may be used again, and changed where it is used; a date is text, as in JSON."""
    text = "tasks:\n- &one {id: a, instructions: do it, tags: [x], metadata: {due: 2026-01-01}}\n- {<<: *one, id: b}\n"
    a, b = taken(tmp_path, text, "x.yaml").spec.tasks
    assert (a.id, b.id, b.instructions, b.tags) == ("a", "b", "do it", ("x",))
    assert b.metadata == {"due": "2026-01-01"}


def test_bytes_and_files_that_are_not_there(tmp_path: Path) -> None:
    """Bytes that are no text are refused; a file that is not there is not found."""
    (tmp_path / "x.json").write_bytes(b'{"id": "\xff\xfe"}')
    with pytest.raises(SpecError, match="it is not text"):
        read_spec(str(tmp_path / "x.json"), base=str(tmp_path), coders=CODERS)
    with pytest.raises(NotFound):
        read_spec(str(tmp_path / "y.json"), base=str(tmp_path), coders=CODERS)


def test_many_tasks_and_a_long_circle(tmp_path: Path) -> None:
    """Ten thousand tasks in a chain are taken; closed to a circle they are refused, with a few of their names."""
    chain = [a_task(id=f"t{n}", needs=[f"t{n - 1}"] if n else []) for n in range(10_000)]
    assert len(taken(tmp_path, chain).spec.tasks) == 10_000
    chain[0]["needs"] = ["t9999"]
    (said,) = problems(tmp_path, chain)
    assert "a circle of needs: " in said
    assert len(said) < 300


def test_a_large_file_with_one_mistake(tmp_path: Path) -> None:
    """Ten megabytes with a mistake in the last task are answered for that task alone."""
    tasks = [a_task(id=f"t{n}", description="x" * 10_000) for n in range(1_000)]
    tasks[-1]["retries"] = 1
    assert problems(tmp_path, {"tasks": tasks}) == ["tasks[999].retries: unknown field; did you mean `retry_policy`?"]
    with pytest.raises(SpecError, match="more than 16 MiB"):
        taken(tmp_path, "[" + " " * (17 << 20) + "]")


def test_many_problems_are_cut(tmp_path: Path) -> None:
    """A hundred problems are shown, the rest is counted."""
    with pytest.raises(SpecError) as caught:
        taken(tmp_path, [a_task(id=f"t{n}", x=1) for n in range(500)])
    assert str(caught.value).endswith("\n  and 400 more")
    assert len(caught.value.problems) == 500


def test_a_secret_is_warned_of(tmp_path: Path) -> None:
    """A secret in the words of a task is warned of by its place; the words of the warning do not hold it."""
    secret = "sk-ant-REDACTED-" + "0" * 12
    (warning,) = taken(tmp_path, [a_task(context=["fine", f"use {secret}"])]).warnings
    assert warning.startswith("[0].context[1]: looks like a secret")
    assert secret not in warning


@pytest.fixture(scope="module")
def loaded() -> None:
    """The validator is loaded by the first wrong value, which takes longer than all that follow."""
    assert draft({"tasks": 5}).problems


@pytest.mark.usefixtures("loaded")
@given(some.dictionaries(FIELDS, ANY, max_size=5) | some.lists(some.dictionaries(FIELDS, ANY, max_size=4)) | ANY)
def test_nothing_breaks_the_decoder(value: Any) -> None:
    """Whatever plain values a document holds, they are decoded or there is a problem with each that is not."""
    found = draft(value)
    whole = isinstance(value, dict) and not found.problems
    assert found.problems or found.tasks
    assert not whole or found.run is not None


@given(some.text(max_size=200), some.sampled_from(sorted(PARSERS)))
def test_nothing_breaks_the_parsers(text: str, kind: str) -> None:
    """Whatever a file holds, its parser gives values or a ValueError."""
    try:
        PARSERS[kind](text)
    except (ValueError, RecursionError):
        return


def test_a_worker_can_do_what_its_host_can(tmp_path: Path) -> None:
    """Whether the host is described in the spec or named in it."""
    named = msgspec.convert({**SSH, "capabilities": ["gpu"]}, Reach)
    inline = {**SSH, "capabilities": ["gpu"]}
    tasks = [a_task(worker={"capabilities": ["gpu", "fast"]})]
    for host in ("builder", inline):
        spec = written(tmp_path, {"workers": [{"id": "w", "host": host, "capabilities": ["fast"]}], "tasks": tasks})
        found = read_spec(spec, base=str(tmp_path), coders=CODERS, hosts={"builder": named}).spec
        assert found.new().workers[0].capabilities == ("fast", "gpu")
    (said,) = problems(tmp_path, {"workers": [{"id": "w", "host": HERE}], "tasks": tasks})
    assert "no worker has all of fast, gpu" in said
