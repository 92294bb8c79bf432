"""The status of a window row, and when a new revision of it is appended.

A window's result is a function of the panes that have come in, and the frontier says up to when all
of them have. `TRANSITIONS` is the only statement of how the two make a status; the cloud writes its
SQL from it.

    tentative    the frontier has not passed the window's end: more panes may come
    final        it has: nothing more was expected
    revised      a later result differs from one that was final, or a device that the row lacked
                 has sent all of it since

A row is appended where the result or the status differs from the newest row of its window, and its
revision is one more than that row's; the first is 0.

    >>> status_after(None, passed=False, differs=True)
    'tentative'
    >>> status_after("tentative", passed=True, differs=True)
    'final'
    >>> status_after("final", passed=True, differs=False)
    'final'
"""

from functools import cache
from typing import Final, NamedTuple

TENTATIVE: Final = "tentative"
FINAL: Final = "final"
REVISED: Final = "revised"
STATUSES: Final = (TENTATIVE, FINAL, REVISED)
"""In the order in which a window goes through them."""


class Transition(NamedTuple):
    """One case of how a status follows from the one before; None stands for either.

    Attributes:
        before: the newest row's status; None where the window has no row yet.
        passed: whether the frontier has passed the window's end.
        differs: whether the result differs from the newest row's, or a device that this names has
            sent all of it since.
        after: the status that follows.
    """

    before: str | None
    passed: bool | None
    differs: bool | None
    after: str


TRANSITIONS: Final = (
    Transition(None, passed=False, differs=None, after=TENTATIVE),
    Transition(None, passed=True, differs=None, after=FINAL),
    Transition(TENTATIVE, passed=False, differs=None, after=TENTATIVE),
    Transition(TENTATIVE, passed=True, differs=None, after=FINAL),
    Transition(FINAL, passed=None, differs=False, after=FINAL),
    Transition(FINAL, passed=None, differs=True, after=REVISED),
    Transition(REVISED, passed=None, differs=None, after=REVISED),
)
"""Exactly one case applies, whatever the newest row, the frontier and the result are."""


@cache
def status_after(before: str | None, *, passed: bool, differs: bool) -> str:
    """Return the status of a window's result.

    The arguments are those of a `Transition`.
    """
    (after,) = (
        case.after
        for case in TRANSITIONS
        if case.before == before
        and case.passed in {None, passed}
        and case.differs in {None, differs}
    )
    return after
