"""What the gateways of these tests keep their state in."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import pytest

from device_agent.gateway.store import FleetStore
from simulations.world.keeper import SimulatedKeeper

Keeper = SimulatedKeeper | FleetStore


@pytest.fixture
def new_keeper(tmp_path: Path) -> Iterator[Callable[[str], Keeper]]:
    """Give empty keepers of a kind, `tables` in memory or a `file`; the files are closed."""
    numbers = count()
    with ExitStack() as opened:

        def made(kind: str) -> Keeper:
            if kind == "tables":
                return SimulatedKeeper()
            store = FleetStore(tmp_path / f"gateway-{next(numbers)}")
            return opened.enter_context(closing(store))

        yield made


@pytest.fixture(params=["tables", "file"])
def keeper(request: pytest.FixtureRequest, new_keeper: Callable[[str], Keeper]) -> Keeper:
    """One of each kind, in turn."""
    return new_keeper(request.param)
