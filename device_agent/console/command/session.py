"""A session at the broker of a fleet: choosing the fleet, listening to it, publishing a command.

A session receives at once the messages that the broker retains, and the devices' beats within some
seconds. The broker retains and confirms the commands that it publishes.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Self

from crdts import Replica
from device_agent.agent.runtime import fresh_nonce
from device_agent.console.view.devices import KnownDevices, filter_of
from device_agent.console.view.fleet_view import FleetView
from lasp_edge.errors import BrokerUnreachable, CommandError, Exit, UsageError
from lasp_edge.language.plan import Plan
from lasp_edge.link import Connected, Disconnected, Event, Link, Message
from lasp_edge.protocol.commands import CommandFrame
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import AskFrame, BeatFrame, PresenceFrame, VariableFrame
from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.repeating import CORRECT_US
from lasp_edge.protocol.topics import Topics, level, topic_of
from lasp_edge.security.access import Role
from lasp_edge.tool.broker_options import add_broker_arguments, broker_of, seal_of
from lasp_edge.tool.loading import load_plan
from lasp_edge.units import SECOND_US

now_s = time.monotonic  # noqa: TID251 - a command waits in real time


def now_us() -> int:
    """Return the time by this machine's clock."""
    return time.time_ns() // 1_000  # noqa: TID251 - a person types "from now on"


QUIET_S = 0.5
"""Seconds without a retained message after which all that the broker retains has arrived."""
CONNECT_S = 5.0
"""Seconds for which a command waits for a connection, at least."""
CORRECTION_S = 2 * CORRECT_US / SECOND_US + 0.5
"""Seconds until a device that knows a newer command has published it: twice the least wait."""
MOST_TRIES = 5
"""Commands that are published before giving up: only another operator at work contradicts two."""


NEEDS_PROGRAM = "the fleet's program; needed where devices publish no results (--results)"


def add_fleet_arguments(
    parser: argparse.ArgumentParser, program: str = "the fleet's program; else --fleet"
) -> None:
    """Declare which fleet, and at which broker; `program` is the help of the first argument."""
    add = parser.add_argument
    add("program", metavar="MODULE:PROGRAM", nargs="?", help=program)
    add("--fleet", default="", help="the fleet's name on the broker (default: the program's)")
    add_broker_arguments(parser)


def check_order(program: str | None, other: str, form: str) -> None:
    """Check that the program is not typed where another word belongs.

    Args:
        program: the word in the place of MODULE:PROGRAM.
        other: the word in the other place.
        form: the right order.

    Raises:
        UsageError: the two are swapped.
    """
    if ":" in other and program and ":" not in program:
        raise UsageError(f"the order is {form}: {other} and {program} are swapped")


def add_listening_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare which fleet, at which broker, and how long to listen for beats."""
    add_fleet_arguments(parser)
    listen = "wait for beats at most this long"
    parser.add_argument("--listen", type=float, default=12.0, metavar="S", help=listen)


def fleet_view(arguments: argparse.Namespace) -> FleetView:
    """Return the still empty view of the fleet that was named.

    Raises:
        UsageError: none was.
    """
    if not arguments.program and not arguments.fleet:
        raise UsageError("a fleet is needed: MODULE:PROGRAM, or --fleet NAME")
    plan = load_plan(arguments.program) if arguments.program else None
    try:
        topics = Topics(arguments.fleet or (plan.name if plan else ""))
    except ValueError as error:
        raise UsageError(f"--fleet: {error}") from None
    return FleetView(topics, fresh_nonce(), plan)


def parameter_view(arguments: argparse.Namespace) -> tuple[FleetView, Plan]:
    """Return the still empty view of a fleet, and its program, which names its parameters.

    Raises:
        UsageError: no program was named.
    """
    if not arguments.program:
        raise UsageError("the program is needed: MODULE:PROGRAM; it says what its parameters are")
    view = fleet_view(arguments)
    assert view.plan is not None
    return view, view.plan


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


def filters_of(topics: Topics, frames: Iterable[type[Frame]]) -> list[str]:
    """Return the filters for some kinds of frames, of all devices."""
    return [topics.every(FRAME_KINDS[frame.kind].topic) for frame in frames]


def member_filters(topics: Topics, device: str) -> list[str]:
    """Return the filters for one device, and for which other devices are there."""
    return [filter_of(topics, device), *filters_of(topics, [PresenceFrame])]


def was_received(devices: KnownDevices) -> Exit:
    """Return the exit code for a command that was published; say where no device is there."""
    if any(map(devices.is_online, devices.names)):
        return Exit.FINE
    print(  # noqa: T201
        "Not confirmed: no device is connected; the broker keeps the command, and they receive it "
        "when they connect, unless one of them knows a later one"
    )
    return Exit.NOT_CONFIRMED


class FleetSession:
    """A session at the broker of a fleet; a context manager.

    Args:
        arguments: of `add_fleet_arguments`, and --listen.
        view: is given all messages.
        filters: of the topics to listen to.
        role: as which it signs, where it signs.
        environment: where user and password may stand.
        connects: the session begins with a connection; otherwise it goes on without one.
        asks: ask each connected device once for a beat; it sends few on its own.

    Attributes:
        broker: its address.
        is_cut_off: a connection that was up has ended since the session began.
    """

    def __init__(
        self,
        arguments: argparse.Namespace,
        view: FleetView,
        filters: Sequence[str],
        role: Role = Role.OPERATOR,
        environment: Mapping[str, str] = os.environ,
        *,
        connects: bool = True,
        asks: bool = False,
    ) -> None:
        self.broker, self.view = broker_of(arguments, environment), view
        self._listen_s: float = vars(arguments).get("listen", CONNECT_S)
        if not 0 <= self._listen_s < 1e6:  # noqa: PLR2004 - eleven days
            raise UsageError(f"--listen: seconds from 0, not {self._listen_s}")
        self.is_cut_off = False
        self._connects, self._asks = connects, asks
        self._asked: set[str] = set()
        nonce = fresh_nonce()
        self._link = Link(
            self.broker,
            client_id=f"{view.topics.root}/operator-{nonce:08x}",
            subscriptions=filters,
            jitter=Random(nonce),
            seal=seal_of(arguments, view.topics, role),
        )

    def __enter__(self) -> Self:
        self._link.start()
        try:
            if self._connects:
                self.await_connection()
        except BaseException:
            self._link.stop(flush_s=0)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._link.stop()

    @property
    def trouble(self) -> str | None:
        """The reason why messages do not pass; None if they do."""
        return self._link.trouble

    @property
    def lacks(self) -> str:
        """What a fleet needs and the broker does not take; "" for nothing."""
        return self._link.lacks

    @property
    def connected(self) -> bool:
        """Whether there is a connection to the broker."""
        return self._link.connected

    def await_connection(self) -> None:
        """Wait for a connection.

        Raises:
            BrokerUnreachable: the broker takes no connection for some seconds.
        """
        ends_s = now_s() + max(self._listen_s, CONNECT_S)
        while not any(isinstance(event, Connected) for event in self.poll(0.1)):
            if now_s() > ends_s:
                raise BrokerUnreachable(f"no connection to {self.broker}: {self.trouble}")

    def poll(self, timeout_s: float) -> list[Event]:
        """Give the view the messages that have arrived, and ask devices that are new."""
        events = self._link.poll(timeout_s)
        for event in events:
            if isinstance(event, Message):
                self.view.take(event.topic, event.payload, now_s(), retained=event.retain)
            elif isinstance(event, Connected):
                self._asked.clear()
            self.is_cut_off |= isinstance(event, Disconnected)
        if events and self._asks:
            online = set(filter(self.view.devices.is_online, self.view.devices.counting))
            self._asked |= {each for each in sorted(online - self._asked) if self.ask(each)}
        return events

    def ask(self, device: str) -> bool:
        """Ask a device for a beat, which it answers while it is connected."""
        frame = AskFrame(self.view.commands.sender, 1, device, "")
        return self._link.publish(topic_of(frame, self.view.topics), frame.encode())

    def listen(self, more: Callable[[], bool], most_s: float | None = None) -> None:
        """Listen until retained messages have arrived, and while `more()`, up to --listen."""
        ends_s = now_s() + (self._listen_s if most_s is None else most_s)
        quiet_s = now_s() + QUIET_S
        while now_s() < quiet_s or (more() and now_s() < ends_s):
            # Messages of the moment never end; those that the broker retains do.
            if any(isinstance(event, Message) and event.retain for event in self.poll(0.1)):
                quiet_s = min(now_s() + QUIET_S, max(ends_s, quiet_s))

    def publish(self, command: Callable[[], CommandFrame]) -> CommandFrame:
        """Publish a command until no device knows a newer one; return the newest command.

        The number of a command is above all that the view knows. Where the broker lost what it
        retained, devices may know a newer one: they publish it within seconds, and the command is
        made again.

        Args:
            command: makes the command from what the view knows by now.

        Raises:
            CommandError: the broker did not confirm it, or it was contradicted again and again.
        """
        commands = self.view.commands
        for _ in range(MOST_TRIES):
            frame = command()
            self._publish(topic_of(frame, self.view.topics), frame.encode())
            ends_s = now_s() + min(CORRECTION_S, self._listen_s)
            while now_s() < ends_s and commands.is_newest(frame):
                self.poll(0.1)
            if commands.is_newest(frame):
                return frame
        raise CommandError("somebody else changes the same at the moment; try again")

    def _refusal(self) -> str:
        """Return why a command was not taken, with whose login it takes."""
        trouble = self._link.trouble or "it did not confirm the message"
        if not (self.broker.user or self.broker.files.certificate):
            return trouble
        user = f"is {self.broker.user!r} one? " if self.broker.user else ""
        return f"a command takes the login of an operator; {user}What the broker did: {trouble}"

    def _publish(self, topic: str, payload: bytes) -> None:
        ends_s = now_s() + max(self._listen_s, CONNECT_S)
        counts = self._link.counts
        confirmed, dropped = counts.confirmed, sum(counts.dropped.values())
        taken = self._link.publish(topic, payload, retain=True)
        while not taken or counts.confirmed == confirmed:
            is_refused = self._link.trouble and sum(counts.dropped.values()) > dropped
            if is_refused or now_s() > ends_s:
                raise CommandError(f"{self.broker} has not taken the command: {self._refusal()}")
            self.poll(0.1)
            taken = taken or self._link.publish(topic, payload, retain=True)


def watching(arguments: argparse.Namespace, *, connects: bool = True) -> FleetSession:
    """Return a session that listens to all that a fleet publishes for people."""
    view = fleet_view(arguments)
    topics = view.topics
    frames: list[type[Frame]] = [PresenceFrame, BeatFrame, CommandFrame]
    frames += [VariableFrame] if view.plan else []
    filters = [f"{topics.root}/out/#", f"{topics.root}/fleet/#", *filters_of(topics, frames)]
    return FleetSession(arguments, view, filters, connects=connects, asks=True)
