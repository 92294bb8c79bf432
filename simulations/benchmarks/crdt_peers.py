"""The peers of `simulations.benchmarks.crdts`: pycrdt, and lasp-lang/types in Erlang.

They do not do the same work. A pycrdt document is a set by way of a map's keys, in Rust, and takes
updates as bytes only. The reference's `state_awset` is measured on a fifth of the elements, since
its adds are quadratic, and scaled up linearly, in its favour.
"""

import importlib
import os
import shutil
import subprocess
from functools import partial
from typing import Any

from simulations.benchmarks.measure import cpu_s, is_installed

PYCRDT, REFERENCE = "pycrdt", "reference"
BRING = {
    PYCRDT: "not installed: pip install 'lasp-edge[bench]'",
    REFERENCE: "lasp-lang/types, compiled, and erl: name its directory in LASP_TYPES_EBIN",
}
REFERENCE_SIZE = 2_000

ERLANG = """
Build = fun(Actor, Elements) -> lists:foldl(fun(E, S) ->
    {ok, Next} = state_awset:mutate({add, E}, Actor, S), Next end, state_awset:new(), Elements) end,
erlang:statistics(runtime),
A = Build(1, lists:seq(1, 2000)), {_, Adds} = erlang:statistics(runtime),
B = Build(2, lists:seq(2001, 4000)), erlang:statistics(runtime),
lists:foreach(fun(_) -> state_awset:merge(A, B) end, lists:seq(1, 100)),
{_, Joins} = erlang:statistics(runtime),
io:format("~w ~w ~w", [Adds, Joins, byte_size(state_awset:encode(erlang, A))]), halt().
"""


def of_pycrdt(size: int, deltas: int, rounds: int) -> dict[str, float] | None:
    """Return CPU seconds and bytes by what was done; None where pycrdt is missing.

    `deltas` deltas of one element are applied to sets of `size`; of `rounds` the fastest counts.
    """
    if not is_installed("pycrdt"):
        return None
    sets = PycrdtSets(size)
    there = sets.document(size)
    whole = there.get_update()
    updates = sets.one_element_updates(there, deltas)
    return {
        "adds": cpu_s(sets.fill_one_by_one, sets.empty, rounds),
        "batch": cpu_s(lambda made: sets.fill(made, 0), sets.empty, rounds),
        "join": cpu_s(lambda here: here.apply_update(whole), lambda: sets.document(0), rounds),
        "deltas": cpu_s(partial(apply_all, updates), lambda: sets.document(size), rounds),
        "bytes": len(whole) / size,
    }


def apply_all(updates: list[bytes], document: Any) -> None:
    """Apply every update."""
    for update in updates:
        document.apply_update(update)


class PycrdtSets:
    """Sets of numbers as pycrdt documents: the keys of a map."""

    def __init__(self, size: int) -> None:
        self._pycrdt = importlib.import_module("pycrdt")
        self._size = size

    def empty(self) -> Any:
        """Return a document of nothing."""
        return self._pycrdt.Doc()

    def elements(self, document: Any) -> Any:
        """Return the map whose keys are the set."""
        return document.get("set", type=self._pycrdt.Map)

    def fill(self, document: Any, first: int) -> None:
        """Add the numbers from `first` on, in one transaction."""
        elements = self.elements(document)
        with document.transaction():
            for number in range(first, first + self._size):
                elements[str(number)] = True

    def fill_one_by_one(self, document: Any) -> None:
        """Add the numbers from 0 on, each in a transaction of its own."""
        elements = self.elements(document)
        for number in range(self._size):
            elements[str(number)] = True

    def document(self, first: int) -> Any:
        """Return a document with the numbers from `first` on."""
        made = self.empty()
        self.fill(made, first)
        return made

    def one_element_updates(self, document: Any, count: int) -> list[bytes]:
        """Add `count` more elements to `document`; return the update that each makes."""
        updates = []
        for number in range(count):
            before = document.get_state()
            self.elements(document)[f"+{number}"] = True
            updates.append(document.get_update(before))
        return updates


def of_reference(size: int) -> dict[str, float] | None:
    """Return CPU seconds, scaled up, and bytes by what was done; None where it is missing."""
    ebin, erl = os.environ.get("LASP_TYPES_EBIN"), shutil.which("erl")
    if not ebin or erl is None:
        return None
    command = [erl, "-noshell", "-pa", ebin, "-eval", ERLANG]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  # ours
    adds_ms, joins_ms, size_bytes = map(int, ran.stdout.split())
    scale = size / REFERENCE_SIZE
    return {
        "adds": scale * adds_ms / 1e3,
        "join": scale * joins_ms / 100 / 1e3,
        "bytes": size_bytes / REFERENCE_SIZE,
    }
