"""The dashboard for Grafana asks for what agents export, and is of a form that Grafana takes."""

import itertools
import json
import re

import pytest

from device_agent.agent.watching.metrics import metrics
from lasp_edge.metrics.exposition import exposition
from tests.device_agent.agent.watching.test_metrics import LINK, read
from tests.support_readme import CHECKOUT

DASHBOARD = json.loads((CHECKOUT / "docs" / "grafana.json").read_text())
PANELS = DASHBOARD["panels"]
ASKED = [target["expr"] for panel in PANELS for target in panel["targets"]]
OF_PROMETHEUS = {"instance", "job"}
"""Labels that Prometheus adds to everything that it reads."""


@pytest.fixture
def exported(device):
    """Return metric -> its labels, of an agent of which everything is to be said."""
    device.read([21.5, 22.5])
    for name in ("refused: x", "failed: x", "frame: x", "sink: x", "clone_alarms"):
        device.core.counters.add(name)
    device.tick()
    core = device.core
    text = exposition(metrics(core.report(), core.counters.totals, LINK, "greenhouse"))
    return {name: {label for label, _ in labels} for name, labels in read(text)}


def test_every_metric_that_is_asked_for_is_exported_with_its_labels(exported):
    variables = [v for v in DASHBOARD["templating"]["list"] if v["type"] == "query"]
    of_variables = [v["query"]["query"] for v in variables]
    for asked in ASKED:
        named = re.findall(r"\b(?:lasp_edge|process)_\w+", asked)
        assert named
        assert set(named) <= set(exported), asked
        labels = exported[named[0]] | OF_PROMETHEUS
        for chosen in re.findall(r"\{(.*?)\}", asked):
            assert set(re.findall(r"(\w+)=~?\"", chosen)) <= labels, asked
        for group in re.findall(r"(?:by|on) \((.*?)\)", asked):
            assert set(group.split(", ")) <= labels, asked
    for asked in of_variables:
        metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", asked).groups()
        assert label in exported[metric]


def test_legends_name_labels_of_their_metric(exported):
    for panel in PANELS:
        for target in panel["targets"]:
            (metric, *_) = re.findall(r"\b(?:lasp_edge|process)_\w+", target["expr"])
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert shown <= exported[metric] | OF_PROMETHEUS


def test_what_agents_export_of_values_and_readings_is_shown():
    asked = " ".join(ASKED)
    for metric in ("value", "value_settled", "readings_total", "sent_bytes_total", "connected"):
        assert f"lasp_edge_{metric}{{" in asked


def test_grafana_takes_its_form():
    assert DASHBOARD["schemaVersion"] >= 36
    assert {"title", "uid", "time", "templating", "annotations"} <= set(DASHBOARD)
    assert "id" not in DASHBOARD  # Grafana gives it
    (source, *_) = DASHBOARD["templating"]["list"]
    assert (source["type"], source["query"], source["name"]) == (
        "datasource",
        "prometheus",
        "datasource",
    )
    ids = [panel["id"] for panel in PANELS]
    assert sorted(ids) == list(range(1, len(PANELS) + 1))
    for panel in PANELS:
        assert panel["type"] in {"stat", "timeseries"}
        assert panel["description"].endswith(".")
        for each in (panel, *panel["targets"]):
            assert each["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        refs = [target["refId"] for target in panel["targets"]]
        assert refs == sorted(set(refs))


def test_no_panel_lies_on_another_or_beyond_the_grid():
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in PANELS)
        for x, y in itertools.product(
            range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        )
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
