"""An agent's report as figures for Prometheus."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from device_agent.agent.state.counters import OUTCOMES
from lasp_edge.metrics.exposition import COUNTER, GAUGE, Labels, Metric, process_metrics
from lasp_edge.release import RELEASE

_GROUPS = (
    ("refused: ", "refused_readings", "Readings that were refused, by reason."),
    ("frame: ", "refused_messages", "Messages of others that were left aside, by reason."),
    ("failed: ", "failures", "Exceptions of functions, sources and frames, by place."),
    ("sink: ", "sink_alarms", "What is wrong with a lake, by reason."),
)
"""The beginning of a counter's name, the metric's name, and its help."""


class LinkFigures(NamedTuple):
    """What a link has done since its start.

    Attributes:
        connections: how often the broker took it.
        published: messages sent.
        received: messages that came.
        in_flight: messages that were sent and not confirmed.
        sent_bytes: bytes through its sockets.
        received_bytes: the same, the other way.
    """

    connections: int
    published: int
    received: int
    in_flight: int
    sent_bytes: int
    received_bytes: int


def metrics(
    report: Mapping[str, Any], totals: Mapping[str, int], link: LinkFigures, program: str
) -> Iterator[Metric]:
    """Yield all metrics of one agent.

    Args:
        report: the core's.
        totals: the core's counters.
        link: what the link has done.
        program: the program's name.
    """
    device = {"device": report["device"]}
    yield Metric(
        "lasp_edge_info",
        GAUGE,
        "1; what runs.",
        [(device | {"program": program, "release": RELEASE}, 1)],
    )
    yield from _readings(report, totals, device)
    yield from _delivery(report, device)
    yield from _values(report, device)
    yield from _of_link(report, link, device)
    yield from process_metrics()


def _readings(report: Any, totals: Mapping[str, int], device: Labels) -> Iterator[Metric]:
    yield Metric(
        "lasp_edge_readings_total",
        COUNTER,
        "Readings by what became of them.",
        [({**device, "outcome": outcome}, report[outcome]) for outcome in OUTCOMES],
    )
    for start, name, text in _GROUPS:
        found = {n.removeprefix(start): totals[n] for n in totals if n.startswith(start)}
        yield Metric(
            f"lasp_edge_{name}_total",
            COUNTER,
            text,
            [({**device, "reason": reason}, total) for reason, total in sorted(found.items())],
        )
    clones = totals.get("clone_alarms", 0)
    yield Metric(
        "lasp_edge_clone_alarms_total",
        COUNTER,
        "Signs of another live agent of this name.",
        [(device, clones)],
    )


def _delivery(report: Any, device: Labels) -> Iterator[Metric]:
    waiting = [({**device, "sink": name}, s["waiting"]) for name, s in report["sinks"].items()]
    yield Metric(
        "lasp_edge_waiting_panes", GAUGE, "Pane entries that a sink has yet to take.", waiting
    )
    clock = report["clock"]
    trusted = int(clock["state"] == "trusted")
    yield Metric("lasp_edge_clock_trusted", GAUGE, "1: its clock is right.", [(device, trusted)])
    yield Metric(
        "lasp_edge_clock_offset_seconds",
        GAUGE,
        "How far its clock is from the fleet's.",
        [(device, clock["off_s"])],
    )
    yield Metric(
        "lasp_edge_waiting_readings",
        GAUGE,
        "Readings that wait for a clock to trust.",
        [(device, clock["waiting"])],
    )
    others = len(report["other_programs"])
    yield Metric(
        "lasp_edge_other_programs",
        GAUGE,
        "Devices that run another program or release.",
        [(device, others)],
    )


def _values(report: Any, device: Labels) -> Iterator[Metric]:
    parts: list[tuple[Labels, float]] = []
    settled: list[tuple[Labels, float]] = []
    devices: list[tuple[Labels, float]] = []
    for name, value in sorted(report["values"].items()):
        of = {**device, "name": name}
        by_key = value.get("keys", {"": value})
        for key, one in sorted(by_key.items()):
            read = {part: n for part, n in one["parts"].items() if type(n) in {int, float, bool}}
            parts += [({**of, "key": key, "part": part}, n) for part, n in read.items()]
        if "settled" in value:
            settled.append((of, int(value["settled"])))
            devices.append((of, value["devices"]))
    yield Metric("lasp_edge_value", GAUGE, "A fold's value, as this device holds it.", parts)
    yield Metric(
        "lasp_edge_value_settled", GAUGE, "1: all connected devices hold the same.", settled
    )
    yield Metric("lasp_edge_value_devices", GAUGE, "Devices with an entry in the value.", devices)


def _of_link(report: Any, link: LinkFigures, device: Labels) -> Iterator[Metric]:
    for name, kind, text, number in (
        ("connected", GAUGE, "1: the broker has taken it.", int(report["connected"])),
        ("connections_total", COUNTER, "How often the broker took it.", link.connections),
        ("published_messages_total", COUNTER, "Messages sent.", link.published),
        ("received_messages_total", COUNTER, "Messages that came.", link.received),
        ("unconfirmed_messages", GAUGE, "Messages sent and not confirmed.", link.in_flight),
        ("sent_bytes_total", COUNTER, "Bytes sent through its sockets.", link.sent_bytes),
        ("received_bytes_total", COUNTER, "Bytes that came.", link.received_bytes),
    ):
        yield Metric(f"lasp_edge_{name}", kind, text, [(device, number)])
