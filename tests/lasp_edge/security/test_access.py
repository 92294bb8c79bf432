"""Rights of a fleet's participants, from the table of frame kinds."""

import pytest

from lasp_edge.protocol.frames import BeatFrame
from lasp_edge.protocol.kinds import FRAME_KINDS, FrameKind, Publisher, Subscriber
from lasp_edge.protocol.topics import Topics
from lasp_edge.security.access import Role, rules

TOPICS = Topics("house")
ROOT = "lasp/v1/house"


def filters(role, access, name="Kitchen"):
    return {rule.filter for rule in rules(role, name, TOPICS) if rule.access == access}


def test_a_device_writes_only_topics_with_its_name_and_what_devices_ask_each_other():
    written = filters(Role.DEVICE, "write")
    mine = {f"{ROOT}/09/{kind}/_4bitchen/#" for kind in ("pane", "var", "beat", "presence")}
    assert TOPICS.of("pane", "Kitchen") == f"{ROOT}/09/pane/_4bitchen"
    assert mine | {f"{ROOT}/out/+/Kitchen/#", f"{ROOT}/+/inbox/#"} <= written
    assert all("itchen" in each or each in _from_every_device() for each in written)
    assert not any("/ack/" in each or "/member/" in each for each in written)


def _from_every_device():
    rows = FRAME_KINDS.values()
    return {f"{ROOT}/+/{row.topic}/#" for row in rows if row.publishers & Publisher.DEVICES}


def test_a_device_hears_all_devices_and_only_its_own_acknowledgements():
    read = filters(Role.DEVICE, "read")
    assert {f"{ROOT}/+/{kind}/#" for kind in ("var", "beat", "presence", "command")} <= read
    assert {f"{ROOT}/09/{kind}/_4bitchen/#" for kind in ("ack", "inbox")} <= read
    assert not any("/pane/" in each for each in read)


def test_only_landers_acknowledge_and_only_operators_command():
    writers = {role: filters(role, "write") for role in Role}
    assert {role for role in Role if f"{ROOT}/+/ack/#" in writers[role]} == {Role.LANDER}
    # An operator also asks a device for a beat, which takes nothing and changes nothing.
    commanded = {f"{ROOT}/+/{kind}/#" for kind in ("command", "inbox")}
    assert writers[Role.OPERATOR] == commanded
    assert writers[Role.VIEWER] == set()
    assert filters(Role.VIEWER, "read") == {f"{ROOT}/out/#"}
    assert f"{ROOT}/+/pane/#" in filters(Role.LANDER, "read")


@pytest.mark.parametrize("role", [Role.DEVICE, Role.LANDER, Role.OPERATOR])
@pytest.mark.parametrize("publisher", list(Publisher))
def test_a_new_kind_of_frame_is_in_the_rules_by_its_row(monkeypatch, role, publisher):
    row = FrameKind(
        BeatFrame, "mood", Subscriber.LANDER | Subscriber.ADDRESSEE, publisher, None, "take"
    )
    monkeypatch.setitem(FRAME_KINDS, 99, row)
    mine = {
        (Role.DEVICE, Publisher.ITSELF): f"{ROOT}/09/mood/_4bitchen/#",
        (Role.DEVICE, Publisher.DEVICES): f"{ROOT}/+/mood/#",
        (Role.LANDER, Publisher.LANDER): f"{ROOT}/+/mood/#",
        (Role.OPERATOR, Publisher.OPERATOR): f"{ROOT}/+/mood/#",
    }
    wanted = {mine[role, publisher]} if (role, publisher) in mine else set()
    assert {each for each in filters(role, "write") if "/mood/" in each} == wanted
    read = {each for each in filters(role, "read") if "/mood/" in each}
    heard = {Role.DEVICE: {f"{ROOT}/09/mood/_4bitchen/#"}, Role.LANDER: {f"{ROOT}/+/mood/#"}}
    assert read == heard.get(role, set())


def test_every_kind_says_who_publishes_it():
    assert all(row.publishers for row in FRAME_KINDS.values())


def test_home_assistant_is_one_more_viewer_and_nobody_has_its_rights_unasked():
    at_home = {
        role: {str(rule) for rule in rules(role, "Kitchen", TOPICS, "ha")}
        - {str(rule) for rule in rules(role, "Kitchen", TOPICS)}
        for role in Role
    }
    assert at_home == {
        Role.DEVICE: {
            f"topic write {ROOT}/fleet/#",
            "topic write ha/device/lasp__house/+/config",
            "topic read ha/device/lasp__house/+/config",
            "topic read ha/status",
        },
        Role.VIEWER: {
            f"topic read {ROOT}/fleet/#",
            f"topic read {ROOT}/+/presence/#",
            "topic read ha/#",
            "topic write ha/status",
        },
        Role.LANDER: {
            "topic write ha/device/lasp__house/gateway___4bitchen/config",
            "topic read ha/device/lasp__house/gateway___4bitchen/config",
            "topic read ha/status",
        },
        Role.OPERATOR: set(),
    }
