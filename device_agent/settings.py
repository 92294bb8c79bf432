"""What can be set about an agent, with units and defaults."""

from dataclasses import dataclass

SECOND_US = 1_000_000
"""A second in microseconds."""


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
        retain_us: readings older than the greatest accepted time less this are refused.
        lateness_us: how much later than the newest reading an older one may still come without
            being called late; the low watermark stays this far behind.
        max_skew_us: a reading further ahead of the clock than this is refused; clocks that differ
            by no more agree.
        clock_wait_us: a clock that jumped, or is behind the last time that was trusted, is trusted
            once it has stayed as it is for this time, where nobody else tells the time.
        trust_clock: the machine's clock is right, whatever speaks against it.
        keep_readings: accepted readings are stored as read.
    """

    commit_every_us: int = 0
    interval_us: int = 1 * SECOND_US
    beat_us: int = 2 * SECOND_US
    keep_alive_us: int = 10 * SECOND_US
    results_us: int = 10 * SECOND_US
    retain_us: int = 7 * 86_400 * SECOND_US
    lateness_us: int = 5 * SECOND_US
    max_skew_us: int = 300 * SECOND_US
    clock_wait_us: int = 900 * SECOND_US
    trust_clock: bool = False
    keep_readings: bool = False
