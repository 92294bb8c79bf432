"""A device whose program has streams, and what they must have come to."""

from crdts import ORSet
from lasp_edge import Event, Program, folds, scans
from lasp_edge.language.streaming import graph_of
from lasp_edge.ordered.item_store import FOR_EVER_US
from lasp_edge.ordered.oracle import outputs_of
from lasp_edge.ordered.places import reading_place
from tests.device_agent.agents import NOW_US, Device

SECOND_US = 1_000_000


def metered():
    """Return a program of meters: what was used, by minute, and when a tap was left open."""
    program = Program("water")
    litres = program.event("litres", resolution="0.5")
    alarms = program.declare(ORSet(), "alarms")
    used = program.scan(
        "used",
        source=litres,
        scan=scans.differences(reset=True),
        key=lambda event: event.tags.get("tap", ""),
        per_device=True,
    )
    program.window(
        "by_minute", source=used, fold=folds.mean(), size_s=60, slide_s=20, key=lambda e: e.key
    )
    program.result(used)
    flowing = program.filter(used, lambda event: event.value > 0, "flowing")
    runs = program.scan(
        "runs",
        source=flowing,
        scan=scans.sessions(gap_s=30, fold=folds.sum()),
        key=lambda event: event.key,
        per_device=True,
    )
    program.result(runs)
    total = program.scan(
        "total",
        source=litres,
        scan=scans.running(lambda state, event: state + int(event.value), 0),
        per_device=True,
    )
    program.result(total, parts={"litres": "1"})

    @program.on_result(runs)
    def ran(row, update):
        update(alarms, ORSet.add, f"{row.key} {row.parts['start_us']} {row.parts['sum']}")

    return program.plan()


class Metered(Device):
    """A device of that program, and the readings that it was given."""

    def __init__(self, directory, program=None, **more):
        self.present, self.taken_back = set(), set()
        super().__init__(directory, program or metered(), **more)

    def meter(self, readings, **more):
        """Take readings of (seconds after the beginning, litres, tap)."""
        times = [NOW_US + round(at_s * SECOND_US) for at_s, _, _ in readings]
        values, tags = [v for _, v, _ in readings], [{"tap": tap} for _, _, tap in readings]
        self.now_us = max([self.now_us, *times])
        self.present |= {(at, v, tap) for at, (_, v, tap) in zip(times, readings, strict=True)}
        self.take(values, times, tags, name="litres", **more)

    @property
    def content(self):
        """The readings as the oracle takes them."""
        found = {}
        for at_us, value, tap in self.present - self.taken_back:
            event = Event("litres", float(value), at_us, self.name, {"tap": tap})
            text = f'{{"tap":"{tap}"}}'
            found[reading_place("litres", text, round(value * 2), at_us, self.name)] = event
        return found

    @property
    def alarms(self):
        return set(self.core.variables.shared()["alarms"])

    @property
    def engine(self):
        return self.core.streams.engine

    def truth(self):
        """Return what every stream must say."""
        nodes = graph_of(self.program, self.name).nodes
        return outputs_of(nodes, {"litres": self.content}, self.engine.frontier_us, self.name)

    def said(self, result):
        """Return the rows of a result, from the store: place -> value and status."""
        history = self.core.streams._history
        history.read = self.store.history
        found = {}
        for _, rows in history.rows(result, 0, FOR_EVER_US):
            found |= rows
        return found

    def values(self, result):
        rows = sorted(self.said(result).items())
        return [row.event.value for _, row in rows if row.event is not None]

    def check(self):
        """Compare results, states and windows with the oracle."""
        truth = self.truth()
        for name in self.program.stream_results:
            rows = self.said(name)
            here = {place: row.event.value for place, row in rows.items() if row.event is not None}
            assert here == {place: event.value for place, event in truth[name].items()}, name
            frontier_us = self.engine.frontier_us
            early = [
                p for p, row in rows.items() if row.status == "tentative" and p[0] < frontier_us
            ]
            assert not early
        for window in self.program.windows.values():
            assert self.folded(window) == self.to_fold(window, truth)

    def folded(self, window):
        """Return (key, pane start) -> the partial of all lives."""
        found = {}
        for pane, row in self.rows():
            if pane.stream == window.stream:
                before = found.get((pane.key, pane.pane_us), window.fold.zero)
                found[pane.key, pane.pane_us] = window.fold.combine(before, row.partial)
        return {where: partial for where, partial in found.items() if any(partial)}

    def to_fold(self, window, truth):
        found, fold = {}, window.fold
        key = self.program.functions.keys[window.name]
        for event in truth[window.source.name].values():
            where = (key(event), event.time_us // window.span_us * window.span_us)
            lifted = fold.lift(window.resolution.quantise(event.value), event.time_us)
            found[where] = fold.combine(found.get(where, fold.zero), lifted)
        return {where: partial for where, partial in found.items() if any(partial)}
