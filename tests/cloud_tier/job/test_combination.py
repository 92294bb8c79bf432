"""Partials combined by Spark are, bit for bit, those that `lasp_edge` combines."""

import random
from functools import reduce

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as sql

from cloud_tier.job.combination import combined, of_pooled, pooled
from lasp_edge.folds import hll
from lasp_edge.folds.columns import Algebra, Column, Op
from lasp_edge.folds.packed import PACKED_COUNT_LIMIT, packed_counts, packed_top
from lasp_edge.folds.signed import packed_values

pytestmark = pytest.mark.spark

COLUMNS = (
    Column("total_q", Op.SUM),
    Column("first_us", Op.MIN, 2**58),
    Column("last_us", Op.MAX, 2**58),
    Column("first_q", Op.AT_MIN, by="first_us"),
    Column("last_q", Op.AT_MAX, by="last_us"),
    Column("when_us", Op.AT_MAX, by="last_us"),
    Column("counts", Op.COUNTS),
    Column("three", Op.TOP, size=3),
    Column("hundred", Op.TOP, size=100),
    Column("seen8", Op.HLL, size=8),
    Column("seen12", Op.HLL, size=12),
    Column("seen14", Op.HLL, size=14),
    Column("signed", Op.VALUES),
)
ALGEBRA = Algebra(COLUMNS)
LEAST, GREATEST = -(2**31) + 1, 2**31 - 1


def partial(draw, samples):
    """Return a partial of so many random samples, over whole ranges."""
    if not samples:
        return ALGEBRA.zero
    values = [
        draw.choice([draw.randint(LEAST, GREATEST), draw.randint(-9, 9)]) for _ in range(samples)
    ]
    values += draw.choices([LEAST, GREATEST, 0], k=1)
    times = sorted(draw.choice([-(2**57), 0, 7, 2**57]) + draw.randrange(3) for _ in range(2))
    buckets = {draw.randint(-(2**15), 2**15 - 1): draw.randint(1, 2**40) for _ in values[:200]}
    buckets |= {draw.randint(-3, 3): draw.choice([1, 255, 2**43]) for _ in values[:5]}
    top = sorted(values, reverse=True)
    images = [hll.image_of(values, column.size) for column in COLUMNS[-4:-1]]
    return (
        draw.randint(-(2**62) + 1, 2**62 - 1),
        *times,
        draw.choice(values),
        draw.choice(values),
        draw.choice([-(2**62) + 1, 0, 2**62 - 1]) or draw.choice(values),
        packed_counts(buckets),
        packed_top(top[:3]),
        packed_top(top[:100]),
        *images,
        packed_values({value: draw.choice([-3, -1, 1, 2, 2**20]) for value in values[:200]}),
    )


def rows_of(spark, groups):
    """Return partials by group as a DataFrame with columns as the lake's."""
    types = {True: pa.binary(), False: pa.int64()}
    fields = [pa.field("key", pa.string()), *(pa.field(c.name, types[c.binary]) for c in COLUMNS)]
    rows = [
        {"key": key, **dict(zip(ALGEBRA_NAMES, each, strict=True))}
        for key, partials in groups.items()
        for each in partials
    ]
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=pa.schema(fields)))


ALGEBRA_NAMES = [column.name for column in COLUMNS]


def plain(value):
    return bytes(value) if isinstance(value, bytearray | bytes) else value and int(value)


def by_key(frame):
    return {
        row["key"]: tuple(plain(row[name]) for name in ALGEBRA_NAMES) for row in frame.collect()
    }


def groups_of(seed):
    """Return groups of few and many, small and large, empty and full partials."""
    draw = random.Random(seed)
    sizes = [0, 1, 2, 6, 7, 8, 9, 23, 24, 25, 30, 300, 383, 384, 385, 400, 1535, 1537, 3000]
    groups = {
        f"{n}": [partial(draw, draw.choice(sizes)) for _ in range(n)] for n in (1, 2, 3, 5, 9)
    }
    groups |= {f"alone {size}": [partial(draw, size)] for size in sizes}
    groups |= {
        f"small {n}": [partial(draw, draw.choice(sizes[:10])) for _ in range(n)] for n in (2, 4, 8)
    }
    return groups | {"nothing": [ALGEBRA.zero] * 2}


def test_partials_combine_to_the_very_bytes_of_the_edge(spark):
    for seed in range(2):
        groups = groups_of(seed)
        frame = rows_of(spark, groups)
        truth = {key: reduce(ALGEBRA.combine, partials) for key, partials in groups.items()}
        found = by_key(frame.groupBy("key").agg(*map(sql.expr, combined(COLUMNS))))
        for key, expected in truth.items():
            for name, one, other in zip(ALGEBRA_NAMES, found[key], expected, strict=True):
                assert one == other, f"{name} of group {key!r}, seed={seed}"


def test_combined_over_pooled_is_combined(spark):
    groups = groups_of(5)
    frame = rows_of(spark, groups).selectExpr("*", "pmod(xxhash64(total_q), 3) AS device")
    devices = frame.groupBy("key", "device").agg(*map(sql.expr, pooled(COLUMNS)))
    truth = {key: reduce(ALGEBRA.combine, partials) for key, partials in groups.items()}
    assert by_key(devices.groupBy("key").agg(*map(sql.expr, of_pooled(COLUMNS)))) == truth


def test_pooled_sums_have_no_limit_of_64_bits_and_keep_their_sign(spark):
    (total,) = (column for column in COLUMNS if column.op is Op.SUM)
    ends = [2**63 - 1, -(2**63), 2**32, -(2**32), 2**32 - 1, -1, 0, 1]
    for values in (ends, [ends[0]] * 9, [ends[1]] * 9, [*ends[1:], -1], [-1], [2**32 - 1]):
        frame = spark.createDataFrame([(value, n % 2) for n, value in enumerate(values)])
        frame = frame.toDF(total.name, "device")
        devices = frame.groupBy("device").agg(*map(sql.expr, pooled([total])))
        (found,) = devices.agg(*map(sql.expr, of_pooled([total]))).collect()
        assert int(found[total.name]) == sum(values)


def test_columns_that_no_row_has_stay_null(spark):
    frame = rows_of(spark, {"": [ALGEBRA.zero]})
    nulls = frame.selectExpr(
        "key", *(f"nullif({name}, {name}) AS {name}" for name in ALGEBRA_NAMES)
    )
    alike = {"": (None,) * len(COLUMNS)}
    assert by_key(nulls.groupBy("key").agg(*map(sql.expr, combined(COLUMNS)))) == alike
    first = nulls.groupBy("key").agg(*map(sql.expr, pooled(COLUMNS)))
    assert by_key(first) == alike
    assert by_key(first.groupBy("key").agg(*map(sql.expr, of_pooled(COLUMNS)))) == alike


def test_count_that_would_not_fit_is_an_error_and_never_wraps(spark):
    half = {"total_q": 0, "counts": packed_counts({5: PACKED_COUNT_LIMIT // 2})}
    rows = [dict.fromkeys(ALGEBRA_NAMES) | half | {"key": ""}] * 2
    frame = spark.createDataFrame(rows, rows_of(spark, {"": [ALGEBRA.zero]}).schema)
    with pytest.raises(PySparkException, match=r"counts reaches 2\*\*47"):
        frame.groupBy("key").agg(*map(sql.expr, combined(COLUMNS))).collect()
