"""What others tell of a device's sources, held against what its store knows."""

from dataclasses import replace
from random import Random

import pytest

from crdts import Replica
from device_agent.agent.changes import Facts
from device_agent.agent.intake.source_highs import SourceHighs
from lasp_edge.protocol.fencing import SourceHigh, source_id

CSV = source_id("csv:a")
FIRST, SECOND, THIRD = 11, 12, 13


def tell(highs, accepted, high_us, teller=FIRST):
    """Tell what one of the processes told, whose nonces are their incarnations here."""
    known = Replica(teller, teller, "pi-1")
    highs.learn([SourceHigh(CSV, high_us, accepted)], known, most_us=10**9)


def started(facts, *lives):
    """Return what a process knows that starts after these on what they stored."""
    return SourceHighs(facts, [(life, life) for life in lives])


def stored(accepted=5, high_us=50):
    """Return the facts of a store in which the first process had come so far."""
    highs = SourceHighs(Facts())
    highs.advance("csv:a", high_us, accepted)
    return highs.take_facts()


def on_an_older_image():
    """Return what the second process knows, alone on an older image of the first one's store."""
    highs = started(stored(), FIRST)
    highs.advance("csv:a", 90, 4)
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
        highs.advance("csv:a", 95, 1)
        facts = highs.take_facts()
    tell(highs, 9, 90, SECOND)
    assert highs.doubt_us("csv:a") is None, "it had five, and accepted four"
    tell(highs, 8, 80)
    assert highs.doubt_us("csv:a") == 80


def test_a_process_that_stored_nothing_leaves_no_gap():
    """The end of the first process is known though the second one accepted nothing."""
    highs = started(stored(), FIRST, SECOND)
    highs.advance("csv:a", 90, 30)
    tell(highs, 8, 80)
    assert highs.doubt_us("csv:a") == 80


def test_a_process_after_which_one_stored_nothing_told_no_more_than_the_next_one_knew():
    highs = started(stored(accepted=3), FIRST)
    highs.advance("csv:a", 60, 7)
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
        highs.advance("csv:a", 50 + nonce, 1)
        assert (highs.doubt_us("csv:a"), highs.maybe_twice) == (None, 0)
        facts, accepted = highs.take_facts(), accepted + 1
    assert len(facts.highs[str(CSV)]) <= 3 + 2 * 16, "what is stored of it is bounded"


def test_what_a_process_told_is_held_against_its_end_twelve_starts_later():
    """It went on behind its last image; what it sent then is long on its way."""
    facts = stored(accepted=5)
    for nonce in range(SECOND, SECOND + 12):
        highs = started(facts, *range(FIRST, nonce))
        highs.advance("csv:a", 50 + nonce, 1)
        facts = highs.take_facts()
    tell(highs, 5, 50, FIRST)
    assert (highs.doubt_us("csv:a"), highs.maybe_twice) == (None, 0)
    tell(highs, 9, 80, FIRST)
    assert highs.doubt_us("csv:a") == 80
    assert highs.maybe_twice >= 4


def test_a_source_that_came_later_was_not_known_at_the_end_of_the_processes_before():
    """The first two lost what they had accepted; the third one accepted some of it again."""
    highs = started(Facts(), FIRST, SECOND)
    highs.advance("csv:a", 60, 5)
    highs = started(highs.take_facts(), FIRST, SECOND, THIRD)
    tell(highs, 3, 80, SECOND)
    assert (highs.doubt_us("csv:a"), highs.maybe_twice) == (80, 3)
    tell(highs, 5, 90, FIRST)
    assert (highs.doubt_us("csv:a"), highs.maybe_twice) == (90, 5), "no more than it accepted"


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
    highs.advance("csv:a", 70, 15)
    strange = Replica(17, 99, "pi-1")
    highs.learn([SourceHigh(CSV, 40, 3)], strange, most_us=10**9)
    lives = [(FIRST, FIRST), (SECOND, SECOND), (18, SECOND)]
    after = SourceHighs(highs.take_facts(), lives)
    tell(after, 20, 70, SECOND)
    assert after.doubt_us("csv:a") == 40


def test_what_may_count_twice_is_counted_once_over_restarts_however_many_processes_told():
    facts, counted = stored(accepted=100), 0
    for nonce in range(50):
        highs = started(facts, FIRST)
        for accepted in (2, 3, 3):
            strange = Replica(30 + nonce, 99 + nonce, "pi-1")
            highs.learn([SourceHigh(CSV, 40, accepted)], strange, most_us=10**9)
        assert highs.maybe_twice == 3 or nonce >= 16
        counted += highs.maybe_twice
        facts.add(highs.take_facts())
    assert counted == 100, "all that it accepted, and no more"
    assert len(facts.twice[str(CSV)]) <= 1 + 2 * 16


def test_facts_of_a_former_release_are_read():
    """It stored the least own time of the last process, too, and who followed whom."""
    former = [("highs", f'{{"{CSV}": [50, 5, 5, 10, 11, 5]}}'), ("lines", f'{{"{CSV}": [[], []]}}')]
    highs = started(Facts.from_rows(former), FIRST)
    tell(highs, 8, 80)
    assert (highs.doubt_us("csv:a"), highs.maybe_twice) == (80, 0), "nothing was accepted since"


class Life:
    """A process on a copy of the store of another one.

    Attributes:
        read: the readings that its store holds, each with the process that accepted it.
    """

    def __init__(self, nonce, before=None):
        self.nonce = nonce
        self.lives = [*before.lives, before.nonce] if before else []
        self.read = set(before.read) if before else set()
        self.facts = replace(before.stored()) if before else Facts()
        self.highs = started(self.facts, *self.lives)

    def stored(self):
        self.facts.add(self.highs.take_facts() or Facts())
        return self.facts

    def accept(self, times):
        if times:
            self.read |= {(at, self.nonce) for at in times}
            self.highs.advance("csv:a", max(times), len(times))

    def learns_of(self, other):
        """Return how many more readings may count twice than it knew."""
        before = self.highs.maybe_twice
        teller = Replica(other.nonce, other.nonce, "pi-1")
        self.highs.learn(other.highs.published(), teller, most_us=10**9)
        return self.highs.maybe_twice - before

    def twice(self, other):
        """Return which readings both have accepted, each by a process that the other lacks."""
        own, theirs = self.read - other.read, other.read - self.read
        return {each[0] for each in own} & {each[0] for each in theirs}


@pytest.mark.parametrize("seed", range(40))
def test_no_fewer_are_counted_than_count_twice_whatever_cards_are_put_back(seed):
    """Each process begins on a copy of what an earlier one had stored, and accepts some."""
    random = Random(seed)
    lives = [Life(100)]
    for nonce in range(101, 100 + random.randint(4, 14)):
        for life in lives[-2:]:
            first = random.randint(0, 60)
            known = {at for at, _ in life.read}
            life.accept(set(range(first, first + random.randint(0, 20))) - known)
        lives.append(Life(nonce, random.choice([*lives, lives[-1], None])))
    learner, *others = random.sample(lives, 4)
    counted = sum(learner.learns_of(other) for other in others)
    assert counted >= len(set().union(*(learner.twice(other) for other in others)))
    assert counted <= len(learner.read)
    assert sum(learner.learns_of(other) for other in others) == 0, "it is counted once"
