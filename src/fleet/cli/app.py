"""From argv to an exit code: finds the command, gives it a context, turns errors into words."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import sys
from typing import NoReturn, TextIO

from fleet import __version__
from fleet.cli import INTERRUPTED, begin
from fleet.cli.commands import COMMANDS, ELSEWHERE, GROUPS, Command
from fleet.cli.context import Context, encode_json, silence_broken_pipe
from fleet.cli.parsing import EXAMPLES, Formatter
from fleet.errors import FleetError, SpecError, UsageError

FLAGS = {"--json": "json", "--insecure": "insecure"}
VALUES = {
    "--home": ("home_flag", "a directory"),
    "--url": ("url", "an address"),
    "--token-env": ("token_env", "the name of a variable"),
}


argparse._ = str  # type: ignore[attr-defined]  # its few words stay as they are: to look for others' costs each start 1 ms


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors look like all other errors of Fleet."""

    def error(self, message: str) -> NoReturn:
        from fleet.cli.usage import explained

        raise explained(self, message)


def run(argv: list[str]) -> int:
    """Run the command that `argv` names. Never raises, save for a bug."""
    out, err = _streams()
    context = Context(home=None, json=False, out=out, err=err)
    try:
        code = _run(argv, context)
        _flush(context)
    except FleetError as exc:
        report(exc, context)
        return exc.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        silence_broken_pipe()
        return 0
    except OSError as exc:  # the system refused: a full disk under stdout, a file that may not be read
        silence_broken_pipe()
        report(_refused(exc), context)
        return FleetError.exit_code
    else:
        return code
    finally:
        context.close()
        with contextlib.suppress(OSError, ValueError):  # what was printed before an error is seen too
            context.out.flush()
            context.err.flush()


def _flush(context: Context) -> None:
    """Print what is left. Where that fails, the command was carried out all the same, and that is said."""
    try:
        context.out.flush()
    except BrokenPipeError:
        raise
    except OSError as exc:
        silence_broken_pipe()
        done = "the command itself was carried out: look before you run it again"
        raise FleetError(f"what it says cannot be written: {exc.strerror or exc}", hint=done) from exc


def _refused(exc: OSError) -> FleetError:
    """What the system refused, in its words, with what helps where that is known."""
    from fleet.config.files import HINTS

    where = f"{exc.filename}: " if exc.filename else ""
    return FleetError(f"{where}{exc.strerror or exc}", hint=HINTS.get(exc.errno or 0, "") if where else "")


def report(exc: FleetError, context: Context) -> None:
    """Say what went wrong and what to do about it, on stderr; as an object where one was asked for."""
    if context.json:
        problem: dict[str, object] = {"error": str(exc), "hint": exc.hint, "exit_code": exc.exit_code}
        if isinstance(exc, SpecError):
            problem["problems"] = exc.problems
        context.note(encode_json(problem))
        return
    context.note(f"error: {exc}")
    if exc.hint:
        context.note(f"hint: {exc.hint}")


def _run(argv: list[str], context: Context) -> int:
    argv = leading_options(argv, context)
    if not argv or argv[0] in ("-h", "--help", "help"):
        if len(argv) > 1 and argv[0] == "help":
            return _run([argv[1], "--help"], context)
        context.out.write(overview())
        return 0
    if argv[0] in ("-V", "--version"):
        context.print(f"fleet {__version__}")
        return 0
    context.json = context.json or "--json" in argv
    command = find(argv[0])
    set_place(argv, context)
    _refuse_elsewhere(command, argv, context)
    module = importlib.import_module(f"fleet.cli.{command.module}")
    if hasattr(module, "run_raw"):  # takes its words as they are, as `fleet bd` must
        begin()
        return int(module.run_raw(argv[1:], context))
    parser = make_parser(command)
    _refuse_bytes(argv)
    try:
        args = parser.parse_args(argv[1:])
    except SystemExit as exc:  # argparse printed --help
        if hasattr(module, "live_help"):
            context.home_flag = home_in(argv) or context.home_flag
            if told := module.live_help(context):
                context.print(f"\n{told}")
        return int(exc.code or 0)
    context.home_flag = args.home if args.home is not None else context.home_flag
    _import_msgspec()
    begin()
    return int(module.run(args, context))


def _import_msgspec() -> None:
    """It asks for typing_extensions first, whose import takes longer than its own; typing has all that it asks for."""
    name = "typing_extensions"
    if name in sys.modules or "msgspec" in sys.modules:
        return
    sys.modules[name] = None  # type: ignore[assignment]  # not to be found, for this one import
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules[name]


def make_parser(command: Command) -> Parser:
    """The parser of one command; also read by the generated reference."""
    module = importlib.import_module(f"fleet.cli.{command.module}")
    text = (module.__doc__ or "").strip()
    description, _, examples = text.partition("\n\nExamples:")
    parser = Parser(
        prog=f"fleet {command.name}",
        description=description,
        epilog=f"{EXAMPLES}{examples}" if examples else None,
        formatter_class=Formatter,
        allow_abbrev=False,
    )
    module.configure(parser)
    add_common(parser)
    return parser


def add_common(parser: argparse.ArgumentParser) -> None:
    """The options that every command takes."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--home", metavar="DIR", help="the home to use (else $FLEET_HOME, a trusted .fleet/, ~/.fleet)")


def overview() -> str:
    """What `fleet --help` prints: every command, by group."""
    width = max(len(command.name) for command in COMMANDS) + 2
    lines = ["usage: fleet [--home DIR] COMMAND ...", "", "One control plane for fleets of coding agents.", ""]
    for group, title in GROUPS.items():
        lines.append(f"{title}:")
        lines += [f"  {c.name:<{width}}{c.help}" for c in COMMANDS if c.group == group]
        lines.append("")
    lines += [
        "Every command takes --json and --home; `fleet COMMAND --help` shows examples.",
        "fleet --url URL [--token-env NAME] COMMAND looks at and steers a fleet that is served elsewhere.",
        "",
        "examples:",
        '  fleet init && fleet add "Write the changelog"',
        "  fleet ready",
    ]
    return "\n".join(lines) + "\n"


def leading_options(argv: list[str], context: Context) -> list[str]:
    """Take what may stand before the command: --json, --home, and where a fleet is served."""
    while argv and argv[0].startswith("--"):
        word, eq, value = argv[0].partition("=")
        if word in FLAGS and not eq:
            setattr(context, FLAGS[word], True)
            argv = argv[1:]
        elif word in VALUES:
            if not eq and len(argv) < 2:
                raise UsageError(f"{word} needs {VALUES[word][1]}")
            setattr(context, VALUES[word][0], value if eq else argv[1])
            argv = argv[1:] if eq else argv[2:]
        elif word in ("--help", "--version"):
            break
        else:
            from fleet.cli.usage import nearest_option

            near = nearest_option(word, [*FLAGS, *VALUES, "--help", "--version"])
            after = "the options of a command follow it: fleet COMMAND --option"
            raise UsageError(f"unknown option `{word}`", hint=f"did you mean {near}?" if near else after)
    return argv


def set_place(argv: list[str], context: Context) -> None:
    """Whether a fleet that is served elsewhere is meant, by --url or, where no home is named, by $FLEET_URL."""
    from fleet.config.environment import environ

    named = context.home_flag if context.home_flag is not None else home_in(argv)
    if context.url and named is not None:
        raise UsageError("--url and --home name two fleets", hint="give one of them")
    context.url_said = bool(context.url)
    context.url = context.url or ("" if named is not None else environ().get("FLEET_URL", ""))


def _refuse_elsewhere(command: Command, argv: list[str], context: Context) -> None:
    if context.url and not command.remote and not {"-h", "--help"} & set(argv):
        raise UsageError(
            f"`fleet {command.name}` works on a home here, not on a fleet that is served elsewhere",
            hint="run it where the home is; without --url and $FLEET_URL, or with --home, it works on one here",
        )


def home_in(argv: list[str]) -> str | None:
    """The --home among words that were not parsed, because --help came with them."""
    for word, following in zip(argv, [*argv[1:], None], strict=True):
        name, eq, value = word.partition("=")
        if name == "--home":
            return value if eq else following
    return None


def _refuse_bytes(argv: list[str]) -> None:
    """What is not text cannot be kept, and cannot be printed."""
    try:
        "".join(argv).encode()
    except UnicodeEncodeError as exc:
        raise UsageError("a word was given that is not UTF-8 text") from exc


def _streams() -> tuple[TextIO, TextIO]:
    """stdout and stderr. Characters that an encoding lacks are written as escapes, and are no reason to fail."""
    if None in (sys.stdin, sys.stdout, sys.stderr):  # closed by our parent: no file of ours may get their numbers
        while os.open(os.devnull, os.O_RDWR) < 2:
            pass
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return sys.stdout or open(os.devnull, "w"), sys.stderr or open(os.devnull, "w")


def find(word: str) -> Command:
    """The command of this name; raises UsageError, with what was probably meant, where there is none."""
    for command in COMMANDS:
        if command.name == word:
            return command
    if word in ELSEWHERE:
        raise UsageError(f"unknown command `{word}`", hint=f"here that is `fleet {ELSEWHERE[word]}`")
    from fleet.model.nearest import nearest

    near = nearest(word, [c.name for c in COMMANDS])
    hint = f"did you mean `fleet {near}`?" if near else "`fleet --help` lists the commands"
    raise UsageError(f"unknown {'option' if word.startswith('-') else 'command'} `{word}`", hint=hint)
