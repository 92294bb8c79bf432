"""A whole program on real cores, a gateway's core and the oracle, with made-up readings.

`lasp-edge check` finds this by an entry point: what users declare knows no agent and no simulation.

    >>> from lasp_edge.examples.greenhouse import program
    >>> found = whole(program.plan(), {"temperature": {"room"}})
    >>> found.wrong, found.doubts
    ([], [])
"""

import re
from collections.abc import Iterable, Mapping, Set

from lasp_edge.checking.readings import made_up, made_up_entries
from lasp_edge.checking.trial import Findings
from lasp_edge.language.plan import Plan
from simulations.elsewhere import differences
from simulations.oracle import Reading
from simulations.replay import DAY_US, ReplayedFleet, replaying

_NUMBER = re.compile(r"-?\d[\d.]*(e[+-]?\d+)?")
RARE = "a function that few readings reach"
"""Who asks for a tag that the trial of each function by itself did not find."""

EVER_US = 40_000 * DAY_US
"""For how long readings are taken in: their times are made up, whatever the program's windows."""
ROUNDS = 8
"""Times that the program is run, at most, while its functions ask for tags that readings lack."""


def whole(
    plan: Plan,
    tags: Mapping[str, Set[str]],
    given: Mapping[str, str] | None = None,
    program: str = "",
) -> Findings:
    """Return the findings of running a whole program.

    Args:
        plan: of the program.
        tags: event -> the tags that its readings must have.
        given: all tags of all readings; None: those that they must have.
        program: `MODULE:program`, for another process to load; "": it is not run elsewhere.
    """
    found, readings = Findings(), list[Reading]()
    asked = {event: set(each) for event, each in tags.items()}
    for left in reversed(range(ROUNDS)):
        readings = [
            Reading(*each)._replace(tags=_LackingTags(each.tags))
            for each in made_up(plan, asked, given)
        ]
        if not readings:
            return found
        with replaying(plan, readings, entries=made_up_entries(plan), retain_us=EVER_US) as replay:
            needed = _needed(replay.failures, readings) if left and given is None else {}
            if not needed:
                failures = map(_with_remedy, _of_each_kind(replay.failures))
                found.wrong += [*failures, *replay.compared.wrong()]
                found.doubts += _without_rows(replay)
                break
        for event, lacking in needed.items():
            asked.setdefault(event, set()).update(lacking)
            found.tags.setdefault(event, {}).update({tag: [RARE] for tag in sorted(lacking)})
    if program:
        found.wrong += differences(program, plan, readings)
    return found


class _LackingTags(dict[str, str]):
    """The tags of a reading; notes which it was asked for and lacks."""

    def __init__(self, tags: Mapping[str, str]) -> None:
        super().__init__(sorted(tags.items()))
        self.lacking: set[str] = set()

    def __missing__(self, name: str) -> str:
        self.lacking.add(name)
        raise KeyError(name)


def _needed(failures: list[str], readings: Iterable[Reading]) -> dict[str, set[str]]:
    """Return event -> the tags whose lack made a function fail."""
    found: dict[str, set[str]] = {}
    for reading in readings:
        for tag in reading.tags.lacking if isinstance(reading.tags, _LackingTags) else ():
            if any(f"KeyError: {tag!r}" in failure for failure in failures):
                found.setdefault(reading.event, set()).add(tag)
    return found


def _without_rows(replay: ReplayedFleet) -> list[str]:
    """Return a line for each window and result of which nothing came."""
    return [
        f"{what}: no made-up reading counts in it; is what its functions ask for possible?"
        for what, count in replay.compared.known.items()
        if not count and what.startswith(("window ", "result "))
    ]


def _of_each_kind(failures: Iterable[str]) -> list[str]:
    """Return the first of the failures that differ in their numbers alone, and how many do.

    >>> _of_each_kind(["f: got 0.25", "f: got -1e-05", "g"])
    ['f: got 0.25 (and 1 more with other numbers)', 'g']
    """
    kinds: dict[str, list[str]] = {}
    for failure in failures:
        kinds.setdefault(_NUMBER.sub("#", failure), []).append(failure)
    return [
        first + (f" (and {len(others)} more with other numbers)" if others else "")
        for first, *others in kinds.values()
    ]


def _with_remedy(failure: str) -> str:
    """Return a failure with what to write, where that is known."""
    if "the partial is out of range" in failure:
        return (
            f"{failure}: its columns stay below 2**62; fold smaller numbers, or say what readings "
            "are plausible, by event(..., least=, most=)"
        )
    return failure
