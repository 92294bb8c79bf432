"""How far readings have come: a clock that goes back, and a source that falls silent."""

from device_agent.agent.changes import Facts, SourceRow
from device_agent.agent.intake.batch import Batch
from device_agent.agent.intake.progress import IntakeProgress, SourceProgress


def test_a_clock_that_goes_back_lowers_the_floor_to_nothing_that_has_left_the_store():
    facts = Facts(stamp_us=0, high_us=150, floor_us=200, pruned_us=100)
    progress = IntakeProgress(10, 0, facts)
    assert progress.heal(95, max_skew_us=5)
    assert progress.floor_us == 100


def test_a_clock_that_goes_back_takes_back_what_was_promised_ahead_of_it():
    progress = IntakeProgress(10, 0, Facts(stamp_us=0, high_us=150, floor_us=0, promised_us=140))
    assert progress.heal(95, max_skew_us=5)
    assert progress.promised_us == 100


def test_a_silent_source_follows_the_clock_at_the_distance_that_it_has():
    progress = SourceProgress({"meter": SourceRow("3", 1_000, False, False)}, 0, 50)  # noqa: FBT003
    progress.cursor("meter")
    lows_us = [
        progress.low_us(5_000 + passed_us, lambda: None, counted_us=passed_us)
        for passed_us in (0, 50, 100)
    ]
    assert lows_us == [1_000, 1_000, 1_050]


def test_a_source_that_has_stamped_readings_goes_on_promising_after_a_batch_without_any():
    progress, batch = SourceProgress({}, 0), Batch("door", [], [], [], [])
    progress.cursor("door")
    progress.advance(batch, None, stamped=True)
    progress.advance(batch, None, stamped=False)  # all of it was refused
    assert progress.low_us(1_000, lambda: None) == 1_000
