"""What a gateway publishes of scans with local events: what has changed, once, and what fits."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

from crdts import Replica
from device_agent.gateway.shares import SharesPublisher
from lasp_edge.evaluation.parted import PartedScans
from lasp_edge.event import Event
from lasp_edge.language.halves import shares_stream
from lasp_edge.ordered.gathering import OrderedRecord, Waited
from lasp_edge.ordered.shared_places import SharedPlace, packed_places, places_in
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.publication import Publication
from lasp_edge.protocol.shares import LAST_VERSION, SharesFrame, replaces, short_stream, version_of
from lasp_edge.protocol.topics import Topics
from tests.lasp_edge.language.test_parting import plan_of
from tests.lasp_edge.scans.support_synchronised import MaxTemp, ValueBarrier

CELL_US = 20_000_000
PLACE = (CELL_US + 1, "x", ("b", "", 1), (1,))
NAMES = ("a", "b")


def publisher_of(share, kind=MaxTemp):
    parted = SimpleNamespace(
        scans={"found": SimpleNamespace(events=NAMES)},
        numbers={("found", CELL_US): 7},
        unpublished={("found", CELL_US): None},
        failed=Counter(),
        records=lambda *_: {PLACE: OrderedRecord("", known=True, share=share)},
        repeat=lambda: None,
        publish_all=lambda: parted.unpublished.update(dict.fromkeys(parted.numbers)),
    )
    return parted, SharesPublisher(
        plan_of("a", kind), parted, Replica(1, 7, "gateway-g"), Topics("p")
    )


def test_what_has_changed_is_published_once_and_again_after_a_connection():
    parted, publisher = publisher_of(5)
    (published,) = publisher.publications(0)
    frame = decode(published.payload)
    assert (frame.version, frame.cell_us, published.retain) == (7, CELL_US, True)
    assert places_in(frame.content, CELL_US, NAMES)[PLACE] == ("", True, 5)
    assert list(publisher.publications(0)) == []
    publisher.connected()
    assert len(list(publisher.publications(0))) == 1
    assert not parted.failed


def test_what_the_link_does_not_take_is_published_in_the_next_turn():
    _, publisher = publisher_of(5)
    next(publisher.publications(0))  # whoever asks for no other says that the link is full
    assert len(list(publisher.publications(0))) == 1
    assert list(publisher.publications(0)) == []


def test_the_newest_cells_are_published_first_and_of_these_the_oldest(monkeypatch):
    monkeypatch.setattr("device_agent.gateway.shares.AT_ONCE", 2)
    parted, publisher = publisher_of(5)
    parted.numbers = {("found", n * CELL_US): 7 for n in range(1, 4)}
    publisher.connected()
    turns = [
        [decode(each.payload).cell_us // CELL_US for each in publisher.publications(0)]
        for _ in range(2)
    ]
    assert turns == [[2, 3], [1]]


def test_shares_that_no_message_holds_are_counted():
    parted, publisher = publisher_of("x" * 40_000)
    assert list(publisher.publications(0)) == []
    assert list(parted.failed) == ["found: shares of 10 s too large to publish"]


def test_a_share_that_is_always_the_same_is_not_published():
    _, publisher = publisher_of(5, ValueBarrier)
    (published,) = publisher.publications(0)
    assert places_in(decode(published.payload).content, CELL_US, NAMES)[PLACE] == ("", False, None)


def test_events_of_a_former_store_that_never_come_are_taken_back_once_the_frontier_has_passed():
    plan = plan_of("a", MaxTemp)
    parted = PartedScans(plan, lambda *_: (), lambda *_: None, lambda *_: ())
    parted.begin()
    topics, number = Topics("p"), 40
    former, now = Replica(1, 6, "gateway-g"), Replica(1, 7, "gateway-g")
    publisher = SharesPublisher(plan, parted, now, topics)
    (scan,) = parted.scans
    content = packed_places({PLACE: SharedPlace("", known=True, share=5)}, CELL_US)
    frame = SharesFrame(
        former, 3, short_stream(shares_stream(plan, scan)), CELL_US, number, content
    )
    retained = Publication.of(frame, topics)
    assert publisher.hear(retained.topic, retained.payload)

    def published(frontier_us):
        parted.settle({}, lambda _: {}, Waited(), frontier_us)
        found = [decode(each.payload) for each in publisher.publications(0)]
        return [(each.version > number, places_in(each.content, CELL_US, NAMES)) for each in found]

    publisher.connected()
    assert published(None) == [], "its devices may still send the events"
    assert published(CELL_US + 9_999_999) == []
    assert published(CELL_US + 10_000_000) == [(True, {})]
    assert published(CELL_US + 20_000_000) == []


def test_shares_that_are_of_no_cell_are_ignored():
    parted = PartedScans(plan_of("a", MaxTemp), lambda *_: (), lambda *_: None, lambda *_: ())
    parted.begin()
    topics, (scan,) = Topics("p"), parted.scans
    publisher = SharesPublisher(plan_of("a", MaxTemp), parted, Replica(1, 7, "gateway-g"), topics)
    stream = short_stream(shares_stream(plan_of("a", MaxTemp), scan))
    content = packed_places({}, CELL_US)
    for cell_us, expected in ((CELL_US + 1_000_000, 0), (CELL_US, 1)):
        frame = SharesFrame(Replica(1, 6, "gateway-g"), 3, stream, cell_us, 40, content)
        retained = Publication.of(frame, topics)
        assert publisher.hear(retained.topic, retained.payload)
        parted.settle({}, lambda _: {}, Waited(), 2 * CELL_US)
        publisher.connected()
        assert len(list(publisher.publications(0))) == expected


def test_another_content_of_the_version_that_is_published_is_overtaken():
    """A former run had another store, and a stranger may write in this one's name.

    Devices that have such a cell take none of the same version.
    """
    plan = plan_of("a", MaxTemp)
    parted = PartedScans(plan, lambda *_: (), lambda *_: None, lambda *_: ())
    parted.begin()
    (name,) = parted.scans
    sender, topics = Replica(1, 7, "gateway-g"), Topics("p")
    publisher = SharesPublisher(plan, parted, sender, topics)
    event = Event("b", (1.0, (), b"", PLACE), PLACE[0], "x", {}, "")
    parted.settle({f"{name}: gathered": {PLACE: (None, event)}}, lambda _: {}, Waited(), None)
    (published,) = publisher.publications(0)
    frame = decode(published.payload)
    other = replace(frame, content=packed_places({}, CELL_US))
    for strange in (replace(other, sender=sender._replace(nonce=6)), other):
        of_strange = replace(strange, version=frame.version)
        assert publisher.hear(published.topic, of_strange.encode())
        parted.settle({}, lambda _: {}, Waited(), None)
        (again,) = [decode(each.payload) for each in publisher.publications(0)]
        assert again.version > frame.version
        assert again.content == frame.content
        frame = again


def test_a_cell_that_is_not_answered_is_published_above_every_other_version_within_hours():
    """Another version of it may be on devices that nobody was here to hear."""
    parted = PartedScans(plan_of("a", MaxTemp), lambda *_: (), lambda *_: None, lambda *_: ())
    parted.begin()
    (name,) = parted.scans
    event = Event("b", (1.0, (), b"", PLACE), PLACE[0], "x", {}, "")
    parted.settle({f"{name}: gathered": {PLACE: (None, event)}}, lambda _: {}, Waited(), None)
    versions = []
    for _ in range(180):
        parted.repeat()
        parted.settle({}, lambda _: {}, Waited(), None)
        if parted.unpublished.pop((name, CELL_US), ()) is None:
            versions.append(version_of(parted.numbers[name, CELL_US]))
    assert len(versions) < 12
    assert versions == sorted(versions)
    assert versions[1] < 10
    assert versions[-1] == LAST_VERSION
    assert replaces(LAST_VERSION, LAST_VERSION)
