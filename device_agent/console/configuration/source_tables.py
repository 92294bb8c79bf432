"""The sources and mappings of a configuration file.

A source is known by its name for ever: its place in a file, or the broker's queue for it, is kept
under it. Without a `name` of its own it has the one that it would have on the command line, such
as `mqtt:tele/+/SENSOR`. So the order of the tables does not matter, and no two may have one name.
"""

from collections.abc import Mapping
from typing import Any

from device_agent.agent.sources.choice import (
    BrokenSourceError,
    SourceSpec,
    kind_of,
    kinds,
    options,
    spec_of,
)
from device_agent.agent.sources.mapping_options import MAPPING, MAPPING_OPTIONS
from device_agent.agent.sources.nearest import hint
from device_agent.agent.sources.ready import READY
from device_agent.agent.sources.source import Option, SourceKind
from device_agent.console.configuration.document import Document, Place, kind_in_words

KEYS = {"source", "mapping"}
"""The keys of a file that are read here."""
_OWN = ("kind", "name")


class SourceTables:
    """The tables `[[source]]` and `[mapping.NAME]` of a file.

    Args:
        document: the file.
    """

    def __init__(self, document: Document) -> None:
        self._document = document
        self._mappings: dict[str, dict[str, Any]] = {}
        self._mappings = self._named_mappings()

    def specs(self) -> list[SourceSpec]:
        """Return the sources, in the order of the file.

        Raises:
            UsageError: something in them cannot be.
        """
        document = self._document
        tables = document.table.get("source", [])
        if not isinstance(tables, list) or not all(isinstance(each, dict | str) for each in tables):
            needed = 'tables [[source]], or a list of texts such as ["host"], are needed'
            raise document.mistake(("source",), f"source: {needed}, not {kind_in_words(tables)}")
        specs: list[SourceSpec] = []
        for number, each in enumerate(tables):
            place = ("source", number)
            spec = spec_of(each) if isinstance(each, str) else self._spec_or_broken(each, place)
            twin = next((other for other in specs if other.name == spec.name), None)
            if twin is not None:
                raise document.mistake(
                    place,
                    f'two sources are named "{spec.name}" (the other: {twin.found_at}); give one '
                    'of them another name = "..."',
                )
            specs.append(spec._replace(found_at=document.where(place)))
        return specs

    def defaults(self) -> dict[str, Any]:
        """Return the options of sources that stand at the top of the file, for all of them."""
        known = {option.name: option for option in options()}
        names = {*known, *(name for option in known.values() for name in option.former)}
        given = {
            name: value
            for name, value in self._document.table.items()
            if name in names and not isinstance(self._mappings_table(name), dict)
        }
        return self._options(given, (), "the file", known, [])

    def _mappings_table(self, key: str) -> Any:
        """Return the value of the key `mapping`: a name, or the tables of mappings."""
        return self._document.table["mapping"] if key == "mapping" else None

    def _spec_or_broken(self, table: dict[str, Any], place: Place) -> SourceSpec:
        """Return a source; of a broken kind only its name: it breaks when it is made."""
        try:
            return self._spec(table, place)
        except BrokenSourceError:
            kind = str(table["kind"])
            return SourceSpec(kind, "", str(table.get("name", kind)), {}, "")

    def _spec(self, table: dict[str, Any], place: Place) -> SourceSpec:
        document = self._document
        kind = self._kind(table, place)
        key = kind.key if kind.place else None
        where = table.get(key) if key else None
        if key and (type(where) is not str or not where):
            text = f'{key} = "..." is needed for the kind {kind.name}'
            if type(where) is list:
                text = f"{key}: one text is needed, not a list; give each a table [[source]]"
            raise document.mistake((*place, key) if where is not None else place, text)
        given = {name: value for name, value in table.items() if name not in (*_OWN, key)}
        name = table.get("name", f"{kind.name}:{where}" if key else kind.name)
        if type(name) is not str or not name:
            text = f"name: a text is needed, not {kind_in_words(name)}"
            raise document.mistake((*place, "name"), text)
        known = {option.name: option for option in kind.options}
        what = f"a source of the kind {kind.name}"
        found = self._options(given, place, what, known, [*_OWN, *([key] if key else [])])
        return SourceSpec(kind.name, where or "", name, found, "")

    def _kind(self, table: dict[str, Any], place: Place) -> SourceKind:
        name = table.get("kind")
        if type(name) is not str:
            text = f'kind = "..." is needed, one of {", ".join(kinds())}'
            raise self._document.mistake(place, text)
        kind = kind_of(name)
        if kind is None:
            text = f'kind: there is no "{name}"; {hint(name, kinds())}'
            raise self._document.mistake((*place, "kind"), text)
        return kind

    def _options(
        self,
        given: Mapping[str, Any],
        place: Place,
        what: str,
        known: Mapping[str, Option[Any]],
        others: list[str],
    ) -> dict[str, Any]:
        """Return options by name, with those of a named mapping below them."""
        former = {old: option.name for option in known.values() for old in option.former}
        found: dict[str, Any] = {}
        for key, value in given.items():
            name = former.get(key, key)
            if name not in known:
                raise self._document.unknown((*place, key), what, [*known, *others])
            if name == MAPPING.name and isinstance(value, str) and value in self._mappings:
                found = {**self._mappings[value], **found}
                continue
            found[name] = self._read(known[name], value, (*place, key))
            if name == "event":  # laid over those of the mapping, one by one
                below = self._mappings.get(str(given.get(MAPPING.name)), {}).get("event", {})
                found[name] = {**below, **found[name]}
        return found

    def _read(self, option: Option[Any], value: Any, place: Place) -> Any:
        if option.name == MAPPING.name:
            names = [*READY, *self._mappings]
            if value not in names:
                text = f"mapping: there is no {kind_in_words(value)}; {hint(str(value), names)}"
                raise self._document.mistake(place, text)
        return self._document.read(place, option.of_file, value, option.name)

    def _named_mappings(self) -> dict[str, dict[str, Any]]:
        """Return the mappings of the user's own, by name."""
        tables = self._document.table.get("mapping", {})
        if not isinstance(tables, dict):  # a ready mapping, for all sources
            return {}
        known = {option.name: option for option in MAPPING_OPTIONS}
        found = {}
        for name, table in tables.items():
            place = ("mapping", name)
            if not isinstance(table, dict):
                text = f"a table [mapping.{name}] is needed, not {kind_in_words(table)}"
                raise self._document.mistake(place, text)
            if name in READY:
                text = f'"{name}" is a ready mapping; choose another name'
                raise self._document.mistake(place, text)
            found[name] = self._options(table, place, f"mapping {name}", known, [])
        return found
