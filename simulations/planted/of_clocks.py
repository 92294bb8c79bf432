"""Bugs of clocks: of what others say of the time, and of what was stamped while one was ahead."""

from collections.abc import Iterator, Mapping

from device_agent.agent.parts import Handler
from device_agent.agent.timing.timing import Timing
from device_agent.agent.timing.witnesses import Witnesses
from device_agent.agent.variables.samples import Sets
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame
from simulations.planted.bug import planted, replaced


@planted
def own_beats_bear_out_the_own_clock() -> Iterator[None]:
    """A clock is set right, and the broker gives its device back the beats of before."""

    def hear_beat(self: Timing, frame: BeatFrame, now_us: int) -> None:
        self._hear(frame, frame.clock_s, now_us)

    def handlers(self: Timing) -> Mapping[type[Frame], Handler]:
        return {BeatFrame: lambda *heard: hear_beat(self, *heard), AckFrame: self._hear_ack}

    with replaced(Timing, "handlers", property(handlers)):
        yield


@planted
def what_waited_at_the_broker_tells_the_time() -> Iterator[None]:
    """A device was away for minutes: it leaves its clock, which is right, for what comes late."""
    right = Witnesses.hear

    def hear(
        self: Witnesses, name: str, version: tuple[int, ...], clock_us: int, *, monotonic_us: int
    ) -> None:
        known = self._witnesses.get(name)
        if known is not None and clock_us - monotonic_us > known.offset_us:
            known.version = max(version, known.version)
            known.steady_us = monotonic_us
            return
        right(self, name, version, clock_us, monotonic_us=monotonic_us)

    with replaced(Witnesses, "hear", hear):
        yield


@planted
def a_verdict_outlives_what_is_heard_later() -> Iterator[None]:
    """A Pi starts in 1970, and has heard nobody yet: what it hears then counts an hour later."""
    right = Witnesses.hear

    def hear(
        self: Witnesses, name: str, version: tuple[int, ...], clock_us: int, *, monotonic_us: int
    ) -> None:
        judged = self._judged
        right(self, name, version, clock_us, monotonic_us=monotonic_us)
        self._judged = judged

    with replaced(Witnesses, "hear", hear):
        yield


@planted
def a_clock_that_was_ahead_keeps_samples() -> Iterator[None]:
    """A clock is set back by an hour: what is to be kept for seconds is kept until then."""

    def look_at_all(_self: Sets, _now_us: int) -> None:
        return None

    with replaced(Sets, "_look_at_all", look_at_all):
        yield
