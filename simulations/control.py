"""Parameters change under a fleet, proven on real cores: `python -m simulations.control`.

Twenty devices (`--devices`), the real cores and stores and a gateway's core, run on virtual time, a
step a second. Operators change what readings count as, which of them count, and how long windows
are and how often they begin: early, late, for the fleet or a device. Messages are lost, doubled and
late, agents and the gateway are killed, devices are offline or deaf, or hear all but the entries.
The law, for every seed:

- each window ends as **each reading with the parameters at its own time, in each window that has
  it**, and is never final twice
- where readings are on time, each row that is final or revised is so already when it is written,
  under the entries that the gateway has then: nothing is missing, mixed or doubled; and each
  revision has its entry, one that the row before it did not know
- entries for the future alone revise nothing
- no window is held any more once all devices have promised past it
- a promise counts under one log, a device as having sent what it had promised under the one before
  (`simulations.world.log_checks`), and each process of the gateway takes the same windows for
  unfinished as the one before it
- of two entries at one place that counts which was typed later, whenever each was heard

While running, this holds of rows that say that nobody is missing, as a device that was never heard,
or one that is late where windows wait for X. Circumstances change from seed to seed (see
`CIRCUMSTANCES`). Prints them, with what came of them.
"""

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from random import Random
from typing import Final, NamedTuple

from device_agent.agent.parts import StoreReader
from device_agent.agent.rebuilding.missing import MissingPanes
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.status import FINAL, REVISED, STATUSES, TENTATIVE
from lasp_edge.protocol.window_rows import FleetRow, WindowStart
from lasp_edge.units import SECOND_US
from simulations.commands import parser_of, say
from simulations.operated import OperatedFleet
from simulations.oracle import WindowTruth
from simulations.world.controlled import parametrised, streamed, values_of
from simulations.world.due_checks import held_for_long
from simulations.world.faults import CALM, FaultRates

DEVICES: Final = 20
STEPS: Final = 200
"""Seconds in which devices measure and operators speak."""
RATES: Final[dict[str, tuple[float, ...]]] = {
    "loss": (0, 0, 0.02, 0.1),
    "doubled": (0, 0.3),
    "delayed": (0, 0.5),
    "unanswered": (0, 0.05),
    "kill": (0, 60, 180),
    "cut": (0, 0, 10, 40),
    "deaf": (0, 0, 10),
    "lander_crash": (0, 30, 120),
    "broker_forgets": (0, 20),
}
"""From which a seed draws what befalls messages, devices, the gateway and the broker."""
MISSES: Final = 0.005
"""How probable it is, in a step, that a device hears no entries from now on, for a while."""
MISSES_STEPS: Final = (10, 40)
BUILDS: Final = 0.12
"""How probable it is, in a step, that a device whose building stalls makes panes."""
UNHEARD: Final = 0.3
"""The part of the entries, where operators speak of the past, that are typed where nobody hears
them, and come when the machine is connected, 5 to 40 seconds later."""
PLACES_US: Final = 20 * SECOND_US
"""How far apart the places are at which operators speak who take things back."""
NOTHING: Final = WindowTruth((), 0)


class Circumstances(NamedTuple):
    """What a seed is about.

    Attributes:
        name: what the command calls them.
        entries: how many times operators speak.
        speaks_late: they speak of the past, too.
        reads_late: some readings come after their windows were final.
        takes_back: they only ever say two things, at few places, and take them back.
        stalls: devices build nothing most of the time, and nothing else goes wrong.
        waits_s: X, for how long windows wait for devices; what says who is missing may be revised.
    """

    name: str
    entries: int = 6
    speaks_late: bool = True
    reads_late: bool = False
    takes_back: bool = False
    stalls: bool = False
    waits_s: int = 0


CIRCUMSTANCES: Final = (
    Circumstances("early, late; late readings", reads_late=True),
    Circumstances("early, late"),
    Circumstances("early only", speaks_late=False),
    Circumstances("taken back; late readings", entries=14, takes_back=True, reads_late=True),
    Circumstances("late, building stalls", entries=12, stalls=True),
    Circumstances("early, late; windows wait", waits_s=12),
)
"""What seeds go round."""


class ControlRun(NamedTuple):
    """What came of a seed.

    Attributes:
        trouble: how it broke the law.
        counts: of windows, rows, readings and entries, by name.
    """

    trouble: tuple[str, ...]
    counts: Counter[str]


@cache
def plan(*, has_streams: bool = False) -> Plan:
    """Return the plan of the program that all seeds run; its windows are over events or scans."""
    return (streamed() if has_streams else parametrised()).plan()


def circumstances_of(seed: int) -> Circumstances:
    """Return what a seed is about."""
    return CIRCUMSTANCES[seed % len(CIRCUMSTANCES)]


def run(
    seed: int,
    devices: int = DEVICES,
    steps: int = STEPS,
    disks_lost: int = 0,
    *,
    has_streams: bool = False,
) -> ControlRun:
    """Run a fleet through what a seed draws, and on until all windows are final.

    Args:
        seed: draws all.
        has_streams: parameters change scans, and windows over them.
        devices: how many.
        steps: seconds until faults end.
        disks_lost: how often the gateway loses its disk; the law is that of its newest one.
    """
    about, random = circumstances_of(seed), Random(seed)
    rates = {name: random.choice(several) for name, several in RATES.items()}
    faults = CALM if about.stalls else FaultRates(**rates, delay_steps=3)
    drawn = {"size": devices, "seed": seed, "wait_us": about.waits_s * SECOND_US}
    fleet = OperatedFleet(
        plan(has_streams=has_streams), faults=faults, reads_late=about.reads_late, **drawn
    )
    counts: Counter[str] = Counter()
    try:
        every = [each.core.missing for each in fleet.devices.values() if about.stalls]
        building = [each for each in every if each is not None]
        for windows in building:
            _stall(windows, random)
        lost = set(Random(-seed - 1).sample(range(steps // 4, steps), disks_lost))
        _disturb(fleet, about, random, steps, lost)
        for windows in building:
            del windows._build  # noqa: SLF001 - it has time again
        counts["final while running"] = len(fleet.rows(FINAL))
        fleet.settle()
        trouble = tuple(_wrong(fleet, about, counts))
    except AssertionError as error:  # the fleet says what must never happen
        trouble = (str(error),)
    finally:
        fleet.close()
    return ControlRun(trouble, counts)


def troubles(seed: int, devices: int = DEVICES, steps: int = STEPS) -> tuple[str, ...]:
    """Return how a seed breaks the law."""
    return run(seed, devices, steps).trouble


def _disturb(
    fleet: OperatedFleet, about: Circumstances, random: Random, steps: int, lost: Collection[int]
) -> None:
    """Let devices measure, operators speak and faults befall."""
    speaks = set(random.sample(range(min(30, steps // 3), steps - 10), about.entries))
    for step in range(steps):
        if step in lost:
            fleet.lose_disk()
        if step in speaks:
            _speak(fleet, about, random)
        for name in fleet.devices if not about.stalls else ():
            if random.random() < MISSES:
                fleet.miss_entries(name, random.randint(*MISSES_STEPS))
        fleet.live()


def _speak(fleet: OperatedFleet, about: Circumstances, random: Random) -> None:
    lead_s = random.randint(12, 30)
    if about.speaks_late:
        lead_s = random.choice((lead_s, -random.randint(0, 60), -random.randint(0, 60), 0))
    from_us = fleet.now_us + lead_s * SECOND_US + random.randrange(3)
    values: Mapping[str, Sequence[str]] = values_of()
    parameter, scope = random.choice(("offset", *sorted(values))), ""
    if parameter in {"above", "offset"}:
        scope = random.choice(("", "", random.choice(sorted(fleet.devices))))
    value = random.choice([None, *values[parameter], *values[parameter][1:]])
    if about.takes_back:
        from_us, scope = from_us // PLACES_US * PLACES_US, ""
        parameter, value = "offset", random.choice([None, "10"])
    unheard = Random(f"{fleet.now_us} {parameter} {from_us} {value}")  # all else stays as drawn
    is_alone = about.speaks_late and unheard.random() < UNHEARD
    fleet.say(parameter, scope, from_us, value, unheard.randint(5, 40) if is_alone else 0)


def _wrong(fleet: OperatedFleet, about: Circumstances, counts: Counter[str]) -> Iterator[str]:
    """Yield how a run broke the law, and count what came of it."""
    yield from [*fleet.trouble, *fleet.lander.kept.wrong, *held_for_long(fleet.lander)]
    truth, readings, entries = fleet.truth(), fleet.readings(), fleet.log.entries
    counts.update(windows=len(truth), readings=len(readings), entries=len(entries))
    counts.update(final=len(fleet.rows(FINAL)), revised=len(fleet.rows(REVISED)))
    for place, value in fleet.last_set.items():
        stands = fleet.log.entries[place].value
        if stands != value:
            yield f"{place} is {stands}, and an operator set {value} there last"
    found = {at: rows[-1].row for at, rows in fleet.written.items()}
    for at in sorted(truth.keys() | found.keys()):
        may_be = fleet.plan.windows[at.window].source.name in fleet.plan.streams
        right = truth.get(at, NOTHING)
        yield from _differs(at, found.get(at), right, "ends as", may_be_emptied=may_be)
    for at, written in fleet.written.items():
        statuses = [each.row.status for each in written]
        if sorted(statuses, key=STATUSES.index) != statuses or statuses.count(FINAL) > 1:
            yield f"{at} was {', '.join(statuses)}"
        if [each.row.revision for each in written] != list(range(len(written))):
            yield f"{at} has revisions {[each.row.revision for each in written]}"
    if not about.reads_late:
        yield from _wrong_while_running(fleet, about)


def _wrong_while_running(fleet: OperatedFleet, about: Circumstances) -> Iterator[str]:
    """Yield the rows that are not what the log gave then, or that had no reason to be written."""
    truth = cache(lambda control: fleet.truth(fleet.logs[control]))
    of_streams = {
        w.name for w in fleet.plan.windows.values() if w.source.name in fleet.plan.streams
    }
    for at, written in fleet.written.items():
        before = None
        for row, control in written:
            if row.status == REVISED and not about.speaks_late:
                yield f"{at} was revised, and all entries were for the future"
            if at.window in of_streams:
                continue  # an entry revises what a scan emits device by device, as a late reading
            is_whole = row.status != TENTATIVE and not row.excluded
            if is_whole:
                right = truth(control).get(at, NOTHING)
                yield from _differs(at, row, right, f"was {row.status} too soon: it was")
            if row.status == REVISED and before == control:
                yield f"{at} was revised without a new entry"
            before = control if is_whole else None


def _differs(
    at: WindowStart,
    row: FleetRow | None,
    right: WindowTruth,
    how: str,
    *,
    may_be_emptied: bool = False,
) -> Iterator[str]:
    nothing = row is None or not row.devices_in or (may_be_emptied and not any(row.partial))
    if row is None or (nothing and not right.devices_in):
        if right.devices_in:
            yield f"{at} has no row, and it is {right}"
    elif row.partial != right.partial or (
        row.devices_in != right.devices_in
        and not (may_be_emptied and row.devices_in > right.devices_in)
    ):
        yield f"{at} {how} {row.partial} of {row.devices_in}, and it is {right}"


def _stall(windows: MissingPanes, random: Random) -> None:
    """Let a device rebuild panes now and then, and not in each commit."""
    right = windows._build  # noqa: SLF001 - a device that is short of time

    def build(store: StoreReader) -> None:
        if random.random() < BUILDS:
            right(store)

    windows._build = build  # type: ignore[method-assign]  # noqa: SLF001 - see above


def main(argv: Sequence[str] | None = None) -> int:
    """Try the law on seeds, and print what came of each kind of circumstances."""
    parser = parser_of("simulations.control", __doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many (default: 20)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default: 0)")
    parser.add_argument("--devices", type=int, default=DEVICES, help=f"default: {DEVICES}")
    lost = "how often the gateway loses its disk (0 to 9; default: 0)"
    parser.add_argument("--disks-lost", type=int, choices=range(10), default=0, help=lost)
    arguments = parser.parse_args(argv)
    if min(arguments.seeds, arguments.devices) < 1:
        parser.error("--seeds and --devices need a number from 1")
    totals = {each: Counter[str]() for each in CIRCUMSTANCES}
    for number in range(arguments.seeds):
        if number and number % 10 == 0:
            say(f"{number} seeds are done.")
        seed = arguments.first + number
        found = run(seed, arguments.devices, disks_lost=arguments.disks_lost)
        total = totals[circumstances_of(seed)]
        total.update(found.counts, seeds=1, wrong=bool(found.trouble))
        for trouble in found.trouble[:3]:
            say(f"seed {seed}: {trouble}")
    names = "seeds", "wrong", "readings", "entries", "windows", "final while running", "revised"
    say(f"{'':27}{''.join(f'{name:>{max(9, len(name) + 2)}}' for name in names)}")
    for each, total in totals.items():
        cells = "".join(f"{total[name]:>{max(9, len(name) + 2)},}" for name in names)
        say(f"{each.name:27}{cells}")
    wrong = sum(total["wrong"] for total in totals.values())
    held = arguments.seeds - wrong
    say(f"{held} of {arguments.seeds} seeds hold, of {arguments.devices} devices each.")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
