"""Which devices are in a recorded file."""

import gzip
import json

import pytest

from lasp_edge.errors import NotFound, UsageError
from simulations.demo.recording import devices_in


def written(path, lines):
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(texts))
    return path


@pytest.mark.parametrize(
    ("lines", "field", "devices"),
    [
        ([{"id": "b"}, {"id": "0e:9c"}, {"id": "b"}], "id", ["0e:9c", "b"]),
        (
            [{"id": "b"}, "{half", "[1]", "7", {"id": None}, {"no": 1}, "", {"id": ["b"]}],
            "id",
            ["b"],
        ),
        ([{"id": 7}, {"id": True}, {"id": 0.5}], "id", ["0.5", "7", "true"]),
        ([{"meta": {"id": "a"}}, {"meta.id": "b"}, {"meta": 3}], "meta.id", ["a", "b"]),
    ],
    ids=["sorted", "lines of nobody", "names need not be text", "nested, and with a dot"],
)
def test_devices_are_found(tmp_path, lines, field, devices):
    assert devices_in(written(tmp_path / "f.jsonl", lines), field, 32) == devices


@pytest.mark.parametrize("between", [",", ";", "\t", "|"])
def test_compressed_files_and_tables_are_read(tmp_path, between):
    path = tmp_path / "f.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write("ts,id,temp\n1,a,20\n2,b,21\n".replace(",", between))
    assert devices_in(path, "id", 32) == ["a", "b"]


def test_too_many_devices_are_refused_with_their_number_and_the_way_out(tmp_path):
    file = written(tmp_path / "f.jsonl", [{"id": f"pi-{n}"} for n in range(40)])
    with pytest.raises(UsageError, match=r"has 40 devices \(pi-0, pi-1, .*--max-agents 40"):
        devices_in(file, "id", 32)
    assert len(devices_in(file, "id", 40)) == 40


def test_files_that_cannot_be_used_are_an_error_of_the_caller(tmp_path):
    with pytest.raises(UsageError, match=r"no line of .* has a device in the field 'id'"):
        devices_in(written(tmp_path / "f.jsonl", [{"name": "a"}]), "id", 32)
    with pytest.raises(NotFound, match="no file"):
        devices_in(tmp_path / "none", "id", 32)
    (tmp_path / "f.jsonl.gz").write_text("plain")
    with pytest.raises(UsageError, match="cannot be read"):
        devices_in(tmp_path / "f.jsonl.gz", "id", 32)
