"""What a job merges: a program's plan into a lake, and for which devices it waits."""

from dataclasses import dataclass
from functools import cached_property

from cloud_tier.job.opened import OpenTables
from cloud_tier.lake.definitions import since_us
from cloud_tier.lake.tables import LakeTables
from lasp_edge.folds.columns import Column
from lasp_edge.language.declarations import DynamicFold, StreamResult, Window
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.lake_columns import CONTROL_ENTRY, RESULT_ROW
from lasp_edge.protocol.waiting import listen_us, waits_of

_DAY_US = 86_400_000_000


@dataclass(frozen=True)
class Job:
    """A program over a lake.

    Attributes:
        plan: of the program.
        lake: its tables exist.
        roster: the devices that are expected; None for every device that ever sent a promise.
        dead_after_us: a device that was silent for longer is not waited for.
        retain_us: windows that ended further below the frontier are never recomputed.
        tentative_after_us: X of windows that have none of their own: for how long they wait for
            devices before they have a row (`lasp_edge.protocol.waiting`).
    """

    plan: Plan
    lake: LakeTables
    roster: tuple[str, ...] | None = None
    dead_after_us: int = 60_000_000
    retain_us: int = 7 * _DAY_US
    tentative_after_us: int = 0

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every column of the program's partials, sorted by name."""
        return tuple(self.plan.columns.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of these columns."""
        return tuple(self.plan.columns)

    @property
    def landed_names(self) -> tuple[str, ...]:
        """The columns that landed rows have beside the lake's own."""
        row = (RESULT_ROW,) if self.results else ()
        entry = (CONTROL_ENTRY,) if self.plan.parameters else ()
        streams = self.plan.item_streams.values()
        sent = dict.fromkeys(name for each in streams for name in each.fold.columns_named)
        return (*self.plan.columns, *row, *entry, *sent)

    @property
    def results(self) -> tuple[StreamResult, ...]:
        """The program's results."""
        return tuple(self.plan.stream_results.values())

    @property
    def windows(self) -> tuple[Window, ...]:
        """The program's windows."""
        return tuple(self.plan.windows.values())

    @property
    def has_parameters(self) -> bool:
        """Whether operators can change the program's windows."""
        return bool(self.plan.parameters)

    @property
    def folds(self) -> tuple[DynamicFold, ...]:
        """The program's dynamic folds."""
        return tuple(self.plan.dynamic_folds.values())

    @cached_property
    def waits(self) -> dict[str, int]:
        """X of each window by name."""
        return waits_of(self.windows, self.tentative_after_us)

    @property
    def waits_us(self) -> tuple[int, ...]:
        """X of all that waits: of each window, and of streams over the fleet."""
        of_order = (self.tentative_after_us,) if self.plan.fleet_results else ()
        return (*self.waits.values(), *of_order)

    @property
    def listen_us(self) -> int:
        """For how long a job without a roster listens before anything is final."""
        return listen_us(self.waits, self.dead_after_us)

    @cached_property
    def since_us(self) -> dict[str, int]:
        """Since when the lake has windows that came later, by name."""
        return since_us(self.lake)

    @cached_property
    def tables(self) -> OpenTables:
        """The lake's tables, held open."""
        return OpenTables(self.lake)
