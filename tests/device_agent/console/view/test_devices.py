"""The devices that an operator's command knows, the entries that they have, and commands."""

import itertools

import pytest

from crdts import ControlLog, Member, Membership, Replica, Version
from crdts.membership import NEVER
from device_agent.console.command.members import member_row, words_of
from device_agent.console.view.commands import WHOLE_LIFE, FleetCommands
from device_agent.console.view.devices import KnownDevices
from device_agent.console.view.fleet_view import FleetView
from lasp_edge.protocol.commands import CommandFrame, CommandLog
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame, VariableFrame
from lasp_edge.protocol.topics import Topics, topic_of
from tests.support_commands import member_of

TOPICS = Topics("greenhouse")
OPERATOR = Replica(1, 5, "operator")
FIRST, SECOND = Replica(1, 7, "attic"), Replica(2, 3, "attic")
LOG = ControlLog().set("offset", "", 600, "3", "ann")
MORE = LOG | LOG.set("offset", "", 900, "4", "ann")


def beat(replica, seq, number=1):
    return TOPICS.of("beat", replica.device), BeatFrame(
        replica, number, (), done=False, reports=(), seq=seq
    ).encode()


def presence(replica, *, online):
    return TOPICS.of("presence", replica.device), PresenceFrame(replica, 1, online=online).encode()


def variable(replica):
    frame = VariableFrame(replica, 1, "local", 5, 0, ("",), (1,), ((1,), (2,)))
    return TOPICS.of("var", replica.device, "local", "00"), frame.encode()


def member(device, word):
    return TOPICS.of("command", device), CommandFrame.of(
        OPERATOR, 1, (device,), CommandLog(word)
    ).encode()


def heard(*messages):
    view = FleetView(TOPICS, nonce=1)
    for topic, payload in messages:
        view.take(topic, payload, 0)
    return view.devices


def test_the_newest_life_counts_in_whatever_order_its_messages_came():
    messages = [presence(FIRST, online=True), beat(FIRST, 90), variable(SECOND), beat(SECOND, 5)]
    for order in itertools.permutations(messages):
        devices = heard(*order)
        assert devices.seen("attic")[:3] == (SECOND, True, 5)
        assert member_of(commands(devices).retiring("attic")).version == Version.of(SECOND, 5)


def test_of_a_lifes_beats_the_greatest_seq_counts():
    for order in itertools.permutations([beat(FIRST, 5), beat(FIRST, 90, 2), beat(FIRST, 60, 3)]):
        assert member_of(commands(heard(*order)).retiring("attic")).version == Version.of(FIRST, 90)


@pytest.mark.parametrize("message", [presence(SECOND, online=False), variable(SECOND)])
def test_of_a_device_that_is_away_all_of_its_last_life_counts_and_nothing_later(message):
    devices = heard(beat(FIRST, 90), message)
    assert not devices.awaits_beat("attic"), "nobody is there to send one"
    word = commands(devices).retiring("attic").commands().membership
    assert word.admits("attic", Version.of(SECOND, WHOLE_LIFE))
    assert not word.admits("attic", Version(3, 0, 1))


def test_a_beat_is_awaited_from_who_is_there_or_was_never_heard():
    assert heard().awaits_beat("attic")
    assert heard(presence(FIRST, online=True)).awaits_beat("attic")
    assert not heard(presence(FIRST, online=True), beat(FIRST, 0)).awaits_beat("attic")


def test_who_goes_while_one_listens_is_away():
    devices = heard(presence(FIRST, online=True), presence(FIRST, online=False), variable(FIRST))
    assert not devices.awaits_beat("attic")


def test_of_a_device_that_was_never_heard_nothing_counts():
    frame = commands(heard()).retiring("attic")
    assert (frame.about, member_of(frame).version, member_of(frame).control) == ("attic", NEVER, 1)
    assert not frame.commands().membership.admits("attic", Version.of(FIRST, 1))


def test_a_seq_that_is_said_decides():
    devices = heard(beat(FIRST, 90))
    assert member_of(commands(devices).retiring("attic", 60)).version == Version.of(FIRST, 60)


def test_each_word_overrides_all_that_were_heard():
    known = Membership()
    for _ in range(3):
        known |= known.retire("attic", Version.of(FIRST, 10))
        known |= known.admit("attic")
    devices = heard(member("attic", known), beat(FIRST, 90))
    retired = commands(devices).retiring("attic")
    assert member_of(retired)[:2] == (7, True)
    assert (known | retired.commands().membership).retired == {"attic": Version.of(FIRST, 90)}
    devices.take(TOPICS.of("command", "attic"), retired.encode())
    admitted = commands(devices).admitting("attic")
    assert member_of(admitted)[:2] == (8, False)
    assert (retired.commands().membership | admitted.commands().membership).retired == {}


def test_a_word_that_the_agents_leave_aside_does_not_number_the_next_one():
    forged = Membership({"attic": Member(10**10, retired=False, version=NEVER)})
    devices = heard(member("attic", forged), beat(FIRST, 90))
    assert member_of(commands(devices).retiring("attic")).control == 1


@pytest.mark.parametrize(
    ("topic", "payload"),
    [
        (TOPICS.of("beat", "cellar"), beat(FIRST, 90)[1]),
        (TOPICS.of("beat", "attic").replace("greenhouse", "other"), beat(FIRST, 90)[1]),
        (TOPICS.of("beat", "attic"), b"\x00"),
        (TOPICS.of("beat", "attic"), b""),
    ],
)
def test_what_is_no_message_of_the_device_is_left_aside(topic, payload):
    assert heard((topic, payload)).names == []


def test_who_runs_another_program_or_release_is_named():
    runs = {"attic": ("aa", "2"), "cellar": ("aa", "1"), "hall": ("aa", "2"), "shed": ("bb", "2")}
    devices = heard(
        *(
            (
                TOPICS.of("presence", name),
                PresenceFrame(
                    Replica(1, 7, name), 1, online=True, program=program, release=release
                ).encode(),
            )
            for name, (program, release) in runs.items()
        ),
        beat(Replica(1, 7, "porch"), 3),
    )

    def differing(own):
        return [name for name in devices.names if member_row(devices, name, own)["runs_another"]]

    assert differing(("bb", "2")) == ["attic", "cellar", "hall"]
    assert differing(None) == ["cellar", "shed"]
    said = words_of(member_row(devices, "shed", None))
    assert said == "connected  counts; RUNS ANOTHER PROGRAM OR RELEASE (bb, 2)"


def known_beat(replica, number=1, control=0, floor_us=None):
    return BeatFrame(replica, number, (), False, (), control=control, floor_us=floor_us)  # noqa: FBT003


def commands(devices):
    return FleetCommands(devices, nonce=1)


def received(*frames):
    devices = KnownDevices(TOPICS, parameters={"offset"})
    for frame in frames:
        devices.take(topic_of(frame, TOPICS), frame.encode())
    return devices


def entries_of(log, parameter="offset"):
    return CommandFrame.of(OPERATOR, 1, (parameter, ""), CommandLog(control=log))


def test_who_told_the_same_log_knows_it():
    devices = received(entries_of(LOG), known_beat(FIRST, control=LOG.fingerprint()))
    assert devices.has_all_entries("attic")
    devices.take(topic_of(entries_of(MORE), TOPICS), entries_of(MORE).encode())
    assert devices.lacking_entries == ["attic"]


def test_who_told_nothing_knows_a_fleet_of_which_nothing_was_entries_of():
    assert received(known_beat(FIRST)).has_all_entries("attic")
    assert not received(PresenceFrame(FIRST, 1, online=True)).has_all_entries("attic")


def test_the_newest_beat_of_the_newest_life_counts_in_whatever_order_they_came():
    frames = [
        known_beat(FIRST, 9, 5, 70),
        known_beat(SECOND, 1, 6, 50),
        known_beat(SECOND, 2, 7, 60),
    ]
    for order in itertools.permutations(frames):
        devices = received(*order)
        assert devices.floors_us == {"attic": 60}
        devices.commands |= CommandLog(control=LOG)
        assert not devices.has_all_entries("attic")


def test_who_is_retired_need_not_know():
    member = Membership().retire("attic", Version.of(FIRST, 9))
    frame = CommandFrame.of(OPERATOR, 1, ("attic",), CommandLog(member))
    devices = received(entries_of(LOG), known_beat(FIRST, floor_us=60), frame)
    assert (devices.counting, devices.lacking_entries, devices.floors_us) == ([], [], {})


def test_who_is_connected_and_sent_no_beat_is_awaited():
    online = PresenceFrame(FIRST, 1, online=True)
    assert received(online).awaited == ["attic"]
    assert received(online, known_beat(FIRST)).awaited == []
    assert received(PresenceFrame(FIRST, 1, online=False)).awaited == []


def test_parameters_that_the_program_does_not_have_count_for_nobody():
    log = ControlLog().set("former", "", 600, "3", "ann")
    devices = received(entries_of(log, "former"), known_beat(FIRST))
    assert devices.commands.control == ControlLog()
    assert devices.has_all_entries("attic")


def test_a_command_stands_until_more_is_received():
    devices = received(entries_of(LOG))
    frame = commands(devices).about(("offset", ""))
    assert frame.commands().control == LOG
    assert commands(devices).is_newest(frame)
    devices.take(topic_of(entries_of(MORE), TOPICS), entries_of(MORE).encode())
    assert not commands(devices).is_newest(frame)
    assert commands(devices).is_newest(commands(devices).admitting("attic"))
