"""Which answers of a device are incomplete, where a former life had more readings."""

from device_agent.agent.scans.incomplete import IncompleteAnswers


def place(time_us):
    return (time_us, "desk", ("end", "", 1), (1,))


def answers(doubts_us, *known):
    """Return which answers are incomplete where events in order (time, key) were published."""

    def places(event, least_us, end_us):
        assert event == "load: shares"
        return ((place(at), key) for at, key in known if least_us <= at < end_us)

    found = IncompleteAnswers(lambda: doubts_us[0], places)
    return lambda at, key="": found.of("load")(place(at), key)


def test_all_answers_are_complete_where_no_life_had_more():
    assert IncompleteAnswers(lambda: None, None).of("load") is None


def test_up_to_the_doubt_all_are_incomplete_and_so_is_the_first_one_of_each_key_behind_it():
    is_last = answers([30], (20, ""), (31, ""), (40, ""), (40, "oak"))
    assert [is_last(at) for at in (20, 30, 40, 31, 50)] == [False, False, None, True, None]
    assert [is_last(at, "oak") for at in (20, 50, 40)] == [False, None, True]
    assert [is_last(at, "elm") for at in (60, 70, 50)] == [True, None, True]


def test_a_place_that_comes_before_the_first_one_behind_the_doubt_is_the_last_incomplete_one():
    is_last = answers([30], (40, ""))
    assert [is_last(at) for at in (40, 35, 40)] == [True, True, None]


def test_the_doubt_may_grow():
    doubts_us = [30]
    is_last = answers(doubts_us, (40, ""), (50, ""))
    assert [is_last(at) for at in (40, 50)] == [True, None]
    doubts_us[0] = 45
    assert [is_last(at) for at in (40, 50)] == [False, True]
