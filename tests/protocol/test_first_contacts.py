"""Whom the learner asks first: bounded in all and per place, a few times each, and nobody is kept out for good."""

import random

from hypothesis import given
from hypothesis import strategies as st

from p2p_labeldp.protocol import first_contacts
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.first_contacts import IDS_A_PLACE, TRIES, FirstContacts


def place(number, *, host=None, port=7000):
    return Address(bytes([number // 256, number % 256]) * 16, host or f"peer-{number}", port)


def contacts(*places, seed=0):
    found = FirstContacts(random.Random(seed))
    for one in places:
        found.add(one)
    return found


def test_a_place_is_given_once_until_it_was_not_heard():
    found = contacts(place(1), place(2), place(3))
    assert set(found.take(2)) | set(found.take(2)) == {place(1), place(2), place(3)}
    assert found.take(2) == []
    found.unheard(place(2))
    assert found.take(2) == [place(2)]


def test_the_last_place_an_id_named_counts():
    moved = Address(place(1).peer_id, "elsewhere", 1)
    assert contacts(place(1), moved).take(9) == [moved]


def test_a_place_where_nobody_answers_is_given_up():
    found = contacts(place(1))
    for _ in range(TRIES):
        assert found.take(1) == [place(1)]
        found.unheard(place(1))
    assert found.take(1) == []
    found.add(place(1))
    assert found.take(1) == []
    found.add(place(1, port=7001))
    assert found.take(1) == [place(1, port=7001)]


def test_nobody_can_point_the_learner_at_a_bystander_more_than_a_few_times():
    found = contacts(*(place(i, host="bystander") for i in range(50)), place(60))
    given_out = found.take(99)
    assert sum(one.host == "bystander" for one in given_out) == IDS_A_PLACE
    assert place(60) in given_out


def test_a_full_table_still_takes_newcomers_in(monkeypatch):
    monkeypatch.setattr(first_contacts, "CAPACITY", 20)
    kept = 0
    for seed in range(200):
        found = contacts(*(place(i) for i in range(200)), place(500), *(place(i) for i in range(200, 204)), seed=seed)
        assert len(found) == 20
        kept += place(500) in found.take(20)
    assert kept > 120  # 163 expected, P(fewer) < 1e-6: each of four later ones pushes it out with probability 1/20


def test_tries_are_bounded_too(monkeypatch):
    monkeypatch.setattr(first_contacts, "CAPACITY", 20)
    found = contacts()
    for i in range(100):
        found.unheard(place(i))
        assert len(found._tries) <= 20
        assert len(found) <= 20


@given(st.lists(st.tuples(st.sampled_from(["add", "remove", "take", "unheard"]), st.integers(0, 5), st.integers(0, 2))))
def test_the_counts_per_place_are_those_of_the_table(steps):
    found = contacts()
    for what, number, host in steps:
        where = place(number, host=f"h{host}")
        match what:
            case "add":
                found.add(where)
            case "remove":
                found.remove(where.peer_id)
            case "take":
                found.take(host)
            case "unheard":
                found.unheard(where)
        counted = {}
        for one in found._waiting.values():
            counted[one.host, one.port] = counted.get((one.host, one.port), 0) + 1
        assert found._ids_at == counted
