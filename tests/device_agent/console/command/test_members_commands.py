"""`lasp-edge members`, `retire` and `admit` at a real broker."""

import argparse
import json
import threading
from random import Random

import pytest

from crdts import Replica, Version
from crdts.membership import NEVER
from device_agent.console.command import admit, members, retire
from lasp_edge.errors import BrokerUnreachable, CommandError, Exit, NotFound, UsageError
from lasp_edge.link import BrokerUrl, Link
from lasp_edge.ordered.stalls import RefusedPart
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame, VariableFrame
from lasp_edge.protocol.kinds import decode
from lasp_edge.protocol.limits import CLOCK_NUMBERS
from lasp_edge.protocol.topics import Topics
from lasp_edge.tool.command_line import main
from lasp_edge.tool.local_events import refused_part
from simulations.processes.broker import PrivateBroker, free_port
from tests.brokers import PATIENCE_S, broker_program, until_connected, until_messages, until_true
from tests.device_agent.support_stage import typed
from tests.support_commands import member_command, member_of

pytestmark = [pytest.mark.broker, pytest.mark.slow]

TOPICS = Topics("greenhouse")
ATTIC, CELLAR = Replica(2, 7, "attic"), Replica(1, 9, "cellar")


class Fleet:
    """Says what devices say, and hears what operators say."""

    def __init__(self, url, client_id="fleet"):
        self.url = url
        self.link = Link(
            BrokerUrl.parse(url),
            client_id=client_id,
            subscriptions=[TOPICS.every("command")],
            jitter=Random(1),
        )
        self.link.start()

    def say(self, topic, frame, *, retain=True):
        confirmed = self.link.counts.confirmed
        assert self.link.publish(topic, frame.encode(), retain=retain)
        until_true(lambda: self.link.counts.confirmed > confirmed)

    def online(self, replica, *, online=True):
        self.say(TOPICS.of("presence", replica.device), PresenceFrame(replica, 1, online))

    def beat(self, replica, seq):
        frame = BeatFrame(replica, 1, (), done=False, reports=(), seq=seq)
        self.say(TOPICS.of("beat", replica.device), frame, retain=False)

    def words(self, count):
        return [decode(message.payload) for message in until_messages(self.link, count)]


@pytest.fixture
def fleet(tmp_path):
    with PrivateBroker(tmp_path / "broker", broker_program()) as broker:
        made = Fleet(broker.url)
        until_connected(made.link)
        yield made
        made.link.stop(0)


def of_operator(sent, **said):
    """Return what an operator's first frame on the attic says, from the replica that sent it."""
    assert sent.sender == Replica(1, sent.sender.nonce, "operator")
    return member_command(sent.sender, 1, "attic", member_of(sent).control, **said)


def run(command, url, *words, listen=1.0):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    asked = [*words, "--fleet", "greenhouse", "--broker", url, "--listen", str(listen)]
    return command.run(parser.parse_args(asked))


def test_a_connected_device_is_retired_at_what_its_beat_says(fleet, capsys):
    fleet.online(ATTIC)
    later = threading.Timer(0.8, fleet.beat, (ATTIC, 60))
    later.start()
    assert run(retire, fleet.url, "attic", listen=PATIENCE_S) == Exit.FINE
    later.join()
    (word,) = fleet.words(1)
    assert word == of_operator(word, retired=True, version=Version.of(ATTIC, 60))
    printed = capsys.readouterr().out
    assert printed == (
        "attic is retired\n  it counts up to pane entry 60 of its start 2, and nothing after that; "
        "windows do not wait for entries that are still to come, and are revised when they do\n"
    )


def test_the_word_is_retained_for_who_comes_later(fleet, capsys):
    fleet.online(ATTIC, online=False)
    assert run(retire, fleet.url, "attic") == Exit.NOT_CONFIRMED
    assert (
        "no beat of it came: all of its start 2 counts, nothing of a later"
        in capsys.readouterr().out
    )
    late = Fleet(fleet.url, "late")
    word, *repeats = late.words(1)  # the embedded broker may bring it twice
    assert set(repeats) <= {word}
    assert word.commands().membership.retired == {"attic": Version.of(ATTIC, 2**40 - 1)}
    late.link.stop(0)


def test_a_variable_that_is_retained_tells_the_life_of_who_says_nothing_else(fleet):
    frame = VariableFrame(ATTIC, 1, "local", 5, 0, ("",), (1,), ((1,), (2,)))
    fleet.say(TOPICS.of("var", "attic", "local", "00"), frame)
    assert run(retire, fleet.url, "attic", "--seq", "9") == Exit.NOT_CONFIRMED
    assert [member_of(word).version for word in fleet.words(1)] == [Version.of(ATTIC, 9)]


def test_who_was_never_heard_is_retired_only_by_force(fleet, capsys):
    with pytest.raises(NotFound, match=r"'attic' sent nothing in this fleet.*--force"):
        run(retire, fleet.url, "attic")
    fleet.say(
        TOPICS.of("presence", "attics"),
        PresenceFrame(Replica(1, 9, "attics"), 1, online=False),
    )
    with pytest.raises(NotFound, match=r"this fleet; did you mean .attics.\?; to retire it"):
        run(retire, fleet.url, "attic")
    assert run(retire, fleet.url, "attic", "--force") == Exit.NOT_CONFIRMED
    (word,) = fleet.words(1)
    assert word == of_operator(word, retired=True, version=NEVER)
    assert "nothing of it will count until it is admitted" in capsys.readouterr().out


def test_who_is_connected_and_silent_is_retired_only_by_force(fleet):
    fleet.online(ATTIC)
    with pytest.raises(CommandError, match="'attic' is connected, but sent no beat"):
        run(retire, fleet.url, "attic")
    assert run(retire, fleet.url, "attic", "--force") == Exit.FINE
    assert [member_of(word).version.seq for word in fleet.words(1)] == [2**40 - 1]


def test_retired_admitted_and_retired_again(fleet, capsys):
    fleet.online(ATTIC, online=False)
    for _ in range(2):
        assert run(retire, fleet.url, "attic") == Exit.NOT_CONFIRMED
        assert run(retire, fleet.url, "attic") == Exit.FINE
        assert run(admit, fleet.url, "attic") == Exit.NOT_CONFIRMED
        assert run(admit, fleet.url, "attic") == Exit.FINE
    members = [member_of(word) for word in fleet.words(4)]
    assert [member.retired for member in members] == [True, False, True, False]
    numbers = [member.control for member in members]
    assert numbers == sorted(set(numbers))
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line[:1] not in " N"] == 2 * [
        "attic is retired",
        "attic is retired already; nothing was changed",
        "attic counts again",
        "attic is not retired; nothing was changed",
    ]


def test_nobody_is_admitted_of_whom_nobody_heard(fleet):
    with pytest.raises(NotFound, match="'attic' sent nothing in this fleet, and nobody"):
        run(admit, fleet.url, "attic")


def test_a_word_is_said_again_above_what_a_device_remembers(fleet, capsys):
    """The broker lost what it retained: a device corrects the command, which knew no number."""
    fleet.online(ATTIC, online=False)
    remembered = member_command(
        CELLAR, 1, "attic", CLOCK_NUMBERS, retired=False, version=Version.of(ATTIC, 0)
    )

    def correct():
        fleet.words(1)
        fleet.say(TOPICS.of("command", "attic"), remembered)

    device = threading.Thread(target=correct)
    device.start()
    assert run(retire, fleet.url, "attic", listen=3.0) == Exit.NOT_CONFIRMED
    device.join()
    numbers = [member_of(word).control for word in fleet.words(2)]
    assert numbers == [CLOCK_NUMBERS, CLOCK_NUMBERS + 1], "its own, and the next one"


def test_members_show_which_gateway_refuses_what_of_whom(fleet, capsys):
    fleet.online(ATTIC)
    words = refused_part("load", RefusedPart(0, "attic", "TypeError"))
    report = json.dumps({"online": True, "waiting": [words]}).encode()
    assert fleet.link.publish(TOPICS.gateway("g"), report, retain=True)
    assert fleet.link.publish(TOPICS.gateway("h"), b'{"online": true}', retain=True)
    until_true(lambda: fleet.link.counts.confirmed == 3)
    assert run(members, fleet.url) == Exit.FINE
    assert capsys.readouterr().out.splitlines() == [
        "attic  connected  counts",
        f"gateway g: {words}",
    ]
    assert run(members, fleet.url, "--json") == Exit.FINE
    assert json.loads(capsys.readouterr().out)["gateways"] == {"g": [words], "h": []}


def test_members_are_told_in_plain_words_and_as_json(fleet, capsys):
    fleet.online(ATTIC)
    fleet.online(CELLAR, online=False)
    assert run(retire, fleet.url, "cellar", "--seq", "40") == Exit.FINE
    assert run(retire, fleet.url, "shed", "--force") == Exit.FINE
    capsys.readouterr()
    assert run(members, fleet.url) == Exit.FINE
    assert capsys.readouterr().out.splitlines() == [
        "attic   connected  counts",
        "cellar  away       retired; counts up to pane entry 40 of its start 1",
        "shed    away       retired; nothing of it counts",
    ]
    assert run(members, fleet.url, "--json") == Exit.FINE
    attic, cellar, shed = json.loads(capsys.readouterr().out)["members"]
    assert attic == {
        "device": "attic",
        "connected": True,
        "starts": 2,
        "retired": False,
        "counts_up_to": None,
        "program": None,
        "release": None,
        "runs_another": False,
    }
    assert cellar["counts_up_to"] == {"incarnation": 1, "nonce": 9, "seq": 40}
    assert (shed["starts"], shed["retired"]) == (None, True)


def test_the_other_agents_count_a_retired_one_no_more_and_an_admitted_one_again(stage):
    for device in ("a", "b"):
        stage.record(device, 300)
    staying, leaving = (stage.replay(device) for device in ("a", "b"))
    stage.lander.serve(lambda: staying.agreed(2) and leaving.agreed(2))
    words = ["b", "process_fleet:program", "--broker", stage.broker.url, "--listen", "5"]

    def devices():
        report = staying.newest()
        return report["retired"], report["values"]["global_average"]["devices"]

    done = typed("retire", *words)
    assert (done.returncode, done.stderr) == (Exit.FINE, "")
    assert "b is retired\n  it counts up to pane entry " in done.stdout
    stage.lander.serve(lambda: devices() == (["b"], 1))
    assert typed("admit", *words).stdout == "b counts again\n"
    stage.lander.serve(lambda: devices() == ([], 2))


def test_an_empty_fleet_has_no_members(fleet, capsys):
    assert run(members, fleet.url) == Exit.DIFFERS
    said = "no device sent anything in this fleet; is its name right? (--fleet)\n"
    assert capsys.readouterr().out == said


def test_a_broker_that_is_not_there_is_named():
    port = free_port()
    with pytest.raises(
        BrokerUnreachable, match=f"no connection to mqtt://127.0.0.1:{port}: cannot"
    ):
        run(members, f"mqtt://127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["attic", "--broker", "mqtt://127.0.0.1"], "a fleet is needed"),
        (["attic", "--fleet", "x", "--broker", "http://127.0.0.1"], "a broker address is"),
        (["attic", "--fleet", "x", "--broker", "mqtt://h", "--listen", "-1"], "--listen"),
        (["", "--fleet", "x", "--broker", "mqtt://h"], "must not be empty"),
        (["a\n", "--fleet", "x", "--broker", "mqtt://h"], "without control characters"),
        (["attic", "--fleet", "x", "--broker", "mqtt://h", "--seq", "-1"], "--seq"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_said(words, reason):
    parser = argparse.ArgumentParser()
    retire.add_arguments(parser)
    with pytest.raises(UsageError, match=reason):
        retire.run(parser.parse_args(words))


@pytest.mark.parametrize("command", ["retire", "admit", "get"])
def test_swapped_words_are_answered_with_their_order(command, capsys):
    words = ("house:program", "attic", "--broker", "mqtt://127.0.0.1:9")
    assert main([command, *words]) == Exit.USAGE
    assert "house:program and attic are swapped" in capsys.readouterr().err
