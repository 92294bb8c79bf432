"""What a job knows of earlier lives of devices, over batches and restarts."""

from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st

from cloud_tier.job.lives import DeviceLives, lives_after
from cloud_tier.lake.coverage import liveness_of
from cloud_tier.lake.tables import LIVES
from crdts.frontier import BOTTOM_US
from lasp_edge.protocol.frontier import Liveness
from lasp_edge.protocol.lost_stores import EarlierLives
from tests.cloud_tier.support_devices import row


def promise(seq, device, life, low_us, since_us=None):
    given_ = {"low_us": low_us, "done": False, "received_us": seq, "since_us": since_us}
    return row("promise", device, life, 7, seq, **given_)


PROMISES = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.integers(0, 1),
        st.integers(0, 50),
        st.none() | st.integers(0, 60),
    ),
    max_size=12,
).map(
    lambda drawn: [
        promise(seq, device, 1 + sum(n for d, n, *_ in drawn[: seq + 1] if d == device), *rest)
        for seq, (device, _, *rest) in enumerate(drawn)
    ]
)


class Job:
    """What the driver of a job keeps of promises, and the rows that it has written of lives."""

    def __init__(self):
        self.lives, self.liveness, self.rows = DeviceLives(), Liveness(), []

    def take(self, rows):
        before, self.lives = self.lives, lives_after(self.lives, self.liveness, rows, None)
        self.rows += [*rows, *self.lives.rows_after(before).to_pylist()]
        self.liveness = self.liveness.joined(liveness_of(rows))

    def restart(self):
        """Read what the newest row of each device says, as `device_rows` gives it."""
        newest = {}
        for each in self.rows:
            at = (each["kind"], each["device"])
            version = (each["incarnation"], each["nonce"], each["seq"])
            newest[at] = max(newest.get(at, (version, each)), (version, each), key=lambda e: e[0])
        self.lives = DeviceLives.of(each for _, each in newest.values())

    @property
    def known(self):
        return (dict(self.lives.earlier), dict(self.lives.lost))


@given(rows=PROMISES, cuts=st.lists(st.integers(0, 12), max_size=4), restarts=st.booleans())
@example(
    rows=[promise(0, "a", 1, 40), promise(1, "a", 2, 5, 30), promise(2, "a", 3, 9, 50)],
    cuts=[0, 1],
    restarts=True,
)
def test_in_which_batch_a_promise_is_changes_nothing_nor_does_a_restart(rows, cuts, restarts):
    one_by_one, batches = Job(), Job()
    for each in rows:
        one_by_one.take([each])
    ends = [0, *sorted(cuts), len(rows)]
    for first, end in pairwise(ends):
        batches.take(rows[first:end])
        if restarts:
            batches.restart()
    assert batches.known == one_by_one.known


@given(PROMISES)
def test_a_batch_that_is_done_again_changes_nothing(rows):
    job = Job()
    job.take(rows)
    known, written = job.known, len(job.rows)
    job.restart()
    job.take(rows)
    assert (job.known, len(job.rows)) == (known, written + len(rows))


def test_lives_begin_with_nothing_and_go_on_from_what_the_one_before_had_promised():
    job = Job()
    job.take([promise(1, "a", 1, 40)])
    assert job.known == ({"a": EarlierLives(BOTTOM_US, BOTTOM_US)}, {})
    job.take([promise(2, "a", 2, 10), promise(3, "a", 2, 20, 50)])
    assert job.known == ({"a": EarlierLives(40, BOTTOM_US)}, {"a": (40, 50)})
    assert [each["kind"] for each in job.rows].count(LIVES) == 2
