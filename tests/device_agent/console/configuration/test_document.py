"""A TOML file: the line of everything in it, and its variables."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_agent.console.configuration.document import Document
from lasp_edge.errors import NotFound, UsageError

TEXT = '''# a house
device = "pi"   # [[source]]
note = """
device = "not this one"
[[source]]
"""

[[source]]
kind = "mqtt"

[[source]]
kind = "host"
event = {
  a = "x" }
list = [
  # five
  5,
  6,
]
"quoted key".below = 1
[source.tag]
room = "r"

[mapping."a.b"]
time = 'ts'
'''.replace("{\n  a", "{ a")


@pytest.fixture
def document(tmp_path):
    path = tmp_path / "fleet.toml"

    def read(text, **environment):
        path.write_text(text)
        return Document(path, environment)

    return read


@pytest.mark.parametrize(
    ("place", "line"),
    [
        (("device",), 2),
        (("note",), 3),
        (("source", 0), 8),
        (("source", 0, "kind"), 9),
        (("source", 1), 11),
        (("source", 1, "kind"), 12),
        (("source", 1, "event", "a"), 13),
        (("source", 1, "list"), 14),
        (("source", 1, "list", 1), 14),
        (("source", 1, "quoted key", "below"), 19),
        (("source", 1, "tag"), 20),
        (("source", 1, "tag", "room"), 21),
        (("mapping", "a.b"), 23),
        (("mapping", "a.b", "time"), 24),
    ],
)
def test_every_key_has_the_line_on_which_its_statement_begins(document, place, line):
    made = document(TEXT)
    assert made.where(place) == f"{made.path} line {line}"
    assert TEXT.splitlines()[line - 1].strip()


@given(
    st.lists(st.sampled_from(["", "# x", "  ", "[t%d]", "k%d = 1", "l%d = [\n1,\n]"]), max_size=12)
)
def test_a_key_is_found_wherever_it_stands(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("toml") / "x.toml"
    before = "\n".join(line % at if "%" in line else line for at, line in enumerate(lines))
    path.write_text(f"{before}\n[[here]]\nkey = 1\n")
    line = len(f"{before}\n".splitlines()) + 2
    assert Document(path, {}).where(("here", 0, "key")) == f"{path} line {line}"


def test_what_is_not_toml_is_told_with_its_line(document):
    with pytest.raises(UsageError, match=r"fleet.toml line 2, column 5: a value is needed here"):
        document("a = 1\nb = \n")
    with pytest.raises(UsageError, match=r"line 2, column 6: this key stands above already"):
        document("a = 1\na = 2\n")


def test_a_file_that_is_not_there_or_no_text_is_named(tmp_path):
    with pytest.raises(NotFound, match=r"nowhere\.toml: No such file"):
        Document(tmp_path / "nowhere.toml", {})
    (tmp_path / "x").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="not a text in UTF-8"):
        Document(tmp_path / "x", {})


def test_variables_of_the_environment_stand_for_texts(document):
    made = document('a = "env:HERE"\nb = ["env:HERE"]\n[t]\nc = "x env:HERE"\n', HERE="secret")
    assert made.table == {"a": "secret", "b": ["secret"], "t": {"c": "x env:HERE"}}
    assert made.as_written(("a",)) == "env:HERE"
    with pytest.raises(UsageError, match=re.escape("line 3: the environment variable NO is not")):
        document('\n[t]\na = "env:NO"\n')


def test_numbers_are_exact(document):
    assert str(document("scale = 0.1\n").table["scale"]) == "0.1"
