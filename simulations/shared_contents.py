"""What devices hold of shared variables, beside what the updates of all devices mean."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from lasp_edge.language.plan import Plan
from lasp_edge.language.writes import variables_named
from simulations.oracle.readings import Reading
from simulations.oracle.shared import (
    NoDefinitionError,
    SharedContent,
    content_of,
    shared_content,
    shared_updates,
)
from simulations.world.world import World

_OF_ONE = "a device takes out what it knows of"


class SharedPlaces(NamedTuple):
    """A shared variable, on all devices of a fleet.

    Attributes:
        held: (device, element, key or "") -> what is there.
        truth: the same by the oracle.
        left_out: what of it is not compared, and why; "" where all is.
    """

    name: str
    held: Mapping[tuple[str, Any], Any]
    truth: Mapping[tuple[str, Any], Any]
    left_out: str


def shared_contents(
    world: World, readings: Iterable[Reading], why_not: str
) -> Iterator[SharedPlaces]:
    """Yield each shared variable, as devices have it and as it has to be.

    Args:
        world: a fleet at rest.
        readings: those that its devices took in.
        why_not: why updates may be missing; "" where all are there.
    """
    plan = world.plans[0]
    updates = shared_updates(plan, readings) if plan.shared_variables and not why_not else {}
    for name, variable in plan.shared_variables.items():
        left_out = why_not or _written_elsewhere(plan, name)
        content, bottom = SharedContent({}), variable.bottom
        if not left_out:
            assert bottom is not None, "a shared variable is declared"
            try:
                content = shared_content(bottom, updates[name])
            except NoDefinitionError as error:
                left_out = str(error)
        if left_out:
            yield SharedPlaces(name, {}, {}, left_out)
            continue
        held = {
            (device.name, at): each
            for device in world.running()
            for at, each in content_of(device.core.variables.shared()[name]).items()
            if at not in content.unknown
        }
        devices = [device.name for device in world.running()]
        truth = {(of, at): each for of in devices for at, each in content.known.items()}
        unknown = len(content.unknown)
        yield SharedPlaces(name, held, truth, f"{unknown:,} of it: {_OF_ONE}" if unknown else "")


def _written_elsewhere(plan: Plan, name: str) -> str:
    """Return what else than a reading alone decides on a variable's updates; "" for nothing."""
    functions, variable = plan.functions, plan.variables[name]
    acting = [("on_value", each) for each in functions.reacting]
    acting += [("on_threshold", each) for each in functions.reached]
    acting += [("on_result", each) for several in functions.results.values() for each in several]
    for event in plan.reads:
        what = f"a handler of {event}, which reads a value,"
        acting += [(what, each) for each in functions.handlers[event]]
    writers = [what for what, handler in acting if variable in variables_named(handler)]
    return f"{writers[0]} writes it" if writers else ""
