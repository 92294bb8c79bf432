"""The agent as a state machine: strangers, clocks, sources that end, and how little it says."""

import subprocess
import sys
from pathlib import Path

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crdts import Counter, Replica, Version
from crdts.wire import encode
from device_agent.intake.batch import Batch
from device_agent.settings import SECOND_US, Settings
from lasp_edge import Program
from lasp_edge.protocol.acks import AckFrame, Seqs, Untaken
from lasp_edge.protocol.frames import (
    AskFrame,
    BeatFrame,
    MemberFrame,
    PaneFrame,
    PresenceFrame,
    VariableFrame,
    VariableReport,
)
from lasp_edge.protocol.shards import key_shard
from lasp_edge.protocol.sharing import SharedFrame
from lasp_edge.protocol.sinks import DEFAULT_SINK, SinkLow
from simulations.fleet import LANDER
from tests.device_agent.agents import LAKE, NOW_US, Device, entry_of, greenhouse

PEER = Replica(3, 33, "pi-2")
HOUR_US = 3_600 * SECOND_US
entry_seqs = st.builds(
    Seqs.of, st.integers(0, 5), st.integers(0, 9), st.lists(st.integers(0, 9), max_size=3)
)
CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def device(tmp_path):
    device = Device(tmp_path)
    device.tick()
    yield device
    device.kill()


# Strangers.

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
KINDS = ["pane", "var", "member", "beat", "presence", "ack", "inbox", "out"]


def topics_of(device):
    topics = device.core.agent.topics
    own = [
        topics.of("member", "pi-1"),
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
        MemberFrame,
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
        topics.of("member", "pi-2"),
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


# Time.


def test_a_clock_that_is_set_back_stops_nothing(device):
    device.read([20.0], [NOW_US])
    (lost,) = device.frames(PaneFrame, device.tick(20))
    device.now_us -= 24 * HOUR_US
    device.read([21.0])
    published = [p for _ in range(30) for p in device.tick()]
    assert [f for f in device.frames(PaneFrame, published) if f.number != lost.number]
    assert len(device.frames(BeatFrame, published)) >= 3  # one for each pane of 10 s
    assert device.frames(VariableFrame, published)


def test_a_slow_pane_is_sent_after_the_clock_was_set_back(tmp_path):
    device = Device(tmp_path, greenhouse(size_s=86_400, slide_s=86_400))
    device.read([20.0])
    device.now_us -= 24 * HOUR_US
    assert any(device.frames(PaneFrame, device.tick()) for _ in range(12))
    device.kill()


def test_promises_are_numbered_and_only_change_with_what_they_say(device):
    device.read([20.0], [NOW_US])
    device.land(20)
    for _ in range(30):
        device.land(2)
    numbers = [frame.number for frame in device.frames(BeatFrame)]
    assert numbers == list(range(1, len(numbers) + 1))
    device.sent.clear()
    for _ in range(50):
        device.land(2)
    assert len(device.frames(BeatFrame)) == 10  # one in five is said though nothing is new


def test_an_idle_agent_says_little(device):
    device.read([20.0], [NOW_US], done=True)
    for _ in range(30):
        device.land(1)
    device.sent.clear()
    for _ in range(3_600):
        device.land(1)
    sent = sum(len(p.topic) + len(p.payload) for p in device.sent)
    assert sent < 3_600 * 15  # bytes a second


def test_nothing_is_published_while_disconnected_and_everything_after(device):
    device.core.handle_disconnected()
    device.read([20.0], [NOW_US])
    assert [device.tick(20) for _ in range(5)] == [[]] * 5
    device.core.handle_connected(device.now_us)
    kinds = {type(frame) for frame in device.frames(object, device.tick())}
    assert kinds == {VariableFrame, SharedFrame, PaneFrame, BeatFrame, PresenceFrame}


def test_a_broker_that_lost_everything_is_told_everything_again(device):
    device.read([20.0], [NOW_US])
    device.land(20)
    device.tick()
    device.core.handle_disconnected()
    device.core.handle_connected(device.now_us)
    frames = device.frames(object, device.tick())
    kinds = {VariableFrame, SharedFrame, BeatFrame, PresenceFrame}
    assert {type(frame) for frame in frames} == kinds
    entries = [frame for frame in frames if isinstance(frame, VariableFrame | SharedFrame)]
    assert {frame.variable for frame in entries} == {"local_average", "total"}


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_link_that_takes_little_at_once_gets_everything_in_the_end(device, most):
    device.read([20.0], [NOW_US])
    device.land(20)
    device.core.handle_connected(device.now_us)
    everything = {p.topic for p in device.tick()}
    device.core.handle_connected(device.now_us)
    taken: list = []
    while everything != {p.topic for p in taken} and len(taken) < 60:
        device.now_us += 100_000
        for number, publication in enumerate(device.durable.tick(device.now_us)):
            if number == most:
                device.core.handle_unsent(publication)
                break
            taken.append(publication)
    assert everything == {p.topic for p in taken}


def test_a_will_that_is_told_too_late_is_contradicted(device):
    for _ in range(5):
        device.tick(2)
    device.hear(PresenceFrame(device.core.replica, 1, online=False))
    assert [f.online for f in device.frames(PresenceFrame, device.tick(2))] == [True]


# Sources that end.


def test_a_source_that_was_done_goes_on_where_its_file_has_grown(device):
    device.read([20.0], [NOW_US], cursor="1", done=True)
    device.settle()
    device.tick()
    device.restart()
    assert device.core.intake.sources.cursor("test") == "1"
    assert not device.core.intake.sources.finished
    device.tick(2)
    assert device.low_us <= NOW_US  # no word of the last window's end before the file is looked at
    device.read([21.0], [NOW_US + 1], cursor="2", done=True)
    assert "late" not in device.counted
    assert device.core.intake.sources.finished


def test_a_source_that_has_nothing_more_is_done_again_after_a_restart(device):
    device.read([20.0], [NOW_US], cursor="1", done=True)
    device.settle()
    device.tick()
    device.restart()
    device.read([], cursor="1", done=True)
    device.tick(2)
    assert device.core.done
    assert device.low_us == NOW_US + 60 * SECOND_US


def test_a_replay_without_any_reading_is_done_and_promises_nothing(device):
    # A promise of today would put windows of old recordings below the lake's floor for ever.
    device.read([], done=True)
    device.tick(2)
    beat = device.frames(BeatFrame)[-1]
    assert (beat.done, device.low_us) == (True, None)


def test_a_stopped_agent_goes_on_reading_after_a_restart(device):
    device.read([20.0])
    device.settle()
    device.restart()
    device.read([21.0])
    assert not device.core.intake.sources.finished
    assert device.counted["accepted"] == 2


def test_nothing_is_promised_before_anything_is_known(device):
    device.tick(2)
    assert device.low_us is None


def test_of_two_sources_the_slower_one_holds_the_promise(device):
    device.core.intake.sources.cursor("fast")
    device.take([20.0], [NOW_US], [{}], source="fast", done=True)
    device.take([20.0], [NOW_US - HOUR_US], [{}], source="test")
    device.land(20)
    device.land(20)
    device.land(2)
    assert device.low_us == NOW_US - HOUR_US - device.settings.lateness_us
    assert not device.core.intake.sources.finished


def test_late_readings_are_counted_over_restarts(device):
    device.read([20.0], [NOW_US])
    device.land(20)
    device.land(20)
    device.tick(20)
    device.restart()
    device.read([20.0], [NOW_US - HOUR_US])
    assert device.counted["late"] == 1


def test_the_last_agreement_is_in_the_store_though_nothing_was_read_since(device):
    device.read([20.0])
    device.tick()
    for _ in range(12):
        device.tick()
    settled = device.store.restored().facts.settled["global_average"]
    assert settled == (device.core.results.fleet()["global_average"][""].inputs, 1)


def test_an_idle_agent_commits_nothing(device):
    device.read([20.0], [NOW_US], done=True)
    for _ in range(30):
        device.land(1)
    commits = []
    whole = device.store.commit
    device.store.commit = lambda changes: (commits.append(changes), whole(changes))
    for _ in range(600):
        device.land(1)
    assert commits == []


def test_the_same_inputs_give_the_same_frames(tmp_path):
    runs = []
    for name in ("a", "b"):
        device = Device(tmp_path / name)
        device.restart(nonce=7)
        for step in range(50):
            device.read([20.0 + step % 3], [NOW_US + step * 3 * SECOND_US])
            device.tick(3)
        runs.append(device.sent)
        device.kill()
    assert runs[0] == runs[1]


def test_a_program_without_windows_or_handlers_runs(tmp_path):
    program = Program("plain")
    program.event("temperature")
    device = Device(tmp_path, program.plan(), settings=Settings())
    device.read([20.0], [NOW_US], done=True)
    device.tick(2)
    device.tick(2)
    assert device.core.done
    assert device.low_us == NOW_US
    device.kill()


def test_the_agent_imports_neither_spark_nor_pandas():
    code = (
        "import sys, device_agent.command.agent, device_agent.command.status\n"
        "heavy = {'pyspark', 'pandas', 'numpy', 'pyarrow', 'deltalake', 'hypothesis'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, check=False).returncode == 0


def test_a_batch_is_one_way_in_with_columns_of_one_length(device):
    before = state_of(device)
    device.durable.read(Batch("test", ["temperature"], [], [1.0], [{}], cursor="7"), NOW_US)
    assert state_of(device) == before
    assert device.counted["refused: broken: the batch cannot be read"] == 1
    assert device.store.restored().sources["test"].cursor == "7"
