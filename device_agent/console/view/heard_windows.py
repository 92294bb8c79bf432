"""The windows of a fleet as whoever looks on hears them: each gateway tells its newest rows.

A gateway tells one row of each window and key that is final, and one that is not yet; the last ones
of each are remembered here. What a gateway tells carries a status, which no device's value does.
"""

from typing import Any, NamedTuple

from device_agent.console.view.told import Plain, window_told
from lasp_edge.protocol.status import STATUSES
from lasp_edge.protocol.topics import ResultAddress
from lasp_edge.tool.screen import in_words
from lasp_edge.tool.times import read_time

STARTS = 60
"""Rows of each window and key that are remembered, the last ones."""
MOST_KEYS = 1_000
"""Windows and keys of all gateways that are remembered: some 30 MB at most."""


class _Place(NamedTuple):
    window: str
    gateway: str
    key: str


class HeardWindows:
    """The windows of one fleet, by gateway."""

    def __init__(self) -> None:
        self._rows: dict[_Place, dict[str, Plain]] = {}

    @staticmethod
    def is_one(value: Plain) -> bool:
        """Return whether a result is a window's."""
        return value.get("status") in STATUSES

    def hear(self, address: ResultAddress, payload: bytes) -> None:
        """Take a message on a topic of results.

        Raises:
            ValueError: it is no window.
        """
        said = window_told(payload)
        assert address.name is not None
        assert address.device is not None
        place = _Place(address.name, address.device, address.key or "")
        if place not in self._rows and len(self._rows) >= MOST_KEYS:
            return
        rows = self._rows.setdefault(place, {})
        for row in (said, said.get("tentative")):
            if row is not None:
                rows.pop(row["start"], None)
                rows[row["start"]] = row
        for start in sorted(rows)[:-STARTS]:
            del rows[start]

    def plain(self) -> dict[str, Any] | None:
        """Return the rows as the page has them, the newest first; None where nothing was heard."""
        if not self._rows:
            return None
        gateways = sorted({place.gateway for place in self._rows})
        shown = [
            self._window(name, gateway, alone=len(gateways) == 1)
            for name, gateway in sorted({place[:2] for place in self._rows})
        ]
        return {"lake": ", ".join(gateways), "windows": shown, "trouble": None}

    def _window(self, name: str, gateway: str, *, alone: bool) -> dict[str, Any]:
        found = [
            (place.key, row)
            for place, rows in self._rows.items()
            if place[:2] == (name, gateway)
            for row in rows.values()
        ]
        found.sort(key=lambda each: (each[1]["start"], each[0]), reverse=True)
        parts = list(found[0][1]["parts"])
        return {
            "name": name if alone else f"{name} ({gateway})",
            "parts": [in_words(part) for part in parts],
            "rows": [
                {
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
                for key, row in found
            ],
        }
