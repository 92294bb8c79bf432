"""Run a program in a virtual fleet with faults, and compare it with the truth.

Each device reads each event of the program at intervals; tags that its keys ask for are drawn. In
the end all faults are healed, the fleet settles, and every window, row of a result, value, alert
and shared variable is compared with a sequential recomputation from the readings; what has no
recomputation is named, and so is why readings do not count. Where stores are lost, readings are:
then rows in one order over the fleet are compared with those of the readings that landed, and of
the rest it is printed how many differ. One seed gives one run.

Exit codes: 0 all that was compared is equal, 1 something is not, 2 or 3 the program cannot be
loaded, 6 nothing was compared (all readings were lost, nothing that the program asks for was read,
or nothing of it has a recomputation): such a run shows nothing, and the last line says what to
type.

Devices that hear each other cost the square of their number: with `--interval 60`, 100 devices take
some 4 seconds of a processor and 65 MB for `--hours 0.01`, and 1,000 take six minutes and 840 MB.
With `--apart` a device takes some 0.02 seconds, so 100,000 take half an hour, in 100 MB.

  lasp-edge simulate greenhouse:program --set alarm_above=30 mode=night@120

A parameter has that value from the beginning, or from 120 seconds of virtual time on.
"""

import argparse
import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from random import Random
from resource import RUSAGE_SELF, getrusage
from time import process_time

from crdts import ControlLog
from lasp_edge.checking.command import tags_typed
from lasp_edge.checking.readings import named_devices
from lasp_edge.errors import Exit, UsageError
from lasp_edge.language.parameters import is_value
from lasp_edge.language.plan import Plan
from lasp_edge.testing.parameters import ParameterSetting
from lasp_edge.tool.loading import load_plan
from simulations.commands import say
from simulations.entries import entries_of
from simulations.simulate.plot import html
from simulations.simulate.sampled_run import FORGETTING, SampledRun, forgot, sampled_run
from simulations.world.faults import HOUR_STEPS, KINDS, START_US, STEP_US, FaultRates
from simulations.world.scenario import Scenario
from simulations.world.shrink import fails_alike, lines, shrunk

SECTION = "begin"
SMALL = 50_000
"""Devices times steps up to which a failing run is shrunk: some seconds a run."""
BAR = 40
LOST = "the other {:,} lack readings that were lost with a store, or have some twice"
"""Why results differ where stores are lost: nobody has the readings any more."""
GROUP = 250
"""Devices that are in memory at once where they do not hear each other: some 100 MB."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("program", metavar="MODULE:program", help="such as greenhouse:program")
    parser.add_argument("--devices", type=int, default=5, help="how many; 5 by default")
    parser.add_argument("--hours", type=float, default=0.1, help="of virtual time; 0.1 by default")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is drawn")
    parser.add_argument(
        "--interval", type=int, default=1, help="seconds between two publications; 1 by default"
    )
    parser.add_argument(
        "--apart",
        action="store_true",
        help=f"devices do not hear each other, and are run {GROUP} at a time: for windows only, and"
        " any number of devices",
    )
    parser.add_argument("--every", type=int, default=5, help="seconds between two readings")
    parser.add_argument(
        "--faults",
        nargs="*",
        default=[],
        metavar="KIND=RATE",
        help="`drawn` from the seed, but for those that lose readings; or rates: of messages"
        f" probabilities (loss, doubled, delayed), else times an hour: {', '.join(KINDS)}",
    )
    parser.add_argument(
        "--set",
        nargs="+",
        default=[],
        metavar="NAME=VALUE",
        help="values of parameters; NAME=VALUE@SECONDS for one from that virtual second on",
    )
    parser.add_argument(
        "--tag",
        action="append",
        metavar="NAME=VALUE",
        help="all readings have these tags alone (default: whatever functions ask for)",
    )
    parser.add_argument("--plot", type=Path, help="write an HTML page with the run's course")


def run(arguments: argparse.Namespace) -> int:
    """Run the command."""
    plan = load_plan(arguments.program)
    scenario = _scenario(plan, arguments)
    if arguments.plot:
        _need_writable(arguments.plot)
    arguments.tags = tags_typed(arguments.tag)
    arguments.entries = _entries(plan, arguments.set, scenario.steps)
    outcome = _groups(plan, arguments) if arguments.apart else _one_fleet(plan, scenario, arguments)
    _wipe_progress()
    lines = notes(scenario, outcome)
    say("\n".join(lines))
    if arguments.plot:
        arguments.plot.write_text(html(plan.name, outcome.samples, lines), encoding="utf-8")
        say(f"see {arguments.plot}")
    if not outcome.trouble and outcome.compared.is_empty:
        return _say_empty(outcome)
    if not outcome.trouble and not outcome.compared.known and outcome.compared.not_compared:
        say("nothing was compared: nothing has a recomputation; why stands above")
        return Exit.NOTHING_COMPARED
    if not outcome.trouble:
        return Exit.FINE
    _fail(arguments, plan, scenario, outcome)
    return Exit.DIFFERS


def _say_empty(outcome: SampledRun) -> int:
    """Say why nothing was compared: by chance, or by the program."""
    kinds = forgot(outcome.seen)
    if kinds and not outcome.failures and not outcome.counts_why:
        say(
            "nothing was compared: all readings were lost, or are there twice, by "
            f"{', '.join(kinds)}; take another --seed, or --faults without these"
        )
        return Exit.NOTHING_COMPARED
    if not outcome.compared.known.total() and not outcome.failures and not outcome.counts_why:
        say(
            "nothing was compared: what the program asks for was not read, so fleet and oracle "
            "both have nothing; more --hours, or readings more often by --every, may have it"
        )
        return Exit.NOTHING_COMPARED
    say("FAILED: nothing was compared")
    return Exit.DIFFERS


def _need_writable(plot: Path) -> None:
    """Check, before a run that takes long, that its page can be written."""
    try:
        plot.open("a").close()
    except OSError as error:
        raise UsageError(f"--plot {plot}: {error.strerror}") from None


def _one_fleet(plan: Plan, scenario: Scenario, arguments: argparse.Namespace) -> SampledRun:
    given = (arguments.every, arguments.entries, _progress, arguments.tags)
    return sampled_run(plan, scenario, *given)


def _entries(plan: Plan, words: Sequence[str], steps: int) -> ControlLog:
    """Return the values of parameters that were typed.

    Raises:
        UsageError: the program has no such parameter, or it cannot have that value then.
    """
    try:
        return entries_of(plan, [_setting(plan, word, steps) for word in words])
    except ValueError as error:
        raise UsageError(f"--set: {error}") from None


def _setting(plan: Plan, word: str, steps: int) -> ParameterSetting:
    name, is_given, value = word.partition("=")
    text, _, after_s = value.rpartition("@")
    known = plan.parameters.get(name)
    if not is_given or not value:
        raise ValueError(f"NAME=VALUE is needed, not {word!r}")
    if not text or (known is not None and is_value(known, value)):
        return ParameterSetting(name, "", None, value)
    if not after_s.isdecimal() or not 0 < int(after_s) < steps:
        raise ValueError(f"{word}: whole seconds from 1 to {steps - 1} are needed after the @")
    return ParameterSetting(name, "", START_US + int(after_s) * STEP_US, text)


def _groups(plan: Plan, arguments: argparse.Namespace) -> SampledRun:
    """Run groups of devices that do not hear each other, one after the other."""
    if plan.own_variables or plan.dynamic_folds:
        raise UsageError("--apart is for programs with windows only: variables need all devices")
    if plan.fleet_streams:
        names = ", ".join(plan.fleet_streams)
        raise UsageError(f"--apart: in one order over the whole fleet are {names}")
    groups = []
    for first in range(0, arguments.devices, GROUP):
        scenario = _scenario(plan, arguments, first, min(GROUP, arguments.devices - first))
        groups.append(_one_fleet(plan, scenario, arguments))
    return reduce(add, groups)


def _scenario(
    plan: Plan, arguments: argparse.Namespace, first: int = 0, size: int | None = None
) -> Scenario:
    """Return what is simulated; devices have the names that functions of the program ask for."""
    for name in ("devices", "hours", "every", "interval"):
        number = getattr(arguments, name)
        if not 0 < number < math.inf:
            raise UsageError(f"--{name}: a number above 0 is needed, not {number:g}")
    size, seed = size or arguments.devices, arguments.seed + first
    random, steps = Random(seed), max(1, round(arguments.hours * HOUR_STEPS))
    try:
        drawn = arguments.faults == ["drawn"]
        faults = FaultRates.drawn(random) if drawn else FaultRates.parsed(arguments.faults)
    except ValueError as error:
        raise UsageError(f"--faults: {error}") from None
    # There is one program; and where readings are lost no window can be compared.
    faults = faults.without("other_release", "former_lander", *(FORGETTING if drawn else ()))
    interval_s, apart = arguments.interval, arguments.apart
    named = named_devices(plan)
    every = dict.fromkeys((*named, *(f"pi-{number}" for number in range(first + size))))
    names = tuple(every)[first : first + size] if named else ()
    fleet = Scenario(
        seed, size, steps, faults, interval_s=interval_s, first=first, apart=apart, named=names
    )
    return replace(fleet, schedule=tuple(faults.schedule(random, fleet.names, steps)))


def _progress(step: int, steps: int) -> None:
    """Draw the bar; in a file or pipe it would be lines upon lines."""
    if not sys.stderr.isatty():
        return
    done = BAR * step // steps
    bar = "#" * done + "." * (BAR - done)
    sys.stderr.write(f"\r{bar} {step:,} of {steps:,} s")
    sys.stderr.flush()


def _wipe_progress() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("\r" + " " * (BAR + 20) + "\r")


def notes(scenario: Scenario, outcome: SampledRun) -> list[str]:
    """Return the report of a run, line by line."""
    rate = outcome.sent_bytes / scenario.steps / scenario.size
    befell, wrong = _listed(outcome.seen), outcome.compared.differing.total()
    counted = [f"counted by devices: {_listed(outcome.counted)}"] if outcome.counted else []
    return [
        f"{scenario.size:,} devices, {scenario.steps:,} seconds, {outcome.readings:,} readings",
        f"faults: {befell or 'none'}",
        f"{rate:,.1f} bytes a second and device were published",
        f"settled {outcome.settled_steps} seconds after the faults ended",
        *outcome.compared.lines(() if outcome.trouble else forgot(outcome.seen)),
        *([LOST.format(wrong)] if wrong and not outcome.trouble else []),
        *counted,
        *outcome.failures,
        f"{process_time():,.1f} CPU-seconds, {_peak_mb():,} MB of memory at most",
    ]


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()) if count)


def _peak_mb() -> int:
    """Return the most megabytes that this process had in memory."""
    return getrusage(RUSAGE_SELF).ru_maxrss // 1_024


def _fail(
    arguments: argparse.Namespace, plan: Plan, scenario: Scenario, outcome: SampledRun
) -> None:
    """Print the mistake, the command that replays it, and the faults that matter."""
    faults = " ".join(arguments.faults)
    say(f"FAILED: {outcome.trouble[0]}")
    say(
        f"replay: lasp-edge simulate {arguments.program} --devices {arguments.devices}"
        f" --hours {arguments.hours} --seed {arguments.seed} --every {arguments.every}"
        + (f" --interval {arguments.interval}" if arguments.interval > 1 else "")
        + (" --apart" if arguments.apart else "")
        + (f" --set {' '.join(arguments.set)}" if arguments.set else "")
        + "".join(f" --tag {name}={text}" for name, text in (arguments.tags or {}).items())
        + (f" --faults {faults}" if faults else "")
    )
    if scenario.size * scenario.steps > SMALL or arguments.apart:
        return
    given = arguments.every, arguments.entries
    alike = fails_alike(
        outcome.trouble,
        lambda one: sampled_run(plan, replace(one), *given, tags=arguments.tags).trouble,
    )
    small = shrunk(scenario, alike)
    say("the faults that matter:\n  " + "\n  ".join(lines(small)))


__all__ = ["add_arguments", "run"]
