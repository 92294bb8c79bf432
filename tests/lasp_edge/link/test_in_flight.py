"""What may be on its way to a broker: what is confirmed makes room, in whatever order."""

from hypothesis import given
from hypothesis import strategies as st

from lasp_edge.link.broker_url import BrokerUrl
from lasp_edge.link.in_flight import InFlight
from lasp_edge.link.taken_sizes import TakenSizes
from lasp_edge.link.trouble import Refusals

MESSAGES, BYTES = 3, 100


def in_flight() -> InFlight:
    refusals = Refusals(BrokerUrl.parse("mqtt://nowhere"), None)
    return InFlight(MESSAGES, BYTES, refusals, TakenSizes())


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 120)), max_size=40))
def test_there_is_room_as_far_as_what_is_unconfirmed_leaves_it(steps):
    """A step sends a message where there is room, and confirms one of those before it."""
    flight, sent = in_flight(), dict[int, int]()
    for packet, (place, size) in enumerate(steps):
        fits = not sent or sum(sent.values()) + size <= BYTES
        assert flight.has_room(size) == (len(sent) < MESSAGES and fits)
        if flight.has_room(size):
            flight.add(packet, "t", size, 0.0)
            sent[packet] = size
        if place < len(sent):
            confirmed = sorted(sent)[place]
            flight.answer(confirmed, None, 0.0)
            del sent[confirmed]
        assert flight.pending() == len(sent)
        assert flight.greatest() == max(sent.values(), default=0)
