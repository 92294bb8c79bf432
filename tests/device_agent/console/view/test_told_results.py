"""What devices told is found by value and device, and is bounded."""

from device_agent.console.view import told_results
from device_agent.console.view.told_results import ToldResults
from lasp_edge.protocol.topics import ResultAddress


def test_a_result_is_found_until_it_is_dropped():
    results = ToldResults()
    whole, key = ResultAddress("mean", "attic", None), ResultAddress("mean", "attic", "a")
    of_agent = ResultAddress(None, "shed", None)
    for number, address in enumerate((whole, key, of_agent, whole)):
        assert results.put(address, {"count": number})
    assert results.get(*whole) == {"count": 3}
    assert results.keys("mean", "attic") == ["a"]
    assert (results.names, results.devices) == ({"mean"}, {"attic", "shed"})
    assert list(results.all_of("mean")) == [(whole, {"count": 3}), (key, {"count": 1})]
    for address in (whole, whole, key):
        results.drop(address)
    assert (results.names, results.devices) == (set(), {"shed"})
    assert results.get(*key) is None


def test_results_are_bounded_and_one_that_is_dropped_makes_room(monkeypatch):
    monkeypatch.setattr(told_results, "MOST_RESULTS", 2)
    results = ToldResults()
    first, second, third = (ResultAddress("mean", name, None) for name in "abc")
    assert [results.put(each, {}) for each in (first, second, third, first)] == [
        *(True, True, False, True)
    ]
    assert results.devices == {"a", "b"}
    results.drop(third)
    assert not results.put(third, {})
    results.drop(first)
    assert results.put(third, {})
