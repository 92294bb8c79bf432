"""The replay ratio of a scan over the fleet is what counting by hand gives."""

from bisect import bisect_left
from random import Random

import pytest

from lasp_edge import Event, Program, scans
from lasp_edge.checking.replays import replay_ratios
from lasp_edge.ordered.places import reading_place

SECOND_US, CELL_S = 1_000_000, 10


def added(state, event):
    return state + event.value


def ratio(scan, times_s, **declared):
    """Return the replay ratio of a scan over devices that read at these times."""
    program = Program("doors")
    door = program.event("door")
    program.scan("made", source=door, scan=scan, **declared)
    content = {}
    for device, own_s in times_s.items():
        for n, at_s in enumerate(own_s, start=1):
            event = Event("door", n, round(at_s * SECOND_US), device, {"of": device})
            content[reading_place("door", "", n, event.time_us, device)] = event
    (found,) = replay_ratios(program.plan(), {"door": content}).values()
    return found


def by_hand(times_s, steps_of):
    """Return the steps a reading: what is sent together is put in, and some of it stepped."""
    devices = sorted(times_s)
    Random(0).shuffle(devices)
    sent = {}
    for number, device in enumerate(devices):
        for at_s in times_s[device]:
            now_s = int(at_s // CELL_S * CELL_S + CELL_S + number * CELL_S / len(devices))
            sent.setdefault(now_s, []).append((at_s, device))
    known, steps = [], 0
    for now_s in sorted(sent):
        known = sorted([*known, *sent[now_s]])
        steps += steps_of(known, sent[now_s])
    return steps / len(known)


def of_two(known, new):
    """FlameStream's algorithm: each pair with a new reading leaves."""
    pairs = {bisect_left(known, each) + ahead for each in new for ahead in (0, 1)}
    return len(pairs - {len(known)})


def of_all(known, new):
    """What never forgets: all from the first new reading on."""
    return len(known) - bisect_left(known, min(new))


def drawn(devices, seconds=50):
    rng = Random(devices)
    return {f"d{n}": [s + rng.random() for s in range(seconds)] for n in range(devices)}


@pytest.mark.parametrize("devices", [1, 3, 20])
def test_it_is_what_counting_by_hand_gives(devices):
    times_s = drawn(devices)
    assert ratio(scans.last(2), times_s) == by_hand(times_s, of_two)
    assert ratio(scans.running(added), times_s) == by_hand(times_s, of_all)


def test_keys_of_one_device_are_stepped_once():
    assert ratio(scans.running(added), drawn(7), key=lambda event: event.tags["of"]) == 1


def test_what_nothing_reaches_has_none():
    assert ratio(scans.last(2), {"d0": [1]}, key=lambda event: event.tags["away"]) == 0
