"""Whatever becomes of the demo, nothing that it started outlives it."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from simulations.demo.processes import Child, Children
from tests.simulations.watching import eventually, runs

LONG = [sys.executable, "-c", "import time; time.sleep(600)"]
IGNORE = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(600)
"""
DEAF = [sys.executable, "-c", IGNORE]
# Prints the id of its own child, which leads a process group: two generations in one session.
START = f"""
import subprocess, time
print(subprocess.Popen({LONG!r}, process_group=0).pid, flush=True)
time.sleep(600)
"""
PARENT = [sys.executable, "-c", START]
PLAY = f"""
import asyncio, sys
from simulations.demo.processes import Children

async def play():
    async with Children() as children:
        print(children.folder, flush=True)
        await children.start("parent", {PARENT!r}, lambda line: print(line, flush=True))
        await asyncio.sleep(600)

asyncio.run(play())
"""


async def first_line(children: Children, words: list[str]) -> tuple[Child, str]:
    told: asyncio.Queue[str] = asyncio.Queue()
    child = await children.start("child", words, told.put_nowait)
    return child, await asyncio.wait_for(told.get(), 10)


def test_close_ends_children_and_their_children():
    async def play() -> list[int]:
        async with Children() as children:
            child, line = await first_line(children, PARENT)
            return [child.pid, int(line)]

    for pid in asyncio.run(play()):
        assert eventually(lambda pid=pid: not runs(pid))


def test_an_exception_in_the_block_ends_children_and_removes_the_folder():
    seen: list[int] = []
    folders: list[Path] = []

    async def play() -> None:
        async with Children() as children:
            folders.append(children.folder)
            seen.append((await children.start("long", LONG)).pid)
            raise RuntimeError("on the way")

    with pytest.raises(RuntimeError, match="on the way"):
        asyncio.run(play())
    assert not runs(seen[0])
    assert not folders[0].exists()


def test_a_child_that_ignores_sigterm_is_killed():
    async def play() -> tuple[int, int | None]:
        async with Children() as children:
            child, _ = await first_line(children, DEAF)
            await children.stop([child], grace_s=0.1)
            return child.pid, child.exit_code

    pid, code = asyncio.run(play())
    assert not runs(pid)
    assert code == -signal.SIGKILL


def test_a_child_that_is_told_to_end_did_not_end_unasked():
    async def play() -> tuple[bool, bool]:
        async with Children() as children:
            told = await children.start("long", LONG)
            await told.kill()
            alone = await children.start("alone", [sys.executable, "-c", "print('bye')"])
            await alone.wait()
            assert alone.last_words() == ["bye"]
            return told.ended_unasked, alone.ended_unasked

    assert asyncio.run(play()) == (False, True)


def test_all_lines_are_read_before_wait_returns():
    async def play() -> list[str]:
        lines: list[str] = []
        async with Children() as children:
            words = [sys.executable, "-c", "for n in range(5000): print(n)"]
            await (await children.start("many", words, lines.append)).wait()
        return lines

    assert asyncio.run(play()) == [str(n) for n in range(5000)]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_ended_by_a_signal_leaves_nothing_behind(number):
    demo = subprocess.Popen([sys.executable, "-c", PLAY], stdout=subprocess.PIPE, text=True)
    assert demo.stdout is not None
    folder, grandchild = Path(demo.stdout.readline().strip()), int(demo.stdout.readline())
    assert folder.is_dir()
    assert runs(grandchild)
    demo.send_signal(number)
    demo.wait()
    demo.stdout.close()
    assert eventually(lambda: not runs(grandchild))
    assert eventually(lambda: not folder.exists())
