"""SQL over one table of the lake, without Spark: DataFusion, inside the `deltalake` package.

Not `DeltaTable.to_pyarrow_table`: it leaves threads behind that now and then abort the process
when it exits.
"""

from typing import Any

import pyarrow as pa
from deltalake import QueryBuilder

from cloud_tier.lake.tables import LakeTables


def rows(lake: LakeTables, path: str, sql: str) -> list[dict[str, Any]]:
    """Return the rows of a query; the table is called `source` in it.

    Args:
        lake: the lake.
        path: one of its tables.
        sql: a SELECT in DataFusion's dialect.

    Raises:
        NotFound: there is no such table.
    """
    result = QueryBuilder().register("source", lake.table(path)).execute(sql)
    found: list[dict[str, Any]] = pa.table(result).to_pylist()
    return found
