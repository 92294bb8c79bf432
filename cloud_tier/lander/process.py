"""The lander as a process: over a real broker and the clock of the machine, until it is stopped."""

import os
import random
import secrets
import time
from pathlib import Path
from typing import Final

from cloud_tier.lake.definitions import prepare
from cloud_tier.lake.tables import LakeTables
from cloud_tier.lander.columns import LandedColumns
from cloud_tier.lander.lander import SECOND_US, Lander, SegmentPace
from cloud_tier.lander.landing import Landing
from cloud_tier.lander.segments import Log
from crdts import Replica
from lasp_edge.language.plan import Plan
from lasp_edge.link import BrokerUrl, Link, Seal
from lasp_edge.protocol.acceptance import Acceptance
from lasp_edge.protocol.kinds import Subscriber, subscriptions
from lasp_edge.protocol.sinks import DEFAULT_SINK
from lasp_edge.protocol.topics import Topics

_SESSION_KEPT_S: Final = 3600
"""In seconds: for how long the broker keeps messages for a lander that is away. An hour covers a
restart of the machine; what devices sent before that they send again."""


class LanderProcess:
    """A lander over a real broker and clock, until it is told to stop.

    Args:
        plan: of the program.
        broker: where the fleet is.
        lake: its tables are made where they are missing.
        log_dir: a local directory for the log.
        fleet: the fleet's name on the broker; the program's if empty.
        sink: under which name devices deliver to this lake.
        tick_us: how often the lake is told that time passes while nothing comes.
        parent: end when this process is no longer the parent; None for never.
        seal: signs what is published, and checks what comes in; None for neither.
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
        tick_us: int = 15 * SECOND_US,
        parent: int | None = None,
        seal: Seal | None = None,
    ) -> None:
        prepare(plan, lake)
        topics = Topics(fleet or plan.name)
        log_ = Log(log_dir, secrets.token_hex(8))
        landing = Landing(lake, log_.lander)
        self._link = Link(
            broker,
            client_id=f"lander-{log_.lander}",
            subscriptions=subscriptions(topics, Subscriber.LANDER),
            manual_acknowledgement=True,
            keep_session_s=_SESSION_KEPT_S,
            jitter=random.Random(secrets.randbits(64)),
            seal=seal,
        )
        streams = (plan.windows.values(), plan.published_folds.values())
        known = (landing.incarnations(), landing.membership())
        pace = SegmentPace(promises_us=min(SegmentPace.promises_us, tick_us), idle_us=tick_us)
        self._lander = Lander(
            link=self._link,
            log_=log_,
            landing=landing,
            acceptance=Acceptance(*streams, topics, (sink, landing.lake_id), *known),
            columns=LandedColumns(plan),
            sender=Replica(1, secrets.randbits(32), f"lander-{log_.lander}"),
            now_us=_now_us,
            pace=pace,
        )
        self._parent = parent
        self._stopping = False

    def run(self) -> None:
        """Land segments until `stop` is called, then the last one."""
        self._lander.recover()
        self._link.start()
        try:
            while not self._stopping and self._parent in {None, os.getppid()}:
                self._lander.turn(timeout_s=0.5)
        finally:
            self._lander.stop()
            self._link.stop()

    def stop(self) -> None:
        """Make `run` return; allowed in a signal handler."""
        self._stopping = True
        self._link.wake()


def _now_us() -> int:
    return time.time_ns() // 1000  # noqa: TID251 - the clock of the process
