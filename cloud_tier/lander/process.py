"""The lander as a process: over a real broker and the clock of the machine, until it is stopped.

`Lander` gives what a link reports to a run (`cloud_tier.lander.run`), and lets the broker forget a
message once it is on disk. `LanderProcess` starts over where nothing can be written.
"""

import logging
import os
import random
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from deltalake.exceptions import DeltaError

from cloud_tier.lake.definitions import is_made, prepare
from cloud_tier.lake.query import gone, in_one_line
from cloud_tier.lake.shared import overheard
from cloud_tier.lake.tables import LakeTables, LakeUnreadable
from cloud_tier.lander.columns import LandedColumns
from cloud_tier.lander.landing import Landing
from cloud_tier.lander.run import LanderRun, SegmentPace
from cloud_tier.lander.segments import Log, begun_log
from crdts import Replica
from lasp_edge.errors import UsageError
from lasp_edge.language.fleet_regimes import FleetRegimes
from lasp_edge.language.plan import Plan
from lasp_edge.link import BrokerUrl, Connected, Disconnected, Event, Link, Message, Seal
from lasp_edge.protocol.acceptance import Acceptance
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.kinds import FRAME_KINDS, Subscriber
from lasp_edge.protocol.listening import ListeningClock
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.topics import Topics, is_left_to_operators, subscriptions, topic_of
from lasp_edge.units import SECOND_US

log = logging.getLogger(__name__)

_SHORTEST_WAIT_S: Final = 0.5
"""In seconds: half of the first wait before it starts over. It doubles with each failure in a
row."""
_LONGEST_WAIT_S: Final = 30.0
"""In seconds: where the doubling ends, so that room on the disk is found within half a minute."""
_STEADY_US: Final = 60 * SECOND_US
"""What worked for this long failed of something new; the waits start over."""
_LOOK_EVERY_S: Final = 0.25
"""In seconds: how often a waiting lander checks whether it is to stop."""
_PAUSE_US: Final = 600 * SECOND_US
"""Microseconds without a look from which on nobody was heard: a commit to a lake that is far away
may take a minute, and a device is waited for as long unless one says otherwise."""
_SESSION_KEPT_S: Final = 3600
"""In seconds: for how long the broker keeps messages for a lander that is away. An hour covers a
restart of the machine; what devices sent before that they send again."""


class MessageLink(Protocol):
    """What the lander needs of `lasp_edge.link.Link`."""

    def poll(self, timeout_s: float) -> list[Event]:
        """Return what happened."""

    def publish(self, topic: str, payload: bytes, *, qos: int = 1, retain: bool = False) -> bool:
        """Send a message, or return False."""

    def acknowledge(self, message: Message) -> None:
        """Let the broker forget a message."""


class Lander(LanderRun):
    """One lander on a link.

    Args:
        link: connected to the fleet's broker, with manual acknowledgement.
        run: the arguments of `LanderRun`.
    """

    def __init__(self, *, link: MessageLink, **run: Any) -> None:
        super().__init__(**run)
        self._link = link

    def turn(self, timeout_s: float) -> None:
        """Take the messages that arrived, land a segment that is due, send acknowledgements."""
        due_us = self.due_us
        if due_us is not None:
            timeout_s = min(timeout_s, max(0.0, (due_us - self._clock.now_us) / 1e6))
        events = self._link.poll(timeout_s)
        self.look()
        self._take(events)
        self.land_due()
        self.reply(self._publish)

    def stop(self) -> None:
        """Land the open segment, send the last acknowledgements and release the log."""
        self.finish(self._publish)

    def _publish(self, frame: Frame) -> bool:
        topic, is_kept = topic_of(frame, self._acceptance.topics), FRAME_KINDS[frame.kind].retained
        return self._link.publish(topic, frame.encode(), retain=is_kept)

    def _take(self, events: Sequence[Event]) -> None:
        messages: list[Message] = []
        for event in events:
            if isinstance(event, Message):
                self.hear(event.topic, event.payload, retained=event.retain)
                messages.append(event)
            elif isinstance(event, Connected):
                log.info("connected to the broker (MQTT %s)", event.protocol)
                self.connected()
            elif isinstance(event, Disconnected):
                log.warning("no broker: %s", event.reason)
                self.disconnected()
        # One sync for all of them, and only then may the broker forget them.
        self._log.sync()
        for message in messages:
            self._link.acknowledge(message)


class LanderProcess:
    """A lander over a real broker and clock, until it is stopped.

    Where its log or the lake cannot be written (the disk is full), it acknowledges nothing, lets go
    of all it holds, waits, and starts over as a new process would: what was logged is landed from
    the log, and what was not, the broker sends again.

    Args:
        plan: of the program.
        broker: where the fleet is.
        lake: its tables are made where they are missing.
        log_dir: a local directory for the log.
        fleet: the fleet's name on the broker; the program's if empty.
        sink: under which name devices deliver to this lake.
        group: of landers of this lake that divide the panes among them; none if it is empty.
        tick_us: how often a tick lands while nothing else comes.
        parent: end when this process is no longer the parent; None for never.
        seal: signs what is published, and checks what comes in; None for neither.
        wait: waits for some seconds before it starts over; returns sooner when it is to stop.

    Raises:
        UsageError: the log cannot be written, or the lake holds another program's results.
        EnvironmentLacks: the lake cannot be written, or is gone though the log has segments of it.
    """

    def __init__(  # noqa: PLR0913 - each is an option of the command
        self,
        plan: Plan,
        broker: BrokerUrl,
        lake: LakeTables,
        log_dir: Path,
        *,
        fleet: str = "",
        sink: str = DEFAULT_SINK,
        group: str = "",
        tick_us: int = 15 * SECOND_US,
        parent: int | None = None,
        seal: Seal | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        if prepare(plan, lake, begun_log(log_dir)):
            log.warning("made a new lake in %s", lake.root)
        try:
            log_dir.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--log-dir {log_dir} cannot be made: {error.strerror}") from None
        self._plan, self._broker, self._lake, self._log_dir = plan, broker, lake, log_dir
        self._topics, self._sink, self._group = Topics(fleet or plan.name), sink, group
        self._tick_us, self._parent, self._seal, self._wait = tick_us, parent, seal, wait
        self._link: Link | None = None
        self._stopping = self._fails = False

    def run(self) -> None:
        """Land segments until `stop` is called, then the last one.

        Raises:
            UsageError: another lander writes to the log.
        """
        wait_s = _SHORTEST_WAIT_S
        while not self._ends:
            began_us = _now_us()
            try:
                self._run_once()
            except (OSError, DeltaError) as error:
                why = in_one_line(error)
                log.warning("cannot write: %s; nothing is acknowledged until that works", why)
                steady = _now_us() - began_us > _STEADY_US
                self._fails = True
                wait_s = _SHORTEST_WAIT_S if steady else min(2 * wait_s, _LONGEST_WAIT_S)
                self._pause(wait_s)

    def stop(self) -> None:
        """Make `run` return; allowed in a signal handler."""
        self._stopping = True
        if self._link is not None:
            self._link.wake()

    @property
    def _ends(self) -> bool:
        return self._stopping or self._parent not in {None, os.getppid()}

    def _pause(self, wait_s: float) -> None:
        for _ in range(round(wait_s / _LOOK_EVERY_S)):
            if self._ends:
                return
            self._wait(_LOOK_EVERY_S)

    def _run_once(self) -> None:
        """Take messages in until it is to stop, or cannot write.

        Where the lake has gone it waits: only a start makes one, and the log may be in it.
        """
        if not is_made(self._lake):
            raise LakeUnreadable(gone(self._lake.root))
        log_ = Log(self._log_dir, secrets.token_hex(8))
        try:
            link = self._link = self._linked(log_.lander)
            lander = self._lander(log_, link)
            lander.recover()
            link.start()
            try:
                while not (self._ends or lander.must_restart):
                    lander.turn(timeout_s=0.5)
                    self._note_landed(lander)
                lander.stop()
                self._note_landed(lander)
                if lander.must_restart:
                    log.warning("the clock was set, or this lander was stopped: it starts over")
            finally:
                link.stop()
        finally:
            log_.release()

    def _note_landed(self, lander: Lander) -> None:
        """Log once that a segment has landed after a failure."""
        if self._fails and lander.has_landed:
            self._fails = False
            log.warning("writing works again")

    def _linked(self, lander: str) -> Link:
        return Link(
            self._broker,
            client_id=f"lander-{lander}",
            subscriptions=subscriptions(self._topics, Subscriber.LANDER, group=self._group),
            manual_acknowledgement=True,
            # A broker would keep a part of the panes for a lander of a group that is away, and
            # whoever is there can take them.
            keep_session_s=0 if self._group else _SESSION_KEPT_S,
            jitter=random.Random(secrets.randbits(64)),
            seal=self._seal,
            expects_refusal=lambda topic: is_left_to_operators(topic, self._topics),
        )

    def _lander(self, log_: Log, link: Link) -> Lander:
        plan, landing = self._plan, Landing(self._lake, log_.lander)
        streams = (plan.sent_streams, plan.published_folds.values())
        known = (landing.incarnations(), landing.membership())
        store, is_signed = (self._sink, landing.lake_id), self._seal is not None
        tick_us = self._tick_us
        regimes = FleetRegimes(plan, landing.control_log()) if plan.parameters else None
        return Lander(
            link=link,
            log_=log_,
            landing=landing,
            acceptance=Acceptance(
                *streams,
                self._topics,
                store,
                *known,
                overheard=overheard(plan, self._lake),
                control=regimes,
                is_signed=is_signed,
            ),
            columns=LandedColumns(plan, regimes),
            sender=Replica(1, secrets.randbits(32), f"lander-{log_.lander}"),
            clock=ListeningClock(0, _now_us, _monotonic_us, pause_us=_PAUSE_US),
            pace=SegmentPace(promises_us=min(SegmentPace.promises_us, tick_us), idle_us=tick_us),
        )


def _now_us() -> int:
    return time.time_ns() // 1000  # noqa: TID251 - the clock of the process


def _monotonic_us() -> int:
    return time.monotonic_ns() // 1000
