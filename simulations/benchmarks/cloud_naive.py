"""A step of the cloud as one would write it first: what ours is measured against."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from lasp_edge.language.plan import Plan


class Naive:
    """A step as one would write it first: each result by one query, appended once by its number.

    It serves one window and one value without keys, and no frontier at all.

    Args:
        spark: a session.
        made: the program.
        folder: where its tables are made.
    """

    def __init__(self, spark: SparkSession, made: Plan, folder: Path) -> None:
        self._spark = spark
        self._window = made.windows["by_room"]
        self._variable = made.published_folds["here"].stream
        self._paths = {name: str(folder / name) for name in ("lattice", "windows", "globals")}
        self._tables: set[str] = set()

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Merge a batch."""
        entry = "kind, stream, key, pane_us, device, incarnation, nonce"
        batch.createOrReplaceTempView("batch")
        self._append(
            f"SELECT {entry}, max(seq) AS seq, max_by(count, seq) AS count, "  # noqa: S608
            f"max_by(total_q, seq) AS total_q FROM batch GROUP BY {entry}",
            "lattice",
            number,
        )
        touched = self._spark.sql(
            "SELECT min(pane_us), max(pane_us) FROM batch WHERE kind = 'pane'"
        ).first()
        assert touched is not None
        self._show()
        self._append(self._windows(*touched), "windows", number)
        self._append(self._values(), "globals", number)

    def _windows(self, first_us: int, last_us: int) -> str:
        size_us, slide_us = self._window.size_us, self._window.slide_us
        begin_us = first_us - size_us + slide_us
        entries = (
            "SELECT key, pane_us, device, incarnation, nonce, max_by(count, seq) AS count, "  # noqa: S608
            f"max_by(total_q, seq) AS total_q FROM lattice WHERE kind = 'pane' "
            f"AND stream = {self._window.stream} AND pane_us "
            f"BETWEEN {begin_us} AND {last_us + size_us} "
            "GROUP BY key, pane_us, device, incarnation, nonce"
        )
        starts = f"sequence(pane_us - {size_us - slide_us}, pane_us, {slide_us})"
        computed = (
            "SELECT key, start_us, sum(count) AS count, sum(total_q) AS total_q, "  # noqa: S608
            f"count(DISTINCT device) AS devices_in FROM (SELECT *, explode({starts}) AS start_us "
            f"FROM ({entries})) WHERE start_us BETWEEN {begin_us} AND {last_us} "
            "GROUP BY key, start_us"
        )
        current = (
            "SELECT key, start_us, max(revision) AS revision, max_by(count, revision) AS count, "  # noqa: S608
            "max_by(total_q, revision) AS total_q FROM windows "
            f"WHERE start_us BETWEEN {begin_us} AND {last_us} GROUP BY key, start_us"
        )
        return self._differing(computed, current, "key, start_us", "windows")

    def _values(self) -> str:
        entries = (
            "SELECT device, max_by(count, seq) AS count, max_by(total_q, seq) AS total_q "  # noqa: S608
            f"FROM lattice WHERE kind = 'variable' AND stream = {self._variable} GROUP BY device"
        )
        computed = (
            "SELECT '' AS key, sum(count) AS count, sum(total_q) AS total_q, "  # noqa: S608
            f"count(1) AS devices_in FROM ({entries})"
        )
        current = (
            "SELECT key, max(revision) AS revision, max_by(count, revision) AS count, "
            "max_by(total_q, revision) AS total_q FROM globals GROUP BY key"
        )
        return self._differing(computed, current, "key", "globals")

    def _differing(self, computed: str, current: str, identity: str, name: str) -> str:
        if name not in self._tables:
            return f"SELECT *, 0 AS revision FROM ({computed})"  # noqa: S608
        return (
            "SELECT new.*, coalesce(old.revision + 1, 0) AS revision "  # noqa: S608
            f"FROM ({computed}) new LEFT JOIN ({current}) old USING ({identity}) "
            "WHERE NOT (new.count <=> old.count AND new.total_q <=> old.total_q)"
        )

    def _append(self, query: str, name: str, number: int) -> None:
        once = {"txnAppId": "naive", "txnVersion": str(number)}
        writer = self._spark.sql(query).write.format("delta").mode("append").options(**once)
        writer.save(self._paths[name])
        self._tables.add(name)

    def _show(self) -> None:
        for name in self._tables:
            read = self._spark.read.format("delta").load(self._paths[name])
            read.createOrReplaceTempView(name)
