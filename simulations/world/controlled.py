"""A program in which operators change each part of a window.

>>> plan = parametrised().plan()
>>> sorted(plan.windows), sorted(plan.parameters)
(['by_room', 'p90', 'sums'], ['above', 'error', 'mode', 'offset', 'span_s', 'step_s'])
"""

from typing import Any, NamedTuple

from lasp_edge import Parameter, Program, folds, scans
from simulations.world.programs import room

READ = "temperature"
"""The event that all its windows are made from."""


class Controls(NamedTuple):
    """The parameters of a program."""

    above: Parameter[Any]
    offset: Parameter[Any]
    span: Parameter[Any]
    step: Parameter[Any]
    mode: Parameter[Any]
    error: Parameter[Any]


def _controls(program: Program, scale: int) -> Controls:
    return Controls(
        above=program.parameter("above", "-50", resolution="0.1", unit="°C"),
        offset=program.parameter("offset", "0", resolution="0.1"),
        span=program.parameter("span_s", f"{8 * scale}"),
        step=program.parameter("step_s", f"{4 * scale}"),
        mode=program.parameter("mode", "day", choices=("day", "night")),
        error=program.parameter("error", "0.01", resolution="0.001"),
    )


def _add_windows(program: Program, source: Any, controls: Controls, scale: int) -> None:
    """Add windows over an event or a stream that use a parameter in each of the five places."""
    above, offset, span, step, mode, error = controls
    program.window(
        "sums",
        source=source,
        fold=folds.sum(),
        size_s=span,
        slide_s=step,
        uses=(above, offset),
        value=lambda event, at: event.value + at[offset],
        where=lambda event, at: event.value > at[above],
    )
    program.window(
        "p90",
        source=source,
        fold=lambda at: folds.quantile(
            0.9, relative_error=at[error] if at[mode] == "night" else 0.05
        ),
        size_s=6 * scale,
        uses=(mode, error),
    )


def parametrised(scale: int = 1) -> Program:
    """Return a program whose parameters change values, filters, sizes, slides and folds.

    Args:
        scale: half of the seconds that the shortest panes are long.
    """
    program = Program("greenhouse")
    temperature = program.event(READ, resolution="0.1", unit="°C")
    controls = _controls(program, scale)
    offset = controls.offset
    _add_windows(program, temperature, controls, scale)
    program.window(
        "by_room",
        source=temperature,
        fold=folds.mean(),
        size_s=4 * scale,
        slide_s=2 * scale,
        key=room,
        uses=(offset,),
        value=lambda event, at: event.value + at[offset],
    )
    return program


def values_of(scale: int = 1) -> dict[str, tuple[str, ...]]:
    """Return what operators may say of each parameter."""
    return {
        "above": ("-50", "0", "5.5"),
        "offset": ("0", "-1.5", "10"),
        "span_s": (f"{8 * scale}", f"{12 * scale}", f"{6 * scale}"),
        "step_s": (f"{4 * scale}", f"{2 * scale}", f"{6 * scale}"),
        "mode": ("day", "night"),
        "error": ("0.01", "0.02"),
    }


def streamed(scale: int = 1) -> Program:
    """Return a program whose parameters change scans of each device, and windows over them.

    Args:
        scale: half of the seconds that the shortest panes are long.
    """
    program = Program("greenhouse")
    temperature = program.event(READ, resolution="0.1", unit="°C")
    controls = _controls(program, scale)
    offset, mode = controls.offset, controls.mode
    summed = program.scan(
        "summed",
        source=temperature,
        scan=lambda at: scans.running(
            lambda state, event: (state + round(event.value + at[offset])) % 100
        ),
        per_device=True,
        uses=(offset,),
    )
    risen = program.map(summed, lambda event: event.value - 50, "risen", resolution="0.1")
    runs = program.scan(
        "runs",
        source=temperature,
        key=room,
        scan=lambda at: scans.sessions(gap_s=3 if at[mode] == "day" else 1, fold=folds.count()),
        per_device=True,
        uses=(mode,),
    )
    program.result(runs)
    _add_windows(program, risen, controls, scale)
    program.window("plain", source=risen, fold=folds.max(), size_s=4 * scale, slide_s=2 * scale)
    return program
