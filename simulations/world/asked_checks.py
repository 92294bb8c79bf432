"""What must hold of a device that a gateway asks again: it answers.

- where it has taken a cell of shares again as it was, it states again from which it has gone on
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from device_agent.agent.scans.parted_history import TakenCell
from device_agent.agent.scans.shares import Shares
from lasp_edge.language.halves import leaf_of, scan_of
from lasp_edge.language.item_stream import STATED
from simulations.world.device import VirtualDevice


class _Stated(NamedTuple):
    """What a device had taken of a cell, and stated of it.

    Attributes:
        goes_back: how often its store had gone back.
        cell: what it had taken.
        stated: of which life the statement was, and its number.
    """

    goes_back: int
    cell: TakenCell
    stated: tuple[int, int, int]


class AskedWatch:
    """Looks at what devices take of shares, and state of them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, int], _Stated] = {}

    def unanswered(self, device: VirtualDevice) -> Iterator[str]:
        """Yield the cells that a device was asked for again, and did not answer."""
        shares = device.core.shares
        if shares is None:
            return
        for (event, cell_us), version in shares.versions.items():
            at = (device.name, event, cell_us)
            before = self._known.get(at)
            if before is not None and before.cell.version == version:
                continue  # most often, it has taken nothing since
            now = _stated(device, shares, event, cell_us)
            if now is None:
                continue
            self._known[at] = now
            if before is not None and _is_asked(before, now) and now.stated <= before.stated:
                yield f"{device.name} was asked again for shares of {cell_us}, and states nothing"


def _is_asked(before: _Stated, now: _Stated) -> bool:
    """Return whether a cell was taken again as it was."""
    version, number = now.cell.version, before.cell.number
    is_next = version != before.cell.version and now.cell.number == number + 1
    alike = before.cell._replace(version=version, number=number + 1) == now.cell
    return is_next and alike and before.goes_back == now.goes_back


def _stated(device: VirtualDevice, shares: Shares, event: str, cell_us: int) -> _Stated | None:
    """Return what a device's store has of a cell; None where it has taken nothing."""
    leaf, store = leaf_of(scan_of(event)), device.disk.store
    if shares.plan.functions.streams[scan_of(event)].is_share_constant or store is None:
        return None
    history: Any = shares.history(device.name, store.history)
    cell = dict(history.taken(event, cell_us, cell_us + 1)).get(cell_us)
    if cell is None:
        return None
    stream = device.core.agent.plan.item_streams[leaf].stream
    panes = store.panes_between(stream, cell_us, cell_us + 1)
    entries = [(pane.incarnation, pane.nonce, row.seq) for pane, row in panes if pane.key == STATED]
    return _Stated(device.goes_back, cell, max(entries, default=(0, 0, 0)))
