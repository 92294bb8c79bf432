"""One run of a gateway over an open file: messages in, one commit, and what leaves after it.

    messages of some seconds -> core -> one commit -> acknowledgements, results

Nothing that follows from a message leaves before it is durable. What the broker or a crash loses
comes again: devices send what no sink has acknowledged. The link and the clocks are its driver's:
the process has those of the machine (`device_agent.gateway.process`), a simulation has its own.
"""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from crdts import Replica
from device_agent.gateway.alerts import FleetAlerts
from device_agent.gateway.core import GatewayCore, WaitingTerms
from device_agent.gateway.line import awaited, clocks_apart, line_of
from device_agent.gateway.results import FleetResults, Published
from device_agent.gateway.shown import GatewayTopics
from device_agent.gateway.store import PROGRAM, STORE_ID, SUMMARY, FleetStore
from device_agent.gateway.table import meaning_of, newest_rows
from lasp_edge.language.plan import Plan
from lasp_edge.language.summary import ProgramSummary
from lasp_edge.protocol.acceptance import Acceptance, Record
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.frames import BeatFrame, VariableFrame
from lasp_edge.protocol.kinds import FRAME_KINDS, Subscriber
from lasp_edge.protocol.listening import ListeningClock
from lasp_edge.protocol.overheard import Overheard
from lasp_edge.protocol.sharing import RepairFrame, SharedFrame
from lasp_edge.protocol.sizes import MAX_MESSAGE_BYTES
from lasp_edge.protocol.status import TENTATIVE
from lasp_edge.protocol.topics import Topics, subscriptions, topic_of
from lasp_edge.protocol.window_rows import FleetRow
from lasp_edge.timers import Timer
from lasp_edge.units import SECOND_US

if TYPE_CHECKING:
    from device_agent.gateway.shares import SharesPublisher

log = logging.getLogger(__name__)

BEATS_WAIT: Final = 3
"""Commits that what tells only of progress waits for, so that there are fewer."""
IDLE_US: Final = 15 * SECOND_US
"""Microseconds without a message after which silence is looked at, at most."""
FULL_BYTES: Final = 2 << 20
"""Bytes of messages that are not held longer."""
ALERTS: Final = "alerts"
"""The fact with what alerts remember."""
LAST_STARTS: Final = 3
"""Starts of each window that are published again after a restart."""
LINE_EVERY_US: Final = 10 * SECOND_US
"""Microseconds between two lines for people, at least."""
SHORT_OUTAGE: Final = 10
"""The broker may be away for this part of what makes a device silent: a gateway goes on as if it
had listened: devices speak as soon as the broker is back."""
_UNUSED: Final = (VariableFrame, SharedFrame, RepairFrame)


class GatewaySettings(NamedTuple):
    """The options of a gateway.

    Attributes:
        name: its name: devices deliver to it under this one, and its results carry it.
        fleet: the fleet's name on the broker; the program's if empty.
        terms: for whom windows wait.
        commit_us: for how long messages are held until they are made durable together.
        results_us: how often a result is published at most; 0 for never.
        home_assistant: its first topic level; "" for none.
        dashboard_url: of a dashboard of the fleet, for Home Assistant; "" for none.
        until_idle_us: end when nothing new came for this long; None for never.
    """

    name: str = "gateway"
    fleet: str = ""
    terms: WaitingTerms = WaitingTerms()
    commit_us: int = 2 * SECOND_US
    results_us: int = 5 * SECOND_US
    home_assistant: str = ""
    dashboard_url: str = ""
    until_idle_us: int | None = None


class GatewayLink(Protocol):
    """What a run needs of a link to the broker: `lasp_edge.link.Link`, or a simulated one."""

    @property
    def trouble(self) -> str | None:
        """Why messages do not pass; None while they do."""

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> bool:
        """Send a message, or return False."""


class GatewayRun:
    """One run over an open file.

    Args:
        plan: of the program.
        store: the open file.
        settings: the options.
        clock: the machine's.
        nonce: 32 random bits of this run.
        store_id: the id that the file has from now on.
        is_signed: frames are signed.
        say: is given a line for people whenever there is something new.

    Attributes:
        must_restart: the clock was set, or nobody listened for a while. Devices are waited for as
            after a start, and send again what was refused by the clock as it was.
        subscriptions: the filters of the topics that it listens to.
        will: what the broker tells for a gateway that vanishes.
        core: the state machine.
        alerts: those on windows, and on results over the fleet.
        acceptance: what it takes from messages.
    """

    def __init__(
        self,
        plan: Plan,
        store: FleetStore,
        settings: GatewaySettings,
        clock: ListeningClock,
        nonce: int,
        store_id: str,
        *,
        is_signed: bool = False,
        say: Callable[[str], None] = print,
    ) -> None:
        self._plan = plan
        self._store, self._settings, self._say = store, settings, say
        topics = self._topics = Topics(settings.fleet or plan.name)
        _describe(plan, store)
        former = store.begin(store_id)
        self.acceptance = Acceptance(
            plan.sent_streams,
            plan.published_folds.values(),
            topics,
            (settings.name, store.facts()[STORE_ID]),
            overheard=Overheard({}),
            is_signed=is_signed,
        )
        sender = Replica(1, nonce, f"gateway-{settings.name}")
        self.core = GatewayCore(plan, self.acceptance, store, sender, settings.terms, former)
        self.alerts = FleetAlerts(
            plan,
            settings.name,
            lambda: self.acceptance.commands.control,
            store.facts().get(ALERTS, ""),
        )
        self._results = self._made_results(topics)
        self._shares = self._made_shares(plan, sender, topics)
        restored = [row for _, row in newest_rows(store, LAST_STARTS)]
        self._results.take(restored, self.core.coverage, self.core.failed)
        store.put_facts(self._judged(_newest_final(restored)))
        self.will = self._results.will
        self.subscriptions = [
            *_subscriptions(topics),
            *self._results.subscriptions,
            *([] if self._shares is None else [self._shares.subscription]),
        ]
        self._clock, self.must_restart = clock, False
        self._records: list[Record] = []
        self._bytes = 0
        self._due_us = clock.now_us + self._idle_us
        self._new_us = clock.now_us if restored else None
        self._line_timer = Timer(LINE_EVERY_US)
        self._line = ""
        self._counts = {"entries": 0, "rows": 0, "late": 0}

    def _made_results(self, topics: Topics) -> FleetResults:
        settings, streams, store = self._settings, self.core.streams, self._store
        home = settings.home_assistant, settings.dashboard_url
        published = Published(settings.name, settings.results_us, *home)
        newest = streams.newest if streams is not None else tuple
        stored = (store.facts(), store.put_facts)
        shown = GatewayTopics(self._plan, topics, settings.name, *stored)
        given = (self.core.fold_at, newest, self.alerts, shown)
        return FleetResults(self._plan, topics, published, *given)

    def _made_shares(self, plan: Plan, sender: Replica, topics: Topics) -> "SharesPublisher | None":
        """Return what publishes shares; a program without local events does without the module."""
        streams = self.core.streams
        if streams is None or not streams.parted.scans:
            return None
        from device_agent.gateway.shares import SharesPublisher  # noqa: PLC0415 - see above

        return SharesPublisher(plan, streams.parted, sender, topics)

    @property
    def is_idle(self) -> bool:
        """Whether something arrived, and then nothing new for as long as `until_idle_us` says.

        Not by a clock that was set meanwhile.
        """
        until_us, new_us = self._settings.until_idle_us, self._new_us
        if until_us is None or new_us is None or self.must_restart:
            return False
        return self._clock.now_us - new_us >= until_us

    @property
    def _idle_us(self) -> int:
        return min(self._settings.terms.dead_after_us // 4, IDLE_US)

    @property
    def wait_us(self) -> int:
        """For how long nothing is due; half a second at most."""
        return min(max(0, self._due_us - self._clock.now_us), SECOND_US // 2)

    def turn(self, link: GatewayLink) -> None:
        """Commit what is due, and send what is owed."""
        self.must_restart = self._clock.look()
        if self._clock.now_us >= self._due_us or self._bytes >= FULL_BYTES:
            self._commit()
        self._send(link)

    def stop(self, link: GatewayLink) -> None:
        """Commit what came in, and send what is owed."""
        self._commit()
        self._send(link)
        self._print(link, now=True)
        link.publish(self.will.topic, self.will.payload, retain=self.will.retain)

    def connected(self) -> None:
        """Note a new connection to the broker."""
        self._clock.begin()
        self.acceptance.connected(self._clock.now_us)
        self._results.connected()
        if self._shares is not None:
            self._shares.connected()

    def disconnected(self) -> None:
        """Note that the connection is over."""
        self._commit()
        self._clock.end()

    def hear(self, topic: str, payload: bytes, *, retained: bool = False) -> None:
        """Hold a message for the next commit, unless it is for the results.

        Args:
            topic: its topic.
            payload: its bytes.
            retained: the broker had kept it.
        """
        now_us = self._clock.now_us
        if self._results.hear(topic, payload, now_us):
            return
        if self._shares is not None and self._shares.hear(topic, payload):
            return
        # What is longer is refused in any case; its length shows with one byte too many.
        payload = payload[: MAX_MESSAGE_BYTES + 1]
        self._records.append(Record(now_us, topic, retained, payload))
        self._bytes += len(payload)
        is_beat = f"/{FRAME_KINDS[BeatFrame.kind].topic}/" in topic
        commits = BEATS_WAIT if is_beat else 1
        self._due_us = min(self._due_us, now_us + commits * self._settings.commit_us)

    def _commit(self) -> None:
        now_us = self._clock.now_us
        records, self._records, self._bytes = self._records, [], 0
        self._due_us = now_us + self._idle_us
        listening = self._clock.listening
        turn = self.core.take(records, listening)
        due_at_us = self.core.due_at_us
        if due_at_us is not None and listening is not None:
            self._due_us = min(self._due_us, max(due_at_us, now_us + self._settings.commit_us))
        if self._plan.alerts:
            turn.changes.facts |= self._judged(turn.changes.rows)
        if turn.changes:
            self._store.commit(turn.changes)
        if turn.accepted.commands.control.entries:  # a start does so too, should this be the end
            self._store.put_facts({PROGRAM: meaning_of(self._plan, self._store.restored().control)})
        self.core.replies.owe(turn.accepted, now_us, self._store.commits)
        rows = self._to_publish(turn.changes.rows)
        waiting = [*awaited(self.core, self._settings.name), *self._clocks()]
        self._results.take(rows, turn.coverage, self.core.failed, waiting)
        for (topic, reason), refusal in turn.accepted.refused.items():
            log.info("%s: %s messages not taken: %s", topic, refusal.records, reason)
        self._note(turn.changes.rows, len(turn.changes.entries), turn.too_late, now_us)

    def _clocks(self) -> list[str]:
        """Return in words which clocks contradict each other."""
        retired = self.core.membership.retired
        ahead_us = {at: us for at, us in self.acceptance.ahead_us.items() if at not in retired}
        words = clocks_apart(ahead_us)
        return [words] if words else []

    def _judged(self, rows: list[FleetRow]) -> dict[str, str]:
        """Let alerts look at rows; return what is to be stored with them, if that has changed."""
        before = self.alerts.remembered()
        self.alerts.take(rows, self.core.fold_at)
        streams = self.core.streams
        if streams is not None:
            self.alerts.take_results(streams.take_final(), streams.newest())
        after = self.alerts.remembered()
        return {} if after == before else {ALERTS: after}

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

    def _send(self, link: GatewayLink) -> None:
        now_us, connected = self._clock.now_us, self._clock.listening is not None
        if connected:
            publish = partial(self._publish, link)
            self.core.replies.answer(publish, now_us)
            self.core.replies.remind(publish, now_us, is_connected=connected)
            for publication in () if self._shares is None else self._shares.publications(now_us):
                if not link.publish(publication.topic, publication.payload, retain=True):
                    break
            for publication in self._results.publications(now_us):
                topic, payload, retain = publication[:3]
                if not link.publish(topic, payload, retain=retain):
                    self._results.unsent()
                    break
        self._print(link)

    def _publish(self, link: GatewayLink, frame: Frame) -> bool:
        is_kept = FRAME_KINDS[frame.kind].retained
        return link.publish(topic_of(frame, self._topics), frame.encode(), retain=is_kept)

    def _print(self, link: GatewayLink, *, now: bool = False) -> None:
        """Print a line for people, if there is something new."""
        if not now and not self._line_timer.is_due(self._clock.now_us):
            return
        failed, connected = self._results.all_failed, self._clock.listening is not None
        known = (self._settings.name, self.core, self._counts, failed, link.trouble)
        line = line_of(*known, connected=connected)
        line = ", ".join([line, *self._clocks(), *self.alerts.words()])
        if line != self._line:
            self._line = line
            self._say(line)


def _describe(plan: Plan, store: FleetStore) -> None:
    """Let a file state what the program's windows mean."""
    meaning = {PROGRAM: meaning_of(plan, store.restored().control), "name": plan.name}
    meaning[SUMMARY] = ProgramSummary.of(plan).text
    facts = store.facts()
    if any(facts.get(name) != value for name, value in meaning.items()):
        store.put_facts(meaning)


def _newest_final(rows: Iterable[FleetRow]) -> list[FleetRow]:
    """Return the newest final row of each window and key: others were judged as they came."""
    final = [row for row in rows if row.status != TENTATIVE]
    newest = {row.at[:2]: row for row in sorted(final, key=lambda each: each.end_us)}
    return list(newest.values())


def _subscriptions(topics: Topics) -> list[str]:
    """Return the filters for what a lander takes, but for variables, which devices hold."""
    unused = {topics.every(FRAME_KINDS[frame.kind].topic) for frame in _UNUSED}
    return [each for each in subscriptions(topics, Subscriber.LANDER) if each not in unused]
