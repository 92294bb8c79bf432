"""Topics of results: people read them, and any name and key can stand on one."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.topics import RESERVED, ResultAddress, Topics, readable, text_of

TOPICS = Topics("house")
ROOT = "lasp/v1/house"
texts = st.text(st.characters(codec="utf-8"), max_size=20)
names = texts.filter(bool)


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("global_average", "global_average"),
        ("Küche 2", "Küche 2"),
        ("Kitchen.Window-3", "Kitchen.Window-3"),
        ("温度", "温度"),
        ("a/b", "a%2Fb"),
        ("a+b#c", "a%2Bb%23c"),
        ("100%", "100%25"),
        ("$SYS", "%24SYS"),
        ("cost $", "cost $"),
        ("a\x00b\n", "a%00b%0A"),
        (" x ", "%20x%20"),
        ("\uffff\U0001fffe", "%EF%BF%BF%F0%9F%BF%BE"),
        ("", "%"),
        ("_", "_"),
        ("%", "%25"),
    ],
)
def test_only_what_mqtt_does_not_allow_is_escaped(text, level):
    assert readable(text) == level
    assert text_of(level) == text


@given(texts)
def test_any_text_is_one_level_that_a_broker_takes_and_comes_back(text):
    level = readable(text)
    assert level
    assert not set("/+#") & set(level)
    assert all(letter >= " " and not "\x7f" <= letter <= "\x9f" for letter in level)
    assert level == level.strip(" ")
    assert text_of(level) == text


@given(texts, texts)
@example("", "_")
@example("", "%")
@example("a/b", "a%2Fb")
def test_different_texts_are_different_levels(one, other):
    assert (one == other) == (readable(one) == readable(other))


@given(st.text(max_size=12))
@example("%2f")  # lower case
@example("%41")  # `A` needs no escape
@example("%FF")  # no UTF-8
@example("%2")
@example("a/b")
def test_a_level_is_an_escaped_text_or_refused(level):
    try:
        text = text_of(level)
    except ValueError:
        return
    assert level == readable(text) or text in RESERVED


@given(names, names, st.none() | texts)
@example("beat", "agent", "agent")
@example("agent", "beat", None)
def test_the_topic_of_a_result_says_what_it_is_of(name, device, key):
    assert TOPICS.result_address(TOPICS.result(name, device, key)) == (name, device, key)
    assert TOPICS.result_address(TOPICS.fleet_result(name, key)) == (name, None, key)
    assert TOPICS.result_address(TOPICS.agent(device)) == ResultAddress(None, device, None)


@given(st.sets(st.tuples(names, st.none() | names, st.none() | texts), min_size=2, max_size=2))
def test_different_results_have_different_topics(addresses):
    made = {
        TOPICS.fleet_result(name, key) if device is None else TOPICS.result(name, device, key)
        for name, device, key in addresses
    }
    assert len(made) == 2


def test_a_value_may_be_called_like_a_kind_of_frames_and_nobody_takes_it_for_one():
    kinds = {row.topic for row in FRAME_KINDS.values()}
    assert kinds <= RESERVED
    for name in RESERVED:
        for topic in (TOPICS.result(name, "pi-1"), TOPICS.fleet_result(name)):
            assert topic.split("/")[4] not in RESERVED  # no filter lasp/v1/house/+/beat/# fits
            assert TOPICS.result_address(topic).name == name


@pytest.mark.parametrize(
    "topic",
    [
        "",
        ROOT,
        f"{ROOT}/out",
        f"{ROOT}/out/average",
        f"{ROOT}/out/average/pi-1/attic/more",
        f"{ROOT}/out/average//attic",
        f"{ROOT}/fleet",
        TOPICS.fleet_state(),
        f"{ROOT}/fleet/average/attic/more",
        f"{ROOT}/0a/pane/pi-1",
        "lasp/v1/garden/out/average/pi-1",
        f"{ROOT}/out/average/%zz",
    ],
)
def test_a_topic_that_is_no_results_is_refused(topic):
    with pytest.raises(ValueError, match="not a"):
        TOPICS.result_address(topic)
