"""A lander's process around what it has landed, with latency and crashes.

What arrives waits for the next commit. A crash before it loses that, and nothing was acknowledged
of it; what was committed stays.
"""

from collections.abc import Iterator

from crdts import Membership
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.envelope import Frame
from simulations.fleet.lander import SimulatedLander


class VirtualLander:
    """One lander with its lake.

    Args:
        plan: the program whose panes it takes.

    Attributes:
        lander: what has landed, by the rules of the real lander.
        former: the lakes that were lost.
        down_until, cut_until, slow_until: until which step it is off, hears nothing, is slow.
        due_step: when it commits next.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.lander = SimulatedLander("lake-1", plan)
        self.former: list[SimulatedLander] = []
        self.down_until = self.cut_until = self.slow_until = self.due_step = 0
        self._inbox: list[tuple[str, bytes]] = []
        self._slow_steps = 0

    def hear(self, topic: str, payload: bytes, step: int) -> None:
        """Note a message for the next commit, if it runs and is connected."""
        if step >= max(self.down_until, self.cut_until):
            self._inbox.append((topic, payload))

    def commit(self, step: int, now_us: int) -> Iterator[Frame]:
        """Commit what is due, and only then yield the answers."""
        if step < max(self.due_step, self.down_until):
            return
        self.due_step = step + (self._slow_steps if step < self.slow_until else 1)
        inbox, self._inbox = self._inbox, []
        for topic, payload in inbox:
            yield from self._land(topic, payload, now_us)

    def _land(self, topic: str, payload: bytes, now_us: int) -> Iterator[Frame]:
        answer = self.lander.hear(topic, payload, now_us)
        if isinstance(answer, Frame):
            yield answer
        elif answer:
            yield from answer

    def crash(self, until: int) -> int:
        """End the process; return how many messages are lost with it."""
        lost, self._inbox = len(self._inbox), []
        self.down_until = until
        return lost

    def slow_down(self, step: int, steps: int) -> None:
        """Let each commit take some steps, for a while."""
        self._slow_steps, self.slow_until = steps, step + 2 * steps
        self.due_step = step + steps

    def lose_lake(self) -> None:
        """Put an empty lake with another id in place of this one."""
        self.former.append(self.lander)
        known: Membership = self.lander.membership
        self.lander = SimulatedLander(f"lake-{len(self.former) + 1}", self.plan, known)
        self._inbox.clear()

    def heal(self) -> None:
        """Let it run, hear and commit at once."""
        self.down_until = self.cut_until = self.slow_until = self.due_step = 0
