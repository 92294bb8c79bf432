"""What watches an agent, turned by its loop: the page for Prometheus and people, and systemd."""

import json
from collections.abc import Mapping

from device_agent.agent.core import Durable
from device_agent.agent.watching.health import Health, Vitals
from device_agent.agent.watching.metrics import LinkFigures, metrics
from device_agent.agent.watching.service_manager import ServiceManager
from lasp_edge.link import Link
from lasp_edge.metrics.exposition import metrics_reply
from lasp_edge.metrics.page import Reply, no_such_page, page_at

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
        self._page = page_at(address, link.wake) if address is not None else None
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
            return self._metrics()
        return no_such_page(path, PATHS)

    def _metrics(self) -> Reply:
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
        return metrics_reply(metrics(core.report(), totals, figures, program))
