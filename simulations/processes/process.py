"""Commands as processes: started, killed, started again, and none of them outlives the demo.

Each leads a session of its own, so Ctrl-C in a terminal reaches the demo alone, which then ends
them in order: SIGTERM, a while to finish, SIGKILL to the rest of the session. A second process,
`watchdog`, does the same with less courtesy where the demo itself was killed.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Self

from simulations.processes import watchdog

COMMAND = (sys.executable, "-m", "lasp_edge")
"""`lasp-edge` as this very Python has it installed, wherever its scripts are."""
GRACE_S = 10.0
_LOOK_S = 0.02
_LAST_LINES = 12

now_s = time.monotonic  # noqa: TID251 - processes take real time


class Process:
    """A command that may be killed and started again; each life prints into files of its own.

    Args:
        folder: receives the files.
        name: the command's, for people and files.
        command: its first words.
        environ: variables that are added.
        cwd: where it runs; by default where the demo does.
        note: is given a line for the watchdog.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        command: Sequence[str] = COMMAND,
        environ: Mapping[str, str] = MappingProxyType({}),
        cwd: Path | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.name = name
        self.sessions: list[int] = []
        self._folder, self._command, self._environ = folder, command, environ
        self._cwd, self._note = cwd, note
        self._read_bytes, self._is_over = 0, True
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, words: Sequence[str], *, reads: bool = False) -> None:
        """Start it; `reads`: `write_line` gives it its standard input."""
        assert not self.runs, f"{self.name} runs already"
        self.sessions.append(0)
        self._read_bytes, self._is_over = 0, False
        with self.printed.open("wb") as out, self.complained.open("wb") as err:
            self._process = subprocess.Popen(  # noqa: S603 - our own commands
                [*self._command, *words],
                stdin=subprocess.PIPE if reads else subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=self._cwd,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **self._environ},
            )
        self.sessions[-1] = self.pid
        self._note(f"started {self.pid}")

    @property
    def printed(self) -> Path:
        """The standard output of this life."""
        return self._folder / f"{self.name}.{len(self.sessions)}.out"

    @property
    def complained(self) -> Path:
        """The standard error of this life."""
        return self._folder / f"{self.name}.{len(self.sessions)}.err"

    @property
    def runs(self) -> bool:
        """Whether it runs."""
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs or before it ran."""
        return None if self._process is None else self._process.poll()

    @property
    def ended_by_itself(self) -> bool:
        """Whether it is over, and nobody has ended it."""
        return not self._is_over and not self.runs

    @property
    def pid(self) -> int:
        """Its process id, which is its session's too."""
        assert self._process is not None
        return self._process.pid

    def new_lines(self) -> list[str]:
        """Return the lines that this life has printed since the last call."""
        if not self.sessions:
            return []
        with self.printed.open("rb") as file:
            file.seek(self._read_bytes)
            text, newline, _ = file.read().rpartition(b"\n")
        self._read_bytes += len(text) + len(newline)
        return text.decode(errors="replace").splitlines()

    def write_line(self, line: str) -> None:
        """Give it a line on its standard input, if it runs."""
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()

    def signal(self, number: int) -> None:
        """Send it a signal; nothing happens if it is over."""
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self, *, alone: bool = False) -> None:
        """End it by SIGKILL, with all that it started or alone; nothing happens a second time."""
        if self._process is None or self._is_over:
            return
        self._is_over = not alone
        if alone:
            self._process.kill()
        else:
            watchdog.kill_sessions({self.pid})
            self._note(f"ended {self.pid}")
        self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()

    def last_lines(self) -> list[str]:
        """Return the last lines that this life has written to standard error."""
        text = self.complained.read_text(errors="replace")
        return [line for line in text.splitlines() if line.strip()][-_LAST_LINES:]


def stop(processes: Iterable[Process], grace_s: float = GRACE_S) -> None:
    """End some processes side by side: by SIGTERM, and the rest of their sessions by SIGKILL."""
    ending = list(processes)
    for process in ending:
        process.signal(signal.SIGTERM)
    ends_s = now_s() + grace_s
    while any(process.runs for process in ending) and now_s() < ends_s:
        time.sleep(_LOOK_S)
    for process in ending:
        process.kill()


class Processes:
    """All processes of the demo, in a new folder; leaving the block ends and removes everything.

    Attributes:
        folder: for the files of all processes.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lasp-edge-demo-"))
        self._all: list[Process] = []
        self._watchdog = subprocess.Popen(  # noqa: S603 - our own file
            [sys.executable, "-ISu", watchdog.__file__, str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            cwd="/",
        )

    def new(self, name: str, command: Sequence[str] = COMMAND) -> Process:
        """Return a process that is still to be started."""
        process = Process(self.folder, name, command, note=self.note)
        self._all.append(process)
        return process

    def note(self, line: str) -> None:
        """Give the watchdog a line: `started SESSION` or `ended SESSION`."""
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.write(f"{line}\n")
        self._watchdog.stdin.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            stop(self._all)
        finally:
            watchdog.remove(self.folder)
            assert self._watchdog.stdin is not None
            self._watchdog.stdin.close()
            self._watchdog.wait()
