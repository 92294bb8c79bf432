"""The windows of a fleet as its gateways publish them: the newest rows of each.

A gateway publishes one row of each window and key that is final, and one that is not yet; the last
ones of each are remembered here. A gateway's row carries a status, which no device's value does.
"""

from collections import defaultdict
from typing import Any

from device_agent.console.view.published import Plain, window_of
from lasp_edge.folds.numbers import decimals
from lasp_edge.folds.units import unit_of
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.status import STATUSES
from lasp_edge.protocol.topics import ResultAddress
from lasp_edge.tool.screen import in_words
from lasp_edge.tool.times import read_time

STARTS = 60
"""Rows of each window and key that are remembered, the last ones."""
MOST_KEYS = 1_000
"""Windows and keys of all gateways that are remembered: some 30 MB at most."""
MOST_SHOWN = 400
"""Rows of a window that a page gets, the newest ones."""


def is_window(result: Plain) -> bool:
    """Return whether a result is a window's."""
    return result.get("status") in STATUSES


class GatewayWindows:
    """The windows of one fleet, by gateway."""

    def __init__(self) -> None:
        self._rows: dict[ResultAddress, dict[str, Plain]] = {}  # by start

    def take(self, address: ResultAddress, payload: bytes) -> None:
        """Take a row that a gateway published.

        Raises:
            ValueError: it is no window.
        """
        assert address.name is not None
        assert address.device is not None
        newest = window_of(payload)
        if address not in self._rows and len(self._rows) >= MOST_KEYS:
            return
        rows = self._rows.setdefault(address, {})
        rows |= {row["start"]: row for row in (newest, newest.get("tentative")) if row is not None}
        for start in sorted(rows)[:-STARTS]:
            del rows[start]

    def plain(self, plan: Plan | None = None) -> dict[str, Any] | None:
        """Return the rows as the page has them, by key and start; None without any.

        Args:
            plan: the fleet's program, where it is known: it has the unit of a window.
        """
        if not self._rows:
            return None
        windows: dict[tuple[str, str], list[tuple[str, Plain]]] = defaultdict(list)
        for (name, gateway, key), rows in self._rows.items():
            windows[str(name), str(gateway)] += [(key or "", row) for row in rows.values()]
        gateways = sorted({gateway for _, gateway in windows})
        shown = {
            name if len(gateways) == 1 else f"{name} ({gateway})": _window(keyed, plan, name)
            for (name, gateway), keyed in sorted(windows.items())
        }
        return {"lake": ", ".join(gateways), "windows": shown}


def _window(keyed: list[tuple[str, Plain]], plan: Plan | None, name: str) -> dict[str, Any]:
    keyed.sort(key=lambda each: (each[1]["start"], each[0]), reverse=True)
    parts = list(keyed[0][1]["parts"])
    window = plan.windows.get(name) if plan else None
    return {
        "parts": [in_words(part) for part in parts],
        "units": [
            unit_of(window.fold, part, window.source.unit) if window else "" for part in parts
        ],
        "places": decimals(window.resolution) if window else 2,
        "rows": {
            f"{row['start']} {key}": {
                "key": key,
                "start": read_time(row["start"]) / 1_000_000,
                "end": read_time(row["end"]) / 1_000_000,
                "parts": [row["parts"].get(part) for part in parts],
                "in": row.get("devices"),
                "expected": row.get("expected"),
                "status": row["status"],
                "revision": row.get("revision"),
                "waiting_for": row.get("waiting_for", []),
            }
            for key, row in keyed[:MOST_SHOWN]
        },
    }
