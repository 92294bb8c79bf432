"""What tests of the benchmarks share."""

import gc

import pytest


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep measurements from Python's collector, in which pytest's own objects are frozen.

    Each would look through all of them, and leave them unfrozen for every test that follows.
    """
    for name in ("collect", "freeze", "unfreeze"):
        monkeypatch.setattr(gc, name, lambda: 0)
