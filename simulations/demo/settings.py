"""The parameters that the demo's operator changes while the fleet runs."""

from collections.abc import Iterable
from typing import NamedTuple

from crdts import ControlLog
from crdts.control_log import INHERITED
from lasp_edge.tool.times import shown_time


class Setting(NamedTuple):
    """A value that a parameter was given from one time until another.

    Attributes:
        parameter: its name.
        value: as it is typed.
        from_us: from when on it holds.
        until_us: until when; None: for good.
        device: on which device alone; "" for all.
        is_late: it was set for a time that had passed.
    """

    parameter: str
    value: str
    from_us: int
    until_us: int | None = None
    device: str = ""
    is_late: bool = False

    def words(self) -> list[str]:
        """Return it as arguments of `lasp-edge set`.

        >>> Setting("offset", "-0.30", 5_000_000, device="cellar").words()
        ['offset=-0.30', '--from', '1970-01-01 00:00:05Z', '--device', 'cellar']
        """
        words = [f"{self.parameter}={self.value}", "--from", f"{shown_time(self.from_us)}Z"]
        words += [] if self.until_us is None else ["--until", f"{shown_time(self.until_us)}Z"]
        return words + (["--device", self.device] if self.device else [])


def log_of(settings: Iterable[Setting]) -> ControlLog:
    """Return settings, one after the other, as a log.

    >>> log_of([Setting("offset", "1", 5, 9), Setting("offset", "2", 7)]).value.values()
    dict_values(['1', '2', ''])
    """
    log = ControlLog()
    for each in settings:
        log |= log.set(each.parameter, each.device, each.from_us, each.value, "operator")
        if each.until_us is not None:
            log |= log.set(each.parameter, each.device, each.until_us, INHERITED, "operator")
    return log
