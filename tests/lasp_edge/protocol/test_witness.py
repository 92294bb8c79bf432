"""The witness: who was heard, how far it had come, and who is not heard yet."""

import msgpack
import pytest

from crdts import Replica
from crdts.replica import INCARNATIONS
from lasp_edge.protocol.admission import (
    FIRST_CONTACT_HELD,
    HELD,
    TOO_FAR_AHEAD,
    TOO_MANY_DEVICES,
    sender_refusal,
)
from lasp_edge.protocol.fencing import HelloFrame, SourceHigh, VouchFrame, joined
from lasp_edge.protocol.frames import BeatFrame, PaneFrame, PresenceFrame
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.limits import INCARNATIONS_AHEAD, INCARNATIONS_BELIEVED
from lasp_edge.protocol.witness import HELD_US, MOST_HELD, Witness
from tests.support_sizes import most_held

ME = Replica(1, 1, "lander")


def beat(replica: Replica, *highs: SourceHigh) -> BeatFrame:
    return BeatFrame(replica, 1, (), False, (), highs=highs)  # noqa: FBT003


def vouched(witness: Witness, device: str):
    hello = HelloFrame(Replica(1, 5, "asker"), 1, device, challenge=77, attempt=1)
    vouch = witness.vouch(ME, 1, hello)
    assert (vouch.challenge, vouch.about) == (77, "asker")
    return vouch.subject, joined(*(told for _, told in vouch.reports))


def test_the_newest_life_is_vouched_for_and_the_furthest_of_any_life():
    witness = Witness(10)
    witness.take(beat(Replica(5, 9, "pi-1"), SourceHigh(1, 60, 10), SourceHigh(2, 5, 1)), 100)
    witness.take(beat(Replica(6, 2, "pi-1"), SourceHigh(1, 40, 12)), 200)
    witness.take(beat(Replica(4, 8, "pi-1"), SourceHigh(3, 7, 7)), 300)
    highs = (SourceHigh(1, 60, 12), SourceHigh(2, 5, 1), SourceHigh(3, 7, 7))
    assert vouched(witness, "pi-1") == (Replica(6, 2, "pi-1"), highs)
    assert vouched(witness, "pi-2") == (Replica(0, 0, "pi-2"), ())


def test_a_frame_of_the_same_process_that_was_overtaken_takes_nothing_back():
    witness, life = Witness(10), Replica(5, 9, "pi-1")
    witness.take(beat(life, SourceHigh(1, 60, 10), SourceHigh(2, 5, 1)), 100)
    witness.take(beat(life, SourceHigh(1, 40, 8)), 200)
    assert vouched(witness, "pi-1") == (life, (SourceHigh(1, 60, 10), SourceHigh(2, 5, 1)))


def test_pane_frames_tell_it_too_and_a_presence_only_the_life():
    witness = Witness(10)
    witness.take(PaneFrame(Replica(5, 9, "pi-1"), 1, (), (SourceHigh(1, 60, 10),)), 100)
    witness.take(PresenceFrame(Replica(7, 1, "pi-1"), 1, online=False), 100)
    assert vouched(witness, "pi-1") == (Replica(7, 1, "pi-1"), (SourceHigh(1, 60, 10),))
    assert list(witness.heard_since(1)) == [], "only beats say that a device is there"


def refused(witness, replica, now_us):
    """Return why a beat is refused at a time; a life that is held back is noted."""
    known = witness.known(replica.device, now_us, nonce=replica.nonce)
    reason = sender_refusal(beat(replica), known)
    if reason in HELD:
        witness.hold(replica, now_us)
    return reason


@pytest.mark.parametrize("known", [None, 3])
def test_an_unlikely_life_is_held_until_it_has_gone_on_for_a_minute(known):
    far = Replica(INCARNATIONS_AHEAD + 4, 9, "pi-1")
    reason = TOO_FAR_AHEAD if known else FIRST_CONTACT_HELD
    witness = Witness(10, {"pi-1": known} if known else {})
    assert sender_refusal(beat(far), witness.known("pi-1", 10 * HELD_US, nonce=9)) == reason
    assert refused(witness, far, 0) == reason
    for nonce in range(10, 20):  # a stranger's frames, each by a life of its own
        assert refused(witness, far._replace(nonce=nonce), HELD_US) == reason
    assert refused(witness, far, HELD_US - 1) == reason
    assert refused(witness, far, HELD_US) is None


def test_no_life_is_held_for_less_than_a_minute_because_a_clock_is_set_back():
    far, witness = Replica(INCARNATIONS_AHEAD + 1, 9, "pi-1"), Witness(10)
    assert refused(witness, far, 10 * HELD_US) == FIRST_CONTACT_HELD
    assert refused(witness, far, 5 * HELD_US) == FIRST_CONTACT_HELD
    assert refused(witness, far, 6 * HELD_US) is None


def test_a_life_that_a_known_one_contradicts_is_held_on():
    near, far = Replica(3, 4, "pi-1"), Replica(INCARNATIONS_AHEAD + 4, 9, "pi-1")
    witness = Witness(10)
    assert refused(witness, far, 0) == FIRST_CONTACT_HELD
    witness.take(beat(near), HELD_US - 1)
    assert refused(witness, far, HELD_US) == TOO_FAR_AHEAD
    assert refused(witness, far._replace(incarnation=INCARNATIONS_AHEAD + 3), HELD_US) is None
    assert refused(witness, far, 2 * HELD_US) is None


def test_a_stranger_leaves_half_of_all_incarnations():
    witness = Witness(10)
    assert refused(witness, Replica(INCARNATIONS_BELIEVED, 9, "pi-1"), 0) == FIRST_CONTACT_HELD
    assert refused(witness, Replica(INCARNATIONS_BELIEVED - 1, 9, "pi-1"), HELD_US) is None
    witness.learn(Replica(INCARNATIONS_BELIEVED - 1, 9, "pi-1"))
    assert refused(witness, Replica(INCARNATIONS_BELIEVED + 5, 4, "pi-1"), HELD_US) is None
    assert 2 * INCARNATIONS_BELIEVED == INCARNATIONS


def test_names_that_are_invented_are_neither_known_nor_remembered_without_bound():
    witness = Witness(3)
    for number in range(10 * MOST_HELD):
        replica = Replica(1, 9, f"x-{number}")
        if sender_refusal(beat(replica), witness.known(replica.device, 5)) is None:
            witness.take(beat(replica), 5)
        witness.hold(Replica(9_999, 9, f"y-{number}"), 5)
    assert len(list(witness.lines())) == 3
    assert most_held(witness) == MOST_HELD
    assert sender_refusal(beat(Replica(1, 9, "z")), witness.known("z", 5)) == TOO_MANY_DEVICES
    assert sender_refusal(beat(Replica(2, 9, "x-1")), witness.known("x-1", 5)) is None


def test_what_was_written_down_is_read_again_and_damage_is_left_out():
    witness, again = Witness(10), Witness(10, {"pi-1": 6})
    witness.take(beat(Replica(5, 9, "pi-1"), SourceHigh(1, 60, 10)), 100)
    witness.take(beat(Replica(2, 1, "0e:9c:00")), 100)
    again.read([*witness.lines(), "", "{", "5", '["a", 1]', '["a", 1, 2, [[1, 2]]]'])
    assert vouched(again, "pi-1") == (Replica(6, 0, "pi-1"), (SourceHigh(1, 60, 10),))
    assert vouched(again, "0e:9c:00") == (Replica(2, 1, "0e:9c:00"), ())
    assert vouched(again, "a") == (Replica(0, 0, "a"), ())


def test_it_tells_what_each_process_told():
    witness = Witness(10)
    first, second, asker = (Replica(n, 7 + n, "pi-1") for n in (1, 2, 3))
    for reporter, accepted in ((first, 100), (second, 140), (asker, 150), (second, 141)):
        witness.take(beat(reporter, SourceHigh(1, 60, accepted)), 5)
    vouch = witness.vouch(ME, 1, HelloFrame(asker, 1, "pi-1", challenge=77, attempt=1))
    highs = {reporter: told[0].accepted for reporter, told in vouch.reports}
    assert highs == {asker: 150, second: 141, first: 100}, "140 does not hide 100"
    again = Witness(10)
    again.read(witness.lines())
    assert again.of("pi-1").reports == witness.of("pi-1").reports


def test_what_the_oldest_of_many_processes_told_is_joined():
    witness = Witness(10)
    for number in range(1, 9):
        witness.take(beat(Replica(number, number, "pi-1"), SourceHigh(number, 5, number)), 5)
    told = witness.of("pi-1").reports
    assert [reporter.nonce for reporter, _ in told] == [8, 7, 6, 5]
    assert [high.source for high in told[-1].highs] == [1, 2, 3, 4, 5]


def test_joining_highs_keeps_the_furthest_sources_of_too_many():
    many = [SourceHigh(source, source, 1) for source in range(100)]
    assert joined(many, many) == tuple(many[-64:])


def test_a_hello_and_a_vouch_of_a_former_release_are_taken():
    """They named the processes that each process follows."""
    hello = HelloFrame(Replica(8, 5, "pi-1"), 1, "pi-1", challenge=77, attempt=1)
    vouch = VouchFrame.of(ME, 1, hello, Replica(7, 3, "pi-1"))
    for frame, former in ((hello, {"line": [9, 8]}), (vouch, {"lines": [[3, [9, 8]]]})):
        assert decode(msgpack.packb([*msgpack.unpackb(frame.encode()), former])) == frame


def test_lines_of_former_releases_are_read():
    for former in ("5, 9, [[1, 60, 10]]", "[[5, 9, [[1, 60, 10]]]], [[9, [2, 8]]]"):
        witness = Witness(10)
        witness.read([f'["pi-1", 6, 2, {former}]'])
        assert vouched(witness, "pi-1") == (Replica(6, 2, "pi-1"), (SourceHigh(1, 60, 10),))
