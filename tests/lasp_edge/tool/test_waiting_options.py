"""For whom windows wait, and for how long, as people write it and as they are told."""

import pytest

from lasp_edge import Program, folds
from lasp_edge.errors import UsageError
from lasp_edge.tool.parser import CommandParser
from lasp_edge.tool.waiting_options import Patience, add_waiting_arguments

SECOND_US = 1_000_000


def patience(*words, **own):
    """Return what a sink of a program with these windows is told."""
    parser = CommandParser("gateway", "")
    add_waiting_arguments(parser)
    program = Program("waits")
    event = program.event("temperature")
    for name, wait_s in own.items():
        sizes = {"source": event, "fold": folds.sum(), "size_s": 10}
        program.window(name, tentative_after_s=wait_s, **sizes)
    return Patience.of(parser.parse_args(list(words)), program.plan().windows.values())


def test_without_x_windows_are_shown_at_once_and_silence_counts_for_ten_minutes():
    told = patience(hot=None)
    assert (told.dead_after_us, told.waits, told.in_words()) == (600 * SECOND_US, {"hot": 0}, "")


@pytest.mark.parametrize(
    ("words", "own", "said"),
    [
        (["--tentative-after", "15"], {"hot": None}, "as tentative after 15 s"),
        (["--tentative-after", "never"], {"hot": None}, "when they are final"),
        ([], {"hot": 15, "cold": None}, "at once; hot as tentative after 15 s"),
        (["--tentative-after", "3"], {"hot": 0}, "as tentative after 3 s; hot at once"),
    ],
)
def test_with_x_a_device_is_waited_for_a_day_unless_one_says_otherwise(words, own, said):
    told = patience(*words, **own)
    assert told.dead_after_us == (600 if own == {"hot": 0} and not words else 86_400) * SECOND_US
    assert patience(*words, "--dead-after", "30", **own).dead_after_us == 30 * SECOND_US
    if any(told.waits.values()):
        assert told.in_words() == (
            f"windows that wait for devices are shown {said}; devices are waited for 86400 s"
        )


def test_somebody_looks_at_the_clock_often_enough():
    assert patience(hot=None).tick_us == 150 * SECOND_US
    assert patience("--tentative-after", "20", hot=None).tick_us == 5 * SECOND_US
    assert patience("--tentative-after", "1", hot="never").tick_us == 21_600 * SECOND_US
    assert patience("--tentative-after", "1", hot=None).tick_us == SECOND_US
    assert (
        patience("--tentative-after", "never", "--dead-after", "8", hot=None).tick_us == 2_000_000
    )


@pytest.mark.parametrize(
    ("option", "text"),
    [("--tentative-after", "soon"), ("--tentative-after", "-1"), ("--tentative-after", "nan"),
     ("--dead-after", "-1"), ("--dead-after", "nan"), ("--dead-after", "inf")],
)  # fmt: skip
def test_what_is_no_time_is_refused_with_what_would_be_one(option, text):
    with pytest.raises(
        UsageError, match=f"{option}: a number from 0 to 1,000,000,000.*, not '?{text}"
    ):
        patience(f"{option}={text}", hot=None)


@pytest.mark.parametrize("wrong", ["soon", -1, float("nan"), True])
def test_a_windows_own_x_is_seconds_or_never(wrong):
    with pytest.raises(ValueError, match=r"window 'hot': tentative_after_s is .*, not"):
        patience(hot=wrong)


def test_x_is_no_part_of_what_a_window_means():
    assert plan_of(None).windows["hot"].stream == plan_of(5).windows["hot"].stream
    assert plan_of(None).digest == plan_of("never").digest


def plan_of(wait_s):
    program = Program("waits")
    event = program.event("temperature")
    program.window("hot", source=event, fold=folds.sum(), size_s=10, tentative_after_s=wait_s)
    return program.plan()
