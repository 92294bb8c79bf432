"""The agent's process: it gives the core the clock, random numbers, the broker and the sources.

One thread does everything: it waits for the next reading, the next tick and several messages,
whichever comes first, and drives `Durable`. A single message waits for the tick: nothing is
committed or answered before that, and each time that the process wakes up costs energy.

A batch is acknowledged to its source when it is durable, which may be some batches later. Where the
disk is full nothing is read or sent until there is room again. Where the store turns out to be
damaged it is put aside, and the command starts again. SIGTERM and SIGINT stop in order; SIGUSR1
stops only the sources, so that the agent goes on gossiping until everything has landed.
"""

import json
import logging
import os
import signal
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from random import Random, SystemRandom
from types import FrameType
from typing import TYPE_CHECKING, Any

from device_agent.agent.acting.limit import HandlerLimit
from device_agent.agent.core import Core, Durable
from device_agent.agent.ending import Ending
from device_agent.agent.sources.guarded import GuardedSource
from device_agent.agent.sources.source import Source
from device_agent.agent.timing.system_clock import SystemClock
from device_agent.storage.damage import DamagedStoreError, lacks_room
from lasp_edge.link import BrokerUrl, Connected, Disconnected, Limits, Link, Message, Seal, Will
from lasp_edge.protocol.topics import is_left_to_operators, is_of_its_moment, readable
from lasp_edge.timers import Timer, is_time
from lasp_edge.units import SECOND_US

if TYPE_CHECKING:  # most agents call nobody, and are watched by nobody
    from device_agent.agent.acting.effects import Caller
    from device_agent.agent.watching.watching import Watching

log = logging.getLogger(__name__)

LONGEST_WAIT_S = 1.0
"""Seconds after which the loop looks at its sources and signals again, at the latest."""
LONGEST_PERIOD_US = 500_000
"""Microseconds between two ticks, at most: what others ask for waits no longer."""
RETRY_US = 100_000
"""Microseconds until what the link did not take is offered again: a broker's answer is faster."""
MESSAGES = 8
"""Messages that wake the loop; fewer wait for the next tick, for what they bring is committed and
answered there. Brokers send some 20 without an acknowledgement."""
ROOM_RETRY_US = 5 * SECOND_US
"""Microseconds until it is looked again whether the disk has room."""


def fresh_nonce() -> int:
    """Return the 32 random bits of one process start."""
    return SystemRandom().getrandbits(32)


class Reporter:
    """Prints the agent's report at intervals.

    Args:
        every_us: the interval in microseconds.
        write: takes the report of a core and prints it.
    """

    def __init__(self, every_us: int, write: Callable[[dict[str, Any]], None]) -> None:
        self._timer = Timer(every_us)
        self._write = write

    def report(self, core: Core, at_us: int, trouble: str | None, *, now: bool = False) -> None:
        """Report if it is time, or at once; `trouble` is what keeps messages from passing."""
        if now or self._timer.is_due(at_us):
            self._write(core.report() | {"trouble": trouble})


def write_json(report: dict[str, Any]) -> None:
    """Print a report as one JSON line."""
    print(json.dumps(report), flush=True)  # noqa: T201


class Runtime:
    """One running agent.

    Args:
        durable: core and store.
        broker: where to gossip.
        sources: where readings come from.
        reporter: prints reports.
        exit_when_done: end once every source is finished and everything has landed: see `Ending`.
        seal: signs what is published, and checks what comes in; None for neither.
        caller: calls out alerts; None: nobody is called.
    """

    def __init__(
        self,
        durable: Durable,
        broker: BrokerUrl,
        sources: Sequence[Source],
        reporter: Reporter,
        *,
        exit_when_done: bool = False,
        seal: Seal | None = None,
        caller: "Caller | None" = None,
    ) -> None:
        core = durable.core
        self._durable, self._core = durable, core
        self._guard = core.agent.guard
        self._sources = [GuardedSource(source, self._guard) for source in sources]
        self._reporter = reporter
        self._ending = Ending(core, wanted=exit_when_done)
        will = core.beats.presence(online=False)
        self.link = Link(
            broker,
            client_id=f"{core.agent.topics.root}/{readable(core.replica.device)}",
            subscriptions=core.subscriptions(),
            last_will=Will(will.topic, will.payload, 1, will.retain),
            jitter=Random(core.replica.nonce),
            limits=Limits(enough=MESSAGES),
            seal=seal,
            expects_refusal=lambda topic: is_left_to_operators(topic, core.agent.topics),
        )
        self._clock = SystemClock()
        self._clock_news = ""
        self._is_sealed = seal is not None
        self._caller = caller
        self._dropped: dict[str, int] = {}
        self._stop_signal: int | None = None
        self._stop_sources = False
        self._period_us = min(core.agent.settings.interval_us // 2, LONGEST_PERIOD_US)
        self._tick_us = self._sources_us = 0
        self._lacks_room = ""
        self._room = Timer(ROOM_RETRY_US)
        self._watching: Watching | None = None
        limit_s = core.agent.settings.handler_limit_us / SECOND_US
        self._limit = HandlerLimit(limit_s, Runtime._turn.__code__)

    def watch(self, watching: "Watching") -> None:
        """Turn what watches this agent, too."""
        self._watching = watching

    def open(self) -> None:
        """Open the sources where they stood.

        Raises:
            ValueError: one cannot be read, or not from there.
        """
        for source in self._sources:
            source.open(self._core.intake.sources.cursor(source.name))

    def run(self) -> int:
        """Run until a signal stops it; return the signal, 0 for none.

        Raises:
            DamagedStoreError: the store is damaged, and was put aside: start with an empty one.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_stop)
        signal.signal(signal.SIGUSR1, self._on_stop_sources)
        self._limit.start()
        self._observe_clock(self._clock.now_us())
        self.link.start()
        try:
            while self._stop_signal is None and not self._ending.is_over(self._clock.now_us()):
                self._turn()
            self._core.handle_stop()
            self._durable.commit(self._clock.now_us())
            self._tick(self._clock.now_us())
            self._report(self._clock.now_us(), now=True)
        except DamagedStoreError:
            self._durable.store.put_aside()
            raise
        finally:
            self._close()
        return self._stop_signal or 0

    def _turn(self) -> None:
        """Wait for a message, a reading or the next tick, and handle all that is due."""
        events = self.link.poll(self._wait_s(self._clock.now_us()))
        with self._limit:
            for event in events:
                self._hear(event)
            try:
                self._work()
            except sqlite3.Error as error:
                if not lacks_room(error):
                    raise
                self._wait_for_room(error)
        if self._limit.slow:
            self._limit.name_slow(self._core.agent.notices)
        if self._watching is not None:
            self._guard.run("watching", self._watching.turn, self._clock.now_us())

    def _work(self) -> None:
        """Do what is due, but for the messages."""
        at_us = self._clock.now_us()
        if self._durable.is_stuck and not self._room.is_over(at_us):
            self._tick_us = at_us + self._period_us
            self._report(at_us)
            return
        if self._stop_sources:
            self._end_sources()
        ticks = is_time(at_us, self._tick_us, self._period_us)
        if not ticks and at_us < self._sources_us:
            return  # a message woke the loop: no source has anything yet
        for source in self._polled():
            self._read(source)
        if ticks:
            at_us = self._clock.now_us()
            self._tick(at_us)
            if self._lacks_room and not self._durable.is_stuck:
                self._lacks_room = ""
                log.warning("the agent's data can be kept again: it goes on")
            self._report(at_us)
        at_us = self._clock.now_us()
        dues = [source.due_us(at_us) for source in self._polled()]
        self._sources_us = min([due for due in dues if due is not None], default=self._tick_us)

    def _wait_for_room(self, error: sqlite3.Error) -> None:
        """Go on later with what could not be committed; until then nothing is read or sent."""
        self._room.begin(self._clock.now_us())
        if not self._lacks_room:
            directory, reason = self._durable.store.path.parent, " ".join(str(error).split())
            self._lacks_room = (
                f"the agent's data cannot be kept in {directory}: {reason}; nothing is read or "
                f"sent until there is room; to see what takes it, type: df -h {directory}"
            )
            log.warning("%s", self._lacks_room)
            self._guard.say(f"store: {reason}: nothing was read or sent until there was room")

    def _report(self, at_us: int, *, now: bool = False) -> None:
        """Report; nobody has to be there to read it."""
        report, trouble = self._reporter.report, self._lacks_room or self.link.trouble
        self._guard.run("report", report, self._core, at_us, trouble, now=now)

    def _wait_s(self, at_us: int) -> float:
        soonest_us = min(self._tick_us, self._sources_us)
        return min(max(0.0, (soonest_us - at_us) / SECOND_US), LONGEST_WAIT_S)

    def _polled(self) -> Sequence[Source]:
        """Return the sources that are asked.

        While the store has no room none. While no clock is trusted only what cannot wait; and
        before the device knows who it was, nothing that it may have read before.
        """
        if self._durable.is_stuck:
            return ()
        sources: Sequence[Source] = self._sources
        if self._core.agent.clock.holds_back:
            sources = [source for source in sources if not source.replayable]
        if not self._core.fence.lets_read:
            sources = [source for source in sources if not source.has_own_times]
        return sources

    def _observe_clock(self, at_us: int) -> None:
        """Give the core a reading of the machine's clocks, and warn people of a wrong one."""
        self._core.handle_clock(self._clock.read(), at_us)
        says = self._core.timing.says()
        if says != self._clock_news:
            self._clock_news = says
            log.warning("%s", says or "the machine's clock is trusted")

    def _hear(self, event: object) -> None:
        if isinstance(event, Message):
            if event.retain and is_of_its_moment(event.topic, self._core.agent.topics):
                self._core.counters.note("frame: kept by the broker, and true only when it is sent")
                return
            self._durable.hear(event.topic, event.payload, self._clock.now_us())
        elif isinstance(event, Connected):
            log.info("connected, MQTT %s", event.protocol)
            self._core.handle_connected(self._clock.now_us())
            self._tick_us = 0
        elif isinstance(event, Disconnected):
            log.info("disconnected: %s", event.reason)  # the link logs the reason
            self._core.handle_disconnected()

    def _read(self, source: Source) -> None:
        while (batch := source.poll(self._clock.now_us())) is not None:
            durable = partial(source.acknowledge, batch.cursor)
            self._durable.read(batch, self._clock.now_us(), durable, is_pressing=source.is_full)
            if batch.done:
                log.info("%s: finished", source.name, extra={"source": source.name})
            if batch.arrived_us is None:
                return

    def _count_dropped(self) -> None:
        """Let `status` show which messages the link dropped, and why."""
        dropped = dict(self.link.counts.dropped)
        for reason, total in dropped.items():
            if total > self._dropped.get(reason, 0):
                self._core.counters.note(f"frame: {reason}", total - self._dropped.get(reason, 0))
        self._dropped = dropped

    def _tick(self, at_us: int) -> None:
        self._count_dropped()
        self._core.handle_sent(self.link.traffic.sent)
        self._tick_us = at_us + self._period_us
        self._observe_clock(at_us)
        for publication in self._durable.tick(at_us):
            topic, payload, retain, _, qos = publication
            if self._is_sealed and is_left_to_operators(topic, self._core.agent.topics):
                continue  # no device can sign an operator's command
            if not self.link.publish(topic, payload, qos=qos, retain=retain):
                self._core.handle_unsent(publication)
                self._tick_us = at_us + RETRY_US
                break
        self._guard.run("alerts", self._call_out)

    def _call_out(self) -> None:
        """Have the turns of alerts called out that are durable."""
        caller, alerts = self._caller, self._core.acting.alerts
        if caller is None or alerts is None or self._core.fence.closed:
            return
        for turn, trouble in caller.ended():
            if trouble:
                log.warning("alert %s: %s", turn.alert, trouble, extra={"alert": turn.alert})
            alerts.called_out(turn, trouble)
        for turn in alerts.turns():
            if not caller.offer(turn):
                break

    def _end_sources(self) -> None:
        for source in self._sources:
            source.close()
        self._sources.clear()
        self._durable.commit(self._clock.now_us())
        self._core.handle_end()
        self._stop_sources = False
        self._tick_us = 0

    def _close(self) -> None:
        if not self._core.fence.closed:
            goodbye = self._core.beats.presence(online=False)
            self.link.publish(goodbye.topic, goodbye.payload, retain=goodbye.retain)
        self.link.stop()
        if self._caller is not None:
            self._caller.stop()
        if self._watching is not None:
            self._watching.close()
        for source in self._sources:
            source.close()
        self._durable.store.close()

    def _on_stop(self, number: int, _frame: FrameType | None) -> None:
        if self._stop_signal is not None:
            os._exit(128 + number)  # an exception could be caught by what runs just now
        self._stop_signal = number
        self.link.wake()

    def _on_stop_sources(self, _number: int, _frame: FrameType | None) -> None:
        self._stop_sources = True
        self.link.wake()
