"""The power of a sink's machine: it may go between any two calls of what runs there."""


class PowerLostError(BaseException):
    """The power went: nothing that a process does or catches comes after it."""


class Power:
    """The power of a machine.

    Attributes:
        calls: how many calls it lasts; None: for ever.
    """

    def __init__(self) -> None:
        self.calls: int | None = None

    def use(self) -> None:
        """Spend one call.

        Raises:
            PowerLostError: none was left.
        """
        if self.calls is None:
            return
        self.calls -= 1
        if self.calls < 0:
            self.calls = None
            raise PowerLostError
