"""Panes of a former window count for a new one, whenever they land and whatever devices run."""

import random

import pytest

from cloud_tier import Lake
from cloud_tier.job.job import Job
from cloud_tier.job.repair import repair_all
from cloud_tier.job.step import recalled
from cloud_tier.lake.backfill import former_windows, let_count
from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.deletion import ask_recompute, recompute_is_due
from crdts import BoundedLWWSet
from lasp_edge import Program, folds
from lasp_edge.errors import Exit, NotFound, UsageError
from lasp_edge.tool.command_line import main
from tests.cloud_tier.lakes import LakeUnderTest
from tests.cloud_tier.support_devices import Device, readings_of, true_windows

READINGS = readings_of(7, each=10)


def made(fold=folds.mean, **sizes):
    """Return a program with windows by room: name -> (size, slide)."""
    program = Program("rooms")
    event = program.event("temperature", resolution="0.01")
    samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples")
    program.collect(event, into=samples)
    program.fold_dynamic(program.fold(samples, folds.mean(), "local_average"), "global_average")
    for name, (size_s, slide_s) in sizes.items():
        shape = {"size_s": size_s, "slide_s": slide_s}
        program.window(
            name, source=event, fold=fold(), key=lambda event: event.tags["room"], **shape
        )
    return program.plan()


def histories(old, new):
    """Return the rows of a fleet before and after its devices start with another program."""
    before, after = [], []
    for place, name in enumerate(sorted({each.device for each in READINGS})):
        own = [each for each in READINGS if each.device == name]
        updated = Device(new, name)
        updated.start()
        device, at = Device(old, name), 3 * place + 1
        before += device.accept(own[:at])
        after += updated.accept(own[at:])
    return before, after


class Backfilled(LakeUnderTest):
    """A lake whose job goes on with another program."""

    def start(self, program):
        prepare(program, self.lake)
        self.program, self.job = program, Job(program, self.lake)
        if recompute_is_due(self.lake):
            repair_all(self.spark, self.job)
        self.known = recalled(self.job)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("old", "new", "former"),
    [
        pytest.param({"a": (60, 10)}, {"b": (60, 10)}, "a", id="renamed"),
        pytest.param({"a": (60, 10)}, {"a": (60, 10), "b": (50, 10)}, "a", id="beside"),
        pytest.param({"a": (60, 10)}, {"b": (90, 30)}, "a", id="of longer panes"),
        pytest.param({"b": (60, 10)}, {"b": (60, 20)}, "b", id="of its own name"),
    ],
)
def test_a_new_window_has_the_readings_of_a_former_one(spark, tmp_path, old, new, former):
    """A part of the former panes was merged before; others come late, and some twice."""
    old, new = made(**old), made(**new)
    lake = Backfilled(spark, old, tmp_path)
    prepare(old, lake.lake)
    before, after = histories(old, new)
    draw = random.Random(5)
    draw.shuffle(before)
    lake.step(before[::2])
    let_count(new, lake.lake, "b", former)
    ask_recompute(lake.lake)
    lake.start(new)
    late = [*before, *after]
    draw.shuffle(late)
    for start in range(3):
        lake.step(late[start::3])
    lake.step(before[1::2])
    found = Lake(lake.lake.root).windows("b").current().to_pylist()
    assert {(row["key"], row["start_us"]): row["total_q"] for row in found} == {
        (key, start_us): partial[1]
        for (name, key, start_us), (partial, _) in true_windows(new, READINGS).items()
        if name == "b"
    }
    assert {row["covered"] for row in found} == {True}


@pytest.mark.spark
def test_rows_of_a_new_window_tell_that_it_lacks_what_was_before_it(spark, tmp_path):
    old, new = made(a=(60, 10)), made(a=(60, 10), b=(60, 10))
    lake = Backfilled(spark, old, tmp_path)
    prepare(old, lake.lake)
    before, after = histories(old, new)
    lake.step(before)
    lake.start(new)
    lake.step(after)
    covered = {(row["window"], row["covered"]) for row in lake.rows(lake.lake.windows)}
    assert covered == {("a", True), ("b", False)}


@pytest.fixture
def known(tmp_path):
    """A lake of a window of 60 s, one every 10 s, of panes of 10 s."""
    from cloud_tier.lake.tables import LakeTables  # noqa: PLC0415

    tables = LakeTables(tmp_path / "lake")
    prepare(made(a=(60, 10)), tables)
    return tables


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (made(fold=folds.sum, b=(60, 10)), "it has another fold"),
        (made(a=(60, 10), b=(60, 20)), "readings would count twice"),
        (made(b=(60, 12)), "which does not divide 12"),
    ],
)
def test_panes_that_cannot_count_are_refused_with_the_reason(known, program, reason):
    with pytest.raises(UsageError, match=reason):
        let_count(program, known, "b", "a")


def test_windows_that_are_not_there_are_named(known):
    with pytest.raises(NotFound, match="the program has no window 'c'"):
        let_count(made(b=(60, 10)), known, "c", "a")
    with pytest.raises(NotFound, match="no window 'c' of another definition"):
        let_count(made(b=(60, 10)), known, "b", "c")


def test_the_command_tells_what_a_program_changes_and_landers_take_the_former_panes(
    known, capsys, monkeypatch, tmp_path
):
    new = made(b=(90, 30))
    for place in ("cloud_tier.command.planned.load_plan",):
        monkeypatch.setattr(place, lambda _: new)
    words = ["--lake", known.root, "--program", "rooms:program"]
    assert main(["lake", "plan", *words]) == Exit.FINE
    first, gone = capsys.readouterr().out.splitlines()
    assert first.startswith("b  new: it has readings from the time")
    assert "`lasp-edge lake backfill b --from a`" in first
    assert gone == "a  not in the program any more: its rows stay, and no new ones come"
    assert main(["lake", "backfill", "b", "--from", "a", *words]) == Exit.FINE
    assert "panes of 'a' count for 'b'" in capsys.readouterr().out
    assert recompute_is_due(known)
    assert main(["lake", "plan", *words]) == Exit.FINE
    assert "b  new, and panes of 'a' count for it" in capsys.readouterr().out
    (former,) = former_windows(new, known)
    assert former.span_us == made(a=(60, 10)).windows["a"].span_us
    assert former.stream == made(a=(60, 10)).windows["a"].stream
