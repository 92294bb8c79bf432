"""The wall clock of real processes, set by Debian's faketime; the kernel's clock stays as it is."""

from pathlib import Path

from tests.support_missing import lacks


class FakedClock:
    """A clock of real processes that is off by what a test says.

    Args:
        directory: where the file is that they read it from.
    """

    def __init__(self, directory: Path) -> None:
        self._file = directory / "clock"
        found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
        if not found:
            lacks("faketime is not installed; type: sudo apt-get install -y faketime")
        self._library = str(found[-1])

    def is_off_by(self, off: str) -> None:
        """Let the clock be off by this; written as one, so that no half of it is read."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{off}\n")
        fresh.replace(self._file)

    @property
    def environment(self) -> dict[str, str]:
        """What a process has to have in its environment."""
        return {
            "LD_PRELOAD": self._library,
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
