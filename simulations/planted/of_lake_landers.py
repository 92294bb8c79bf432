"""Bugs of landers that share a lake: they break the law of `simulations.lake_landers`."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from cloud_tier.lander.landing import Landing
from cloud_tier.lander.run import LanderRun, WitnessFile
from simulations.planted.bug import planted, replaced

LAW: Final = "lake_landers"
"""What these bugs need: a seed of that law, and no scenario."""
_planted = partial(planted, needs=LAW)


@_planted
def a_lander_looks_at_the_newest_commit_of_others_alone() -> Iterator[None]:
    """Somebody goes back to an earlier version, others commit, and a lander lives on."""

    def refresh(self: Landing) -> None:
        before = self.newest
        self._landing.update_incremental()
        if self.newest > before:
            self._check_restored(self._landing.history(1))

    with replaced(Landing, "refresh", refresh):
        yield


@_planted
def what_a_late_segment_reports_is_not_kept() -> Iterator[None]:
    """A lander dies after a commit, and a device asks the next one how far its source had come."""
    with replaced(WitnessFile, "write", lambda _self: None):
        yield


@_planted
def a_segment_ends_with_the_clock_that_was_set() -> Iterator[None]:
    """A lander's clock is set, and a segment says that it had listened by it for minutes."""

    def look(self: LanderRun) -> None:
        since_us = self._listened.since_us
        if self._clock.look():
            self.must_restart = True
            if self._log.is_open:
                self._close(self._listening._replace(since_us=since_us))
        self._listened = self._listening

    with replaced(LanderRun, "look", look):
        yield


@_planted
def a_segment_of_a_connection_that_ended_says_that_nobody_listened() -> Iterator[None]:
    """A connection ends, and devices that were silent until then count as heard."""

    def disconnected(self: LanderRun) -> None:
        self._clock.end()
        if self._log.is_open:
            self.close_segment()

    with replaced(LanderRun, "disconnected", disconnected):
        yield
