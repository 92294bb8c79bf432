"""The `lasp-edge` command: exit codes, and one plain line where something is wrong."""

import os
import subprocess
import sys
import tomllib
from importlib import metadata
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path

import pytest

from lasp_edge.errors import CommandError, EnvironmentLacks, Exit, NotFound, UsageError
from lasp_edge.release import RELEASE
from lasp_edge.tool.command_line import GROUP, SECTIONS, main, stated
from lasp_edge.tool.installing import install_line
from lasp_edge.tool.parser import CommandParser
from tests.brokers import PATIENCE_S
from tests.support_missing import lacks

CHECKOUT = Path(__file__).parents[3]
REGISTERED = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["entry-points"][
    GROUP
]


def exists(module):
    package = module.rpartition(".")[0]
    return find_spec(package) is not None and find_spec(module) is not None


def registering(points):
    """Return what stands for `entry_points`; a module may import it now, and keep it."""
    found = metadata.entry_points
    return lambda **sought: points if sought == {"group": GROUP} else found(**sought)


@pytest.mark.parametrize("order", ["n p --device d", "n --device d p", "--device d n p"])
def test_options_may_stand_between_words(order):
    parser = CommandParser("get", None)
    parser.add_argument("name")
    parser.add_argument("program", nargs="?")
    parser.add_argument("--device")
    assert vars(parser.parse_args(order.split())) == {"name": "n", "program": "p", "device": "d"}
    with pytest.raises(UsageError, match="--devise"):
        parser.parse_args([*order.split(), "--devise=e"])


PRESENT = [name for name, module in REGISTERED.items() if exists(module)]


@pytest.fixture
def commands(monkeypatch):
    """Register commands, as modules made from a `run` function."""

    def register(**runs):
        points = []
        for name, run in runs.items():
            module = type(sys)(f"command_{name}", f"The {name} command.")
            module.add_arguments = lambda parser: parser.add_argument("--name", default="x")
            module.run = run
            monkeypatch.setitem(sys.modules, module.__name__, module)
            points.append(EntryPoint(name, module.__name__, GROUP))
        monkeypatch.setattr(metadata, "entry_points", registering(points))

    return register


def missing(package, extra):
    return (
        f"the Python package {package!r} is not installed; to bring it, type: {install_line(extra)}"
    )


def raising(error):
    def run(arguments):
        raise error

    return run


def test_the_commands_own_code_is_the_exit_code(commands):
    commands(fine=lambda arguments: 0, differs=lambda arguments: Exit.DIFFERS)
    assert main(["fine"]) == 0
    assert main(["differs"]) == 1


def test_arguments_reach_the_command(commands):
    seen = []
    commands(told=lambda arguments: seen.append(arguments.name) or 0)
    assert main(["told", "--name", "y"]) == 0
    assert seen == ["y"]


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (CommandError("values differ"), 1, "values differ"),
        (UsageError("no such size"), 2, "no such size"),
        (NotFound("no lake in ./lake"), 3, "no lake in ./lake"),
        (
            EnvironmentLacks("Java is not installed", "make setup"),
            4,
            "Java is not installed; to bring it, type: make setup",
        ),
        (
            ModuleNotFoundError("no", name="pyspark.sql"),
            4,
            missing("pyspark", "cloud"),
        ),
        (
            ModuleNotFoundError("no", name="amqtt"),
            4,
            missing("amqtt", "demo"),
        ),
    ],
    ids=["differs", "usage", "not found", "environment", "cloud extra", "demo extra"],
)
def test_an_error_is_one_line_and_its_code(commands, capsys, error, code, line):
    commands(works=raising(error))
    assert main(["works"]) == code
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"lasp-edge works: {line}\n")


def test_help_is_printed_without_the_extra_that_its_command_needs(monkeypatch, capsys):
    broken = ModuleNotFoundError("no", name="pyspark")
    monkeypatch.setattr("lasp_edge.tool.command_line.import_module", raising(broken))
    assert main(["cloud", "--help"]) == Exit.FINE
    out = capsys.readouterr().out
    assert "lasp-edge cloud" in out
    assert out.endswith(f"Its options are printed after: {install_line('cloud')}\n")


def test_a_bug_of_our_own_is_not_called_a_missing_package(commands):
    commands(works=raising(ModuleNotFoundError("no", name="cloud_tier.nothing")))
    with pytest.raises(ModuleNotFoundError):
        main(["works"])


def test_an_interrupted_command_says_so(commands):
    commands(works=raising(KeyboardInterrupt()))
    assert main(["works"]) == 130


def test_a_wrong_argument_is_a_usage_error(commands, capsys):
    commands(works=lambda arguments: 0)
    assert main(["works", "--no-such"]) == Exit.USAGE
    assert "unrecognized arguments: --no-such" in capsys.readouterr().err


def test_a_command_alone_says_what_it_needs(capsys):
    assert main(["agent"]) == Exit.USAGE
    assert "PROGRAM --device --data-dir --broker --source: needed" in capsys.readouterr().err


def test_an_option_of_which_several_are_given_is_needed_before_each(capsys):
    words = ["try", "p:q", "--source", "stdin", "--event", "temp=T", "weight=w", "hum=h"]
    assert main(words) == Exit.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert "--event is needed before each: --event weight=w" in line
    assert "--event is needed before each: --event hum=h" in line
    assert main(["try", "p:q", "temp=T"]) == Exit.USAGE
    assert "before each" not in capsys.readouterr().err


def test_the_option_that_was_meant_is_told(commands, capsys):
    commands(works=lambda arguments: 0)
    assert main(["works", "--nam=y"]) == 0  # a beginning is enough
    assert main(["works", "--mane", "y"]) == Exit.USAGE
    err = capsys.readouterr().err
    (line,) = err.splitlines()
    assert "did you mean --name by --mane?" in line
    assert line.endswith("; `lasp-edge works --help` says more")


def test_help_tells_defaults_and_nothing_where_there_is_none(commands, capsys):
    def declared(parser):
        parser.add_argument("--every", type=float, default=60.0, help="seconds between")
        parser.add_argument("--loud", action="store_true", help="say more")
        parser.add_argument("--where", help="a place")

    commands(works=lambda arguments: 0)
    sys.modules["command_works"].add_arguments = declared
    with pytest.raises(SystemExit, match="0"):
        main(["works", "--help"])
    out = capsys.readouterr().out
    assert out.count("(default: ") == 1
    assert "seconds between (default: 60.0)" in out


def test_help_of_a_command_is_its_modules_docstring(commands, capsys):
    commands(works=lambda arguments: 0)
    with pytest.raises(SystemExit, match="0"):
        main(["works", "--help"])
    assert "The works command." in capsys.readouterr().out


@pytest.mark.parametrize("word", ["--help", "-h", "help"])
def test_help_lists_the_commands_by_section_and_those_without_one_last(commands, capsys, word):
    commands(zebra=None)
    metadata.entry_points(group=GROUP).extend(
        EntryPoint(name, REGISTERED[name], GROUP) for name in ("windows", "demo", "agent", "check")
    )
    assert main([word]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line[:2] == "  "]
    assert listed == ["check", "demo", "agent", "windows", "zebra"]


def test_no_command_and_an_unknown_one_are_usage_errors(commands, capsys):
    commands(demo=None)
    assert main([]) == 2
    assert "usage: lasp-edge COMMAND" in capsys.readouterr().out
    assert main(["dmeo"]) == 2
    assert main(["xyzzy"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "lasp-edge: no command 'dmeo'; did you mean `lasp-edge demo`?",
        "lasp-edge: no command 'xyzzy'; `lasp-edge help` lists them all",
    ]


@pytest.mark.parametrize("word", ["--version", "-V", "version"])
def test_the_release_is_told(capsys, word):
    assert main([word]) == 0
    assert capsys.readouterr().out.startswith(f"lasp-edge {RELEASE}, Python 3.")


@pytest.mark.parametrize("name", REGISTERED)
def test_every_command_states_its_section_and_its_line_in_the_overview(name):
    texts = stated(REGISTERED[name])
    assert texts.get("SECTION", SECTIONS[-1]) in SECTIONS
    summary = texts["__doc__"].partition("\n")[0]
    assert summary.endswith(".")
    assert len(f"  {name:10} {summary}") <= 100


# As a user would


def typed(*words, cwd, **more):
    """Run the command in a process of its own, with this checkout's commands and `more`."""
    registered = "".join(
        f"EntryPoint({name!r}, {module!r}, {GROUP!r}),"
        for name, module in (REGISTERED | more).items()
    )
    code = f"""
import sys
sys.path[:0] = [{str(CHECKOUT)!r}, {str(cwd)!r}]
sys.dont_write_bytecode = True
from importlib import metadata
from importlib.metadata import EntryPoint
from lasp_edge.tool.command_line import main
metadata.entry_points = lambda group: [{registered}]
sys.exit(main())
"""
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.parametrize("where", ["when it is imported", "when it runs"])
def test_a_missing_extra_gives_the_line_to_type(tmp_path, where):
    top, inner = (
        ("import pyspork", "pass") if where.endswith("imported") else ("", "import pyspork")
    )
    (tmp_path / "needing.py").write_text(
        f"{top}\ndef add_arguments(parser): pass\ndef run(arguments):\n    {inner}\n"
    )
    done = typed("needs", cwd=tmp_path, needs="needing")
    assert (done.returncode, done.stdout) == (Exit.ENVIRONMENT, "")
    assert done.stderr == f"lasp-edge needs: {missing('pyspork', 'cloud')}\n"


def test_a_command_is_a_module_and_an_entry_point(tmp_path):
    (tmp_path / "tell.py").write_text(
        '"""Print a fortune.\n\nMore of it."""\nimport pyspork\nSECTION = "a device"\n'
        'EXTRA = "lake"\ndef add_arguments(parser): pass\ndef run(arguments): return 0\n'
    )
    listed = typed("--help", cwd=tmp_path, tell="tell").stdout.splitlines()
    agent = next(at for at, line in enumerate(listed) if line.startswith("  agent"))
    assert "  tell       print a fortune" in listed[agent : listed.index("a fleet")]
    done = typed("tell", cwd=tmp_path, tell="tell")
    assert done.stderr == f"lasp-edge tell: {missing('pyspork', 'lake')}\n"


def test_the_overview_imports_no_command(tmp_path):
    (tmp_path / "broken.py").write_text('"""Fail."""\nraise SystemExit(9)\n')
    done = typed("--help", cwd=tmp_path, broken="broken")
    assert (done.returncode, done.stderr) == (0, "")
    assert "  broken     fail" in done.stdout.splitlines()


@pytest.fixture
def registered(monkeypatch):
    """Register the commands as the project's file does, whatever is installed."""
    points = [EntryPoint(name, module, GROUP) for name, module in REGISTERED.items()]
    monkeypatch.setattr(metadata, "entry_points", registering(points))


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("name", PRESENT)
def test_every_command_has_help(name, capsys):
    try:
        code = main([name, "--help"])
    except SystemExit as ended:  # as argparse does
        code = ended.code
    printed = capsys.readouterr()
    if code == Exit.ENVIRONMENT:
        lacks(printed.err.strip())
    assert code == Exit.FINE, printed.err
    assert printed.out.startswith(f"usage: lasp-edge {name}")
    assert printed.err == ""


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("name", PRESENT)
def test_every_command_refuses_a_wrong_argument(name, capsys):
    code = main([name, "--no-such-argument"])
    refusal = capsys.readouterr().err
    if code == Exit.ENVIRONMENT:
        lacks(refusal.strip())
    assert code == Exit.USAGE
    assert refusal.startswith(f"lasp-edge {name}: ")


def test_parsing_options_looks_up_no_terminal():
    script = (
        "import sys; from lasp_edge.tool.parser import CommandParser as P; p = P('x', 'why');"
        "p.add_argument('--of', metavar='N', help='what'); p.parse_args(['--of', '1']);"
        "print('shutil' in sys.modules, p.format_help(), 'shutil' in sys.modules)"
    )
    environment = os.environ | {"COLUMNS": "30"}
    told = subprocess.check_output([sys.executable, "-c", script], env=environment, text=True)
    assert told.startswith("False usage: lasp-edge x [-h]\n"), told  # as wide as the terminal
    assert told.endswith("True\n")


def test_a_terminal_that_lacks_a_letter_ends_no_command():
    program = (
        "import sys; from lasp_edge.tool import command_line as tool\n"
        "class Kitchen:\n"
        "    add_arguments = staticmethod(lambda parser: None)\n"
        "    run = staticmethod(lambda arguments: print('k\\xfcche, 21.5 \\xb0C') or 0)\n"
        "sys.modules['kitchen'] = Kitchen\n"
        "sys.exit(tool.run_command('kitchen', 'kitchen', []))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[-1] == "k\\xfcche, 21.5 \\xb0C"


def test_an_extra_that_does_not_exist_for_32_bit_says_so(commands, monkeypatch, capsys):
    commands(lake=raising(ModuleNotFoundError("no", name="deltalake")))
    monkeypatch.setattr(sys, "maxsize", 2**31 - 1)
    assert main(["lake"]) == Exit.ENVIRONMENT
    words = capsys.readouterr().err
    assert "the Python package 'deltalake' needs a 64-bit system, and this one has 32" in words
