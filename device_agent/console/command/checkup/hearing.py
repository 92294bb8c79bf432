"""One short connection to the broker, which several checks ask about.

It logs in as the agent does, subscribes to what any device may read, and publishes nothing. On a
broker that allows one connection a user, an agent that runs is connected again a second later.
"""

import argparse
from typing import NamedTuple

from crdts import Replica
from device_agent.agent.runtime import fresh_nonce
from device_agent.console.command.fleet import BrokerSession
from device_agent.console.configuration.arguments import AgentRequest
from device_agent.console.view.roster import Roster
from lasp_edge.errors import BrokerUnreachable, CommandError
from lasp_edge.protocol.frames import PresenceFrame
from lasp_edge.protocol.topics import Topics
from lasp_edge.security.access import Role

LISTEN_S = 2.0
"""Seconds that are listened: what is retained comes at once, and whose connection was taken over
takes it back within a second."""
_NO_FLEET = "doctor"
"""The fleet that is named where none is known; nothing is subscribed then."""


class LivesRoster(Roster):
    """A roster that remembers every life of a device that says it is connected.

    Attributes:
        online: device -> its lives.
    """

    def __init__(self, topics: Topics, nonce: int) -> None:
        super().__init__(topics, nonce)
        self.online: dict[str, set[Replica]] = {}

    def take_presence(self, frame: PresenceFrame) -> None:
        super().take_presence(frame)
        if frame.online:
            self.online.setdefault(frame.about, set()).add(frame.sender)


class Heard(NamedTuple):
    """What a short connection gave.

    Attributes:
        trouble: why the broker does not take us, or what it refuses; empty where all is well.
        roster: who was heard; None where nobody could be.
        is_cut_off: the broker took us, and then ended the connection.
    """

    trouble: str
    roster: LivesRoster | None = None
    is_cut_off: bool = False


def heard_of(wanted: AgentRequest, fleet: str) -> Heard:
    """Return what is heard of a fleet; without a name only whether the broker answers."""
    arguments = argparse.Namespace(**vars(wanted.arguments) | {"listen": LISTEN_S})
    try:
        roster = LivesRoster(Topics(fleet or _NO_FLEET), fresh_nonce())
        filters = [roster.topics.every(kind) for kind in ("presence", "beat")] if fleet else []
        with BrokerSession(arguments, roster, filters, Role.DEVICE, wanted.environment) as session:
            session.listen(lambda: True)
            is_cut_off = session.is_cut_off
            trouble = "" if is_cut_off else session.trouble
    except BrokerUnreachable as error:
        return Heard(str(error).partition(": ")[2])  # the rest says the address once more
    except (CommandError, ValueError) as error:
        return Heard(str(error))
    return Heard(trouble or "", roster if fleet and not trouble else None, is_cut_off)
