"""`lasp-edge check`: verdicts, versions, exit codes."""

import json
import sys
from functools import partial

import pytest

from lasp_edge.errors import Exit
from lasp_edge.tool.command_line import main

PROGRAM = """
from crdts import BoundedLWWSet
from lasp_edge import Program, folds
{more}

ROOMS = {rooms}

def room_of(event):
    {comment}
    return event.tags["{tag}"]

program = Program("planted")
event = program.event("e")
samples = program.declare_dynamic(BoundedLWWSet(bound=5), "samples", version={variable})

@program.on_event(event)
def sampled(event, update):
    if event.value in ROOMS:
        update(samples, BoundedLWWSet.add, event.value, event.time_us)

local = program.fold(samples, {fold}, "local")
program.window(
    "w", source=event, fold=folds.mean(), size_s=1,
    key={key}, version={window},
)
"""
AS_FIRST = {
    "more": "",
    "rooms": "(1, 2)",
    "comment": "",
    "tag": "room",
    "variable": 1,
    "fold": "folds.max()",
    "key": "lambda event: room_of(event)",
    "window": 1,
}


@pytest.fixture
def check(tmp_path, monkeypatch, capsys):
    """Write the program with some changes and check it; return the exit code and the output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def run(*words, **changes):
        (tmp_path / "planted_program.py").write_text(PROGRAM.format(**AS_FIRST | changes))
        for name in ("planted_program", "fold_of_mine"):
            sys.modules.pop(name, None)
        code = main(["check", "planted_program:program", "--examples", "20", *words])
        out, err = capsys.readouterr()
        return code, out + err

    yield run
    for name in ("planted_program", "fold_of_mine"):
        sys.modules.pop(name, None)


@pytest.fixture
def check_texts(check):
    """Check it likewise, but compare the texts alone, and run nothing."""
    return partial(check, "--no-run", "--examples", "0")


def test_sound_folds_pass_and_the_texts_are_remembered(check, tmp_path):
    code, output = check("--laws")
    assert code == Exit.FINE
    assert "fold local: folds.max()\n  PASS" in output
    assert "FAIL" not in output
    assert output.startswith("Every law holds.\n")
    remembered = json.loads((tmp_path / ".lasp-edge-check.json").read_text())
    assert sorted(remembered["planted"]) == ["event e, handler sampled", "window w, key"]


def test_a_broken_law_is_shown_and_is_the_exit_code(check):
    code, output = check(
        more="from tests.lasp_edge.checking.planted import Newest", fold="Newest()"
    )
    assert code == Exit.DIFFERS
    assert "fold local: total_of_mine()" in output
    assert "  FAIL  Combine is commutative\n          a = lift(0, 0) = (0,)" in output
    assert output.startswith("2 broken laws.\n")


@pytest.mark.parametrize(
    "changes",
    [
        {"comment": "# of the house"},
        {"comment": '"""Where it was read."""'},
        {"key": "lambda   event:\\\n        room_of( event )"},
        {"rooms": "(1,\n2)"},
    ],
    ids=["comment", "docstring", "layout", "layout of a constant"],
)
def test_comments_and_layout_are_no_change(check_texts, changes):
    check_texts()
    code, output = check_texts("--strict", **changes)
    assert (code, "WARNING" in output) == (Exit.FINE, False)


@pytest.mark.parametrize(
    ("changes", "who", "remedy"),
    [
        ({"key": 'lambda event: "all"'}, "window w, key", "version= of window w"),
        ({"tag": "house"}, "window w, key", "version= of window w"),  # by a function it calls
        ({"rooms": "(1, 3)"}, "event e, handler sampled", "version= of variable samples"),
    ],
    ids=["text", "text of what it calls", "constant that it names"],
)
def test_a_changed_text_without_a_changed_version_is_warned_of(check_texts, changes, who, remedy):
    check_texts()
    for _ in range(2):  # and stays so
        code, output = check_texts(**changes)
        assert f"WARNING  {who}: its text changed, and version" in output
        assert f"Raise {remedy} if" in output
        assert (code, output.splitlines()[0]) == (Exit.FINE, "Every law holds, 1 warning.")
    assert check_texts("--strict", **changes)[0] == Exit.DIFFERS
    assert check_texts("--strict", "--no-record", **changes)[0] == Exit.FINE
    assert check_texts()[1].startswith("Every law holds.\n")  # taken back
    raised = changes | {"window": 2, "variable": 2}
    assert check_texts("--strict", **raised)[0] == Exit.FINE
    assert check_texts("--strict", **raised | {"window": 1, "variable": 1})[0] == Exit.DIFFERS
    assert check_texts("--strict", "--accept", **changes)[0] == Exit.FINE
    assert check_texts("--strict", **changes)[0] == Exit.FINE


FOLD = '''
from lasp_edge import Column, Fold, Op

class Own(Fold):
    """{docstring}"""
    name, parts, columns, version = "own", ("own",), (Column("own_q", Op.SUM),), {version}

    def lift(self, value, time_us=0):
        return ({lifted},)

    def lower(self, partial, resolution):
        return {{"own": partial[0]}}
'''


def test_a_fold_of_ones_own_is_remembered_too(check_texts, tmp_path):
    def with_fold(**changes):
        text = FOLD.format(**{"docstring": "Mine.", "version": 1, "lifted": "value"} | changes)
        (tmp_path / "fold_of_mine.py").write_text(text)
        return check_texts("--strict", more="from fold_of_mine import Own", fold="Own()")

    assert with_fold()[0] == Exit.FINE
    assert with_fold(docstring="My own.")[0] == Exit.FINE
    code, output = with_fold(lifted="2 * value")
    assert code == Exit.DIFFERS
    assert "WARNING  fold own: its text changed, and version 1 did not" in output
    assert "Raise the version of class Own if" in output
    assert with_fold(lifted="2 * value", version=2)[0] == Exit.FINE


def test_the_record_may_stand_elsewhere_and_holds_several_programs(check_texts, tmp_path):
    record = tmp_path / "record.json"
    record.write_text('{"another": {"f": {"1": "ab"}}}')
    check_texts("--record", str(record))
    assert sorted(json.loads(record.read_text())) == ["another", "planted"]
    before = record.read_bytes()
    check_texts("--record", str(record))
    assert record.read_bytes() == before
    assert not (tmp_path / ".lasp-edge-check.json").exists()


@pytest.mark.parametrize(
    "content",
    [b"[]", b"{", b'{"a": 5}', b'{"a": {"b": {"1": 2}}}', b"\xff"],
    ids=["list", "cut", "number", "no text", "no UTF-8"],
)
def test_a_file_that_is_no_record_is_left_alone(check, tmp_path, content):
    record = tmp_path / "record.json"
    record.write_bytes(content)
    code, output = check("--record", str(record))
    assert code == Exit.USAGE
    assert f"lasp-edge check: --record {record}: it " in output
    assert record.read_bytes() == content


def test_a_record_that_cannot_be_written_is_said_in_one_line(check, tmp_path):
    code, output = check("--record", str(tmp_path / "nowhere" / "record.json"))
    assert code == Exit.USAGE
    assert "No such file or directory; use --no-record to do without it" in output


def test_words_that_cannot_work_are_usage(check, capsys):
    assert check("--examples", "-1")[0] == Exit.USAGE
    assert main(["check", "no_such_module_of_mine:program"]) == Exit.NOT_FOUND
    assert main(["check"]) == Exit.USAGE


def test_a_fold_that_lifts_nothing_is_said_in_one_line(check):
    code, output = check(
        more="from tests.lasp_edge.checking.planted import RefusesAll", fold="RefusesAll()"
    )
    assert code == Exit.DIFFERS
    assert "lasp-edge check: total_of_mine() lifts none of the samples" in output


def test_a_plan_is_printed_one_line_a_window_and_fold_and_nothing_is_tried(check, tmp_path):
    code, output = check("--plan")
    assert code == Exit.FINE
    window, fold, becomes = output.splitlines()
    assert window.startswith("window w: stream ")
    assert ", span 1000000 us, by key version 1, columns count sum, total_q sum, on " in window
    assert window.endswith(
        ', fingerprint ["mean", 1, "", [["count", "sum"], ["total_q", "sum"]], "1/1"]'
    )
    assert fold.startswith("fold local: stream ")
    assert ", no keys, columns max_q max, on device, fingerprint " in fold
    assert "name it in `excluded`" in becomes
    assert not list(tmp_path.glob(".lasp-edge-check.json"))
    changed = check("--plan", fold="folds.last()", window=2)[1].splitlines()
    assert "columns last_us max, last_q at_max by last_us, on device," in changed[1]
    assert not set(changed) & {window, fold}
