"""A gateway as a process: its runs (`run`) between a real broker, the machine's clock and its file.

Where the file cannot be written (the disk is full) all that is in memory is thrown away, and it
starts over as a new process would, after a while; a file that is damaged is put aside, and devices
send again what they keep.
"""

import logging
import random
import secrets
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from device_agent.gateway.run import SHORT_OUTAGE, GatewayRun, GatewaySettings
from device_agent.gateway.store import FleetStore
from device_agent.storage.damage import DamagedStoreError
from device_agent.storage.not_kept import not_kept
from lasp_edge.errors import UsageError
from lasp_edge.language.plan import Plan
from lasp_edge.link import BrokerUrl, Connected, Event, Link, Message, Seal, Will
from lasp_edge.protocol.listening import ListeningClock
from lasp_edge.protocol.topics import Topics, is_left_to_operators, readable
from lasp_edge.units import SECOND_US

log = logging.getLogger(__name__)

_SHORTEST_WAIT_S: Final = 0.5
_LONGEST_WAIT_S: Final = 30.0
_LOOK_EVERY_S: Final = 0.25


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
        self._link: Link | None = None
        self._stopping = self._is_noted = False

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
                self._note_not_kept(error)
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
            self._pause(wait_s)

    def stop(self) -> None:
        """Make `run` return; allowed in a signal handler."""
        self._stopping = True
        if self._link is not None:
            self._link.wake()

    def _note_not_kept(self, error: OSError | sqlite3.Error) -> None:
        """Warn people, once until data can be kept again."""
        if not self._is_noted:
            why = not_kept(self._directory, error, "gateway")
            log.warning("nothing is acknowledged until data can be kept again: %s", why)
        self._is_noted = True

    def _note_kept(self, store: FleetStore) -> None:
        """Tell people that data can be kept again."""
        if self._is_noted and store.commits > 1:  # the first is that of the start
            self._is_noted = False
            log.warning("the gateway's data can be kept again")

    def _pause(self, wait_s: float) -> None:
        for _ in range(round(wait_s / _LOOK_EVERY_S)):
            if not self._stopping:
                self._wait(_LOOK_EVERY_S)

    def _run_once(self) -> bool:
        """Take messages in until it is to stop, or cannot write; return whether it is idle."""
        store = self._opened()
        try:
            nonce = secrets.randbits(32)
            short_us = self._settings.terms.dead_after_us // SHORT_OUTAGE
            run = GatewayRun(
                self._plan,
                store,
                self._settings,
                ListeningClock(short_us, _wall_us, _monotonic_us),
                nonce,
                secrets.token_hex(8),
                is_signed=self._seal is not None,
                say=self._say,
            )
            link = self._link = self._link_of(run, nonce)
            link.start()
            try:
                while not (self._stopping or run.is_idle or run.must_restart):
                    for event in link.poll(run.wait_us / SECOND_US):
                        _give(run, event)
                    run.turn(link)
                    self._note_kept(store)
                run.stop(link)
            finally:
                link.stop()
        except DamagedStoreError:
            store.put_aside()
            raise
        finally:
            store.close()
        if run.must_restart:
            log.warning("the clock was set, or this gateway was stopped: it starts over")
        return run.is_idle

    def _link_of(self, run: GatewayRun, nonce: int) -> Link:
        """Return the link to the broker for a run."""
        topics, will = Topics(self._settings.fleet or self._plan.name), run.will
        return Link(
            self._broker,
            client_id=f"{topics.root}/gateway/{readable(self._settings.name)}",
            subscriptions=run.subscriptions,
            last_will=Will(will.topic, will.payload, 1, will.retain),
            jitter=random.Random(nonce),
            seal=self._seal,
            expects_refusal=lambda topic: is_left_to_operators(topic, topics),
        )

    def _opened(self) -> FleetStore:
        """Return the file.

        Raises:
            UsageError: another gateway runs there, or it is of another program.
        """
        try:
            store = FleetStore(self._directory)
        except BlockingIOError:
            raise UsageError(f"another gateway runs on {self._directory}") from None
        if store.news:
            log.warning("%s: %s", store.path, store.news)
        program = store.facts().get("name", self._plan.name)
        if program != self._plan.name:
            store.close()
            raise UsageError(
                f"{self._directory} holds windows of the program {program!r}; give "
                f"{self._plan.name!r} a --data-dir of its own"
            )
        return store


def _give(run: GatewayRun, event: Event) -> None:
    """Give a run what the link reports."""
    if isinstance(event, Message):
        run.hear(event.topic, event.payload, retained=event.retain)
    elif isinstance(event, Connected):
        log.info("connected to the broker (MQTT %s)", event.protocol)
        run.connected()
    else:
        log.warning("no broker: %s", event.reason)
        run.disconnected()


def _wall_us() -> int:
    return time.time_ns() // 1000  # noqa: TID251 - the process's


def _monotonic_us() -> int:
    return time.monotonic_ns() // 1000
