"""An operator who changes parameters of the demo's program while its devices measure."""

from textwrap import wrap

from lasp_edge.tool.times import shown_time
from lasp_edge.units import SECOND_US
from simulations.demo.stage import Stage
from simulations.demo.told import Told

LATER_S = 25
"""From when on a room is warm above another temperature: all devices hear of it before."""
WRONG_S = 20
"""For how long a thermometer is taken to have been wrong."""
LISTEN_S = 2.0
"""How long a command listens to devices that are all there, and say something each second."""
_WIDTH = 79


async def say_of_later(stage: Stage) -> None:
    """Say what holds from some seconds later on."""
    from_us = _began_us(stage) + LATER_S * SECOND_US
    what = f"from {clock(from_us)} on, a room is warm above 25 °C, not 22 °C"
    await _say(stage, Told("warm_above", "25", from_us), what)


async def say_of_the_past(stage: Stage) -> None:
    """Say that a thermometer was wrong when the devices began to measure."""
    began_us = _began_us(stage)
    until_us = began_us + WRONG_S * SECOND_US
    what = f"from {clock(began_us)} to {clock(until_us)}, cellar measured 0.3 °C too much"
    await _say(stage, Told("offset", "-0.30", began_us, until_us, "cellar", is_late=True), what)


async def _say(stage: Stage, told: Told, what: str) -> None:
    """Change a parameter, while the devices go on, and say what comes of it.

    A program of the user's own has other parameters: nothing is said of them.
    """
    if not stage.cast.is_ours:
        return
    stage.say(f"An operator says: {what} ...")
    words = [*told.words(), "--broker", stage.broker.url, "--listen", f"{LISTEN_S:g}"]
    printed = await stage.meanwhile(stage.commands.set(stage.cast.spec, words))
    stage.told.append(told)
    for line in printed:
        stage.say(*wrap(line, _WIDTH, initial_indent="... ", subsequent_indent="      "))


def clock(time_us: int) -> str:
    """Return what a clock shows, in UTC."""
    return shown_time(time_us).partition(" ")[2]


def _began_us(stage: Stage) -> int:
    return stage.complete_us // SECOND_US * SECOND_US
