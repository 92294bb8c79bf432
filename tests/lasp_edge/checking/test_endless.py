"""A function that does not return fails, and one that is called often does not."""

import faulthandler
import signal
import subprocess
import sys
import time

import pytest

from lasp_edge.checking import endless
from lasp_edge.checking.endless import EndlessCallError, limited
from lasp_edge.errors import Exit
from lasp_edge.tool.command_line import main

LOOK_S = 0.02


def waits():
    while True:
        pass


def test_a_call_that_does_not_return_fails_and_the_next_one_sooner():
    with limited(look_s=LOOK_S):
        with pytest.raises(EndlessCallError, match=r"waits did not return within 0\.1 s"):
            waits()
        with pytest.raises(EndlessCallError, match=r"waits did not return within 0\.02 s"):
            time.sleep(waits())


def test_a_look_that_comes_last_does_not_end_the_process_later(monkeypatch):
    """The timer's signal may come at any moment, also while its end is prepared."""
    armed, cancel = [], faulthandler.cancel_dump_traceback_later

    def cancel_as_a_signal_comes():
        cancel()
        armed.append(False)
        if signal.getsignal(signal.SIGALRM) is not before:
            signal.raise_signal(signal.SIGALRM)

    monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", cancel_as_a_signal_comes)
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda *_, **__: armed.append(True))
    before = signal.getsignal(signal.SIGALRM)
    with limited(look_s=LOOK_S):
        pass
    assert armed[-1] is False
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_calls_that_return_may_be_many():
    def returns(number):
        return number + 1

    with limited(look_s=LOOK_S):
        while returns(0) < 1:
            pass


FOLD = """
from lasp_edge import Column, Fold, Op, Program

class Slow(Fold):
    name, parts, columns = "slow", ("total",), (Column("total_q", Op.SUM),)

    def lift(self, value, time_us=0):
        {lift}
        return (value,)

    def combine(self, a, b):
        {combine}
        return (a[0] + b[0],)

    def lower(self, partial, resolution):
        {lower}
        return {{"total": resolution.real(partial[0])}}

program = Program("planted")
program.window("w", source=program.event("e"), fold=Slow(), size_s=1)
"""
PARTS = ("lift", "combine", "lower")
FOR_EVER = """while True:
            pass"""


@pytest.mark.parametrize("part", PARTS)
def test_a_fold_that_does_not_return_is_named(part, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(endless, "LOOK_S", 0.1)
    bodies = dict.fromkeys(PARTS, "pass") | {part: FOR_EVER}
    (tmp_path / f"endless_{part}.py").write_text(FOLD.format(**bodies))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    # A program that declares a fold lifts one value, and lowers it.
    code = Exit.DIFFERS if part == "combine" else Exit.USAGE
    assert main(["check", f"endless_{part}:program", "--no-record"]) == code
    shown = "".join(capsys.readouterr())
    assert f"EndlessCallError: Slow.{part} did not return within 0.5 s" in shown
    assert f"endless_{part}.py:" in shown


SCAN = """
from lasp_edge import Program, scans

class Slow(scans.Scan):
    name, zero, parts = "slow", 0, {{"n": "1"}}

    def step(self, state, event):
        {step}
        return state + 1, [state]

    def due(self, state):
        {due}
        return None

program = Program("planted")
event = program.event("e", resolution="1")
program.result(program.scan("s", source=event, scan=Slow, per_device=True))
"""


@pytest.mark.parametrize("part", ["step", "due"])
def test_a_scan_that_does_not_return_is_named_and_all_ends(part, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(endless, "LOOK_S", 0.1)
    bodies = {"step": "pass", "due": "pass"} | {part: FOR_EVER}
    (tmp_path / f"endless_{part}.py").write_text(SCAN.format(**bodies))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["check", f"endless_{part}:program", "--no-record"]) == Exit.DIFFERS
    shown = capsys.readouterr().out
    assert shown.startswith("1 thing that cannot work.\nFAIL  EndlessCallError: Slow.")
    assert f"Slow.{part} did not return within 0.1 s" in shown


def test_what_a_module_does_by_itself_may_take_long():
    slow = compile("while next(left, None): waits(0.05)", "slow.py", "exec")
    with limited(look_s=LOOK_S):
        exec(slow, {"__name__": "__slow__", "left": iter(range(1, 9)), "waits": time.sleep})


STUCK = """
from lasp_edge import Program, folds

program = Program("planted")
program.window("w", source=program.event("e"), fold=folds.sum(), size_s=1,
               where=lambda event: sum(range(10 ** 15)) > event.value)
"""


def test_what_no_signal_interrupts_ends_the_process_and_the_line_is_printed(tmp_path):
    (tmp_path / "stuck.py").write_text(STUCK)
    command = (
        "from lasp_edge.checking import endless; endless.STUCK_S = 2; "
        "from lasp_edge.tool.command_line import main; "
        "raise SystemExit(main(['check', 'stuck:program']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert 'stuck.py", line 6 in <lambda>' in done.stderr
