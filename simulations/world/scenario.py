"""What a run is made from: drawn from one seed, or written down."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from device_agent.agent.settings import Settings
from device_agent.agent.stored_rows import BLOCK_US
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.units import SECOND_US
from simulations.world.faults import (
    BEHIND,
    CALM,
    KINDS,
    LATER,
    OF_GATEWAYS,
    OF_LINKS,
    START_US,
    Fault,
    FaultRates,
)
from simulations.world.few_faults import (
    of_away,
    of_cards,
    of_clocks,
    of_replaced,
    of_served,
    of_sinks,
    of_twins,
)

ARCHIVE = "archive"
"""The name of the second sink, where a world has one."""
ABSENT = "pi, absent"
"""A device of the roster that is not there: its name shows whether a list of names is split."""
LACKS_EVERY = 3
"""Of as many rosters there is one in which a device is not: windows hold its readings, and do not
wait for it."""
UNSYNCHRONISED_START_US = START_US + 80_000_000 * SECOND_US
"""Two and a half years later."""
SHORT = {1: (12, 20, 30), 2: (12, 20, 20, 30), 3: (12, 12, 20), 4: (12,), 5: (12,)}
"""Devices of short runs, and the steps with faults from which one is drawn. Planted bugs are found
in short runs with many faults after less work than in long ones."""
LONG = ((1, 60), (2, 60), (3, 60), (1, 90), (2, 90))
"""Devices and steps of long runs: a few things only happen in these."""
SHAPES = (*[(size, steps) for size, drawn in SHORT.items() for steps in drawn] * 3, *LONG)
"""From which the number of devices and that of steps with faults are drawn. The work of a run is
that of all its devices in all its steps."""
ALONE = 0.03
"""The part of the seeds in which one kind of `LATER` befalls each device once, and nothing else:
what heals another fault often heals what such a rare one does."""
SOON_US = 10 * SECOND_US
"""How soon the second block of identities begins where limits are narrow."""
OF_CARDS = 0.07
"""The part of the seeds in which two devices run for a minute, and only cards and lakes are lost or
older: the histories of several lives are long, and most other faults heal or end them."""
TORN = 0.5
"""The part of the seeds with streams in which the power goes once more on each device, right behind
a commit: what should have been in it and comes in the next one is lost only there."""
GATEWAYS = {DEFAULT_SINK: 0.3, ARCHIVE: 0.6}
"""Sinks, and the part of the seeds in which each is a gateway."""
LANDERS = 0.5
"""The part of the other sinks that are landers' processes."""
SINKS_ALONE = 0.25
"""The part of the seeds with processes of sinks in which little else goes wrong: most of what a
device does wrong or loses hides what a sink forgets."""
REPLACED = 0.04
"""The part of the seeds with processes of sinks in which a sink's clock is ahead for a while, and
an empty store takes the place of its own later: nothing else must keep devices from that one."""
SERVED = 0.05
"""The part of the seeds with a gateway in which it runs the program before for most of a minute,
and its frontier moves on meanwhile: other faults move windows again that it passed over."""
AWAY = 0.08
"""The part of the seeds with streams over the fleet in which a device is away for longer than it is
waited for, and comes back while its gateway runs the program before, which has no such streams."""
FORGED = 0.03
"""The part of the seeds in which a stranger says hello as a later life of a device."""
TWINS_EVERY = 50
"""How many seeds there are for each that has two gateways of one name for a while, and little else:
after that, devices wait for ten minutes before they deliver to the gateway that is left."""
CLOCKS_EVERY, OF_CLOCKS = 25, ("clock_jump", "clock_1970", "hours", "cut")
"""How many seeds there are for each in which clocks are wrong from the start or seem to be, and
nothing else is; and the kinds of faults that it takes."""
WIDER = {"roster": 0.15, "columns": 0.15, "unsynchronised": 0.15, "stamped": 0.06}
"""What else a scenario may have, and in which part of the seeds."""
LONG_TIME, OLD_S = 0.04, 60
"""The part of the seeds in which hours pass. In half of them the last sink is dead, and readings
may be OLD_S seconds old."""
WAITS, WAITS_S = 0.15, (3, 10, 60)
"""The part of the seeds without streams over the fleet in which windows wait for devices before
they have a row, and for how many seconds they do."""
RETAINS, RETAINS_S = 0.2, (5, 5, 20)
"""The part of the seeds without any streams in which sinks take late readings for so few seconds
that short runs come to the end of it: later ones are left out, and panes are pruned."""
SILENT, SILENT_S, SILENT_STEPS = 0.1, 3, 45
"""The part of the seeds without any streams in which the promise of a silent source follows the
clock, after how many seconds, and the least steps of these."""
SHOWN, SHOWN_US = 0.08, 3 * SECOND_US
"""The part of the seeds in which devices publish values for people, and how often they do."""
OPERATED, OF_ROOMS = 0.08, 0.5
"""The part of the seeds in which operators change a window; and of those that act, with keys."""
ORDERED = 0.12
"""The part of the seeds with streams over the fleet; half of their sinks at least are gateways."""
LONG_COMMIT_S = 10
"""Least seconds between two commits where readings are to wait."""
STAMPED_STEPS = 45
"""Least steps of those in which they wait for long: a few commits come at once before they do."""
CLOCKS = frozenset(kind for kind in KINDS if kind.startswith("clock_"))
"""What befalls the clocks of devices: a fleet in which no kernel knows that its clock is right has
none of it, as nobody could tell which ones are wrong."""
SOON = 0.5
"""The part of the seeds with streams over the fleet in which cells land while they still grow."""
SOON_LATENESS_US = SECOND_US
"""How late sources may be there: a promise comes into the cell that grows."""
LIVE_ITEMS = 8
"""Items of streams that agents keep in memory: so few that there are cuts in short runs."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a run is made from; equal scenarios, equal runs.

    Attributes:
        seed: of everything that is drawn while it runs.
        size: how many devices.
        steps: how long readings come and faults befall.
        faults: the rates; those of messages count here.
        schedule: the structural faults.
        keyed, shared: what the program has; see `programs.trial`.
        files: stores are real files.
        archive: there is a second sink, to which everything is delivered as to the lake.
        roster: sinks have one, every second time with a device that is not there.
        columns: some readings come in columns, too; see `programs.trial`.
        unsynchronised: no kernel knows whether its clock is right; all devices' are.
        stamped: devices have only readings that are stamped on acceptance, and these wait.
        gateways: the sinks that are gateways' processes.
        landers: those that are landers' processes; the others are landers without one.
        sessions: the broker keeps messages for devices that are away.
        commit_s: least seconds between two commits of readings.
        retain_s: seconds that readings may be old.
        interval_s: seconds between two publications of an agent; see `Settings.paced`.
        first: the number of the first device.
        acting: the program acts on its values; see `programs.trial`.
        scans: the program has streams, and devices have meters; see `programs.trial`.
        ordered: it has streams over the fleet, and devices have meters; see `fleet_streamed`.
        synced: its scan over the fleet has local events; see `local_events`.
        soon: what meters read leaves at once, and sources give little that is late.
        punctual: no reading of meters and recordings is late, and none is taken back.
        joins_at: from which step on there is a second sink, where there is one.
        wait_s: for how many seconds windows of its sinks wait for devices before they have a row.
        sinks_retain_s: for how many seconds after their end they take late readings; 0: usual.
        narrow: limits are so small that a short run comes to them; see `narrow`.
        silent_s: seconds after which the promise of a silent source follows the clock; 0: usual.
        apart: devices do not hear each other, as behind a broker whose rules keep them apart.
        named: the names of the devices, where they are given; `size` is their number.
        operated: operators change a window of its program; see `entries`.
        shown: devices publish their values for people, and the fleet's; see `shown_checks`.
    """

    seed: int
    size: int
    steps: int
    faults: FaultRates = CALM
    schedule: tuple[Fault, ...] = ()
    keyed: bool = False
    shared: bool = False
    files: bool = False
    sessions: bool = False
    archive: bool = False
    gateways: tuple[str, ...] = ()
    landers: tuple[str, ...] = ()
    roster: bool = False
    columns: bool = False
    unsynchronised: bool = False
    stamped: bool = False
    retain_s: int = 7 * 86_400
    commit_s: int = 0
    interval_s: int = 1
    first: int = 0
    apart: bool = False
    acting: bool = False
    scans: bool = False
    ordered: bool = False
    synced: bool = False
    soon: bool = False
    punctual: bool = False
    joins_at: int = 0
    wait_s: int = 0
    sinks_retain_s: int = 0
    narrow: bool = False
    silent_s: int = 0
    named: tuple[str, ...] = ()
    operated: bool = False
    shown: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the devices, in order."""
        return list(self.named) or [
            f"pi-{number}" for number in range(self.first, self.first + self.size)
        ]

    @property
    def start_us(self) -> int:
        """When it begins: a clock that nobody bears out must be after this release.

        With narrow limits soon afterwards another block of identities begins, and comes to them.
        """
        start_us = UNSYNCHRONISED_START_US if self.unsynchronised else START_US
        return start_us - start_us % BLOCK_US + BLOCK_US - SOON_US if self.narrow else start_us

    @property
    def expected(self) -> list[str] | None:
        """The roster of its sinks; None: they have no roster. Some lack a device that is there."""
        absent = [ABSENT] if self.seed % 2 else []
        is_lacking = self.size > 1 and self.seed % LACKS_EVERY == 0 and not self.ordered
        listed = self.names[:-1] if is_lacking else self.names
        return [*listed, *absent] if self.roster else None

    @property
    def has_processes_alone(self) -> bool:
        """Whether each of its sinks is a gateway's or a lander's process."""
        sinks = {DEFAULT_SINK, *([ARCHIVE] if self.archive else [])}
        return sinks <= {*self.gateways, *self.landers}

    def settings(self) -> Settings:
        """Return the settings of its agents."""
        more: dict[str, Any] = {"live_items": LIVE_ITEMS} if self.scans or self.ordered else {}
        more |= {"lateness_us": SOON_LATENESS_US} if self.soon else {}
        more |= {"calls_out": self.acting and self.seed % 2 == 0}
        if self.shown:
            more |= {"results_us": SHOWN_US, "home_assistant": "homeassistant"}
        more |= {"source_silent_us": self.silent_s * SECOND_US} if self.silent_s else {}
        retain_us = self.retain_s * SECOND_US
        return Settings.paced(self.interval_s, self.commit_s, retain_us=retain_us, **more)


def scenario_of(seed: int, kinds: tuple[str, ...] = tuple(KINDS)) -> Scenario:
    """Return what a seed stands for."""
    random, later = Random(seed), Random(f"{seed} later")
    size, steps = random.choice(SHAPES)
    faults = FaultRates.drawn(random, kinds, later)
    names = [f"pi-{number}" for number in range(size)]
    scenario = Scenario(
        seed,
        size,
        steps,
        faults,
        tuple(faults.schedule(random, names, steps, later)),
        keyed=random.random() < 0.2,  # noqa: PLR2004
        shared=random.random() < 0.2,  # noqa: PLR2004
        files=random.random() < 0.1,  # noqa: PLR2004
        sessions=random.random() < 0.5,  # noqa: PLR2004
        retain_s=random.choice((7 * 86_400, 7 * 86_400, 60)),
        commit_s=random.choice((0, 0, LONG_COMMIT_S)),
        archive=random.random() < 0.25,  # noqa: PLR2004
        acting=random.random() < 0.15,  # noqa: PLR2004
        scans=random.random() < 0.1,  # noqa: PLR2004
        narrow=later.random() < 0.15,  # noqa: PLR2004
        operated=Random(f"{seed} operated").random() < OPERATED,
        shown=Random(f"{seed} shown").random() < SHOWN,
    )
    if scenario.acting and Random(f"{seed} rooms").random() < OF_ROOMS:
        scenario = replace(scenario, keyed=True)
    torn = Random(f"{seed} torn")
    if scenario.scans and "torn_commit" in kinds and torn.random() < TORN:
        more = [Fault(torn.randint(1, steps), "torn_commit", name, BEHIND) for name in names]
        scenario = replace(scenario, schedule=tuple(sorted([*scenario.schedule, *more])))
    scenario = _ordered(scenario, Random(f"{seed} ordered"), kinds)
    scenario = _with_terms(scenario, Random(f"{seed} terms"))
    scenario = _with_sinks(scenario, Random(f"{seed} sinks"), kinds)
    if seed % CLOCKS_EVERY == CLOCKS_EVERY - 2 and {*OF_CLOCKS} <= {*kinds}:
        return of_clocks(scenario, Random(f"{seed} clocks"))
    if seed % TWINS_EVERY == TWINS_EVERY - 1 and "twin" in kinds:
        return of_twins(scenario, later)
    if later.random() >= ALONE:
        return of_cards(scenario, later, kinds) if later.random() < OF_CARDS else scenario
    kind = later.choice([each for each in LATER if each in kinds] or [""])
    steps = max(steps, 2 * KINDS[kind].most) if kind else steps
    there = scenario.names if kind else []  # not those drawn first: there may be fewer by now
    alone = [Fault(later.randint(1, steps), kind, name, KINDS[kind].most) for name in there]
    return replace(scenario, steps=steps, faults=CALM, schedule=tuple(sorted(alone)))


def _with_terms(scenario: Scenario, random: Random) -> Scenario:
    """Return the scenario with how long its windows wait, and how long they take late readings.

    Streams have laws of their own about that; and what a program left out for longer than late
    readings are taken stays as it was.
    """
    waits, retains = random.random() < WAITS, random.random() < RETAINS
    wait_s = random.choice(WAITS_S) if waits and not scenario.ordered else 0
    is_other = any(fault.kind == "former_lander" for fault in scenario.schedule)
    is_other = is_other or scenario.ordered or scenario.scans
    retain_s = random.choice(RETAINS_S) if retains and not is_other else 0
    silent = Random(f"{scenario.seed} silent").random() < SILENT and not scenario.ordered
    silent_s = SILENT_S if silent and not scenario.scans else 0
    steps = max(scenario.steps, SILENT_STEPS) if silent_s else scenario.steps
    terms = replace(scenario, wait_s=wait_s, sinks_retain_s=retain_s)
    return replace(terms, steps=steps, silent_s=silent_s)


def _with_sinks(scenario: Scenario, random: Random, kinds: tuple[str, ...]) -> Scenario:
    """Return the scenario with what its sinks are, and what befalls them."""
    drawn = [sink for sink, part in GATEWAYS.items() if random.random() < part]
    gateways = tuple(sorted({*drawn, *scenario.gateways}, key=list(GATEWAYS).index))
    lots = Random(f"{scenario.seed} landers")
    landers = tuple([sink for sink in GATEWAYS if lots.random() < LANDERS and sink not in gateways])
    has: dict[str, Any] = {name: random.random() < part for name, part in WIDER.items()}
    rates = {kind: random.choice(drawn) for kind, drawn in OF_GATEWAYS.items() if kind in kinds}
    if not (gateways or landers):
        rates = {kind: rate for kind, rate in rates.items() if kind in {"sink_dead", "kept_beat"}}
    faults = replace(scenario.faults, **rates)
    more = FaultRates(**rates).schedule(random, scenario.names, scenario.steps)
    schedule = sorted([*scenario.schedule, *more])
    if has["unsynchronised"]:
        schedule = _with_right_clocks(schedule)
    if has["stamped"]:
        has |= {"commit_s": 6 * LONG_COMMIT_S, "steps": max(scenario.steps, STAMPED_STEPS)}
    has |= {"gateways": gateways, "landers": landers}
    if (gateways or landers) and lots.random() < SINKS_ALONE:
        scenario = of_sinks(replace(scenario, **has), lots, kinds)
    else:
        scenario = replace(scenario, faults=faults, schedule=tuple(schedule), **has)
    is_replaced = {"gateway_jump", "new_lake"} <= {*kinds} and lots.random() < REPLACED
    if (gateways or landers) and is_replaced:
        return of_replaced(scenario, lots)
    if DEFAULT_SINK in gateways and "former_lander" in kinds and lots.random() < SERVED:
        return of_served(scenario, lots)
    return _with_links(scenario, Random(f"{scenario.seed} links"), kinds)


def _with_links(scenario: Scenario, random: Random, kinds: tuple[str, ...]) -> Scenario:
    """Return the scenario with what befalls the connections of its sinks, and how time passes."""
    away = Random(f"{scenario.seed} away")
    if scenario.ordered and {"cut", "former_lander"} <= {*kinds} and away.random() < AWAY:
        return of_away(scenario, away)
    rates = {kind: random.choice(drawn) for kind, drawn in OF_LINKS.items() if kind in kinds}
    if not (scenario.gateways or scenario.landers):
        rates = {kind: rate for kind, rate in rates.items() if kind == "recorded_answers"}
    more = FaultRates(**rates).schedule(random, scenario.names, scenario.steps)
    if "hours" in kinds and not scenario.acting and random.random() < LONG_TIME:
        steps, at = random.randint(*KINDS["hours"][1:]), random.randint(1, scenario.steps)
        more.append(Fault(at, "hours", "", steps))
        if random.random() < 0.5:  # noqa: PLR2004
            more.append(Fault(at, "sink_dead", "", steps))
            scenario = replace(scenario, retain_s=OLD_S, narrow=True)  # what waits is to be old
        scenario = replace(scenario, steps=max(scenario.steps, at + steps))
    forged = Random(f"{scenario.seed} forged")
    if "forged_hello" in kinds and forged.random() < FORGED:
        at = forged.randint(min(5, scenario.steps), scenario.steps)
        name = forged.choice(scenario.names)
        more.append(Fault(at, "forged_hello", name, forged.randint(1, KINDS["forged_hello"].most)))
    return replace(scenario, schedule=tuple(sorted([*scenario.schedule, *more])))


def _ordered(scenario: Scenario, random: Random, kinds: tuple[str, ...]) -> Scenario:
    """Return the scenario with streams over the fleet, if it is to have some.

    Then a gateway is more likely, and in half of them its power goes twice. So is a second sink,
    which may be there from later on.
    """
    if random.random() >= ORDERED:
        return scenario
    archive = scenario.archive or random.random() < 0.3  # noqa: PLR2004
    names = [DEFAULT_SINK, ARCHIVE] if archive else [DEFAULT_SINK]
    gateways = tuple([name for name in names if random.random() < 0.5])  # noqa: PLR2004
    joins_at = random.randint(1, scenario.steps) if archive and random.random() < 0.5 else 0  # noqa: PLR2004
    has: dict[str, Any] = {"archive": archive, "gateways": gateways, "joins_at": joins_at}
    has["soon"] = Random(f"{scenario.seed} soon").random() < SOON
    if gateways and "power_lost" in kinds and random.random() < 0.5:  # noqa: PLR2004
        amounts = [random.randint(0, KINDS["power_lost"].most) for _ in range(2)]
        more = [Fault(random.randint(1, scenario.steps), "power_lost", "", n) for n in amounts]
        has["schedule"] = tuple(sorted([*scenario.schedule, *more]))
    return replace(scenario, ordered=True, **has)


def having(scenario: Scenario, extras: Iterable[str]) -> Scenario:
    """Return the scenario with more, by the names of its fields."""
    has: dict[str, Any] = dict.fromkeys(extras, True)
    if "unsynchronised" in has:
        has["schedule"] = tuple(_with_right_clocks(scenario.schedule))
    return replace(scenario, **has)


def _with_right_clocks(schedule: Iterable[Fault]) -> list[Fault]:
    """Return a schedule without what `CLOCKS` has."""
    return [fault for fault in schedule if fault.kind not in CLOCKS]


def reconnects(scenario: Scenario) -> bool:
    """Return whether all devices connect again at the end: it heals much, and so hides much."""
    return scenario.seed % 2 == 0


def waits_for_silence(scenario: Scenario) -> bool:
    """Return whether a device is silent at the end until it is left out: minutes of waiting."""
    return scenario.acting and scenario.seed % 3 == 0
