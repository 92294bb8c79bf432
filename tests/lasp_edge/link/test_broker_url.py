"""Broker addresses: how they are shown, and what is refused."""

import random

import pytest

from lasp_edge.link import BrokerUrl, Link


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("mqtt://broker", "mqtt://broker:1883"),
        ("mqtts://broker", "mqtts://broker:8883"),
        ("mqtt://u:p%40s@broker:5/", "mqtt://u:***@broker:5"),
        ("mqtt://[::1]:7", "mqtt://[::1]:7"),
        ("mqtt://broker?protocol=3.1.1", "mqtt://broker:1883?protocol=3.1.1"),
    ],
)
def test_a_broker_address_is_shown_without_its_password(text, shown):
    url = BrokerUrl.parse(text)
    assert str(url) == repr(url) == shown
    assert url.password in (None, "p@s")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "broker",
        "broker:1883",
        "http://broker",
        "mqtt://",
        "mqtt://broker:0",
        "mqtt://broker:99999",
        "mqtt://u:secret@broker:port",
        "mqtt://u:secret@broker/topic",
        "mqtt://broker?protocol=4",
        "mqtt://broker?x=1",
    ],
)
def test_a_text_that_is_no_broker_address_is_refused(text):
    with pytest.raises(ValueError, match=r"broker address|after the \?") as refusal:
        BrokerUrl.parse(text)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("filters", [["a/#/b"], [""], ["a+"]])
def test_an_impossible_subscription_is_refused_at_once(filters):
    with pytest.raises(ValueError, match="subscription"):
        Link(
            BrokerUrl.parse("mqtt://x"),
            client_id="a",
            subscriptions=filters,
            jitter=random.Random(1),
        )
