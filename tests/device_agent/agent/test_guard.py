"""The guard: nothing that comes in, and no function of the user's, ends an agent.

Each broken thing is tried on the real core with the same rule: it is counted with its reason and
place, nothing of it is half done, and what comes after it works.
"""

import signal
import sys

import msgpack
import pytest

from crdts import GSet, Replica
from device_agent.agent.intake.batch import Batch
from device_agent.agent.state.counters import NAME_BYTES, Counters, Guard
from lasp_edge import Program, folds
from lasp_edge.dataflow import cardinality
from lasp_edge.folds.columns import Column, Op
from lasp_edge.folds.fold import Fold
from lasp_edge.protocol.checks import FrameError
from lasp_edge.protocol.envelope import FORMAT
from lasp_edge.protocol.frames import PaneFrame
from lasp_edge.protocol.kinds import decode
from lasp_edge.units import SECOND_US
from tests.device_agent.agents import NOW_US, Device, entry_of, greenhouse
from tests.lasp_edge.support_programs import averaged

PEER = Replica(3, 33, "pi-2")
ENDS = [SystemExit, KeyboardInterrupt, GeneratorExit, RecursionError, MemoryError, RuntimeError]


@pytest.fixture(autouse=True)
def signals():
    """SIGINT has a handler, as in the agent's process: a KeyboardInterrupt is some function's."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    yield
    signal.signal(signal.SIGINT, before)


class Moody(Fold):
    """A sum that raises where it is told to, at the n-th call."""

    name, parts = "moody", ("n",)
    columns = (Column("n", Op.SUM),)

    def __init__(self):
        self.broken, self.error, self.after = "", RuntimeError, 0

    def _maybe(self, method):
        if self.broken == method:
            self.after -= 1
            if self.after < 0:
                raise self.error("a mood")

    def lift(self, value, time_us=0):
        self._maybe("lift")
        return (value,)

    def combine(self, a, b):
        self._maybe("combine")
        return super().combine(a, b)

    def retract(self, a, b):
        self._maybe("retract")
        return super().retract(a, b)

    def within_limits(self, partial):
        self._maybe("within_limits")
        return super().within_limits(partial)

    def lower(self, partial, resolution):
        self._maybe("lower")
        return {"n": partial[0]}


def moody() -> tuple[Program, Moody]:
    """Return a program whose fold, key, handlers and derived sets can be broken."""
    fold = Moody()
    program = averaged("moody", fold)
    temperature, seen = program.temperature, program.declare(GSet(), "seen")
    program.window("panes", source=temperature, fold=fold, size_s=60)
    program.window("plain", source=temperature, fold=folds.count(), size_s=60)

    @program.on_event(temperature)
    def noted(event, update):
        update(seen, "add", round(event.value))

    return program, fold


def counted(device: Device) -> int:
    return device.counted.get("accepted", 0) + device.counted.get("refused", 0)


@pytest.mark.parametrize(
    ("after", "error"), [(0, error) for error in ENDS] + [(n, RuntimeError) for n in range(1, 4)]
)
@pytest.mark.parametrize("broken", ["lift", "combine", "retract", "within_limits", "lower"])
def test_a_fold_that_breaks_anywhere_ends_nothing_and_halves_nothing(  # noqa: PLR0915
    tmp_path, broken, after, error
):
    program, fold = moody()
    device = Device(tmp_path, program.plan())
    device.read([1.0], [NOW_US])
    device.tick(20)
    fold.broken, fold.error, fold.after = broken, error, after
    device.read([2.0], [NOW_US + 1])
    stream = device.program.local_folds["here"].stream
    device.hear(entry_of(PEER, 1, "here", stream, (5,)))
    device.tick(20)
    device.core.report()
    fold.broken = ""
    device.read([3.0], [NOW_US + 2])
    device.hear(entry_of(PEER, 2, "here", stream, (7,)))
    device.tick(20)
    kept = [round(reading["value"]) for reading in device.store.readings()]
    assert kept in ([1, 3], [1, 2, 3])
    assert counted(device) == 3
    assert device.core.variables.shared()["seen"] == frozenset(kept)
    by_stream = {pane.stream: row.partial for pane, row in device.rows()}
    windows = device.program.windows
    assert by_stream == {
        windows["panes"].stream: (sum(kept),),
        windows["plain"].stream: (len(kept),),
    }
    values = device.core.report()["values"]
    assert values["here"]["n"] == sum(kept)
    assert values["everywhere"]["n"] == sum(kept) + 7
    device.restart()
    device.tick(20)
    assert device.core.report()["values"]["here"]["n"] == sum(kept)


@pytest.mark.parametrize("error", ENDS)
@pytest.mark.parametrize("where", ["key", "handler", "map", "filter", "threshold"])
def test_a_function_that_raises_anything_is_counted_with_its_place(  # noqa: PLR0915
    tmp_path, where, error
):
    broken = {"now": False}

    def maybe(name):
        if broken["now"] and name == where:
            raise error("a mood")

    program = Program("functions")
    temperature = program.event("temperature")
    seen = program.declare(GSet(), "seen")
    known = program.declare(GSet(), "known")
    program.map(seen, lambda element: maybe("map") or element + 1, "more")
    program.filter(seen, lambda element: maybe("filter") or True, "same")
    program.window(
        "by_room",
        source=temperature,
        fold=folds.count(),
        size_s=60,
        key=lambda event: maybe("key") or event.tags.get("room", ""),
    )

    @program.on_event(temperature)
    def noted(event, update):
        maybe("handler")
        update(seen, "add", round(event.value))

    @program.on_threshold(seen, cardinality(1))
    def reached(_value, update):
        maybe("threshold")
        update(known, "add", "reached")

    device = Device(tmp_path, program.plan())
    broken["now"] = True
    device.read([1.0], [NOW_US])
    device.tick()
    broken["now"] = False
    device.read([2.0], [NOW_US + 1])
    device.tick(20)
    said = [*device.core.agent.guard.reasons, *(n for n in device.counted if "program: " in n)]
    assert len(said) == 1
    assert error.__name__ in said[0]
    assert "test_guard.py:" in said[0]
    refused = where in {"key", "handler"}
    assert device.counted["accepted"] == (1 if refused else 2)
    assert device.store.restored().counters[said[0]] == 1
    assert sum(row.partial[0] for _, row in device.rows()) == device.counted["accepted"]


def test_a_persons_interrupt_passes_where_nobody_handles_it():
    guard = Guard(Counters({}))
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guard.run("a fold", interrupted)
    assert guard.reasons == []


def test_a_reason_is_one_short_line_with_the_users_place(tmp_path):
    def failing():
        return sorted([1, 2], key=lambda _: int("x\ny" * 100))

    guard = Guard(Counters({}))
    guard.run("a key", failing)
    (reason,) = guard.reasons
    assert reason.startswith(
        "failed: a key: ValueError: invalid literal for int() with base 10: 'x"
    )
    assert "\n" not in reason
    assert len(reason) <= NAME_BYTES
    assert f"test_guard.py:{failing.__code__.co_firstlineno + 1})" in reason


def test_a_long_name_ends_behind_a_word():
    counters = Counters({})
    for name in ("word " * 60, "a" * 300, "b" * NAME_BYTES):
        counters.note(name)
    words, letters, whole = counters.totals
    assert words == "word " * 39 + ".."
    assert letters == "a" * (NAME_BYTES - 3) + " .."
    assert whole == "b" * NAME_BYTES


def test_an_error_that_cannot_be_printed_has_its_type_and_place():
    class UnprintableError(Exception):
        def __str__(self):  # noqa: PLE0307
            sys.exit(3)

    guard = Guard(Counters({}))
    guard.run("a key", lambda: (_ for _ in ()).throw(UnprintableError))
    (reason,) = guard.reasons
    assert reason.startswith("failed: a key: UnprintableError (")


# Parts.

METHODS = ["connected", "unsent", "succeed", "tick", "take_changes", "take_notes", "committed"]


@pytest.mark.parametrize("method", [*METHODS, "publications", "report"])
def test_a_part_that_raises_in_any_method_is_counted_and_all_others_go_on(tmp_path, method):
    def failing(*_arguments):
        raise SystemExit(3)

    device = Device(tmp_path, settings=None)
    part = device.core.commands
    setattr(part, method, failing)
    part.is_changed = True
    for asked in device.core.part_list._with.values():
        if part not in asked:
            asked.append(part)
    device.core.handle_connected(device.now_us)
    device.core.become(device.core.replica._replace(incarnation=5))
    device.core.handle_unsent(next(iter(device.tick(20))))
    device.read([20.0])
    device.tick(20)
    assert device.core.report()["accepted"] == 1
    assert [n.partition(" (")[0] for n in device.core.agent.guard.reasons] == [
        f"failed: commands, {method}: SystemExit: 3"
    ]
    assert device.store.restored().counters["accepted"] == 1


# Frames.


def test_a_variable_frame_with_keys_and_no_columns_is_no_frame(tmp_path):
    device = Device(tmp_path)
    stream = device.program.local_folds["local_average"].stream
    body = ["local_average", stream, 0, [""], [0], []]
    payload = msgpack.packb([FORMAT, 2, "pi-2", 3, 33, 1, None, body])
    topic = device.core.agent.topics.of("var", "pi-2", "local_average", "00")
    with pytest.raises(FrameError, match="unequal length"):
        decode(payload)
    for _ in range(2):  # as after a start, when the broker kept it
        device.durable.hear(topic, payload, device.now_us)
        device.tick()
        device.restart()
    device.read([20.0])
    device.tick(20)
    assert device.core.report()["accepted"] == 1


# Batches.


class Odd(dict):
    """Tags that cannot be read."""

    def items(self):
        raise RuntimeError("no items")


@pytest.mark.parametrize("size", [1, 3, 20])
@pytest.mark.parametrize(
    "odd",
    [
        {"tags": Odd(room="x")},
        {"tags": None},
        {"tags": {"room": object()}},
        {"names": ["temperature"]},
        {"names": None},
        {"times_us": "now"},
        {"times_us": 1.5},
        {"times_us": NOW_US + 0.5},
        {"times_us": float("nan")},
        {"values": object()},
        {"values": [1]},
        {"values": 10**5000},
    ],
)
def test_what_is_wrong_with_one_reading_refuses_no_other(tmp_path, odd, size):
    device = Device(tmp_path, greenhouse(keyed=True))
    columns = {
        "names": ["temperature"] * size,
        "times_us": [NOW_US + n for n in range(size)],
        "values": [20.0] * size,
        "tags": [{"room": "attic"}] * size,
    }
    for column, value in odd.items():
        columns[column][size // 2] = value
    device.durable.read(Batch("test", **columns, cursor="9"), NOW_US + size)
    assert device.counted.get("accepted", 0) == size - 1
    assert device.counted.get("refused", 0) + device.counted.get("too_late", 0) == 1
    assert device.store.restored().sources["test"].cursor == "9"
    assert sum(row.partial[0] for _, row in device.rows()) == size - 1
    device.read([21.0], [NOW_US + 90 * SECOND_US])
    device.tick(20)
    assert device.counted["accepted"] == size
    assert device.frames(PaneFrame)


def test_a_batch_that_breaks_the_intake_is_refused_and_its_source_goes_on(tmp_path, monkeypatch):
    device = Device(tmp_path)

    def broken(*_arguments):
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(device.core.intake, "accept", broken)
        device.read([20.0] * 3, [NOW_US + n for n in range(3)], cursor="3")
    assert device.counted["refused"] == 3
    assert device.store.restored().sources["test"].cursor == "3"
    device.read([20.0], [NOW_US + 9], cursor="4")
    assert device.counted["accepted"] == 1
