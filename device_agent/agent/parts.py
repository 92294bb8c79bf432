"""Parts: what the agent's core is made of, and the one contract that all of them keep.

Problem: a feature of the agent needs frames, time, durable state, publications and a place in the
report. If the core knew each feature by name, each new one would be an edit in ten places. Sketch:
a feature is one `Part`; the core is a list of parts, and calls all of them in the same order:

1. The constructor takes the `Agent` first: what all parts share. All that is durable comes from it,
   or from what the store held (`Restored`).
2. `handlers`: a frame goes to every part that takes its kind, in the order of the list. A part that
   cannot use a frame raises `FrameRefusedError`; the core counts it.
   `listens`: so are messages of other programs, by topic.
3. `tick`: what time alone brings.
4. `take_changes`: what must be durable before anything leaves. It is the only way to the store. The
   core adds up the changes of all parts, and its driver commits them in one transaction.
5. `take_notes`: what is worth no commit of its own. The core asks for it in a tick with a commit,
   and at least every ten seconds.
6. `committed`: memory may let go what the store can give back.
7. `publications`: only now, in the order of the list. The core asserts that nothing is uncommitted.

A part may be a gate for the others: while it is `closed`, no part after it publishes anything; and
what it gives as `refusal` of a frame is counted, and no part takes that frame.

`connected`, `unsent` and `succeed` are the three events that concern all parts. A part reads no
clock and draws from no random source but the one it was given. Whatever it raises, in any of these,
is counted with its reason and place (`device_agent.agent.guard`), and all parts go on.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from device_agent.agent.changes import Changes
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.publication import Publication

Handler = Callable[[Any, int], None]
"""Takes a frame of one kind, and the time in microseconds."""


class FrameRefusedError(ValueError):
    """A valid frame that this device cannot use; its text is the reason that is counted."""


class Part:
    """One feature of an agent. A part overrides what it has something to do for.

    Attributes:
        name: what its failures are counted under.
    """

    name: ClassVar[str] = "part"

    @property
    def handlers(self) -> Mapping[type[Frame], Handler]:
        """The frame kinds that it takes."""
        return {}

    @property
    def listens(self) -> Mapping[str, Callable[[bytes, int], None]]:
        """Topics of other programs, and what takes a message on each, with the time."""
        return {}

    @property
    def closed(self) -> bool:
        """Whether no part after it may publish anything yet."""
        return False

    def refusal(self, frame: Frame, now_us: int) -> str | None:  # noqa: ARG002 - the contract
        """Return why no part may take a frame; None if it may be taken."""
        return None

    def connected(self, now_us: int) -> None:
        """A new connection: the broker may have lost all that was published before."""

    def unsent(self, publication: Publication) -> None:
        """The link did not take this publication, and none that came after it."""

    def succeed(self) -> None:
        """Go on as the agent's present replica: a later one of this device was heard of."""

    def tick(self, now_us: int) -> None:
        """Do what is due by now."""

    def take_changes(self) -> Changes | None:
        """Return what must be committed and was not taken yet; None if there is nothing."""
        return None

    def take_notes(self) -> Changes | None:
        """Return what may wait for another commit and was not taken yet; None if nothing."""
        return None

    def committed(self) -> None:
        """All that was taken is durable."""

    def publications(self, now_us: int) -> Iterator[Publication]:  # noqa: ARG002 - the contract
        """Yield what is to be published now."""
        return iter(())

    def report(self) -> dict[str, Any]:
        """Return what it says of itself, as plain data by name; names of all parts differ."""
        return {}
