"""What a sink owes devices: in the order of their names, and kept until the link takes it."""

from crdts import Replica
from lasp_edge.protocol.acceptance import Acceptance, Accepted
from lasp_edge.protocol.acks import AckFrame, Answer, FormerStore, Seqs
from lasp_edge.protocol.fencing import HelloFrame
from lasp_edge.protocol.replies import Replies
from lasp_edge.protocol.topics import Topics


def test_devices_are_greeted_in_the_order_of_their_names():
    acceptance = Acceptance((), (), Topics("trial"), ("lake", "a"), {})
    replies, accepted, greeted = Replies(acceptance, Replica(1, 1, "lander")), Accepted(), []
    accepted.known.update(f"pi-{number}" for number in range(20))
    replies.owe(accepted, 0)
    replies.answer(lambda frame: greeted.append(frame.about) is None, 0)
    assert greeted == sorted(accepted.known)


def test_an_answer_that_could_not_leave_is_sent_when_the_link_takes_it():
    acceptance = Acceptance((), (), Topics("trial"), ("lake", "a"), {})
    replies, accepted, sent = Replies(acceptance, Replica(1, 1, "lander")), Accepted(), []
    accepted.answers["pi-0"] = Answer()
    accepted.answers["pi-0"].take(1, 7, [3])
    replies.owe(accepted, 0)
    replies.answer(lambda _frame: False, 0)
    replies.answer(lambda frame: sent.append(frame.taken) is None, 0)
    assert sent == [(Seqs(1, 7, ((3, 3),)),)]


def test_vouches_are_numbered_one_after_the_other():
    acceptance = Acceptance((), (), Topics("trial"), ("lake", "a"), {})
    replies, sent = Replies(acceptance, Replica(1, 1, "lander")), []
    for turn in range(2):
        accepted = Accepted(overtaken={"pi-2", "pi-3"})
        for device in ("pi-0", "pi-1"):
            hello = HelloFrame(Replica(2, 8, device), 1, device, challenge=turn, attempt=1)
            accepted.hellos[device, device] = hello
        replies.owe(accepted, 0)
        replies.answer(lambda frame: sent.append(frame) is None, 0)
    assert [frame.number for frame in sent] == list(range(1, 9))


def test_who_says_hello_may_be_on_an_older_card_and_is_told_again_what_the_store_follows_from():
    acceptance = Acceptance((), (), Topics("trial"), ("lake", "b"), {})
    former, sent = (FormerStore("a", 9),), []
    replies = Replies(acceptance, Replica(1, 1, "gateway"), former)
    hello = HelloFrame(Replica(2, 8, "pi-0"), 1, "pi-0", challenge=4711, attempt=1)
    turns = [Accepted(heard={"pi-0": True}), Accepted(hellos={("pi-0", "pi-0"): hello})]
    both = Accepted(heard={"pi-0": True}, hellos={("pi-0", "pi-0"): hello})
    for turn in (*turns, turns[0], both):
        turn.answers["pi-0"] = Answer()
        turn.answers["pi-0"].take(1, 7, [3])
        replies.owe(turn, 0)
        replies.answer(lambda frame: sent.append(frame) is None, 0)
    assert [frame.former for frame in sent if isinstance(frame, AckFrame)] == [
        (),
        former,
        (),
        former,
    ]
