"""The script `lasp-edge`: Ctrl-C ends it quietly, also while it starts and while it ends.

Python's own handler prints in which import it was, and on a small machine imports take seconds. So
the signal has its default meaning, the end of the process, but for the time in which a command
runs: that may have something to bring to an end. Whoever started it with the signal ignored, as
`nohup` and scripts do, keeps it ignored.
"""

import signal


def end_quietly() -> None:
    """Let Ctrl-C end the process, unless it is ignored."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def raise_interrupts() -> None:
    """Let Ctrl-C raise `KeyboardInterrupt` from now on, unless it is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def main() -> int:
    """Run the command that was typed; return its exit code."""
    end_quietly()
    from lasp_edge.errors import Exit  # noqa: PLC0415 - both take long
    from lasp_edge.tool.command_line import main as run  # noqa: PLC0415

    try:
        raise_interrupts()
        return run()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    finally:
        end_quietly()
