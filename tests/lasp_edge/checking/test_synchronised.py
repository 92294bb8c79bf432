"""The laws of synchronised scans: what breaks one is found, and sound programs are silent."""

import pytest

from lasp_edge import Program
from lasp_edge.checking.streams import tried_streams
from lasp_edge.ordered.covers import covers
from lasp_edge.ordered.synchronised import Synchronised
from lasp_edge.testing import check_scan
from lasp_edge.tool.command_line import main
from tests.lasp_edge.scans.support_synchronised import (
    SCANS,
    Energy,
    Modulo,
    Outliers,
    SmartHome,
    ValueBarrier,
    program_of,
)


def wrong(kind, **options):
    """Return the laws that `check` finds broken in a program of a scan, and their lines."""
    found = tried_streams(program_of(kind, **options).plan()).wrong
    return {text.removeprefix("scan found: ")[:2]: text for text in found}


@pytest.mark.parametrize("kind", SCANS)
def test_sound_programs_are_silent(kind):
    assert wrong(kind, resolution="1") == {}
    assert wrong(kind, resolution="0.1", key=lambda event: str(event.value % 2)) == {}


class WholeShare(Outliers):
    def share(self, state):
        return state


class SpareShare(Energy):
    def share(self, state):
        return 1, 0, ()


class ForgetsCount(Energy):
    def join(self, state, part):
        return state[0], state[1] + part[1], state[2]


class NoModel(Outliers):
    """Devices judge without the model, so they have other outputs."""

    def share(self, state):
        return (0, 0, 0), (0, 0, 0)


class NoSelf(Modulo):
    depends = (("a", "b"),)


class Unordered(Outliers):
    depends = (("b", "b"),)


class OneMinute(SmartHome):
    """As it was published: without an order of two minutes."""

    depends = (("minute", "warm"), ("minute", "pressure"))

    def step(self, state, event):
        if event.name != "minute":
            return super().step(state, event)
        after, _ = super().step(state, event)
        return after, [(len(state[0]), len(state[1]))]


class Doubles(ValueBarrier):
    def step(self, state, event):
        return (state, [state]) if event.name == "b" else (state + event.value, [])


class Raising(ValueBarrier):
    def join(self, state, part):
        return state + part[0]


class Saturating(ValueBarrier):
    """Counts up to a number, and join adds what was counted beyond it."""

    most = 40

    def step(self, state, event):
        return (0, [state]) if event.name == "b" else (min(state + 1, self.most), [])

    def share(self, state):
        return 0

    def join(self, state, part):
        return state + part


class Coldest(ValueBarrier):
    """The least value of a span, and how many there were."""

    zero, empty = (0, 10_000), (0, 0)
    parts = {"n": "1", "least": "1"}  # noqa: RUF012 - the contract

    def step(self, state, event):
        if event.name == "b":
            return self.zero, [state]
        return (state[0] + 1, min(state[1], event.value)), []

    def share(self, state):
        return self.empty

    def join(self, state, part):
        return state[0] + part[0], min(state[1], part[1])


class Least(Coldest):
    zero, empty = 10_000, 0

    def step(self, state, event):
        return (self.zero, [state]) if event.name == "b" else (min(state, event.value), [])

    def join(self, state, part):
        return min(state, part)


class Forgetful(ValueBarrier):
    def join(self, state, part):
        return part


class Rare(Saturating):
    """One value means something else: it needs an order that nothing else needs."""

    depends = (("b", "a"), ("b", "b"))

    def step(self, state, event):
        if event.name == "a" and event.value == 4_711:
            return state * 2, []
        return (0, [state]) if event.name == "b" else (state + 1, [])


BROKEN = [
    (WholeShare, {"C2"}, "so let the share have 0, or nothing, where join adds"),
    (Coldest, {"C2"}, "so let the share have what join leaves alone, here (0, 10000)"),
    (Least, {"C2"}, "so let the share have what join leaves alone, here 10000"),
    (Forgetful, {"C2"}, "so let join keep what s has: it gives what the part has alone"),
    (SpareShare, {"C2"}, "join(s, share(s)) = (1, 0, ())"),
    (ForgetsCount, {"C1"}, "so let step of a use what the share gives alone"),
    (NoModel, {"C1"}, "with b in order"),
    (NoSelf, {"C3"}, "so write depends = (..., ('b', 'b'))"),
    (Unordered, {"C3"}, "so write depends = (..., ('a', 'b'))"),
    (OneMinute, {"C3"}, "so write depends = (..., ('minute', 'minute'))"),
    (Doubles, {"C4"}, "so let the state have whole numbers, such as round(event.value / step)"),
    (Raising, {"C1", "C2"}, "then = it raises TypeError: 'int' object is not subscriptable"),
]


@pytest.mark.parametrize(("kind", "laws", "text"), BROKEN)
def test_what_breaks_a_law_is_found_with_what_to_write(kind, laws, text):
    names = ("minute", "warm", "pressure") if issubclass(kind, SmartHome) else ("a", "b")
    found = wrong(kind, names=names, resolution="0.1" if kind is Doubles else "1")
    assert set(found) == laws
    assert text in "\n".join(found.values())


@pytest.mark.parametrize("most", [12, 40, 200])
def test_a_slice_of_many_events_is_tried_and_its_counter_example_is_the_shortest(most):
    class UpTo(Saturating):
        def step(self, state, event):
            return (0, [state]) if event.name == "b" else (min(state + 1, most), [])

    line = next(text for text in wrong(UpTo)["C1"].splitlines() if "outputs = " in text)
    assert line.endswith(f"outputs = (({most + 1}, ()))") or f"({most + 1}, ())" in line


def test_a_number_that_a_step_names_is_among_the_values():
    assert "so write depends = (..., ('a', 'a'))" in wrong(Rare)["C3"]
    assert "a 4711.0" in wrong(Rare)["C3"]


class Dearest(Saturating):
    """What is above a number counts twice behind an odd count, or behind a large sum."""

    zero = (0, 0)
    depends = (("b", "a"), ("b", "b"))

    def step(self, state, event):
        count, total = state
        if event.name == "b":
            return (0, 0), [total]
        twice = (event.value > 900 and count % 2) or (event.value > 300 and total > 2_000)
        return (count + 1, total + round(event.value) * (1 + bool(twice))), []

    def share(self, state):
        return (0, 0)

    def join(self, state, part):
        return state[0] + part[0], state[1] + part[1]


class AboveALargeSum(Dearest):
    def step(self, state, event):
        if event.name == "b":
            return (0, 0), [state[1]]
        twice = event.value > 300 and state[1] > 2_000
        return (0, state[1] + round(event.value) * (1 + twice)), []


@pytest.mark.parametrize("kind", [Dearest, AboveALargeSum])
def test_values_beyond_a_number_that_a_step_names_are_tried_and_large_sums(kind):
    program = Program("found")
    a, b = program.event("a", least=0, most=1_000), program.event("b")
    program.result(program.scan("found", source=[a, b], scan=kind, local=a), parts={"total": "1"})
    assert any("C1" in line for line in tried_streams(program.plan()).wrong)


def test_the_counter_example_is_small():
    lines = wrong(WholeShare)["C2"].splitlines()
    assert lines[1:3] == [
        "        with b in order:",
        "        s after a 0.0 of pi-1, b 0.0 of pi-1 = ((1, 0, 0), (1, 0, 0))",
    ]


def test_a_test_of_a_scan_asks_for_the_laws():
    events = {"values": [1, 2, 3, 4, 5], "names": ["a", "a", "b", "a", "b"]}
    check_scan(Outliers(), **events)
    with pytest.raises(AssertionError, match="WholeShare: C2: an untouched share adds nothing"):
        check_scan(WholeShare(), **events)


def test_the_command_shows_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "unlawful_program.py").write_text(
        "from tests.lasp_edge.checking.test_synchronised import WholeShare, program_of\n"
        "program = program_of(WholeShare)\n"
    )
    code = main(["check", "unlawful_program:program", "--no-record"])
    printed = capsys.readouterr().out
    assert code == 1
    assert printed.startswith("1 thing that cannot work")
    assert (
        "FAIL  scan found: C2: an untouched share adds nothing\n        with b in order" in printed
    )


@pytest.mark.parametrize(
    ("depends", "choices"),
    [
        ([("b", "a")], [("a",), ("b",)]),
        ([("b", "a"), ("b", "b")], [("b",)]),
        ([("b", "a"), ("c", "a"), ("c", "b")], [("a", "b"), ("a", "c"), ("b", "c")]),
        ([("a", "a"), ("b", "b")], [("a", "b")]),
        ([("m", str(n)) for n in range(11)], [("m",), tuple(sorted(map(str, range(11))))]),
    ],
)
def test_each_choice_of_events_in_order_covers_all_pairs(depends, choices):
    assert covers(depends) == choices


class Median(Synchronised):
    """Gives the middle one of the readings since the last plate, which are in no order."""

    name, zero, empty, parts = "median", (), (), {"middle": "1"}
    depends = (("b", "a"), ("b", "b"))

    def step(self, state, event):
        if event.name == "a":
            return (*state, round(event.value)), []
        return (), [sorted(state)[len(state) // 2]] if state else []

    def join(self, state, part):
        return (*state, *part)


class SortedMedian(Median):
    def step(self, state, event):
        after, values = super().step(state, event)
        return tuple(sorted(after)), values

    def join(self, state, part):
        return tuple(sorted((*state, *part)))


def test_a_state_whose_order_does_not_matter_is_to_be_sorted():
    remedy = "or let step and join keep the state sorted: both have the same in another order"
    assert remedy in wrong(Median)["C3"]
    assert wrong(SortedMedian) == {}
    assert all(remedy not in line for line in wrong(NoSelf).values())
