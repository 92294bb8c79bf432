"""What watches an agent, turned by its loop: the page for Prometheus and people, and systemd."""

import json
import os
from collections.abc import Mapping

from device_agent.durable import Durable
from device_agent.watching.health import Health, Vitals
from device_agent.watching.metrics import LinkFigures, exposition, metrics
from device_agent.watching.page import Page, Reply
from device_agent.watching.service_manager import ServiceManager
from lasp_edge.link import Link

LOOPBACK = "127.0.0.1"
PATHS = ("/metrics", "/healthz")


class Watching:
    """The watchers of one agent.

    Args:
        durable: the agent, and its store.
        link: its link.
        environment: of the process; says whether systemd wants to know.
        address: `[HOST:]PORT` of the page; None for no page.

    Raises:
        ValueError: the page cannot be there.
    """

    def __init__(
        self, durable: Durable, link: Link, environment: Mapping[str, str], address: str | None
    ) -> None:
        self._durable, self._core, self._link = durable, durable.core, link
        self._health = Health(durable.core.agent.settings.commit_every_us)
        self._manager = ServiceManager(environment)
        self._page = _page(address, link) if address is not None else None
        self._problems: list[str] = []

    def turn(self, now_us: int) -> None:
        """Look at the agent, and answer who asked."""
        link = self._link
        held_us = self._core.intake.held_since_us
        confirmed, tried = link.counts.confirmed, link.counts.attempts
        stuck = self._durable.is_stuck
        vitals = Vitals(held_us, stuck, link.connected, tried, link.in_flight, confirmed)
        self._problems = self._health.problems(vitals, now_us)
        self._manager.turn(self._problems, now_us)
        if self._page is not None:
            self._page.turn(self._answer)

    def close(self) -> None:
        """End with the agent."""
        self._manager.stopping()
        if self._page is not None:
            self._page.close()

    def _answer(self, path: str) -> Reply:
        if path == "/healthz":
            well = not self._problems
            plain = {"ok": well, "problems": self._problems, "connected": self._link.connected}
            return Reply(200 if well else 503, "application/json", json.dumps(plain) + "\n")
        if path == "/metrics":
            return Reply(200, "text/plain; version=0.0.4; charset=utf-8", self._metrics())
        text = f"nothing is at {path}; there are {' and '.join(PATHS)}\n"
        return Reply(404, "text/plain; charset=utf-8", text)

    def _metrics(self) -> str:
        core, counts, traffic = self._core, self._link.counts, self._link.traffic
        figures = LinkFigures(
            counts.connections,
            counts.published,
            counts.received,
            self._link.in_flight,
            traffic.sent,
            traffic.received,
        )
        totals, program = core.counters.totals, core.agent.plan.name
        return exposition(metrics(core.report(), totals, figures, program))


def _page(address: str, link: Link) -> Page:
    host, _, port = address.rpartition(":")
    if not port.isdecimal() or int(port) >= 1 << 16:
        raise ValueError(f"--metrics: a port such as 9100, or HOST:PORT, not {address!r}")
    try:
        return Page(host or LOOPBACK, int(port), link.wake)
    except OSError as error:
        raise ValueError(f"--metrics {address}: {os.strerror(error.errno or 0)}") from None
