"""What the commands share that look at a fleet: choosing it, and listening to it at its broker."""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from crdts import Replica
from device_agent.agent.runtime import fresh_nonce
from device_agent.console.view.onlooker import Onlooker
from device_agent.console.view.roster import OPERATOR
from lasp_edge.errors import BrokerUnreachable, UsageError
from lasp_edge.language.plan import Plan
from lasp_edge.link import Connected, Event, Link, Message
from lasp_edge.protocol.frames import AskFrame
from lasp_edge.protocol.topics import Topics, topic_of
from lasp_edge.security.access import Role
from lasp_edge.tool.broker_options import add_broker_arguments, broker_of, seal_of
from lasp_edge.tool.loading import load_plan

now_s = time.monotonic  # noqa: TID251 - a command waits in real time

QUIET_S = 0.5
"""Seconds without a message after which everything that the broker retains has come."""
CONNECT_S = 5.0
"""Seconds until a command says that it reaches no broker."""
KINDS = ("presence", "beat", "command")


def add_looking_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which fleet, and at which broker."""
    add = parser.add_argument
    program = "the fleet's program; needed where devices publish no results (--results)"
    add("program", metavar="MODULE:PROGRAM", nargs="?", help=program)
    add("--fleet", default="", help="the fleet's name on the broker (default: the program's)")
    add_broker_arguments(parser)


class Looking:
    """A connection that listens to a fleet; use it by `looking`.

    Attributes:
        fleet: its name.
        plan: its program, where that was named.
        onlooker: what is known of it.
    """

    def __init__(self, arguments: argparse.Namespace) -> None:
        if not arguments.program and not arguments.fleet:
            raise UsageError("a fleet is needed: MODULE:PROGRAM, or --fleet NAME")
        self.plan: Plan | None = load_plan(arguments.program) if arguments.program else None
        self.fleet: str = arguments.fleet or (self.plan.name if self.plan else "")
        self.broker = broker_of(arguments)
        nonce = fresh_nonce()
        try:
            self._topics = Topics(self.fleet)
        except ValueError as error:
            raise UsageError(f"--fleet: {error}") from None
        self.onlooker = Onlooker(self._topics, nonce, self.plan)
        self._sender = Replica.checked(1, nonce, OPERATOR)
        self._asked: set[str] = set()
        root = self._topics.root
        kinds = [*KINDS, *(["var"] if self.plan else [])]
        self._link = Link(
            self.broker,
            client_id=f"{root}/onlooker-{nonce:08x}",
            subscriptions=[f"{root}/out/#", f"{root}/fleet/#", *map(self._topics.every, kinds)],
            jitter=Random(nonce),
            seal=seal_of(arguments, self._topics, Role.OPERATOR),
        )

    @property
    def trouble(self) -> str | None:
        """What keeps messages from passing; None if nothing does."""
        return self._link.trouble

    @property
    def connected(self) -> bool:
        """Whether there is a connection to the broker."""
        return self._link.connected

    def start(self) -> None:
        """Begin to connect."""
        self._link.start()

    def stop(self) -> None:
        """Disconnect."""
        self._link.stop(flush_s=0)

    def await_connection(self) -> None:
        """Wait for a connection.

        Raises:
            BrokerUnreachable: the broker takes no connection for some seconds.
        """
        ends_s = now_s() + CONNECT_S
        while not any(isinstance(event, Connected) for event in self.poll(0.1)):
            if now_s() > ends_s:
                raise BrokerUnreachable(f"no connection to {self.broker}: {self.trouble}")

    def poll(self, timeout_s: float) -> list[Event]:
        """Take what has come in, and ask devices that are new for what they hold."""
        events = self._link.poll(timeout_s)
        for event in events:
            if isinstance(event, Connected):
                self._asked.clear()
            elif isinstance(event, Message):
                at = event.topic, event.payload, now_s()
                self.onlooker.hear(*at, kept=event.retain)
        if events:
            self._ask()
        return events

    def _ask(self) -> None:
        """Ask each connected device once for a beat; it sends few on its own."""
        for device in self.onlooker.devices:
            seen = self.onlooker.roster.seen(device)
            if device not in self._asked and seen is not None and seen.online:
                frame = AskFrame(self._sender, 1, device, "")
                if self._link.publish(topic_of(frame, self._topics), frame.encode()):
                    self._asked.add(device)

    def await_quiet(self, most_s: float) -> None:
        """Wait until what is retained has come and all connected devices were heard."""
        ends_s, quiet_s = now_s() + most_s, now_s() + QUIET_S
        while now_s() < quiet_s or (self._awaits_somebody() and now_s() < ends_s):
            if any(isinstance(event, Message) for event in self.poll(0.05)):
                quiet_s = min(now_s() + QUIET_S, max(ends_s, quiet_s))

    def _awaits_somebody(self) -> bool:
        devices, roster = self.onlooker.devices, self.onlooker.roster
        seen = [roster.seen(device) for device in devices]
        return not devices or any(each and each.online and each.seq is None for each in seen)


@contextmanager
def looking(arguments: argparse.Namespace) -> Iterator[Looking]:
    """Listen to the fleet that was named."""
    made = Looking(arguments)
    made.start()
    try:
        yield made
    finally:
        made.stop()
