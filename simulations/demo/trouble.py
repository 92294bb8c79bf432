"""What keeps the demo from reaching a result."""

from collections.abc import Sequence

from lasp_edge.errors import CommandError, Exit


class Trouble(CommandError):  # noqa: N818 - reads as what happened
    """The demo cannot go on.

    Args:
        what: one line for people.
        exit_code: what the demo ends with.
        log: the last lines of the process that is to blame, where one is.
    """

    def __init__(self, what: str, exit_code: Exit = Exit.DIFFERS, log: Sequence[str] = ()) -> None:
        super().__init__(what)
        self.exit_code = exit_code
        self.log = tuple(log)
