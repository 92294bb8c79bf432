"""An agent's configuration file: what it may say, what wins, and what each mistake is told as."""

import argparse

import pytest

from device_agent.agent.sources.values import EventRule
from device_agent.console.configuration.agent_options import DEFAULTS, add_arguments
from device_agent.console.configuration.arguments import asked
from lasp_edge.errors import UsageError

HOUSE = """
program = "house:program"
device = "attic-pi"
broker = "mqtt://192.168.1.10"
data-dir = "/var/lib/lasp-edge"
interval = 10
keep-readings = true

[mapping.boiler]
time = "at"
time-zone = "Europe/Berlin"
event.temperature = { field = "temp_f", scale = "5/9", offset = "-160/9" }
tag = { room = "where.room" }

[[source]]
kind = "mqtt"
topic = "zigbee2mqtt/{room}"
mapping = "zigbee2mqtt"
retained = true

[[source]]
name = "boiler"
kind = "mqtt"
topic = "heating/+"
mapping = "boiler"
event.humidity = "hum"

[[source]]
kind = "host"
every = 60
with-tag = { room = "attic" }
"""


@pytest.fixture
def ask(tmp_path):
    """Return a function that asks with a file and words, and returns what is asked for."""

    def ask(text, *words, **environment):
        (tmp_path / "fleet.toml").write_text(text)
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        given = parser.parse_args(["--config", str(tmp_path / "fleet.toml"), *words])
        return asked(given, add_arguments, DEFAULTS, environment)

    return ask


def test_a_byte_order_mark_says_nothing_and_false_is_as_if_left_out(ask):
    asked_for = ask(f"\ufeffhome-assistant = false\n{HOUSE}").arguments
    assert (asked_for.device, asked_for.home_assistant) == ("attic-pi", "")


def test_a_file_says_all_that_the_command_line_says(ask):
    wanted = ask(HOUSE)
    arguments = wanted.arguments
    assert (arguments.program, arguments.device) == ("house:program", "attic-pi")
    assert (arguments.broker, str(arguments.data_dir)) == (
        "mqtt://192.168.1.10",
        "/var/lib/lasp-edge",
    )
    assert (arguments.interval, arguments.keep_readings) == (10.0, True)
    assert (arguments.retain_days, arguments.verbose) == (7.0, False), "defaults"
    zigbee, boiler, host = wanted.specs
    assert zigbee.name == "mqtt:zigbee2mqtt/{room}"
    assert zigbee.options == {"mapping": "zigbee2mqtt", "retained": True}
    assert (boiler.kind, boiler.place, boiler.name) == ("mqtt", "heating/+", "boiler")
    assert boiler.options["time"] == "at"
    assert boiler.options["time-zone"].name == "Europe/Berlin"
    assert isinstance(boiler.options["event"]["temperature"], EventRule)
    assert boiler.options["event"]["humidity"] == "hum", "laid over the mapping's"
    assert host == ("host", "", "host", {"every": 60_000_000, "with-tag": {"room": "attic"}},
                    host.found_at)  # fmt: skip
    assert host.found_at.endswith("fleet.toml line 28")


def test_every_option_of_the_command_line_has_its_name_in_the_file(ask):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    values = {
        "--mapping": '"tasmota"',
        "--event": '{ t = "a" }',
        "--tag": '{ t = "a" }',
        "--with-tag": '{ t = "a" }',
        "--time-zone": '"UTC"',
        "--source": '["host"]',
        "--log-level": '"info"',
        "--log-format": '"json"',
    }
    for name in sorted(vars(parser)["_option_string_actions"]):
        if name in {"-h", "--help", "--config"}:
            continue
        tries = [values[name]] if name in values else ['"x"', "1", "true"]
        taken = 0
        for value in tries:
            try:
                ask(f"{name[2:]} = {value}\n")
            except UsageError as error:
                assert "is needed, not" in str(error), error  # noqa: PT017
            else:
                taken += 1
        assert taken, name


def test_an_option_that_may_stand_alone_is_true_or_a_text(ask):
    assert ask("home-assistant = true\n").arguments.home_assistant == "homeassistant"
    assert ask('home-assistant = "ha"\n').arguments.home_assistant == "ha"
    assert ask("metrics = 9100\n").arguments.metrics == "9100"


def test_the_command_line_wins(ask):
    wanted = ask(HOUSE, "--interval", "60", "--device", "me", "--every", "5", "--time", "ts")
    assert (wanted.arguments.interval, wanted.arguments.device) == (60.0, "me")
    assert [spec.options["every"] for spec in wanted.specs] == [5_000_000] * 3
    assert [spec.options["time"] for spec in wanted.specs] == ["ts"] * 3
    only = ask(HOUSE, "--source", "stdin", "other:program")
    assert [spec.name for spec in only.specs] == ["stdin"]
    assert only.arguments.program == "other:program"


def test_options_at_the_top_are_for_all_sources(ask):
    wanted = ask('time = "a"\nmapping = "esphome"\nsource = ["host", "csv:x"]\n')
    assert [spec.name for spec in wanted.specs] == ["host", "csv:x"]
    assert [spec.options for spec in wanted.specs] == [{"time": "a", "mapping": "esphome"}] * 2
    [spec] = ask('time = "a"\n[[source]]\nkind = "csv"\nfile = "x"\ntime = "b"\n').specs
    assert spec.options == {"time": "b"}


@pytest.mark.parametrize(
    ("first", "second", "area"),
    [
        ('{ room = "attic" }', '{ room = "attic", floor = "2" }', "attic"),
        ('{ room = "attic", area = "Loft" }', '{ room = "attic", area = "Loft" }', "Loft"),
        ('{ room = "attic" }', '{ room = "bath" }', ""),
        ('{ room = "attic" }', "{}", ""),
    ],
)
def test_the_area_of_a_device_is_the_room_that_all_its_sources_have(ask, first, second, area):
    tables = [
        f'[[source]]\nkind = "{kind}"\nwith-tag = {tags}\n'
        for kind, tags in (("host", first), ("onewire", second))
    ]
    assert ask("".join(tables)).area == area
    assert ask(HOUSE).area == ""


def test_the_order_of_sources_changes_no_name(ask):
    head, *tables = HOUSE.split("[[source]]")
    turned = "[[source]]".join([head, *reversed(tables)])
    assert {spec[:4][2] for spec in ask(turned).specs} == {spec.name for spec in ask(HOUSE).specs}


def test_user_and_password_come_from_the_environment(ask):
    text = 'user = "ann"\npassword = "env:HOUSE_PASSWORD"\n'
    wanted = ask(text, HOUSE_PASSWORD="s3cret")
    assert wanted.environment["LASP_EDGE_USER"] == "ann"
    assert wanted.environment["LASP_EDGE_PASSWORD"] == "s3cret"


MISTAKES = {
    'brokr = "x"': 'line 1: the file has no key "brokr"; did you mean "broker"?',
    'data_dir = "x"': 'line 1: the file has no key "data_dir"; did you mean "data-dir"?',
    "config = 1": 'line 1: the file has no key "config"',
    "\ndevice = 5": 'line 2: device: a text in quotation marks, "5", is needed, not 5',
    "device = 1\ndevice = 2": "line 2, column 11: this key stands above already",
    'interval = "10"': 'line 1: interval: a number is needed, not "10"',
    "interval = true": "line 1: interval: a number is needed, not true",
    'verbose = "yes"': 'line 1: verbose: true or false is needed, not "yes"',
    "data-dir = []": "line 1: data-dir: a text in quotation marks is needed, not a list",
    'password = "abc"': "line 1: a password does not belong in this file; write password",
    "user = 7": "line 1: user: a text is needed, not 7",
    'device = "env:NOT_SET"': "line 1: the environment variable NOT_SET is not set",
    "source = 3": "line 1: source: tables [[source]], or a list of texts",
    "[[source]]": 'line 1: kind = "..." is needed, one of host, jsonl, csv',
    '[[source]]\nkind = "mqt"': 'line 2: kind: there is no "mqt"; did you mean "mqtt"?',
    '[[source]]\nkind = "mqtt"': 'line 1: topic = "..." is needed for the kind mqtt',
    '[[source]]\nkind = "csv"\nfile = 3': 'line 3: file = "..." is needed for the kind csv',
    '[[source]]\nkind = "host"\ntopic = "x"': "line 3: a source of the kind host has no key "
    '"topic"; there are "every", "with-tag", "kind", "name"',
    '[[source]]\nkind = "mqtt"\ntopic = "x"\ntimezone = "UTC"': "line 4: a source of the kind mqtt "
    'has no key "timezone"; did you mean "time-zone"?',
    '[[source]]\nkind = "host"\nevery = "often"': "line 3: every: a number is needed, not",
    '[[source]]\nkind = "host"\nevery = -1': "line 3: every: a positive number of seconds",
    '[[source]]\nkind = "host"\nname = 3': "line 3: name: a text is needed, not 3",
    '[[source]]\nkind = "host"\n[[source]]\nkind = "host"': 'line 3: two sources are named "host"',
    '[[source]]\nkind = "mqtt"\ntopic = "x"\nretained = "yes"': "line 4: retained: true or false",
    '[[source]]\nkind = "mqtt"\ntopic = "x"\nmapping = "zigbee"': 'line 4: mapping: there is no '
    '"zigbee"; did you mean "zigbee2mqtt"?',
    '[[source]]\nkind = "mqtt"\ntopic = "x"\nevent = "t"': "line 4: event: a table NAME = FIELD",
    '[[source]]\nkind = "mqtt"\ntopic = "x"\nevent.t = 3': "line 4: event t: a field, or a table",
    '[[source]]\nkind = "mqtt"\ntopic = "x"\nevent.t.scael = 3': 'line 4: event t has no key "sca',
    '[[source]]\nkind = "mqtt"\ntopic = "x"\ntag = ["a"]': "line 4: tag: a table such as",
    '[[source]]\nkind = "mqtt"\ntopic = "x"\nignore = "a"': "line 4: ignore: a list of texts",
    '[[source]]\nkind = "mqtt"\ntopic = "x"\ntime-zone = "Berlin"': "line 4: time-zone: there is "
    "no zone 'Berlin'; did you mean \"Europe/Berlin\"?",
    '[[source]]\nkind = "csv"\nfile = "x"\nspeed = "fast"': "line 4: speed: a number or max",
    "[mapping.a]\ntiem = 1": 'line 2: mapping a has no key "tiem"; did you mean "time"?',
    '[[source]]\nkind = "mqtt"\ntopic = "x"\nmapping = ["a"]': "line 4: mapping: there is no a li",
    '[[source]]\nkind = "mqtt"\ntopic = "x"\nmapping = 3': "line 4: mapping: there is no 3",
    "[mapping.tasmota]": 'line 1: "tasmota" is a ready mapping; choose another name',
    "[mapping]\na = 1": "line 2: a table [mapping.a] is needed, not 1",
}  # fmt: skip


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_told_with_its_file_and_line_and_what_is_right(ask, text):
    with pytest.raises(UsageError) as raised:
        ask(f"{text}\n")
    assert f"fleet.toml {MISTAKES[text]}" in str(raised.value)
