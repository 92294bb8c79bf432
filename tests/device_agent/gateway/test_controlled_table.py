"""A gateway's table lowers each row by the fold of its own window's start."""

from crdts import ControlLog
from device_agent.gateway.kept import FleetChanges, FleetState
from device_agent.gateway.store import FleetStore
from device_agent.gateway.table import definitions, meaning_of, plain_row
from lasp_edge import Program, folds
from lasp_edge.language.regimes import WindowRegimes
from lasp_edge.protocol.window_rows import FleetRow, WindowStart
from tests.lasp_edge.language.support_controlled import S, greenhouse, log_of

PLAN = greenhouse().plan()


def test_a_row_is_lowered_by_the_fold_that_made_it(tmp_path):
    log = log_of(("mode", "", 60 * S, "night"), ("error", "", 60 * S, "0.02"))
    window = PLAN.windows["p90"]
    regimes = WindowRegimes(window, PLAN.functions, log)
    store = FleetStore(tmp_path)
    store.put_facts({"program": meaning_of(PLAN, log)})
    store.commit(FleetChanges(state=FleetState(control=log)))
    assert store.restored().control == log
    meaning = definitions(store)["p90"]
    for start_us in (0, 60 * S):
        fold = regimes.form_at(start_us).fold
        partial = fold.lift_column([100, 200, 5_000], [0, 0, 0])
        row = FleetRow(
            WindowStart("p90", "", start_us),
            *(start_us + 30 * S, partial, 1, 1, (), "final", 0, None, window.stream),
        )
        assert plain_row(meaning, row)["p90"] == fold.lower(partial, window.resolution)["p90"]
    coarse, fine = (regimes.form_at(at).fold for at in (0, 60 * S))
    lowered = coarse.lower(partial, window.resolution)["p90"]
    assert lowered != fine.lower(partial, window.resolution)["p90"]
    store.close()


def test_the_parts_of_a_struct_are_lowered_in_their_own_order(tmp_path):
    program = Program("house")
    heat = program.event("heat", resolution="0.1")
    both = folds.struct(mean=folds.mean(), low=folds.min())  # the names are not in order
    window = program.window("both", source=heat, fold=both, size_s=10)
    store = FleetStore(tmp_path)
    store.put_facts({"program": meaning_of(program.plan(), ControlLog())})
    partial = (2, 300, 100)
    row = FleetRow(
        WindowStart("both", "", 0),
        *(10 * S, partial, 1, 1, (), "final", 0, None, window.stream),
    )
    shown = plain_row(definitions(store)["both"], row)
    assert (shown["mean"], shown["low"]) == (15.0, 10.0)
    store.close()


def test_what_was_said_outlives_the_gateway(tmp_path):
    store = FleetStore(tmp_path)
    assert store.restored().control == ControlLog()
    store.close()
