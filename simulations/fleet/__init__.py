"""A fleet on virtual time: real cores and stores, a modelled network, one seed.

Problem: a history that loses or doubles a reading shows up once in a million messages on a real
broker. Sketch: run the agent's pure core and its real SQLite store against a network that loses,
doubles, delays and reorders messages, forgets what it retained and kills agents between two
commits, all drawn from one seed; then heal, settle, and compare with the oracle. The same seed
gives the same run. In the order in which a message travels:

- `faults`: what may go wrong, as probabilities
- `devices`: one device, whose directory outlives its process
- `network`: one leg from a device to the broker or back, with its faults
- `broker`: what is retained, and who subscribes to what
- `lander`: what has landed of the panes, by the rules of the real lander
- `operator`: retires and admits devices
- `hub`: broker, lander, operator and network
- `fleet`: all of them together, step by step

    >>> from lasp_edge.examples.greenhouse import program
    >>> fleet = Fleet(program.plan(), size=2, seed=7)
    >>> fleet.read("pi-0", "temperature", 21.5, {"room": "kitchen"})
    >>> fleet.read("pi-1", "temperature", 22.5, {"room": "cellar"})
    >>> fleet.settle()
    >>> fleet.values("global_average")
    {'pi-0': {'': (2, 4400)}, 'pi-1': {'': (2, 4400)}}
    >>> fleet.close()
"""

from simulations.fleet.faults import GENTLE, ROUGH, START_US, STEP_US, Faults
from simulations.fleet.fleet import Fleet
from simulations.fleet.lander import LANDER, SimulatedLander

__all__ = ["GENTLE", "LANDER", "ROUGH", "START_US", "STEP_US", "Faults", "Fleet", "SimulatedLander"]
