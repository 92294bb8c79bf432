"""An exchange of parts on virtual steps: three devices, two gateways and a lake, with all faults.

Devices follow one gateway, and the other one if that dies; a lake publishes nothing. Messages are
lost, doubled and reordered, devices and gateways are killed. After each step all that is final is
compared with the scan over all events in one order, which the oracle computes.
"""

from collections import defaultdict
from random import Random

from lasp_edge.event import Event
from lasp_edge.ordered.deltas import applied, minus
from lasp_edge.ordered.gathered import GatherStage, answers_of
from lasp_edge.ordered.gathering import Gathering, Promised, Waited
from lasp_edge.ordered.graph import StreamNode
from lasp_edge.ordered.oracle import outputs_of
from lasp_edge.ordered.parted import (
    RootStage,
    RowsStage,
    sent_at,
)
from lasp_edge.ordered.places import reading_place
from lasp_edge.ordered.short_answers import ANSWER
from lasp_edge.ordered.stages import ScanStage, UnionStage
from tests.lasp_edge.ordered.support_answering import GATEWAYS, LAKE, Device, key_of

NEVER_US = 1 << 60
DEVICES = ("d0", "d1", "d2")
DIES, NEW, CALM, LAST = 80, 60, 200, 600
"""Steps at which a gateway dies or a new device begins, after which no fault befalls, and at which
a run has failed."""


def reading(name, value, time_us, device, keys):
    tags = {"house": str(value % keys)}
    place = reading_place(name, tags["house"], value, time_us, device)
    return place, Event(name, float(value), time_us, device, tags)


def lie(value):
    """Return an answer with what nobody can join in place of what was made."""
    if value is None or value[0] != ANSWER or not value[2]:
        return value
    return (*value[:2], ("x", "x", "x"), *value[3:])


class Sink:
    """An evaluator, and what it has stored."""

    def __init__(self, scan):
        self.scan = scan
        self.items, self.answers, self.marks, self.lows = {}, defaultdict(dict), {}, {}
        self.beats, self.promised, self.excluded, self.has_new = {}, {}, frozenset(), False
        self.version, self.published, self.settled_us = 0, None, 0
        self.stored = ()
        self.begin()

    def begin(self):
        key = None if self.scan.name == "" else key_of
        self.stages = (
            GatherStage(key, [1]),
            RootStage(self.scan, "root"),
            RowsStage(self.scan.name),
        )
        self.gathering = Gathering(self.scan, *self.stored_records())
        self.content, self.rows = ({}, {}, {}), {}
        self.evaluate()

    def stored_records(self):
        answers = defaultdict(dict)
        for of_device in self.answers.values():
            content = {at: Event("", value, 0, "", {}) for at, (_, value) in of_device.items()}
            for place, answer in answers_of({a: e for a, e in content.items() if e.value}):
                answers[place][answer.device] = answer
        return (*self.stored, answers) if self.stored else ()

    def evaluate(self):
        self.push()
        for _ in range(2 * len(self.items) + 2):
            marks = self.gathering.marks(Waited(self.promises()), self.frontier_us())
            if not marks:
                break
            self.marks.update(marks)
            self.push()
        else:
            raise AssertionError("marks do not end")
        self.stored = (dict(self.gathering.records),)
        if self.gathering.records != self.published:
            self.version, self.published = self.version + 1, dict(self.gathering.records)
        self.settled_us = max(self.settled_us, self.settled())

    def push(self):
        answers = {
            at: Event("leaf", value, at[0], "", {})
            for of_device in self.answers.values()
            for at, (_, value) in of_device.items()
            if value is not None
        }
        marks = {
            sent_at(place).place(""): Event("", mark, place[0], "", {})
            for place, mark in self.marks.items()
            if mark
        }
        now, before = (self.items, answers, marks), self.content
        self.content = (dict(self.items), answers, marks)
        gather, root, rows = self.stages
        gathered = gather.push([minus(*pair) for pair in zip(now, before, strict=True)])
        stepped = root.push([gathered])
        self.gathering.take(gathered, stepped)
        delta = rows.push([stepped, {}])
        self.rows = applied(
            {p: (old, new and new.value) for p, (old, new) in delta.items()}, self.rows
        )

    @property
    def counting(self):
        return [
            d for d in DEVICES if d not in self.excluded and (d in self.lows or not self.has_new)
        ]

    def promises(self):
        return {
            device: Promised(1, self.beats[device], self.promised[device])
            if device in self.beats
            else None
            for device in self.counting
        }

    def frontier_us(self):
        return min([self.lows.get(device, 0) for device in self.counting], default=0)

    def settled(self):
        return self.gathering.settled_us(self.frontier_us())

    def take(self, device, answers, ordered):
        self.items.update(ordered)
        for at, answer in answers.items():
            if self.is_newer(answer, self.answers[device].get(at)):
                self.answers[device][at] = answer

    @staticmethod
    def is_newer(answer, known):
        return known is None or answer[0] > known[0]

    def hear(self, device, number, low):
        before = self.lows.get(device, 0)
        if number >= self.beats.get(device, 0):
            self.beats[device], self.promised[device] = number, low
            self.lows[device] = max(before, low)


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
            value, device = self.rng.randrange(160), self.rng.choice(DEVICES)
            is_of_all = fault == "one instant" and name == ordered
            for each in DEVICES if is_of_all else (device,):
                found = reading(name, value, time_us, each, keys)
                self.todo[each].append(found)
                content[found[0]] = found[1]
        nodes = [
            StreamNode("u", UnionStage(), ("local", "ordered")),
            StreamNode("s", ScanStage(scan, "s", key_of), ("u",)),
        ]
        sides = {
            side: {p: e for p, e in content.items() if (e.name in local) == (side == "local")}
            for side in ("local", "ordered")
        }
        truth = outputs_of(nodes, sides)["s"]
        self.truth = {place: event.value for place, event in truth.items()}
        self.devices = {name: Device(name, scan) for name in DEVICES}
        self.sinks = {name: Sink(scan) for name in (*GATEWAYS, LAKE)}
        self.flying = []

    def run(self):
        """Run until all rows are those of the truth; return what went wrong, if anything did."""
        for step in range(LAST):
            self.calm = step > CALM
            if self.fault == "lies" and step == CALM + 1:
                self.devices["d1"].answer_again()
            for device in self.devices.values():
                self.turn(device, step)
            self.is_dead = self.fault == "gateway dies" and step > DIES
            gone = {self.away} if self.away and CALM // 2 < step <= CALM else ()
            for sink in self.sinks.values():
                if not self.calm and self.rng.random() < 0.02:
                    sink.begin()
                sink.excluded, sink.has_new = frozenset(gone), self.fault == "new"
                sink.evaluate()
            self.publish(GATEWAYS[self.is_dead])
            self.deliver()
            has_late = self.fault in {"late", "away", "new", "lies"}
            wrong = self.torn() or self.held_up() or (None if has_late else self.too_early())
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
        device.beats += 1
        for sink in self.sinks:
            parts = self.parts(device, sink)
            items = {p: e for p, e in device.ordered.items() if p not in device.taken[sink]}
            self.send(device.name, sink, "panes", parts, items)
            self.send(device.name, sink, "beat", device.beats, device.low(sink))

    def parts(self, device, sink):
        """Return what a device sends of its answers; one of them lies until all is calm."""
        parts = {at: device.answers[at] for at in device.missing[sink]}
        if self.fault != "lies" or device.name != "d1" or self.calm:
            return parts
        return {at: (number, lie(value)) for at, (number, value) in parts.items()}

    def read(self, device, place, event):
        (device.items if event.name in self.local else device.ordered)[place] = event

    def publish(self, name):
        sink = self.sinks[name]
        if self.calm or self.rng.random() < 0.5:
            for device in DEVICES:
                self.send(name, device, "places", sink.version, sink.published)

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
                    to,
                    source,
                    "ack",
                    {at: number for at, (number, _) in given[0].items()},
                    given[1],
                )
            else:
                device, (versions, items) = self.devices[to], given
                missing = device.missing[source]
                device.missing[source] = {p: v for p, v in missing.items() if versions.get(p) != v}
                device.taken[source] |= items.keys()

    def rows_of_devices(self):
        return {p: v for device in self.devices.values() for p, v in device.rows.items()}

    def torn(self):
        """Return a row that was made of two shares, if the scan shows it."""
        rows = self.sinks[GATEWAYS[0]].rows if self.scan.name == "epochs" else {}
        for place, (epoch, count, total) in rows.items():
            if total != epoch * count:
                return f"torn at {place}: {epoch} {count} {total}"
        return None

    def held_up(self):
        """Return an event in order that is whole, and was not stepped."""
        for gathering in (sink.gathering for sink in self.sinks.values()):
            are_whole = defaultdict(lambda: True)
            for place, record in sorted(gathering.records.items()):
                are_whole[record.key] &= record.mark == gathering.basis(place)
                if are_whole[record.key] and not record.known:
                    return f"held up at {place}"
        return None

    def too_early(self):
        """Return what is final and wrong, or final and missing."""
        for sink in self.sinks.values():
            settled, rows = (sink.settled_us,), sink.rows
            in_order = {p for p in self.truth if p < settled and p[2][0] not in self.local}
            for place in sorted(in_order | {place for place in rows if place < settled}):
                if rows.get(place) != self.truth.get(place):
                    return f"final at {place}: {rows.get(place)}, not {self.truth.get(place)}"
        return None

    def is_done(self):
        if any(self.todo.values()) or any(self.held.values()):
            return False
        rows, living = self.rows_of_devices(), list(self.sinks.values())[self.is_dead :]
        are_settled = all(sink.settled() >= NEVER_US for sink in living)
        return are_settled and all(rows | sink.rows == self.truth for sink in living)
