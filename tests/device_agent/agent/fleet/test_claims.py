"""Lives of a device that others name: what one alone says, and a sink denies, is not believed."""

import pytest

from crdts import Replica
from device_agent.agent.fleet.fence import ASK_AGAIN_US, MOST_SUCCESSIONS
from device_agent.agent.notices import CLONED_US
from lasp_edge.protocol.fencing import SourceHigh, VouchFrame
from lasp_edge.units import SECOND_US
from tests.device_agent.agent.fleet.test_fence import (
    KEEPER,
    OTHER,
    SOURCE,
    TWICE,
    WAIT_S,
    device,
    hello_of,
    sure,
    told,
)
from tests.device_agent.agents import NOW_US
from tests.device_agent.support_entries import PEER

__all__ = ["device", "sure"]

LIAR = PEER.device


def lied_to(device, rounds, *honest, ahead=3, nonces=1):
    """Let one peer name a later life of the device in each round, before all others answer."""
    for number in range(rounds):
        device.hear(VouchFrame.hint(PEER, 1, "pi-1"))
        asked, me = hello_of(device, ASK_AGAIN_US / SECOND_US), device.core.replica
        life = Replica(me.incarnation + ahead, 66 + number % nonces, "pi-1")
        told(device, life, voucher=PEER, keeps=False, hello=asked)
        again = hello_of(device)
        for voucher in honest:
            known = device.core.replica._replace(incarnation=me.incarnation)
            told(device, known, voucher=voucher, keeps=voucher is KEEPER, hello=again)
        device.tick(2)


def notices(device):
    return device.store.restored().facts.notices or []


@pytest.mark.parametrize("nonces", [1, 3])
def test_one_peers_word_that_a_sink_denies_counts_nothing_and_names_who_said_it(sure, nonces):
    sure.read([20.0, 21.0], [NOW_US, NOW_US + SECOND_US])
    lied_to(sure, MOST_SUCCESSIONS - 1, KEEPER, OTHER, nonces=nonces)
    assert TWICE not in sure.counted
    assert "clone_alarms" not in sure.counted
    assert sure.core.report()["alarms"] == []
    (text,) = notices(sure)
    assert text.startswith(f"not confirmed: {LIAR} reported at "), text
    sure.tick(CLONED_US // SECOND_US + 60)
    assert notices(sure) == [], "nobody says so any more"


@pytest.mark.parametrize("other", [KEEPER, OTHER])
def test_a_life_that_a_sink_or_a_second_peer_names_too_is_believed(sure, other):
    sure.read([20.0, 21.0], [NOW_US, NOW_US + SECOND_US])
    lied_to(sure, 1, KEEPER)
    assert TWICE not in sure.counted
    sure.core.handle_connected(sure.now_us)
    life = Replica(sure.core.replica.incarnation + 3, 66, "pi-1")
    told(sure, life, voucher=other, keeps=other is KEEPER)
    sure.tick(2)
    assert sure.counted[TWICE] == 2
    (text,) = sure.core.report()["alarms"]
    assert LIAR in text
    assert other.device in text


def test_one_peers_word_counts_where_no_sink_answers_and_the_alarm_names_it(sure):
    """An older card is put back, and one other device is on: nobody else knows."""
    sure.read([20.0, 21.0], [NOW_US, NOW_US + SECOND_US])
    lied_to(sure, 2)
    sure.tick(WAIT_S + 1)
    assert sure.counted[TWICE] == 2
    (text,) = sure.core.report()["alarms"]
    assert text.startswith("another live agent has this name, as "), text
    assert LIAR in text


def test_a_lie_that_repeats_what_others_say_of_this_process_is_not_confirmed_by_them(sure):
    """Another process came as far as this one, says one peer; the others speak of this one."""
    sure.read([20.0, 21.0], [NOW_US, NOW_US + SECOND_US])
    sure.tick(2)
    me, high = sure.core.replica, SourceHigh(SOURCE, NOW_US + SECOND_US, 2)
    for reporter in (me, sure.core.replica._replace(nonce=66)):
        sure.core.handle_connected(sure.now_us)
        asked = hello_of(sure)
        for voucher in (KEEPER, OTHER):
            told(sure, me, high, voucher=voucher, keeps=voucher is KEEPER, hello=asked)
        told(sure, me, high, voucher=PEER, reporter=reporter, keeps=False, hello=asked)
        sure.tick(2)
    sure.read([22.0], [NOW_US + 90])
    sure.tick(2)
    assert sure.counted["accepted"] == 3
    assert not {"doubtful", TWICE} & set(sure.counted)
