"""Whatever strangers send, an agent goes on, and holds what it held."""

import msgpack
from hypothesis import given, settings
from hypothesis import strategies as st

from crdts import Counter, Replica, Version
from crdts.wire import encode
from device_agent.agent.intake.batch import Batch
from lasp_edge.protocol.acks import AckFrame, Seqs, Untaken
from lasp_edge.protocol.frames import (
    AskFrame,
    BeatFrame,
    PresenceFrame,
    VariableFrame,
    VariableReport,
)
from lasp_edge.protocol.shards import key_shard
from lasp_edge.protocol.sinks import DEFAULT_SINK, SinkLow
from simulations.world.lander import LANDER
from tests.device_agent.agents import LAKE, NOW_US, entry_of, greenhouse
from tests.support_commands import member_command

PEER = Replica(3, 33, "pi-2")
entry_seqs = st.builds(
    Seqs.of, st.integers(0, 5), st.integers(0, 9), st.lists(st.integers(0, 9), max_size=3)
)

INT64 = st.integers(-(2**63), 2**64 - 1)
PLAIN = st.recursive(
    st.none() | st.booleans() | INT64 | st.floats() | st.binary(max_size=9) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=12,
)
NAMES = st.sampled_from(["pi-1", "pi-2", "local_average", "total", "samples", ""]) | st.text()
ENVELOPES = st.tuples(
    st.sampled_from([1, 1, 1, 2]),
    st.integers(0, 7),
    NAMES,
    st.integers(0, 5) | INT64,
    INT64 | st.integers(0, 9),
    st.integers(0, 5) | INT64,
    st.tuples(NAMES, st.integers(-9, 9) | INT64, st.lists(PLAIN, max_size=3)).map(list)
    | st.lists(PLAIN, max_size=4),
    st.just({}),
).map(lambda fields: msgpack.packb(list(fields), unicode_errors="surrogatepass"))
KINDS = ["pane", "var", "command", "beat", "presence", "ack", "inbox", "out"]


def topics_of(device):
    topics = device.core.agent.topics
    own = [
        topics.of("command", "pi-1"),
        topics.of("beat", "pi-2"),
        topics.of("presence", "pi-2"),
        topics.of("presence", "pi-1"),
    ]
    own += [
        topics.of("var", name, var, "00")
        for name in ("pi-1", "pi-2")
        for var in ("total", "samples")
    ]
    own += [
        topics.of("ack", "pi-1"),
        topics.of("inbox", "pi-1"),
        topics.of("inbox", "pi-2"),
        "",
        "/",
    ]
    return [*own, topics.of("beat", "pi-1"), f"{topics.root}/00/var/pi_", f"{topics.root}/a/b/c"]


def state_of(device):
    """Return what no stranger may change."""
    panes = dict(device.rows())
    return device.core.results.plain(), device.core.variables.shared(), panes, device.core.replica


def test_random_bytes_never_crash_an_agent_and_change_nothing(device):
    device.read([20.0], [NOW_US])
    device.tick()
    before, topics = state_of(device), topics_of(device)

    @settings(max_examples=400)
    @given(st.integers(0, len(topics) - 1), st.binary(max_size=60) | ENVELOPES)
    def check(place, payload):
        device.durable.hear(topics[place], payload, device.now_us)
        device.tick()

    check()
    assert state_of(device) == before


STREAM = greenhouse().local_folds["local_average"].stream
STATES = st.just((encode(Counter().increment(PEER, 3)),))


@st.composite
def entries(draw):
    """Return an entry that the decoder lets through, whether it fits the program or not."""
    number, key = draw(st.integers(1, 3)), draw(st.sampled_from(["", "a", "kitchen"]))
    shard = draw(st.sampled_from([0, key_shard(key)] if key == "" else [key_shard(key)]))
    stream = draw(st.just(STREAM) | st.just(0) | st.integers(-(2**63), 2**63 - 1))
    columns = [draw(STATES)]
    if stream:
        part = st.none() | st.integers(-(2**63), 2**63 - 1)
        columns = draw(st.lists(st.tuples(part) | st.tuples(st.binary(max_size=9)), max_size=3))
    keys = draw(st.sampled_from([(key,), (key,), ()]))
    return VariableFrame(
        PEER,
        number,
        draw(st.sampled_from(["local_average", "total", "samples", "x"])),
        stream,
        shard,
        keys,
        tuple(draw(st.integers(0, number)) for _ in keys),
        tuple(column if keys else () for column in columns),
    )


FRAMES = st.one_of(
    entries(),
    st.builds(
        BeatFrame,
        st.just(PEER),
        st.integers(1, 9),
        st.just(()) | st.builds(lambda low_us: (SinkLow("lake", 0, low_us),), st.integers(-9, 9)),
        st.booleans(),
        st.lists(
            st.builds(
                VariableReport,
                st.sampled_from(["local_average", "total", "x"]),
                st.integers(0, 2**40 - 1),
                st.integers(0, 2**64 - 1),
                st.none() | st.integers(0, 2**64 - 1),
            ),
            max_size=3,
        ).map(tuple),
        st.integers(0, 2**40 - 1),
    ),
    st.builds(
        member_command,
        st.just(PEER),
        st.just(1),
        st.sampled_from(["pi-2", "x"]),
        st.integers(1, 2_000),
        st.booleans(),
        st.builds(Version, st.integers(0, 5), st.integers(0, 9), st.integers(0, 2**40 - 1)),
    ),
    st.builds(PresenceFrame, st.just(PEER), st.just(1), st.booleans()),
    st.builds(
        AckFrame,
        st.just(LANDER),
        st.just(1),
        st.just("pi-1"),
        st.sampled_from(["lake", "x"]),
        st.text(min_size=1, max_size=4),
        st.lists(entry_seqs, max_size=2).map(tuple),
        st.lists(st.builds(Untaken, st.integers(1, 9), entry_seqs), max_size=2).map(tuple),
    ),
    st.builds(
        AskFrame,
        st.just(PEER),
        st.just(1),
        st.just("pi-1"),
        st.sampled_from(["total", "samples", "x"]),
    ),
)


def test_well_formed_frames_of_any_content_never_crash_an_agent(device):
    device.read([20.0], [NOW_US])

    @settings(max_examples=400)
    @given(FRAMES)
    def check(frame):
        device.hear(frame)
        device.tick()
        assert device.core.results.plain()["local_average"]["count"] == 1

    check()


def test_a_frame_on_anothers_topic_changes_nothing(device):
    stream = device.program.local_folds["local_average"].stream
    topics = device.core.agent.topics
    entry = entry_of(PEER, 1, "local_average", stream, (1, 5))
    before = device.core.results.plain()
    for topic in (
        topics.of("command", "pi-2"),
        topics.of("var", "pi-3", "local_average", "00"),
        topics.of("var", "pi-2", "total", "00"),
        topics.of("var", "pi-2", "local_average", "01"),
        topics.of("beat", "pi-2"),
        topics.of("inbox", "pi-1"),
        topics.of("var", "pi-2", "local_average", "00").replace("greenhouse", "other"),
    ):
        device.hear(entry, topic)
    device.hear(AckFrame(LANDER, 1, "pi-1", DEFAULT_SINK, LAKE), topics.of("ack", "pi-2"))
    device.hear(PresenceFrame(device.core.replica, 1, online=False), topics.of("presence", "pi-2"))
    assert device.core.results.plain() == before
    assert device.counted["frame: on another's topic"] == 9


def test_a_cleared_retained_message_is_nothing(device):
    device.durable.hear(device.core.agent.topics.of("presence", "pi-2"), b"", device.now_us)
    assert not any(name.startswith("frame") for name in device.counted)


def test_strangers_cause_at_most_a_commit_every_ten_seconds(device):
    commits = []
    whole = device.store.commit
    device.store.commit = lambda changes: (commits.append(changes), whole(changes))
    for _ in range(100):
        device.durable.hear("x", b"junk", device.now_us)
        device.tick()
    assert len(commits) <= 11
    assert device.store.restored().counters["frame: not msgpack"] > 80


def test_a_batch_is_one_way_in_with_columns_of_one_length(device):
    before = state_of(device)
    device.durable.read(Batch("test", ["temperature"], [], [1.0], [{}], cursor="7"), NOW_US)
    assert state_of(device) == before
    assert device.counted["refused: broken: the batch cannot be read"] == 1
    assert device.store.restored().sources["test"].cursor == "7"
