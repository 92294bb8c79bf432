"""What all parts of one agent share; the core makes it once, each part takes it first."""

from dataclasses import dataclass, field

from crdts import Replica
from device_agent.agent.changes import Facts
from device_agent.agent.clock import DeviceClock
from device_agent.agent.notices import Notices
from device_agent.agent.settings import Settings
from device_agent.agent.state.counters import Counters, Guard
from device_agent.agent.state.stored import Stored
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.topics import Topics


@dataclass(slots=True)
class Agent:
    """One device's agent, as its parts see it.

    Attributes:
        plan: what it computes.
        replica: which replica of the device it is; the fence puts a later one in its place.
        settings: intervals and limits.
        topics: where it publishes.
        counters: where outcomes and failures are counted.
        stored: what the store holds of variables, and where changes of them go.
        facts: the single values that the store held at the start.
        guard: runs what may raise anything.
        clock: what time it is; the timing part keeps it right.
        now_us: the driver's time of the last tick.
        notices: what is accepted, and probably a mistake.
        beats: how many beats the replica has published.
    """

    plan: Plan
    replica: Replica
    settings: Settings
    topics: Topics
    counters: Counters
    stored: Stored
    facts: Facts
    guard: Guard
    clock: DeviceClock = field(default_factory=DeviceClock)
    now_us: int = 0
    notices: Notices = field(default_factory=Notices)
    beats: int = 0
