"""Shared variables in the lake: what each means, and its value as the fleet's devices have it.

The table `shared` holds irreducibles (`cloud_tier.shared`), and any reader joins them when it
reads: without Spark, in Spark, or in any tool that runs the text of `query`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable

from cloud_tier.lake.query import selected
from cloud_tier.lake.sqltext import identifier
from cloud_tier.lake.tables import SHARED, LakeTables, arrow_schema
from cloud_tier.shared import relation
from cloud_tier.shared.forms import is_stored, rows_of, state_of
from cloud_tier.shared.rows import SharedRow
from crdts import Lattice, decode, encode
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acceptance import SharedNews
from lasp_edge.protocol.overheard import Overheard

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = arrow_schema(SHARED)


class SharedMeaning(NamedTuple):
    """What a shared variable is.

    Attributes:
        stream: the id of its rows: a hash of all that gives them their meaning.
        bottom: the state that it starts with.
    """

    name: str
    stream: int
    bottom: Lattice


class SharedValues:
    """The value of one shared variable.

    | column | type | what it is |
    |---|---|---|
    | `part` | string | the place in a product, such as "1"; "" where the variable is no product |
    | `key` | string | the keys of maps on the way, as a JSON array; "" where it is no map |
    | `value` | string | a set's element, a register's value, a counter's number, as JSON |

    A set has a row for each element, a map rows for each key, a counter one row. Where nothing was
    written there is no row: the value is then what the variable starts with.

    Args:
        tables: of the lake.
        meaning: of the variable.
    """

    def __init__(self, tables: LakeTables, meaning: SharedMeaning) -> None:
        self._tables, self._meaning = tables, meaning

    def current(self) -> pa.Table:
        """Return the value as rows, sorted by part, key and value.

        >>> lake.shared("opened").current().column_names  # doctest: +SKIP
        ['part', 'key', 'value']

        Raises:
            NotFound: there is no such lake.
        """
        order = "ORDER BY part, key, value"
        text = f"{self.query('source')} {order}"
        return selected(self._tables.table(self._tables.shared), text).select(
            ["part", "key", "value"]
        )

    @property
    def value(self) -> Any:
        """The value in Python, as a device has it: a number, a set, a dictionary ...

        >>> lake.shared("opened").value  # doctest: +SKIP
        frozenset()

        Raises:
            NotFound: there is no such lake.
        """
        return self.state.value

    @property
    def state(self) -> Lattice:
        """The joined state itself, of a type of `crdts`.

        >>> lake.shared("opened").state  # doctest: +SKIP
        GSet(elements=set())

        Raises:
            NotFound: there is no such lake.
        """
        return states(self._tables, [self._meaning])[self._meaning.name]

    def query(self, source: str = "shared") -> str:
        """Return the SELECT that makes `current` of the table `shared`, whatever tool runs it.

        >>> lake.shared("opened").query().startswith("WITH merged AS (")  # doctest: +SKIP
        True

        Args:
            source: under which name the table is known there.
        """
        return relation.values(source, [self._meaning.stream])

    def spark_frame(self, spark: "SparkSession") -> "DataFrame":
        """Return `current`, unsorted, as a frame that Spark computes by itself.

        Args:
            spark: a session that reads Delta tables (`cloud_tier.spark.session.spark_session`).
        """
        found = spark.sql(self.query(f"delta.{identifier(self._tables.shared)}"))
        return found.select("part", "key", "value")


def table_of(parts: Iterable[SharedNews]) -> pa.Table:
    """Return parts of states as rows of `shared`."""
    rows = [
        (part.variable, part.stream, *row, part.received_us)
        for part in parts
        for row in rows_of(part.state)
    ]
    columns = zip(*rows, strict=True) if rows else ((),) * len(SCHEMA)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def state_in(bottom: Lattice, rows: Iterable[Mapping[str, Any]]) -> Lattice:
    """Return the state of rows that count (`relation.counting`)."""
    found = [SharedRow(*(row[name] for name in SharedRow._fields)) for row in rows]
    return state_of(bottom, [row._replace(rank=int(row.rank)) for row in found])


def states(tables: LakeTables, wanted: Iterable[SharedMeaning]) -> dict[str, Lattice]:
    """Return the joined state of each of these variables, by name.

    Raises:
        NotFound: there is no such lake.
    """
    meanings = list(wanted)
    rows = counting(tables.table(tables.shared), [meaning.stream for meaning in meanings])
    by_stream: dict[int, list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        by_stream.setdefault(row["stream"], []).append(row)
    return {
        meaning.name: state_in(meaning.bottom, by_stream.get(meaning.stream, ()))
        for meaning in meanings
    }


def counting(table: DeltaTable, streams: Iterable[int] | None = None) -> pa.Table:
    """Return the rows of the table `shared` that count: the join in the fewest rows."""
    return selected(table, relation.counting("source", streams)).select(SCHEMA.names).cast(SCHEMA)


def overheard(plan: Plan, tables: LakeTables) -> Overheard:
    """Return the shared variables of a program, with what is in the lake of them."""
    meanings = list(stored(plan))
    variables = {meaning.name: (meaning.stream, meaning.bottom) for meaning in meanings}
    return Overheard(variables, states(tables, meanings))


def stored(plan: Plan) -> Iterator[SharedMeaning]:
    """Yield the shared variables of a program whose states become rows."""
    for name, variable in plan.shared_variables.items():
        if variable.bottom is not None and is_stored(variable.bottom):
            yield SharedMeaning(name, plan.shared_streams[name], variable.bottom)


def described(meaning: SharedMeaning, program: str) -> str:
    """Return the description of a shared variable in the table `programs`."""
    plain = {
        "program": program,
        "stream": meaning.stream,
        "type": type(meaning.bottom).__name__,
        "bottom": encode(meaning.bottom).hex(),
    }
    return json.dumps(plain, ensure_ascii=False)


def meaning_of(name: str, description: str) -> SharedMeaning:
    """Return the variable that `described` was given."""
    plain = json.loads(description)
    return SharedMeaning(name, plain["stream"], decode(bytes.fromhex(plain["bottom"])))
