"""A store of items in memory: the port of an engine by its definition, and readings at random."""

from lasp_edge.event import StreamItem
from lasp_edge.ordered.cells import PRESENT, RETRACTED, Item
from lasp_edge.ordered.item_store import FOR_EVER_US, Cut
from lasp_edge.ordered.log import BEFORE_ALL_US

SECOND_US = 1_000_000


class MemoryItems:
    """Keeps everything."""

    def __init__(self):
        self.stored, self.cuts, self.kept, self.era = {}, {}, None, 0

    def progress(self):
        return self.kept

    def put_progress(self, progress):
        self.kept = progress

    def enter(self, era):
        self.era = era

    def cut_at(self, time_us):
        cuts = {at: cut for (era, at), cut in self.cuts.items() if era == self.era}
        first = Cut(BEFORE_ALL_US, None, min(cuts, default=FOR_EVER_US))
        return cuts.get(max((at for at in cuts if at <= time_us), default=None), first)

    def put_cut(self, cut):
        if cut.states is not None:
            self.cuts[self.era, cut.time_us] = cut

    def cells(self, event, least_us, end_us):
        return [
            (where, dict(cell))
            for where, cell in self.stored.items()
            if where.event == event and least_us <= where.cell_us < end_us
        ]

    def cell(self, where):
        return dict(self.stored[where])

    def put_cell(self, where, cell, end_us):
        assert end_us >= where.cell_us
        self.stored[where] = dict(cell)

    def keep_cell(self, where, cell, end_us):
        assert end_us >= where.cell_us
        assert self.stored[where] == cell


def drawn_items(rng, count, seconds=120):
    """Return readings of two devices: some come twice, some are taken back, some before they come.

    A later one is of a later time, most often.
    """
    found = []
    for n in range(count):
        if found and rng.random() < 0.2:
            earlier = rng.choice(found)
            found.append(earlier._replace(retracted=rng.random() < 0.5))
            continue
        at_s = max(0, n * seconds // count - (rng.randrange(seconds) if rng.random() < 0.2 else 0))
        value, device = rng.randrange(9), rng.choice(("pi-1", "pi-2"))
        retracted = rng.random() < 0.1
        found.append(StreamItem("x", at_s * SECOND_US, value, "", device, retracted))
    return found


def present_items(items):
    """Return the (item, device) that are present once all of these have come, in any order."""
    states = {}
    for each in items:
        where = Item(each.time_us, each.value, each.tags), each.device
        is_retracted = each.retracted or states.get(where) == RETRACTED
        states[where] = RETRACTED if is_retracted else PRESENT
    return [where for where, state in states.items() if state == PRESENT]
