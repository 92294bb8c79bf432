"""What is known of the lives of a device before its present one."""

from crdts import Frontier, Version
from crdts.frontier import BOTTOM_US, Promise
from lasp_edge.protocol.frontier import Liveness
from lasp_edge.protocol.lost_stores import EarlierLives, earlier_after


def promise(incarnation, low_us, nonce=7):
    return Promise(Version(incarnation, nonce, 1), low_us, False, 0)  # noqa: FBT003


def test_a_life_that_ends_after_the_log_changed_had_come_as_far_as_it_promised_before():
    known = earlier_after({}, Liveness(), {"desk": promise(1, 50)}, 20)
    assert known == {"desk": EarlierLives(BOTTOM_US, 20)}
    before = Liveness(Frontier({"desk": promise(1, 50)})).voided()
    after = earlier_after(known, before, {"desk": promise(2, 30)}, 40)
    assert after == {"desk": EarlierLives(50, 20)}


def test_of_two_copies_of_a_card_that_began_alike_the_later_one_is_another_life():
    before = Liveness(Frontier({"desk": promise(1, 50)}))
    known = {"desk": EarlierLives(10, 20)}
    for came, reached_us in ((promise(1, 60), 10), (promise(1, 60, nonce=8), 50)):
        assert earlier_after(known, before, {"desk": came}, 40) == {
            "desk": EarlierLives(reached_us, 20)
        }
