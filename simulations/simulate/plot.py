"""A plot of a run as one HTML page: three lines, drawn as SVG, without any other file.

>>> page = html("greenhouse", [RunSample(1, 0.5, 10, 3), RunSample(2, 1, 20, 4)], ["2 devices"])
>>> page.count("<polyline")
3
"""

from collections.abc import Callable, Sequence
from html import escape

from simulations.simulate.sampled_run import RunSample

WIDTH, HEIGHT, MARGIN = 860, 150, 10
_LINES: tuple[tuple[str, Callable[[RunSample], float]], ...] = (
    ("devices that agree, %", lambda sample: 100 * sample.agreeing),
    ("bytes a second and device", lambda sample: sample.sent_bytes),
    ("seconds that the lake's frontier is behind", lambda sample: sample.stale_s),
)


def html(name: str, samples: Sequence[RunSample], notes: Sequence[str]) -> str:
    """Return the page."""
    charts = [_chart(title, [value(sample) for sample in samples]) for title, value in _LINES]
    last = samples[-1].step if samples else 0
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return (
        f'<!doctype html><meta charset="utf-8"><title>{escape(name)}</title>'
        "<style>body{font:15px sans-serif;margin:2em;max-width:900px}"
        "svg{background:#f6f7f8}polyline{fill:none;stroke:#06c;stroke-width:1.5}</style>"
        f"<h1>{escape(name)}</h1><ul>{items}</ul>{''.join(charts)}"
        f"<p>from 0 to {last} seconds of virtual time</p>\n"
    )


def _chart(title: str, values: Sequence[float]) -> str:
    most = max(values, default=0) or 1
    across = (WIDTH - 2 * MARGIN) / max(1, len(values) - 1)
    points = " ".join(
        f"{MARGIN + at * across:.1f},{HEIGHT - MARGIN - value / most * (HEIGHT - 2 * MARGIN):.1f}"
        for at, value in enumerate(values)
    )
    return (
        f"<h3>{escape(title)}: at most {most:,.1f}</h3>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}">'
        f'<polyline points="{points}"/></svg>'
    )
