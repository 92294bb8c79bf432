"""Who is in a recorded file, and how an agent is told to read it."""

import gzip
import json

import pytest

from lasp_edge.errors import NotFound, UsageError
from simulations.demo.recording import Recording


def recording(path, **changed) -> Recording:
    return Recording(
        **{"path": path, "time": "ts", "device": "id", "events": ["t=temp"], **changed}
    )


def write(path, lines) -> Recording:
    path.write_text(
        "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    )
    return recording(path)


def test_devices_are_counted_and_sorted(tmp_path):
    file = write(tmp_path / "f.jsonl", [{"id": "b"}, {"id": "0e:9c"}, {"id": "b"}])
    assert file.devices(32) == {"0e:9c": 1, "b": 2}


def test_lines_that_are_nobodys_are_left_to_the_agents_to_count(tmp_path):
    lines = [{"id": "b"}, "{half", "[1]", "7", {"id": None}, {"no": "id"}, "", {"id": ["b"]}]
    assert write(tmp_path / "f.jsonl", lines).devices(32) == {"b": 1}


def test_names_need_not_be_text(tmp_path):
    lines = [{"id": 7}, {"id": True}, {"id": 0.5}]
    assert list(write(tmp_path / "f.jsonl", lines).devices(32)) == ["0.5", "7", "true"]


def test_a_nested_field_and_a_field_with_a_dot_are_found(tmp_path):
    lines = [{"meta": {"id": "a"}}, {"meta.id": "b"}, {"meta": 3}]
    file = write(tmp_path / "f.jsonl", lines)
    assert list(recording(file.path, device="meta.id").devices(32)) == ["a", "b"]


def test_compressed_files_and_tables_are_read(tmp_path):
    path = tmp_path / "f.csv.gz"
    with gzip.open(path, "wt") as file:
        file.write("ts,id,temp\n1,a,20\n2,b,21\n")
    assert recording(path).devices(32) == {"a": 1, "b": 1}
    assert recording(path).words()[:2] == ["--source", f"csv:{path}"]


def test_too_many_devices_are_refused_with_their_number_and_the_way_out(tmp_path):
    file = write(tmp_path / "f.jsonl", [{"id": f"pi-{n}"} for n in range(40)])
    with pytest.raises(UsageError, match=r"has 40 devices \(pi-0, pi-1, .*--max-agents 40"):
        file.devices(32)
    assert len(file.devices(40)) == 40


def test_a_file_without_devices_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"no line of .* has a device in the field 'id'"):
        write(tmp_path / "f.jsonl", [{"name": "a"}]).devices(32)


def test_a_file_that_is_not_there_or_not_compressed_is_an_error_of_the_caller(tmp_path):
    with pytest.raises(NotFound, match="no file"):
        recording(tmp_path / "none").devices(32)
    (tmp_path / "f.jsonl.gz").write_text("plain")
    with pytest.raises(UsageError, match="cannot be read"):
        recording(tmp_path / "f.jsonl.gz").devices(32)


def test_an_agent_is_told_every_field(tmp_path):
    file = recording(
        tmp_path / "f.jsonl",
        events=["t=data.temp", "h=data.humidity"],
        tags=["room=place"],
        time_unit="ms",
        speed="60",
        time_zone="Europe/Berlin",
    )
    assert " ".join(file.words()) == (
        f"--source jsonl:{tmp_path}/f.jsonl --speed 60 --time ts --device-field id "
        "--event t=data.temp --event h=data.humidity --tag room=place --time-unit ms "
        "--time-zone Europe/Berlin"
    )
