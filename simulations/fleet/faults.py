"""What may go wrong in a simulated fleet, as probabilities."""

from typing import NamedTuple

from device_agent.settings import SECOND_US

STEP_US = SECOND_US
"""Microseconds of virtual time in a step: an agent's ticks are as far apart."""

START_US = 1_700_000_000 * SECOND_US
"""Virtual time at the beginning, in microseconds since the epoch: a day in November 2023."""


class Faults(NamedTuple):
    """What may go wrong.

    Attributes:
        loss: probability that a message is lost on one leg between device, broker and lander.
        doubled: probability that it arrives twice.
        delay_us: it arrives after up to this long, so later ones overtake it.
        kill: probability, per agent and step, of a SIGKILL and restart.
        cut: probability, per agent and step, that its connection breaks for some steps.
        broker_reset: probability, per step, that the broker restarts empty.
        lander_forgets: probability, per frame, that the lander takes it but the answer is lost.
        unsent: probability, per publication, that the link does not take it.
    """

    loss: float = 0.0
    doubled: float = 0.0
    delay_us: int = 0
    kill: float = 0.0
    cut: float = 0.0
    broker_reset: float = 0.0
    lander_forgets: float = 0.0
    unsent: float = 0.0


GENTLE = Faults()
ROUGH = Faults(
    loss=0.2,
    doubled=0.2,
    delay_us=5 * SECOND_US,
    kill=0.05,
    cut=0.05,
    broker_reset=0.02,
    lander_forgets=0.2,
    unsent=0.02,
)
