"""A retained message counts once at most, by its content."""

from device_agent.agent.sources.retained import KEPT_TOPICS, SeenContents


def test_a_message_that_came_while_the_agent_was_away_counts_once_in_either_order():
    for first in (True, False):
        seen = SeenContents()
        assert seen.is_news("door", b"1", retained=first)
        assert not seen.is_news("door", b"1", retained=not first) or not first


def test_equal_readings_that_come_live_are_different_readings():
    seen = SeenContents()
    assert all(seen.is_news("door", b"1", retained=False) for _ in range(3))
    assert not seen.is_news("door", b"1", retained=True)


def test_beyond_the_topics_that_are_remembered_nothing_retained_counts():
    seen = SeenContents()
    for number in range(KEPT_TOPICS):
        assert seen.is_news(f"t/{number}", b"1", retained=True)
    assert not seen.is_news("one more", b"1", retained=True)
    assert seen.is_news("one more", b"1", retained=False)
    again = SeenContents(seen.text())
    assert not any(again.is_news(f"t/{n}", b"1", retained=True) for n in range(KEPT_TOPICS))
    assert len(seen.text()) < 48 * KEPT_TOPICS


def test_a_cursor_that_is_not_understood_is_forgotten():
    for text in ("", "7", "[1]", '{"a": 1}', "{", '{"a": ["x"]}'):
        assert SeenContents(text).is_news("door", b"1", retained=True)
