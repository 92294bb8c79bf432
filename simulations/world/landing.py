"""A lander's process around what it has landed, with latency and crashes.

What arrives waits for the next commit. A crash before it loses that, and nothing was acknowledged
of it; what was committed stays.
"""

from collections import defaultdict
from collections.abc import Iterator

from crdts import Membership, Replica
from device_agent.agent.stored_rows import EntryKey
from device_agent.gateway.core import WaitingTerms
from lasp_edge.language.plan import Plan
from lasp_edge.protocol.acks import AckFrame
from lasp_edge.protocol.envelope import Frame
from lasp_edge.protocol.sinks import DEFAULT_SINK
from simulations.world.lander import TERMS, SimulatedLander

ARCHIVE = "archive"
"""The name of the second sink, where a world has one."""


class VirtualLander:
    """One lander with its store, which is one sink.

    Args:
        plan: the program whose panes it takes.
        sink: the sink's name.
        terms: for whom windows wait.

    Attributes:
        name: the lander's, as it answers.
        lander: what has landed, by the rules of the real lander.
        former: the stores that were lost.
        refused: it ran a program that lacks a window, so it refused what devices had promised.
        not_taken: device -> which versions of its entries the present store did not take.
        down_until, cut_until, slow_until: until which step it is off, hears nothing, is slow.
        due_step: when it commits next.
    """

    def __init__(self, plan: Plan, sink: str = DEFAULT_SINK, terms: WaitingTerms = TERMS) -> None:
        self.sink, self.name, self._terms = sink, f"lander of {sink}", terms
        self._plan = self._running = plan
        self._processes = 0
        self.lander = self._on_new_store(1)
        self.former: list[SimulatedLander] = []
        self.refused = False
        self.not_taken: dict[str, set[EntryKey]] = defaultdict(set)
        self.down_until = self.cut_until = self.slow_until = self.due_step = 0
        self._inbox: list[tuple[str, bytes]] = []
        self._slow_steps = 0
        self._is_connected = False

    def _on_new_store(self, number: int, known: Membership | None = None) -> SimulatedLander:
        store = f"{self.sink}-{number}"
        process = self._new_process()
        return SimulatedLander(store, self._running, known, self.sink, process, terms=self._terms)

    def _new_process(self) -> Replica:
        self._processes += 1
        return Replica(1, self._processes, self.name)

    def holds(self, device: str) -> bool:
        """Return whether something of a device is in its store."""
        return any(of == device for _, _, _, of, *_ in self.lander.panes)

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
        answers = [self.lander.hear(topic, payload, now_us) for topic, payload in inbox]
        if not self._is_connected:
            self._is_connected = True
            self.lander.connected(now_us)
        self.lander.commit(now_us)
        for answer in answers:
            if answer is not None:
                if type(answer) is AckFrame and answer.not_taken:
                    self._note(answer)
                yield answer
        yield from self.lander.repeated(now_us)
        yield from self.lander.asks(now_us)

    def _note(self, answer: AckFrame) -> None:
        """Note what an answer does not take."""
        known = self.not_taken[answer.about]
        for _, (incarnation, nonce, runs) in answer.not_taken:
            for first, last in runs:
                known.update(EntryKey(incarnation, nonce, seq) for seq in range(first, last + 1))

    def disconnect(self) -> None:
        """Lose the connection until the next commit."""
        self._is_connected = False
        self.lander.disconnected()

    def crash(self, until: int) -> int:
        """End the process; return how many messages are lost with it."""
        lost, self._inbox = len(self._inbox), []
        self.down_until = until
        self.lander = self.lander.restarted(self._running, self._new_process())
        self.disconnect()
        return lost

    def run_program(self, plan: Plan | None = None) -> None:
        """Restart with another program; without one, with its own."""
        self.refused = self.refused or plan is not None
        self._running = plan or self._plan
        self.crash(until=0)

    def slow_down(self, step: int, steps: int) -> None:
        """Let each commit take some steps, for a while."""
        self._slow_steps, self.slow_until = steps, step + 2 * steps
        self.due_step = step + steps

    def lose_store(self) -> None:
        """Put an empty store with another id in place of this one."""
        self.former.append(self.lander)
        self.not_taken.clear()
        self.lander = self._on_new_store(len(self.former) + 1, self.lander.membership)
        self._inbox.clear()
        self.disconnect()

    def heal(self) -> None:
        """Let it run its own program, hear, and commit at once."""
        self.down_until = self.cut_until = self.slow_until = self.due_step = 0
        if self._running is not self._plan:
            self.run_program()
