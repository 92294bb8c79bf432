"""Real processes behind exactly the broker that `lasp-edge broker config` configures."""

import pytest

from lasp_edge.link import Limits
from lasp_edge.protocol.kinds import FRAME_KINDS, Publisher
from lasp_edge.tool.command_line import main
from tests.brokers import PATIENCE_S, messages, until, until_connected, until_true
from tests.end_to_end.secured import DEVICES, GATEWAY, NAME, SecuredFleet
from tests.lasp_edge.link.support_link import publish_when_possible

pytestmark = [
    pytest.mark.broker,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # paho's socket
]
QUICK = Limits(first_wait_s=0.05, longest_wait_s=0.2)


@pytest.fixture(scope="module", params=["passwords", "certificates"])
def secured(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp(request.param)
    made = SecuredFleet(directory, certificates=request.param == "certificates")
    yield made
    made.close()


@pytest.fixture
def fleet(secured):
    """The fleet; a test's links end with it, since a user has one connection."""
    yield secured
    secured.end_links()


def test_real_agents_agree_and_a_real_lander_and_gateway_take_everything(fleet):
    pytest.importorskip("deltalake", reason="needs the extra `cloud`")
    words = (
        "lander",
        f"{NAME}:program",
        "--lake",
        fleet.directory / "lake",
        *fleet.login("lander"),
    )
    lander, gateway = fleet.process("lander", *words), fleet.gateway(GATEWAY)
    screen = fleet.link("screen", subscriptions=[f"{fleet.topics.root}/out/warm/#"])
    agents = [fleet.agent(device) for device in DEVICES]
    fleet.wait(lambda: fleet.agreed(*DEVICES))
    until(screen, messages)  # whoever may see results sees the windows
    fleet.wait(lambda: fleet.kept(GATEWAY) == fleet.true_windows(*DEVICES))
    printed = fleet.command("members", f"{NAME}:program", "--listen", "3", *fleet.login("operator"))
    *devices, at_gateway = [line.split() for line in printed.splitlines()]
    assert devices == [["attic", "connected", "counts"], ["kitchen", "connected", "counts"]]
    assert at_gateway[:2] == ["gateway", f"{GATEWAY}:"]
    words = ("attic", f"{NAME}:program", "--force", *fleet.login("operator"))
    assert "attic is retired" in fleet.command("retire", *words)
    fleet.wait(lambda: fleet.report("kitchen")["retired"] == ["attic"])
    assert "attic counts again" in fleet.command("admit", "attic", *words[1:2], *words[3:])
    fleet.wait(lambda: fleet.report("kitchen")["retired"] == [])
    for process in (*agents, lander, gateway):
        process.terminate()
        assert process.wait(timeout=PATIENCE_S) == 0
    assert [fleet.errors(name) for name in (*DEVICES, GATEWAY)] == [""] * 3
    (line,) = fleet.errors("lander").splitlines()
    assert line.endswith(f"lander: made a new lake in {fleet.directory / 'lake'}")


def refused(fleet, user, topic):
    """Return whether the broker refuses a user's message on a topic."""
    link = fleet.link(user)
    until_connected(link)

    def judged():
        if not link.in_flight and not link.counts.confirmed and not link.counts.dropped:
            link.publish(topic, b"x")  # again, where a connection ended before the answer
        return link.counts.confirmed or link.counts.dropped

    until_true(judged)
    trouble, dropped = link.trouble, link.counts.dropped
    link.stop(0.0)
    if not dropped:
        return False
    assert dropped == {"refused by the broker: Not authorized": 1}
    assert topic in trouble
    return True


@pytest.mark.parametrize("kind", sorted(FRAME_KINDS))
def test_each_kind_is_published_only_by_whom_its_row_names(fleet, kind):
    row = FRAME_KINDS[kind]
    kitchens = fleet.topics.of(row.topic, "kitchen")
    may = {
        user
        for user in ("attic", "kitchen", "lander", "operator", "screen")
        if not refused(fleet, user, kitchens)
    }
    wanted = {
        Publisher.ITSELF: {"kitchen"},
        Publisher.DEVICES: {"kitchen", "attic"},
        Publisher.LANDER: {"lander"},
        Publisher.OPERATOR: {"operator"},
    }
    assert may == set().union(*(wanted[each] for each in Publisher if each & row.publishers))


def test_results_are_read_by_viewers_and_written_by_their_device_alone(fleet):
    topic = fleet.topics.result("global_average", "kitchen")
    assert refused(fleet, "attic", topic)
    assert refused(fleet, "screen", topic)
    screen = fleet.link("screen", subscriptions=["#"])
    until_connected(screen)
    kitchen = fleet.link("kitchen")
    until_connected(kitchen)
    for each in (fleet.topics.of("beat", "kitchen"), topic):
        publish_when_possible(kitchen, each, b"21.5")
    came = until(screen, lambda events: topic in [each.topic for each in messages(events)])
    assert all("/out/" in message.topic for message in messages(came))


def test_a_command_with_the_login_of_a_device_names_whose_login_it_takes(fleet, capsys):
    words = ["retire", "attic", "--fleet", NAME, "--force", "--listen", "0.2"]
    assert main([*words, *map(str, fleet.login("kitchen"))]) != 0
    text = capsys.readouterr().err
    assert "has not taken the command: a command takes the login of an operator; " in text
    assert ("is 'kitchen' one?" in text) is not fleet.certificates


def test_topics_outside_the_fleet_are_nobodys(fleet):
    for topic in ("a", "lasp/v1/other/06/pane/kitchen", f"{fleet.topics.root}/06/new/kitchen"):
        assert refused(fleet, "kitchen", topic)
        assert refused(fleet, "operator", topic)


def test_who_does_not_log_in_is_refused(fleet):
    stranger = fleet.link(None, limits=QUICK)
    until_true(
        lambda: (
            "it asks for a user" in (stranger.trouble or "")
            or "the broker asks for a certificate" in (stranger.trouble or "")
        )
    )


def test_nobody_takes_over_anothers_connection(fleet):
    root = fleet.topics.root
    kitchen = fleet.link("kitchen", f"{root}/kitchen")
    until_connected(kitchen)
    attic = fleet.link("attic", f"{root}/kitchen")
    until_connected(attic)
    publish_when_possible(kitchen, fleet.topics.of("beat", "kitchen"), b"x")
    until_true(lambda: kitchen.in_flight == 0)
    assert kitchen.counts.connections == 1


def test_an_agent_with_a_wrong_password_says_so_in_one_line_and_goes_on(fleet):
    wrong = fleet.directory / "wrong.login"
    wrong.write_text("cellar\nwrong\n")
    wrong.chmod(0o600)
    words = ["--broker", f"mqtts://localhost:{fleet.port}", "--ca-file", fleet.files / "ca.pem"]
    agent = fleet.agent("cellar", *words, "--login", wrong)
    fleet.wait(lambda: (fleet.report("cellar").get("trouble") or "connecting") != "connecting")
    fleet.wait(lambda: fleet.report("cellar")["accepted"] == 200)
    reason = "asks for a certificate" if fleet.certificates else "is the password of user 'cellar'"
    assert reason in fleet.report("cellar")["trouble"]
    agent.terminate()
    assert agent.wait(timeout=PATIENCE_S) == 0
    (line,) = [each for each in fleet.errors("cellar").splitlines() if each]
    assert reason in line


def test_a_source_logs_in_as_its_device_and_reads_what_sensors_publish(tmp_path):
    fleet = SecuredFleet(tmp_path, "--sensors", "house/#")
    try:
        words = (
            "agent",
            f"{NAME}:program",
            "--device",
            "kitchen",
            "--data-dir",
            tmp_path / "kitchen",
        )
        source = ("--source", "mqtt:house/+/temperature", "--report", "0.2")
        fleet.process("kitchen", *words, *source, *fleet.login("kitchen"))
        fleet.wait(lambda: fleet.report("kitchen").get("connected"))
        sensors = fleet.link("sensors")
        until_connected(sensors)
        fleet.wait(lambda: _is_read(fleet, sensors))
        assert refused(fleet, "kitchen", "house/attic/temperature")
        assert fleet.errors("kitchen") == ""
    finally:
        fleet.close()


def _is_read(fleet, sensors):
    """Publish a reading; return whether an agent has read one."""
    sensors.publish("house/attic/temperature", b"21.5")
    return fleet.report("kitchen")["accepted"] > 0
