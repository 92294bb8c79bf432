r"""Make the files of a program of your own, ready to run.

Writes a directory with the program, the agent's file fleet.toml, a unit for systemd, a compose file
and a page on how to go on. It needs no sensor: it begins with what this machine tells of itself.

  lasp-edge new house
"""

import argparse
import getpass
import inspect
import keyword
import shlex
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from device_agent.console.command import template
from device_agent.console.command.service import unit_of
from lasp_edge.errors import Exit, UsageError
from lasp_edge.examples import machines
from lasp_edge.tool.typed import typed_in

SECTION = "begin"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("name", metavar="NAME", help="the program's name, and the directory's")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    place, name = Path(arguments.name), Path(arguments.name).name
    _need_module(name)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise UsageError(f"{place} is there already, and nothing in it is overwritten")
    texts = files(place, name)
    try:
        (place / "data").mkdir(parents=True)
        for each, text in texts.items():
            (place / each).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from None
    typed = typed_in(place)
    print(  # noqa: T201
        f"{place} is made: {', '.join(sorted(texts))}. To go on, type:\n"
        f"  cd {shlex.quote(str(place))}\n"
        f"  {typed} check {name}\n"
        f"  {typed} doctor --config fleet.toml\n"
        f"  {typed} agent --config fleet.toml\n"
        "The agent needs a broker (sudo apt install mosquitto); README.md says how to go on."
    )
    return Exit.FINE


def files(place: Path, name: str) -> Mapping[str, str]:
    """Return the text of each file, by its name.

    Args:
        place: the directory.
        name: the program's name.
    """
    texts = {
        "fleet.toml": template.FLEET,
        "compose.yaml": template.COMPOSE,
        "mosquitto.conf": template.BROKER,
        "README.md": template.README,
    }
    filled = {each: text.replace("NAME", name) for each, text in texts.items()}
    here = place.absolute()
    words = ["--config", "fleet.toml"]
    unit = unit_of(f"agent of {name}", words, here, getpass.getuser(), here / "data")
    return {**filled, f"{name}.py": _program(name), f"lasp-edge-{name}.service": unit}


def _program(name: str) -> str:
    """Return the example's text as a program of this name."""
    text = inspect.getsource(machines)
    title, _, rest = text.partition("\n")
    assert title.startswith('"""'), "the example has a docstring"
    head = '"""What is measured, and what is computed of it: change it as you like.'
    return f"{head}\n{rest}".replace('Program("machines")', f'Program("{name}")')


def _need_module(name: str) -> None:
    """Check that a file NAME.py can be imported, and hides no other module."""
    if not name.isidentifier() or keyword.iskeyword(name) or not name.isascii():
        raise UsageError(
            f"a name such as greenhouse is needed: letters, digits, _, first no digit, no word of "
            f"Python; not {name!r}"
        )
    if find_spec(name) is not None:
        raise UsageError(f"a module {name!r} is installed already; choose another name")
