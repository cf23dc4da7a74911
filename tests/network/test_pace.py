"""A round's phases are long enough for its peers, and no longer than they need."""

import pytest

from p2p_labeldp import config
from p2p_labeldp.network.pace import configured, phases


def pace(peers, engine="processes", **rest):
    return phases(peers=peers, engine=engine, **rest)


def test_more_peers_get_more_time(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)  # with forty, two thousand gossip as fast as three
    few, many = pace(3), pace(2000)
    for name in ("gossip_period", "join", "exchange", "closing", "report"):
        assert getattr(many, name) > getattr(few, name)
    assert few.total < 50


def test_gossip_and_what_it_fills_follow_a_given_period(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert pace(455).gossip_period == pytest.approx(2.275)
    slow = pace(455, gossip_period=3.0)
    assert slow.gossip_period == 3.0
    assert slow.join - pace(455).join == pytest.approx(9 * (3.0 - 2.275))
    assert slow.report == pace(455).report
    assert pace(455, "virtual").gossip_period == 1.0


def test_many_clusters_get_more_periods_to_find_each_other_in():
    few, many = pace(5000, "virtual", clusters=20), pace(5000, "virtual", clusters=50)
    assert few == pace(5000, "virtual")
    assert many.join - few.join == pytest.approx(6 * few.gossip_period)
    assert (many.exchange, many.closing, many.report) == (few.exchange, few.closing, few.report)


def test_more_cores_carry_a_faster_gossip(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    assert pace(455).gossip_period == pytest.approx(455 / 800)


def test_deadlines_are_the_ends_of_the_phases():
    chosen = pace(455)
    ends = chosen.deadlines()
    assert ends.join == chosen.join
    assert ends.exchange == chosen.join + chosen.exchange
    assert ends.closing == pytest.approx(chosen.join + chosen.exchange + chosen.closing)
    assert ends.report == pytest.approx(chosen.total)


def test_what_the_configuration_gives_is_kept():
    given = {"exchange": {"deadlines": {"exchange": 3.0, "report": 4}}, "network": {"gossip_period": 0.25}}
    for engine, left_open in (("processes", (8.25, 8.0)), ("virtual", (8.25, 4.0))):
        chosen = configured(
            config.from_mapping({"data": {"name": "digits"}, **given}), peers=100, engine=engine, clusters=3
        )
        assert (chosen.gossip_period, chosen.exchange, chosen.report) == (0.25, 3.0, 4)
        assert (chosen.join, chosen.closing) == left_open
