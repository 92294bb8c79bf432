"""Figures as Prometheus reads them.

Source: Prometheus, "Exposition formats", text format 0.0.4,
https://prometheus.io/docs/instrumenting/exposition_formats/.

    >>> print(exposition([Metric("lasp_edge_connected", "gauge", "1: the broker has taken it.",
    ...                          [({"device": "attic"}, 1)])]), end="")
    # HELP lasp_edge_connected 1: the broker has taken it.
    # TYPE lasp_edge_connected gauge
    lasp_edge_connected{device="attic"} 1
"""

import os
import resource
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from lasp_edge.metrics.page import Reply

GAUGE, COUNTER = "gauge", "counter"
Labels = Mapping[str, str]


class Metric(NamedTuple):
    """One metric: its name, its type, its help, and each sample's labels and number."""

    name: str
    kind: str
    help: str
    samples: Sequence[tuple[Labels, float]]


def exposition(metrics: Iterable[Metric]) -> str:
    """Return metrics as Prometheus reads them."""
    lines = []
    for metric in metrics:
        lines.append(f"# HELP {metric.name} {_escaped(metric.help)}")
        lines.append(f"# TYPE {metric.name} {metric.kind}")
        lines += [f"{metric.name}{_labelled(labels)} {n}" for labels, n in metric.samples]
    return "\n".join(lines) + "\n"


def metrics_reply(metrics: Iterable[Metric]) -> Reply:
    """Return the answer to a request for metrics."""
    return Reply(200, "text/plain; version=0.0.4; charset=utf-8", exposition(metrics))


def process_metrics() -> Iterator[Metric]:
    """Yield the metrics of a process under the names of Prometheus' own clients."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = round(used.ru_utime + used.ru_stime, 3)
    yield Metric("process_cpu_seconds_total", COUNTER, "Processor time in seconds.", [({}, cpu_s)])
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - no path is at hand
        pages = int(file.read().split()[1])
    resident = pages * os.sysconf("SC_PAGE_SIZE")
    yield Metric(
        "process_resident_memory_bytes", GAUGE, "Resident memory in bytes.", [({}, resident)]
    )


def _labelled(labels: Labels) -> str:
    if not labels:
        return ""
    inner = ",".join(f'{name}="{_quoted(value)}"' for name, value in labels.items())
    return "{" + inner + "}"


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', '\\"')


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")
