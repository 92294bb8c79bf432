"""One short connection to the broker, which several checks ask about.

It logs in as the agent does, subscribes to what any device may read, and publishes nothing. On a
broker that allows one connection a user, an agent that runs is connected again a second later.
"""

import argparse
from typing import NamedTuple

from device_agent.agent.runtime import fresh_nonce
from device_agent.console.command.session import FleetSession, filters_of
from device_agent.console.configuration.arguments import AgentRequest
from device_agent.console.view.devices import KnownDevices
from device_agent.console.view.fleet_view import FleetView
from lasp_edge.errors import BrokerUnreachable, CommandError
from lasp_edge.protocol.commands import CommandFrame
from lasp_edge.protocol.frames import BeatFrame, PresenceFrame
from lasp_edge.protocol.topics import Topics
from lasp_edge.security.access import Role

LISTEN_S = 2.0
"""Seconds that are listened: what is retained comes at once, and whose connection was taken over
takes it back within a second."""
_NO_FLEET = "doctor"
"""The fleet that is named where none is known; nothing is subscribed then."""


class BrokerContact(NamedTuple):
    """The outcome of a short connection.

    Attributes:
        trouble: why the broker does not take us, or what it refuses; empty where all is well.
        devices: the fleet's devices; None where the broker gave nothing.
        is_cut_off: the broker took us, and then ended the connection.
    """

    trouble: str
    devices: KnownDevices | None = None
    is_cut_off: bool = False


def contact_with(wanted: AgentRequest, fleet: str) -> BrokerContact:
    """Return the devices of a fleet; without its name only whether the broker answers."""
    arguments = argparse.Namespace(**vars(wanted.arguments) | {"listen": LISTEN_S})
    try:
        view = FleetView(Topics(fleet or _NO_FLEET), fresh_nonce())
        frames = (PresenceFrame, BeatFrame, CommandFrame) if fleet else ()
        filters = filters_of(view.topics, frames)
        with FleetSession(arguments, view, filters, Role.DEVICE, wanted.environment) as session:
            session.listen(lambda: True)
            is_cut_off = session.is_cut_off
            trouble = "" if is_cut_off else session.trouble or session.lacks
    except BrokerUnreachable as error:
        return BrokerContact(str(error).partition(": ")[2])  # the rest says the address once more
    except (CommandError, ValueError) as error:
        return BrokerContact(str(error))
    return BrokerContact(trouble or "", view.devices if fleet and not trouble else None, is_cut_off)
