"""Bytes: of an ORSet's element, of a mean's entry in a frame, of a window after a day.

Run: `python -m simulations.benchmarks sizes`. Sizes are those of canonical encodings, and of frames
as they cross MQTT. What a frame weighs beside its entries is stated with it.

The talk's literal scheme for a window of the last `bound` samples is `TombstoneWindow` below: a set
of all samples ever added, and beside it the set of those that left, which nothing ever shrinks.
"""

from collections import deque
from collections.abc import Iterator

from crdts import BoundedLWWSet, GSet, TwoPSet, encode
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.frames import PaneFrame, VariableFrame
from simulations.benchmarks.crdt_peers import BRING, PYCRDT, REFERENCE, PycrdtSets, of_reference
from simulations.benchmarks.crdts import HERE, SIZE, absent, beside, filled
from simulations.benchmarks.measure import OURS, Line, is_installed, missing, sizes

DAY_S = 86_400
BOUND = 100
START_US = 1_700_000_000_000_000
SPAN_US = 10_000_000
ENTRIES = 1_000
ROOMS = tuple(f"room {number:02}" for number in range(20))
BESIDE_ELEMENT_GOAL_B, MEAN_ENTRY_GOAL_B, DAY_GOAL_B = 4, 30, 1_000

NumberedSample = tuple[int, int]


def table(*, quick: bool = False) -> Iterator[Line]:
    """Yield the lines of this benchmark."""
    yield from _elements()
    yield from _mean_entries()
    yield from _one_mean()
    yield from _day(DAY_S // 24 if quick else DAY_S)


def _elements() -> Iterator[Line]:
    """An ORSet's element in a state, beside what its elements alone take."""
    what = f"ORSet: bytes an element, of {SIZE:,} integers"
    alone = len(encode(GSet(set(range(SIZE))))) / SIZE
    pycrdt = len(PycrdtSets(SIZE).document(0).get_update()) if is_installed(PYCRDT) else None
    peers = {
        PYCRDT: {"bytes": pycrdt / SIZE} if pycrdt else None,
        REFERENCE: of_reference(SIZE),
    }
    figures = beside(peers, "bytes", len(encode(filled(HERE, 0))) / SIZE)
    notes = {OURS: f"the elements alone take {alone:.2f} B each; the goal is 4 B more"}
    goal = alone + BESIDE_ELEMENT_GOAL_B
    yield from sizes(what, "B", figures, goal=goal, notes=notes)
    yield from absent(peers, what)


def pane_frame(entries: int) -> PaneFrame:
    """Return a frame of means of a minute's readings: rooms by panes of ten seconds."""
    at = range(entries)
    each = max(1, entries // len(ROOMS))
    keys = tuple(ROOMS[number // each] for number in at)
    panes = tuple(START_US + number % each * SPAN_US for number in at)
    counts = tuple(60 + number % 7 for number in at)
    totals = tuple(215_000 + number * 7_919 % 9_973 for number in at)
    seqs = tuple(10_000 + number for number in at)
    stream = 0x0123_4567_89AB_CDEF
    block = PaneEntries(
        stream, SPAN_US, HERE.incarnation, HERE.nonce, (counts, totals), keys, panes, seqs
    )
    return PaneFrame(HERE, 1_000, (block,) if entries else ())


def _mean_entries() -> Iterator[Line]:
    """A mean's entry in a full frame of panes, as a device sends them to the lander."""
    what = f"a mean's entry in a packed frame of {ENTRIES:,}"
    whole, one = len(pane_frame(ENTRIES).encode()), len(pane_frame(1).encode())
    figures = {OURS: whole / ENTRIES}
    if is_installed(PYCRDT):
        figures[PYCRDT] = len(_pycrdt_means(ENTRIES)) / ENTRIES
    notes = {
        OURS: f"everything in the frame included; a frame of one entry has {one} B, an empty one "
        f"{len(pane_frame(0).encode())} B",
        PYCRDT: "a map whose keys are room and pane and whose values are [count, total]",
    }
    yield from sizes(what, "B", figures, goal=MEAN_ENTRY_GOAL_B, notes=notes)
    if not is_installed(PYCRDT):
        yield missing(what, PYCRDT, BRING[PYCRDT])


def _pycrdt_means(entries: int) -> bytes:
    sets = PycrdtSets(entries)
    document = sets.empty()
    block = pane_frame(entries).blocks[0]
    rows = zip(block.keys, block.panes_us, *block.columns, strict=True)
    with document.transaction():
        for key, pane_us, count, total in rows:
            sets.elements(document)[f"{key} {pane_us}"] = [count, total]
    assert len(sets.elements(document)) == entries
    update: bytes = document.get_update()
    return update


def _one_mean() -> Iterator[Line]:
    """A device's whole message about its local mean, which is retained at the broker."""
    stream = 0x0123_4567_89AB_CDEF
    frame = VariableFrame(
        HERE, 1_000, "local_average", stream, 0, ("",), (1_000,), ((100,), (215_000,))
    )
    note = "envelope, variable's name, stream id, count and total; one message a device"
    yield Line(
        "a device's local mean as one frame", OURS, None, len(frame.encode()), "B", note=note
    )


class TombstoneWindow:
    """The talk's window, literally: all samples added, and tombstones of those that left.

    Adding a sample to a full window marks the oldest live one removed. Both sets travel with the
    state, since a replica that has not heard of a removal would bring the sample back.
    """

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.added: set[NumberedSample] = set()
        self.removed: set[NumberedSample] = set()
        self._live: deque[NumberedSample] = deque()  # added - removed, oldest first

    def add(self, sample: NumberedSample) -> None:
        """Add a sample that is later than all before."""
        self.added.add(sample)
        self._live.append(sample)
        if len(self._live) > self.bound:
            self.removed.add(self._live.popleft())

    def encode(self) -> bytes:
        """Return both sets as bytes."""
        return encode(TwoPSet(GSet(self.added), GSet(self.removed)))


def samples(count: int) -> tuple[list[int], list[int]]:
    """Return times, a second apart with some jitter, and quantised values."""
    times_us = [START_US + n * 1_000_000 + n * 7_919 % 2_000 for n in range(count)]
    return times_us, [2_150 + n * 31 % 40 for n in range(count)]


def bounded(count: int, bound: int) -> BoundedLWWSet:
    """Return what is left of many samples in a window of `bound`."""
    state = BoundedLWWSet(bound=bound)
    times_us, values = samples(count)
    state |= state.add_many(HERE, values, times_us)
    return state


def _day(seconds: int) -> Iterator[Line]:
    """A window's state after `seconds` of 1 Hz samples."""
    hours = seconds // 3_600
    what = f"a window of {BOUND} after {hours} h of 1 Hz samples"
    ours, tombstones = bounded(seconds, BOUND), TombstoneWindow(BOUND)
    for sample in zip(*samples(seconds), strict=True):
        tombstones.add(sample)
    held = {(time_us, value) for time_us, value, _ in ours.samples()}
    assert held == tombstones.added - tombstones.removed, "both hold the same window"
    figures = {OURS: float(len(encode(ours))), "tombstones": float(len(tombstones.encode()))}
    note = f"the talk's literal scheme: {len(tombstones.removed):,} tombstones, and growing"
    notes = {"tombstones": note}
    yield from sizes(what, "B", figures, goal=DAY_GOAL_B, notes=notes)
