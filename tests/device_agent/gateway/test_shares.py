"""What a gateway publishes of scans with local events: what has changed, once, and what fits."""

from collections import Counter
from types import SimpleNamespace

from crdts import Replica
from device_agent.gateway.shares import SharesPublisher
from lasp_edge.ordered.gathering import OrderedRecord
from lasp_edge.ordered.shared_places import places_in
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.topics import Topics
from tests.lasp_edge.language.test_parting import plan_of
from tests.lasp_edge.scans.support_synchronised import MaxTemp, ValueBarrier

CELL_US = 20_000_000
PLACE = (CELL_US + 1, "x", ("b", "", 1), (1,))


def publisher_of(share, kind=MaxTemp):
    parted = SimpleNamespace(
        scans=["found"],
        numbers={("found", CELL_US): 7},
        unpublished={("found", CELL_US): None},
        failed=Counter(),
        records=lambda *_: {PLACE: OrderedRecord("", known=True, share=share)},
        repeat=lambda: None,
    )
    return parted, SharesPublisher(
        plan_of("a", kind), parted, Replica(1, 7, "gateway-g"), Topics("p")
    )


def test_what_has_changed_is_published_once_and_again_after_a_connection():
    parted, publisher = publisher_of(5)
    (published,) = publisher.publications(0)
    frame = decode(published.payload)
    assert (frame.version, frame.cell_us, published.retain) == (7, CELL_US, True)
    assert places_in(frame.content, CELL_US)[PLACE] == ("", True, 5)
    assert list(publisher.publications(0)) == []
    publisher.connected()
    assert len(list(publisher.publications(0))) == 1
    assert not parted.failed


def test_shares_that_no_message_holds_are_counted():
    parted, publisher = publisher_of("x" * 40_000)
    assert list(publisher.publications(0)) == []
    assert list(parted.failed) == ["found: shares of 10 s too large to publish"]


def test_a_share_that_is_always_the_same_is_not_published():
    _, publisher = publisher_of(5, ValueBarrier)
    (published,) = publisher.publications(0)
    assert places_in(decode(published.payload).content, CELL_US)[PLACE] == ("", False, None)
