"""An exchange of parts on virtual steps: three devices, two gateways and a lake, with all faults.

Devices follow one gateway, and the other one if that dies; a lake publishes nothing. Messages are
lost, doubled and reordered, devices and gateways are killed. After each step all that is final is
compared with the scan over all events in one order, which the oracle computes.
"""

from collections import defaultdict
from random import Random

from lasp_edge.event import Event
from lasp_edge.ordered.graph import StreamNode
from lasp_edge.ordered.oracle import outputs_of
from lasp_edge.ordered.parted import NOWHERE, DeviceHalf, EvaluatorHalf
from lasp_edge.ordered.places import reading_place
from lasp_edge.ordered.stages import ScanStage

NEVER_US = 1 << 60
DEVICES = ("d0", "d1", "d2")
GATEWAYS, LAKE = ("hub", "spare"), "lake"
DIES, NEW, CALM, LAST = 80, 60, 200, 600
"""Steps at which a gateway dies or a new device begins, after which no fault befalls, and at which
a run has failed."""


def key_of(event):
    return event.tags["house"]


def reading(name, value, time_us, device, keys):
    tags = {"house": str(value % keys)}
    place = reading_place(name, tags["house"], value, time_us, device)
    return place, Event(name, float(value), time_us, device, tags)


class Device:
    """A device: what it has stored, what each sink has of it, and its half of the scan."""

    def __init__(self, name, scan):
        self.name, self.scan = name, scan
        self.items, self.ordered, self.places = {}, {}, {}
        self.followed, self.version, self.until, self.low_us = "", 0, NOWHERE, 0
        self.missing = {sink: {} for sink in (*GATEWAYS, LAKE)}
        self.taken = {sink: set() for sink in self.missing}
        self.begin()

    def begin(self):
        parts = self.leaf.parts if hasattr(self, "leaf") else {}
        self.leaf = DeviceHalf(self.scan, key_of, self.items, parts)
        self.evaluate()

    def evaluate(self):
        self.leaf.items = self.items
        for place in self.leaf.evaluate(self.places):
            for missing in self.missing.values():
                missing[place] = self.leaf.parts[place].version

    def low(self, sink):
        """Return the promise to a sink, and how far it has answered there."""
        return min([*self.owed(sink), self.low_us]), self.leaf.progress(self.missing_at(sink))

    def owed(self, sink):
        """Return the times of what has not arrived at a sink."""
        owed = [place[0] for place in self.missing[sink]]
        return owed + [place[0] for place in self.ordered if place not in self.taken[sink]]

    def missing_at(self, sink):
        return self.missing[sink]

    def follow(self, gateway, version, places, until):
        if self.is_newer(gateway, version):
            self.followed, self.version = gateway, version
            self.places, self.until = places, until

    def is_newer(self, gateway, version):
        return gateway != self.followed or version > self.version


class Sink:
    """An evaluator, and what it has stored."""

    def __init__(self, scan):
        self.scan, self.is_followed = scan, False
        self.items, self.parts, self.lows = {}, defaultdict(dict), {}
        self.beats, self.excluded, self.has_new = {}, frozenset(), False
        self.version, self.published = 0, None
        self.root = None
        self.begin()

    def begin(self):
        whole = self.stored_whole() if self.root else {}
        self.root = EvaluatorHalf(self.scan, key_of, whole)
        for device, parts in self.parts.items():
            self.root.take(device, parts)
        self.evaluate()

    def stored_whole(self):
        return self.root.whole

    def evaluate(self):
        self.root.items, self.root.is_followed = self.items, self.is_followed
        self.root.progress = {device: progress for device, (_, progress) in self.lows.items()}
        self.root.evaluate(self.counting)
        says = self.root.places, self.settled()
        if says != self.published:
            self.version, self.published = self.version + 1, says

    @property
    def counting(self):
        return [
            d for d in DEVICES if d not in self.excluded and (d in self.lows or not self.has_new)
        ]

    def settled(self):
        lows = [self.lows.get(device, (0, None))[0] for device in self.counting]
        return self.root.settled(min(lows, default=0), self.counting)

    def take(self, device, parts, ordered):
        self.items.update(ordered)
        self.root.take(device, parts)
        self.parts[device] = {p: of[device] for p, of in self.root.parts.items() if device in of}

    def hear(self, device, number, low, progress):
        before, _ = self.lows.get(device, (0, None))
        if number >= self.beats.get(device, 0):
            self.beats[device] = number
            self.lows[device] = max(before, low), progress


class Exchange:
    """One run: what happens is drawn from a seed."""

    def __init__(self, scan, seed, *, fault="", keys=1, count=90):
        self.scan, self.rng, self.fault = scan, Random(seed), fault
        self.calm = self.is_dead = False
        self.late = 0.1 if fault == "late" else 0.0
        self.away = "d1" if fault == "away" else None
        local = [name for name in scan.tells_apart if name not in ("b", "minute")]
        (ordered,) = {"b", "minute"} & set(scan.tells_apart)
        self.local, time_us = frozenset(local), 10
        self.todo, self.held, content = {d: [] for d in DEVICES}, {d: [] for d in DEVICES}, {}
        for _ in range(count):
            time_us += self.rng.randrange(3)
            name = ordered if self.rng.randrange(9) == 0 else self.rng.choice(local)
            found = reading(name, self.rng.randrange(160), time_us, self.rng.choice(DEVICES), keys)
            self.todo[found[1].device].append(found)
            content[found[0]] = found[1]
        nodes = [StreamNode("s", ScanStage(scan, "s", key_of), ("x",))]
        truth = outputs_of(nodes, {"x": content})["s"]
        self.truth = {place: event.value for place, event in truth.items()}
        self.devices = {name: Device(name, scan) for name in DEVICES}
        self.sinks = {name: Sink(scan) for name in (*GATEWAYS, LAKE)}
        self.flying = []

    def run(self):
        """Run until all rows are those of the truth; return what went wrong, if anything did."""
        for step in range(LAST):
            self.calm = step > CALM
            for device in self.devices.values():
                self.turn(device, step)
            self.is_dead = self.fault == "gateway dies" and step > DIES
            gone = {self.away} if self.away and CALM // 2 < step <= CALM else ()
            for name, sink in self.sinks.items():
                sink.is_followed = name == GATEWAYS[self.is_dead]
                if not self.calm and self.rng.random() < 0.02:
                    sink.begin()
                sink.excluded, sink.has_new = frozenset(gone), self.fault == "new"
                sink.evaluate()
            self.publish(GATEWAYS[self.is_dead])
            self.deliver()
            has_late = self.fault in {"late", "away", "new"}
            wrong = self.torn() or (None if has_late else self.too_early())
            if wrong:
                return f"step {step}: {wrong}"
            if self.calm and self.is_done():
                return None
        return "it does not end"

    def turn(self, device, step):
        """A device reads, evaluates, may be killed, and sends."""
        if self.fault == "new" and device.name == DEVICES[-1] and step < NEW:
            return
        todo, held, rng = self.todo[device.name], self.held[device.name], self.rng
        if todo and (self.calm or rng.random() < 0.5):
            found = todo.pop(0)
            device.low_us = max(device.low_us, found[0][0])
            self.read(device, *found) if rng.random() >= self.late else held.append(found)
        elif not todo:
            device.low_us = NEVER_US
        if self.calm and held and rng.random() < 0.3:
            self.read(device, *held.pop())
        device.evaluate()
        if not self.calm and rng.random() < 0.015:
            device.begin()
        if self.is_cut(device.name) or not (self.calm or rng.random() < 0.4):
            return
        for sink in self.sinks:
            parts = {place: device.leaf.parts[place] for place in device.missing[sink]}
            items = {p: e for p, e in device.ordered.items() if p not in device.taken[sink]}
            self.send(device.name, sink, "panes", parts, items)
            self.send(device.name, sink, "beat", step, *device.low(sink))

    def read(self, device, place, event):
        (device.items if event.name in self.local else device.ordered)[place] = event

    def publish(self, name):
        sink = self.sinks[name]
        if self.calm or self.rng.random() < 0.5:
            for device in DEVICES:
                self.send(name, device, "places", sink.version, *sink.published)

    def is_cut(self, name):
        is_away = name == self.away and not self.calm
        return is_away or (self.is_dead and name == GATEWAYS[0])

    def send(self, source, to, *message):
        if self.rng.random() < 0.2 or self.is_cut(source) or self.is_cut(to):
            return
        for _ in range(1 + (self.rng.random() < 0.2)):
            self.flying.append((source, to, message))

    def deliver(self):
        self.rng.shuffle(self.flying)
        for _ in range(len(self.flying) if self.calm else self.rng.randrange(8)):
            if not self.flying:
                return
            source, to, (kind, *given) = self.flying.pop()
            if kind == "places":
                if source == GATEWAYS[self.is_dead]:  # who is dead is not followed
                    self.devices[to].follow(source, *given)
            elif kind == "beat":
                self.sinks[to].hear(source, *given)
            elif kind == "panes":
                self.sinks[to].take(source, *given)
                self.send(
                    to, source, "ack", {p: part.version for p, part in given[0].items()}, given[1]
                )
            else:
                device, (versions, items) = self.devices[to], given
                missing = device.missing[source]
                device.missing[source] = {p: v for p, v in missing.items() if versions.get(p) != v}
                device.taken[source] |= items.keys()

    def rows_of_devices(self):
        return {p: v for device in self.devices.values() for p, v in device.leaf.rows.items()}

    def torn(self):
        """Return a row that was made of two shares, if the scan shows it."""
        rows = self.sinks[GATEWAYS[0]].root.rows if self.scan.name == "epochs" else {}
        for place, (epoch, count, total) in rows.items():
            if total != epoch * count:
                return f"torn at {place}: {epoch} {count} {total}"
        return None

    def too_early(self):
        """Return what is final and wrong, or final and missing."""
        for sink in self.sinks.values():
            settled, rows = sink.settled(), sink.root.rows
            in_order = {p for p in self.truth if p < settled and p[2][0] not in self.local}
            for place in sorted(in_order | {place for place in rows if place < settled}):
                if rows.get(place) != self.truth.get(place):
                    return f"final at {place}: {rows.get(place)}, not {self.truth.get(place)}"
        for device in self.devices.values():
            settled = min((device.low_us,), device.until)
            for place, value in device.leaf.rows.items():
                if place < settled and self.truth.get(place) != value:
                    return f"final on {device.name} at {place}: {value}"
        return None

    def is_done(self):
        if any(self.todo.values()) or any(self.held.values()):
            return False
        rows, living = self.rows_of_devices(), list(self.sinks.values())[self.is_dead :]
        are_settled = all(sink.settled()[0] >= NEVER_US for sink in living)
        return are_settled and all(rows | sink.root.rows == self.truth for sink in living)
