"""Readings of a program as a strategy of Hypothesis, which has to be installed.

@given(readings(program))
def test_my_program(drawn):
    assert not replay(program, drawn).failures
"""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from lasp_edge.checking.readings import FIRST_US, constants, plausible, tag_choices, texts_of
from lasp_edge.checking.streams import tried_streams
from lasp_edge.checking.trial import tried
from lasp_edge.folds.numbers import LIMIT
from lasp_edge.language.declarations import EventType
from lasp_edge.language.plan import Plan
from lasp_edge.language.program import Program
from lasp_edge.testing.replay import GivenReading
from lasp_edge.units import SECOND_US

FIRST_S = FIRST_US // SECOND_US
LARGEST = 10_000
"""Steps of a value, at most, where the event does not say what is plausible."""


def readings(
    program: Program,
    *,
    devices: Sequence[str] = ("pi-1", "pi-2"),
    hours: float = 1,
    max_size: int = 40,
) -> st.SearchStrategy[list[GivenReading]]:
    """Return a strategy of readings for `replay`: of all events, plausible, with their tags.

    Args:
        program: the program. Its functions are called once, to learn which tags they need: when
            the first example is drawn, not where tests are collected.
        devices: that read them.
        hours: from the first to the last of their times.
        max_size: the most readings.
    """
    plan = program.plan()
    return st.deferred(lambda: _readings(plan, devices, hours, max_size))


def _readings(
    plan: Plan, devices: Sequence[str], hours: float, max_size: int
) -> st.SearchStrategy[list[GivenReading]]:
    texts, _ = constants(plan)
    found = tried(plan)
    if plan.streams:
        tried_streams(plan, None, found)
    known = {tag for asked in found.tags.values() for tag in asked}
    choices = {tag: st.sampled_from(of) for tag, of in tag_choices(plan, known).items()}
    each = [
        st.tuples(
            st.sampled_from(list(devices)),
            st.just(event.name),
            _values(event, texts),
            st.integers(FIRST_S, FIRST_S + round(hours * 3_600)),
            st.fixed_dictionaries({tag: choices[tag] for tag in found.tags.get(event.name, {})}),
        )
        for event in plan.events.values()
    ]
    return st.lists(st.one_of(each), min_size=1, max_size=max_size)


def _values(event: EventType, texts: tuple[str, ...]) -> st.SearchStrategy[Any]:
    if event.text:
        return st.sampled_from(texts_of(event, texts))
    least, most = (plausible(event, end) for end in (1 - LIMIT, LIMIT - 1))
    least, most = (max(least, -LARGEST), min(most, LARGEST)) if least < LARGEST else (least, most)
    return st.integers(least, max(least, most)).map(event.resolution.real)
