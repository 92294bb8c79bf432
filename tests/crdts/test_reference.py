"""The same random histories of three replicas, here and in lasp-lang/types, the field's reference.

Lasp's own data types run in Erlang. Compile lasp-lang/types (https://github.com/lasp-lang/types) to
a directory outside the checkout, put its name into LASP_TYPES_EBIN, and have `erl` on PATH. After
every step of a history both sides tell the values of all three replicas. LASP_TYPES_HISTORIES sets
how many histories a type gets; `pytest -s` prints how many operations ran, and what differed.
"""

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from crdts import (
    DWFlag,
    EWFlag,
    GCounter,
    GSet,
    LWWRegister,
    MVRegister,
    ORMap,
    ORSet,
    Pair,
    PNCounter,
    Replica,
    TwoPSet,
)

REPLICAS = [Replica(1, nonce, f"pi-{nonce}") for nonce in range(3)]
HISTORIES = int(os.environ.get("LASP_TYPES_HISTORIES", "30"))
STEPS = 30

# Reads histories, prints for each step the values of the three replicas as JSON, a line a history.
DRIVER = """ Plain = fun Plain(true) -> 1; Plain(false) -> 0; Plain(undefined) -> -1; Plain(N) when
is_integer(N) -> N; Plain(L) when is_list(L) -> [Plain(X) || X <- L]; Plain(T) -> case
sets:is_set(T) of true -> lists:sort([Plain(X) || X <- sets:to_list(T)]); false -> [Plain(X) || X <-
tuple_to_list(T)] end end, New = fun(T, []) -> T:new(); (T, Args) -> T:new(Args) end, Step = fun(T,
{write, At, Op}, S) -> {ok, Next} = T:mutate(Op, At, element(At, S)), setelement(At, S, Next); (T,
{send, At, To, Op}, S) -> {ok, Delta} = T:delta_mutate(Op, At, element(At, S)), Wrote =
setelement(At, S, T:merge(element(At, S), Delta)), setelement(To, Wrote, T:merge(element(To, Wrote),
Delta)); (T, {join, From, To}, S) -> setelement(To, S, T:merge(element(To, S), element(From, S)))
end, {ok, Histories} = file:consult(hd(init:get_plain_arguments())), lists:foreach(fun({T, Args,
Steps}) -> Bottom = New(T, Args), {_, Seen} = lists:foldl(fun(Command, {S, Told}) -> Next = Step(T,
Command, S), {Next, [[Plain(T:query(Q)) || Q <- tuple_to_list(Next)] | Told]} end, {{Bottom, Bottom,
Bottom}, []}, Steps), io:format("~w~n", [lists:reverse(Seen)]) end, Histories), halt().
"""


def add_or_remove(draw, kind):
    element = draw.randrange(4)
    name = draw.choice(["add", "add", "rmv"])
    mutator = kind.add if name == "add" else kind.remove
    return f"{{{name},{element}}}", lambda state, me: mutator(state, me, element)


def chosen(*operations):
    return lambda draw, _at: draw.choice(operations)


def add(draw, _at):
    element = draw.randrange(4)
    return f"{{add,{element}}}", lambda state, me: state.add(me, element)


def set_value(draw, at):
    value = draw.randrange(4)
    return (
        f"{{set,{at},{value}}}",
        lambda state, me: (
            state.write(me, value, at) if isinstance(state, LWWRegister) else state.write(me, value)
        ),
    )


INCREMENT = ("increment", lambda state, me: state.increment(me))
DECREMENT = ("decrement", lambda state, me: state.decrement(me))
ENABLE = ("enable", lambda state, me: state.enable(me))
DISABLE = ("disable", lambda state, me: state.disable(me))
counting = chosen(INCREMENT)
switching = chosen(ENABLE, DISABLE)


def below_a_key(operations, *, removing):
    def on_map(draw, at):
        key = draw.randrange(3)
        if removing and draw.random() < 0.2:
            return f"{{rmv,{key}}}", lambda state, me: state.remove(me, key)
        op, write = operations(draw, at)
        return f"{{apply,{key},{op}}}", lambda state, me: state.update(me, key, write)

    return on_map


def on_a_side(first, second):
    def on_pair(draw, at):
        if draw.random() < 0.5:
            op, write = first(draw, at)
            return f"{{fst,{op}}}", lambda s, me: Pair(write(s.first, me), s.second.bottom())
        op, write = second(draw, at)
        return f"{{snd,{op}}}", lambda s, me: Pair(s.first.bottom(), write(s.second, me))

    return on_pair


def orset_operation(draw, _at):
    return add_or_remove(draw, ORSet)


# What they call it, their constructor's arguments, our bottom, and the operations of both.
TYPES = {
    "gcounter": ("", GCounter, counting),
    "pncounter": ("", PNCounter, chosen(INCREMENT, DECREMENT)),
    "gset": ("", GSet, add),
    "twopset": ("", TwoPSet, lambda draw, _at: add_or_remove(draw, TwoPSet)),
    "orset": ("", ORSet, orset_operation),
    "awset": ("", ORSet, orset_operation),
    "lwwregister": ("", LWWRegister, set_value),
    "mvregister": ("", MVRegister, set_value),
    "ewflag": ("", EWFlag, switching),
    "dwflag": ("", DWFlag, switching),
    "awmap": ("state_awset", lambda: ORMap(ORSet()), below_a_key(orset_operation, removing=True)),
    "awmap of mvregister": (
        "state_mvregister",
        lambda: ORMap(MVRegister()),
        below_a_key(set_value, removing=True),
    ),
    "awmap of ewflag": (
        "state_ewflag",
        lambda: ORMap(EWFlag()),
        below_a_key(switching, removing=True),
    ),
    "awmap of awmap": (
        "{state_awmap,[state_awset]}",
        lambda: ORMap(ORMap(ORSet())),
        below_a_key(below_a_key(orset_operation, removing=True), removing=True),
    ),
    "gmap": ("state_gcounter", lambda: ORMap(GCounter()), below_a_key(counting, removing=False)),
    "pair": (
        "state_gcounter,state_gset",
        lambda: Pair(GCounter(), GSet()),
        on_a_side(counting, add),
    ),
}

# Their orset keeps each token of an element, ours (and their awset) replaces those observed by one.
# So a removal's delta takes tokens with it there of which a receiver here has yet to hear that they
# were replaced. Joins of whole states agree at every step.
WITHOUT_LONE_DELTAS = {"orset"}


def plain(value):
    """A value as the driver prints it."""
    match value:
        case None:
            return -1
        case frozenset():
            return sorted(map(plain, value))
        case dict():
            return [[key, plain(value[key])] for key in sorted(value)]
        case tuple():
            return list(map(plain, value))
        case _:
            return int(value)


def history(draw, name):
    """One random history: the reference's term, and what our replicas hold after each step."""
    arguments, bottom, operation = TYPES[name]
    states = [bottom() for _ in REPLICAS]
    commands, values = [], []
    for at in range(1, STEPS + 1):
        here, there = draw.randrange(3), draw.randrange(3)
        op, write = operation(draw, at)
        match draw.choice(["write", "join"] + ["send"] * (name not in WITHOUT_LONE_DELTAS)):
            case "write":
                states[here] |= write(states[here], REPLICAS[here])
                commands.append(f"{{write,{here + 1},{op}}}")
            case "send":
                delta = write(states[here], REPLICAS[here])
                states[here] |= delta
                states[there] |= delta
                commands.append(f"{{send,{here + 1},{there + 1},{op}}}")
            case "join":
                states[there] |= states[here]
                commands.append(f"{{join,{here + 1},{there + 1}}}")
        values.append([plain(state.value) for state in states])
    module = f"state_{name.split()[0]}"
    return f"{{{module},[{arguments}],[{','.join(commands)}]}}.", values


@pytest.fixture(scope="module")
def ebin():
    named = os.environ.get("LASP_TYPES_EBIN")
    if not named or not Path(named, "state_type.beam").is_file():
        pytest.skip("no compiled lasp-lang/types; say where it is in LASP_TYPES_EBIN")
    if shutil.which("erl") is None:
        pytest.skip("no Erlang to run lasp-lang/types with; install erlang-base")
    return named


@pytest.mark.parametrize("name", TYPES)
def test_every_replica_holds_after_every_step_what_the_reference_holds(name, ebin, tmp_path):
    draw = random.Random(f"reference {name}")
    terms, expected = zip(*(history(draw, name) for _ in range(HISTORIES)), strict=True)
    written = tmp_path / "histories"
    written.write_text("\n".join(terms))
    command = ["erl", "-noshell", "-pa", ebin, "-eval", DRIVER, "-extra", str(written)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    seen = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(seen) == HISTORIES, ran.stdout[-2000:]
    compared, differing = differences(expected, seen)
    print(f"\n{name}: {HISTORIES * STEPS:,} operations, {compared:,} values compared, ", end="")
    print(f"{sum(differing.values()):,} differed")
    assert not differing, terms[min(differing)]


def differences(expected, seen):
    """How many values there are, and history -> how many of them differ, where any does."""
    compared, differing = 0, {}
    for at, histories in enumerate(zip(expected, seen, strict=True)):
        steps = zip(*histories, strict=True)
        pairs = [pair for ours, theirs in steps for pair in zip(ours, theirs, strict=True)]
        compared += len(pairs)
        if wrong := sum(ours != theirs for ours, theirs in pairs):
            differing[at] = wrong
    return compared, differing
