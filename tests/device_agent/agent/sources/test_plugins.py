"""Sources of other packages, by entry point."""

import importlib.metadata
import random
import sys
from types import ModuleType

import pytest

from device_agent.agent.sources import choice
from device_agent.agent.sources.choice import (
    BrokenSourceError,
    SourceSpec,
    source_from_spec,
    source_of,
)
from device_agent.agent.sources.source import Option, Source, SourceContext, SourceKind

CONTEXT = SourceContext(["temperature"], "d", random.Random(1))


@pytest.fixture
def installed(monkeypatch):
    """Return a function that installs a module as the kind of source of a name."""

    def install(name, kind):
        module = ModuleType(f"plugin_{name}")
        if kind is not None:
            module.KIND = kind
        monkeypatch.setitem(sys.modules, module.__name__, module)
        points.append(importlib.metadata.EntryPoint(name, module.__name__, choice.GROUP))

    points = [importlib.metadata.EntryPoint("gone", "plugin_gone", choice.GROUP)]
    monkeypatch.setattr(
        importlib.metadata,
        "entry_points",
        lambda group: [each for each in points if each.group == group],
    )
    return install


def test_a_kind_of_another_package_is_found_by_its_entry_point(installed):
    port = Option("port", 1, int, "the port")

    class Plc(Source):
        def __init__(self, name, place, context):
            self.name, self.place, self.port = name, place, context.get(port)

        def poll(self, now_us):
            return None

        def due_us(self, now_us):
            return None

    kind = SourceKind("modbus", "HOST", Plc, [port])
    installed("modbus", kind)
    made = source_from_spec("modbus:plc", CONTEXT)
    assert (made.name, made.place, made.port, made.says()) == ("modbus:plc", "plc", 1, "")
    spec = SourceSpec("modbus", "plc", "boiler", {}, "")
    made = source_of(spec, CONTEXT._replace(options={"port": 7}))
    assert (made.name, made.port) == ("boiler", 7)
    with pytest.raises(
        ValueError, match=r'onewire, gone:\.\.\. or modbus:\.\.\., not .*; did you mean "mod'
    ):
        source_from_spec("modbos:plc", CONTEXT)


def boom(name, place, context):
    raise SystemExit(f"{name} is not at home")


def wrong(name, place, context):
    raise ValueError("such a place there is not")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("gone", "the kind 'gone' of source is broken: ModuleNotFoundError: .*plugin_gone"),
        ("empty", "AttributeError: module 'plugin_empty' has no attribute 'KIND'"),
        ("other", "TypeError: plugin_other.KIND is not a SourceKind"),
        ("nothing", "AttributeError: 'NoneType' object has no attribute 'name'"),
        ("boom", "SystemExit: boom is not at home .*test_plugins.py"),
    ],
)
def test_a_broken_kind_is_said_to_be_broken(installed, name, reason):
    installed("empty", None)
    installed("other", "modbus")
    installed("nothing", SourceKind("nothing", "", lambda name, place, context: None))
    installed("boom", SourceKind("boom", "", boom))
    with pytest.raises(BrokenSourceError, match=reason):
        source_from_spec(name, CONTEXT)
    assert source_from_spec("onewire", CONTEXT).name == "onewire", "the others are not touched"


def test_what_a_kind_refuses_is_the_users_mistake(installed):
    installed("wrong", SourceKind("wrong", "", wrong))
    with pytest.raises(ValueError, match="such a place there is not"):
        source_from_spec("wrong", CONTEXT)
