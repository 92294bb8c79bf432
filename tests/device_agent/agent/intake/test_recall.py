"""What one reading costs does not grow with what strangers, tags and keys have left behind."""

from device_agent.agent.intake.identities import KEPT_STREAMS
from device_agent.agent.panes.cache import KEPT_ENTRIES
from device_agent.agent.settings import Settings
from lasp_edge import Program, folds
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import NOW_US, Device, greenhouse
from tests.support_sizes import most_held

KEYS = KEPT_ENTRIES * 3


def filled(directory) -> Device:
    """Return a device with one pane of many keys, most of which are in the store alone."""
    device = Device(directory, greenhouse(keyed=True), settings=Settings())
    for start in range(0, KEYS, 500):
        numbers = range(start, start + 500)
        times = [NOW_US + number for number in numbers]
        device.take([20.0] * 500, times, [{"room": f"r{number}"} for number in numbers])
    assert len(device.core.panes.memory.entries) < KEYS // 2
    return device


def test_a_reading_in_a_pane_of_many_keys_recalls_its_own_entry_and_no_other(tmp_path):
    device, asked = filled(tmp_path), []
    named = device.store.panes_named
    device.store.panes_named = lambda panes: asked.extend(panes) or named(panes)
    for number in (0, KEYS // 2, KEYS - 1):
        asked.clear()
        device.take([21.0], [NOW_US + KEYS + number], [{"room": f"r{number}"}])
        assert {pane.key for pane in asked} <= {f"r{number}"}
    panes = device.stored_panes()
    assert len(panes) == KEYS
    twice = {key for (key, _), partial in panes.items() if partial[0] == 2}
    assert twice == {"r0", f"r{KEYS // 2}", f"r{KEYS - 1}"}
    assert sum(partial[0] for partial in panes.values()) == KEYS + 3


def test_a_late_column_of_an_evicted_pane_without_keys_recalls_it(tmp_path):
    device = Device(tmp_path, greenhouse(), settings=Settings())
    spans = KEPT_ENTRIES * 2
    device.now_us += spans * 10 * SECOND_US
    for start in range(0, spans, 500):
        times = [NOW_US + number * 10 * SECOND_US for number in range(start, start + 500)]
        device.take([20.0] * 500, times, [{}] * 500)
    late = [NOW_US + number * 10 * SECOND_US + 1 for number in range(20)]
    device.take([21.0] * 20, late, [{}] * 20)
    counts = [partial[0] for _, partial in sorted(device.stored_panes().items())]
    assert counts == [2] * 20 + [1] * (spans - 20)


def test_a_key_function_is_asked_once_and_what_it_says_loses_no_entry(tmp_path):
    program, mind = Program("moods"), {"calls": 0}

    def moody(event):
        mind["calls"] += 1
        return mind.get("other") or event.tags["room"]

    temperature = program.event("temperature", resolution="0.01")
    program.window("by_room", source=temperature, fold=folds.count(), size_s=60, key=moody)
    device = Device(tmp_path, program.plan(), settings=Settings())
    for start in range(0, KEYS, 500):
        numbers = range(start, start + 500)
        times = [NOW_US + number for number in numbers]
        device.take([20.0] * 500, times, [{"room": f"r{number}"} for number in numbers])
    held = {pane.key for pane in device.core.panes.memory.entries}
    other = next(f"r{number}" for number in range(KEYS) if f"r{number}" not in held)
    mind |= {"calls": 0, "other": other}
    device.take([21.0], [NOW_US + KEYS], [{"room": f"r{KEYS - 1}"}])
    assert mind["calls"] == 1
    assert sum(partial[0] for partial in device.stored_panes().values()) == KEYS + 1


def test_a_tag_that_differs_in_each_reading_does_not_fill_memory_and_repeats_are_known(tmp_path):
    device = Device(tmp_path, settings=Settings())
    many = KEPT_STREAMS * 2

    def take(start):
        numbers = range(start, start + 500)
        times = [NOW_US + number for number in numbers]
        device.take([20.0] * 500, times, [{"id": str(number)} for number in numbers])

    for start in range(0, many, 500):
        take(start)
    assert most_held(device.core.intake.identities) <= KEPT_STREAMS
    take(0)
    take(many - 500)
    assert device.counted["repeated"] == 1_000
    device.restart()
    assert most_held(device.core.intake.identities) <= KEPT_STREAMS
    take(0)
    take(many - 500)
    assert device.counted["repeated"] == 2_000
    assert device.counted["accepted"] == many
