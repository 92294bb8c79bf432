"""One hardened MQTT link over paho-mqtt, used by the devices and by the cloud.

link          keeps a connection up; what the tiers use: `poll`, `publish`, `acknowledge`
mqtt_version  MQTT 5, or 3.1.1 where the broker knows no 5
connection    one connection, from CONNECT to its end
buffered      paho's client, which reads all that is there at once
properties    of MQTT 5 packets; only these three modules import paho
aliases       topics that are used again are sent as numbers
in_flight     what was sent and not yet confirmed, bounded in number and bytes
inbox         what came in and was not polled yet, bounded in bytes
waker         wakes the thread that serves a connection
taken_sizes   which sizes of messages a broker takes that does not say
trouble       what keeps messages from passing, in one line: why, and what to type
seal          what closes and opens messages: signatures, where a fleet uses them
events        settings of a link, the events that it reports, and what it counts
broker_url    mqtt://[user:password@]host[:port], and the files for TLS
tls_files     whether these files can be used, and what of them a connection needs
"""

from lasp_edge.link.broker_url import BrokerUrl, MqttVersion, TlsFiles
from lasp_edge.link.events import (
    Connected,
    Counts,
    Disconnected,
    Event,
    Limits,
    Message,
    SocketBytes,
    Will,
)
from lasp_edge.link.link import Link
from lasp_edge.link.seal import BrokenSealError, Seal

__all__ = [
    "BrokenSealError",
    "BrokerUrl",
    "Connected",
    "Counts",
    "Disconnected",
    "Event",
    "Limits",
    "Link",
    "Message",
    "MqttVersion",
    "Seal",
    "SocketBytes",
    "TlsFiles",
    "Will",
]
