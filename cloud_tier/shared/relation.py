"""The join of shared variables as relational algebra, in SQL that Spark and DataFusion both take.

    merged     rows that are alike are one: the join, a hash aggregate over numbers
    counting   of these, what is not gone and the greatest of each entry; runs of what is gone,
               put together. It is the same state in the fewest rows
    values     what people ask for: one row for each element, each key, each counter

Whether a live write is gone is read off one sweep over the writes of its replica in their order:
some run that began no later must reach it. So a run costs one row, however long it is.

Source: Paulo Sérgio Almeida, Ali Shoker, Carlos Baquero, "Delta State Replicated Data Types", JPDC
111, 2018 (irreducibles; causal contexts).
"""

from collections.abc import Iterable
from typing import Final

from cloud_tier.shared.rows import ENTRY, GONE, LIVE, SharedRow

NAMED: Final = ("variable", "stream")
"""What stands before a row in the table: the variable's name, and the id of its meaning."""
VALUES: Final = (*NAMED, "part", "key", "value")
"""The columns of `values`."""

_JOINED = ("rank", "upto")
_STAMP = "received_us"
_IDENTITY = (*NAMED, *(name for name in SharedRow._fields if name not in _JOINED))
_COLUMNS = (*_IDENTITY, *_JOINED, _STAMP)
_CONTEXT = ("stream", "context", "device", "incarnation", "nonce")
_WRITE = (*_CONTEXT, "seq")
_VALUE = ("stream", "part", "key", "entry")


def merged(source: str, streams: Iterable[int] | None = None) -> str:
    """Return the query for the join of rows, each irreducible once.

    Args:
        source: the table, or a query in parentheses.
        streams: the variables, by the ids of their meanings; None for all.
    """
    only = "" if streams is None else f" WHERE stream IN ({_listed(map(str, streams)) or 'NULL'})"
    greatest = _listed(f"max({name}) AS {name}" for name in _JOINED)
    return (
        f"SELECT {_listed(_IDENTITY)}, {greatest}, min({_STAMP}) AS {_STAMP} "  # noqa: S608 - our own names
        f"FROM {source}{only} GROUP BY {_listed(_IDENTITY)}"
    )


def counting(source: str, streams: Iterable[int] | None = None) -> str:
    """Return the query for the rows that count, and for what is gone, in the fewest rows.

    Args are those of `merged`.
    """
    return f"WITH {_ctes(source, streams)} SELECT {_listed(_COLUMNS)} FROM counting"  # noqa: S608


def values(source: str, streams: Iterable[int] | None = None) -> str:
    """Return the query for the values of variables, with the columns `VALUES`.

    Args are those of `merged`.
    """
    newest = f"row_number() OVER (PARTITION BY {_listed(_VALUE)} ORDER BY rank DESC, tie DESC)"
    place = _listed((*NAMED, "part", "key"))
    return f"""WITH {_ctes(source, streams)},
shown AS (
  SELECT {place}, value AS shown_value, sign, CASE WHEN sign < 0 THEN -rank ELSE rank END AS amount
  FROM (SELECT *, {newest} AS newest FROM counting WHERE kind = '{ENTRY}') AS entries
  WHERE newest = 1 AND (value IS NOT NULL OR sign IS NOT NULL)
  UNION ALL
  SELECT {place}, value AS shown_value, sign, rank AS amount
  FROM counting WHERE kind = '{LIVE}' AND value IS NOT NULL)
SELECT {place}, coalesce(shown_value, CAST(sum(amount) AS STRING)) AS value
FROM shown GROUP BY {place}, shown_value HAVING coalesce(min(abs(sign)), 1) = 1"""  # noqa: S608


def _ctes(source: str, streams: Iterable[int] | None) -> str:
    write, context = _listed(_WRITE), _listed(_CONTEXT)
    entry = _listed(dict.fromkeys(("kind", *_VALUE, *_WRITE)))
    live_first = f"CASE WHEN kind = '{LIVE}' THEN 0 ELSE 1 END, tie DESC"
    earlier = f"PARTITION BY {context} ORDER BY seq ROWS BETWEEN UNBOUNDED PRECEDING AND"
    of_run = tuple(name for name in _IDENTITY if name != "seq")
    return f"""merged AS ({merged(source, streams)}),
swept AS (
  SELECT *, max(upto) OVER (PARTITION BY {context} ORDER BY seq) AS reach,
    first_value(mark) OVER (PARTITION BY {write} ORDER BY {live_first}) AS true_mark
  FROM merged WHERE seq > 0),
standing AS (
  SELECT {_listed(_COLUMNS)} FROM merged WHERE seq = 0
  UNION ALL
  SELECT {_listed(_COLUMNS)} FROM swept
  WHERE kind <> '{GONE}' AND (reach IS NULL OR reach < seq) AND mark = true_mark),
ranked AS (
  SELECT *, row_number() OVER (PARTITION BY {entry} ORDER BY rank DESC, tie DESC) AS place
  FROM standing),
bounded AS (
  SELECT *, max(upto) OVER ({earlier} 1 PRECEDING) AS before FROM merged WHERE kind = '{GONE}'),
numbered AS (
  SELECT *, sum(CASE WHEN seq <= before + 1 THEN 0 ELSE 1 END) OVER ({earlier} CURRENT ROW) AS run
  FROM bounded),
runs AS (
  SELECT {_listed(of_run)}, min(seq) AS seq, max(rank) AS rank, max(upto) AS upto,
    min({_STAMP}) AS {_STAMP}
  FROM numbered GROUP BY {_listed(of_run)}, run),
counting AS (
  SELECT {_listed(_COLUMNS)} FROM ranked WHERE place = 1
  UNION ALL
  SELECT {_listed(_COLUMNS)} FROM runs)"""  # noqa: S608 - our own names


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
