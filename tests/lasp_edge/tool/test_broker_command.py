"""`lasp-edge broker config`: what it writes and refuses; tests/end_to_end runs a broker with it."""

import argparse

import pytest

from lasp_edge.errors import UsageError
from lasp_edge.tool import broker_command


def run(directory, *words):
    parser = argparse.ArgumentParser()
    broker_command.add_arguments(parser)
    line = ["config", "--fleet", "house", "--dir", str(directory), *words]
    return broker_command.run(parser.parse_args(line))


def sections(directory):
    """Return the lines of each user."""
    _, *parts = (directory / "acl").read_text().split("user ")
    return {part.splitlines()[0]: part.splitlines()[1:] for part in parts}


def test_everybody_who_is_named_has_rights_and_nobody_else(tmp_path, capsys):
    assert run(tmp_path, "--device", "attic", "--device", "Kitchen 2", "--lander", "lake") == 0
    assert set(sections(tmp_path)) == {"attic", "Kitchen 2", "lake", "operator"}
    conf = (tmp_path / "mosquitto.conf").read_text().splitlines()
    assert {"allow_anonymous false", f"acl_file {tmp_path / 'acl'}", "listener 8883"} <= {*conf}
    printed = capsys.readouterr().out
    assert "mosquitto_passwd passwords 'Kitchen 2'" in printed


def test_a_roster_names_all(tmp_path):
    roster = tmp_path / "roster"
    roster.write_text("device - kitchen\nlander - lake\noperator - ann\n")
    run(tmp_path, "--trust", str(roster))
    assert set(sections(tmp_path)) == {"kitchen", "lake", "ann"}


def test_what_devices_read_of_sensors_is_written_by_sensors_alone(tmp_path):
    run(tmp_path, "--device", "attic", "--sensors", "zigbee2mqtt/#")
    found = sections(tmp_path)
    assert "topic read zigbee2mqtt/#" in found["attic"]
    assert [line for line in found["sensors"] if line] == ["topic write zigbee2mqtt/#"]
    # A device with such a source has two connections, which may not share one client id.
    assert "use_username_as_clientid" not in (tmp_path / "mosquitto.conf").read_text()


def test_the_files_of_somebody_else_are_kept(tmp_path, capsys):
    conf = tmp_path / "mosquitto.conf"
    conf.write_text("listener 1883\n")
    run(tmp_path, "--device", "attic")
    assert (tmp_path / "mosquitto.conf.before").read_text() == "listener 1883\n"
    assert "is kept as" in capsys.readouterr().out.splitlines()[0]
    written = conf.read_text()
    run(tmp_path, "--device", "attic", "--device", "kitchen")
    assert conf.read_text() == written
    assert (tmp_path / "mosquitto.conf.before").read_text() == "listener 1883\n"


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        ([], "name the devices that may write"),
        (["--device", "a", "--device", "a"], "each name is given once"),
        (["--device", "lander"], "each name is given once"),
        (["--device", "a\nuser b"], "each name is given once"),
        (["--device", "a", "--dir", "here"], "an absolute path"),
        (["--device", "a", "--certificates", "--without-tls"], "leave out --without-tls"),
        (["--device", "a", "--trust", "/no/such"], "cannot read /no/such"),
        (["--device", "a'b"], "each name is given once"),
        (["--device", "0e:9c:00"], "use --certificates"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(tmp_path, words, refusal):
    with pytest.raises(UsageError, match=refusal):
        run(tmp_path, *words)
    assert list(tmp_path.iterdir()) == []
