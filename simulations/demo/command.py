r"""Watch a small fleet agree on this machine, and have its result checked.

  lasp-edge demo
      Five agents measure five simulated rooms, and this machine. One is killed, one is cut off the
      network; in the end all hold the same average, and Spark confirms it.

  lasp-edge demo --no-cloud
      Without Spark and Java: ten agents, and a gateway that keeps the windows. It is killed, too,
      two agents are cut off, for a moment and for longer, and an operator changes parameters.

  lasp-edge demo MODULE:program
      The same with your program: what it asks for of temperature and humidity comes from simulated
      rooms (tag: room), what it asks for of cpu, memory, load and network from this machine.

  lasp-edge demo MODULE:program --replay FILE --time ts --device device \
      --event temperature=data.temp --tag room=data.location --lake DIR
      The same with your program on your recorded JSON lines: one agent for each device in it.

The last line is `RESULT ok` or `RESULT differs: ...`.
"""

import argparse
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import SystemRandom

from lasp_edge.errors import Exit, UsageError
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.screen import Screen
from simulations.demo import ending, story
from simulations.demo.recording import devices_in, is_csv
from simulations.demo.rooms import HOUSE, ROOMS, source_words
from simulations.demo.site import Cast, Trouble, opened
from simulations.processes.process import COMMAND

SECTION = "begin"
LIVE_PROGRAM = "simulations.demo.program:program"
WAIT_S = 15.0
"""X of the gateway: longer than a device takes to be back from a short outage, and to deliver."""
_OF_A_RECORDING = (
    *("time", "time-unit", "time-zone", "device", "event", "tag", "retract", "retain-days"),
    *("chaos", "seed"),
)
REPLAY_PROGRAM = "lasp_edge.examples.greenhouse:program"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    add("program", nargs="?", metavar="MODULE:program", help="what to compute")
    add("--lake", type=Path, metavar="DIR", help="keep the tables here (a new or empty folder)")
    add("--no-cloud", action="store_true", help="a gateway keeps the windows, in place of Spark")
    of_replay = parser.add_argument_group("a recorded file")
    add = of_replay.add_argument
    add("--replay", type=Path, metavar="FILE", help="JSON lines or CSV; .gz is understood")
    add("--time", metavar="FIELD", help="the field of a reading's own time, such as ts")
    add("--time-unit", choices=("s", "ms", "us", "iso"), help="by default found by size")
    add("--time-zone", metavar="ZONE", help="of times that name none, such as Europe/Berlin")
    add("--device", metavar="FIELD", help="the field of the device's name")
    add("--event", action="append", default=[], metavar="NAME=FIELD", help="repeat for each event")
    add("--tag", action="append", default=[], metavar="NAME=FIELD", help="repeat for each tag")
    add("--retract", metavar="FIELD", help="where it is true, an equal line is taken back")
    days = "how far behind the newest a reading may be; all of a file in another order (default 7)"
    add("--retain-days", type=float, metavar="D", help=days)
    add("--speed", default="max", metavar="N|max", help="times faster than recorded (default max)")
    add("--max-agents", type=int, default=32, metavar="N", help="refuse more devices (default 32)")
    add("--chaos", action="store_true", help="accidents: kill and cut off at random")
    add("--seed", type=int, metavar="N", help="of the accidents; by default a new one")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    return play(arguments, Screen(sys.stdout))


def play(arguments: argparse.Namespace, screen: Screen) -> int:
    """Play the demo on a screen and return its exit code.

    Raises:
        CommandError: the arguments cannot work, or something is missing.
    """
    cast = cast_of(arguments)
    seed = None
    if arguments.chaos:
        seed = SystemRandom().randrange(2**32) if arguments.seed is None else arguments.seed
    try:
        with _signals_interrupt(), opened(cast, screen, COMMAND) as site:
            if arguments.replay is None:
                return ending.finish(site, story.live(site))
            story.replay(site, seed)
            speed = arguments.speed
            pace = "at full speed" if speed == "max" else f"at {speed} times the speed"
            return ending.finish(site, 0.0, f"replayed {pace}")
    except KeyboardInterrupt:
        screen.show([])
        screen.say("Interrupted; everything that was started is ended.")
        return Exit.INTERRUPTED
    except Trouble as trouble:
        screen.show([])
        if trouble.exit_code is not Exit.DIFFERS:
            raise
        screen.say(*(f"  | {line}" for line in trouble.log), ending.differs(str(trouble)))
        return Exit.DIFFERS


@contextmanager
def _signals_interrupt() -> Iterator[None]:
    """Have SIGTERM and SIGHUP end the block as Ctrl-C does."""
    numbers = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    before = [signal.signal(number, signal.default_int_handler) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def cast_of(arguments: argparse.Namespace) -> Cast:
    """Return the participants.

    Raises:
        CommandError: the arguments cannot work.
    """
    lake, has_spark = arguments.lake, not arguments.no_cloud
    if lake is not None and lake.exists() and (not lake.is_dir() or any(lake.iterdir())):
        raise UsageError(f"--lake {lake}: a new or empty folder is needed")
    if arguments.replay is not None:
        return _recorded(arguments, has_spark)
    for option in _OF_A_RECORDING:
        if getattr(arguments, option.replace("-", "_")):
            raise UsageError(f"--{option} is about a recorded file: --replay FILE is needed too")
    spec = arguments.program or LIVE_PROGRAM
    plan, is_ours = load_plan(spec), arguments.program is None
    rooms = ROOMS if has_spark else HOUSE
    cast = Cast(spec, plan, list(rooms), source_words(plan.events), lake, has_spark, is_ours)
    # Twice as many devices publish half as often each.
    return cast if has_spark else replace(cast, wait_s=WAIT_S, interval_s=2.0)


def _recorded(arguments: argparse.Namespace, has_spark: bool) -> Cast:  # noqa: FBT001
    """Return the devices of a recorded file, each with an agent that reads its part.

    Raises:
        CommandError: the arguments cannot work.
    """
    needed = {"--time": arguments.time, "--device": arguments.device, "--event": arguments.event}
    if missing := [option for option, value in needed.items() if not value]:
        raise UsageError(f"--replay needs {' and '.join(missing)} too: which field is what")
    for pair in (*arguments.event, *arguments.tag):
        if not all(pair.partition("=")):
            raise UsageError(f"NAME=FIELD is needed, not {pair!r}")
    path, spec = arguments.replay, arguments.program or REPLAY_PROGRAM
    plan = load_plan(spec)
    unknown = [pair for pair in arguments.event if pair.partition("=")[0] not in plan.events]
    if unknown:
        raise UsageError(f"--event {unknown[0]}: {spec} has the events {', '.join(plan.events)}")
    devices = devices_in(path, arguments.device, arguments.max_agents)
    words = ["--source", f"{'csv' if is_csv(path) else 'jsonl'}:{path.resolve()}"]
    words += ["--device-field", arguments.device]
    for option in ("speed", "time", "time-unit", "time-zone", "event", "tag", "retract"):
        value = getattr(arguments, option.replace("-", "_")) or ()
        for each in [value] if isinstance(value, str) else value:
            words += [f"--{option}", each]
    days = arguments.retain_days
    retained = [] if days is None else ["--retain-days", f"{days:g}"]
    words += retained
    return Cast(spec, plan, devices, words, arguments.lake, has_spark, retained=retained)
