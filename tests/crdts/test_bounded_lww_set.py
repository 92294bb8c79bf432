"""The last so many samples of one writer: the talk's example, its limits, its lives."""

import random

import pytest

from crdts import NOBODY, BoundedLWWSet, Replica, encode

ME = Replica(1, 7, "kitchen")
LATER = Replica(2, 3, "kitchen")
SECOND = 1_000_000


def filled(values, bound=2, replica=ME, **limits):
    state = BoundedLWWSet(bound, **limits)
    for at, value in enumerate(values):
        state |= state.add(replica, value, at * SECOND)
    return state


def test_slides_56_to_59_bound_two_keeps_the_last_two_and_marks_the_first_removed():
    state = BoundedLWWSet(bound=2)
    state |= state.add(ME, 1, 1)
    state |= state.add(ME, 2, 2)
    assert (state.values(), state.lo) == ([1, 2], 0)
    before = state.copy()
    state |= state.add(ME, 3, 3)
    assert (state.values(), state.lo, state.hi) == ([2, 3], 1, 3)
    assert (before | state).values() == [2, 3]
    assert (state | before).values() == [2, 3]


def test_order_is_the_writers_and_not_a_clocks():
    state = BoundedLWWSet(bound=2)
    for value, time_us in (("a", 30), ("b", 10), ("c", 20)):
        state |= state.add(ME, value, time_us)
    assert state.values() == ["b", "c"]
    assert state.samples() == [(10, "b", 10), (20, "c", 20)]


def test_a_partial_delta_leaves_a_state_incomplete_until_the_rest_arrives():
    writer = BoundedLWWSet(bound=3)
    deltas = []
    for value in (1, 2, 3):
        deltas.append(writer.add(ME, value, value))
        writer |= deltas[-1]
    reader = BoundedLWWSet(bound=3)
    reader |= deltas[2]
    assert not reader.complete
    reader |= deltas[0]
    assert not reader.complete
    reader |= deltas[1]
    assert reader.complete
    assert reader.values() == [1, 2, 3]


def test_a_column_batch_is_the_same_as_its_samples_one_by_one():
    draw = random.Random(1)
    for _ in range(200):
        limits = draw.choice([(3, None), (None, 0.00002), (4, 0.00001)])
        batch, single = BoundedLWWSet(*limits), BoundedLWWSet(*limits)
        accepted_us = 0
        for _ in range(4):
            size = draw.randrange(9)
            values = [draw.randrange(9) for _ in range(size)]
            times = [draw.randrange(50) for _ in range(size)]
            accepted_us += draw.randrange(15)
            stamp = draw.choice([None, accepted_us])
            batch |= batch.add_many(ME, values, times, stamp)
            for value, time_us in zip(values, times, strict=True):
                single |= single.add(ME, value, time_us, stamp)
            assert batch == single, "replay with: random.Random(1)"
            assert batch.complete


def test_age_counts_from_acceptance_and_not_from_the_samples_time():
    state = BoundedLWWSet(max_age_s=10)
    state |= state.add(ME, "old news", 0, accepted_us=100 * SECOND)
    state |= state.add(ME, "news", 99 * SECOND, accepted_us=105 * SECOND)
    assert state.values() == ["old news", "news"]
    state |= state.add(ME, "more", 1, accepted_us=111 * SECOND)
    assert state.values() == ["news", "more"]


def test_what_is_too_old_expires_without_a_new_sample():
    state = BoundedLWWSet(max_age_s=10)
    state |= state.add(ME, 1, 0)
    state |= state.expire(10 * SECOND)
    assert state.values() == [1]
    state |= state.expire(10 * SECOND + 1)
    assert (state.values(), state.complete, state.lo) == ([], True, 1)


def test_without_a_max_age_nothing_expires():
    state = filled([1, 2])
    assert state.expire(10**15) == state.bottom()


def test_the_writer_applies_a_smaller_bound_by_raising_lo():
    state = filled([1, 2, 3], bound=3)
    state |= state.resized(1, control_version=1)
    assert (state.values(), state.bound, state.lo) == ([3], 1, 2)
    state |= state.resized(2, control_version=2, max_age_s=60)
    state |= state.add(ME, 4, 3 * SECOND)
    assert (state.values(), state.bound, state.max_age_s) == ([3, 4], 2, 60.0)


def test_the_greater_control_version_wins_wherever_the_two_meet():
    base = filled([1, 2, 3], bound=3)
    one, two = base | base.resized(2, 1), base | base.resized(3, 2)
    assert (one | two).bound == (two | one).bound == 3
    assert one | two == two | one


def test_a_new_life_adopts_what_the_earlier_one_kept():
    state = filled([1, 2, 3])
    adopted = state.adopt(LATER)
    assert (adopted.values(), adopted.replica) == ([2, 3], LATER)
    assert (state | adopted | state.add(ME, "from the dead", 9)).values() == [2, 3]


def test_the_first_sample_of_a_new_life_adopts_by_itself():
    state = filled([1, 2, 3])
    delta = state.add(LATER, 4, 9)
    assert (state | delta).values() == [3, 4]
    assert (BoundedLWWSet(bound=2) | delta).values() == [3, 4]


def test_a_hole_is_not_waited_for_once_a_new_life_has_adopted():
    state = filled([1, 2, 3], bound=3)
    torn = state.bottom()
    torn |= next(part for part in state.irreducibles() if part.values() == [1])
    torn |= next(part for part in state.irreducibles() if part.values() == [3])
    assert not torn.complete
    adopted = torn.adopt(LATER)
    assert adopted.complete
    assert adopted.values() == [1, 3]


def test_restart_with_an_old_snapshot_is_a_new_replica_and_loses_nothing_of_either_life():
    snapshot = filled([1, 2], bound=9)
    first_life = snapshot | snapshot.add(ME, 3, 3 * SECOND)
    second_life = snapshot | snapshot.add(LATER, 4, 4 * SECOND)
    peer = first_life | second_life
    assert peer == second_life | first_life
    assert peer.values() == [1, 2, 4], "latest state follows the later life, complete as it is"
    assert peer.complete


def test_joining_tells_what_came_and_what_went():
    state = filled([1, 2])
    delta = state.add_many(ME, [3, 4], [3, 4])
    added, removed = state.join_changes(delta)
    assert [value for _, value, _ in added] == [3, 4]
    assert [value for _, value, _ in removed] == [1, 2]
    assert state.join_changes(delta) == ([], [])


def test_changes_add_up_to_the_state_whatever_arrives():
    draw = random.Random(2)
    writer, deltas = BoundedLWWSet(bound=4), []
    for at in range(30):
        writer_id = ME if at < 20 else LATER
        deltas.append(writer.add(writer_id, at, at))
        writer |= deltas[-1]
    for _ in range(50):
        reader, kept = BoundedLWWSet(bound=4), []
        for delta in draw.choices(deltas, k=60):
            added, removed = reader.join_changes(delta)
            for sample in removed:
                kept.remove(sample)
            kept += added
            assert sorted(kept) == sorted(reader.samples())


def test_a_hundred_samples_of_a_second_each_encode_to_less_than_a_kilobyte():
    draw = random.Random(3)
    state = BoundedLWWSet(bound=100)
    for second in range(86_400 // 100):
        jitter = draw.randrange(2_000)
        time_us = 1_700_000_000_000_000 + second * SECOND + jitter
        state |= state.add(ME, 2_150 + draw.randrange(-20, 20), time_us)
    assert len(state) == 100
    assert len(encode(state)) < 1_000


def test_bottom_has_no_writer_and_keeps_the_limits():
    bottom = filled([1], bound=5).bottom()
    assert (bottom.replica, bottom.bound, len(bottom), bottom.complete) == (NOBODY, 5, 0, True)


def test_an_earlier_life_cannot_write_again():
    state = filled([1], replica=LATER)
    with pytest.raises(ValueError, match="later than"):
        state.add(ME, 2, 2)
    with pytest.raises(ValueError, match="later than"):
        state.adopt(LATER)


@pytest.mark.parametrize("limits", [(), (0,), (-1,), (None, 0), (2**40,)])
def test_limits_that_bound_nothing_are_refused(limits):
    with pytest.raises(ValueError, match="needs"):
        BoundedLWWSet(*limits)


def test_what_is_no_sample_is_refused():
    state = BoundedLWWSet(bound=2)
    with pytest.raises(ValueError, match="one length, got 2 values, 1 times"):
        state.add_many(ME, [1, 2], [1])
    with pytest.raises(ValueError, match="a value needs"):
        state.add(ME, float("nan"), 1)
    with pytest.raises(ValueError, match="a time in µs"):
        state.add(ME, 1, 1.5)
    with pytest.raises(ValueError, match="a time in µs"):
        state.add(ME, 1, 1, accepted_us=2**61)
    with pytest.raises(ValueError, match="control version"):
        state.resized(3, control_version=0)
