"""What a record takes back is read as that of any other record."""

import json

import pytest

from device_agent.agent.stored_rows import Retraction
from tests.device_agent.agent.sources.test_sources_replay import LATER_US, source, written


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_what_is_taken_back_has_a_decimal_comma_like_any_other(tmp_path, kind):
    rows = [("1795600000", "9,5", ""), ("1795600001", " 2,5 ", ""), ("1795600000", "9,5", "true")]
    lines = [";".join(row) for row in [("ts", "t", "bad"), *rows]]
    if kind == "jsonl":
        names = ("ts", "t", "bad")
        lines = [json.dumps(dict(zip(names, [int(at), *row], strict=True))) for at, *row in rows]
    path = written(tmp_path / f"rows.{kind}", "".join(f"{line}\n" for line in lines))
    batch = source(path, kind, decimal_comma=True, retract="bad").poll(LATER_US)
    assert batch.values == [9.5, 2.5, Retraction(9.5)]
    assert batch.refused == {}
