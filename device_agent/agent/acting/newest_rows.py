"""The newest final row of each key of a device's results, for the alerts that watch them."""

from fractions import Fraction
from typing import Any

from device_agent.agent.acting.current import CurrentValues
from device_agent.agent.agent import Agent
from device_agent.agent.scans.streams import Streams
from lasp_edge.evaluation.history import exact_row_part
from lasp_edge.evaluation.rows import Newest
from lasp_edge.language.acting import FoldValue, Watched
from lasp_edge.language.raising import has_keys
from lasp_edge.language.streaming import StreamRow
from lasp_edge.language.triggers import Trigger


class NewestRows:
    """The rows of one device, as `WatchedValues`.

    Args:
        agent: what all parts share.
        streams: has the rows.
        values: of folds; it has the operators' entries.
    """

    def __init__(self, agent: Agent, streams: Streams, values: CurrentValues) -> None:
        self._agent, self._streams, self._values = agent, streams, values

    def is_ready(self, name: str) -> bool:  # noqa: ARG002 - the contract
        """Return whether the rows of the store are here."""
        return self._streams.begun

    def is_complete(self, name: str) -> bool:  # noqa: ARG002 - the contract
        """Return True: nobody else has rows of this device."""
        return True

    def is_keyed(self, name: str) -> bool:
        """Return whether rows may have keys."""
        return has_keys(self._agent.plan, name)

    def keys(self, name: str) -> list[str]:
        """Return the keys that have a final row, sorted."""
        return sorted(key for key, newest in self._newest(name).items() if newest.final)

    def mark(self, name: str) -> Any:
        """Return what differs where a newest row does."""
        return [(key, newest.mark) for key, newest in self._newest(name).items()]

    def inputs(self, name: str, key: str) -> str:
        """Return time and revision of the newest final row; "" without one."""
        row = self._final(name, key)
        return "" if row is None else f"{row.place} {row.revision}"

    def exact(self, name: str, key: str, part: str) -> Fraction | None:
        """Return a part of the newest final row."""
        row = self._final(name, key)
        return None if row is None else exact_row_part(self._streams.books[name].result, row, part)

    def trigger(self, watched: Watched) -> Trigger | None:
        """Return the condition of what is watched, as it is now."""
        return self._values.trigger(watched)

    def value(self, name: str, key: str, part: str = "") -> FoldValue:
        """Return the newest final row of a key; without one no part has a value."""
        row = self._final(name, key)
        parts = {} if row is None else row.parts
        devices = (self._agent.replica.device,)
        return FoldValue(
            name, key, parts.get(part), parts, self.inputs(name, key), settled=True, devices=devices
        )

    def _final(self, name: str, key: str) -> StreamRow | None:
        newest = self._newest(name).get(key)
        return None if newest is None else newest.shown_final

    def _newest(self, name: str) -> dict[str, Newest]:
        return self._streams.books[name].newest
