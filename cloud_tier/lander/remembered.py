"""What a lander has heard of each device, kept in a file beside its log.

The lake's rows say which incarnations there were, but not how far a device's sources had come. A
device that lost its store asks for that; so the lander writes it down with each segment, and reads
it when it starts. Where the file is lost, too, the lake's incarnations are all that is known.
"""

import logging
from pathlib import Path

from cloud_tier.lander.segments import replace_durably
from lasp_edge.protocol.witness import Witness

log = logging.getLogger(__name__)

FILE_NAME = "devices.jsonl"


class Remembered:
    """A witness, and the file that it is kept in.

    Args:
        witness: of the fleet.
        folder: where the file is.
    """

    def __init__(self, witness: Witness, folder: Path) -> None:
        self._witness = witness
        self._path = folder / FILE_NAME
        self._kept: list[str] = []

    def read(self) -> None:
        """Take over what an earlier process has written."""
        if self._path.exists():
            self._witness.read(self._path.read_text(encoding="utf-8").splitlines())

    def write(self) -> None:
        """Make all of it durable, if it has changed, in place of what was there.

        The log's segment may be dropped only after that: what a device told in it is told once.
        """
        lines = list(self._witness.lines())
        if lines == self._kept:
            return
        try:
            replace_durably(self._path, "\n".join(lines))
        except OSError as error:  # the log says it louder, and the lake is not concerned
            log.warning("cannot keep what was heard of the devices: %s", error)
            return
        self._kept = lines
