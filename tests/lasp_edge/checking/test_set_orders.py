"""The order of a set is found where it shows in what a function gives, and nowhere else."""

import ast

import pytest

from lasp_edge.checking.determinism import risks
from lasp_edge.checking.set_orders import set_orders

WORDS = frozenset({"hot", "cold", "wet"})


def named(event):
    for word in WORDS:
        if word in event.value:
            return word
    return "none"


@pytest.mark.parametrize(
    "text",
    [
        *("max(set(words), key=words.count)", "''.join(set(word))", "list({w for w in words})"),
        *("[w for w in set(words)]", "[*{1, 2}]", "next(iter(set(word)))", "tuple(set(a) & b)"),
        *("','.join(w.lower() for w in set(words))", "list(WORDS)[0]", "tuple(enumerate(WORDS))"),
        "for word in WORDS:\n    found.append(word)",
        "found = set(words)\nlist(found)",
    ],
)
def test_an_order_that_shows_is_found(text):
    (line,) = set_orders(ast.parse(text), globals())
    assert "the order of a set differs from process to process; write sorted(" in line


@pytest.mark.parametrize(
    "text",
    [
        *("sorted(set(words))", "len({w for w in words})", "any(w in text for w in WORDS)"),
        *("max(set(numbers))", "sum({1, 2})", "word in WORDS", "sorted(list(set(words)))"),
        *("{w.lower() for w in WORDS}", "set(words) == WORDS", "list(words)", "set()"),
        *("sorted(w.lower() for w in WORDS)", "len([w for w in WORDS if w in text])"),
        "for word in WORDS:\n    if word in text:\n        return True",
        "for word in sorted(WORDS):\n    found.append(word)",
        "found = set(words)\nfound = sorted(found)\nlist(found)",
        "for word in WORDS:\n    count += text.count(word)",
    ],
)
def test_an_order_that_does_not_matter_is_not(text):
    assert list(set_orders(ast.parse(text), globals())) == []


def test_a_function_of_a_program_is_looked_through():
    (line,) = risks(named)
    assert line.startswith("WORDS: the order of a set differs")
