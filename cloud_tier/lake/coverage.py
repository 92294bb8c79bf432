"""Which devices results wait for, and how far each has come: the frontier, read without Spark.

The rule is `lasp_edge.protocol.frontier`'s, over the same rows that the job has merged. The clock
of this machine counts for one thing only: a lander's that is far ahead of it, and of all promises,
is not believed.
"""

import time
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable

from cloud_tier.lake.controls import stored_log
from cloud_tier.lake.promises import device_rows
from cloud_tier.lake.query import selected
from cloud_tier.lake.tables import MEMBER, PROMISE, TICK, LakeTables
from crdts import Frontier, Member, Membership, Version
from crdts.frontier import BOTTOM_US, Promise
from lasp_edge.protocol.frontier import Coverage, Listening, Liveness, Tick, advance, void
from lasp_edge.protocol.waiting import DEAD_AFTER_US, Step, steps_of

DEAD_AFTER_S: Final = DEAD_AFTER_US / 1_000_000
"""In seconds: how long a silent device is waited for unless one says otherwise."""

_LOOKS_BACK_US: Final = (0, 3_600_000_000, 86_400_000_000, None)
"""In microseconds: how far behind the frontier rows of windows are looked for, at last all."""


class DeviceState(StrEnum):
    """How a device counts for the frontier."""

    LIVE = "live"
    """It is waited for, and has promised how far it has come."""
    AWAITED = "never heard"
    """It is on the roster and is waited for, but has not spoken yet."""
    DONE = "done"
    """All of it has come."""
    EXCLUDED = "not waited for"
    """It was silent for too long, or its clock is not right, so it cannot promise anything."""
    RETIRED = "retired"
    """An operator took it out; it is not expected any more."""


class DeviceCoverage(NamedTuple):
    """How far one device has come.

    Attributes:
        device: its name.
        state: how it counts for the frontier.
        low_us: it has promised to send nothing older, in microseconds since the epoch; None where
            it has not.
        heard_us: when that was first heard, by the lander's clock.
        holds: whether the frontier cannot move before this device does.
    """

    device: str
    state: DeviceState
    low_us: int | None
    heard_us: int | None
    holds: bool


class FleetCoverage(NamedTuple):
    """How far results are final, and why not further.

    Attributes:
        recorded_us: the frontier that the windows record; None where nothing is final.
        frontier_us: the frontier that the merged promises allow.
        now_us: the latest clock of a lander; None before one has listened.
        devices: every device that has landed or is on the roster, by name.
        landers: the newest clock of each lander, as far as it is believed.
    """

    recorded_us: int | None
    frontier_us: int | None
    now_us: int | None
    devices: tuple[DeviceCoverage, ...]
    landers: Mapping[str, Listening] = MappingProxyType({})

    @property
    def lag_us(self) -> int | None:
        """How far the frontier is behind the lander's clock; None where one of them is missing."""
        if self.frontier_us is None or self.now_us is None:
            return None
        return self.now_us - self.frontier_us


def fleet_coverage(
    tables: LakeTables,
    roster: Collection[str] | None = None,
    dead_after_us: int = round(DEAD_AFTER_S * 1e6),
) -> FleetCoverage:
    """Return how far results are final, for a job of this roster and patience.

    Args:
        tables: of the lake.
        roster: the devices that are expected; None for all that have landed.
        dead_after_us: a device that was silent for longer is not waited for.

    Raises:
        NotFound: there is no such lake.
    """
    lattice = tables.table(tables.lattice)
    rows = device_rows(partial(selected, lattice))
    log = stored_log(lattice)
    liveness = liveness_of(rows, None if log is None else log.mark)
    recorded_us = recorded_frontier(tables)
    coverage = advance(recorded_us, liveness, roster, dead_after_us)
    listening = liveness.listening
    return FleetCoverage(
        recorded_us,
        coverage.frontier,
        None if listening is None else listening.now_us,
        tuple(_devices(liveness, coverage)),
        liveness.clocks,
    )


def recorded_frontier(tables: LakeTables) -> int | None:
    """Return the frontier that the windows record: the greatest of their rows.

    Where there are no windows, it is that of the rows of results, which are written before them.
    """
    for path in (tables.windows, tables.results):
        if DeltaTable.is_deltatable(path):  # an earlier release made fewer
            found = _greatest_frontier(tables.table(path))
            if found is not None:
                return found
    return None


def _greatest_frontier(table: DeltaTable) -> int | None:
    """Return the greatest frontier of a table's rows: of its files' statistics, where all have."""
    files = pa.table(table.get_add_actions(flatten=True))
    names = ("max.frontier", "null_count.frontier", "num_records")
    if set(names) <= set(files.column_names):
        rows = list(zip(*(files[name].to_pylist() for name in names), strict=True))
        if all(most is not None or nulls == count for most, nulls, count in rows):
            return max((most for most, _, _ in rows if most is not None), default=None)
    query = "SELECT max(frontier) AS frontier FROM source"
    found: int | None = selected(table, query).to_pylist()[0]["frontier"]
    return found


def passed_frontiers(
    tables: LakeTables,
    names: Collection[str],
    frontier: int | None,
    noted: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, int]:
    """Return how far the frontier is known to have passed each window: as its rows record it.

    Args:
        tables: of the lake.
        names: of the windows; most have rows of the last steps, and older files stay closed.
        frontier: the greatest one.
        noted: how far it had passed windows for sure, as was noted at some time; a window without
            new rows is not looked for behind that.
    """
    found: dict[str, int] = {}
    if frontier is None:
        return found
    for back_us in _LOOKS_BACK_US:
        where = "" if back_us is None else f"WHERE frontier >= {frontier - back_us} "
        query = f"SELECT window, max(frontier) AS frontier FROM source {where}GROUP BY window"  # noqa: S608 - ours
        rows = selected(tables.table(tables.windows), query).to_pylist()
        found = {row["window"]: row["frontier"] for row in rows if row["frontier"] is not None}
        if set(names) <= found.keys() | noted.keys():
            break
    for name, noted_us in noted.items():
        found[name] = min(max(noted_us, found.get(name, noted_us)), frontier)
    return found


def liveness_of(rows: Iterable[Mapping[str, Any]], control: int | None = None) -> Liveness:
    """Return the promises, ticks and member commands in rows of `landing` or `lattice`.

    Args:
        rows: they may repeat.
        control: the digest of the log of parameters: a promise that was made under
            another log only shows that its device is there. None without parameters.
    """
    promises, membership = Frontier(), Membership()
    ticks, furthest_us = dict[str, Tick](), dict[str, int]()
    for row in rows:
        if row["kind"] == TICK:
            tick = Tick(row["seq"], Listening(row["now_us"], row["since_us"]))
            ticks[row["lander"]] = max(tick, ticks.get(row["lander"], tick))
        elif row["kind"] == MEMBER:
            membership |= Membership({row["device"]: member_in(row)})
        elif row["kind"] == PROMISE:
            promise = promise_in(row)
            if control is not None and row["changed"] != control:
                promise = void(promise)
            elif (row.get("furthest_us") or BOTTOM_US) > (promise.low_us or BOTTOM_US):
                furthest_us[row["device"]] = row["furthest_us"]
            promises |= Frontier({row["device"]: promise})
    return Liveness(promises, ticks, membership, {}, host_us(), furthest_us)


def host_us() -> int:
    """Return the clock of this machine, in microseconds since the epoch."""
    return time.time_ns() // 1000  # noqa: TID251 - only to doubt a lander's


def promised_steps(
    rows: Iterable[Mapping[str, Any]], known: Mapping[str, Promise] = MappingProxyType({})
) -> list[Step]:
    """Return the steps of the promises that were news, from which follows how long windows wait.

    Args:
        rows: of `landing` or `lattice`.
        known: the newest promise of each device before them.
    """
    promises = [(row["device"], promise_in(row)) for row in rows if row["kind"] == PROMISE]
    newest, news = dict(known), []
    for device, promise in sorted(promises, key=lambda each: (each[1].heard_us, each[1].version)):
        if device not in newest or promise > newest[device]:
            newest[device] = promise
            news.append(promise)
    return steps_of(news)


def member_in(row: Mapping[str, Any]) -> Member:
    """Return the decision on a device that a row of `landing` or `lattice` holds."""
    version = Version(row["incarnation"], row["nonce"], row["seq"])
    return Member(row["control"], row["retired"], version)


def promise_in(row: Mapping[str, Any]) -> Promise:
    """Return the promise that a row of `landing` or `lattice` holds."""
    version = Version(row["incarnation"], row["nonce"], row["seq"])
    return Promise(version, row["low_us"], bool(row["done"]), row["received_us"])


def _devices(liveness: Liveness, coverage: Coverage) -> Iterable[DeviceCoverage]:
    promises, retired = liveness.promises.entries, liveness.membership.retired
    states = dict.fromkeys(retired, DeviceState.RETIRED)
    for device in coverage.expected:
        promise = promises.get(device)
        if promise is not None and promise.done:
            states[device] = DeviceState.DONE
        elif device in coverage.excluded:
            states[device] = DeviceState.EXCLUDED
        else:
            states[device] = DeviceState.AWAITED if promise is None else DeviceState.LIVE
    awaited = {device for device, state in states.items() if state is DeviceState.AWAITED}
    live_us = [
        low_us
        for device, state in states.items()
        if state is DeviceState.LIVE and (low_us := promises[device].low_us) is not None
    ]
    least_us = min(live_us, default=None)
    for device in sorted(states):
        promise, is_live = promises.get(device), states[device] is DeviceState.LIVE
        low_us = None if promise is None else promise.low_us
        holds = device in awaited or (not awaited and is_live and low_us == least_us)
        heard_us = None if promise is None else promise.heard_us
        yield DeviceCoverage(device, states[device], low_us, heard_us, holds)
