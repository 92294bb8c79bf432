"""What may go wrong in a simulated world: one struct of rates with units, and a run's schedule.

Faults of messages are drawn when a message is sent. All others are structural: they are drawn
before the run, as a list, so that a failing run can be shrunk by leaving some of them out. A seed
draws which kinds are on, and how often they happen; several kinds are off in each, because one
fault often hides another (swarm testing).

Source: Groce, Zhang, Eide, Chen and Regehr, "Swarm Testing", ISSTA 2012.

    >>> faults = FaultRates(kill=60, broker_forgets=30)
    >>> for fault in faults.schedule(Random(7), ["pi-0", "pi-1"], steps=60):
    ...     print(fault)
    step 26: kill pi-0 for 2
    step 38: broker_forgets for 1
    step 53: kill pi-1 for 1
"""

import math
from dataclasses import dataclass, fields, replace
from random import Random
from typing import Any, Final, NamedTuple, Self

from device_agent.agent.sources.nearest import nearest
from lasp_edge.units import SECOND_US

STEP_US: Final = SECOND_US
"""Microseconds of virtual time in a step: agents tick, sources read, and messages arrive once."""
START_US: Final = 1_700_000_000 * SECOND_US
"""Virtual time at the beginning, in microseconds since the epoch: a day in November 2023."""
FAST_US: Final = 15 * STEP_US
"""Microseconds of a step while hours pass: less than a silent device is waited for."""
HOUR_STEPS: Final = 3_600 * SECOND_US // STEP_US


RATES: Final = (0, 0, 0, 60, 240)
"""From which the rate of a kind of structural faults is drawn, an hour and device."""


class FaultKind(NamedTuple):
    """A kind of structural fault.

    Attributes:
        of_device: it befalls one device; else the broker, a lander or everything.
        least: the least amount: of steps that it lasts, unless its line below says otherwise.
        most: the greatest amount.
    """

    of_device: bool
    least: int = 1
    most: int = 1


def _of_device(least: int = 1, most: int = 1) -> FaultKind:
    return FaultKind(of_device=True, least=least, most=most)


def _of_fleet(least: int = 1, most: int = 1) -> FaultKind:
    return FaultKind(of_device=False, least=least, most=most)


KINDS: Final[dict[str, FaultKind]] = {
    "kill": _of_device(0, 8),
    "cut": _of_device(1, 30),
    "deaf": _of_device(1, 20),
    "mute": _of_device(1, 20),
    "link_full": _of_device(1, 12),
    "partition": _of_fleet(3, 40),
    "takeover": _of_device(),
    "broker_forgets": _of_fleet(),
    "broker_old": _of_fleet(),
    "broker_queue_lost": _of_fleet(),
    "lander_crash": _of_fleet(0, 20),
    "lander_slow": _of_fleet(2, 40),
    "lander_cut": _of_fleet(1, 30),
    "former_lander": _of_fleet(3, 30),
    "archive_away": _of_fleet(20, 120),
    "torn_commit": _of_device(1, 1_500),
    "disk_full": _of_device(1, 15),
    "disk_read_only": _of_device(1, 15),
    "unsynced_lost": _of_device(0, 3),
    "store_lost": _of_device(0, 10),
    "older_image": _of_device(0, 10),
    "bit_flip": _of_device(1, 3),
    "clone": _of_device(5, 40),
    "clock_jump": _of_device(-7_200, 7_200),
    "clock_1970": _of_device(1, 40),
    "clock_frozen": _of_device(1, 40),
    "clock_drift": _of_device(-500, 500),
    "other_release": _of_device(0, 3),
    "hostile": _of_fleet(1, 20),
    "retire": _of_device(3, 30),
    "new_lake": _of_fleet(),
    "held_up": _of_device(1, 12),
    "power_lost": _of_fleet(0, 14),
    "gateway_torn": _of_fleet(1, 600),
    "gateway_old": _of_fleet(),
    "gateway_jump": _of_fleet(-4_000, 4_000),
    "gateway_1970": _of_fleet(1, 40),
    "gateway_drift": _of_fleet(-3, 3),
    "sink_dead": _of_fleet(20, 90),
    "kept_beat": _of_fleet(),
    "sink_away": _of_fleet(3, 60),
    "sink_full": _of_fleet(2, 12),
    "recorded_answers": _of_fleet(2, 30),
    "hours": _of_fleet(40, 80),
    "twin": _of_fleet(20, 30),
    "forged_hello": _of_device(1, 3),
}
"""Every kind of structural fault. The amount of a clock's jump is seconds, of its drift parts in
10,000, of hostile frames how many, of `unsynced_lost` how many commits, of `power_lost` how many
calls, of `forged_hello` incarnations; a torn commit ends after as many operations of the database,
or, where that is a multiple of `BEHIND`, right behind a whole one."""
LATER: Final[dict[str, tuple[int, ...]]] = {"held_up": (0, 0, 0, 0, 0, 60)}
"""Kinds that are drawn from a stream of their own, so that what a seed draws of others stays, with
the rates that theirs is drawn from."""
OF_GATEWAYS: Final[dict[str, tuple[int, ...]]] = {
    "power_lost": (0, 120, 480),
    "gateway_torn": (0, 0, 240),
    "gateway_old": (0, 0, 240),
    "gateway_jump": (0, 0, 0, 180),
    "gateway_1970": (0, 0, 0, 120),
    "gateway_drift": (0, 0, 120),
    "sink_dead": (0, 0, 0, 0, 60),
    "kept_beat": (0, 0, 240),
}
"""The same of what befalls sinks whose processes run as they are, from a third stream."""
OF_LINKS: Final[dict[str, tuple[int, ...]]] = {
    "sink_away": (0, 0, 0, 120),
    "sink_full": (0, 0, 0, 180),
    "recorded_answers": (0, 0, 0, 120),
}
"""The same of what befalls the connections of such sinks, from a fourth stream."""
OF_SINKS_ALONE: Final[dict[str, tuple[int, ...]]] = {
    "power_lost": (0, 120, 480),
    "gateway_torn": (0, 240),
    "gateway_old": (0, 120),
    "gateway_jump": (0, 0, 120),
    "lander_cut": (0, 0, 180),
    "sink_dead": (0, 0, 60),
    "new_lake": (0, 0, 120),
    "retire": (0, 0, 120),
}
"""What befalls sinks where nothing else befalls their worlds, and how often."""
CARDS: Final[dict[str, tuple[int, ...]]] = {
    "kill": (0, 60, 240),
    "unsynced_lost": (0, 60),
    "store_lost": (60, 240),
    "older_image": (60, 240),
    "new_lake": (0, 180, 360),
    "lander_cut": (0, 180, 720),
}
"""What befalls devices of which cards and lakes alone are lost or older, and how often."""
BEHIND = 4
"""Of torn commits one in as many comes between two whole ones: one lasts for hundreds of
operations, so they would hardly ever be hit there."""


class Fault(NamedTuple):
    """One structural fault of a run.

    Attributes:
        step: when it begins.
        kind: a name of `KINDS`.
        device: whom it befalls; "" for one that befalls no device.
        amount: what its kind says.
    """

    step: int
    kind: str
    device: str
    amount: int

    def __str__(self) -> str:
        at = f" {self.device}" if self.device else ""
        return f"step {self.step}: {self.kind}{at} for {self.amount}"


@dataclass(frozen=True, slots=True)
class FaultRates:
    """How often what goes wrong.

    Attributes of messages are probabilities, on each leg between a device or a lander and the
    broker. All others are rates: the expected number in an hour of virtual time, for each device
    where it befalls a device.

    Attributes:
        loss: a message is lost.
        doubled: it arrives twice.
        delayed: it is late, so that later ones overtake it.
        delay_steps: how many steps it is late, at most.
        unsent: the link does not take a publication, nor those after it in a step.
        unanswered: an answer of a lander is lost before it leaves.
        kill: SIGKILL; the agent starts again after some steps.
        cut: the connection breaks; the broker tells the Last Will.
        deaf: messages to the device are lost, those of it are not: a one-way partition.
        mute: messages of the device are lost, those to it are not.
        link_full: the link takes a few publications a step only.
        partition: half of the devices do not reach the broker.
        takeover: a stranger connects with the device's client id; both connections break.
        broker_forgets: the broker restarts without what it retained, and without sessions.
        broker_old: it restarts with retained messages of an earlier time.
        broker_queue_lost: messages that wait for devices that are away are dropped silently.
        lander_crash: a lander ends, and what it had not committed is lost.
        lander_slow: it commits and acknowledges late.
        lander_cut: it hears nothing.
        former_lander: it restarts with a program that lacks a window, and refuses its panes.
        archive_away: the second sink, where there is one, hears nothing for long.
        torn_commit: the power goes in the middle of a commit, or right behind it.
        disk_full: commits fail.
        disk_read_only: commits fail from the first statement on.
        unsynced_lost: the power goes, and the disk had lied: the last commits are gone.
        store_lost: the card is replaced by an empty one.
        older_image: the card is replaced by an older copy.
        bit_flip: bits of the file change while the agent is off.
        clone: a copy of the card runs in a second device.
        clock_jump: the wall clock is set wrong.
        clock_1970: it starts in 1970 until it is set.
        clock_frozen: it stands still.
        clock_drift: it runs too fast or too slow from now on.
        other_release: the device restarts with the program's next or former release.
        hostile: frames that no agent sends: mutated, forged, on strange topics.
        retire: an operator retires the device, and admits it again later.
        new_lake: the lake is lost; an empty one takes its place.
        power_lost: a gateway's power goes after some more calls: commits, and messages that leave.
        gateway_torn: its power goes in the middle of a commit.
        gateway_old: its disk is replaced by an older copy.
        gateway_jump: its clock is set wrong; every second time it is set right after a while.
        gateway_1970: it starts in 1970 until its clock is set.
        gateway_drift: its clock runs too fast or too slow from now on.
        sink_dead: the last sink is off for long.
        kept_beat: the broker keeps a beat, as if somebody had published it so.
        sink_away: the connection of a sink to the broker is broken.
        sink_full: the link of a sink takes a few messages a step only.
        recorded_answers: all that sinks ever acknowledged is sent again, every few steps.
        hours: for some steps, each takes many seconds: timers of minutes run out.
        twin: a second gateway of the same name runs for some steps, with a store of its own.
        forged_hello: a stranger says hello as a later life of the device, and nothing else.
        held_up: what a device sends is held up for some steps, and comes when its card was replaced
            by an empty one and its next life has asked who it was.
    """

    loss: float = 0.0
    doubled: float = 0.0
    delayed: float = 0.0
    delay_steps: int = 5
    unsent: float = 0.0
    unanswered: float = 0.0
    kill: float = 0.0
    cut: float = 0.0
    deaf: float = 0.0
    mute: float = 0.0
    link_full: float = 0.0
    partition: float = 0.0
    takeover: float = 0.0
    broker_forgets: float = 0.0
    broker_old: float = 0.0
    broker_queue_lost: float = 0.0
    lander_crash: float = 0.0
    lander_slow: float = 0.0
    lander_cut: float = 0.0
    former_lander: float = 0.0
    archive_away: float = 0.0
    torn_commit: float = 0.0
    disk_full: float = 0.0
    disk_read_only: float = 0.0
    unsynced_lost: float = 0.0
    store_lost: float = 0.0
    older_image: float = 0.0
    bit_flip: float = 0.0
    clone: float = 0.0
    clock_jump: float = 0.0
    clock_1970: float = 0.0
    clock_frozen: float = 0.0
    clock_drift: float = 0.0
    other_release: float = 0.0
    hostile: float = 0.0
    retire: float = 0.0
    new_lake: float = 0.0
    held_up: float = 0.0
    power_lost: float = 0.0
    gateway_torn: float = 0.0
    gateway_old: float = 0.0
    gateway_jump: float = 0.0
    gateway_1970: float = 0.0
    gateway_drift: float = 0.0
    sink_dead: float = 0.0
    kept_beat: float = 0.0
    sink_away: float = 0.0
    sink_full: float = 0.0
    recorded_answers: float = 0.0
    hours: float = 0.0
    twin: float = 0.0
    forged_hello: float = 0.0

    @classmethod
    def drawn(
        cls, random: Random, kinds: tuple[str, ...] = tuple(KINDS), later: Random | None = None
    ) -> Self:
        """Return the rates of one seed: of each kind none, few or many.

        Args:
            random: what is drawn from.
            kinds: those that may be on.
            later: the same for `LATER`; None: they are off.
        """
        rates: dict[str, Any] = {
            "loss": random.choice((0.0, 0.0, 0.05, 0.3)),
            "doubled": random.choice((0.0, 0.0, 0.1, 0.5)),
            "delayed": random.choice((0.0, 0.0, 0.2, 0.7)),
            "delay_steps": random.choice((2, 5, 20)),
        }
        for kind in kinds:
            if kind in OF_GATEWAYS or kind in OF_LINKS or kind in {"hours", "twin", "forged_hello"}:
                continue
            if kind in LATER:
                rates[kind] = 0 if later is None else later.choice(LATER[kind])
                continue
            often = random.choice(RATES)
            rates[kind] = often if KINDS[kind].of_device else 3 * often
        return cls(**rates)

    @classmethod
    def parsed(cls, texts: list[str]) -> Self:
        """Return what `kind=rate` says, one text a kind; other kinds are off.

        Raises:
            ValueError: there is no such kind, or its rate is no number.
        """
        named = {field.name for field in fields(cls)}
        found: dict[str, Any] = {}
        for text in texts:
            name, _, rate = text.partition("=")
            if name not in named:
                near = nearest(name, named)
                what = (
                    f'did you mean "{near}"?' if near else f"there are {', '.join(sorted(named))}"
                )
                raise ValueError(f"there is no fault {name!r}; {what}")
            found[name] = _rate(name, rate)
        return cls(**found)

    def without(self, *kinds: str) -> Self:
        """Return these rates with some kinds off."""
        off: dict[str, Any] = dict.fromkeys(kinds, 0.0)
        return replace(self, **off)

    @property
    def disturbs_messages(self) -> bool:
        """Whether a message may be lost, doubled or delayed."""
        return bool(self.loss or self.doubled or self.delayed)

    def schedule(
        self, random: Random, devices: list[str], steps: int, later: Random | None = None
    ) -> list[Fault]:
        """Return the structural faults of a run, in order; see `drawn`."""
        faults, others = [], random
        for name, kind in KINDS.items():
            random = later if later is not None and name in LATER else others
            rate = getattr(self, name) * steps / HOUR_STEPS
            if not rate:
                continue
            for device in devices if kind.of_device else [""]:
                for _ in range(int(rate + random.random())):
                    amount = random.randint(kind.least, kind.most)
                    faults.append(Fault(random.randint(1, steps), name, device, amount))
        return sorted(faults)


_OF_MESSAGES = ("loss", "doubled", "delayed")


def _rate(name: str, text: str) -> float:
    """Return a rate that a person wrote."""
    try:
        rate = int(text) if name == "delay_steps" else float(text)
    except ValueError:
        rate = -1
    most, needed, such = math.inf, "a number from 0", 20.0
    if name in _OF_MESSAGES:
        most, needed, such = 1, "of messages a share from 0 to 1", 0.05
    if not 0 <= rate <= most or rate == math.inf:
        raise ValueError(f"{name}: {needed} is needed, such as {name}={such:g}, not {text!r}")
    return rate


CALM: Final = FaultRates()
"""Nothing goes wrong."""
