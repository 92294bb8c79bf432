"""The fleet on virtual time, and what it is judged by.

- `fleet`: devices, network, broker, lander and operator from one seed; drives the agent's core
- `world`: whole fleets with every fault there is; `explore` runs them from seed to seed
- `oracle`: the truth, by sequential recomputation from raw readings
- `demo`: real processes on this machine, started as a user would
- `benchmarks`: what the claims about cost were measured with
"""
