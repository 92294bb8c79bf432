"""Tags as canonical text: equal tags, equal text."""

import json
from collections.abc import Mapping

KEPT_TAGS = 1_000
"""Texts that are remembered, at most: more than a device's sensors have; then all are dropped."""


def tags_text(tags: Mapping[str, str]) -> str:
    """Return tags as canonical text; no tags are empty text."""
    if not tags:
        return ""
    return json.dumps(dict(sorted(tags.items())), separators=(",", ":"))


class TagTexts:
    """Texts of tags that were made before."""

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        self._texts: dict[tuple[tuple[str, str], ...], str] = {}

    def text(self, tags: Mapping[str, str]) -> str:
        """Return what `tags_text` returns."""
        if not tags:
            return ""
        items = tuple(tags.items())
        text = self._texts.get(items)
        if text is None:
            if len(self._texts) >= KEPT_TAGS:
                self._texts.clear()
            text = self._texts[items] = tags_text(tags)
        return text
