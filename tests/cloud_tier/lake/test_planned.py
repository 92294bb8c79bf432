"""What a program changes in a lake is printed beforehand."""

import pytest

from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.tables import LakeTables
from lasp_edge import Program, folds
from lasp_edge.errors import Exit
from lasp_edge.tool.command_line import main


def made(fold=folds.sum, **sizes):
    program = Program("rooms")
    event = program.event("rain")
    for name, (size_s, slide_s) in sizes.items():
        program.window(name, source=event, fold=fold(), size_s=size_s, slide_s=slide_s)
    return program.plan()


@pytest.fixture
def planned(tmp_path, monkeypatch, capsys):
    tables = LakeTables(tmp_path / "lake")
    prepare(made(a=(60, 10)), tables)

    def shown(plan):
        monkeypatch.setattr("cloud_tier.command.planned.load_plan", lambda _: plan)
        words = ["lake", "plan", "--lake", tables.root, "--program", "rooms:program"]
        assert main(words) == Exit.FINE
        return capsys.readouterr().out.splitlines()

    return shown


def test_windows_that_go_on_and_windows_of_another_size(planned):
    assert planned(made(a=(60, 10))) == ["a  as before"]
    (line,) = planned(made(a=(90, 10)))
    assert line.startswith("a  of another size or slide over the same panes")


@pytest.mark.parametrize(
    ("program", "begins"),
    [
        (made(b=(60, 10)), "b  new: "),
        (made(a=(60, 20)), "a  defined otherwise than before: "),
        (made(fold=folds.max, a=(60, 10)), "a  defined otherwise than before: "),
    ],
)
def test_windows_that_may_lack_older_readings(planned, program, begins):
    first, *gone = planned(program)
    assert first.startswith(begins)
    assert "their column `covered` is false" in first
    assert [line.split()[0] for line in gone] == ["a"] * ("b" in program.windows)
