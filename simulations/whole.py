"""A whole program on real cores, a gateway's core and the oracle, with made-up readings.

`lasp-edge check` finds this by an entry point: what users declare knows no agent and no simulation.

    >>> from lasp_edge.examples.greenhouse import program
    >>> found = whole(program.plan(), {"temperature": {"room"}})
    >>> found.wrong, found.doubts
    ([], [])
"""

from collections.abc import Mapping, Set

from lasp_edge.checking.readings import made_up
from lasp_edge.checking.trial import Findings
from lasp_edge.language.plan import Plan
from simulations.elsewhere import differences
from simulations.oracle import Reading
from simulations.replay import ReplayedFleet, replaying


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
    readings = [Reading(*each) for each in made_up(plan, tags, given)]
    found = Findings()
    if not readings:
        return found
    with replaying(plan, readings) as replay:
        found.wrong += [*map(_with_remedy, replay.failures), *replay.compared.wrong()]
        found.doubts += _without_rows(replay)
    if program:
        found.wrong += differences(program, plan, readings)
    return found


def _without_rows(replay: ReplayedFleet) -> list[str]:
    """Return a line for each window and result of which nothing came."""
    return [
        f"{what}: no made-up reading counts in it; is what its functions ask for possible?"
        for what, count in replay.compared.known.items()
        if not count and what.startswith(("window ", "result "))
    ]


def _with_remedy(failure: str) -> str:
    """Return a failure with what to write, where that is known."""
    if "the partial is out of range" in failure:
        return (
            f"{failure}: its columns stay below 2**62; fold smaller numbers, or say what readings "
            "are plausible, by event(..., least=, most=)"
        )
    return failure
