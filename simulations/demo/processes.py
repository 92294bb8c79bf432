"""The processes that the demo starts, and their end, whatever happens.

Each child leads a session of its own, so Ctrl-C in a terminal reaches the demo alone, which then
ends its children in order: SIGTERM, a while to finish, SIGKILL to what is left of the session. A
second process, `watchdog`, does the same with less courtesy where the demo itself was killed.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from simulations.demo import watchdog

GRACE_S = 10.0
_LOOK_S = 0.02
_LONGEST_LINE_BYTES = 1 << 26
"""A report has a line for all keys: 100,000 keys of 500 bytes."""
_TAIL_LINES = 12


class Child:
    """One process of the demo.

    Attributes:
        name: what the demo calls it.
        log: the file that holds what it wrote and nobody read.
    """

    def __init__(self, name: str, process: asyncio.subprocess.Process, log: Path) -> None:
        self.name = name
        self.log = log
        self._process = process
        self._asked_to_end = False
        self._reader: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """Its process id, which is its session's too."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """What it ended with; negative for a signal; None while it runs."""
        return self._process.returncode

    @property
    def ended_unasked(self) -> bool:
        """Whether it is over though nobody told it to end."""
        return self.exit_code is not None and not self._asked_to_end

    def read_lines(self, on_line: Callable[[str], None]) -> None:
        """Give each line that it prints to `on_line` from now on."""
        self._reader = asyncio.create_task(self._read(on_line))

    async def _read(self, on_line: Callable[[str], None]) -> None:
        stream = self._process.stdout
        assert stream is not None
        while line := await stream.readline():
            on_line(line.decode(errors="replace").rstrip("\n"))

    def write_line(self, line: str) -> None:
        """Give it a line on its standard input, if it runs and was started to read one."""
        stream = self._process.stdin
        if stream is not None and self.exit_code is None:
            stream.write(f"{line}\n".encode())

    def signal(self, number: int) -> None:
        """Send it a signal; nothing happens if it is over."""
        if self.exit_code is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def kill(self) -> None:
        """End its whole session with SIGKILL and wait until it is gone."""
        self._asked_to_end = True
        watchdog.kill_sessions({self.pid})
        await self.wait()

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """End it with SIGTERM; with SIGKILL what is left of its session after `grace_s`."""
        self._asked_to_end = True
        self.signal(signal.SIGTERM)
        clock = asyncio.get_running_loop().time
        ends = clock() + grace_s
        # `Process.wait` would also wait for grandchildren that hold the child's output open.
        while self.exit_code is None and clock() < ends:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)
        await self.kill()

    async def wait(self) -> int:
        """Return its exit code once it is over and all that it printed was read."""
        code = await self._process.wait()
        if self._reader is not None:
            await self._reader
        return code

    def last_words(self) -> list[str]:
        """Return the last lines of its log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return text.splitlines()[-_TAIL_LINES:]


class Children:
    """Everything that the demo started, in a folder of its own that is removed at the end.

    Attributes:
        folder: a new folder for whatever the processes write.
    """

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lasp-edge-demo-"))
        self._children: list[Child] = []
        self._started = 0
        self._watchdog = subprocess.Popen(  # noqa: S603 - our own file
            [sys.executable, "-ISu", watchdog.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
            cwd="/",
        )
        self._tell(f"made {self.folder}")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def start(
        self,
        name: str,
        words: Sequence[str],
        on_line: Callable[[str], None] | None = None,
        *,
        reads: bool = False,
    ) -> Child:
        """Start a process.

        `on_line` takes each line of its standard output; without it they go to the log. What
        `reads` is given its standard input by `write_line`.
        """
        log = self.folder / f"{self._started}.log"
        self._started += 1
        with log.open("ab") as file:
            process = await asyncio.create_subprocess_exec(
                *words,
                stdin=asyncio.subprocess.PIPE if reads else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE if on_line else file,
                stderr=file,
                start_new_session=True,
                limit=_LONGEST_LINE_BYTES,
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
            )
        self.guard(process.pid)
        child = Child(name, process, log)
        self._children.append(child)
        if on_line:
            child.read_lines(on_line)
        return child

    def guard(self, pid: int) -> None:
        """Have a process that was started elsewhere, in its own session, killed with the demo."""
        self._tell(f"started {pid}")

    def release(self, pid: int) -> None:
        """Note that a guarded process is over."""
        self._tell(f"ended {pid}")

    def forget(self, child: Child) -> None:
        """Note that a child is over, so that its id is never signalled again."""
        if child in self._children:
            self._children.remove(child)
            self.release(child.pid)

    async def stop(self, children: Iterable[Child], grace_s: float = GRACE_S) -> None:
        """End some children side by side."""
        ending = list(children)
        await asyncio.gather(*(child.stop(grace_s) for child in ending))
        for child in ending:
            self.forget(child)

    async def stop_all(self) -> None:
        """End everything."""
        await self.stop(self._children)

    async def close(self) -> None:
        """End everything and remove the folder."""
        try:
            await self.stop_all()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
            if not self.folder.exists():
                self._tell(f"removed {self.folder}")
            assert self._watchdog.stdin is not None
            self._watchdog.stdin.close()
            self._watchdog.wait()

    def _tell(self, line: str) -> None:
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.write(f"{line}\n")
        self._watchdog.stdin.flush()
