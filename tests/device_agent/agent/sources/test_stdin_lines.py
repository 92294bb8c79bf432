"""Lines from standard input: as they come, and to their end."""

import os

import pytest

from device_agent.agent.sources.mapping import FieldMapping
from device_agent.agent.sources.recorded_file import LONGEST_LINE
from device_agent.agent.sources.stdin_lines import StdinLines


@pytest.fixture
def pipe():
    """The two ends of a pipe; the writing one is a file."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb", buffering=0) as file:
        yield reading, file
    os.close(reading)


def drained(source):
    values, refused = [], {}
    for _ in range(100):
        batch = source.poll(0)
        if batch is None:
            break
        values += batch.values
        for reason, times in batch.refused.items():
            refused[reason] = refused.get(reason, 0) + times
    return values, refused


def test_lines_are_read_as_they_come_and_the_end_is_the_end(pipe):
    descriptor, file = pipe
    source = StdinLines("stdin", FieldMapping({"t": "t"}), descriptor)
    assert source.poll(0) is None
    assert source.due_us(5) == 100_005
    file.write(b'{"t": 1}\n[{"t": 2}, 3]\n\n7\n{"t"')
    assert drained(source) == ([1, 2, 3, 7], {})
    file.write(b': 4}\nnot JSON\n{"x": 1}\nnull\n{"t": 5}')
    file.close()
    values, refused = drained(source)
    assert values == [4, 5]
    assert refused == {
        "not JSON": 1,
        'no field "t": the message has "x"': 1,
        "neither a JSON object nor a value": 1,
    }
    assert source.due_us(5) is None
    assert source.poll(0) is None


def test_an_empty_input_is_done(pipe):
    descriptor, file = pipe
    file.close()
    assert StdinLines("stdin", FieldMapping(["t"]), descriptor).poll(0).done


def test_a_line_without_end_does_not_fill_memory(tmp_path):
    endless = tmp_path / "endless"
    endless.write_bytes(b"x" * (LONGEST_LINE + (1 << 20)) + b'\n{"t": 1}\n')
    with endless.open("rb") as file:
        source = StdinLines("stdin", FieldMapping(["t"]), file.fileno())
        values, refused = [], {}
        while source.due_us(0) is not None:
            some, why = drained(source)
            values, refused = values + some, refused | why
    assert values == [1]
    assert refused == {"not JSON": 1}
