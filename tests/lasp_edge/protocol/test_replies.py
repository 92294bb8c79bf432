"""What a sink owes devices is sent in the order of their names: equal messages, equal answers."""

from crdts import Replica
from lasp_edge.protocol.acceptance import Acceptance, Accepted
from lasp_edge.protocol.replies import Replies
from lasp_edge.protocol.topics import Topics


def test_devices_are_greeted_in_the_order_of_their_names():
    acceptance = Acceptance((), (), Topics("trial"), ("lake", "a"), {})
    replies, accepted, greeted = Replies(acceptance, Replica(1, 1, "lander")), Accepted(), []
    accepted.known.update(f"pi-{number}" for number in range(20))
    replies.owe(accepted, 0)
    replies.answer(lambda frame: greeted.append(frame.about) is None, 0)
    assert greeted == sorted(accepted.known)
