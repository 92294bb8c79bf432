"""`check` names what is another thing on other machines and at other times, in text and by name."""

import cmath
import getpass
import operator
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from decimal import Decimal, getcontext
from os import cpu_count as cores
from pathlib import Path
from threading import Timer
from time import gmtime as seconds_of
from time import strftime as hour_of

import numpy as np
import pytest
from numpy import mean as mean_of

from lasp_edge import Program, folds
from lasp_edge.checking.determinism import files_of, risks, risks_of

START = time.time()  # noqa: TID251 - what must be found
WIDE = sys.maxsize > 2**32
FACTOR = Decimal("0.5")
READ_ONCE = Path(__file__).read_bytes()
getcontext().prec = 28


class Powers:
    def lift(self, value):
        return (pow(value, 3) + value**2,)


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda event: pow(event.value, 0.3), ["pow"]),
        (lambda event: operator.pow(event.value, 0.3), ["operator.pow"]),
        (lambda event: cmath.sqrt(event.value).real, ["cmath"]),
        (lambda event: event.value + (sys.maxsize > 2**32), ["sys.maxsize"]),
        (lambda event: f"{os.cpu_count()} {event.name}", ["os.cpu_count"]),
        (lambda event: event.name + event.version + os.sep + sys.intern(""), []),
        (lambda event: cores(), ["cores"]),
        (lambda event: float(np.mean([event.value, 1])), ["np.mean"]),
        (lambda event: float(np.exp(event.value)), ["np.exp"]),
        (lambda event: int(np.median(sorted([event.value]))), []),
        (lambda event: mean_of([event.value, 1]), ["mean_of"]),
        (lambda event: threading.Thread(target=print).start(), ["threading.Thread"]),
        (lambda event: Timer(1, print).start(), ["Timer"]),
        (lambda event: ThreadPoolExecutor().submit(print), ["ThreadPoolExecutor"]),
        (lambda event: threading.get_ident() and event.value, []),
        (lambda event: getpass.getuser(), ["getpass"]),
        (lambda event: event.value < START, ["START, made at import of time.time"]),
        (lambda event: time.strftime("%H", time.gmtime(event.time_us // 1_000_000)), []),
        (lambda event: hour_of("%H", seconds_of(event.time_us // 1_000_000)), []),
        (lambda event: time.gmtime().tm_hour, ["time.gmtime()"]),
        (lambda event: hour_of("%H"), ["hour_of('%H')"]),
        (lambda event: time.localtime(event.time_us / 1e6).tm_hour, ["time.localtime"]),
        (lambda event: time.time_ns() - event.time_us, ["time.time_ns"]),  # noqa: TID251
        (lambda event: Path("/etc/hostname").exists(), ["exists"]),
        (lambda event: os.path.exists("x") and os.stat("x").st_size, ["exists", "stat"]),  # noqa: PTH110, PTH116
        (lambda event: event.value * READ_ONCE[0], []),
        (lambda event: 1 if WIDE else 2, ["WIDE, made at import of sys.maxsize"]),
        (lambda event: Path("factor").read_text(), ["read_text"]),
        (lambda event: open("factor"), ["open"]),  # noqa: SIM115, PTH123 - what must be found
        (lambda event: datetime.fromtimestamp(0), ["datetime.fromtimestamp(0)"]),  # noqa: DTZ006
        (lambda event: datetime.fromtimestamp(0, UTC).astimezone(UTC), []),
        (lambda event: event.time.astimezone(), ["event.time.astimezone()"]),
        (lambda event: Decimal(event.value) / 7, ["getcontext().prec = 28"]),
        (lambda event: 10 ** (Decimal(event.value) / 10), ["getcontext().prec = 28"]),
        (lambda event: event.value**2 * Decimal(2), ["**", "getcontext().prec = 28"]),
        (lambda event: int(event.value * 100), ["int(event.value * 100)"]),
        (lambda event: int(event.value / 10) + round(event.value * 100), []),
        (lambda event: event.value * FACTOR, []),
    ],
)
def test_what_other_machines_and_times_give_differently_is_named(function, named):
    assert [risk.partition(": ")[0] for risk in risks(function)] == named


def of_now(event):
    import time as clock  # noqa: PLC0415 - what must be found
    from os import cpu_count, sep  # noqa: PLC0415

    return [clock.time() + cpu_count() + len(sep) for _ in range(event.value)]  # noqa: TID251


def test_what_a_function_imports_itself_is_named():
    found = [risk.partition(": ")[0] for risk in risks(of_now)]
    assert found == ["clock.time", "cpu_count"]


def test_a_power_of_whole_numbers_is_exact():
    assert risks(Powers.lift, of_integers=True) == []
    assert [risk.partition(":")[0] for risk in risks(Powers.lift)] == ["pow", "**"]


def test_a_file_that_is_read_at_import_is_a_note_and_no_warning():
    program = Program("files")
    warm = program.event("warm", resolution="1")
    window = {"source": warm, "fold": folds.sum(), "size_s": 60}
    program.window("w", **window, value=lambda event: event.value * READ_ONCE[0])
    assert risks_of(program.plan()) == []
    (line,) = files_of(program.plan())
    assert line.startswith("value of window w has READ_ONCE from a file, read at import: bring")


HERE = datetime(2025, 11, 25).timestamp()  # noqa: DTZ001
THERE = datetime(2025, 11, 25, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda event: event.time_us >= HERE, 1),
        (lambda event: event.time_us >= datetime(2025, 11, 25).timestamp(), 1),  # noqa: DTZ001
        (lambda event: event.time_us >= datetime.fromisoformat("2020-01-01").timestamp(), 1),
        (lambda event: event.time_us >= THERE, 0),
        (lambda event: event.time_us >= datetime.fromisoformat("2020-01-01T00Z").timestamp(), 0),
    ],
    ids=("at import", "a date", "a text", "in UTC", "a text in UTC"),
)
def test_a_time_without_a_zone_is_named(function, count):
    found = risks(function)
    assert len(found) == count
    assert all("the machine's own; write tz=UTC" in line for line in found)
