"""What is shared between packets' properties changes nothing that paho reads or writes."""

import subprocess
import sys

import pytest
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from lasp_edge.link.properties import TopicAlias, share_tables

SENT = (
    b"\x00payload",
    b"\x03\x23\x00\x07payload",
    b"\x10\x01\x01\x26\x00\x01a\x00\x012\x26\x00\x01c\x00\x01d",
)
PLAIN = f"""
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
for packet in {SENT!r}:
    properties, length = Properties(PacketTypes.PUBLISH).unpack(packet)
    print(properties, length, properties.pack())
"""


def read(packet):
    properties, length = Properties(PacketTypes.PUBLISH).unpack(packet)
    return f"{properties} {length} {properties.pack()}"


def test_packets_are_read_and_written_as_by_paho_alone():
    plain = subprocess.run(
        [sys.executable, "-c", PLAIN], capture_output=True, text=True, check=True
    )
    assert [read(packet) for packet in SENT] == plain.stdout.splitlines()


def test_no_packet_has_what_another_one_had():
    properties = Properties(PacketTypes.PUBLISH)
    properties.unpack(SENT[2])
    properties.unpack(SENT[1])
    assert properties.json() == {"TopicAlias": 7}
    assert Properties(PacketTypes.PUBLISH).isEmpty()


@pytest.mark.parametrize("number", [1, 10, 65_535])
def test_an_alias_is_packed_as_by_paho(number):
    known = Properties(PacketTypes.PUBLISH)
    known.TopicAlias = number
    assert TopicAlias(number).pack() == known.pack()
    assert str(TopicAlias(number)) == str(known)


def test_another_release_of_paho_is_left_as_it_is(monkeypatch):
    def other(self, kind):
        vars(self).update(packetType=kind)

    monkeypatch.setattr(Properties, "__init__", other)
    assert not share_tables()
    assert Properties.__init__ is other
