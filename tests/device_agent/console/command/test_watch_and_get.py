"""`lasp-edge watch`, `lasp-edge get` and Home Assistant, with agents at a real broker."""

import argparse
import json
import socket
from dataclasses import replace
from random import Random

import pytest

from device_agent.console.command import get, retire, watch
from device_agent.console.command.session import FleetSession
from lasp_edge.errors import BrokerUnreachable, CommandError, Exit, UsageError
from lasp_edge.examples.greenhouse import program
from lasp_edge.link import BrokerUrl, Link, Will
from lasp_edge.protocol.topics import Topics
from simulations.processes.broker import free_port
from tests.brokers import until_connected, until_messages, until_true
from tests.device_agent.agent.fleet.home import judged
from tests.device_agent.agent.fleet.test_home_assistant import HOME
from tests.device_agent.support_linked import LinkedAgents
from tests.lasp_edge.link.support_link import publish_when_possible

pytestmark = [pytest.mark.broker, pytest.mark.slow]

PROGRAM = "lasp_edge.examples.greenhouse:program"
TOPICS = Topics("greenhouse")


@pytest.fixture(scope="module")
def agents(shared_broker, tmp_path_factory):
    made = LinkedAgents(
        shared_broker.url,
        tmp_path_factory.mktemp("agents"),
        program.plan(),
        ["attic", "Küche/2"],
        HOME,
    )
    made.start()
    attic, kitchen = made.devices
    attic.read([20, 22], tags={"room": "a"})
    kitchen.read([24], tags={"room": "k"})
    made.play(rounds=16)
    yield made
    made.stop()


def run(command, broker, *words):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args([*words, "--broker", broker.url]))


def test_get_prints_the_fleets_value_and_a_devices(agents, shared_broker, capsys):
    assert run(get, shared_broker, "global_average", "--fleet", "greenhouse") == Exit.FINE
    assert capsys.readouterr().out == "22.0\n"
    words = ("local_average", "--fleet", "greenhouse", "--device", "Küche/2", "--json")
    assert run(get, shared_broker, *words) == Exit.FINE
    assert json.loads(capsys.readouterr().out) == {
        "parts": {"mean": 24.0},
        "count": 1,
        "total_q": 2400,
    }


def test_get_needs_no_results_where_the_program_is_named(tmp_path, capsys, broker):
    settings = replace(HOME, results_us=0, home_assistant="")
    made = LinkedAgents(broker.url, tmp_path, program.plan(), ["attic", "shed"], settings)
    made.start()
    made.devices[0].read([1.5], tags={"room": "a"})
    made.devices[1].read([2.5, 2.5], tags={"room": "a"})
    made.play(rounds=4)
    made.stop()
    assert run(get, broker, "local_average", PROGRAM, "--device", "attic") == Exit.FINE
    assert run(get, broker, "global_average", PROGRAM) == Exit.FINE
    assert capsys.readouterr().out == "1.50\n2.17\n", "as fine as the step of the readings"
    assert run(get, broker, "global_average", PROGRAM, "--json") == Exit.FINE
    assert json.loads(capsys.readouterr().out)["parts"]["mean"] == 6.5 / 3
    with pytest.raises(CommandError, match="no device publishes results; name the program"):
        run(get, broker, "global_average", "--fleet", "greenhouse", "--wait", "0")
    with pytest.raises(CommandError, match=r"^no value 'opened' in fleet 'greenhouse'"):
        run(get, broker, "opened", PROGRAM, "--wait", "0")

    run(retire, broker, "shed", PROGRAM, "--force", "--listen", "0.5")
    capsys.readouterr()
    assert run(get, broker, "global_average", PROGRAM) == Exit.FINE
    assert capsys.readouterr().out == "1.50\n", "without the retired one"
    assert run(watch, broker, PROGRAM, "--once", "--wait", "0.5") == Exit.FINE
    assert capsys.readouterr().out.startswith("fleet greenhouse: 1 device")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["globl_average"],
            "no value .globl_average. is published .*; did you mean .* get globl_average MODULE:",
        ),
        (["by_room"], "; of a window: lasp-edge windows by_room --gateway DIR$"),
        (
            ["temperature_by_room", PROGRAM],
            "^'temperature_by_room' is a window: lasp-edge windows temperature_by_room --gateway",
        ),
        (["globl_average", PROGRAM], r"^no value 'globl_average' in fleet .*did you mean [^;]+$"),
        (["local_average"], "each device has its own local_average; name one: --device "),
        (["local_average", "--device", "atic"], "no device 'atic' .* did you mean 'attic'"),
        (["global_average", "--fleet", "greenhuse"], "no device was heard in fleet 'greenhuse'"),
        (["global_average", "--of", "x"], "global_average has no value yet"),
    ],
)
def test_get_says_what_could_have_been_meant(agents, shared_broker, words, said):
    known = "--fleet" in words or PROGRAM in words
    words = words if known else [*words, "--fleet", "greenhouse"]
    with pytest.raises(CommandError, match=said) as error:
        run(get, shared_broker, *words, "--wait", "0")
    assert error.value.exit_code == 1


def test_get_says_where_a_shared_variable_is_seen(agents, shared_broker, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    text = "from lasp_edge.examples.greenhouse import program\nfrom crdts import Counter\n"
    made = "from copy import deepcopy\nmade = deepcopy(program)\nmade.declare(Counter(), 'opened')"
    (tmp_path / "with_shared.py").write_text(text + made)
    said = "'opened' is a shared variable, .*: lasp-edge lake shared opened --lake DIR$"
    with pytest.raises(CommandError, match=said):
        run(get, shared_broker, "opened", "with_shared:made", "--wait", "0")


@pytest.mark.parametrize("command", [get, watch])
def test_a_broker_that_is_not_there_is_named_with_the_reason(command, monkeypatch):
    monkeypatch.setattr("device_agent.console.command.session.CONNECT_S", 0.5)
    port = free_port()
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    words = ["global_average"] if command is get else ["--once"]
    url = f"mqtt://127.0.0.1:{port}"
    asked = parser.parse_args([*words, "--fleet", "x", "--broker", url])
    with pytest.raises(
        BrokerUnreachable, match="Connection refused; is the broker started"
    ) as gone:
        command.run(asked)
    assert gone.value.exit_code == Exit.ENVIRONMENT


def test_a_fleet_is_needed(shared_broker):
    with pytest.raises(UsageError, match="a fleet is needed"):
        run(get, shared_broker, "x")
    with pytest.raises(UsageError, match="--every: seconds above 0"):
        run(watch, shared_broker, "--fleet", "x", "--every", "0")


@pytest.mark.parametrize("known", [["--fleet", "greenhouse"], [PROGRAM]])
def test_watch_prints_a_table(agents, shared_broker, capsys, known):
    assert run(watch, shared_broker, *known, "--once", "--wait", "0.5") == Exit.FINE
    head, titles, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("fleet greenhouse: 2 devices, 2 connected; global_average: 22")
    assert titles.split()[:4] == ["device", "readings", "local_average", "global_average,"]
    assert [row.split()[0] for row in rows] == ["Küche/2", "attic"]
    assert all("22" in row for row in rows)
    assert "°C" in head or known[0] == "--fleet"


def test_watch_prints_json(agents, shared_broker, capsys):
    words = ("--fleet", "greenhouse", "--once", "--json", "--wait", "0.5")
    assert run(watch, shared_broker, *words) == Exit.FINE
    told = json.loads(capsys.readouterr().out)
    assert told["value"]["parts"] == {"mean": 22.0}
    assert told["trouble"] is None
    attic = told["devices"][1]
    assert (attic["device"], attic["connected"], attic["readings"]) == ("attic", True, 2)
    assert attic["own"]["parts"] == {"mean": 21.0}


def test_watch_of_an_empty_fleet_says_so(agents, shared_broker, capsys):
    words = ("--fleet", "nobody", "--once", "--wait", "0.1")
    assert run(watch, shared_broker, *words) == Exit.DIFFERS
    assert "no device was heard in this fleet; is its name right?" in capsys.readouterr().out


def test_watch_goes_on_until_it_is_stopped(agents, shared_broker, monkeypatch, capsys):
    printed, poll = [], FleetSession.poll

    def polled(self, timeout_s):
        printed.append(capsys.readouterr().out)
        if "".join(printed).count("fleet greenhouse: ") > 1:
            raise KeyboardInterrupt
        assert len(printed) < 10_000, printed
        return poll(self, timeout_s)

    monkeypatch.setattr(FleetSession, "poll", polled)
    with pytest.raises(KeyboardInterrupt):
        run(watch, shared_broker, "--fleet", "greenhouse", "--every", "0.1")


class HomeAssistant:
    """What Home Assistant sees: configurations, and who is available."""

    def __init__(self, url):
        self.link = Link(
            BrokerUrl.parse(url),
            client_id="home-assistant",
            subscriptions=["homeassistant/#", f"{TOPICS.root}/#"],
            last_will=Will("homeassistant/status", b"offline"),
            jitter=Random(1),
        )
        self.held = {}
        self.heard = []
        self.link.start()

    @property
    def announced(self):
        return [topic for topic in self.held if topic.endswith("/config")]

    def poll(self):
        for event in self.link.poll(0.05):
            if hasattr(event, "topic"):
                self.held[event.topic] = event.payload
                self.heard.append(event.topic)

    def until(self, condition):
        until_true(lambda: self.poll() or condition())


def test_home_assistant_discovers_the_agents_at_its_birth_and_sees_them_go(agents, shared_broker):
    home = HomeAssistant(shared_broker.url)
    home.until(lambda: len(home.announced) == len(("attic", "Küche/2", "greenhouse")))
    topics = set(home.announced)
    configs = [each for topic in topics for each in judged(topic, home.held[topic])]
    names = {config["device"]["name"] for config in configs}
    assert names == {"attic", "Küche/2", "greenhouse"}
    home.until(lambda: {config["state_topic"] for config in configs} <= set(home.held))
    home.heard.clear()
    assert home.link.publish("homeassistant/status", b"online", retain=True)
    until_true(lambda: home.link.in_flight == 0)

    def announced():
        home.poll()
        return {topic for topic in home.heard if topic.endswith("/config")} == topics

    agents.play(announced)
    home.until(announced)
    (available,) = next(c for c in configs if c["device"]["name"] == "attic")["availability"]
    online = home.held[available["topic"]]
    agents.links["attic"]._connection._client.socket().shutdown(socket.SHUT_RDWR)
    home.until(lambda: home.held[available["topic"]] != online)
    assert b'{"online": true}' in online
    assert b'{"online": true}' not in home.held[available["topic"]]
    home.link.stop(0)


def test_a_broker_takes_the_topic_of_any_name_and_key(shared_broker):
    names = ["a\x01b", "\ufdd0", "\U0001ffff", "$x", " x ", "a/b+c#d%", "e\u0301", "\u2028", "🌡"]
    names += [chr(point) for point in range(0x80, 0xA0)]
    topics = {TOPICS.result(name, name, name): name for name in names}
    link = Link(
        BrokerUrl.parse(shared_broker.url),
        client_id="any-name",
        subscriptions=[f"{TOPICS.root}/out/+/+/+"],
        jitter=Random(1),
    )
    link.start()
    until_connected(link)
    for topic in topics:
        publish_when_possible(link, topic, b"x")
    came = until_messages(link, len(topics))
    assert {topics[message.topic] for message in came} >= set(names)
    assert link.counts.connections == 1
    link.stop(0)
