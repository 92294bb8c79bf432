"""The text of functions, told apart where they stand side by side."""

from functools import partial, wraps

from crdts import BoundedLWWSet
from lasp_edge import folds
from lasp_edge.checking.texts import texts_of
from lasp_edge.language.program import Program
from tests.lasp_edge.checking import planted

CHOSEN = "kitchen"


def program_with(*keys, handlers=(), fold=None, version=1):
    program = Program("p")
    event = program.event("e")
    shared = program.declare(BoundedLWWSet(bound=1).bottom(), "shared")
    samples = program.declare_dynamic(BoundedLWWSet(bound=3), "samples", version=version)
    for make in handlers:
        program.on_event(event)(make(samples, shared))
    for number, key in enumerate(keys):
        window = {"fold": fold or folds.mean(), "version": version}
        program.window(f"w{number}", source=event, size_s=1, key=key, **window)
    return program.plan()


def digests(*keys, **words):
    return [source.digest for source in texts_of(program_with(*keys, **words))]


def test_two_lambdas_of_one_line_are_two():
    a, b = lambda event: event.tags["a"], lambda event: event.tags["b"]
    assert len(set(digests(a, b))) == 2


def test_lambdas_of_one_text_are_one():
    a = lambda event: event.tags["a"]  # noqa: E731
    b = lambda event: (  # noqa: E731
        event.tags["a"]
    )
    assert len(set(digests(a, b))) == 1
    assert digests(a) == digests(a, version=2)


def test_what_a_function_closes_over_counts():
    def by(tag):
        return lambda event: event.tags[tag]

    assert len(set(digests(by("a"), by("b"), by("a")))) == 2


def test_a_constant_and_a_function_that_are_named_count(monkeypatch):
    def key(event):
        return CHOSEN

    before = digests(key)
    monkeypatch.setitem(key.__globals__, "CHOSEN", "hall")
    assert digests(key) != before


def test_functions_that_call_each_other_come_to_an_end():
    assert len(digests(even_or_odd)) == 1


def even_or_odd(event, number=2):
    return "even" if number == 0 else odd_or_even(event, number - 1)


def odd_or_even(event, number):
    return "odd" if number == 0 else even_or_odd(event, number - 1)


def decorated(function):
    @wraps(function)
    def inner(event):
        return function(event)

    return inner


@decorated
def first_key(event):
    return event.tags["a"]


@decorated
def second_key(event):
    return event.tags["b"]


def test_decorated_functions_are_read_as_they_were_written():
    assert len(set(digests(first_key, second_key))) == 2


def test_a_function_without_text_is_left_out():
    made = {}
    exec("def key(event): return 'x'", made)
    found = digests(made["key"], partial(first_key), str, first_key)
    assert len(found) == 1


def feeding(samples, shared):
    def handler(event, update):
        update(samples, BoundedLWWSet.add, event.value, event.time_us)

    return handler


def feeding_twice(samples, shared):
    def handler(event, update):
        update(samples, BoundedLWWSet.add, event.value, event.time_us)
        update(samples, BoundedLWWSet.add, event.value, event.time_us)

    return handler


def sharing(samples, shared):
    def handler(event, update):
        update(shared, BoundedLWWSet.add, event.value, event.time_us)

    return handler


def test_handlers_have_the_version_of_the_dynamic_variables_that_they_feed():
    found = texts_of(program_with(handlers=[feeding, sharing, feeding_twice], version=4))
    assert [(source.name, source.version) for source in found] == [
        ("event e, handler handler", "samples 4"),
        ("event e, handler handler'", "samples 4"),
    ]
    assert len({source.digest for source in found}) == 2


def test_folds_of_the_user_are_read_with_the_classes_they_are_made_of():
    found = [
        source
        for fold in (planted.Total(), planted.HastyColumn(), planted.WrongInverse())
        for source in texts_of(program_with(None, fold=fold))
    ]
    assert [source.name for source in found] == ["fold total_of_mine"] * 3
    assert [source.version for source in found] == ["1"] * 3
    assert len({source.digest for source in found}) == 3
    assert texts_of(program_with(None, fold=folds.top(3))) == []
    inside = texts_of(program_with(None, fold=folds.struct(own=planted.Total())))
    assert [source.digest for source in inside] == [found[0].digest]
