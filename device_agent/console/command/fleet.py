"""What the commands about a fleet share: choosing the fleet, listening to it, publishing a command.

A command opens a short session at the broker. It receives at once what is retained there, and the
devices' beats within some seconds. What it publishes is retained and confirmed by the broker.
"""

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Self

from crdts import Replica
from device_agent.agent.runtime import fresh_nonce
from device_agent.console.parameters.roster import ParameterRoster
from device_agent.console.view.roster import OPERATOR, Roster
from lasp_edge.errors import BrokerUnreachable, CommandError, UsageError
from lasp_edge.link import Connected, Disconnected, Link, Message
from lasp_edge.protocol.commands import CommandFrame
from lasp_edge.protocol.frames import AskFrame
from lasp_edge.protocol.repeating import CORRECT_US
from lasp_edge.protocol.topics import Topics, level, topic_of
from lasp_edge.security.access import Role
from lasp_edge.tool.broker_options import add_broker_arguments, broker_of, seal_of
from lasp_edge.tool.loading import load_plan
from lasp_edge.units import SECOND_US

now_s = time.monotonic  # noqa: TID251 - a command waits in real time


def now_us() -> int:
    """Return what time it is, by this machine's clock."""
    return time.time_ns() // 1_000  # noqa: TID251 - a person says "from now on"


QUIET_S = 0.5
"""Seconds without a retained message after which everything that the broker retains has come."""
CORRECTION_S = 2 * CORRECT_US / SECOND_US + 0.5
"""Seconds until a device that knows a newer command has published it: twice the least wait."""
MOST_TRIES = 5
"""CommandLog that are published before giving up: only another operator at work contradicts two."""


def add_fleet_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which fleet, at which broker, and how long to listen."""
    add = parser.add_argument
    add("program", metavar="MODULE:PROGRAM", nargs="?", help="the fleet's program; else --fleet")
    add("--fleet", default="", help="the fleet's name on the broker (default: the program's)")
    add("--listen", type=float, default=12.0, metavar="S", help="wait for beats at most this long")
    add_broker_arguments(parser)


def roster_of(arguments: argparse.Namespace) -> Roster:
    """Return the still empty roster of the fleet that was named.

    Raises:
        UsageError: none was.
    """
    if not arguments.program and not arguments.fleet:
        raise UsageError("a fleet is needed: MODULE:PROGRAM, or --fleet NAME")
    try:
        topics = Topics(arguments.fleet or load_plan(arguments.program).name)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return Roster(topics, fresh_nonce())


def parameter_roster_of(arguments: argparse.Namespace) -> ParameterRoster:
    """Return the still empty roster of a fleet whose program has parameters.

    Raises:
        UsageError: no program was named.
    """
    if not arguments.program:
        raise UsageError("the program is needed: MODULE:PROGRAM; it says what its parameters are")
    parameters = load_plan(arguments.program).parameters
    return ParameterRoster(roster_of(arguments).topics, fresh_nonce(), parameters)


def check_device(device: str) -> str:
    """Return a device's name.

    Raises:
        UsageError: no device can have it.
    """
    try:
        level(device)
        return Replica.checked(0, 0, device).device
    except ValueError as error:
        raise UsageError(str(error)) from None


class BrokerSession:
    """A short session at the broker of a fleet; a context manager.

    Args:
        arguments: of `add_fleet_arguments`.
        roster: is given all messages.
        filters: of the topics to listen to.
        role: as which it signs, where it signs.
        environment: where user and password may stand.

    Attributes:
        is_cut_off: a connection that was up has ended since the session began.
    """

    def __init__(
        self,
        arguments: argparse.Namespace,
        roster: Roster,
        filters: Sequence[str],
        role: Role = Role.OPERATOR,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        broker = broker_of(arguments, environment)
        if not 0 <= arguments.listen < 1e6:  # noqa: PLR2004 - eleven days
            raise UsageError(f"--listen: seconds from 0, not {arguments.listen}")
        self._broker, self._roster = broker, roster
        self.is_cut_off = False
        self._listen_s: float = arguments.listen
        self._correction_s = min(CORRECTION_S, self._listen_s)
        nonce = fresh_nonce()
        self._sender = Replica.checked(1, nonce, OPERATOR)
        client_id = f"{roster.topics.root}/operator-{nonce:08x}"
        seal = seal_of(arguments, roster.topics, role)
        self._link = Link(
            broker,
            client_id=client_id,
            subscriptions=filters,
            jitter=Random(nonce),
            seal=seal,
        )

    def __enter__(self) -> Self:
        self._link.start()
        ends_s = now_s() + max(self._listen_s, 5.0)
        while not any(isinstance(event, Connected) for event in self._poll(0.2)):
            if now_s() > ends_s:
                trouble = self._link.trouble
                self._link.stop(flush_s=0)
                raise BrokerUnreachable(f"no connection to {self._broker}: {trouble}")
        return self

    def __exit__(self, *_: object) -> None:
        self._link.stop()

    @property
    def trouble(self) -> str | None:
        """What keeps messages from passing; None if nothing does."""
        return self._link.trouble

    def ask(self, device: str) -> None:
        """Ask a device for a beat; it sends few on its own."""
        frame = AskFrame(self._sender, 1, device, "")
        self._link.publish(topic_of(frame, self._roster.topics), frame.encode())

    def listen(self, more: Callable[[], bool]) -> None:
        """Listen until what is retained has come, and while `more()` holds, up to --listen."""
        ends_s = now_s() + self._listen_s
        quiet_s = now_s() + QUIET_S
        while now_s() < quiet_s or (more() and now_s() < ends_s):
            # What devices say at the moment never ends; what the broker retains does.
            if any(isinstance(event, Message) and event.retain for event in self._poll(0.1)):
                quiet_s = min(now_s() + QUIET_S, max(ends_s, quiet_s))

    def publish(self, command: Callable[[], CommandFrame]) -> CommandFrame:
        """Publish a command until no device knows a newer one; return the command that stands.

        The number of a command is above all that the roster knows. Where the broker lost what it
        retained, devices may know a newer one: they publish it within seconds, and the command is
        made anew.

        Args:
            command: makes the command from what the roster knows by now.

        Raises:
            CommandError: the broker did not confirm it, or it was contradicted again and again.
        """
        for _ in range(MOST_TRIES):
            frame = command()
            self._publish(topic_of(frame, self._roster.topics), frame.encode())
            ends_s = now_s() + self._correction_s
            while now_s() < ends_s and self._roster.stands(frame):
                self._poll(0.1)
            if self._roster.stands(frame):
                return frame
        raise CommandError("somebody else speaks about the same at the moment; try again")

    def _publish(self, topic: str, payload: bytes) -> None:
        ends_s = now_s() + max(self._listen_s, 5.0)
        confirmed = self._link.counts.confirmed
        taken = self._link.publish(topic, payload, retain=True)
        while not taken or self._link.counts.confirmed == confirmed:
            if now_s() > ends_s:
                trouble = self._link.trouble or "it did not confirm the message"
                raise CommandError(f"{self._broker} has not taken the command: {trouble}")
            self._poll(0.1)
            taken = taken or self._link.publish(topic, payload, retain=True)

    def _poll(self, timeout_s: float) -> list[object]:
        events = self._link.poll(timeout_s)
        for event in events:
            if isinstance(event, Message):
                self._roster.hear(event.topic, event.payload)
            self.is_cut_off |= isinstance(event, Disconnected)
        return list(events)
