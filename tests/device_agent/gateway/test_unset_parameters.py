"""Windows whose parameters nobody set have the rows of those without parameters, row for row."""

import pytest

from crdts import BoundedLWWSet, ControlLog
from device_agent.gateway import panes as panes_module
from device_agent.gateway.kept import FleetChanges, FleetState
from lasp_edge import Program, folds
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.protocol.acceptance import PaneRows
from tests.cloud_tier.lakes import batches
from tests.cloud_tier.support_devices import (
    BEGIN_US,
    SECOND_US,
    history,
    readings_of,
    tick,
)
from tests.device_agent.gateway.support_gateway import GatewayUnderTest, accepted_of
from tests.device_agent.gateway.test_core import ALL


def rooms(*, with_parameter):
    """Return the plan of three windows, each of which may use a parameter."""
    program = Program("rooms")
    temperature = program.event("temperature", resolution="0.01", unit="°C")
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples")
    program.collect(temperature, into=samples)
    program.fold_dynamic(program.fold(samples, folds.mean(), "local_average"), "global_average")
    of = {"source": temperature}
    if with_parameter:
        offset = program.parameter("offset", "0", resolution="0.01")
        of |= {"uses": (offset,), "value": lambda event, at: event.value + at[offset]}
    extremes = folds.struct(min=folds.min(), max=folds.max(), n=folds.count())
    room = {"key": lambda event: event.tags["room"]}
    program.window("by_room", fold=folds.mean(), size_s=60, slide_s=10, **of, **room)
    program.window("odd", fold=extremes, size_s=50, slide_s=20, **of)
    program.window("totals", fold=folds.sum(), size_s=30, **of)
    return program.plan()


PLAIN, UNSET = rooms(with_parameter=False), rooms(with_parameter=True)
SCOPED = ControlLog().set("offset", "pi-1", BEGIN_US + 45 * SECOND_US, "0", "ann")
SCOPED |= SCOPED.set("offset", "", BEGIN_US + 95 * SECOND_US, "0", "ann")


class Sites:
    """The plain windows, and the same with a parameter, at a gateway each, fed alike.

    Args:
        log: of the parameter; no entry of it changes what a reading counts as.
    """

    def __init__(self, log):
        self.plain = GatewayUnderTest(PLAIN, terms=ALL)
        self.other = GatewayUnderTest(UNSET, terms=ALL)
        self.other.keeper.commit(FleetChanges(state=FleetState(control=log)))
        self.regimes = FleetRegimes(UNSET, log)
        self.restart()

    def restart(self):
        self.plain.restart()
        self.other.restart()

    def step(self, rows):
        """Take a batch, and return the rows that each gateway wrote for it."""
        self.plain.step(rows)
        accepted, listening = accepted_of(PLAIN, rows)
        accepted.rows = [self.renamed(each) for each in accepted.rows]
        turn = self.other.core.join(accepted, listening)
        self.other.keeper.commit(turn.changes)
        self.other.rows += turn.changes.rows

    def renamed(self, rows):
        """Return entries under the stream that their device's regimes name there."""
        if not isinstance(rows, PaneRows):
            return rows
        name = next(w.name for w in PLAIN.windows.values() if w.stream == rows.block.stream)
        (pane_us,) = rows.block.panes_us
        (piece,) = self.regimes.of(name, rows.device).regime_at(pane_us).pieces
        return rows._replace(block=rows.block._replace(stream=piece.stream))


def without_stream(rows):
    return sorted(tuple(row._replace(stream=0)) for row in rows)


def recomputed(keeper, at):
    """Return partial and devices of a plain window, from all entries of its panes."""
    window = PLAIN.windows[at.window]
    partial, devices = window.fold.zero, set()
    for (stream, key, pane_us, device, *_), (_, entry) in keeper.panes.items():
        inside = at.start_us <= pane_us < at.start_us + window.size_us
        if inside and (stream, key) == (window.stream, at.key):
            partial = window.fold.combine(partial, entry)
            devices.add(device)
    return partial, len(devices)


@pytest.mark.parametrize("memory", ["enough", "none"])
@pytest.mark.parametrize("log", [ControlLog(), SCOPED], ids=["empty log", "scopes"])
def test_each_row_is_that_of_a_window_without_parameters(monkeypatch, log, memory):
    if memory == "none":
        monkeypatch.setattr(panes_module, "MOST_ENTRIES", 0)
        monkeypatch.setattr(panes_module, "MOST_TOTALS", 0)
    for seed in range(3):
        sites = Sites(log)
        ticks = [tick(n, BEGIN_US + (100 + n) * SECOND_US) for n in (1, 2)]
        rows = history(PLAIN, readings_of(seed), seed) + ticks
        for number, batch in enumerate(batches(rows, seed, count=7)):
            if number % 2:
                sites.restart()
            written = len(sites.plain.rows)
            sites.step(batch)
            for row in sites.plain.rows[written:]:
                truth = recomputed(sites.plain.keeper, row.at)
                assert (row.partial, row.devices_in) == truth, f"replay with seed={seed}"
        assert len(sites.plain.rows) > 100
        found, plain = (without_stream(each.rows) for each in (sites.other, sites.plain))
        assert found == plain, f"replay with seed={seed}"


def test_scopes_are_streams_of_their_own():
    """The law above is about something: pi-1 sends what the others send under other streams."""
    regimes = FleetRegimes(UNSET, SCOPED)
    others, own = (
        {piece.stream for piece in regimes.of("totals", each).pieces} for each in ("pi-0", "pi-1")
    )
    assert (len(others), len(own), len(others & own)) == (2, 2, 1)
