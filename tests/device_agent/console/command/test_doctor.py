"""`lasp-edge doctor`: each check on a machine as it is, and as it must not be."""

import argparse
import errno
import json
import shlex
import subprocess
import sys
from random import Random

import pytest

from crdts import Replica, Version
from device_agent.agent.clock import ClockReading
from device_agent.agent.state.store import Store
from device_agent.console.command import run_agent
from device_agent.console.command.checkup import contact, machine, sensing
from device_agent.console.command.checkup.checks import CHECKS, examined
from device_agent.console.command.checkup.result import Level, Subject
from device_agent.console.configuration.arguments import asked
from lasp_edge import Program
from lasp_edge.errors import Exit
from lasp_edge.examples.greenhouse import program
from lasp_edge.link import BrokerUrl, Link
from lasp_edge.protocol.acks import NotTaken
from lasp_edge.protocol.frames import PresenceFrame
from lasp_edge.protocol.topics import Topics, topic_of
from lasp_edge.release import RELEASE
from lasp_edge.tool.command_line import main
from simulations.processes.broker import free_port
from simulations.world.lander import SimulatedLander
from tests.brokers import broker_program, mosquitto, until_connected, until_true
from tests.device_agent.agents import LAKE, Device
from tests.support_commands import member_command

PROGRAM = "lasp_edge.examples.greenhouse:program"


def subject_of(*words, root=None):
    parser = argparse.ArgumentParser()
    run_agent.add_arguments(parser)
    wanted = asked(parser.parse_args(words), run_agent.add_arguments, run_agent.DEFAULTS)
    return Subject(wanted, **({"root": root} if root else {}))


def results(check, *words, root=None):
    return list(CHECKS[check](subject_of(*words, root=root)))


def one(check, *words, root=None):
    (result,) = results(check, *words, root=root)
    return result


def test_without_a_word_nothing_is_wrong_and_it_says_what_to_give():
    found = dict(examined(subject_of()))
    assert list(found) == list(CHECKS)
    assert not [name for name, result in found.items() if result.level is Level.WRONG]
    for name in ("program", "data", "room", "wear", "sources", "broker", "name", "fleet"):
        assert found[name].level is Level.SKIPPED
        assert "not looked at: give " in found[name].says


def test_a_check_that_breaks_ends_no_other(monkeypatch):
    monkeypatch.setattr(machine.SystemClock, "read", lambda self: 1 // 0)
    found = dict(examined(subject_of()))
    assert found["clock"].level is Level.WRONG
    assert found["clock"].says.startswith("it cannot be looked at: ZeroDivisionError: ")
    assert len(found) == len(CHECKS)


def test_options_and_program_are_refused_as_an_agent_refuses_them(tmp_path):
    file = tmp_path / "fleet.toml"
    file.write_text(f'program = "{PROGRAM}"\ndevice = "a"\n\nhome-assistant = "a+b"\n')
    result = one("options", "--config", str(file))
    assert (result.level, "says no data-dir, broker, source; add it" in result.says) == (
        Level.WRONG,
        True,
    )
    file.write_text(file.read_text() + 'broker = "mqtt://x"\ndata-dir = "d"\nsource = ["host"]\n')
    result = one("options", "--config", str(file))
    assert result.says.startswith(f"{file} line 4: home-assistant: a topic such as homeassistant")
    assert one("options", "--config", str(file), "--home-assistant").level is Level.OK
    assert one("program", "no_such_module").says.startswith("no module 'no_such_module'")
    assert program.plan().digest in one("program", PROGRAM).says


@pytest.mark.parametrize(
    ("read", "level", "text"),
    [
        (ClockReading(1_800_000_000_000_000, 1, "b", True), Level.OK, "a time server keeps it"),  # noqa: FBT003
        (ClockReading(1_800_000_000_000_000, 1, "b"), Level.WARNING, "it is 2027-01-15 08:00:00"),
        (ClockReading(5_000_000, 1, "b"), Level.WRONG, "it says 1970-01-01 00:00:05 UTC, which"),
    ],
)
def test_the_clock(monkeypatch, tmp_path, read, level, text):
    monkeypatch.setattr(machine.SystemClock, "read", lambda self: read)
    result = one("clock", root=tmp_path)
    assert (result.level, result.type) == (level, ""), "nobody can set the clock of a container"
    assert result.says.startswith(text)
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    monkeypatch.setattr(machine.shutil, "which", lambda name: name)
    proposed = one("clock", root=tmp_path).type
    assert proposed == ("" if level is Level.OK else "sudo timedatectl set-ntp true")


@pytest.mark.parametrize(
    ("free", "level"), [(1 << 30, Level.OK), (1 << 28, Level.WARNING), (1 << 20, Level.WRONG)]
)
def test_room(monkeypatch, tmp_path, free, level):
    usage = type("Usage", (), {"free": free, "total": 1 << 34})
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda place: usage)
    result = one("room", "--data-dir", str(tmp_path / "new" / "data"))
    assert result.level is level
    assert f"where {tmp_path} is" in result.says
    assert bool(result.type) == (level is not Level.OK)


def disk(root, name, **files):
    partition = root / name / f"{name}p2"
    partition.mkdir(parents=True)
    (partition / "partition").write_text("2\n")
    (root / name / "device").mkdir()
    for file, text in files.items():
        (root / name / "device" / file).write_text(f"{text}\n")
    return partition


@pytest.mark.parametrize(
    ("files", "level", "text"),
    [
        ({"life_time": "0x01 0x02"}, Level.OK, "eMMC mmcblk0: of its life is used up to 20 %"),
        ({"life_time": "0x09 0x01"}, Level.WARNING, "eMMC mmcblk0: of its life is used up to 90 %"),
        ({"life_time": "0x01 0x0b"}, Level.WRONG, "eMMC mmcblk0: of its life is used all, and"),
        ({"life_time": "0x02 0x02", "pre_eol_info": "0x03"}, Level.WRONG, "eMMC mmcblk0: of"),
        ({"type": "SD"}, Level.OK, "how worn it is cannot be known: mmcblk0 is an SD card, which"),
        ({}, Level.OK, "how worn it is cannot be known: mmcblk0 does not report it"),
    ],
)
def test_wear(tmp_path, files, level, text):
    result = machine.worn(disk(tmp_path, "mmcblk0", **files))
    assert result.level is level
    assert result.says.startswith(text)


def test_data_in_memory_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "_file_system", lambda place: "tmpfs")
    result = one("wear", "--data-dir", str(tmp_path))
    assert (result.level, "is in memory (tmpfs)" in result.says) == (Level.WARNING, True)


def test_what_a_sink_refuses_is_named_with_the_sink_and_what_to_do(tmp_path):
    """A gateway or lander on another program: nothing of the device counts there."""
    device = Device(tmp_path, program.plan(), name="attic")
    other = Program("greenhouse")
    other.event("temperature", resolution="0.01")
    device.landed = SimulatedLander(LAKE, other.plan())
    device.read([20], tags={"room": "a"})
    for _ in range(4):
        device.land(60)
    device.kill()
    _, refused = results("data", "--data-dir", str(tmp_path), "--device", "attic", PROGRAM)
    assert refused.level is Level.WARNING
    assert refused.says == f"1 pane entry is refused by lake: {NotTaken.UNKNOWN_STREAM.advice}"


def test_the_data_directory_is_of_this_device_and_program_and_can_be_written(tmp_path):
    data = tmp_path / "data"
    words = ["--data-dir", str(data), "--device", "attic", PROGRAM]
    assert one("data", *words).says == f"{data} can be written, and is still empty"
    device = Device(data, program.plan(), name="attic")
    device.read([20], tags={"room": "a"})
    device.tick(5)
    result = one("data", *words)  # while it runs
    assert result.says == f"{data} is of device attic and program greenhouse; incarnation 1"
    result = one("data", *words, "--device", "cellar")
    assert (result.level, "belongs to device 'attic'" in result.says) == (Level.WRONG, True)
    device.kill()
    aside = data / "agent.sqlite.damaged-1"
    aside.write_bytes(b"12345")
    _, damaged = results("data", *words)
    assert (damaged.level, "put aside, 5 bytes" in damaged.says) == (Level.WARNING, True)
    subprocess.run(shlex.split(damaged.type), check=True)
    assert not aside.exists()


def test_a_disk_that_is_full_says_how_to_see_what_takes_it(monkeypatch, tmp_path):
    def refuse(**where):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("device_agent.console.command.checkup.starting.TemporaryFile", refuse)
    result = one("data", "--data-dir", str(tmp_path / "a b"))
    assert (result.level, result.type) == (Level.WRONG, f"df -h {tmp_path}")
    assert "No space left on device" in result.says


def test_a_directory_that_cannot_be_written_says_what_to_type(monkeypatch, tmp_path):
    def refuse(**where):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("device_agent.console.command.checkup.starting.TemporaryFile", refuse)
    result = one("data", "--data-dir", str(tmp_path / "a b"))
    assert result.level is Level.WRONG
    assert "cannot be written by" in result.says
    assert result.type.startswith(f"sudo mkdir -p '{tmp_path}/a b' && sudo chown -R ")


PLANTED = """
from lasp_edge import Program, folds
program = Program("planted")
for name in ("load", "memory", "temperature"):
    program.event(name, resolution="0.01")
program.window("w", source="load", fold=folds.mean(), size_s=9, key=lambda e: e.tags["room"])
"""


@pytest.fixture
def planted(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "doctored.py").write_text(PLANTED)
    yield "doctored:program"
    sys.modules.pop("doctored", None)


def test_sensors_are_read_and_their_readings_have_what_the_keys_ask_for(
    planted, tmp_path, monkeypatch
):
    monkeypatch.setattr(sensing, "PATIENCE_S", 0.5)
    lacking, *rest = results("sources", planted, "--source", "host")
    assert lacking.says.startswith("host: memory ")
    assert "load " in lacking.says
    (unkeyed,) = [each for each in rest if "the key of w fails" in each.says]
    assert unkeyed.level is Level.WRONG
    assert unkeyed.says.endswith("they have no tags; add --with-tag room=...")
    assert not [
        each
        for each in results("sources", planted, "--source", "host", "--with-tag", "room=a")
        if each.level is Level.WRONG
    ]
    recorded = tmp_path / "a.csv"
    recorded.write_text("ts,load\n2026-11-01T00:00:00Z,1\n")
    words = [planted, "--source", f"csv:{recorded}", "--time", "ts"]
    _, unkeyed = results("sources", *words)
    assert (unkeyed.level, "the key of w fails" in unkeyed.says) == (Level.WRONG, True)
    assert len(results("sources", *words, "--with-tag", "room=a")) == 1
    words = [planted, "--source", "csv:nope.csv", "--source", "mqtt:a/b", "--broker", "mqtt://x"]
    (file, topic) = results("sources", *words)
    assert (file.level, file.says.endswith("nope.csv is not there")) == (Level.WRONG, True)
    assert (topic.level, "the broker does not take us" in topic.says) == (Level.SKIPPED, True)
    words = [planted, "--source", "hwmon", "--source", "magic"]
    assert "--source is host, " in results("sources", *words)[-1].says


@pytest.fixture
def said(tmp_path):
    """Return what broker, name and fleet of the device "kitchen" are found to be at a broker."""
    Device(tmp_path / "data", program.plan(), name="kitchen").kill()
    words = [PROGRAM, "--device", "kitchen", "--data-dir", str(tmp_path / "data")]

    def ask(url, *more):
        subject = subject_of(*words, "--broker", url, *more)
        return [next(iter(CHECKS[name](subject))) for name in ("broker", "name", "fleet")]

    return ask


@pytest.mark.slow
def test_a_broker_that_is_not_there(said):
    refused, name, fleet = said(f"mqtt://127.0.0.1:{free_port()}")
    assert refused.level is Level.WRONG
    assert "Connection refused; is the broker started there?" in refused.says
    assert (name.level, fleet.level) == (Level.SKIPPED, Level.SKIPPED)


def test_a_broken_file_for_tls_is_told_once(tmp_path):
    broken = tmp_path / "ca.pem"
    broken.write_text("no PEM")
    words = (PROGRAM, "--source", "host", "--broker", "mqtts://localhost", "--ca-file", str(broken))
    assert one("broker", *words).says == f"--ca-file {broken}: no certificate in PEM stands in it"
    assert one("sources", *words).level is Level.SKIPPED


@pytest.fixture
def guarded(tmp_path):
    """The address of a broker that knows one user, kitchen, whose password is "right"."""
    passwords = tmp_path / "passwords"
    broker_program("mosquitto")
    tool = ["mosquitto_passwd", "-b", "-c", str(passwords), "kitchen", "right"]
    subprocess.run(tool, check=True, capture_output=True)
    rules = ("allow_anonymous false", f"password_file {passwords}")
    with mosquitto(tmp_path / "broker", *rules) as broker:
        yield broker.url.replace("mqtt://", "mqtt://kitchen@")


@pytest.mark.broker
@pytest.mark.slow
def test_broker_name_and_fleet(  # noqa: PLR0915 - one history at one broker
    said, guarded, tmp_path, monkeypatch
):
    monkeypatch.setattr(contact, "LISTEN_S", 0.6)
    login = tmp_path / "login"
    login.write_text("wrong\n")
    login.chmod(0o600)
    words = (guarded, "--login", str(login))
    assert "is the password of user 'kitchen' right?" in said(*words)[0].says
    login.write_text("right\n")
    found = said(*words)
    assert [each.level for each in found] == [Level.OK] * 3
    assert found[2].says == "no other device was heard in fleet 'greenhouse'"

    url, same = BrokerUrl.parse(guarded)._replace(password="right"), program.plan().digest
    other = Link(url, client_id="other", jitter=Random(1))
    other.start()
    until_connected(other)

    def present(replica, digest, release=RELEASE, *, online=True):
        frame = PresenceFrame(replica, 1, online, digest, release)
        topic = topic_of(frame, Topics("greenhouse"))
        assert other.publish(topic, frame.encode(), retain=True)
        until_true(lambda: other.in_flight == 0)

    for topic, text in (("a/x", b'{"temperature": 20}'), ("b/x", b'{"temprature": 20}')):
        assert other.publish(topic, text, retain=True)
    until_true(lambda: other.in_flight == 0)
    asked = (PROGRAM, "--broker", guarded, "--login", str(login), "--retained", "--source")
    heard, unkeyed = results("sources", *asked, "mqtt:a/#")
    assert (heard.level, unkeyed.level) == (Level.OK, Level.WRONG)
    assert "{room} in a topic or --with-tag room=TEXT gives it" in unkeyed.says
    assert len(results("sources", *asked, "mqtt:a/{room}")) == 1
    assert results("sources", *asked, "mqtt:b/{room}")[1].level is Level.WARNING

    present(Replica(9, 9, "kitchen"), same)
    present(Replica(1, 1, "attic"), same)
    present(Replica(1, 2, "shed"), "ab12", "0.0.1")
    _, name, fleet = said(*words)
    assert name.level is Level.WRONG
    assert name.says.startswith("another agent of the name 'kitchen' is connected (its start 9)")
    assert fleet.level is Level.WARNING
    assert fleet.says.startswith("shed runs another program (ab12), release 0.0.1; here it is")
    present(Replica(9, 9, "kitchen"), same, online=False)
    assert said(*words)[1].level is Level.WARNING
    retired = member_command(Replica(1, 5, "operator"), 1, "kitchen", 1, True, Version(9, 9, 0))  # noqa: FBT003
    assert other.publish(topic_of(retired, Topics("greenhouse")), retired.encode(), retain=True)
    until_true(lambda: other.in_flight == 0)
    name = said(*words)[1]
    assert (name.level, "this device is retired: " in name.says) == (Level.WRONG, True)
    plain = guarded.replace("kitchen@", "")
    assert f"type lasp-edge admit kitchen --fleet greenhouse --broker {plain}, with" in name.says
    other.stop(0)


@pytest.mark.broker
@pytest.mark.slow
def test_a_broker_that_allows_a_user_one_connection(said, tmp_path):
    rules = ("allow_anonymous true", "use_username_as_clientid true")
    with mosquitto(tmp_path / "broker", *rules) as broker:
        url = broker.url.replace("mqtt://", "mqtt://kitchen@")
        running = Link(BrokerUrl.parse(url), client_id="kitchen", jitter=Random(1))
        running.start()
        until_connected(running)
        (other, *_) = said(url)
        assert other.level is Level.WRONG
        assert "and then somebody else as user 'kitchen'" in other.says
        store = Store(tmp_path / "data")  # as an agent that runs here
        (own, name, _) = said(url)
        assert [own.level, name.level] == [Level.OK, Level.OK]
        assert own.says.endswith("one after the other with the agent that runs here")
        store.close()
        running.stop(0)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("max_packet_size 3000", "Packet too large; let it take 70000 bytes"),
        ("max_qos 0", "QoS not supported; a fleet needs QoS 1"),
        ("retain_available false", "Retain not supported; a fleet needs retained messages"),
    ],
)
def test_a_broker_that_does_not_take_a_fleets_messages(tmp_path, line, says):
    with mosquitto(tmp_path / "broker", "allow_anonymous true", line) as broker:
        result = one("broker", "--broker", broker.url)
    assert (result.level, says in result.says) == (Level.WRONG, True)


def test_the_command_prints_a_line_a_check_or_json_and_its_code_says_whether_anything_is_wrong(
    tmp_path, capsys
):
    assert main(["doctor", "--data-dir", str(tmp_path)]) == Exit.FINE
    lines = [line for line in capsys.readouterr().out.splitlines() if line[:1] != " "]
    assert [line.split()[1] for line in lines[:-1]] == list(CHECKS)
    assert lines[-1].startswith("0 wrong, ")
    assert main(["doctor", "no_such_module", "--json"]) == Exit.DIFFERS
    told = json.loads(capsys.readouterr().out)
    assert told["wrong"] == 1
    (wrong,) = [each for each in told["checks"] if each["level"] == "wrong"]
    assert (wrong["check"], wrong["type"]) == ("program", "")
