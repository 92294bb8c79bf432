"""Metrics, read back as Prometheus reads them."""

import re

LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? (-?[0-9.e+-]+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def read(text):
    """Return (name, labels) -> number; each metric has its help and type before its samples."""
    found, described = {}, {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# "):
            _, what, name, _ = line.split(" ", 3)
            assert what not in described.setdefault(name, [])
            described[name].append(what)
            continue
        match = LINE.fullmatch(line)
        assert match, line
        name, labels, number = match.groups()
        assert described[name] == ["HELP", "TYPE"]
        pairs = tuple(sorted((n, _unquoted(v)) for n, v in LABEL.findall(labels or "")))
        assert (name, pairs) not in found
        found[name, pairs] = float(number)
    return found


def _unquoted(text):
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], text)
