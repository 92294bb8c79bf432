"""The pages about the code name what exists, and the reference lists all of it."""

import re
from pkgutil import resolve_name

import pytest

from device_agent.agent.sources.choice import GROUP as GROUP_OF_SOURCES
from lasp_edge.protocol.kinds import FRAME_KINDS
from lasp_edge.protocol.topics import Topics
from tests.support_readme import CHECKOUT, PAGES
from tests.support_wheel import PACKAGES, PROJECT

ARCHITECTURE = (CHECKOUT / "docs" / "architecture.md").read_text()
REFERENCE = (CHECKOUT / "docs" / "reference.md").read_text()
NAMED = re.compile(r"`((?:crdts|lasp_edge|device_agent|cloud_tier|simulations|tests)/[^`]*)`")
DOTTED = re.compile(r"\b((?:crdts|lasp_edge|device_agent|cloud_tier|simulations)(?:\.\w+)+)")
METHOD = re.compile(r"`([A-Z]\w+)\.(\w+)`")


def row(line):
    return [cell.strip() for cell in line.strip("|\n").split("|")]


def words(flag):
    return ", ".join(each.name.lower() for each in flag)


def test_every_file_and_folder_that_is_named_exists():
    for page in (ARCHITECTURE, REFERENCE):
        for path in NAMED.findall(page):
            found = CHECKOUT / path
            assert found.is_dir() if path.endswith("/") else found.is_file(), path


def test_every_folder_of_the_packages_is_listed():
    listed = {row(line)[0].strip("`/") for line in ARCHITECTURE.splitlines() if line[:2] == "| "}
    folders = {
        str(init.parent.relative_to(CHECKOUT))
        for package in PACKAGES
        for init in (CHECKOUT / package).glob("**/__init__.py")
    }
    tops = {"lasp_edge", "device_agent", "cloud_tier", "simulations"}  # README.md lists them
    assert listed - {"folder"} == folders - tops


def test_every_class_and_method_that_is_named_exists():
    source = "\n".join(
        path.read_text() for package in PACKAGES for path in (CHECKOUT / package).rglob("*.py")
    )
    for name, method in METHOD.findall(ARCHITECTURE):
        (body,) = re.findall(rf"^class {name}\b.*?(?=^class |\Z)", source, re.MULTILINE | re.DOTALL)
        assert f"    def {method}(" in body, f"{name}.{method}"
    for name in re.findall(r"`([A-Z]\w+)`", ARCHITECTURE):
        assert re.search(rf"^class {name}\b", source, re.MULTILINE), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_module_and_function_that_is_named_exists(page):
    for name in DOTTED.findall(page.read_text()):
        if name != GROUP_OF_SOURCES:
            resolve_name(name)


def test_the_rules_of_imports_are_those_that_are_checked():
    rules = ARCHITECTURE.partition("## Rules that import-linter holds")[2]
    listed = re.findall(r"^- (.*)$", rules, re.MULTILINE)
    assert listed == [each["name"] for each in PROJECT["tool"]["importlinter"]["contracts"]]


def test_the_reference_lists_every_kind_of_frame():
    lines = [row(line) for line in REFERENCE.splitlines() if re.match(r"\| \d", line)]
    assert [line[:-1] for line in lines] == [
        [
            str(number),
            f"`{kind.frame.__name__}`",
            f"`{kind.topic}`",
            words(kind.publishers),
            words(kind.subscribers),
            "yes" if kind.retained else "no",
            str(kind.qos),
        ]
        for number, kind in FRAME_KINDS.items()
    ]


def test_the_reference_shows_topics_as_they_are_made():
    topics = Topics("greenhouse")
    assert f"`{topics.of('pane', 'kitchen')}`" in REFERENCE
    for made in (
        topics.result("NAME", "DEVICE", "KEY"),
        topics.fleet_result("NAME", "KEY"),
        topics.fleet_state(),
        topics.agent("DEVICE"),
        topics.gateway("NAME"),
        topics.alert("NAME", "DEVICE"),
    ):
        assert f"`{made.replace('greenhouse', 'FLEET')}`" in REFERENCE


def test_the_reference_lists_every_command():
    commands = REFERENCE.partition("## Commands")[2]
    listed = re.findall(r"`([a-z]+)`", commands)
    assert sorted(listed) == sorted(PROJECT["project"]["entry-points"]["lasp_edge.commands"])
