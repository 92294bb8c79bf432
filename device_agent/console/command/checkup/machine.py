"""The machine: its clock, the room and wear of the disk, and the unit that systemd has."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from device_agent.agent.sources.sensors import text_of
from device_agent.agent.timing.judgement import RELEASED_US
from device_agent.agent.timing.system_clock import SystemClock
from device_agent.console.command.checkup.result import CheckResult, Level, Subject, skipped
from device_agent.console.command.service import UNITS

LEAST_FREE_BYTES = 64 << 20
"""Below this an agent may fill the disk within a day: at a reading a second it writes 23 MB a day,
and its store has to be copied to be looked at."""
FEW_FREE_BYTES = 512 << 20
"""Below this other programs of the machine soon lack room, too."""
_SYSTEMD = "run/systemd/system"
_WORN = ("unknown", *(f"up to {10 * tenth} %" for tenth in range(1, 11)), "all, and more")
"""The part of its life that an eMMC has used, by the number that it reports."""
_MANY = 8
"""The number from which on it is a warning: more than 70 % is used."""
_EXCEEDED = 11


def clock(subject: Subject) -> Iterator[CheckResult]:
    """Whether the clock is right, as far as this machine can know."""
    read = SystemClock().read()
    at = f"{datetime.fromtimestamp(read.wall_us / 1e6, UTC):%Y-%m-%d %H:%M:%S} UTC"
    if read.synchronised:
        yield CheckResult(Level.OK, f"a time server keeps it right; it is {at}")
        return
    to_type = _time_client(subject.root)
    if read.wall_us < RELEASED_US:
        yield CheckResult(Level.WRONG, f"it says {at}, which cannot be", to_type)
        return
    says = f"it is {at}; the kernel knows of no time server that keeps it right"
    yield CheckResult(Level.WARNING, says, to_type)


def _time_client(root: Path) -> str:
    """Return the command that lets a time server keep the clock right; in a container, nothing."""
    if not (root / _SYSTEMD).exists():
        return ""
    if shutil.which("timedatectl") is None:
        return "sudo apt-get install -y systemd-timesyncd"
    return "sudo timedatectl set-ntp true"


def room(subject: Subject) -> Iterator[CheckResult]:
    """Whether there is room for the agent's data."""
    if subject.data_dir is None:
        yield skipped("--data-dir DIR")
        return
    place = nearest(subject.data_dir)
    usage = shutil.disk_usage(place)
    says = f"{usage.free / 1e6:,.0f} MB are free of {usage.total / 1e6:,.0f} where {place} is"
    level = Level.WARNING if usage.free < FEW_FREE_BYTES else Level.OK
    level = Level.WRONG if usage.free < LEAST_FREE_BYTES else level
    to_type = "" if level is Level.OK else f"df -h {shlex.quote(str(place))}; sudo apt-get clean"
    yield CheckResult(level, says, to_type)


def wear(subject: Subject) -> Iterator[CheckResult]:
    """The used part of the disk's life, where the kernel reports it."""
    if subject.data_dir is None:
        yield skipped("--data-dir DIR")
        return
    place, kind = nearest(subject.data_dir), _file_system(nearest(subject.data_dir))
    if kind in {"tmpfs", "ramfs"}:
        says = f"{place} is in memory ({kind}): all is lost when the machine is switched off"
        yield CheckResult(Level.WARNING, f"{says}; give a directory on a disk: --data-dir DIR")
        return
    number = place.stat().st_dev
    block = subject.root / f"sys/dev/block/{os.major(number)}:{os.minor(number)}"
    yield worn(block.resolve()) if block.exists() else _unknown(f"{place} is on no disk here")


def worn(block: Path) -> CheckResult:
    """Return the wear of a disk, given its directory or a partition's in sysfs."""
    disk = block.parent if (block / "partition").exists() else block
    name, life = disk.name, text_of(disk / "device/life_time")
    if life is not None:
        used = max(int(word, 16) for word in life.split())
        says = f"eMMC {name}: of its life is used {_WORN[min(used, len(_WORN) - 1)]}"
        if used >= _EXCEEDED or text_of(disk / "device/pre_eol_info") == "0x03":
            says += "; it may fail any day: copy what is on it elsewhere, and replace it"
            return CheckResult(Level.WRONG, says)
        level = Level.WARNING if used >= _MANY else Level.OK
        more = "; replace it in time, or write less: --interval 300" if used >= _MANY else ""
        return CheckResult(level, says + more)
    if text_of(disk / "device/type") == "SD":
        return _unknown(f"{name} is an SD card, which does not report it")
    if name.startswith(("nvme", "sd")):
        return CheckResult(
            Level.OK,
            f"the kernel does not report it of {name}; the disk may: sudo apt-get install -y "
            f"smartmontools && sudo smartctl -A /dev/{name}",
        )
    return _unknown(f"{name} does not report it")


def _unknown(why: str) -> CheckResult:
    return CheckResult(Level.OK, f"how worn it is cannot be known: {why}")


def unit(subject: Subject) -> Iterator[CheckResult]:
    """Whether systemd starts the agent, and how it fares."""
    if not (subject.root / _SYSTEMD).exists():
        yield CheckResult(Level.SKIPPED, "systemd does not run here")
    elif not (UNITS / f"{subject.unit}.service").exists():
        says = f"no unit {subject.unit}: the agent does not start with the machine"
        yield CheckResult(Level.WARNING, says, _installing(subject))
    else:
        yield _faring(subject)


def _installing(subject: Subject) -> str:
    """Return the command that has systemd start this agent."""
    file = subject.wanted.arguments.config
    words = [sys.executable, "-m", "lasp_edge", "service", "install"]
    words += ["--name", subject.unit] if subject.unit != "lasp-edge" else []
    words += ["--", "--config", str(file)] if file else ["--help"]
    return shlex.join(["sudo", *words] if file else words)


def _faring(subject: Subject) -> CheckResult:
    state, name = _shown(subject.unit), shlex.quote(subject.unit)
    if state.get("ActiveState") != "active":
        says = (
            f"{subject.unit} is {state.get('ActiveState', 'unknown')} ({state.get('Result', '-')})"
        )
        look = f"journalctl -u {name} -n 20; sudo systemctl start {name}"
        return CheckResult(Level.WRONG, says, look)
    restarts = state.get("NRestarts", "0")
    says = f"{subject.unit} runs; it was started again {restarts} times"
    level, to_type = Level.OK, ""
    if state.get("UnitFileState") != "enabled":
        level, to_type = Level.WARNING, f"sudo systemctl enable {name}"
        says += "; it does not start with the machine"
    elif state.get("WatchdogUSec", "0") in {"0", "infinity"}:
        level, to_type = Level.WARNING, _installing(subject)
        says += "; no watchdog looks after it: write its unit once more"
    elif restarts != "0":
        level, to_type = Level.WARNING, f"journalctl -u {name} -n 50"
    else:
        says += f"; its watchdog waits {state['WatchdogUSec']}"
    return CheckResult(level, says, to_type)


def _shown(unit_name: str) -> Mapping[str, str]:
    """Return the properties of a unit by systemd; nothing where it cannot be asked."""
    names = "ActiveState,Result,NRestarts,UnitFileState,WatchdogUSec"
    try:
        printed = subprocess.run(  # noqa: S603 - a fixed program, without a shell
            ["systemctl", "show", f"--property={names}", "--", f"{unit_name}.service"],  # noqa: S607
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return {}
    pairs = (line.partition("=") for line in printed.splitlines())
    return {name: value for name, _, value in pairs if value}


def nearest(directory: Path) -> Path:
    """Return a directory, or the nearest one above it that exists."""
    place = directory.absolute()
    return next(each for each in (place, *place.parents) if each.exists())


def _file_system(place: Path) -> str:
    """Return the kind of file system on which a place is; empty where that is not known."""
    found = ""
    deepest = 0
    for line in (text_of(Path("/proc/self/mountinfo")) or "").splitlines():
        mount, _, rest = line.partition(" - ")
        at = mount.split()[4].replace("\\040", " ")
        if place.resolve().is_relative_to(at) and len(at) >= deepest:
            found, deepest = rest.split()[0], len(at)
    return found
