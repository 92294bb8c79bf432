"""Publishing in tests of the link."""

from tests.brokers import (
    until_true,
)


def publish_when_possible(link, topic, payload, **options):
    until_true(lambda: link.publish(topic, payload, **options))


def publish_packet(topic, payload):
    return bytes([0x30, 3 + len(topic) + len(payload), 0, len(topic)]) + topic + b"\x00" + payload
