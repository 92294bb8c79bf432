"""A row of a window over a fleet; its columns are declared here, once, for a lake and a gateway.

A row has an identity, the columns of its fold, and a record of how it came about. The record is
`FleetRow`'s last fields: from their annotations follow the lake's table and the comments on its
columns, a gateway's file, what a step of Spark compares and what commands print. So a further
column is a field here, and its value where a gateway makes rows (`device_agent.gateway.windows`)
and where Spark does (`cloud_tier.job.windows`, or `formed` where all rows of a window that end
together share it).

    >>> list(WINDOW_RECORD)[:3], COMPARED
    (['devices_in', 'devices_expected', 'excluded'], ('end_us', 'devices_in', 'stream'))
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from operator import attrgetter
from typing import Annotated, Any, Final, NamedTuple, get_args

from lasp_edge.folds.columns import Partial
from lasp_edge.protocol.status import TENTATIVE

COUNTED: Final = ("devices_awaited", "devices_excluded")
"""Columns of a lake: how many devices are in `excluded`. A tentative row waits for the former,
any other is made without the latter."""
COVERED: Final = "covered"
"""A column of a lake: false where the window begins before the lake had its definition, so that it
may lack readings of devices that had not started with it; null where that is unknown."""
MOST_NAMES: Final = 8
"""Names of devices that a row of a lake has, at most: a thousand dead ones would be 9 kB a row."""


class Recorded(NamedTuple):
    """How a field of a row's record is stored, compared and printed.

    Attributes:
        kind: Delta's type of the column.
        column: its name, where that is not the field's.
        is_result: whether a row in which it differs is a new revision.
        is_printed: whether it is in a table for people and in CSV; JSON has every column.
        is_served: whether readers of a lake's or a gateway's windows get it at all.
        text: what it is, as the comment of a lake's column.
    """

    kind: str
    column: str = ""
    is_result: bool = False
    is_printed: bool = True
    is_served: bool = True
    text: str = ""


class WindowStart(NamedTuple):
    """The identity of a row: the window's name, the key and the start."""

    window: str
    key: str
    start_us: int


class FleetRow(NamedTuple):
    """One revision of one window over a fleet.

    Attributes:
        at: its identity.
        end_us: the end of the window, excluded.
        partial: the columns of its fold.
        devices_in: how many devices have a reading in it.
        devices_expected: how many devices of the whole fleet counted when the row was made. Any of
            them may have readings of its key: which do is known only when they have sent them.
        excluded: the devices that had not promised past its end, or that may lack readings in it,
            as their program was changed or a store lost, or as they were retired before they had
            sent all; in a tentative row, those that are waited for. A further row names a device no
            more once that has promised past the end. Where the window is longer than when it was
            final, its row names those that are missing as far as results are final.
        status: tentative, final or revised (`lasp_edge.protocol.status`).
        revision: 0, 1, 2, ...: how often the row had changed.
        frontier_us: how far results were final when it was made; None for nothing yet.
        stream: the stream id of the window's definition.
    """

    at: WindowStart
    end_us: int
    partial: Partial
    devices_in: Annotated[
        int,
        Recorded(
            "integer",
            is_result=True,
            text="devices whose readings are in it, of its key; 0: nobody has any",
        ),
    ]
    devices_expected: Annotated[
        int,
        Recorded(
            "integer",
            text="devices of the whole fleet that counted when the row was made, whether "
            "they have readings of its key or not",
        ),
    ]
    excluded: Annotated[
        tuple[str, ...],
        Recorded(
            "string",
            is_printed=False,
            text="the first 8 devices that are missing, with commas between",
        ),
    ]
    status: Annotated[
        str, Recorded("string", text="tentative, final, or revised after it was final")
    ]
    revision: Annotated[
        int,
        Recorded(
            "integer", text="0, 1, 2, ...: how often the row had changed; the greatest is current"
        ),
    ]
    frontier_us: Annotated[
        int | None,
        Recorded(
            "long",
            "frontier",
            is_printed=False,
            text="up to here results were final when the row was written, "
            "microseconds since 1970, UTC",
        ),
    ]
    stream: Annotated[
        int,
        Recorded(
            "long",
            is_result=True,
            is_served=False,
            text="of the definition; rows of a former one of this name have another",
        ),
    ]

    @property
    def was_over(self) -> bool:
        """Whether results were final up to the window's end when the row was made.

        Else it is tentative, or its window had been final when it was shorter.
        """
        return self.frontier_us is not None and self.end_us <= self.frontier_us

    def result(self) -> tuple[object, ...]:
        """Return what makes a later row differ: a new revision is made for nothing else."""
        return _result_of(self)

    def record(self) -> dict[str, Any]:
        """Return the record by column, as a lake holds it."""
        values = dict(zip(WINDOW_RECORD, self[-len(WINDOW_RECORD) :], strict=True))
        values[COVERED] = None
        return values | missing_record(self.excluded, self.status)

    @classmethod
    def stored(
        cls, at: WindowStart, end_us: int, partial: Partial, record: Mapping[str, Any]
    ) -> "FleetRow":
        """Return the row whose record a table holds, by column."""
        plain = zip(FIELDS, WINDOW_RECORD, strict=True)
        fields = [
            names_in(record[column]) if name in _NAMES else record[column] for name, column in plain
        ]
        return cls._make((at, end_us, partial, *fields))


def missing_record(excluded: Sequence[str], status: str) -> dict[str, Any]:
    """Return the columns of the missing devices in a row of a status."""
    counts = (len(excluded), 0) if status == TENTATIVE else (0, len(excluded))
    return {"excluded": listed(excluded), **dict(zip(COUNTED, counts, strict=True))}


def listed(names: Iterable[str]) -> str:
    """Return the names that a row of a lake has: the first ones of those that are missing."""
    return names_text(nsmallest(MOST_NAMES, names))


def names_text(names: Iterable[str]) -> str:
    r"""Return names with commas between them; one that a name has follows a backslash.

    >>> print(names_text(["attic", "kitchen, left"]), names_in(r"attic,kitchen\, left"))
    attic,kitchen\, left ('attic', 'kitchen, left')
    """
    return ",".join(name.replace("\\", "\\\\").replace(",", "\\,") for name in names)


def names_in(text: str) -> tuple[str, ...]:
    """Return what `names_text` was given."""
    return tuple([_ESCAPED.sub(r"\1", name) for name in _NAME.findall(text)])


_NAME: Final = re.compile(r"(?:\\.|[^,\\])+", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_TYPED: Final = {
    name: get_args(annotation)
    for name, annotation in FleetRow.__annotations__.items()
    if hasattr(annotation, "__metadata__")
}
FIELDS: Final[Mapping[str, Recorded]] = {name: each for name, (_, each) in _TYPED.items()}
"""The fields of the record, in their order."""
OPTIONAL: Final = frozenset(name for name, (of, _) in _TYPED.items() if type(None) in get_args(of))
"""The fields that may be None."""
_NAMES: Final = frozenset(name for name, (of, _) in _TYPED.items() if of == tuple[str, ...])
"""The fields that hold names of devices."""
WINDOW_IDENTITY: Final[Mapping[str, str]] = {
    "window": "string",
    "key": "string",
    "start_us": "long",
    "end_us": "long",
}
"""The columns of a row's identity and its end, by name: Delta's type. The fold's columns follow."""
WINDOW_RECORD: Final[Mapping[str, str]] = {
    each.column or name: each.kind for name, each in FIELDS.items()
}
"""The columns of a row's record, which follow the fold's, by name: Delta's type."""
COMPARED: Final = (
    "end_us",
    *(each.column or name for name, each in FIELDS.items() if each.is_result),
)
"""The columns beside the fold's in which a new revision differs, if its status does not."""
SERVED_BEFORE: Final = tuple(name for name in WINDOW_IDENTITY if name != "window")
"""The columns that readers of one window get, and that stand before the fold's."""
LAKE_RECORD: Final[Mapping[str, str]] = {
    **WINDOW_RECORD,
    **dict.fromkeys(COUNTED, "integer"),
    COVERED: "boolean",
}
"""The columns of a row's record in a lake, by name: Delta's type."""
SERVED_BEHIND: Final = (
    *(each.column or name for name, each in FIELDS.items() if each.is_served),
    *COUNTED,
    COVERED,
)
"""The columns that they get, and that stand behind the fold's."""
NOT_PRINTED: Final = frozenset(
    (
        *(each.column or name for name, each in FIELDS.items() if not each.is_printed),
        *COUNTED,
        COVERED,
    )
)
"""The columns that only whoever looks into a table itself, or asks for JSON, reads."""
_result_of: Final = attrgetter(
    "end_us", *(name for name, each in FIELDS.items() if each.is_result), "partial"
)
