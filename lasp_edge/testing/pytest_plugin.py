"""Fixtures for pytest, which finds them by an entry point: `replay` and `fleet`."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lasp_edge.checking.whole import fleet_entry
from lasp_edge.language.program import Program
from lasp_edge.testing.replay import ReplayOutcome
from lasp_edge.testing.replay import replay as run_replay


@pytest.fixture
def replay() -> Callable[..., ReplayOutcome]:
    """Return `lasp_edge.testing.replay`."""
    return run_replay


@pytest.fixture
def fleet() -> Iterator[Callable[..., Any]]:
    """Return what makes a `simulations.fleet.Fleet` of a program; it is closed after the test.

    Its arguments are the program, and those of `Fleet`: `size=`, `seed=`, `faults=` and others.
    """
    made: list[Any] = []
    kind = fleet_entry("fleet").load()

    def make(program: Program, *, size: int = 2, seed: int = 0, **more: Any) -> Any:
        made.append(kind(program.plan(), size=size, seed=seed, **more))
        return made[-1]

    yield make
    for each in made:
        each.close()
