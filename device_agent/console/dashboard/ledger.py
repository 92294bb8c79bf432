"""The bytes that the fleet sent, beside those of every reading as JSON.

An agent that publishes results reports the readings that it took and the bytes that it sent in one
message, so both are of the same moment. What is compared is what was added since its first message
here, once a minute has passed: an agent that connects sends much at once. One that was
started again is counted from its new start.

    >>> ledger = Ledger("house")
    >>> ledger.note("attic", readings=100, sent_bytes=5_000, at_s=0)
    >>> ledger.note("attic", readings=160, sent_bytes=5_900, at_s=60)
    >>> ledger.plain()
    {'devices': 1, 'readings': 60, 'sent': 900, 'json': 3960}
"""

from typing import Any, NamedTuple, Self

from lasp_edge.protocol.sizes import reading_as_json_bytes

NOBODY_REPORTS = (
    "No agent reports what it sends. Agents that publish results do: start them with --results 60 "
    "or --home-assistant."
)
LEAST_S = 50.0
"""Seconds from the first message to the last, at least; agents report once a minute."""
NOT_YET = "Agents report their counts once a minute; the comparison begins with the second time."


class _Counts(NamedTuple):
    readings: int
    sent_bytes: int

    def plus(self, other: "_Counts") -> "_Counts":
        return _Counts(self.readings + other.readings, self.sent_bytes + other.sent_bytes)

    def since(self, other: "_Counts") -> "_Counts":
        return _Counts(self.readings - other.readings, self.sent_bytes - other.sent_bytes)


class _Account(NamedTuple):
    """A device: the first and last counts of its process, and those that earlier ones added."""

    first: _Counts
    last: _Counts
    first_s: float
    last_s: float
    before: _Counts = _Counts(0, 0)

    @property
    def total(self) -> _Counts:
        if self.last_s - self.first_s < LEAST_S:
            return self.before
        return self.before.plus(self.last.since(self.first))

    def after(self, now: _Counts, at_s: float) -> Self:
        if min(now.since(self.last)) < 0:  # another process, or another store
            return type(self)(now, now, at_s, at_s, self.total)
        return self if now == self.last else self._replace(last=now, last_s=at_s)


class Ledger:
    """The accounts of all devices of a fleet."""

    def __init__(self, fleet: str) -> None:
        self._fleet = fleet
        self._accounts: dict[str, _Account] = {}

    def note(self, device: str, readings: int, sent_bytes: int, at_s: float) -> None:
        """Note a device's newest report; the same may be noted again."""
        counts = _Counts(readings, sent_bytes)
        account = self._accounts.get(device, _Account(counts, counts, at_s, at_s))
        self._accounts[device] = account.after(counts, at_s)

    def plain(self) -> dict[str, Any]:
        """Return the comparison, or under `why_not` why nothing is compared."""
        totals = {name: account.total for name, account in self._accounts.items()}
        counted = {name: total for name, total in totals.items() if min(total) > 0}
        if not counted:
            return {"why_not": NOT_YET if self._accounts else NOBODY_REPORTS}
        json_bytes = sum(
            total.readings * reading_as_json_bytes(self._fleet, name)
            for name, total in counted.items()
        )
        readings, sent = (sum(column) for column in zip(*counted.values(), strict=True))
        return {"devices": len(counted), "readings": readings, "sent": sent, "json": json_bytes}
