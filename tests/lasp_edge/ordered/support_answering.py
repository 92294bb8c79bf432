"""A device of an exchange of parts (`support_parted`): it steps its half of a scan, and answers."""

from lasp_edge.event import Event
from lasp_edge.ordered.answers import kept_answers, sent_answers, stated_at, statement
from lasp_edge.ordered.cells import cell_of
from lasp_edge.ordered.deltas import applied, minus
from lasp_edge.ordered.parted import LeafStage, basis_of, is_about_order, sent_at

GATEWAYS, LAKE = ("hub", "spare"), "lake"


def key_of(event):
    return event.tags["house"]


class Device:
    """A device: what it has stored, what each sink has of it, and its half of the scan."""

    def __init__(self, name, scan):
        self.name, self.scan = name, scan
        self.items, self.ordered, self.places, self.answers = {}, {}, {}, {}
        self.followed, self.version, self.low_us, self.number, self.beats = "", 0, 0, 0, 0
        self.missing = {sink: {} for sink in (*GATEWAYS, LAKE)}
        self.taken = {sink: set() for sink in self.missing}
        self.begin()

    def begin(self):
        branches = dict.fromkeys(self.scan.tells_apart, 0)
        self.stage = LeafStage(self.scan, key_of, self.name, branches)
        self.content, self.shared, self.rows = {}, {}, {}
        self.evaluate()

    def evaluate(self):
        shared = {
            sent_at(place).place(""): Event("", (known, share), place[0], "", {}, key)
            for place, (key, known, share, *_) in self.places.items()
        }
        deltas = [minus(self.items, self.content), minus(shared, self.shared)]
        self.content, self.shared = dict(self.items), shared
        delta = self.stage.push(deltas)
        rows = {p: (o, n and n.value[1]) for p, (o, n) in delta.items() if not is_about_order(p)}
        self.rows = applied(rows, self.rows)
        about = {place: c for place, c in delta.items() if is_about_order(place)}
        kept = sent_answers(self.kept(about), (1, self.beats))
        sent = {at: new and new.value for at, (_, new) in kept.items()}
        for at, value in (sent | self.stated()).items():
            if value != self.answers.get(at, (0, None))[1]:
                self.number += 1
                self.answers[at] = (self.number, value)
                for missing in self.missing.values():
                    missing[at] = self.number

    def answer_again(self):
        """Send all answers again, under greater numbers."""
        for at, (_, value) in self.answers.items():
            self.number += 1
            self.answers[at] = (self.number, value)
            for missing in self.missing.values():
                missing[at] = self.number

    def stated(self):
        """Return from which shares of each cell it has gone on, where that is not the same."""
        bases = {cell_of(place[0]): [] for place in self.places}
        for place, (_, known, share, *_) in self.places.items():
            if known and not self.scan.is_share_constant:
                bases[cell_of(place[0])].append(basis_of(place, share))
        found = {}
        for cell_us, gone_on in bases.items():
            at = stated_at(cell_us).place(self.name)
            value = statement(gone_on, (1, self.beats))[1]
            if value[:2] != self.answers.get(at, (0, (0, b"")))[1][:2] and (
                gone_on or at in self.answers
            ):
                found[at] = value
        return found

    @staticmethod
    def kept(delta):
        return kept_answers(delta)

    def low(self, sink):
        """Return the promise to a sink."""
        return min([*self.owed(sink), self.low_us])

    def owed(self, sink):
        """Return the times of what has not arrived at a sink."""
        owed = [place[0] for place in self.missing[sink]]
        return owed + [place[0] for place in self.ordered if place not in self.taken[sink]]

    def follow(self, gateway, version, places):
        if self.is_newer(gateway, version):
            self.followed, self.version, self.places = gateway, version, places

    def is_newer(self, gateway, version):
        return gateway != self.followed or version > self.version
