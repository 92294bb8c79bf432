"""What must hold of a sink where operators change what windows mean, after each step.

- a promise that counts was made under the log of entries that the sink has
- an entry makes promises void, and a device counts as having sent what it had promised before

What a lander's next process takes for unfinished is compared in `lander`.
"""

from collections.abc import Iterator

from crdts.frontier import BOTTOM_US
from device_agent.gateway.core import GatewayCore
from lasp_edge.protocol.frontier import reach_us
from simulations.world.sinks import AnySink


class LogWatch:
    """Looks at one sink."""

    def __init__(self) -> None:
        self._core: GatewayCore | None = None
        self._mark = 0
        self._reached_us: dict[str, int] = {}

    def wrong(self, sink: AnySink) -> Iterator[str]:
        """Yield what is wrong with its promises."""
        mark = sink.lander.kept.state.control.mark
        yield from _of_other_logs(sink, mark)
        yield from self._forgotten(sink, mark)

    def _forgotten(self, sink: AnySink, mark: int) -> Iterator[str]:
        """Yield the devices of which it is forgotten how far they had promised before an entry."""
        core = sink.lander.core
        if core is not self._core:  # another process, which knows no more than the store
            self._core, self._mark, self._reached_us = core, mark, {}
        if mark != self._mark:
            former_us = core._liveness.former_us  # noqa: SLF001 - nothing else gives it away
            for device, reached_us in self._reached_us.items():
                if former_us.get(device, BOTTOM_US) < reached_us:
                    yield f"{sink.name} forgot that {device} had promised {reached_us}"
            self._mark, self._reached_us = mark, {}
        for device, promise in core.promises.items():
            before_us = self._reached_us.get(device, BOTTOM_US)
            self._reached_us[device] = max(before_us, reach_us(promise))


def _of_other_logs(sink: AnySink, mark: int) -> Iterator[str]:
    """Yield the promises that count, and were made under another log."""
    for device, promise in sink.lander.promises.entries.items():
        # A stranger's beat may have the number of the device's next one, and speak of another log.
        if reach_us(promise) > BOTTOM_US and mark not in sink.logs[device].get(promise.version, ()):
            yield f"{sink.name} takes a promise of {device} that was made under another log"
