"""Parameters in a program: what can be declared, and what is refused at once."""

import pickle

import pytest

from lasp_edge import Program, folds
from lasp_edge.examples.greenhouse import program as without_parameters
from lasp_edge.language.arguments import of_event_and_parameters
from lasp_edge.language.parameters import canonical, is_value, need_value, plain, shown
from lasp_edge.language.plan import windows_of_streams
from tests.lasp_edge.language.support_controlled import greenhouse


def begun():
    program = Program("p")
    return program, program.event("temperature", resolution="0.1")


def test_a_program_without_parameters_is_what_it_was():
    plan = without_parameters.plan()
    (window,) = plan.windows.values()
    assert (plan.digest, window.stream) == ("bcb1b4deabbe9bd2", -3849573467664809380)
    assert window.is_fixed
    assert not plan.parameters


def test_a_window_says_what_changes_it():
    plan = greenhouse().plan()
    controls = plan.windows["sums"].controls
    assert [each.name for each in controls.parameters] == ["above", "offset", "span_s", "step_s"]
    assert (controls.size.name, controls.slide.name) == ("span_s", "step_s")
    assert (controls.fold, controls.value, controls.where) == (False, True, True)
    assert plan.windows["sums"].size_us == 40_000_000


def test_a_plan_with_parameters_travels_without_its_functions():
    plan = greenhouse().plan()
    again = pickle.loads(pickle.dumps(plan))
    assert again.parameters == plan.parameters
    assert again.windows["sums"].controls == plan.windows["sums"].controls
    assert again.digest == plan.digest
    with pytest.raises(RuntimeError, match="leaves the functions behind"):
        again.functions.windows  # noqa: B018 - asking is the error


@pytest.mark.parametrize(
    ("where", "given"),
    [
        (lambda event: (event,), ("event",)),
        (lambda at: (at,), ("event",)),
        (lambda event, least=5: (event, least), ("event", 5)),
        (lambda event, *, least=5: (event, least), ("event", 5)),
        (lambda event, at: (event, at), ("event", "at")),
        (lambda event, given: (event, given), ("event", "at")),
        (lambda event, at=None: (event, at), ("event", "at")),
        (lambda *given: given, ("event", "at")),
    ],
)
def test_a_default_is_kept_by_a_function_of_an_event_and_parameters(where, given):
    assert of_event_and_parameters(where)("event", "at") == given


def window_of(default="28", version=1, **more):
    program, temperature = begun()
    above = program.parameter("above", default)
    given = {"where": lambda event, at: event.value > at[above], "uses": (above,)} | more
    return program.window(
        "hot", source=temperature, fold=folds.count(), size_s=60, version=version, **given
    )


def test_what_changes_a_windows_meaning_changes_its_stream():
    streams = {
        window_of().stream,
        window_of("29").stream,
        window_of(version=2).stream,
        window_of(value=lambda event, at: event.value).stream,
    }
    assert len(streams) == 4
    assert window_of().stream == window_of("28.0").stream


def test_digests_of_programs_tell_parameters_apart():
    def digest(resolution):
        program, temperature = begun()
        above = program.parameter("above", "28", resolution=resolution)
        program.window(
            "hot",
            source=temperature,
            fold=folds.count(),
            size_s=60,
            uses=(above,),
            where=lambda event, at: event.value > at[above],
        )
        return program.plan().digest

    assert digest("1") != digest("0.5")


def test_values_are_read_exactly():
    program, _ = begun()
    above = program.parameter("above", "28.0", resolution="0.1", unit="°C")
    whole = program.parameter("whole", "60")
    assert (plain(above, "28.50"), canonical(above, "28.50")) == (28.5, "57/2")
    assert canonical(above, "-0") == canonical(above, "0.0")
    assert (plain(whole, "60"), type(plain(whole, "60.0"))) == (60, int)
    assert shown(above, "30.10") == "30.1 °C"
    for text in ("28.55", "NaN", "inf", "1e99", "", "1_0", "warm", "1e400000000"):
        assert not is_value(above, text)


@pytest.mark.parametrize(
    ("declare", "reason"),
    [
        (lambda p, t: p.parameter("two words", "1"), "a name as of a variable"),
        (lambda p, t: p.parameter("x", 5), 'a text such as "28" is needed, not 5'),
        (lambda p, t: p.parameter("x", "1.5"), "a number in steps of 1 is needed, not '1.5'"),
        (lambda p, t: p.parameter("x", "1", resolution="0"), "a step from"),
        (lambda p, t: p.parameter("x", "dusk", choices=("day", "night")), "one of day, night"),
        (lambda p, t: p.parameter("x", "day", choices="day"), r"a tuple .*: choices=\('day',\)"),
        (lambda p, t: p.parameter("x", "day", choices=("day", "")), "a choice is a printable"),
        (lambda p, t: p.parameter("x", "day", choices=("day", "day")), "different choices"),
        (lambda p, t: [p.parameter("x", "1") for _ in "12"], "declared twice"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused(declare, reason):
    with pytest.raises(ValueError, match=reason):
        declare(*begun())


def where(_event, _at):
    return True


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"uses": ("above",)}, "it has none of these"),
        ({"uses": "above", "where": where}, r"a tuple is needed, .*: uses=\('above',\)"),
        ({"uses": "ABOVE", "where": where}, r"a tuple is needed, .*: uses=\(above,\)"),
        ({"uses": ("above",), "where": lambda event: True}, "none of them takes at; write lambda"),
        ({"uses": ("above",), "where": lambda event, values=1: True}, "none of them takes at"),
        ({"uses": ("below",), "where": where}, "'below' is not a parameter of program 'p'"),
        ({"where": "warm"}, "a function .event. or .event, at. is needed"),
        ({"where": where, "version": 0}, "version must be a whole number"),
        ({"slide_s": "MODE"}, "is a text; a size or slide is a number"),
        ({"size_s": "ABOVE", "slide_s": 30}, "a slide from size"),
        ({"fold": lambda at: folds.sum() if at["above"] else 0}, "name it in uses"),
        ({"fold": lambda at: 5, "uses": ("above",)}, "its fold cannot be made"),
        (
            {
                "fold": lambda at: folds.sum() if at["mode"] == "day" else folds.mean(),
                "uses": ("mode",),
            },
            "must not depend on parameters",
        ),
    ],
)
def test_a_window_that_cannot_be_is_refused_and_nothing_is_declared(given, reason):
    program, temperature = begun()
    above = program.parameter("above", "28")
    mode = program.parameter("mode", "day", choices=("day", "night"))
    named = {"ABOVE": above, "MODE": mode}
    given = {"size_s": 60, "fold": folds.count()} | {
        name: named.get(each, each) if isinstance(each, str) else each
        for name, each in given.items()
    }
    with pytest.raises(ValueError, match=reason):
        program.window("hot", source=temperature, **given)
    program.window(
        "hot",
        source=temperature,
        fold=folds.count(),
        size_s=above,
        uses=(mode,),
        where=lambda event, at: at[mode] == "day",
    )
    program.plan()


def test_a_parameter_that_nothing_uses_is_refused():
    program, temperature = begun()
    program.parameter("above", "28")
    program.window("hot", source=temperature, fold=folds.count(), size_s=60)
    with pytest.raises(ValueError, match=r"parameter 'above': nothing uses it.* at\['above'\]"):
        program.plan()


def test_a_parameter_that_a_window_asks_for_without_naming_it_is_refused_with_what_to_write():
    program, temperature = begun()
    program.window(
        "hot",
        source=temperature,
        fold=folds.count(),
        size_s=60,
        where=lambda event, at: event.value > at["above"],
    )
    program.parameter("above", "28")
    with pytest.raises(ValueError, match=r"where= of window 'hot' asks for it.* uses=\(above,\)"):
        program.plan()


def test_a_parameter_of_another_program_is_refused():
    program, temperature = begun()
    program.parameter("above", "28")
    other = Program("other").parameter("above", "29")
    with pytest.raises(ValueError, match="not a parameter of program 'p'"):
        program.window("hot", source=temperature, fold=folds.count(), size_s=other)


def test_windows_over_streams_take_parameters():
    program = Program("house")
    temperature = program.event("temperature", resolution="0.1")
    doubled = program.map(temperature, lambda event: event.value * 2, "doubled", resolution="0.1")
    span = program.parameter("span_s", "60")
    window = program.window("w", source=doubled, fold=folds.max(), size_s=span)
    plan = program.plan()
    assert (window.controls.size, windows_of_streams(plan)) == (span, [window])
    assert plan.windows_of_readings == []


def test_a_factory_of_folds_is_no_function_of_parameters():
    program, temperature = begun()
    span = program.parameter("span_s", "60")
    window = program.window("hot", source=temperature, fold=folds.mean, size_s=span)
    assert not window.controls.fold


def ranged(**given):
    program = Program("p")
    temperature = program.event("temperature", resolution="0.1", **given)
    above = program.parameter("above", "28", resolution="0.5", **given)
    where = (above,), lambda event, at: event.value > at[above]
    window = {"source": temperature, "fold": folds.count(), "size_s": 60}
    program.window("hot", **window, uses=where[0], where=where[1])
    return program.plan()


def test_a_value_outside_of_a_parameters_range_is_none():
    (above,) = ranged(least=10, most=40).parameters.values()
    assert is_value(above, "40")
    assert not is_value(above, "3000")
    with pytest.raises(ValueError, match=r"steps of 0\.5, 10 to 40, is needed, not '3000'"):
        need_value(above, "3000")
    with pytest.raises(ValueError, match="10 to 20, is needed, not '28'"):
        Program("p").parameter("above", "28", least=10, most=20)
    with pytest.raises(ValueError, match="texts have no least and most"):
        Program("p").parameter("mode", "day", choices=("day",), least=10)


def test_a_range_is_another_program_and_the_same_stream():
    plain, narrow, wide = ranged(), ranged(least=10), ranged(least=0)
    assert len({plain.digest, narrow.digest, wide.digest}) == 3
    assert {plan.windows["hot"].stream for plan in (narrow, wide)} == {plain.windows["hot"].stream}
    again = pickle.loads(pickle.dumps(narrow))
    assert again.events["temperature"].scale.quantise_column([10, 11]) == [100, 110]
    assert again.digest == narrow.digest


def test_texts_have_no_range():
    with pytest.raises(ValueError, match="texts have no least"):
        Program("p").event("note", text=True, least=1)
