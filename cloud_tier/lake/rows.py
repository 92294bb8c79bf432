"""The rows of streams' results as Arrow tables, without Spark or the program."""

from collections.abc import Sequence
from typing import Unpack

import pyarrow as pa
from pyarrow import compute

from cloud_tier.lake.results import Choice, RevisedRows, of_time
from lasp_edge.tool.times import Time


class StreamRows(RevisedRows):
    """The rows of a stream's result: one for each place in the stream, in revisions.

    | column | type | what it is |
    |---|---|---|
    | `device` | string | the device whose readings the row was made from |
    | `key` | string | the key of the scan that made it; "" without a key |
    | `time_us` | int64 | its time, by the readings' own times |
    | `place` | string | where it stands in the order of its device: texts are ordered as rows are |
    | a part, such as `difference` | int64, float64 or string | the part, in its unit |
    | a part in steps, such as `difference_q` | int64 | stored and exact |
    | `present` | bool | false where it was taken back: then the parts are null |
    | `status` | string | "tentative", "final" or "revised" |
    | `revision` | int32 | 0, 1, 2, ...: how often the row had changed |
    | `frontier` | int64 | how far results were final when the row was written, in microseconds; \
null before anything was |

    Attributes:
        columns: the names, in this order.
    """

    def current(self, **only: Unpack[Choice]) -> pa.Table:
        """Return the newest row of each place that is present, sorted by key and time.

        Args:
            only: `key`, `since`, `until`, `as_of`, `columns`, as `Choice` says.

        Raises:
            NotFound: there is no such lake.
            ValueError: there is no such column, or a time has no zone.
        """
        return self._chosen(**only)

    def revisions(self, **only: Unpack[Choice]) -> pa.Table:
        """Return all rows, also those of places that were taken back.

        They are sorted by key, time and `revision`. Args and errors are those of `current`.
        """
        return self._chosen(**only, all_revisions=True)

    def _chosen(
        self,
        *,
        key: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        as_of: Time | None = None,
        columns: Sequence[str] | None = None,
        all_revisions: bool = False,
    ) -> pa.Table:
        wanted = self.columns if columns is None else tuple(columns)
        needed = dict.fromkeys((*wanted, "key", "present", *self._shape.entry, "revision"))
        conditions = of_time("time_us", since, until, as_of)
        found = self._rows(conditions, tuple(needed), all_revisions=all_revisions)
        # A row may have gone from one key to another: the newest row decides.
        if key is not None:
            found = found.filter(compute.equal(found.column("key"), key))
        if not all_revisions:
            found = found.filter(found.column("present"))
        order = [(name, "ascending") for name in ("key", *self._shape.entry, "revision")]
        return found.sort_by(order).select(wanted)
