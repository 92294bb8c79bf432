"""What can be set about an agent, with units and defaults."""

from dataclasses import dataclass
from typing import Any, Self

from lasp_edge.units import SECOND_US

INTERVAL_S = 60.0
"""Seconds between two publications of an agent without another setting: a reading a second then
writes some 15 MB to its card a day (`python -m simulations.benchmarks economy`)."""
LEAST_GRACE_US = 30 * SECOND_US
"""Microseconds after a start or connection for which other devices are waited for, at least."""
LONGEST_SILENCE_S = 240.0
"""Seconds without a beat, at most: the cloud waits 600 for a device by default."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How an agent runs.

    Attributes:
        commit_every_us: least time between two commits of readings; those that come sooner wait
            in memory. 0: each batch is committed when it comes.
        interval_us: time in which a variable is published once, in the long run.
        beat_us: time in which there is one beat, in the long run, while something changes.
        keep_alive_us: time between two beats while nothing changes.
        results_us: results for people are published at most this often; 0 for never.
        home_assistant: the first topic level by which Home Assistant discovers what this device
            publishes; "": it publishes none.
        area: where the device is, for Home Assistant; "" where that is not known.
        dashboard_url: of a dashboard of the fleet, for Home Assistant; "" for none.
        retain_us: readings older than the greatest accepted time less this are refused.
        lateness_us: how much later than the newest reading an older one may still come without
            being called late; the low watermark stays this far behind.
        source_silent_us: a source with own times that is silent for longer holds the low watermark
            no more where it is: it follows the clock, that far behind; 0: never.
        max_skew_us: a reading further ahead of the clock than this is refused; clocks that differ
            by no more agree.
        clock_wait_us: a clock that jumped, or is behind the last time that was trusted, is trusted
            once it has stayed as it is for this time, where nobody else reports the time.
        trust_clock: the machine's clock is right, whatever speaks against it.
        handler_limit_us: a function of the program that does not return is ended after this time;
            0: never.
        fence_wait_us: a new process asks its peers and the landers who the device was before, and
            waits for an answer, at most this long; 0: it does not ask.
        drop_set_aside: what a former program stored of variables, and this one does not use, is
            deleted.
        calls_out: the driver calls out the turns of alerts, so they are kept until it has done so.
        keep_readings: accepted readings are stored as read.
        live_items: items of streams in memory from which on the older ones are packed away: 1.5 MB.
    """

    commit_every_us: int = 0
    interval_us: int = 1 * SECOND_US
    beat_us: int = 2 * SECOND_US
    keep_alive_us: int = 10 * SECOND_US
    results_us: int = 10 * SECOND_US
    home_assistant: str = ""
    area: str = ""
    dashboard_url: str = ""
    retain_us: int = 7 * 86_400 * SECOND_US
    lateness_us: int = 5 * SECOND_US
    source_silent_us: int = 600 * SECOND_US
    max_skew_us: int = 300 * SECOND_US
    handler_limit_us: int = 30 * SECOND_US
    fence_wait_us: int = 5 * SECOND_US
    clock_wait_us: int = 900 * SECOND_US
    trust_clock: bool = False
    drop_set_aside: bool = False
    calls_out: bool = False
    keep_readings: bool = False
    live_items: int = 2_048

    @property
    def grace_us(self) -> int:
        """For how long after a start or connection others are waited for: two beats at least."""
        return max(LEAST_GRACE_US, 2 * self.beat_us)

    @classmethod
    def paced(
        cls, interval_s: float = INTERVAL_S, commit_every_s: float | None = None, **more: Any
    ) -> Self:
        """Return the settings of an agent that publishes once in an interval.

        Args:
            interval_s: seconds; beats come half as often.
            commit_every_s: seconds between two commits of readings; as `interval_s` where None.
            more: whatever else is set; results are published only where that is asked for.
        """
        commit_s = interval_s if commit_every_s is None else commit_every_s
        return cls(
            commit_every_us=round(commit_s * SECOND_US),
            interval_us=round(interval_s * SECOND_US),
            beat_us=round(2 * interval_s * SECOND_US),
            keep_alive_us=round(min(10 * interval_s, LONGEST_SILENCE_S) * SECOND_US),
            **({"results_us": 0} | more),
        )
