"""What leaves devices for an order over the whole fleet."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from lasp_edge.ordered.sent_items import ItemForm
    from lasp_edge.ordered.sent_outputs import OutputForm


STATED: Final = "g"
"""The key of the entry that states from which shares of a cell a device has gone on."""


@dataclass(frozen=True, slots=True)
class ItemStream:
    """What leaves devices for an order over the fleet: readings, or outputs of a stream of each.

    Attributes:
        name: the event's, or the stream's.
        text: its readings are texts.
        stream: signed 64-bit id of what its items mean.
        outputs: they are outputs of a stream, made of these events: (name, are texts).
        leave_us: for how long one waits for others before it leaves; None: an interval.
        span_us: each cell of items is a pane.
    """

    name: str
    text: bool
    stream: int
    outputs: tuple[tuple[str, bool], ...] = ()
    leave_us: int | None = None
    span_us: ClassVar = 10_000_000
    size_us: ClassVar = 10_000_000

    @property
    def fold(self) -> "ItemForm | OutputForm":
        """The form in which its cells travel."""
        from lasp_edge.ordered import sent_items, sent_outputs  # noqa: PLC0415 - of streams

        if self.outputs:
            return sent_outputs.OutputForm(self.outputs)
        return sent_items.ItemForm(self.text)
