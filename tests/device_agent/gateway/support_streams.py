"""A gateway with streams over a fleet, its devices, and what the oracle makes of their items."""

from crdts import Frontier, Version
from crdts.frontier import Promise
from device_agent.gateway.core import WaitingTerms
from lasp_edge import Program, scans
from lasp_edge.event import tags_text
from lasp_edge.language.streaming import FLEET, graph_of, plain_parts
from lasp_edge.ordered.cells import CELL_US, PRESENT, Item, cell_of, packed
from lasp_edge.ordered.oracle import outputs_of
from lasp_edge.protocol.acceptance import Accepted, PaneRows
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.frontier import Listening
from tests.device_agent.gateway.support_gateway import GatewayUnderTest

FIRST_US = 1_700_000_000_000_000
SECOND_US = 1_000_000
DEVICES = ("pi-0", "pi-1", "pi-2")
TERMS = WaitingTerms(DEVICES, retain_us=3_600 * SECOND_US)


def doors(scan=None, version=1):
    """Return a program of one scan over all doors, and a shared one by room."""
    program = Program("doors")
    door = program.event("door")
    scan = scan or scans.differences()
    program.result(program.scan("all", source=door, scan=scan, version=version))
    by_room = program.scan(
        "by_room", source=door, key=lambda event: event.tags["room"], scan=scans.sessions(gap_s=30)
    )
    program.result(by_room)
    return program.plan()


def made_of(plan, items, name, frontier_us):
    """Return place -> event of the outputs that the oracle makes of doors' items by a frontier."""
    resolution = plan.events["door"].resolution
    content = {
        item.place("door", device): item.event("door", device, resolution)
        for (device, item), state in items.items()
        if state == PRESENT
    }
    return outputs_of(graph_of(plan, FLEET).nodes, {"door": content}, frontier_us)[name]


class Fleet:
    """Devices that send cells of items to a gateway.

    Attributes:
        items: (device, item) -> its state.
    """

    def __init__(self, plan, keeper=None, terms=TERMS):
        self.plan, self.items = plan, {}
        self.gateway = GatewayUnderTest(plan, keeper, terms)
        self._seq, self._ticks = 0, 0
        self._now_us = FIRST_US + 86_400 * SECOND_US

    def restart(self, plan=None):
        """Begin a process, perhaps of another program."""
        self.gateway.plan = plan or self.gateway.plan
        self.gateway.restart()

    def reads(self, device, at_s, value, room="hall", state=PRESENT, tags=None):
        """Let a device read something, or take it back; return the entry that it sends."""
        text = tags_text(tags or {"room": room})
        item = Item(FIRST_US + round(at_s * SECOND_US), value, text)
        self.items[device, item] = max(state, self.items.get((device, item), 0))
        cell_us = cell_of(item.time_us)
        own = {each: state for (of, each), state in self.items.items() if of == device}
        cell = {each: state for each, state in own.items() if cell_of(each.time_us) == cell_us}
        return self.entry(device, cell_us, cell)

    def entry(self, device, cell_us, cell, seq=None, nonce=7):
        """Return a cell as it lands."""
        self._seq += 1
        stream = self.plan.item_streams["door"].stream
        columns = ((packed(cell),),)
        at = (stream, CELL_US, 1, nonce, columns, ("",), (cell_us,), (seq or self._seq,))
        return PaneRows(device, PaneEntries(*at), self._now_us)

    def land(self, entries=(), promised_s=None, devices=DEVICES):
        """Let entries land, and devices promise; return the turn."""
        self._ticks += 1
        accepted = Accepted(rows=list(entries))
        if promised_s is not None:
            low_us, version = FIRST_US + round(promised_s * SECOND_US), Version(1, 7, self._ticks)
            promise = Promise(version, low_us, False, self._now_us)  # noqa: FBT003
            accepted.promises = Frontier(dict.fromkeys(devices, promise))
        return self._join(accepted)

    def _join(self, accepted):
        turn = self.gateway.core.join(accepted, Listening(self._now_us, FIRST_US))
        self.gateway.keeper.commit(turn.changes)
        return turn

    def promise(self, device, promised_s):
        """Let one device promise."""
        self._ticks += 1
        version = Version(1, 7, self._ticks)
        low_us = FIRST_US + round(promised_s * SECOND_US)
        promise = Promise(version, low_us, False, self._now_us)  # noqa: FBT003
        self._join(Accepted(promises=Frontier({device: promise})))

    def pass_time(self, seconds):
        """Let time pass in which nothing comes."""
        self._now_us += seconds * SECOND_US
        self._join(Accepted())

    def rows(self, name):
        """Return place -> (key, parts) of a result's rows that are there."""
        rows = self.gateway.core.streams.rows(name)
        return {row.place: (row.key, row.parts) for row in rows}

    def statuses(self, name):
        """Return place -> status and revision."""
        return {place: (row.status, row.revision) for place, row in self.stored(name).items()}

    def stored(self, name):
        return dict(self.gateway.core.streams.stored(name))

    def truth(self, name):
        """Return what the oracle makes of all items, by the same frontier."""
        result, frontier_us = self.plan.stream_results[name], self.gateway.core.streams.frontier_us
        found = made_of(self.plan, self.items, name, frontier_us)
        return {at: (each.key, plain_parts(result, each.value)) for at, each in found.items()}

    def check(self):
        for name in self.plan.fleet_results:
            assert self.rows(name) == self.truth(name), name
