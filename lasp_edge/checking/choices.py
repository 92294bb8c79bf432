"""What each choice of local events of a synchronised scan would cost, in bytes a day.

Events in order are sent as they are, packed in cells. Of the others each device would send, at each
event in order, the part that it has made of its share; and it is sent the place of that event, with
the share, and states that it has gone on from there. All is encoded as it is sent: pane entries in
frames of a minute, each acknowledged, with MQTT's bytes around them. So a recording tells which
events are seldom enough to be waited for.

Without a recording nobody knows the rates, and the choice of the fewest events in order is named.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from crdts import Replica
from lasp_edge.checking.recordings import Recording, recording_of
from lasp_edge.checking.streams import made_up_readings
from lasp_edge.checking.synchronised import broken_laws, stepped
from lasp_edge.checking.ties import RecordFields
from lasp_edge.event import Event
from lasp_edge.language.item_stream import STATED
from lasp_edge.language.plan import Plan
from lasp_edge.language.streaming import FLEET, Leaving, graph_of
from lasp_edge.ordered.answers import BASIS_BYTES, stated_at, statement, without
from lasp_edge.ordered.cells import CELL_US, PRESENT, Cell, cell_of, packed
from lasp_edge.ordered.covers import covers
from lasp_edge.ordered.deltas import Delta
from lasp_edge.ordered.parted import sent_at
from lasp_edge.ordered.places import Place
from lasp_edge.ordered.sent_outputs import OutputAt, OutputContent, packed_outputs
from lasp_edge.ordered.shared_places import SharedPlace, packed_places
from lasp_edge.ordered.short_answers import ANSWER
from lasp_edge.ordered.stages import ScanStage
from lasp_edge.ordered.synchronised import Synchronised
from lasp_edge.protocol.acks import AckFrame, Seqs
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.protocol.shares import SharesFrame, short_stream
from lasp_edge.protocol.sizes import published_bytes, reading_as_json_bytes
from lasp_edge.protocol.topics import Topics, topic_of
from lasp_edge.units import SECOND_US

_MINUTE_US, _DAY_US = 60 * SECOND_US, 86_400 * SECOND_US
_AT_ONCE_US = SECOND_US
"""What all others wait for leaves with the next tick: within about a second."""
_MOST_ENTRIES = 20
"""Of a frame, so that none is too long."""
_BASIS = bytes(BASIS_BYTES)
"""In place of the digest by which a part names the share of which it was made."""
_LIFE = (3, 120)
"""The life that sends an answer, and how often it has promised."""
_REPLICA, _SINK = Replica(3, 0x9ABCDEF1, "a-device"), Replica(2, 0x77777777, "gateway")
_STREAM = -(1 << 60)

Ordered = tuple[str, ...]
Items = Sequence[tuple[Place, Event]]


class SentEntry(NamedTuple):
    """A pane entry: its time, its key, and what it holds."""

    time_us: int
    key: str
    content: bytes


class AnsweredEvent(NamedTuple):
    """An event in order: its place and key, the share behind it, and what devices have made."""

    place: Place
    key: str
    share: object
    made: Mapping[str, tuple[Any, ...]]


def choices(plan: Plan, path: Path | None, fields: RecordFields) -> Iterator[str]:
    """Yield the lines of each synchronised scan of a program.

    Args:
        plan: of the program.
        path: a recording, or None.
        fields: of its records.

    Raises:
        NotFound: there is no such file.
        UsageError: no record has such a time and an event of the program.
    """
    scans = {n: s for n, s in plan.functions.streams.items() if isinstance(s, Synchronised)}
    if not scans:
        return
    recording = None if path is None else recording_of(plan, path, fields)
    changes = made_up_readings(plan) if recording is None else recording.changes(plan)
    for name, by_key in _reaching(plan, changes).items():
        yield f"scan {name}: events in order across devices, and local ones, which need not be"
        yield from _lines(plan, scans[name], by_key, recording)
        if recording is not None:
            counts = [
                len(each)
                for event in plan.streams[name].events
                for each in recording.items.get(event, {}).values()
            ]
            size = sum(counts) * reading_as_json_bytes(plan.name, _REPLICA.device)
            a_day = size * _DAY_US // recording.span_us
            yield f"  for comparison, each reading as a message of JSON: {a_day:,} bytes a day"


def _reaching(plan: Plan, changes: Mapping[str, Delta]) -> dict[str, dict[str, Items]]:
    """Return what reaches each synchronised scan, by the key that it has there."""
    deltas, found = dict(changes), dict[str, dict[str, Items]]()
    for name, stage, sources in graph_of(plan, FLEET).nodes:
        given = [deltas.get(source, {}) for source in sources]
        deltas[name] = stage.push(given)
        if isinstance(stage, ScanStage) and isinstance(plan.functions.streams[name], Synchronised):
            found[name] = _by_key(stage, given[0])
    return found


def _by_key(stage: ScanStage, delta: Delta) -> dict[str, Items]:
    found: dict[str, list[tuple[Place, Event]]] = {}
    for place, (_, event) in sorted(delta.items()):
        if event is None:
            continue
        with suppress(Exception):  # a key that raises: the event is left out, as in the scan
            key = "" if stage.key is None else stage.key(event)
            found.setdefault(key, []).append((place, event))
    return dict(found)


def _lines(
    plan: Plan, scan: Synchronised, by_key: Mapping[str, Items], recording: Recording | None
) -> Iterator[str]:
    keys = [[event for _, event in items] for items in by_key.values()]
    laws, names = broken_laws(scan, keys, plan.events), {e.name for each in keys for e in each}
    sizes: dict[Ordered, int] = {}
    lines: dict[Ordered, str] = {}
    for ordered in dict.fromkeys([*covers(scan.depends), tuple(sorted(names))]):
        local = " and ".join(sorted(names - set(ordered)))
        broken = [*laws.order, *laws.choices.get(ordered, ())] if local else []
        lines[ordered] = f"  {' and '.join(ordered)} in order, {local or 'nothing'} local"
        size = len(ordered)
        if recording is not None:
            size = _bytes(plan, scan, ordered, by_key, recording) * _DAY_US // recording.span_us
            lines[ordered] += f": {size:,} bytes a day"
        if broken:
            lines[ordered] += f"; it breaks {broken[0].partition(':')[0]}, see `lasp-edge check`"
        else:
            sizes[ordered] = size
    best = min(sizes, key=lambda each: (sizes[each], each), default=())
    why = "the fewest in order; --recording FILE gives bytes" if recording is None else "the least"
    for ordered, line in lines.items():
        yield f"{line}  <- {why}" if ordered == best else line


def _bytes(
    plan: Plan,
    scan: Synchronised,
    ordered: Ordered,
    by_key: Mapping[str, Items],
    recording: Recording,
) -> int:
    """Return the bytes over the sockets of all devices in the time of a recording."""
    has_local, is_same = len(ordered) < len(_names(by_key)), scan.is_share_constant
    waits_us = _AT_ONCE_US if has_local else _MINUTE_US
    entries = _cells(plan, ordered, recording, waits_us)
    answered: list[AnsweredEvent] = []
    for key, items in by_key.items() if has_local else ():
        answered += _answered(scan, ordered, key, items, recording.devices)
    answered.sort(key=attrgetter("place"))
    for device in entries:
        entries[device] += _answers(device, answered, is_same=is_same)
    leaving_us = [_leaving_us(plan, event, waits_us) for event in _events(plan, ordered)]
    every_us = min(leaving_us, default=waits_us)
    up = sum(_frames_bytes(each, every_us) for each in entries.values())
    names, topics = sorted(_names(by_key)), Topics(plan.name)
    down = _shares_bytes(names, topics, answered, is_same=is_same)
    return up + down * len(recording.devices)


def _names(by_key: Mapping[str, Items]) -> set[str]:
    return {event.name for items in by_key.values() for _, event in items}


def _cells(
    plan: Plan, ordered: Ordered, recording: Recording, waits_us: int
) -> dict[str, list[SentEntry]]:
    """Return the cells of items that each device sends of the events in order."""
    found: dict[str, list[SentEntry]] = {device: [] for device in recording.devices}
    for event in _events(plan, ordered):
        leaving = Leaving(plan, event)
        for device, items in recording.items.get(event, {}).items():
            cells: dict[int, Cell] = {}
            leave = leaving.leaving(items, device)
            for item in items:
                if item in leave:
                    cells.setdefault(cell_of(item.time_us), {})[item] = PRESENT
            for at_us, cell in cells.items():
                found[device] += _sent(at_us, cell, _leaving_us(plan, event, waits_us))
    return found


def _events(plan: Plan, ordered: Ordered) -> list[str]:
    """Return the events of which those in order are made."""
    streams = [plan.streams[n].events if n in plan.streams else (n,) for n in ordered]
    return list(dict.fromkeys(chain(*streams)))


def _leaving_us(plan: Plan, event: str, waits_us: int) -> int:
    """Return for how long readings of an event wait for others before they leave.

    Args:
        plan: the program.
        event: the event.
        waits_us: where the program does not say it.
    """
    return plan.events[event].leave_us or waits_us


def _sent(at_us: int, cell: Cell, every_us: int) -> Iterator[SentEntry]:
    """Yield a cell as it leaves: so far each time, where that is before it has ended."""
    part_us, so_far = min(every_us, CELL_US), Cell()
    for part, new in groupby(sorted(cell), lambda item: item.time_us // part_us):
        so_far |= dict.fromkeys(new, PRESENT)
        yield SentEntry(max(at_us, part * part_us), "", packed(so_far))


def _answered(
    scan: Synchronised, ordered: Ordered, key: str, items: Items, devices: Iterable[str]
) -> Iterator[AnsweredEvent]:
    """Yield the events in order of a key, with what each device has made up to there."""
    state, parts = scan.zero, dict[str, object]()
    share, is_same = scan.share(state), scan.is_share_constant
    for place, event in items:
        state, _ = stepped(scan, state, event)
        if event.name not in ordered:
            parts[event.device] = stepped(scan, parts.get(event.device, share), event)[0]
            continue
        made = {each: (p,) if is_same else without(p, share) for each, p in parts.items()}
        share, parts = scan.share(state), {}
        yield AnsweredEvent(place, key, share, {each: made.get(each, ()) for each in devices})


def _answers(
    device: str, answered: Iterable[AnsweredEvent], *, is_same: bool
) -> Iterator[SentEntry]:
    """Yield what a device sends of events in order: all of a cell so far, at each new one.

    Where shares differ, it states a tick later from which ones it has gone on.
    """
    for cell_us, several in groupby(answered, lambda each: cell_of(each.place[0])):
        outputs: dict[OutputAt, OutputContent | None] = {}
        for count, each in enumerate(several, start=1):
            answer = (ANSWER, _BASIS, each.made[device], *_LIFE)
            outputs[sent_at(each.place)] = ("", answer, "", "")
            yield SentEntry(each.place[0], "", packed_outputs(outputs))
            if not is_same:
                stating = packed_outputs({stated_at(cell_us): statement([_BASIS] * count, _LIFE)})
                yield SentEntry(each.place[0] + _AT_ONCE_US, STATED, stating)


def _frames_bytes(entries: list[SentEntry], every_us: int) -> int:
    """Return the bytes of the frames of a device, one in a while, and of their acknowledgements."""
    total = 0
    for _, together in groupby(sorted(entries), lambda each: each.time_us // every_us):
        several = list(together)
        for at in range(0, len(several), _MOST_ENTRIES):
            total += _frame_bytes(several[at : at + _MOST_ENTRIES])
    return total


def _frame_bytes(entries: list[SentEntry]) -> int:
    """Return the bytes of a frame of entries and of its acknowledgement."""
    times_us, keys, contents = zip(*entries, strict=True)
    replica, seqs = (_REPLICA.incarnation, _REPLICA.nonce), tuple(range(1, len(entries) + 1))
    block = PaneEntries(_STREAM, 1, *replica, (contents,), keys, times_us, seqs)
    taken = (Seqs.of(*replica, seqs),)
    ack = AckFrame(_SINK, 1, _REPLICA.device, "gateway", "5f3a77aa", taken)
    frames = PaneFrame(_REPLICA, 1, (block,)), ack
    return sum(published_bytes(len(frame.encode())) for frame in frames)


def _shares_bytes(
    names: Sequence[str], topics: Topics, answered: Iterable[AnsweredEvent], *, is_same: bool
) -> int:
    """Return what one device is sent of places and shares: all of a cell so far, at each new place.

    Where shares differ, twice: once the place alone, and again with the share.
    """
    total = 0
    for cell_us, several in groupby(answered, lambda each: cell_of(each.place[0])):
        places: dict[Place, SharedPlace] = {}
        for place, key, share, _ in several:
            for is_known in (False,) if is_same else (False, True):
                places[place] = SharedPlace(key, is_known, share)
                content = packed_places(places, cell_us, names)
                version = cell_us // SECOND_US + 1
                frame = SharesFrame(_SINK, 1, short_stream(_STREAM), cell_us, version, content)
                total += published_bytes(len(frame.encode())) + len(topic_of(frame, topics))
    return total
