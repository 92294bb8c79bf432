"""Stopping a command that runs until SIGTERM or Ctrl-C."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from lasp_edge.errors import Exit


class Stoppable(Protocol):
    """A process that runs until `stop` is called."""

    def run(self) -> None:
        """Run until `stop` is called."""

    def stop(self) -> None:
        """Make `run` return; called in a signal handler."""


def run_until_signalled(process: Stoppable) -> Exit:
    """Run a process until it ends or a signal stops it; return the command's exit code."""
    signals: list[int] = []

    def stop(number: int, _frame: object) -> None:
        signals.append(number)
        process.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    process.run()
    return Exit.INTERRUPTED if signal.SIGINT in signals else Exit.FINE


@contextmanager
def interrupts_end() -> Iterator[None]:
    """Let Ctrl-C end the process at once: a library that is imported makes an error of it."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
