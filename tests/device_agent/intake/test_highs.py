"""What others tell of a device's sources, held against what its store knows."""

from device_agent.facts import Facts
from device_agent.intake.highs import Highs, Teller
from device_agent.intake.lineage import OtherLife
from lasp_edge.protocol.fencing import SourceHigh, source_id

CSV = source_id("csv:a")
FIRST, SECOND, THIRD = 11, 12, 13


def tell(highs, accepted, high_us, teller=FIRST):
    """Tell what one of the processes told, whose nonces are their incarnations here."""
    known = Teller(teller, is_known=True, life=OtherLife(teller))
    highs.learn([SourceHigh(CSV, high_us, accepted)], known, most_us=10**9)


def started(facts, *lives):
    """Return what a process knows that starts after these on what they stored."""
    return Highs(facts, [(life, life) for life in lives], lives[-1] + 1)


def stored(accepted=5, high_us=50):
    """Return the facts of a store in which the first process had come so far."""
    highs = Highs(Facts(), (), FIRST)
    highs.advance("csv:a", high_us, accepted, 10)
    return highs.take_facts()


def on_an_older_image():
    """Return what the second process knows, alone on an older image of the first one's store."""
    highs = started(stored(), FIRST)
    highs.advance("csv:a", 90, 4, 60)
    return highs


def test_what_a_process_told_at_its_end_is_known():
    highs = on_an_older_image()
    tell(highs, 5, 50)
    assert (highs.doubt_us("csv:a"), highs.maybe_twice) == (None, 0)


def test_what_is_accepted_now_does_not_hide_what_another_process_had_accepted():
    highs = on_an_older_image()
    tell(highs, 8, 80)
    assert (highs.doubt_us("csv:a"), highs.maybe_twice) == (80, 3), "the first one took three more"
    tell(highs, 8, 80)
    assert highs.maybe_twice == 3
    tell(highs, 19, 95)
    assert highs.maybe_twice == 4, "no more than were accepted here"


def test_nor_in_the_processes_that_follow():
    facts = on_an_older_image().take_facts()
    for last in (SECOND, THIRD):
        highs = started(facts, *range(FIRST, last + 1))
        highs.advance("csv:a", 95, 1, 95)
        facts = highs.take_facts()
    tell(highs, 9, 90, SECOND)
    assert highs.doubt_us("csv:a") is None, "it had five, and accepted four"
    tell(highs, 8, 80)
    assert highs.doubt_us("csv:a") == 80


def test_a_process_that_stored_nothing_leaves_no_gap():
    """The end of the first process is known though the second one accepted nothing."""
    highs = started(stored(), FIRST, SECOND)
    highs.advance("csv:a", 90, 30, 60)
    tell(highs, 8, 80)
    assert highs.doubt_us("csv:a") == 80


def test_a_process_after_which_one_stored_nothing_told_no_more_than_the_next_one_knew():
    highs = started(stored(accepted=3), FIRST)
    highs.advance("csv:a", 60, 7, 55)
    after = started(
        highs.take_facts(), FIRST, SECOND, THIRD
    )  # the second process was killed before it read
    tell(after, 10, 60, SECOND)
    assert after.doubt_us("csv:a") is None


def test_many_processes_without_trouble_raise_no_doubt():
    facts, accepted = stored(), 5
    for nonce in range(FIRST, FIRST + 30):
        highs = started(facts, *range(FIRST, nonce + 1))
        tell(highs, accepted, 50, nonce)
        tell(highs, 5, 50, FIRST)
        highs.advance("csv:a", 50 + nonce, 1, 50 + nonce)
        assert (highs.doubt_us("csv:a"), highs.maybe_twice) == (None, 0)
        facts, accepted = highs.take_facts(), accepted + 1
    assert len(facts.highs[str(CSV)]) <= 4 + 2 * 16, "what is stored of it is bounded"
    assert len(facts.lines[str(CSV)][0]) <= 3 * 8


def test_what_a_process_told_is_held_against_its_end_twelve_starts_later():
    """It went on behind its last image; what it sent then is long on its way."""
    facts = stored(accepted=5)
    for nonce in range(SECOND, SECOND + 12):
        highs = started(facts, *range(FIRST, nonce))
        highs.advance("csv:a", 50 + nonce, 1, 50 + nonce)
        facts = highs.take_facts()
    tell(highs, 5, 50, FIRST)
    assert (highs.doubt_us("csv:a"), highs.maybe_twice) == (None, 0)
    tell(highs, 9, 80, FIRST)
    assert highs.doubt_us("csv:a") == 80
    assert highs.maybe_twice >= 4


def test_a_source_that_came_later_was_not_known_at_the_end_of_the_processes_before():
    """The first two lost what they had accepted; the third one accepted some of it again."""
    highs = started(Facts(), FIRST, SECOND)
    highs.advance("csv:a", 60, 5, 10)
    highs = started(highs.take_facts(), FIRST, SECOND, THIRD)
    tell(highs, 3, 80, SECOND)
    assert (highs.doubt_us("csv:a"), highs.maybe_twice) == (80, 3)
    tell(highs, 5, 90, FIRST)
    assert (highs.doubt_us("csv:a"), highs.maybe_twice) == (90, 3 + 5), "thrice where both read it"


def test_nor_was_one_of_which_others_told_first():
    highs = started(Facts(), FIRST, SECOND)
    tell(highs, 9, 60, SECOND)
    tell(highs, 9, 90, FIRST)
    assert highs.doubt_us("csv:a") == 90, "the second one had accepted nine others"


def test_what_one_process_told_hides_nothing_that_one_before_it_told():
    """Both had gone on from what is stored here, and none of them knew of the other one."""
    highs = started(stored(), FIRST, SECOND)
    tell(highs, 9, 60, SECOND)
    tell(highs, 9, 90)
    assert highs.doubt_us("csv:a") == 90


def test_a_process_that_became_later_than_a_strange_one_is_known_by_each_incarnation():
    """It was the second one, met the seventh, and went on as the eighth."""
    highs = started(stored(), FIRST)
    highs.advance("csv:a", 70, 15, 60)
    strange = Teller(17, is_known=False, life=OtherLife(99))
    highs.learn([SourceHigh(CSV, 40, 3)], strange, most_us=10**9)
    lives = [(FIRST, FIRST), (SECOND, SECOND), (18, SECOND)]
    after = Highs(highs.take_facts(), lives, 19)
    tell(after, 20, 70, SECOND)
    assert after.doubt_us("csv:a") == 40
