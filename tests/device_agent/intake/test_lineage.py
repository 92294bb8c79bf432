"""Two lives of one device: which of their readings may count twice, held against sets of readings.

Lives are made as cards are copied and put back: each process begins with what an earlier one had
stored, and accepts some readings. The truth is the readings that both lives accepted on their own.
"""

from random import Random

import pytest

from device_agent.intake.lineage import Lineage, OtherLife, StoredLine
from lasp_edge.protocol.fencing import MOST_ANCESTORS
from lasp_edge.protocol.limits import TIME_LIMIT_US

SOURCE, OTHER_SOURCE = 1, 2


class Life:
    """A process on a copy of the store of another one, and what it has read.

    Attributes:
        read: the readings that its store holds, each with the process that accepted it.
    """

    def __init__(self, nonce, before=None):
        self.nonce = nonce
        self.lives = [*before.lives, before.nonce] if before else []
        self.read = set(before.read) if before else set()
        self.lineage = Lineage(before.stored() if before else {}, self.lives, nonce)

    def stored(self):
        sources = {source for source, _, _ in self.read}
        return {at: StoredLine(*self.lineage.now(at), *self.lineage.past(at)) for at in sources}

    def accept(self, times, source=SOURCE):
        if times:
            self.read |= {(source, at, self.nonce) for at in times}
            self.lineage.advance(source, len(times), min(times))

    def held(self, source=SOURCE):
        return len([each for each in self.read if each[0] == source])

    def learns_of(self, other, source=SOURCE):
        """Return how many readings it says anew that may count twice."""
        highs = [at for of, at, _ in other.read if of == source]
        life = OtherLife(other.nonce, other.lineage.line())
        return self.lineage.new_twice(source, life, other.held(source), max(highs, default=-1))

    def twice(self, other):
        """Return which readings both have accepted, each by a process that the other lacks."""
        own, theirs = self.read - other.read, other.read - self.read
        return {each[:2] for each in own} & {each[:2] for each in theirs}


@pytest.mark.parametrize("seed", range(40))
def test_no_less_is_said_than_counts_twice_whatever_cards_are_put_back(seed):
    random = Random(seed)
    lives = [Life(100)]
    for nonce in range(101, 100 + random.randint(3, 14)):
        for life in lives[-2:]:
            first = random.randint(0, 60)
            times = set(range(first, first + random.randint(0, 20)))
            known = {at for source, at, _ in life.read if source == SOURCE}
            life.accept(times - known)
            life.accept(set(random.sample(range(1_000), 3)), OTHER_SOURCE)
        lives.append(Life(nonce, random.choice([*lives, lives[-1], None])))
    learner, other = random.sample(lives, 2)
    said = learner.learns_of(other) + learner.learns_of(other, OTHER_SOURCE)
    assert said >= len(learner.twice(other))
    assert learner.learns_of(other) == 0, "it is said once"


def two_lives(before=10, own=4, theirs=6):
    """Return a life, and another one on a copy of its store, which both went on."""
    first = Life(100)
    first.accept(range(before))
    one, two = Life(101, first), Life(102, first)
    one.accept(range(before, before + own))
    two.accept(range(before, before + theirs))
    return one, two


def test_what_both_had_from_the_same_card_is_not_said():
    one, two = two_lives()
    assert (one.learns_of(two), two.learns_of(one)) == (4, 4)
    same, later = two_lives(own=0)
    assert same.learns_of(later) == 0, "it has accepted nothing itself"


def test_more_is_said_when_the_other_one_goes_on():
    one, two = two_lives(own=9, theirs=2)
    assert one.learns_of(two) == 2
    after = Life(103, two)
    after.accept(range(12, 14))
    assert one.learns_of(after) == 2, "two more"
    assert Life(104, one).learns_of(after) == 0, "it is remembered over restarts"


def test_readings_later_than_all_that_the_other_one_has_cannot_count_twice():
    first = Life(100)
    first.accept(range(10))
    one, two = Life(101, first), Life(102)
    one.accept(range(50, 60))
    two.accept(range(20))
    assert two.learns_of(one) == 20, "nothing of it is known to be the same"
    assert Life(103, one).learns_of(Life(104, two)) == 20
    late = Life(105)
    late.accept(range(90, 99))
    assert late.learns_of(one) == 0


def test_the_line_is_bounded_and_what_is_older_than_it_may_all_count_twice():
    life = Life(100)
    life.accept(range(5))
    image = Life(101, life)
    for nonce in range(102, 102 + 2 * MOST_ANCESTORS):
        life = Life(nonce, life)
        life.accept([nonce])
    assert len(life.lineage.line()) == 2 * MOST_ANCESTORS
    assert image.learns_of(life) == 5
    none = OtherLife(1, ())
    assert Life(9).lineage.new_twice(SOURCE, none, 5, TIME_LIMIT_US) == 0
