"""How soon a fleet is whole again once nothing goes wrong any more, from one seed.

For a while messages are lost on the way to devices or from them, answers are lost, lakes are lost,
operators speak where few hear them, strangers say hello in the name of a device that is away, and
the clock of a gateway is ahead. Then the trouble is over, and nothing else happens that would heal
what it left: whoever is connected stays so, and nobody says anything again from outside.

The law is a time for each thing that heals by itself. What is tried again after a while that
doubles is there after as long as the trouble lasted, and a little:

- before the trouble, promises follow the clock, however long windows are
- each device knows the store of its sink, and all that was read has landed there
- devices hold what they shared, however much is shared meanwhile
- all know what an operator commanded, within twice the time after which it is repeated
- a device that was silent while a stranger spoke in its name, and no longer, is heard as before

A world at rest says the same after minutes, where something else has healed it by then.

    >>> troubles(1)
    []
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any, Final, NamedTuple

from crdts import Lattice, ORSet, Replica
from device_agent.agent.stored_rows import PaneId
from lasp_edge import Program, folds
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.commands import CommandLog
from lasp_edge.protocol.greetings import STRANGERS_GREETED_AGAIN_US
from lasp_edge.protocol.lives import SILENT_US
from lasp_edge.protocol.repeating import REPEAT_US
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.units import SECOND_US
from simulations.fleet import Fleet
from simulations.world.faults import CALM

SIZES: Final = (1, 2, 2, 3)
CALM_STEPS: Final = 24
"""Steps before the trouble begins: devices have met, and know who they are."""
TROUBLE_STEPS: Final = (4, 30)
"""How long the trouble lasts, where nobody was to be silent for as long as a stranger is heard."""
SPARE_STEPS: Final = 20
"""Steps that a message, its answer, beats and commits may take beside what is waited for."""
STRANGE_STEPS: Final = SILENT_US // SECOND_US + 15
AHEAD_S: Final = 3_600
"""How far ahead the clock of a gateway is while the trouble lasts."""
BEHIND_S: Final = 25
"""How far behind the clock a promise is, at most: a device sends what is open every ten seconds."""
MOST_STEPS: Final = 1_000
"""More steps than anything takes to be healed."""
READ: Final = 0.5
"""How often a device reads something in a step."""
_SHARES: Final = 0.5
"""How much of it is shared."""


class DrawnTrouble(NamedTuple):
    """What goes wrong.

    Attributes:
        steps: how long it lasts.
        deaf, mute, cut: what befalls the link of each device; else nothing does.
        is_unanswered: no answer of a sink leaves.
        loses: the sink has an empty store in place of its own, as the trouble begins.
        speaks: an operator speaks meanwhile.
        leaves: a device is off afterwards; "" where all stay.
        is_alone: the sink is off afterwards.
        strange: in whose name a stranger says hello; "" for nobody.
        is_ahead: the clock of the sink, a gateway, is ahead.
        reads_on: devices read while it lasts, and afterwards.
    """

    steps: int
    deaf: frozenset[str]
    mute: frozenset[str]
    cut: frozenset[str]
    is_unanswered: bool
    loses: bool
    speaks: bool
    leaves: str
    is_alone: bool
    strange: str
    is_ahead: bool
    reads_on: bool


class Goal(NamedTuple):
    """What must be so again.

    Attributes:
        name: in words.
        steps: within how many steps after the trouble.
        missing: returns the devices for which it is not so yet.
    """

    name: str
    steps: int
    missing: Callable[[], list[str]]


def doors() -> Plan:
    """Return a program with a window, and a set that all devices share."""
    program = Program("doors")
    seen, passed = program.event("seen"), program.event("passed")
    program.window("doors_passed", source=passed, fold=folds.count(), size_s=60)
    opened = program.declare(ORSet(), "opened")

    @program.on_event(seen)
    def open_one(event: Any, update: Any) -> None:
        update(opened, ORSet.add, int(event.value))

    return program.plan()


def drawn(random: Random, names: list[str], *, has_clock: bool) -> DrawnTrouble:
    """Return what goes wrong in a fleet of devices of these names."""
    is_strange = len(names) == 1 and random.random() < 0.5  # noqa: PLR2004
    strange = names[0] if is_strange else ""  # others would hint to it that somebody spoke
    befalls = {name: random.choice(("", "deaf", "mute", "cut")) for name in names}
    if strange:
        befalls[strange] = "mute"  # who connects again asks, and hears of the stranger
    lots = [random.random() for _ in range(6)]
    of = {k: frozenset(n for n in names if befalls[n] == k) for k in ("deaf", "mute", "cut")}
    # A gateway whose clock is set right starts again, and takes whoever it has kept for alive:
    # what bars a former life must outlast a start, and a hello alone looks like a life that spoke.
    ahead = has_clock and not strange and lots[0] < 0.5  # noqa: PLR2004
    steps = STRANGE_STEPS if strange else random.randint(*TROUBLE_STEPS)
    return DrawnTrouble(
        *(steps, of["deaf"], of["mute"], of["cut"]),
        is_unanswered=lots[1] < 0.4,  # noqa: PLR2004
        loses=lots[2] < 0.4 and not ahead,  # noqa: PLR2004
        speaks=lots[3] < 0.5,  # noqa: PLR2004
        leaves=random.choice(["", *names[1:]]),
        is_alone=lots[5] < 0.25,  # noqa: PLR2004
        strange=strange,
        is_ahead=ahead,
        reads_on=lots[4] < 0.6,  # noqa: PLR2004
    )


def troubles(seed: int) -> list[str]:
    """Return what was not whole in time; empty where the law holds."""
    random = Random(f"{seed} healing")
    kind = random.choice(("gateways", "landers", ""))
    sinks = {kind: (DEFAULT_SINK,)} if kind else {}
    fleet = Fleet(doors(), size=random.choice(SIZES), seed=seed, sinks=sinks)
    try:
        trouble = drawn(random, sorted(fleet.devices), has_clock=bool(kind))
        for name in fleet.devices:  # so that all that is open was sent once
            fleet.read(name, "passed", 1)
        for _ in range(CALM_STEPS):
            _live(fleet, random)
        if found := list(_behind(fleet)):
            return found
        _begin(fleet, trouble)
        for _ in range(trouble.steps):
            _live(fleet, random, reads=trouble.reads_on)
        _end(fleet, trouble)
        return _healed(fleet, trouble, random)
    finally:
        fleet.close()


def _live(fleet: Fleet, random: Random, *, reads: bool = True) -> None:
    """Let devices read, and a step pass."""
    for name in sorted(fleet.world.devices):
        if random.random() < READ and reads:
            event = "seen" if random.random() < _SHARES else "passed"
            fleet.read(name, event, fleet.world.step_number)
    fleet.step()


def _behind(fleet: Fleet) -> Iterator[str]:
    """Yield whose promise is behind, while nothing goes wrong and windows are open."""
    for name, device in fleet.world.devices.items():
        for low in device.core.panes.lows(fleet.now_us):
            if low.low_us is None or low.low_us < fleet.now_us - BEHIND_S * SECOND_US:
                yield f"{name} promises {low.low_us} at {fleet.now_us}"


def _begin(fleet: Fleet, trouble: DrawnTrouble) -> None:
    """Let the trouble begin."""
    for kind in ("deaf", "mute", "cut"):
        for name in sorted(getattr(trouble, kind)):
            fleet.befall(kind, name, trouble.steps)
    (sink,) = fleet.world.sinks
    if trouble.is_ahead:
        sink.clock.jump(AHEAD_S)
    if trouble.loses:
        fleet.befall("new_lake")
    if trouble.is_unanswered:
        fleet.world.links.faults = replace(CALM, unanswered=1.0)
    if trouble.strange:
        fleet.befall("forged_hello", trouble.strange)
    if trouble.speaks:
        fleet.retire("pi-9")


def _end(fleet: Fleet, trouble: DrawnTrouble) -> None:
    """End the trouble, and heal nothing of what it left."""
    fleet.world.links.calm()
    for sink in fleet.world.sinks:
        sink.clock.heal()
    if trouble.leaves:
        fleet.stop(trouble.leaves)
    if trouble.is_alone:
        fleet.befall("sink_dead", amount=MOST_STEPS)


def _healed(fleet: Fleet, trouble: DrawnTrouble, random: Random) -> list[str]:
    """Let time pass until all is whole; return what is not in time."""
    lives = {name: each.core.replica for name, each in fleet.world.devices.items()}
    goals = list(_goals(fleet, trouble))
    if trouble.is_ahead:
        for device in fleet.world.devices.values():
            device._ahead_us -= AHEAD_S * SECOND_US  # noqa: SLF001 - its process was moved
    for step in range(max(goal.steps for goal in goals) + 2):
        goals = [goal for goal in goals if goal.missing()]
        if not goals or any(goal.steps < step for goal in goals):
            break
        _live(fleet, random, reads=trouble.reads_on)
    late = [goal for goal in goals if goal.steps < step]
    found = [f"{goal.name}: {goal.missing()} after {goal.steps} steps" for goal in late]
    return found + list(_other_lives(fleet, lives))


def _other_lives(fleet: Fleet, lives: dict[str, Replica]) -> Iterator[str]:
    """Yield who has another life, though nobody speaks in its name any more."""
    for name, device in fleet.world.devices.items():
        if device.core.replica != lives[name]:
            yield f"{name} was {lives[name]}, and became {device.core.replica}"


def _goals(fleet: Fleet, trouble: DrawnTrouble) -> Iterator[Goal]:
    devices, (sink,) = fleet.world.devices, fleet.world.sinks
    doubled = 2 * trouble.steps + SPARE_STEPS

    def knows_no_store() -> list[str]:
        lake = sink.lander.lake
        return [
            name
            for name, device in devices.items()
            if lake not in {known.store for known in device.core.panes.sinks}
        ]

    least = STRANGERS_GREETED_AGAIN_US // SECOND_US + SPARE_STEPS

    if not trouble.is_alone:
        yield Goal("the store is known", max(doubled, least), knows_no_store)
        yield Goal("what was read has landed", max(doubled, least), _landing(fleet))
    states = {name: each.core.variables.shared_states["opened"] for name, each in devices.items()}
    whole: Lattice = ORSet()
    for state in states.values():
        whole |= state.whole

    def holds_less() -> list[str]:
        return [name for name, state in states.items() if not whole <= state.whole]

    asked_in_vain = doubled if trouble.leaves else 0  # who has left was asked meanwhile
    yield Goal("what was shared is held", doubled + asked_in_vain, holds_less)

    given = CommandLog()
    for known in [each.commands() for each in devices.values()]:
        given |= known
    given = given if trouble.is_alone else fleet.world.operator.commands

    def knows_less() -> list[str]:
        return [name for name, device in devices.items() if not given <= device.commands()]

    yield Goal("commands are known", 2 * REPEAT_US // SECOND_US + SPARE_STEPS, knows_less)


def _landing(fleet: Fleet) -> Callable[[], list[str]]:
    """Return what names the devices of which something has not landed that waits now."""
    (sink,), dirty = fleet.world.sinks, dict[str, dict[PaneId, int]]()
    for name, device in fleet.world.devices.items():
        memory = device.core.panes.memory
        dirty[name] = {pane: memory.entries[pane].seq for pane in memory.dirty}

    def has_landed(device: str, pane: PaneId, seq: int) -> bool:
        at = (pane.stream, pane.key, pane.pane_us, device, pane.incarnation, pane.nonce)
        return at in sink.lander.panes and sink.lander.panes[at][0] >= seq

    def lacks() -> list[str]:
        return [
            name
            for name, panes in dirty.items()
            if not all(has_landed(name, pane, seq) for pane, seq in panes.items())
        ]

    return lacks
