"""Whatever stands in a configuration file is taken, or told in one line: nothing else is raised."""

import argparse
import random

import pytest

from device_agent.agent.sources.choice import KINDS, source_of
from device_agent.agent.sources.source import SourceContext
from device_agent.console.configuration.agent_options import DEFAULTS, add_arguments
from device_agent.console.configuration.arguments import asked
from lasp_edge.errors import UsageError
from lasp_edge.link import BrokerUrl

STRANGE = (
    *(
        "1",
        "-1",
        f"1{'0' * 400}",
        "1.5",
        "inf",
        "nan",
        "0",
        "true",
        '""',
        '"x"',
        '"{x"',
        '"a..b"',
        '"env:NO"',
    ),
    *("[]", "[1]", '["a"]', "{}", '{a = "b"}', "{a = 1}", "{a = {}}", "{a = {scale = nan}}"),
    *("1979-05-27", "1979-05-27T07:32:00Z", "07:32:00", '{temperature = {values = {a = "b"}}}'),
    *('{temperature = {field = "{a}.b", required = true}}', '{temperature = "{a}{b}[x]"}'),
)
PLACES = {"topic": '"a/{room}"', "file": '"x"', "place": '"x"'}
CONTEXT = SourceContext(["temperature"], "d", random.Random(1), BrokerUrl.parse("mqtt://x"))
PARSER = argparse.ArgumentParser()
add_arguments(PARSER)


def take(path, text):
    """Take a file in, and make its sources; return whether all of it was taken."""
    path.write_text(text)
    given = PARSER.parse_args(["--config", str(path)])
    try:
        wanted = asked(given, add_arguments, DEFAULTS, {})
    except UsageError as error:
        assert str(error).startswith(f"{path} line "), error  # noqa: PT017
        assert "\n" not in str(error)  # noqa: PT017
        return False
    for spec in wanted.specs:
        try:
            source = source_of(spec, CONTEXT._replace(options=spec.options))
        except ValueError as error:
            assert str(error)  # noqa: PT017
        else:
            source.close()
    return True


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_strange_values_in_a_source(tmp_path, kind):
    place = f"{kind.key} = {PLACES[kind.key]}\n" if kind.place else ""
    head = f'[[source]]\nkind = "{kind.name}"\n{place}'
    keys = [*(option.name for option in kind.options), "name", "nonsense"]
    values = STRANGE if kind.name == "mqtt" else STRANGE[::3]  # they share most options
    taken = [take(tmp_path / "x", f"{head}{key} = {value}\n") for key in keys for value in values]
    assert any(taken)
    assert not all(taken)


def test_strange_values_at_the_top(tmp_path):
    keys = [name for name in vars(PARSER.parse_args([])) if name != "config"]
    keys = [key.replace("_", "-") for key in keys]
    for key in (*keys, "user", "password", "mapping", "nonsense"):
        for value in STRANGE[::2]:
            take(tmp_path / "x", f"{key} = {value}\n")


@pytest.mark.parametrize("key", ["kind", "topic", "a"])
def test_strange_values_where_tables_are_needed(tmp_path, key):
    for value in STRANGE:
        take(tmp_path / "x", f"[[source]]\n{key} = {value}\n")
        take(tmp_path / "x", f'[[source]]\nkind = "mqtt"\n{key} = {value}\n')
        take(tmp_path / "x", f"[mapping]\n{key} = {value}\n")
