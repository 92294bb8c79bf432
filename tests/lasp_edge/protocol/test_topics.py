"""Topics: any name can stand on one, and is read back from it."""

import hashlib
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lasp_edge.protocol.topics import (
    REMEMBERED,
    SHARDS,
    Address,
    Topics,
    level,
    name_of,
    shard_of,
)

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30)


@given(names)
@example("0e:9c:00")
@example("Küche/2. Stock")
@example("a+b#c")
@example("_41")
@example("\N{GRINNING FACE}\x00\n")
def test_any_name_becomes_one_level_and_back(name):
    escaped = level(name)
    assert re.fullmatch(r"([a-z0-9-]|_[0-9a-f]{2})+", escaped)
    assert name_of(escaped) == name


@given(names, names)
@example("a", "A")
@example("a_b", "a-b")
@example("_41", "A")
def test_different_names_are_different_levels(one, other):
    assert (one == other) == (level(one) == level(other))


def test_plain_names_stay_readable():
    assert level("greenhouse-2") == "greenhouse-2"
    assert level("0e:9c:00") == "0e_3a9c_3a00"
    assert level("iot_device") == "iot_5fdevice"


@pytest.mark.parametrize("name", ["", "\ud800"], ids=["empty", "surrogate"])
def test_a_name_that_cannot_stand_on_a_topic_is_refused(name):
    with pytest.raises(ValueError, match=r"empty|surrogates"):
        level(name)


@given(st.text(max_size=12))
@example("")
@example("A")
@example("_4")
@example("_zz")
@example("_61")  # `a` needs no escape
@example("_FF")
@example("_ff")  # no UTF-8
@example("a/b")
@example("é")
def test_text_is_a_level_or_refused(text):
    try:
        name = name_of(text)
    except ValueError:
        return
    assert level(name) == text


TOPICS = Topics("Green house")
OF_DEVICES = {
    "pane": lambda device: TOPICS.of("pane", device),
    "var": lambda device: TOPICS.of("var", device, "local average", "03"),
    "beat": lambda device: TOPICS.of("beat", device),
    "presence": lambda device: TOPICS.of("presence", device),
    "ack": lambda device: TOPICS.of("ack", device),
    "inbox": lambda device: TOPICS.of("inbox", device),
    "command": lambda device: TOPICS.of("command", device),
}


@pytest.mark.parametrize("kind", OF_DEVICES)
def test_a_topic_says_its_kind_and_device(kind):
    @given(names)
    def check(device):
        topic = OF_DEVICES[kind](device)
        assert TOPICS.address(topic) == Address(kind, device)
        assert not set("+#\x00 ") & set(topic)
        assert topic.startswith(f"lasp/v1/_47reen_20house/{shard_of(device)}/{kind}/")
        assert TOPICS.every(kind) == f"lasp/v1/_47reen_20house/+/{kind}/#"

    check()


def test_a_variable_has_a_topic_of_its_own():
    assert TOPICS.of("var", "pi-1", "a b", "0a").endswith("/var/pi-1/a_20b/0a")


def test_shards_are_two_digits_and_all_used():
    shards = {shard_of(f"pi-{number}") for number in range(500)}
    assert shards == {f"{shard:02x}" for shard in range(SHARDS)}


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "lasp/v1/_47reen_20house",
        "lasp/v1/_47reen_20house/",
        "lasp/v1/_47reen_20house/0a/pane",
        "lasp/v1/_47reen_20house/0a/pane/",
        "lasp/v1/_47reen_20house/0b/pane/pi-1",
        "lasp/v1/_47reen_20house/0a/pane/PI-1",
        "lasp/v1/other/0a/pane/pi-1",
        "lasp/v2/_47reen_20house/0a/pane/pi-1",
        "lasp/v1/_47reen_20house2/0a/pane/pi-1",
        "lasp/v1/_47reen_20house/out/average/pi-1",
        "a/b/c/d/e/f/g",
    ],
)
def test_a_topic_that_is_no_devices_is_refused(topic):
    with pytest.raises(ValueError, match="not "):
        TOPICS.address(topic)


def test_the_topic_that_is_changed_above_is_a_good_one():
    assert TOPICS.address("lasp/v1/_47reen_20house/0a/pane/pi-1") == Address("pane", "pi-1")


def test_what_is_remembered_of_topics_is_bounded_and_changes_no_answer():
    topics = Topics("greenhouse")
    names = [f"pi-{number}" for number in range(3 * REMEMBERED)]
    for name in [*names, *names[:5]]:
        shard = f"{hashlib.sha256(name.encode()).digest()[0] % 16:02x}"
        assert topics.of("pane", name) == f"lasp/v1/greenhouse/{shard}/pane/{name}"
        assert topics.address(topics.of("pane", name)) == ("pane", name)
    assert level.cache_info().currsize == REMEMBERED
