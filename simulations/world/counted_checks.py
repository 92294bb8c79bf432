"""What must hold of what a device counts: each line that it took in counts once, as what it was.

- right after a start, and at rest, as many lines are counted as refused as are no readings before
  the line at which the store resumes
- of the others each is accepted, or repeated where it had come before
"""

from collections.abc import Iterator

from simulations.world.device import OUTCOMES, VirtualDevice
from simulations.world.odd_lines import odd_before


def miscounted(device: VirtualDevice) -> Iterator[str]:
    """Yield what a device counts of its lines that it did not take in, or that it lacks."""
    clock, core = device.clock, device.core
    if device.forgot or device.uncertain or device.is_copy or clock.wrong or clock.was_wrong:
        return
    is_plain = device.records and device.meter is None and not device.in_columns
    if not is_plain or core.agent.clock.waiting or device.counted(*OUTCOMES):
        return
    totals, taken = core.counters.totals, device.recording[: device.acknowledged]
    odd = odd_before(device.acknowledged) if device.is_odd else 0
    if totals.get("refused", 0) != odd:
        yield f"{device.name} counts {totals.get('refused', 0)} lines as refused, of {odd}"
    accepted, repeated = totals.get("accepted", 0), totals.get("repeated", 0)
    least = len(set(taken)) + device.live
    if not least <= accepted <= least + device.unsure:
        yield f"{device.name} counts {accepted} readings, of {least} to {least + device.unsure}"
    if repeated != len(taken) - len(set(taken)):
        yield f"{device.name} counts {repeated} repeats, of {len(taken)} lines"
