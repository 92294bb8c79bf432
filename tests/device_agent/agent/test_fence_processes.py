"""Real agents whose store is lost, on a real broker that comes back empty: nothing counts twice."""

import shutil
import signal

import pytest

from simulations.oracle import dynamic_partials

pytestmark = [pytest.mark.broker, pytest.mark.slow]

ROWS = 300


def lose_all(stage, agent) -> None:
    """Kill an agent and the broker, and take from both all that they have kept."""
    agent.end(signal.SIGKILL)
    shutil.rmtree(agent.data)
    stage.broker.kill()
    stage.broker.forget()
    stage.broker.start()


def test_a_lost_store_and_an_emptied_broker_double_nothing(stage):
    recorded = {"a": stage.record("a", ROWS + 50), "b": stage.record("b", ROWS)}
    file = stage.directory / "a.jsonl"
    rows = file.read_text().splitlines(keepends=True)
    file.write_text("".join(rows[:ROWS]))
    lost, peer = stage.replay("a"), stage.replay("b")
    stage.lander.serve(lambda: lost.agreed(2) and peer.agreed(2))
    stage.windows_are(recorded["a"][:ROWS], recorded["b"])
    lose_all(stage, lost)
    file.write_text("".join(rows))  # it has gone on, and is read from its beginning
    again = stage.replay("a")
    stage.lander.serve(lambda: again.newest().get("doubtful", 0) + again.report["accepted"] > ROWS)
    stage.lander.serve(lambda: again.agreed(2) and peer.agreed(2))
    told = again.newest()
    assert (told["fence"], told["replica"][0]) == ("vouched", 2)
    after = recorded["a"][ROWS:]
    assert (told["doubtful"], told["accepted"]) == (ROWS, len(after))
    held = {"a": after, "b": recorded["b"]}
    truth = dynamic_partials(stage.program, "global_average", held)[""]
    for agent in (again, peer):
        value = agent.newest()["values"]["global_average"]
        assert (value["count"], value["total_q"]) == truth
    stage.windows_are(*recorded.values())
    assert [again.end(), peer.end()] == [0, 0]
    status = again.status()
    assert (status["doubtful"], status["fence"]) == (ROWS, {"later lives met": 1})
