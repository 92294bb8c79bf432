"""Topics with names in braces: a level becomes a tag, or the event's name.

| in the pattern | means                                                          |
|----------------|----------------------------------------------------------------|
| `{room}`       | a level, or a part of one; what stands there is the tag `room` |
| `{path...}`    | all levels from here on, with their slashes                    |
| `{event}`      | the name of one of the program's events                        |
| `{device}`     | the agent's own device; no other device's messages are read    |
| `+`, `#`       | any level, all levels from here on, as in MQTT                 |

    >>> pattern = TopicPattern("home/{room}_{event}/state", "pi-1", ["temperature", "humidity"])
    >>> pattern.filter
    'home/+/state'
    >>> pattern.origin("home/living_room_temperature/state")
    Origin(tags={'room': 'living_room'}, event='temperature', place='')
    >>> pattern.origin("home/living_room_uptime/state") is None
    True
"""

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from device_agent.agent.sources.mapping import NO_ORIGIN, Origin

_NAMED = re.compile(r"\{(\w+)(\.\.\.)?\}")
_WILD = {"+": "[^/]*", "#": ".*"}
_KEPT_TOPICS = 256  # what they say is remembered: some 50 kB


class TopicPattern:
    """A pattern of topics.

    Args:
        text: the pattern; without braces it is a topic filter of MQTT.
        device: the agent's device.
        events: the names of the program's events.

    Attributes:
        filter: the topic filter to subscribe.
        names_event: whether the topic tells the event.
        levels: each with the regular expression that it is.

    Raises:
        ValueError: the text is not a pattern.
    """

    def __init__(self, text: str, device: str, events: Sequence[str]) -> None:
        self.text = text
        self._device = device
        if "{device}" in text and (not device or set(device) & set("/+#")):
            raise ValueError(f"{text}: the device {device!r} cannot be a level of a topic")
        text = text.replace("{device}", device)
        levels = text.split("/")
        self._names: list[str] = []
        patterns = [
            self._level(level, events, is_last=at == len(levels) - 1)
            for at, level in enumerate(levels)
        ]
        self.levels = list(zip(levels, patterns, strict=True))
        self.names_event = "event" in self._names
        self.filter = "/".join(_filter_of(level) for level in levels)
        self._regex = re.compile("/".join(patterns)) if self._names else None
        self._is_wild = any(level in _WILD for level in levels)
        self._origins: dict[str, Origin | None] = {}

    def says(self) -> str:
        """Return what a person should know of it; an empty text for nothing."""
        if "{device}" not in self.text:
            return ""
        return (
            f"{self.text} reads only {self.filter}, as {{device}} is this agent's own; "
            "with another name, such as {sensor}, it reads all and makes a tag"
        )

    def origin(self, topic: str) -> Origin | None:
        """Return the levels of a topic by name; None for a topic that is not of this pattern."""
        if topic in self._origins:
            return self._origins[topic]
        found = self._read(topic)
        if len(self._origins) < _KEPT_TOPICS:
            self._origins[topic] = found
        return found

    def _read(self, topic: str) -> Origin | None:
        place = topic if self._is_wild else ""
        if self._regex is None:
            return Origin({}, place=place) if place else NO_ORIGIN
        found = self._regex.fullmatch(topic)
        if found is None:
            return None
        tags = dict(zip(self._names, found.groups(), strict=True))
        event = tags.pop("event", None)
        return Origin(tags, event, place)

    def meets(self, other: "TopicPattern") -> bool:
        """Return whether there can be a topic of both patterns.

        >>> of_room = TopicPattern("home/{room}/temperature", "pi-1", [])
        >>> of_room.meets(TopicPattern("home/#", "pi-1", []))
        True
        >>> of_room.meets(TopicPattern("home/{room}/humidity", "pi-1", []))
        False
        """
        for mine, theirs in zip_longest(self.levels, other.levels):
            if "#" in {_filter_of(level[0]) for level in (mine, theirs) if level is not None}:
                return True
            if mine is None or theirs is None or not _meet(mine, theirs):
                return False
        return True

    def _level(self, level: str, events: Sequence[str], *, is_last: bool) -> str:
        if level == "#" and not is_last:
            raise ValueError(f"{self.text}: # must be the last level; + stands for one level")
        if level in _WILD:
            return _WILD[level]
        parts, ends = [], 0
        for named in _NAMED.finditer(level):
            name, rest = named[1], named[2] is not None
            if name in self._names:
                raise ValueError(f"{self.text}: {{{name}}} stands there twice")
            if rest and not (is_last and named[0] == level):
                raise ValueError(f"{self.text}: {named[0]} must be all of the last level")
            self._names.append(name)
            one_of = "|".join(map(re.escape, events))
            # A tag takes as little as it can: of two events that fit, the longer one is meant.
            inside = one_of if name == "event" else ".+" if rest else "[^/]+?"
            parts += [re.escape(level[ends : named.start()]), f"({inside})"]
            ends = named.end()
        left = level[ends:]
        if set("{}+#") & set(re.sub(_NAMED, "", level)):
            raise ValueError(f"{self.text}: {level!r} is not a level of a topic, nor a {{name}}")
        return "".join([*parts, re.escape(left)])


def _meet(*levels: tuple[str, str]) -> bool:
    """Return whether a text fits two levels, each with its regular expression."""
    (one, of_one), (other, of_other) = levels
    if _filter_of(other) != "+":
        return re.fullmatch(of_one, other) is not None
    if _filter_of(one) != "+":
        return re.fullmatch(of_other, one) is not None
    (begins, ends), (other_begins, other_ends) = _outside(one), _outside(other)
    is_begin = begins.startswith(other_begins) or other_begins.startswith(begins)
    return is_begin and (ends.endswith(other_ends) or other_ends.endswith(ends))


def _outside(level: str) -> tuple[str, str]:
    """Return the text before the first name of a level and behind the last one."""
    parts = _NAMED.split(level)
    return ("", "") if level == "+" else (parts[0], parts[-1])


def _filter_of(level: str) -> str:
    if level.endswith("...}"):
        return "#"
    return "+" if "{" in level else level


def matcher_of(filters: Iterable[str]) -> "re.Pattern[str] | None":
    """Return what matches the topics of any of these topic filters; None for no filters.

    >>> bool(matcher_of(["+/bridge/#"]).fullmatch("zigbee2mqtt/bridge/state"))
    True
    """
    patterns = [
        "/".join(_WILD.get(level, re.escape(level)) for level in one.split("/")) for one in filters
    ]
    return re.compile("|".join(patterns)) if patterns else None
