"""How partials combine, as SQL aggregates: bit for bit what `lasp_edge.folds.columns` gives.

One expression an op, so that Spark's own functions do all the work:

    sum              of decimals, so that overflow is an error and never a wrap
    min, max         themselves
    at_min, at_max   min and max of one decimal that holds both columns, taken apart again
    counts           entries of 8 bytes, sorted, and counts of equal buckets added up
    top              values of 4 bytes, sorted, and the first of them kept
    values           entries of 8 bytes, sorted, and signed counts of equal values added up
    hll              the union of Spark's own sketches, its image brought to the canonical one

What has integers only stays in a HashAggregate. Binary columns are collected, in an
ObjectHashAggregate. Where no row has a value the result is NULL: rows of other streams lack the
column. A sample's absence is 0 or X'' instead, and counts as a value.

Source: the table of the canonical image is in `lasp_edge.folds.hll`; Apache DataSketches for Java
writes the "updatable" form, whose registers and sums are the same and whose coupons lie in a hash
table.
"""

from collections.abc import Callable, Iterable
from typing import Final

from cloud_tier.lake.sqltext import identifier
from lasp_edge.folds.columns import TOTAL_LIMIT, Column, Op
from lasp_edge.folds.packed import PACKED_COUNT_LIMIT

_HALF: Final = 2**31
_WHOLE: Final = 2**32

# What tells the forms of an image apart, in its byte 7.
_LIST, _REGISTERS = 8, 10
_LIST_COUPONS: Final = 8
_TABLES: Final = range(5, 15)
"""Logarithms of the hash tables that a set of coupons may have filled."""


def combined(columns: Iterable[Column]) -> list[str]:
    """Return the aggregates that combine partials, each under its column's name."""
    return [f"{combination(column)} AS {identifier(column.name)}" for column in columns]


def pooled(columns: Iterable[Column]) -> list[str]:
    """Return the aggregates whose results `of_pooled` combines: for the first of two levels.

    Images of sketches are not made canonical yet, and a sum of 64-bit entries is two sums of 64
    bits, which some billion entries cannot overflow: Spark adds decimals some ten times slower.
    """
    found = []
    for column in columns:
        name = identifier(column.name)
        if column.op is Op.SUM:
            found += [f"sum({half}) AS {kept}" for half, kept in _halves(column)]
        else:
            found.append(f"{_pool(column)} AS {name}")
    return found


def pooled_names(columns: Iterable[Column]) -> list[str]:
    """Return the names of what `pooled` gives."""
    found = []
    for column in columns:
        halves = [kept for _, kept in _halves(column)]
        found += halves if column.op is Op.SUM else [identifier(column.name)]
    return found


def of_pooled(columns: Iterable[Column]) -> list[str]:
    """Return the aggregates that combine what `pooled` gave, each under its column's name."""
    return [f"{_of_pooled(column)} AS {identifier(column.name)}" for column in columns]


def combination(column: Column) -> str:
    """Return the aggregate that combines one column."""
    return _COMBINATIONS[column.op](column)


def _pool(column: Column) -> str:
    if column.op is not Op.HLL:
        return combination(column)
    # Spark's union of no sketch at all is an empty one of 2**12 registers, whatever ours have.
    united = f"if(count({_not_empty(column)}) = 0, X'', {_union(column)})"
    return _where_any(column, united)


def _of_pooled(column: Column) -> str:
    if column.op is not Op.SUM:
        return combination(column)
    upper, lower = (f"CAST(sum({kept}) AS DECIMAL(38, 0))" for _, kept in _halves(column))
    return f"CAST({upper} * {_WHOLE} + {lower} AS DECIMAL(38, 0))"


def _halves(column: Column) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the upper and the lower half of an entry's 64 bits, and how their sums are named."""
    name = identifier(column.name)
    lower = identifier(f"{column.name}, lower half")
    return (f"shiftright({name}, 32)", name), (f"{name} & {_WHOLE - 1}L", lower)


def _sum(column: Column) -> str:
    return f"sum(CAST({identifier(column.name)} AS DECIMAL(38, 0)))"


def _extreme(column: Column) -> str:
    return f"{column.op}({identifier(column.name)})"


def _beside(column: Column) -> str:
    extreme = "min" if column.op is Op.AT_MIN else "max"
    decides = f"CAST({identifier(column.by)} AS DECIMAL(38, 0))"
    positive = f"({identifier(column.name)} + {TOTAL_LIMIT}L)"  # in the lower half of the decimal
    found = f"{extreme}({decides} * {2 * TOTAL_LIMIT}BD + {positive})"
    return f"CAST(pmod({found}, {2 * TOTAL_LIMIT}BD) AS BIGINT) - {TOTAL_LIMIT}L"


def _counts(column: Column) -> str:
    bucket, number = "substring(entry, 1, 2)", f"{_number('substring(entry, 3, 6)')}"
    begin = f"'bucket', {bucket}, 'count', {number}"
    closed = (
        f"if(done.count < {PACKED_COUNT_LIMIT}L, "
        "concat(done.packed, done.bucket, unhex(lpad(hex(done.count), 12, '0'))), "
        f"raise_error('a count of column {column.name} reaches 2**47'))"
    )
    entries = f"sort_array({_elements(column, 8)})"
    run = (
        f"aggregate({entries}, named_struct('bucket', X'', 'count', 0L, 'packed', X''), "
        f"(done, entry) -> CASE WHEN done.bucket = {bucket} THEN named_struct("
        f"'bucket', done.bucket, 'count', done.count + {number}, 'packed', done.packed) "
        f"WHEN done.count = 0 THEN named_struct({begin}, 'packed', X'') "
        f"ELSE named_struct({begin}, 'packed', {closed}) END, "
        f"done -> if(done.count = 0, X'', {closed}))"
    )
    return _where_any(column, run)


def _values(column: Column) -> str:
    value, number = "substring(entry, 1, 4)", f"({_number('substring(entry, 5, 4)')} - {_HALF}L)"
    entry = f"concat(done.value, unhex(lpad(hex(done.count + {_HALF}L), 8, '0')))"
    closed = (
        f"CASE WHEN done.count = 0 THEN done.packed WHEN abs(done.count) < {_HALF}L "
        f"THEN concat(done.packed, {entry}) "
        f"ELSE raise_error('a count of column {column.name} reaches 2**31') END"
    )
    run = (
        f"aggregate(sort_array({_elements(column, 8)}), "
        "named_struct('value', X'', 'count', 0L, 'packed', X''), "
        f"(done, entry) -> if(done.value = {value}, named_struct("
        f"'value', done.value, 'count', done.count + {number}, 'packed', done.packed), "
        f"named_struct('value', {value}, 'count', {number}, 'packed', {closed})), "
        f"done -> {closed})"
    )
    return _where_any(column, run)


def _top(column: Column) -> str:
    greatest = f"slice(sort_array({_elements(column, 4)}, false), 1, {column.size})"
    return _where_any(column, f"unhex(array_join(transform({greatest}, value -> hex(value)), ''))")


def _hll(column: Column) -> str:
    return _where_any(column, canonical(_union(column), column.size))


def canonical(image: str, lg_k: int) -> str:
    """Return the canonical form of an image that Spark's sketches gave, as SQL text.

    Args:
        image: an "updatable" image of type HLL_8, as SQL text that may stand several times.
        lg_k: the logarithm of its number of registers.
    """
    mode = f"ascii(CAST(substring({image}, 8, 1) AS STRING))"
    zeros = f"if(substring({image}, 7, 1) = X'00', substring({image}, 33, 4), X'00000000')"
    registers = (
        f"concat(X'0A0107{lg_k:02X}0010000A', X'{'00' * 8}', substring({image}, 17, 16), "
        f"{zeros}, X'00000000', substring({image}, 41))"
    )
    places = f"sequence(if({mode} = {_LIST}, 9, 13), length({image}), 4)"
    entries = f"transform({places}, at -> {_reversed(f'substring({image}, at, 4)')})"
    coupons = f"sort_array(filter({entries}, coupon -> coupon <> X'00000000'))"
    few = f"element_at(transform(array({coupons}), coupons -> {_of_coupons(lg_k)}), 1)"
    return f"if({mode} = {_REGISTERS}, {registers}, {few})"


def _of_coupons(lg_k: int) -> str:
    """Return the image of `coupons`: an array of four bytes each, ascending."""
    count = "size(coupons)"
    body = f"unhex(array_join(transform(coupons, coupon -> hex({_reversed('coupon')})), ''))"
    table = " ".join(f"WHEN 4 * {count} <= {3 * 2**lg} THEN X'{lg:02X}'" for lg in _TABLES)
    number = _reversed(f"unhex(lpad(hex({count}), 8, '0'))")
    return (
        f"CASE WHEN {count} = 0 THEN X'' WHEN {count} < {_LIST_COUPONS} "
        f"THEN concat(X'020107{lg_k:02X}0308', unhex(lpad(hex({count}), 2, '0')), X'08', {body}) "
        f"ELSE concat(X'030107{lg_k:02X}', CASE {table} END, X'080009', {number}, {body}) END"
    )


def _reversed(four: str) -> str:
    """Return four bytes in the other order."""
    return f"concat({', '.join(f'substring({four}, {at}, 1)' for at in (4, 3, 2, 1))})"


def _number(packed: str) -> str:
    """Return up to seven bytes, big-endian, as a number."""
    return f"CAST(conv(hex({packed}), 16, 10) AS BIGINT)"


def _union(column: Column) -> str:
    return f"hll_union_agg({_not_empty(column)})"


def _not_empty(column: Column) -> str:
    name = identifier(column.name)
    return f"if(length({name}) > 0, {name}, NULL)"


def _elements(column: Column, width: int) -> str:
    """Return the elements of all values of a column as one array; all have the same width."""
    element = f"substring(packed, at, {width})"
    each = f"transform(sequence(1, length(packed), {width}), at -> {element})"
    return f"flatten(transform(collect_list({_not_empty(column)}), packed -> {each}))"


def _where_any(column: Column, expression: str) -> str:
    return f"if(count({identifier(column.name)}) = 0, NULL, {expression})"


_COMBINATIONS: Final[dict[Op, Callable[[Column], str]]] = {
    Op.SUM: _sum,
    Op.MIN: _extreme,
    Op.MAX: _extreme,
    Op.AT_MIN: _beside,
    Op.AT_MAX: _beside,
    Op.COUNTS: _counts,
    Op.TOP: _top,
    Op.HLL: _hll,
    Op.VALUES: _values,
}
