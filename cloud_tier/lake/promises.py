"""What `lattice` holds of devices, operators and landers, without the rows that newer ones replace.

Devices promise all the time, and until the table is compacted each promise is a row of it: a
million of them. A start needs the newest of each device, and the steps of those that were news
(`lasp_edge.protocol.waiting`), of which a few thousand matter for a window that waits. The database
leaves out all others, so a start holds as much of a fleet after a day as after a minute.
"""

from collections.abc import Callable, Collection
from typing import Any, Final

import pyarrow as pa

from cloud_tier.lake.sqltext import one_of
from cloud_tier.lake.tables import BEGUN, LIVES, MEMBER, PROMISE, TICK
from crdts.frontier import BOTTOM_US
from lasp_edge.protocol.lake_columns import LANDED, PANE_DATE
from lasp_edge.protocol.waiting import Step, WindowWaiting, grid_us

DEVICE_KINDS: Final = (PROMISE, BEGUN, TICK, MEMBER, LIVES)
"""The kinds of row by which it is known which devices there are, and how far each has come."""
_NEWEST_FIRST: Final = (
    "incarnation DESC, nonce DESC, seq DESC, low_us DESC NULLS LAST, done DESC, received_us"
)
"""The order of promises, as `crdts.Frontier` joins them, and of a lander's ticks."""
_IS_NO_PANE: Final = f"{PANE_DATE} = DATE '1970-01-01'"

_LIFE: Final = "(incarnation * 4294967296 + nonce)"
"""Orders the replicas of a device as their versions do."""

Select = Callable[[str], pa.Table]
"""Returns what a query gives of `lattice`, which it calls `source`."""


def device_rows(select: Select) -> list[dict[str, Any]]:
    """Return all member commands, and of all other rows the newest of each device or lander.

    Of the windows that lack readings all rows of the newest version.

    Beside a promise, how far its device has promised under the same log: `furthest_us`.
    """
    named = ", ".join(LANDED)
    query = (
        f"SELECT {named}, furthest_us FROM (SELECT {named}, max(low_us) OVER (PARTITION BY kind, "  # noqa: S608 - ours
        "device, changed) AS furthest_us, row_number() OVER (PARTITION BY kind, device, "
        f"lander ORDER BY {_NEWEST_FIRST}) AS place, rank() OVER (PARTITION BY kind, device ORDER "
        "BY incarnation DESC, nonce DESC, seq DESC) AS version_place FROM source "
        f"WHERE {_IS_NO_PANE} AND {one_of('kind', DEVICE_KINDS)}) "
        f"WHERE place = 1 OR kind = '{MEMBER}' OR (kind = '{BEGUN}' AND version_place = 1)"
    )
    rows: list[dict[str, Any]] = select(query).to_pylist()
    return rows


def steps(select: Select, waits_us: Collection[int], control: int | None = None) -> list[Step]:
    """Return the steps of the promises that were their device's newest when they came.

    Of those that come at about the same time the highest, as `lasp_edge.protocol.waiting.stair`
    keeps it.

    Args:
        select: gives rows of `lattice`.
        waits_us: X of all that waits.
        control: the digest of the log of parameters under which they were made; None for any.
    """
    known = WindowWaiting.of(waits_us).stairs
    if not known:
        return []
    least_us = grid_us(min(known))
    under = "" if control is None else f" AND changed = {control}"
    promises = (
        f"SELECT device, received_us, seq, low_us, least(low_us, received_us) AS lead_us, {_LIFE} "  # noqa: S608 - numbers
        f"AS life FROM source WHERE {_IS_NO_PANE} AND kind = '{PROMISE}'{under}"
    )
    earlier = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    beside_earlier = (
        "SELECT *, max(life) OVER (PARTITION BY device "  # noqa: S608 - ours
        f"ORDER BY received_us, life, seq {earlier}) AS known_life, "
        "max(seq) OVER (PARTITION BY device, life "
        f"ORDER BY received_us, seq {earlier}) AS known_seq FROM ({promises})"
    )
    news = (
        f"SELECT received_us, lead_us, received_us / {least_us} AS place, max(lead_us) OVER "  # noqa: S608 - ours
        f"(PARTITION BY received_us / {least_us}) AS highest_us FROM ({beside_earlier}) "
        f"WHERE low_us IS NOT NULL AND low_us <> {BOTTOM_US} AND (known_life IS NULL OR "
        "life > known_life OR (life = known_life AND seq > known_seq))"
    )
    query = (
        f"SELECT min(received_us) AS received_us, lead_us FROM ({news}) "  # noqa: S608 - ours
        "WHERE lead_us = highest_us GROUP BY place, lead_us"
    )
    found = select(query)
    return [Step(*each) for each in zip(*(column.to_pylist() for column in found), strict=True)]
