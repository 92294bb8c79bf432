"""A gateway as a process: its core between a real broker, the machine's clock and its file.

    messages of some seconds -> core -> one commit -> acknowledgements, results

Nothing that follows from a message leaves before it is durable. What the broker or a crash loses
comes again: devices send what no sink has acknowledged. Where the file cannot be written (the disk
is full) all that is in memory is thrown away, and it starts over as a new process would, after a
while; a file that is damaged is put aside, and devices send again what they keep.
"""

import logging
import random
import secrets
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from crdts import Replica
from device_agent.gateway.clock import ListeningClock
from device_agent.gateway.core import GatewayCore, WaitingTerms
from device_agent.gateway.line import line_of
from device_agent.gateway.results import FleetResults
from device_agent.gateway.store import PROGRAM, STORE_ID, FleetStore
from device_agent.gateway.table import meaning_of, newest_rows
from device_agent.storage.damage import DamagedStoreError
from lasp_edge.errors import UsageError
from lasp_edge.language.plan import Plan
from lasp_edge.link import BrokerUrl, Connected, Disconnected, Link, Message, Seal, Will
from lasp_edge.protocol.acceptance import Acceptance, Record
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame, VariableFrame
from lasp_edge.protocol.kinds import FRAME_KINDS, Subscriber
from lasp_edge.protocol.overheard import Overheard
from lasp_edge.protocol.sharing import RepairFrame, SharedFrame
from lasp_edge.protocol.sizes import MAX_MESSAGE_BYTES
from lasp_edge.protocol.topics import (
    Topics,
    is_left_to_operators,
    readable,
    subscriptions,
    topic_of,
)
from lasp_edge.protocol.window_rows import FleetRow
from lasp_edge.timers import Timer
from lasp_edge.units import SECOND_US

log = logging.getLogger(__name__)

BEATS_WAIT: Final = 3
"""Commits that what tells only of progress waits for, so that there are fewer."""
IDLE_US: Final = 15 * SECOND_US
"""Microseconds without a message after which silence is looked at, at most."""
FULL_BYTES: Final = 2 << 20
"""Bytes of messages that are not held longer."""
LAST_STARTS: Final = 3
"""Starts of each window that are published again after a restart."""
LINE_EVERY_US: Final = 10 * SECOND_US
"""Microseconds between two lines for people, at least."""
SHORT_OUTAGE: Final = 10
"""The broker may be away for this part of what makes a device silent: a gateway goes on as if it
had listened: devices speak as soon as the broker is back."""
_UNUSED: Final = (VariableFrame, SharedFrame, RepairFrame)
_SHORTEST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 30.0
_LOOK_EVERY_S: Final = 0.25


class GatewaySettings(NamedTuple):
    """The options of a gateway.

    Attributes:
        name: its name: devices deliver to it under this one, and its results carry it.
        fleet: the fleet's name on the broker; the program's if empty.
        terms: for whom windows wait.
        commit_us: for how long messages are held until they are made durable together.
        results_us: how often a result is published at most; 0 for never.
        home_assistant: its first topic level; "" for none.
        until_idle_us: end when nothing new came for this long; None for never.
    """

    name: str = "gateway"
    fleet: str = ""
    terms: WaitingTerms = WaitingTerms()
    commit_us: int = 2 * SECOND_US
    results_us: int = 5 * SECOND_US
    home_assistant: str = ""
    until_idle_us: int | None = None


class GatewayProcess:
    """A gateway over a real broker and clock, until `stop` is called.

    Args:
        plan: of the program.
        broker: where the fleet is.
        directory: where its file is.
        settings: its options.
        seal: signs what is published, and checks what comes in; None for neither.
        say: is given a line for people whenever there is something new.
        wait: waits for some seconds before it starts over.
    """

    def __init__(
        self,
        plan: Plan,
        broker: BrokerUrl,
        directory: Path,
        settings: GatewaySettings,
        *,
        seal: Seal | None = None,
        say: Callable[[str], None] = print,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._plan, self._broker, self._directory = plan, broker, directory
        self._settings, self._seal, self._say, self._wait = settings, seal, say, wait
        self._running: _Running | None = None
        self._stopping = False

    def run(self) -> None:
        """Take messages in until `stop` is called.

        Raises:
            UsageError: another gateway runs there, or its file is of another program or format.
        """
        wait_s = _SHORTEST_WAIT_S
        while not self._stopping:
            try:
                if self._run_once():
                    return
                continue  # it is to stop, or starts over at once
            except DamagedStoreError as error:
                log.warning("%s: it is put aside, and devices send again what they keep", error)
                wait_s = _SHORTEST_WAIT_S
            except (OSError, sqlite3.Error) as error:
                log.warning("cannot write: %s; nothing is acknowledged until that works", error)
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
            self._pause(wait_s)

    def stop(self) -> None:
        """Make `run` return; allowed in a signal handler."""
        self._stopping = True
        if self._running is not None:
            self._running.link.wake()

    def _pause(self, wait_s: float) -> None:
        for _ in range(round(wait_s / _LOOK_EVERY_S)):
            if not self._stopping:
                self._wait(_LOOK_EVERY_S)

    def _run_once(self) -> bool:
        """Take messages in until it is to stop, or cannot write; return whether it is idle."""
        store = self._opened()
        try:
            running = self._running = _Running(
                self._plan, self._broker, store, self._settings, self._seal, self._say
            )
            running.link.start()
            try:
                while not (self._stopping or running.is_idle or running.must_restart):
                    running.turn()
                running.stop()
            finally:
                running.link.stop()
        except DamagedStoreError:
            store.put_aside()
            raise
        finally:
            store.close()
        if running.must_restart:
            log.warning("the clock was set, or this gateway was stopped: it starts over")
        return running.is_idle

    def _opened(self) -> FleetStore:
        """Return the file, with an id, and with what the program's windows mean.

        Raises:
            UsageError: another gateway runs there, or it is of another program.
        """
        try:
            store = FleetStore(self._directory)
        except BlockingIOError:
            raise UsageError(f"another gateway runs on {self._directory}") from None
        if store.news:
            log.warning("%s: %s", store.path, store.news)
        facts = store.facts()
        program = facts.get("name", self._plan.name)
        if program != self._plan.name:
            store.close()
            raise UsageError(
                f"{self._directory} holds windows of the program {program!r}; give "
                f"{self._plan.name!r} a --data-dir of its own"
            )
        wanted = {
            PROGRAM: meaning_of(self._plan, store.restored().control),
            "name": self._plan.name,
        }
        if wanted != {name: facts.get(name) for name in wanted}:
            store.put_facts(wanted)
        return store


class _Running:
    """One run over an open file.

    Attributes:
        must_restart: the clock was set, or nobody listened for a while. Devices are waited for as
            after a start, and send again what was refused by the clock as it was.
    """

    def __init__(
        self,
        plan: Plan,
        broker: BrokerUrl,
        store: FleetStore,
        settings: GatewaySettings,
        seal: Seal | None,
        say: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self._store, self._settings, self._say = store, settings, say
        topics = self._topics = Topics(settings.fleet or plan.name)
        nonce = secrets.randbits(32)
        former = store.begin(secrets.token_hex(8))
        self._acceptance = Acceptance(
            plan.pane_streams,
            plan.published_folds.values(),
            topics,
            (settings.name, store.facts()[STORE_ID]),
            overheard=Overheard({}),
            is_signed=seal is not None,
        )
        sender = Replica(1, nonce, f"gateway-{settings.name}")
        self._core = GatewayCore(plan, self._acceptance, store, sender, settings.terms, former)
        published = (settings.name, settings.results_us, settings.home_assistant)
        self._results = FleetResults(plan, topics, *published, fold_at=self._core.fold_at)
        restored = [row for _, row in newest_rows(store, LAST_STARTS)]
        self._results.take(restored, self._core.coverage)
        will = self._results.will
        self.link = Link(
            broker,
            client_id=f"{topics.root}/gateway-{readable(settings.name)}",
            subscriptions=[*_subscriptions(topics), *self._results.subscriptions],
            last_will=Will(will.topic, will.payload, 1, will.retain),
            jitter=random.Random(nonce),
            seal=seal,
            expects_refusal=lambda topic: is_left_to_operators(topic, topics),
        )
        self._clock, self.must_restart = (
            ListeningClock(settings.terms.dead_after_us // SHORT_OUTAGE),
            False,
        )
        self._records: list[Record] = []
        self._bytes = 0
        self._due_us = self._clock.now_us + self._idle_us
        self._new_us = self._clock.now_us if restored else None
        self._line_timer = Timer(LINE_EVERY_US)
        self._line = ""
        self._counts = {"entries": 0, "rows": 0, "late": 0}

    @property
    def is_idle(self) -> bool:
        """Whether something arrived, and then nothing new for as long as `until_idle_us` says."""
        until_us, new_us = self._settings.until_idle_us, self._new_us
        if until_us is None or new_us is None:
            return False
        return self._clock.now_us - new_us >= until_us

    @property
    def _idle_us(self) -> int:
        return min(self._settings.terms.dead_after_us // 4, IDLE_US)

    def turn(self) -> None:
        """Take in what has come, commit what is due, and send what is owed."""
        wait_us = min(max(0, self._due_us - self._clock.now_us), SECOND_US // 2)
        for event in self.link.poll(wait_us / SECOND_US):
            self._take(event)
        self.must_restart = self._clock.look()
        if self._clock.now_us >= self._due_us or self._bytes >= FULL_BYTES:
            self._commit()
        self._send()

    def stop(self) -> None:
        """Commit what came in, and send what is owed."""
        self._commit()
        self._send()
        self._print(now=True)
        will = self._results.will
        self.link.publish(will.topic, will.payload, retain=will.retain)

    def _take(self, event: object) -> None:
        now_us = self._clock.now_us
        if isinstance(event, Message):
            if not self._results.hear(event.topic, event.payload, now_us):
                self._keep(event, now_us)
        elif isinstance(event, Connected):
            log.info("connected to the broker (MQTT %s)", event.protocol)
            self._clock.begin()
            self._acceptance.connected(now_us)
            self._results.connected()
        elif isinstance(event, Disconnected):
            log.warning("no broker: %s", event.reason)
            self._commit()
            self._clock.end()

    def _keep(self, message: Message, now_us: int) -> None:
        """Hold a message for the next commit."""
        # What is longer is refused in any case; its length shows with one byte too many.
        payload = message.payload[: MAX_MESSAGE_BYTES + 1]
        self._records.append(Record(now_us, message.topic, message.retain, payload))
        self._bytes += len(payload)
        is_beat = f"/{FRAME_KINDS[BeatFrame.kind].topic}/" in message.topic
        commits = BEATS_WAIT if is_beat else 1
        self._due_us = min(self._due_us, now_us + commits * self._settings.commit_us)

    def _commit(self) -> None:
        now_us = self._clock.now_us
        records, self._records, self._bytes = self._records, [], 0
        self._due_us = now_us + self._idle_us
        listening = self._clock.listening
        turn = self._core.take(records, listening)
        due_at_us = self._core.due_at_us
        if due_at_us is not None and listening is not None:
            self._due_us = min(self._due_us, max(due_at_us, now_us + self._settings.commit_us))
        if turn.changes:
            self._store.commit(turn.changes)
        if turn.accepted.commands.control.entries:  # a start does so too, should this be the end
            self._store.put_facts({PROGRAM: meaning_of(self._plan, self._store.restored().control)})
        self._core.replies.commit = self._store.commits
        self._core.replies.owe(turn.accepted, now_us)
        self._results.take(self._to_publish(turn.changes.rows), turn.coverage)
        for (topic, reason), refusal in turn.accepted.refused.items():
            log.info("%s: %s messages not taken: %s", topic, refusal.records, reason)
        self._note(turn.changes.rows, len(turn.changes.entries), turn.too_late, now_us)

    def _to_publish(self, rows: list[FleetRow]) -> list[FleetRow]:
        """Return rows that are new; and where windows are no more, those before them."""
        if all(row.devices_in for row in rows):
            return rows
        return [*rows, *(row for _, row in newest_rows(self._store, LAST_STARTS))]

    def _note(self, rows: list[FleetRow], entries: int, late: int, now_us: int) -> None:
        for name, more in (("entries", entries), ("rows", len(rows)), ("late", late)):
            self._counts[name] += more
        if rows or entries:
            self._new_us = now_us

    def _send(self) -> None:
        now_us, connected = self._clock.now_us, self._clock.listening is not None
        if connected:
            self._core.replies.answer(self._publish, now_us)
            self._core.replies.remind(self._publish, now_us, is_connected=connected)
            for publication in self._results.publications(now_us):
                topic, payload, retain = publication[:3]
                if not self.link.publish(topic, payload, retain=retain):
                    self._results.unsent()
                    break
        self._print()

    def _publish(self, frame: Frame) -> bool:
        is_kept = FRAME_KINDS[frame.kind].retained
        return self.link.publish(topic_of(frame, self._topics), frame.encode(), retain=is_kept)

    def _print(self, *, now: bool = False) -> None:
        """Print a line for people, if there is something new."""
        if not now and not self._line_timer.is_due(self._clock.now_us):
            return
        failed = self._core.failed + self._results.failed
        line = line_of(self._settings.name, self._core, self._counts, failed, self.link.trouble)
        if line != self._line:
            self._line = line
            self._say(line)


def _subscriptions(topics: Topics) -> list[str]:
    """Return the filters for what a lander takes, but for variables, which devices hold."""
    unused = {topics.every(FRAME_KINDS[frame.kind].topic) for frame in _UNUSED}
    return [each for each in subscriptions(topics, Subscriber.LANDER) if each not in unused]
