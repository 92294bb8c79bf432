"""The tree stays readable: small files and classes, one meaning for a type's name, plain words."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
PACKAGES = ("crdts", "lasp_edge", "device_agent", "cloud_tier", "simulations")
FILES = sorted(path for package in PACKAGES for path in (CHECKOUT / package).rglob("*.py"))
TESTS = sorted((CHECKOUT / "tests").rglob("*.py"))
PLACES = {*PACKAGES, "tests", "docs"}
"""The folders of a checkout; a new part is a room in one of them."""
MOST_LINES = 400
MOST_METHODS = 20
UNCLEAR = re.compile(r"\b(?:is|are|was) none\b|\bNone\b.*\bnone\b|\bso (?:many|long|often)\b")
"""Words that a reader must decode: "is none" reads as "is None", "so many" points elsewhere."""

SPOKEN = re.compile(r"""(?<!["`])\b(?:said|told|anew)\b(?!["`])""", re.IGNORECASE)
"""People speak; data is sent, received, stored, made again. A stored key is in quotes."""


def name(path):
    return str(path.relative_to(CHECKOUT))


@cache
def classes(path):
    return [
        node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)
    ]


def test_there_are_files_to_look_at():
    assert len(FILES) > 150
    assert len(TESTS) > 150
    assert sum(len(classes(path)) for path in FILES) > 150


def test_a_checkout_has_few_folders():
    assert {path.parent.name for path in CHECKOUT.glob("*/*.py")} <= PLACES


def test_a_file_holds_one_idea():
    lines = {name(path): len(path.read_text().splitlines()) for path in (*FILES, *TESTS)}
    assert not {path: count for path, count in lines.items() if count > MOST_LINES}


def is_method(node):
    """Return whether a node defines a method, and is not one more signature of it."""
    return isinstance(node, ast.FunctionDef) and "overload" not in map(
        ast.unparse, node.decorator_list
    )


def test_a_class_has_few_methods():
    found = {
        f"{name(path)}: {found.name}": count
        for path in FILES
        for found in classes(path)
        if (count := sum(map(is_method, found.body))) > MOST_METHODS
    }
    assert not found


def test_the_name_of_a_type_has_one_meaning():
    places = defaultdict(list)
    for path in FILES:
        for found in classes(path):
            if not found.name.startswith("_"):
                places[found.name].append(name(path))
    assert not {known: where for known, where in places.items() if len(where) > 1}


def test_words_are_plain():
    assert not [
        f"{name(path)}:{at}: {line.strip()}"
        for path in FILES
        for at, line in enumerate(path.read_text().splitlines(), 1)
        if words_of(line)
    ]


def words_of(line):
    return UNCLEAR.findall(line) + SPOKEN.findall(line)


@pytest.mark.parametrize("line", ["what was said", '"""Made anew."""', "the value is none"])
def test_words_that_a_reader_must_decode_are_found(line):
    assert words_of(line)


def test_a_stored_key_may_be_any_word():
    assert not words_of('record["said"]')
