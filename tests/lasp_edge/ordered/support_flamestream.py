"""The cases of FlameStream's GroupingTest (flame-stream/FlameStream, commit bf864a62).

An item is a place, by time and path, and its value; a value of None takes the item back.
"""


def at(time_us, *path):
    return time_us, "", (), path


ONE, TWO, THREE = (at(1), "v1"), (at(2), "v2"), (at(3), "v3")
PAIRS = {("v1",), ("v1", "v2"), ("v2", "v3")}
GROUPING = {
    "withoutReordering": ([ONE, TWO, THREE], PAIRS),
    "groupWithSuccessor": (
        [
            (at(2), "v5"),
            (at(2, 0), "v5State"),
            (at(1), "x0"),
            (at(1, 0), "x0State"),
            (at(2, 0, 0), "theState"),
        ],
        {
            ("x0",),
            ("x0", "x0State"),
            ("x0State", "v5"),
            ("v5", "v5State"),
            ("v5State", "theState"),
        },
    ),
    "cycleSimulation": (
        [ONE, TWO, (at(1, 0), "state")],
        {("v1",), ("v1", "state"), ("state", "v2")},
    ),
    "headReordering": ([TWO, ONE, THREE], PAIRS),
    "tailReordering": ([ONE, THREE, TWO], PAIRS),
    "reverseReordering": ([THREE, TWO, ONE], PAIRS),
    "reorderingWithInvalidating": (
        [ONE, TWO, THREE, (at(3), None)],
        {("v1",), ("v1", "v2")},
    ),
}
"""Case -> the items as they arrive, and the groups of two in the end."""
FULL = (
    (2, (1, 2, 3), {(1, 2), (2, 3)}),
    (2, (3, 2, 1), {(1, 2), (2, 3)}),
    (3, (1, 2, 3, 4), {(1, 2, 3), (2, 3, 4)}),
    (3, (4, 3, 2, 1), {(1, 2, 3), (2, 3, 4)}),
)
"""The size of groups, the order of arrival, and the groups that are full."""
