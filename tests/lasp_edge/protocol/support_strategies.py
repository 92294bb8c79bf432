"""Hypothesis strategies for frames of every kind."""

from hypothesis import strategies as st

from crdts import Replica, Version
from lasp_edge.protocol.acks import AckFrame, Seqs, Untaken
from lasp_edge.protocol.blocks import PaneEntries
from lasp_edge.protocol.commands import CommandFrame
from lasp_edge.protocol.fencing import HelloFrame, ProcessReport, SourceHigh, VouchFrame
from lasp_edge.protocol.frames import (
    AskFrame,
    BeatFrame,
    PaneFrame,
    PresenceFrame,
    VariableFrame,
    VariableReport,
)
from lasp_edge.protocol.shards import key_shard
from lasp_edge.protocol.shares import SharesFrame
from lasp_edge.protocol.sharing import SLOTS, RepairFrame, SharedFrame, SummaryFrame
from lasp_edge.protocol.sinks import SinkLow
from tests.support_commands import member_command

texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), max_size=20)
names = texts.filter(bool)
clocks = st.none() | st.integers(0, 2**32 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
uint64 = st.integers(0, 2**64 - 1)
seqs = st.integers(0, 2**40 - 1)
numbers = st.integers(1, 2**40 - 1)
incarnations, nonces = st.integers(0, 2**30 - 1), st.integers(0, 2**32 - 1)
replicas = st.builds(Replica, incarnations, nonces, names)
versions = st.builds(Version, incarnations, nonces, seqs)
sinks = st.sampled_from(["lake", "archive", "günstig"]) | st.text("abc", min_size=1, max_size=9)
lows = st.builds(
    SinkLow,
    *(sinks, st.integers(0, 2**32 - 1), st.none() | st.integers(-(2**58), 2**58 - 1)),
    st.just(0) | seqs,
)
entry_seqs = st.builds(
    Seqs.of, incarnations, nonces, st.lists(seqs | st.integers(0, 30), max_size=9)
)
parts = st.none() | int64
binaries = st.binary(max_size=40)


@st.composite
def blocks(draw, most=6):
    length, width = draw(st.integers(1, most)), draw(st.integers(0, 5))
    span_us = draw(st.sampled_from([1, 10_000_000, 60_000_000, 2**57]))
    panes = st.integers(-(2**57) // span_us, 2**57 // span_us)

    def column(values):
        return tuple(draw(st.lists(values, min_size=length, max_size=length)))

    return PaneEntries(
        draw(int64),
        span_us,
        draw(incarnations),
        draw(nonces),
        tuple(column(binaries if draw(st.booleans()) else parts) for _ in range(width)),
        column(st.just("") if draw(st.booleans()) else texts),
        tuple(index * span_us for index in column(panes)),
        column(seqs),
    )


@st.composite
def variable_frames(draw):
    """Return an entry of one shard, or of a variable without keys."""
    number, keys = draw(numbers), draw(st.sets(texts, max_size=5).map(sorted))
    shard = key_shard(draw(st.sampled_from(keys))) if keys else draw(st.integers(0, 15))
    keys = [key for key in keys if key_shard(key) == shard]
    if draw(st.booleans()):
        shard, keys = 0, [""]
    length, stream = len(keys), draw(int64)

    def column(values):
        return tuple(draw(st.lists(values, min_size=length, max_size=length)))

    columns = [
        column(draw(st.sampled_from([parts, binaries])))
        for _ in range(max(draw(seqs) % 5, bool(keys)))
    ]
    changed = column(st.integers(0, number))
    return VariableFrame(
        draw(replicas), number, draw(names), stream, shard, tuple(keys), changed, tuple(columns)
    )


highs = st.lists(
    st.builds(SourceHigh, st.integers(0, 2**32 - 1), st.integers(-(2**58), 2**58 - 1), seqs),
    max_size=3,
).map(tuple)
challenges = st.integers(1, 2**48 - 1)
begun = st.lists(
    st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**58), 2**58 - 1)), max_size=3
).map(tuple)
pane_frames = st.builds(
    PaneFrame, replicas, numbers, st.lists(blocks(), max_size=3).map(tuple), highs, begun
)


@st.composite
def vouch_frames(draw):
    subject, reporter = draw(replicas), draw(replicas)
    said = (draw(st.just(0) | challenges), subject, reporter._replace(device=subject.device))
    told = draw(highs)
    others = [
        ProcessReport(draw(replicas)._replace(device=subject.device), draw(highs.filter(bool)))
        for _ in range(draw(st.integers(0, 3)) if told else 0)
    ]
    sender, number, about = draw(replicas), draw(numbers), draw(names)
    scan_outputs = (draw(st.booleans()), tuple(others))
    return VouchFrame(sender, number, about, *said, told, *scan_outputs)


@st.composite
def beat_frames(draw):
    """Return a beat, which is done for some of the sinks that it promises to."""
    promised = tuple(draw(st.lists(lows, max_size=8, unique_by=lambda low: low.sink)))
    done_for = frozenset(low.sink for low in promised if draw(st.booleans()))
    reports = st.lists(
        st.builds(VariableReport, texts, seqs, uint64, st.none() | uint64), max_size=4
    )
    known = promised, draw(st.booleans()), tuple(draw(reports)), draw(seqs), draw(clocks)
    rest = draw(highs), draw(st.integers(0, 2**63 - 1))
    floor_us = draw(st.none() | st.integers(-(2**58), 2**58 - 1))
    more = floor_us, done_for, draw(texts), draw(begun)
    return BeatFrame(draw(replicas), draw(numbers), *known, *rest, *more)


@st.composite
def control_frames(draw):
    """Return a schedule of one parameter and scope."""
    times_us = draw(st.sets(st.integers(-(2**58), 2**58 - 1), min_size=1, max_size=4))
    rows = st.tuples(numbers, texts, st.none() | texts)
    places = tuple((from_us, *draw(rows)) for from_us in sorted(times_us))
    about = names.filter(lambda name: len(name.encode()) <= 64)
    return CommandFrame(draw(replicas), draw(numbers), draw(about), draw(texts), places)


member_frames = st.builds(
    member_command, replicas, numbers, names, numbers, st.booleans(), versions
)
FRAMES = {
    PaneFrame: pane_frames,
    VariableFrame: variable_frames(),
    BeatFrame: beat_frames(),
    PresenceFrame: st.builds(
        PresenceFrame,
        replicas,
        numbers,
        st.booleans(),
        st.text(max_size=8),
        st.text(max_size=8),
        st.booleans(),
        st.dictionaries(st.sampled_from("abc"), st.sampled_from(["°C", "°F"])),
    ),
    AckFrame: st.builds(
        AckFrame,
        replicas,
        numbers,
        names,
        sinks,
        sinks,
        st.lists(entry_seqs, max_size=3).map(tuple),
        st.lists(st.builds(Untaken, st.integers(1, 15), entry_seqs), max_size=3).map(tuple),
        clocks,
    ),
    AskFrame: st.builds(AskFrame, replicas, numbers, names, texts),
    HelloFrame: st.builds(HelloFrame, replicas, numbers, names, challenges, st.integers(1, 15)),
    VouchFrame: vouch_frames(),
    SharedFrame: st.builds(
        SharedFrame, replicas, numbers, names, int64, st.integers(0, SLOTS - 1), st.binary()
    ),
    SummaryFrame: st.builds(SummaryFrame, replicas, numbers, names, names, int64, st.binary()),
    RepairFrame: st.builds(RepairFrame, replicas, numbers, names, names, int64, st.binary()),
    CommandFrame: control_frames() | member_frames,
    SharesFrame: st.builds(
        SharesFrame,
        replicas,
        numbers,
        st.integers(0, 2**32 - 1),
        st.integers(-(2**30), 2**30).map(lambda second: second * 1_000_000),
        st.integers(1, 2**62),
        st.binary(),
    ),
}
any_frame = st.one_of(*FRAMES.values())
ME = Replica(1, 7, "pi-1")
BLOCK = PaneEntries(5, 10, 1, 7, ((3, 2), (66, None)), ("attic", ""), (120, 100), (9, 4))
FRAME = PaneFrame(ME, 1, (BLOCK,))
