"""One hardened MQTT link over paho-mqtt, used by the devices and by the cloud.

link        keeps a connection up; what the tiers use: `poll`, `publish`, `acknowledge`
connection  one connection, from CONNECT to its end; the only module that imports paho
inbox       what came in and was not polled yet, bounded in bytes
events      what a link is told, what it tells, and what it counts
broker_url  mqtt://[user:password@]host[:port]
"""

from lasp_edge.link.broker_url import BrokerUrl
from lasp_edge.link.events import (
    Connected,
    Counts,
    Disconnected,
    Event,
    Limits,
    Message,
    Protocol,
    Traffic,
    Will,
)
from lasp_edge.link.link import Link

__all__ = [
    "BrokerUrl",
    "Connected",
    "Counts",
    "Disconnected",
    "Event",
    "Limits",
    "Link",
    "Message",
    "Protocol",
    "Traffic",
    "Will",
]
