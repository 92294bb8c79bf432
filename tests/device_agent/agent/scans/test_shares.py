"""Shares on a device: whom it follows, which version counts, and what a stranger sends."""

import pytest

from crdts import Replica
from device_agent.agent.parts import FrameRefusedError
from device_agent.agent.scans.parted_history import PartedHistory
from device_agent.agent.scans.shares import LONG_US, Shares
from device_agent.agent.settings import Settings
from lasp_edge.evaluation.stored import HistoryId
from lasp_edge.language.halves import shares_stream
from lasp_edge.ordered.answers import OVER
from lasp_edge.ordered.cells import cell_of
from lasp_edge.ordered.item_store import EngineProgress
from lasp_edge.ordered.plain import decoded, encoded
from lasp_edge.ordered.resuming import resumed_from, resumption
from lasp_edge.ordered.sent_outputs import sent_outputs
from lasp_edge.ordered.shared_places import SharedPlace, packed_places, places_in
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.protocol.shares import SharesFrame, short_stream
from lasp_edge.protocol.waiting import DEAD_AFTER_US
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import NOW_US, Device
from tests.lasp_edge.language.test_parting import plan_of
from tests.lasp_edge.scans.support_synchronised import ValueBarrier

PLAN = plan_of("a")
STREAM, EVENT = short_stream(shares_stream(PLAN, "found")), "found: shares"
CELL_US = 20_000_000
KNOWN = SharedPlace("", known=True, share=0)
FIRST, SECOND = ((CELL_US + n, "x", ("b", "", n), (1,)) for n in (1, 2))


class Store:
    """Keeps what a history gives, as an agent's store does."""

    def __init__(self):
        self.rows, self.now_us = {}, 0
        self.history = PartedHistory(PLAN, "pi", self.read)

    def read(self, stream, least_us, end_us):
        found = [(at, row) for (at, of), row in self.rows.items() if of == stream]
        return sorted(each for each in found if least_us <= each[0] < end_us)

    def take(self, shares, floor_us=0):
        """Return the places that change, as the engine takes them, and store that."""
        shares.is_waiting(self.now_us)
        found = shares.changes(self.history, floor_us)
        shares.put(self.history)
        self.rows |= self.history.take_changes()
        return [(each.at, each.content and each.content[1]) for each in found]


def frame(gateway, version, places, stream=STREAM, cell_us=CELL_US):
    content = packed_places(places, cell_us) if isinstance(places, dict) else places
    return SharesFrame(Replica(1, 7, f"gateway-{gateway}"), 1, stream, cell_us, version, content)


def stream_of(plan):
    return short_stream(shares_stream(plan, "found"))


def receive(shares, *frames, now_us=0):
    for each in frames:
        shares.handlers[SharesFrame](each, now_us)


def acknowledged(shares, gateway, now_us):
    sender = Replica(1, 7, f"gateway-{gateway}")
    shares.handlers[AckFrame](AckFrame(sender, 1, "pi", gateway, "s", (), (), None), now_us)


def known(share):
    return {FIRST: KNOWN._replace(share=share)}


def shares_of(found):
    return [content for _, content in found]


def test_the_greatest_version_of_a_cell_counts_and_outlives_the_process():
    shares, store = Shares(PLAN), Store()
    receive(shares, frame("a", 5, known(1)), frame("a", 4, known(0)))
    assert shares.is_waiting(0)
    assert shares_of(store.take(shares)) == [(True, 1)]
    again = Shares(PLAN)
    again.begin(store.history, 0)
    receive(again, frame("a", 4, known(0)))
    assert store.take(again) == []
    receive(again, frame("a", 6, known(2)))
    assert shares_of(store.take(again)) == [(True, 2)]


def test_a_place_that_is_published_no_more_is_taken_back():
    shares, store = Shares(PLAN), Store()
    receive(shares, frame("a", 1, {**known(1), SECOND: KNOWN._replace(known=False)}))
    assert len(store.take(shares)) == 2
    receive(shares, frame("a", 2, known(1)))
    assert shares_of(store.take(shares)) == [None]


def test_the_least_gateway_that_was_heard_lately_is_followed():
    shares, store = Shares(PLAN), Store()
    for gateway, share in (("b", 2), ("a", 1)):
        receive(shares, frame(gateway, 9, known(share)))
        acknowledged(shares, gateway, 0)
    assert shares.is_waiting(1)
    assert shares_of(store.take(shares)) == [(True, 1)]
    acknowledged(shares, "b", DEAD_AFTER_US)
    store.now_us = DEAD_AFTER_US + 1
    assert shares.is_waiting(store.now_us), "a has fallen silent"
    assert shares_of(store.take(shares)) == [(True, 2)]


def test_a_process_whose_clock_begins_before_the_epoch_follows_whom_it_hears():
    shares, store = Shares(PLAN), Store()
    store.now_us = -3 * DEAD_AFTER_US
    for gateway in "ab":
        acknowledged(shares, gateway, store.now_us)
        receive(shares, frame(gateway, 9, known(1)))
    assert shares_of(store.take(shares)) == [(True, 1)]
    assert shares.followed == "gateway-a"


def test_a_gateway_that_comes_back_is_followed_once_it_has_published_the_same():
    shares, store = Shares(PLAN), Store()
    receive(shares, frame("b", 1, {**known(1), SECOND: KNOWN}), frame("a", 1, known(1)))
    acknowledged(shares, "b", 0)
    assert shares.is_waiting(1)
    assert len(store.take(shares)) == 2
    acknowledged(shares, "a", 2)
    receive(shares, frame("a", 2, {**known(1), SECOND: KNOWN._replace(known=False)}))
    assert not shares.is_waiting(3), "an answer would be taken back"
    again = Shares(PLAN)
    again.begin(store.history, 0)
    for gateway in "ab":
        acknowledged(again, gateway, 4)
    receive(again, frame("a", 2, known(1)))
    assert not again.is_waiting(5), "it is not known yet what b has"
    for each in (shares, again):
        receive(each, frame("b", 1, {**known(1), SECOND: KNOWN}))
        receive(each, frame("a", 3, {**known(1), SECOND: KNOWN}))
        each.is_waiting(6)
        assert each.followed == "gateway-a"


def test_a_device_that_reads_all_the_time_follows_a_gateway_and_answers_at_once(tmp_path):
    """Each tick has readings to commit, so nobody asks it whether places were published."""
    device = Device(tmp_path, PLAN, settings=Settings.paced(1.0))
    place = (NOW_US, "x", ("b", "", 1), (1,))
    for second in range(3):
        device.take([second], [device.now_us], [{}], name="a")
        if second == 2:
            receive(device.core.shares, frame("a", 1, {place: KNOWN}, cell_us=NOW_US))
        device.tick()
    assert device.core.shares.followed == "gateway-a"
    (sent,) = device.frames(PaneFrame)
    assert [block.stream for block in sent.blocks] == [PLAN.item_streams["found: leaf"].stream]


def test_an_event_in_order_leaves_at_once_and_local_ones_wait_for_their_commit(tmp_path):
    device = Device(tmp_path, PLAN, settings=Settings.paced(60))
    device.take([0], [NOW_US], [{}], name="a")
    device.tick()
    for second in range(1, 6):
        device.take([second], [NOW_US + second], [{}], name="a")
        device.tick()
    accepted = device.counted["accepted"]
    assert not device.frames(PaneFrame)
    device.take([7], [NOW_US + 7], [{}], name="b")
    (sent,) = device.frames(PaneFrame, device.tick())
    assert [block.stream for block in sent.blocks] == [PLAN.item_streams["b"].stream]
    assert accepted < device.counted["accepted"] == 7


def test_a_file_that_is_read_far_ahead_is_not_stepped_again_for_each_event_in_order(tmp_path):
    device = Device(tmp_path, PLAN, settings=Settings.paced(60))
    count, batches, late = 2_000, 12, 5
    begun_us, step_us = NOW_US - 86_400 * SECOND_US, SECOND_US // 10
    for batch in range(batches + late):
        first_us = begun_us + batch * count * step_us
        if batch < batches:
            times_us = [first_us + n * step_us for n in range(count)]
            device.take([n % 7 for n in range(count)], times_us, [{}] * count, name="a")
        if batch >= late:
            place = (
                begun_us + ((batch - late + 1) * count - 1) * step_us + 1,
                "x",
                ("b", "", 0),
                (),
            )
            shared = frame("a", 1, {place: KNOWN}, cell_us=cell_of(place[0]))
            receive(device.core.shares, shared, now_us=device.now_us)
        device.tick(0.1)
    stages = {node.name: node.stage for node in device.core.streams.engine.graph.nodes}
    assert stages["found: leaf"].steps < 1.1 * count * batches
    stream = PLAN.item_streams["found: leaf"].stream
    answers = [row.partial[0] for pane, row in device.rows() if pane.stream == stream]
    assert sum(len(sent_outputs(each)) for each in answers) == batches


def test_readings_of_a_time_long_ago_wait_for_a_place_for_ten_seconds_at_most(tmp_path):
    """A file may be read at the pace at which it was recorded, for days."""
    device = Device(tmp_path, PLAN, settings=Settings.paced(1.0))
    begun_us, firsts_us = NOW_US - 86_400 * SECOND_US, []
    for second in range(13):
        device.take([1], [begun_us + second * 10 * SECOND_US], [{}], name="a")
        device.tick()
        firsts_us.append(device.core.streams.engine.waiting.first_us)
    assert firsts_us[5] == begun_us
    assert firsts_us[-1] is None or firsts_us[-1] > begun_us + 90 * SECOND_US


@pytest.mark.parametrize("waiting", [None, (CELL_US, ("a",))])
def test_which_cells_wait_is_stored_and_where_none_does_an_earlier_release_reads_it(waiting):
    store, progress = Store(), EngineProgress(1, 2, 0, (("found: leaf", "x"),), (), waiting)
    store.history.put_progress(progress)
    (row,) = store.history.take_changes().values()
    assert len(decoded(row.content)) == 5 + bool(waiting)
    store.rows = {HistoryId(0, store.history._progress): row}
    assert store.history.progress() == progress


class Text(ValueBarrier):
    """Its state is a text as long as the newest value."""

    name, zero, empty = "text", "", ""

    def step(self, state, event):
        return ("", []) if event.name == "b" else ("x" * round(event.value), [])

    def join(self, _state, part):
        return part


@pytest.mark.parametrize("length", [16_300, 16_400])
def test_a_part_has_at_most_16_kib_and_else_does_not_leave_and_is_counted(tmp_path, length):
    plan = plan_of("a", Text)
    device = Device(tmp_path, plan)
    device.take([length], [NOW_US], [{}], name="a")
    place, stream = (NOW_US, "x", ("b", "", 1), (1,)), stream_of(plan)
    receive(device.core.shares, frame("a", 1, {place: KNOWN}, stream=stream, cell_us=NOW_US))
    (sent,) = device.frames(PaneFrame, device.tick())
    ((answers,),) = [cell for block in sent.blocks for cell in block.columns]
    parts = [content[1][2] for content in sent_outputs(answers).values() if content]
    assert parts == ([("x" * length,)] if length < 16_384 else [])
    counted = [name for name in device.counted if "an output of" in name]
    why = "failed: found: an output of 17 KiB is not sent, and no row is made of it: it may have 16"
    assert [name.startswith(why) for name in counted] == [True] * (length > 16_384)


def test_what_failed_is_taken_again():
    shares, store = Shares(PLAN), Store()
    receive(shares, frame("a", 1, known(1)))
    assert shares.is_waiting(0)
    assert shares.changes(store.history, 0)
    shares.give_up()
    assert shares_of(store.take(shares)) == [(True, 1)]


def test_a_cell_that_is_over_is_answered_once_it_is_published_again():
    """All that is retained comes with each start: nobody waits for most of that."""
    shares, store, leaf = Shares(PLAN), Store(), "found: leaf"
    receive(shares, frame("a", 1, known(1)))
    assert store.take(shares, CELL_US + 1) == []
    assert shares.take_gone_on() == {}
    receive(shares, frame("a", 2, known(1)))
    ((at, (is_known, share)),) = store.take(shares, CELL_US + 1)
    assert shares.take_gone_on() == {(leaf, CELL_US): [OVER]}
    assert (at.time_us, is_known) == (CELL_US + 10 * SECOND_US, True), (
        "what it retains begins there"
    )
    assert resumed_from(share) == (FIRST, True, 1)
    again = dict(store.history.cells(EVENT, 0, 1 << 60))
    assert [list(cell) for cell in again.values()] == [[at]], "it is stored"


def test_what_was_taken_of_a_cell_that_is_over_and_is_gone_now_counts_no_more():
    shares, store = Shares(PLAN), Store()
    receive(shares, frame("a", 1, known(1)))
    store.take(shares)
    again = Shares(PLAN)
    again.begin(store.history, 0)
    receive(again, frame("a", 2, {}))
    ((_, (is_known, share)),) = store.take(again, CELL_US + 1)
    assert is_known
    assert resumed_from(share) is None, "it goes on from the first state"


def test_what_no_gateway_publishes_is_refused():
    with pytest.raises(FrameRefusedError, match="shares: of no event"):
        receive(Shares(PLAN), frame("a", 1, dict([resumption(CELL_US, "")])))


HOSTILE = [
    b"",
    b"\x90\x90",
    b"\xff",
    packed_places({(5, *FIRST[1:]): KNOWN}, CELL_US),
    encoded(((1, "x", "b", (), (1,), ""),)),
    encoded(((1, "x", 7, (), 1, (1,), ""),)),
    encoded(((1, "x", "b", ("room",), 1, (1,), ""),)),
    encoded(((1, "x", "b", 1, 1, (1,), ""),)),
    encoded(((1, "x", "b", (), None, (1,), ""),)),
    packed_places({FIRST: KNOWN._replace(key=1)}, CELL_US),
    encoded(((1, "x", "b", (), 1, (1,), "", 0, 0),)),
    encoded(((1, "x", "b", (), 1, (1,)),)),
    encoded(((-1, "x", "b", (), 1, (1,), ""),)),
    encoded(((10_000_000, "x", "b", (), 1, (1,), ""),)),
    packed_places({(CELL_US, 7, ("b", "", 1), ()): KNOWN}, CELL_US),
]


def test_a_row_of_places_is_read():
    """Those below are refused for what is wrong with them alone."""
    rows = ((1, "x", "b", ("room", "attic"), 1, (1,), "", 0),)
    ((at, place),) = places_in(encoded(rows), CELL_US).items()
    assert (at, place) == ((CELL_US + 1, "x", ("b", '{"room":"attic"}', 1), (1,)), KNOWN)


@pytest.mark.parametrize("content", HOSTILE)
def test_what_holds_no_places_is_refused(content):
    with pytest.raises(FrameRefusedError, match="shares: no events in order of this cell"):
        receive(Shares(PLAN), frame("a", 1, content))
    with pytest.raises(ValueError, match="no events in order"):
        places_in(content, CELL_US)


def test_other_scans_and_too_many_gateways_change_nothing():
    shares, store = Shares(PLAN), Store()
    receive(shares, frame("a", 1, known(1), stream=STREAM + 1))
    assert not shares.is_waiting(0)
    receive(shares, *[frame(str(n), 1, known(1)) for n in range(8)])
    with pytest.raises(FrameRefusedError, match="of too many gateways"):
        receive(shares, frame("9", 1, known(1)))
    assert len(store.take(shares)) == 1


def test_a_cell_that_begins_elsewhere_is_refused():
    with pytest.raises(FrameRefusedError, match="no events in order of this cell"):
        receive(Shares(PLAN), frame("a", 1, packed_places(known(0), CELL_US), cell_us=25_000_000))


def test_events_in_order_are_found_by_their_times():
    shares = Shares(PLAN)
    receive(shares, frame("a", 1, known(0)))
    acknowledged(shares, "a", 0)
    shares.is_waiting(0)
    assert shares.has_places(CELL_US, CELL_US + 2)
    assert not shares.has_places(CELL_US, CELL_US + 1)
    assert not shares.has_places(CELL_US + 2, CELL_US + LONG_US)
    assert shares.has_places(0, LONG_US + 1), "nobody looks through years"


@pytest.mark.parametrize(
    ("beats", "before_us", "low_us", "is_owed"),
    [
        (3, 100, 100, True),  # none has left since the answer
        (4, None, 100, True),  # the one that has promised nothing,
        (4, 99, 100, True),  # or less than before the answer
        (4, 100, 110, False),
        (3, 100, 99, False),  # what the answer revises has not landed
        (3, 100, None, False),
    ],
)
def test_after_an_answer_a_promise_is_owed_as_far_as_there_was_one(
    beats, before_us, low_us, is_owed
):
    shares = Shares(PLAN)
    shares.answered(3, 100)
    assert shares.is_owed(beats, before_us, low_us) is is_owed
