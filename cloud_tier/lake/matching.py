"""What a deletion is to take, and whether the lake has any of it.

A name that was mistyped must not pass for one that is deleted.
"""

from difflib import get_close_matches
from typing import Final, NamedTuple

from deltalake import CommitProperties, DeltaTable

from cloud_tier.lake.definitions import definitions
from cloud_tier.lake.keyed_rows import NewestOfKey, delete_rows, has_own_key, newest_of_key
from cloud_tier.lake.query import selected
from cloud_tier.lake.shapes import SHAPES
from cloud_tier.lake.sqltext import standard_literal
from cloud_tier.lake.tables import PANE, PROMISE, VARIABLE, LakeTables
from lasp_edge.errors import NotFound
from lasp_edge.tool.times import shown_time

_OF_DEVICES: Final = f"kind IN ('{PANE}', '{VARIABLE}', '{PROMISE}')"
_FEW_NAMES: Final = 10
"""Names that a line lists; of more it has those that are near."""


class Wanted(NamedTuple):
    """The rows that are to be forgotten.

    Attributes:
        device: whose; empty for all devices.
        key: of which key; None for all keys.
        before_us: only what is of a time before that; None for all.
    """

    device: str = ""
    key: str | None = None
    before_us: int | None = None

    def rows(self, kinds: str, time: str) -> str:
        """Return which rows of a table these are, as SQL.

        Args:
            kinds: a condition that they fulfil besides; empty for none.
            time: the column of a row's time.
        """
        found = [kinds] if kinds else []
        if self.device:
            found.append(f"device = {standard_literal(self.device)}")
        if self.key is not None:
            found.append(f"key = {standard_literal(self.key)}")
        if self.before_us is not None:
            found.append(f"{time} < {self.before_us}")
        return " AND ".join(found)

    def entries(self, table: DeltaTable, kinds: str) -> str:
        """Return which rows of `landing` or `lattice` have it in their columns, as SQL.

        Rows of results that belong to a key have it within: see `rows_of_key`.
        """
        found = self.rows(kinds, "pane_us")
        return found if self.key is None else f"{found} AND {has_own_key(table)}"

    def rows_of_key(self, table: DeltaTable) -> list[NewestOfKey]:
        """Return the rows of results in `landing` or `lattice` that belong to the key; or none."""
        if self.key is None:
            return []
        where = self._replace(key=None).rows(f"kind = '{PANE}'", "pane_us")
        return newest_of_key(table, where, self.key)

    def delete_rows_of_key(self, table: DeltaTable, by: CommitProperties) -> int:
        """Delete the rows that `rows_of_key` has, and what is older; return how many went."""
        return delete_rows(table, self.rows_of_key(table), by)

    def rejected(self) -> str:
        """Return which rows of `rejects` are of the device, as SQL."""
        old = "" if self.before_us is None else f" AND received_us < {self.before_us}"
        return f"topic LIKE '%/' || {standard_literal(self.device)}{old}"

    def __str__(self) -> str:
        """Return what is wanted, for people, without the time."""
        of = [f"the device {self.device!r}"] if self.device else []
        of += [] if self.key is None else [f"the key {self.key!r}"]
        return " and ".join(of)


def check_there(tables: LakeTables, wanted: Wanted) -> None:
    """Check that a lake has rows that are wanted.

    Raises:
        NotFound: it has none; the line names near ones, or since when there are some.
    """
    if _is_there(tables, wanted):
        return
    always = wanted._replace(before_us=None)
    if wanted.before_us is not None and _is_there(tables, always):
        first_us = _first_us(tables, always)
        since = "" if first_us is None else f"; the oldest is of {shown_time(first_us)} UTC"
        before = shown_time(wanted.before_us)
        raise NotFound(f"{tables.root} has nothing of {wanted} from before {before} UTC{since}")
    raise NotFound(f"{tables.root} has nothing of {wanted}; {_near(tables, wanted)}")


class StillCounted(NamedTuple):
    """Where the readings of a key still count when the key is forgotten.

    Attributes:
        names: the windows, values and results that have other keys, or none.
        devices: whose readings they are.
    """

    names: tuple[str, ...]
    devices: tuple[str, ...]


def still_counted(tables: LakeTables, wanted: Wanted) -> StillCounted:
    """Return where the readings of a key still count, as long as it is not forgotten.

    What of a lake is made of the same events it does not know, so these are all that may be.
    """
    if wanted.key is None:
        return StillCounted((), ())
    has_key = f"max(CASE WHEN key = {standard_literal(wanted.key)} THEN 1 ELSE 0 END) AS has_key"
    found: dict[str | int, int] = {}  # a stream, or a name
    query = f"SELECT stream, {has_key} FROM source WHERE kind = '{PANE}' GROUP BY stream"  # noqa: S608 - quoted
    for path in (tables.lattice, tables.landing):
        for row in selected(tables.table(path), query).to_pylist():
            found[row["stream"]] = max(row["has_key"], found.get(row["stream"], 0))
        found |= {row.stream: 1 for row in Wanted(key=wanted.key).rows_of_key(tables.table(path))}
    names = []
    for kind, shape in SHAPES.items():
        query = f'SELECT "{shape.named}" AS name, {has_key} FROM source GROUP BY 1'  # noqa: S608 - quoted
        path = f"{tables.root}/{shape.table}"
        rows = (
            selected(tables.table(path), query).to_pylist()
            if DeltaTable.is_deltatable(path)
            else []
        )
        of_rows = {row["name"]: row["has_key"] for row in rows}
        for name, meaning in definitions(tables, kind).items():
            known = {of_rows.get(name), found.get(meaning.stream)} - {None}
            if known == {0}:
                names.append(name)
    return StillCounted(tuple(names), _devices(tables, wanted))


def _devices(tables: LakeTables, wanted: Wanted) -> tuple[str, ...]:
    found: set[str] = set()
    for table in map(tables.table, (tables.lattice, tables.landing)):
        where = wanted.entries(table, f"kind = '{PANE}'")
        query = f"SELECT DISTINCT device FROM source WHERE {where}"  # noqa: S608 - quoted
        found.update(row["device"] for row in selected(table, query).to_pylist())
        found.update(row.device for row in wanted.rows_of_key(table))
    return tuple(sorted(found))


def has_keys(tables: LakeTables) -> bool:
    """Return whether a pane or value of a lake has a key."""
    return any(_names(tables, "key"))


def count(table: DeltaTable, where: str) -> int:
    """Return how many rows of a table fulfil a condition."""
    found: int = selected(table, f"SELECT count(*) AS n FROM source WHERE {where}").to_pylist()[0][  # noqa: S608 - ours
        "n"
    ]
    return found


def _is_there(tables: LakeTables, wanted: Wanted) -> bool:
    kinds = _OF_DEVICES if wanted.before_us is None else f"kind = '{PANE}'"
    entries = [tables.table(path) for path in (tables.lattice, tables.landing)]
    if any(count(table, wanted.entries(table, kinds)) for table in entries):
        return True
    places = [(tables.results, wanted.rows("", "time_us"))]
    if not wanted.device:  # rows whose panes are gone, and that end by then
        places.append((tables.windows, wanted.rows("", "end_us - 1")))
        places += [(tables.globals, wanted.rows("", ""))] if wanted.before_us is None else []
    elif wanted.key is None:
        places.append((tables.rejects, wanted.rejected()))
    there = [each for each in places if DeltaTable.is_deltatable(each[0])]
    return any(count(tables.table(path), where) for path, where in there) or any(
        map(wanted.rows_of_key, entries)
    )


def _first_us(tables: LakeTables, wanted: Wanted) -> int | None:
    found: list[int | None] = []
    for table in map(tables.table, (tables.lattice, tables.landing)):
        where = wanted.entries(table, f"kind = '{PANE}'")
        query = f"SELECT min(pane_us) AS first_us FROM source WHERE {where}"  # noqa: S608 - quoted
        found.append(selected(table, query).to_pylist()[0]["first_us"])
        found += [row.pane_us for row in wanted.rows_of_key(table)]
    return min((each for each in found if each is not None), default=None)


def _near(tables: LakeTables, wanted: Wanted) -> str:
    """Return which names there are in place of those that are wanted."""
    devices = _names(tables, "device")
    if wanted.device and wanted.device not in devices:
        named = "devices", wanted.device, devices, "`lasp-edge lake status --json` has all"
    else:
        listed = "`lasp-edge windows NAME --csv` has all, with --lake"
        named = "keys", wanted.key or "", _names(tables, "key"), listed
    what, name, names, listed = named
    if len(names) <= _FEW_NAMES:
        listed = ", ".join(map(repr, filter(None, names)))
        return f"{what}: {listed}" if listed else f"it has no {what}"
    near = " or ".join(map(repr, get_close_matches(name, names)))
    meant = f"did you mean {near}? Of " if near else "of "
    return f"{meant}{len(names):,} {what} {listed}"


def _names(tables: LakeTables, column: str) -> list[str]:
    found: set[str | None] = set()
    for table in map(tables.table, (tables.lattice, tables.landing)):
        where = f"{_OF_DEVICES} AND {has_own_key(table)}" if column == "key" else _OF_DEVICES
        found |= _distinct(table, column, where)
    if column == "key" and DeltaTable.is_deltatable(tables.results):
        found |= _distinct(tables.table(tables.results), column, "true")
    return sorted({name for name in found if name is not None})


def _distinct(table: DeltaTable, column: str, where: str) -> set[str | None]:
    query = f"SELECT DISTINCT {column} AS name FROM source WHERE {where}"  # noqa: S608 - ours
    return set(selected(table, query).column("name").to_pylist())
