r"""Watch a small fleet agree on this machine, from sensor to lake, and have the result checked.

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
import asyncio
import signal
import sys
from dataclasses import replace
from pathlib import Path

from lasp_edge.errors import Exit, UsageError
from lasp_edge.tool.loading import load_plan
from lasp_edge.tool.screen import Screen
from simulations.demo import ending, story
from simulations.demo.chaos import new_seed
from simulations.demo.lake import COMMAND
from simulations.demo.merging import GATEWAY, SPARK
from simulations.demo.recording import Recording
from simulations.demo.rooms import HOUSE, ROOMS, source_words
from simulations.demo.stage import Cast, Stage
from simulations.demo.traffic import Pace
from simulations.demo.trouble import Trouble

LIVE_PROGRAM = "simulations.demo.program:program"
WAIT_S = 15.0
"""X of the gateway: longer than a device takes to be back from a short outage, and to deliver."""
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
    add("--time-unit", choices=("s", "ms", "us", "iso"), help="told apart by size if left out")
    add("--time-zone", metavar="ZONE", help="of times that name none, such as Europe/Berlin")
    add("--device", metavar="FIELD", help="the field of the device's name")
    add("--event", action="append", default=[], metavar="NAME=FIELD", help="repeat for each event")
    add("--tag", action="append", default=[], metavar="NAME=FIELD", help="repeat for each tag")
    add("--retract", metavar="FIELD", help="where it is true, an equal line is taken back")
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
    cast = _cast(arguments)
    seed = None
    if arguments.chaos:
        seed = new_seed() if arguments.seed is None else arguments.seed
    try:
        return asyncio.run(_play(cast, screen, seed, arguments.speed if arguments.replay else None))
    except (asyncio.CancelledError, KeyboardInterrupt):
        screen.show([])
        screen.say("Interrupted; everything that was started is ended.")
        return Exit.INTERRUPTED
    except Trouble as trouble:
        screen.show([])
        if trouble.exit_code is not Exit.DIFFERS:
            raise
        screen.say(*(f"  | {line}" for line in trouble.log), ending.differs(str(trouble)))
        return Exit.DIFFERS


async def _play(cast: Cast, screen: Screen, seed: int | None, speed: str | None) -> int:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    async with Stage(cast, screen) as stage:
        if speed is None:
            measured_s = await story.live(stage)
            pace = Pace.of(stage.accepted(), len(stage.devices), measured_s)
            return await ending.finish(stage, pace)
        await story.replay(stage, seed)
        return await ending.finish(stage, Pace(_speed_in_words(speed)))


def _speed_in_words(speed: str) -> str:
    return "replayed " + ("at full speed" if speed == "max" else f"at {speed} times the speed")


def _cast(arguments: argparse.Namespace) -> Cast:
    """Return who takes part.

    Raises:
        CommandError: the arguments cannot work.
    """
    lake = arguments.lake
    if lake is not None and lake.exists() and (not lake.is_dir() or any(lake.iterdir())):
        raise UsageError(f"--lake {lake}: a new or empty folder is needed")
    merging = GATEWAY if arguments.no_cloud else SPARK
    if arguments.replay is None:
        _refuse_without_replay(arguments)
        spec = arguments.program or LIVE_PROGRAM
        plan = load_plan(spec)
        rooms = HOUSE if arguments.no_cloud else ROOMS
        found = (spec, plan, list(rooms), source_words(plan.events), lake, COMMAND, merging)
        cast = Cast(*found, is_ours=arguments.program is None)
        # Of twice as many devices each says half as much.
        return replace(cast, wait_s=WAIT_S, interval_s=2.0) if arguments.no_cloud else cast
    spec = arguments.program or REPLAY_PROGRAM
    plan, recording = load_plan(spec), _recording(arguments)
    unknown = [e for e in recording.events if e.partition("=")[0] not in plan.events]
    if unknown:
        raise UsageError(f"--event {unknown[0]}: {spec} has the events {', '.join(plan.events)}")
    devices = recording.devices(arguments.max_agents)
    return Cast(spec, plan, list(devices), recording.words(), lake, COMMAND, merging)


def _refuse_without_replay(arguments: argparse.Namespace) -> None:
    given = {
        "--time": arguments.time,
        "--time-unit": arguments.time_unit,
        "--time-zone": arguments.time_zone,
        "--device": arguments.device,
        "--event": arguments.event,
        "--tag": arguments.tag,
        "--retract": arguments.retract,
        "--chaos": arguments.chaos,
        "--seed": arguments.seed,
    }
    for option, value in given.items():
        if value:
            raise UsageError(f"{option} is about a recorded file: --replay FILE is needed too")


def _recording(arguments: argparse.Namespace) -> Recording:
    needed = {"--time": arguments.time, "--device": arguments.device, "--event": arguments.event}
    missing = [option for option, value in needed.items() if not value]
    if missing:
        raise UsageError(f"--replay needs {' and '.join(missing)} too: which field is what")
    for pair in (*arguments.event, *arguments.tag):
        if not all(pair.partition("=")):
            raise UsageError(f"NAME=FIELD is needed, not {pair!r}")
    return Recording(
        arguments.replay,
        arguments.time,
        arguments.device,
        arguments.event,
        arguments.tag,
        arguments.time_unit,
        arguments.speed,
        arguments.time_zone,
        arguments.retract,
    )
