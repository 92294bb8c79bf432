"""What cuts a number that no double is, and what a process is set to, is named with a remedy."""

import ast
import importlib
import os
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from lasp_edge.checking.cuts import cuts_in
from lasp_edge.checking.determinism import risks

WIDTH, HALF, WHOLE, MINUTE = 0.1, 0.5, 3, 60


@pytest.mark.parametrize(
    "text",
    [
        *("int(x * 100)", "math.floor(x * 100)", "trunc(100 * x)", "math.ceil(x * 100)"),
        *("event.time_us % 86400", "time_us // (24 * 3600)", "time_us % MINUTE"),
        *("event.time_us // 3600000", "time_us % (24 * 3600 * 1000)"),
        *("int(x / 0.1)", "x // 0.1", "x % 0.05", "divmod(x, 0.3)[0]", "x // WIDTH"),
    ],
)
def test_what_is_cut_wrongly_is_found(text):
    (line,) = cuts_in(ast.parse(text), globals())
    assert line.startswith(text.removesuffix("[0]"))


@pytest.mark.parametrize(
    "text",
    [
        *("int(x)", "int(x / 10)", "x // 5", "x % 60", "x // 0.5", "divmod(x, 0.25)"),
        *("round(x * 100)", "Decimal(str(x)) // 0.1", "'%s' % 0.1", "x // HALF", "x % WHOLE"),
        *("int(Decimal(x) * 3)", "x // n", "time_us // 1_000", "time_us % (60 * 1_000_000)"),
        *("time_us // 100_000", "time_us // 6_000_000", "time_us % 3_600_000_000"),
    ],
)
def test_what_is_cut_rightly_is_not(text):
    assert list(cuts_in(ast.parse(text), globals())) == []


@pytest.mark.parametrize(
    ("number", "are", "seconds"),
    [(3_600, "no second", 3_600), (60_000, "no second", 60), (3_600_000, "3.6 seconds", 3_600)],
)
def test_a_time_that_is_taken_for_one_in_seconds_or_milliseconds_is_told_both(number, are, seconds):
    (line,) = cuts_in(ast.parse(f"event.time_us // {number}"), {})
    assert line.endswith(f"{number} of them are {are}; write {seconds}_000_000")


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda event: Path.home().name, "Path.home"),
        (lambda event: str(os.getuid()), "os.getuid"),
        (lambda event: os.path.expanduser(event.value), "os.expanduser"),  # noqa: PTH111
    ],
)
def test_what_a_user_or_a_machine_has_is_named(function, named):
    (line,) = risks(function)
    assert line.startswith(f"{named}: it is another one on each machine")


MODULE = """
class locale:
    LC_ALL, setlocale = 6, staticmethod(print)

locale.setlocale(locale.LC_ALL, {given!r})
key = lambda event: {text}
"""


@pytest.mark.parametrize(
    ("given", "text", "count"),
    [
        ("", 'f"{event.value:n}"', 1),
        ("", 'time.strftime("%A", time.gmtime(event.time_us // 1_000_000))', 1),
        ("", 'f"{event.value:g}"', 0),
        ("C", 'f"{event.value:n}"', 0),
    ],
)
def test_a_locale_that_is_the_machines_own_is_named(tmp_path, monkeypatch, given, text, count):
    (tmp_path / "planted_locale.py").write_text(MODULE.format(given=given, text=text))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "planted_locale", raising=False)
    found = risks(importlib.import_module("planted_locale").key)
    monkeypatch.delitem(sys.modules, "planted_locale")
    assert [line.partition(": ")[2][:41] for line in found] == [
        "each machine has a locale of its own; lea"
    ] * count


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda event: str(Fraction(event.value) ** 2), 0),
        (lambda event: str(10**3 * event.value), 0),
        (lambda event: str(int(event.value) ** 2), 0),
        (lambda event: str(event.value**2), 1),
        (lambda event: str(2**event.value), 1),
    ],
    ids=("a fraction", "constants", "a whole number", "a double", "by a double"),
)
def test_a_power_of_whole_numbers_and_fractions_is_exact(function, found):
    assert [line.partition(":")[0] for line in risks(function)] == ["**"] * found
