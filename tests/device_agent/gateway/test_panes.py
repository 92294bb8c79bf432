"""The panes that a gateway holds, and whose entries are one total."""

from types import SimpleNamespace

import pytest

from device_agent.gateway import panes
from device_agent.gateway.kept import KeptEntry, WriterOfPanes
from device_agent.gateway.panes import FleetPanes
from lasp_edge import folds

STREAM = 7


class Scopes:
    """Regimes of a fleet in which some devices have their own."""

    def __init__(self):
        self.own = set()

    def scope(self, _stream, device):
        return device if device in self.own else ""

    def stream(self, _stream):
        return SimpleNamespace(fold=folds.sum())


@pytest.mark.parametrize("most", [0, 100])
def test_who_gets_regimes_of_its_own_is_in_no_total_of_the_others(monkeypatch, most):
    """Whether memory holds the entries of a pane or its totals alone."""
    monkeypatch.setattr(panes, "MOST_ENTRIES", most)
    scopes = Scopes()
    devices = [WriterOfPanes(name, 1, 1) for name in ("attic", "cellar")]
    entries = [KeptEntry(STREAM, 0, "", each, 1, (5,)) for each in devices]
    held = FleetPanes(scopes, SimpleNamespace(entries=lambda *_span: entries))
    for own, total in ((set(), 10), ({"attic"}, 5)):
        scopes.own = own
        held.clear()
        ((_, found),) = held.totals(STREAM, ("", ""), range(1))
        held.forget()
        assert found.partial == (total,)
