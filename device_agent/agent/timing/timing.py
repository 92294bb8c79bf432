"""The clock that the agent goes by: a part, with the fleet's clocks, and the one in the store.

The driver tells the machine's clocks with `observe`, at every tick.
"""

from collections.abc import Mapping
from typing import Any

from device_agent.agent.agent import Agent
from device_agent.agent.changes import Changes, Facts
from device_agent.agent.clock import EARLIEST_US, ClockReading
from device_agent.agent.parts import Handler, Part
from device_agent.agent.timing.judgement import LEAST_NEAR_US, Judgement, State
from device_agent.agent.timing.witnesses import Witnesses
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.timers import NEVER_US
from lasp_edge.units import SECOND_US

KEPT_BOOTS = 4
"""Boots of which the time is remembered: readings of an earlier one may still wait."""
KEPT_EVERY_US = 3_600 * SECOND_US
"""Microseconds after which the trusted time is stored again: one small write in an hour."""
KEPT_WITHIN_US = SECOND_US
"""Microseconds by which the stored time of a boot may be off."""


class Timing(Part):
    """Keeps the agent's `DeviceClock`.

    Args:
        agent: what all parts share.
    """

    name = "clock"

    def __init__(self, agent: Agent) -> None:
        self._agent, self._clock = agent, agent.clock
        settings, facts = agent.settings, agent.facts
        self._near_us = max(settings.max_skew_us, LEAST_NEAR_US)
        self.boots = dict(facts.boots or {})
        self._past_us = facts.trusted_us
        self._judgement = Judgement(
            near_us=self._near_us,
            wait_us=settings.clock_wait_us,
            past_us=facts.trusted_us,
            boots=self.boots,
        )
        self._witnesses = Witnesses()
        self._reading: ClockReading | None = None
        self._monotonic_less_now_us = 0
        self._state: State = "trusted"
        self._noted = facts.clock
        self._facts = Facts()
        self.is_changed = False

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        return {BeatFrame: self._hear_beat, AckFrame: self._hear_ack}

    def _hear_beat(self, frame: BeatFrame, now_us: int) -> None:
        if frame.sender.device != self._agent.replica.device:
            self._hear(frame, frame.clock_s, now_us)

    def _hear_ack(self, frame: AckFrame, now_us: int) -> None:
        if frame.about == self._agent.replica.device:
            self._hear(frame, frame.clock_s, now_us)

    def _hear(self, frame: Frame, clock_s: int | None, now_us: int) -> None:
        if clock_s is None or clock_s * SECOND_US < EARLIEST_US:
            return
        incarnation, nonce, name = frame.sender
        self._witnesses.hear(
            name if type(frame) is BeatFrame else f"lander {name}",
            (incarnation, nonce, frame.number, clock_s),
            clock_s * SECOND_US + SECOND_US // 2,
            monotonic_us=self.monotonic_us(now_us),
        )

    def monotonic_us(self, now_us: int) -> int:
        """Return the machine's monotonic clock at a time of the driver's."""
        return now_us + self._monotonic_less_now_us

    @property
    def boot(self) -> str:
        """This boot of the machine; "" where the driver does not tell."""
        return self._reading.boot if self._reading else ""

    @property
    def state(self) -> State:
        """How the wall clock stands; see `judgement`."""
        if self._clock.is_kept:
            return self._state
        return "trusted" if self._clock.trusted else "waiting"

    def observe(self, reading: ClockReading, now_us: int) -> None:
        """Take a reading of the machine's clocks, and decide which time it is."""
        self.is_changed = self.has_notes = True
        self._reading, self._clock.is_kept = reading, True
        self._monotonic_less_now_us = reading.monotonic_us - now_us
        own_us = reading.wall_us - reading.monotonic_us
        if self._judgement.offset_us is not None:
            own_us = min(own_us, self._judgement.offset_us)
        fleet = self._witnesses.verdict(reading.monotonic_us, self._near_us, own_us)
        trust = self._agent.settings.trust_clock
        self._state = self._judgement.judge(reading, fleet, trust=trust)
        clock, offset_us = self._clock, self._judgement.offset_us
        clock.trusted, clock.tells = self.state != "waiting", self.state == "trusted"
        if clock.tells:
            clock.ahead_us = reading.wall_us - now_us
        elif offset_us is not None:
            clock.ahead_us = offset_us + self._monotonic_less_now_us
        else:
            clock.ahead_us = reading.wall_us - now_us
        if clock.trusted and offset_us is not None:
            self._keep(reading, offset_us)

    def _keep(self, reading: ClockReading, offset_us: int) -> None:
        """Store the trusted time, once an hour at most."""
        time_us = offset_us + reading.monotonic_us
        known_us = self.boots.get(reading.boot)
        if reading.boot and (known_us is None or abs(known_us - offset_us) > KEPT_WITHIN_US):
            self.boots.pop(reading.boot, None)
            self.boots[reading.boot] = offset_us
            for boot in list(self.boots)[:-KEPT_BOOTS]:
                del self.boots[boot]
            self._facts.boots = dict(self.boots)
        past_us = self._past_us
        if past_us is None or not past_us <= time_us < past_us + KEPT_EVERY_US:
            self._past_us = self._facts.trusted_us = time_us

    def tick(self, now_us: int) -> None:
        self._clock.look(now_us)
        self.is_changed = True  # what others report of their clocks
        if self._clock.is_kept or self._clock.trusted:
            self.due_us = NEVER_US

    def take_changes(self) -> Changes | None:
        """Return how the clock stands, if that has changed."""
        self.is_changed = False
        says = self._clock.trouble = self.says()
        if says == self._noted or (self._noted is None and not says):
            return None
        self._noted = self._facts.clock = says
        return self.take_notes()

    def take_notes(self) -> Changes | None:
        self.has_notes = False
        if not self._facts:
            return None
        taken, self._facts = self._facts, Facts()
        return Changes(facts=taken)

    def says(self) -> str:
        """Return for people what is wrong with the clock; "" if nothing is."""
        if self.state == "trusted":
            return self._contradicted()
        if self.state == "waiting":
            return "waiting for the clock: the machine's clock is not trusted"
        hours = abs(self._judgement.off_us) / (3_600 * SECOND_US)
        return (
            f"the machine's clock is {hours:.1f} hours {self.state}: time is kept without it; type "
            "timedatectl, and set it right"
        )

    def _contradicted(self) -> str:
        """Return whose clocks contradict this machine's, which is trusted; "" for nobody's."""
        reading = self._reading
        if reading is None:
            return ""
        apart = self._witnesses.apart(
            reading.wall_us - reading.monotonic_us, reading.monotonic_us, self._near_us
        )
        if not apart:
            return ""
        name, off_us = max(apart.items(), key=lambda each: (abs(each[1]), each[0]))
        others = f", and {len(apart) - 1} more differ" if len(apart) > 1 else ""
        hours, way = abs(off_us) / (3_600 * SECOND_US), "ahead of" if off_us > 0 else "behind"
        return (
            f"the clock of {name} is {hours:.1f} hours {way} this machine's{others}, "
            "which is kept; type timedatectl on both, and set the wrong one right"
        )

    def report(self) -> dict[str, Any]:
        return {
            "clock": {
                "state": self.state,
                "off_s": round(self._judgement.off_us / SECOND_US, 1),
                "waiting": self._clock.waiting,
                "says": self.says(),
            }
        }
