"""`lasp-edge try`: what comes from a source, and what it makes; `doctor` names topics like it."""

import json
import re
from random import Random

import pytest

from device_agent.console.command.checkup import topics
from device_agent.console.command.checkup.topics import like, outcome, published
from lasp_edge.errors import Exit
from lasp_edge.link import BrokerUrl, Link
from lasp_edge.tool.command_line import main
from simulations.processes.broker import PrivateBroker
from tests.brokers import broker_program, until_connected

PROGRAM = "lasp_edge.examples.greenhouse:program"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("ts,temp,place\n1795600000,21.444,attic\n99,20,cellar\n1795600010,x,hall\n")
    return path


def tried(capsys, *words):
    code = main(["try", *words])
    return code, capsys.readouterr().out


def test_each_record_is_printed_with_its_readings_or_why_it_has_none(capsys, file):
    mapped = (f"csv:{file}", "--time", "ts", "--event", "temperature=temp", "--tag", "room=place")
    code, out = tried(capsys, PROGRAM, "--source", *mapped)
    assert code == Exit.FINE
    dated = re.sub(r" \([0-9,]+ days ago\)", "", out)  # whenever this runs
    assert dated.splitlines()[1:] == [
        '  {"ts": "1795600000", "temp": "21.444", "place": "attic"}',
        "    temperature 21.444 °C, counted as 21.44, at 2026-11-25 09:46:40 UTC, with room=attic",
        "      its key in temperature_by_room: attic",
        '  {"ts": "99", "temp": "20", "place": "cellar"}',
        "    no reading: a time of 1970: is it an uptime, or is --time-unit missing or wrong?",
        '  {"ts": "1795600010", "temp": "x", "place": "hall"}',
        "    temperature 'x' is refused: not a number",
    ]


def test_a_key_that_fails_is_named_with_the_tag_that_it_lacks(capsys, file):
    _, out = tried(capsys, PROGRAM, "--source", f"csv:{file}", "--event", "temperature=temp")
    assert 'refused: the key of temperature_by_room fails: MissingTagError: no tag "room"' in out


def test_a_source_that_makes_nothing_ends_with_one(capsys, tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text('{"temp": 1}\n[]\n')
    code, out = tried(capsys, PROGRAM, "--source", f"jsonl:{path}")
    assert code == Exit.DIFFERS
    assert 'no reading: no event of temperature: the message has "temp"' in out
    path.write_text("")
    code, out = tried(capsys, PROGRAM, "--source", f"jsonl:{path}", "--patience", "1")
    assert (code, "nothing came within 1 s" in out) == (Exit.DIFFERS, True)


def test_topics_that_differ_by_a_letter_are_like_each_other():
    there = ["zigbee2mqtt/kitchen", "zigbee2mqtt/attic", "tele/plug/SENSOR"]
    for asked in ("zigbee2mqtt/kitchn", "Zigbee2mqtt/kitchen", "/zigbee2mqtt/kitchen"):
        assert like(asked, there)[0] == "zigbee2mqtt/kitchen"
    assert like("zigbe2mqtt/+", there) == ["zigbee2mqtt/attic", "zigbee2mqtt/kitchen"]
    assert like("zigbe2mqtt/#", there) == ["zigbee2mqtt/attic", "zigbee2mqtt/kitchen"]
    assert like("home/kitchen", there) == []
    assert outcome("home/#", dict.fromkeys([*there, "lasp/v1/house/0a/beat/pi"], 1))[1].endswith(
        ", but on tele/plug/SENSOR, zigbee2mqtt/attic, zigbee2mqtt/kitchen"
    )


def test_messages_of_a_broker_are_looked_at_and_left_there(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(topics, "LISTEN_S", 1.0)
    with PrivateBroker(tmp_path, broker_program()) as broker:
        link = Link(BrokerUrl.parse(broker.url), client_id="sensor", jitter=Random(1))
        link.start()
        until_connected(link)
        for room in ("kitchen", "attic"):
            link.publish(f"z/{room}", json.dumps({"temperature": 21.5}).encode(), retain=True)
        words = (PROGRAM, "--broker", broker.url, "--messages", "2", "--retained", "--source")
        for _ in range(2):  # nothing of the first look is kept
            code, out = tried(capsys, *words, "mqtt:z/{room}")
            assert code == Exit.FINE
            assert {line.strip() for line in out.splitlines()[1:]} == {
                *(f'z/{room}  {{"temperature": 21.5}}' for room in ("kitchen", "attic")),
                *(
                    f"temperature 21.5 °C, at the time when it arrives, with room={room}"
                    for room in ("kitchen", "attic")
                ),
                *(f"its key in temperature_by_room: {room}" for room in ("kitchen", "attic")),
            }
        code, out = tried(capsys, *words, "mqtt:z/kitchn", "--patience", "1")
        assert code == Exit.DIFFERS
        assert "did you mean z/kitchen?" in out
        url = BrokerUrl.parse(broker.url)
        assert published(url, ["z/#"], 9.0).keys() <= {"z/kitchen", "z/attic"}
        link.stop()


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("1795600000,61,attic", "temperature 61 is refused: outside of -50 to 60"),
        ("4102444800,20,attic", " s ahead of the clock"),
    ],
)
def test_a_source_of_which_no_reading_counts_ends_with_one(
    capsys, tmp_path, monkeypatch, line, shown
):
    (tmp_path / "tried_house.py").write_text(
        "from lasp_edge import Program, folds\n"
        'program = Program("house")\n'
        't = program.event("temperature", resolution="0.1", least=-50, most=60)\n'
        'program.window("by_room", source=t, fold=folds.mean(), size_s=60,\n'
        '    key=lambda event: event.tags["room"])\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "readings.csv"
    words = ("--source", f"csv:{path}", "--time", "ts", "--tag", "room=room")
    path.write_text(f"ts,temperature,room\n{line}\n")
    code, out = tried(capsys, "tried_house:program", *words)
    assert (code, shown in out) == (Exit.DIFFERS, True), out
    path.write_text(f"ts,temperature,room\n{line}\n1732492800,21,attic\n")
    code, out = tried(capsys, "tried_house:program", *words)
    assert code == Exit.FINE
    assert "temperature 21, at 2024-11-25 00:00:00 UTC (" in out
    assert " days ago), with room=attic" in out


def test_without_a_connection_it_is_not_stated_that_nothing_came_on_any_topic(capsys, monkeypatch):
    monkeypatch.setattr(topics, "LISTEN_S", 0.1)
    monkeypatch.setattr(published, "__defaults__", (0.1,))
    words = ("--broker", "mqtt://127.0.0.1:1", "--patience", "0.1")
    code, out = tried(capsys, "--source", "mqtt:z/#", *words)
    assert code == Exit.DIFFERS
    assert "nothing came on z/#: there is no connection to the broker" in out


def test_an_address_of_a_broker_is_no_topic(capsys):
    words = ("--source", "mqtt://10.0.0.1/z/#", "--broker", "mqtt://10.0.0.1")
    assert main(["try", *words]) == Exit.USAGE
    assert "--source 'mqtt:z/#' --broker mqtt://10.0.0.1\n" in capsys.readouterr().err


def test_a_number_in_place_of_a_text_is_refused_as_agents_do(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "callers.py").write_text(
        "from lasp_edge import Program\n"
        "program = Program('callers')\n"
        "program.map(program.event('who', text=True), lambda event: event.value, 'called')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    words = ["try", "callers:program", "--source", "jsonl:calls.jsonl", "--time", "ts"]
    codes = []
    for who in ("5", '"bob"'):
        (tmp_path / "calls.jsonl").write_text(f'{{"ts": 1764028800, "who": {who}}}\n')
        codes.append(main(words))
    assert codes == [Exit.DIFFERS, Exit.FINE]
    assert "who 5 is refused: not a text" in capsys.readouterr().out
