"""Parameters that a test or a command sets, as entries of the operators' log.

>>> from simulations.world.controlled import parametrised
>>> plan = parametrised().plan()
>>> log = entries_of(plan, [ParameterSetting("offset", "cellar", 60_000_000, "0.5")])
>>> [(at.parameter, at.scope, at.from_us, text) for at, text in log.value.items()]
[('offset', 'cellar', 60000000, '0.5')]
>>> entries_of(plan, [ParameterSetting("mode", "", None, "dusk")])
Traceback (most recent call last):
ValueError: parameter 'mode': one of day, night is needed, not 'dusk'
"""

from collections.abc import Iterable

from crdts import ControlLog
from device_agent.agent.sources.nearest import hint
from device_agent.console.parameters.effect import is_of_devices, misfits
from lasp_edge.language.parameters import need_value
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.commands import MOST_PLACES
from lasp_edge.protocol.limits import EARLIEST_PANE_US, LATEST_PANE_US
from lasp_edge.testing.parameters import ParameterSetting

AUTHOR = "test"


def entries_of(plan: Plan, settings: Iterable[ParameterSetting]) -> ControlLog:
    """Return the log in which parameters have these values.

    Raises:
        ValueError: the program has no such parameter, or it cannot have that value.
    """
    log = ControlLog()
    for setting in settings:
        name, device, from_us, value = setting
        _check(plan, setting)
        at_us = EARLIEST_PANE_US if from_us is None else from_us
        log |= log.set(name, device, at_us, value, AUTHOR)
    if len(log.entries) > MOST_PLACES:
        raise ValueError(f"parameters: at most {MOST_PLACES} values fit, not {len(log.entries)}")
    for misfit in misfits(plan, ControlLog(), log):
        raise ValueError(f"parameters: {misfit}")
    return log


def _check(plan: Plan, setting: ParameterSetting) -> None:
    """Refuse a setting that counts for nobody.

    Raises:
        ValueError: it does.
    """
    name, device, from_us, value = setting
    if name not in plan.parameters:
        raise ValueError(
            f"the program {plan.name!r} has no parameter {name!r}; {hint(name, plan.parameters)}"
        )
    parameter = plan.parameters[name]
    need_value(parameter, value)
    if device and not is_of_devices(plan, parameter):
        raise ValueError(
            f"parameter {name!r} is one for the whole fleet, as a size, slide, fold, bound or "
            f"level of an alert on a window is, and not for {device!r} alone"
        )
    if from_us is not None and not EARLIEST_PANE_US < from_us < LATEST_PANE_US:
        raise ValueError(f"parameter {name!r}: a time from 1900 to 9999 is needed, not {from_us}")
