"""What each party sees of a run, and that it sees no more.

Runs here have one latency for every message, so that whatever differs between two runs follows from what was changed.
"""

import collections
import dataclasses
import json

import msgspec
import numpy as np
import pytest

from p2p_labeldp import population
from p2p_labeldp.clustering import Clustering
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import (
    Accepted,
    Answered,
    Asked,
    Committed,
    Ended,
    Exchanged,
    Held,
    Listed,
    Opened,
    Outcome,
    Rejected,
    Signed,
)
from p2p_labeldp.mechanisms import resampling
from p2p_labeldp.network import virtual
from p2p_labeldp.protocol import exchange, report
from p2p_labeldp.protocol.reporting import Reporting
from p2p_labeldp.reports.views import parse_party, view

SIZES = (5, 12)
LATENCY = (0.01, 0.01)
MATES = "mates:3,11"
PARTIES = ("learner", MATES, f"learner+{MATES}", "observer", "learner+observer")


@pytest.fixture
def study(study_of):
    return study_of(seed=3, sizes=SIZES)


def played(study):
    return virtual.play(study, latency=LATENCY).facts


def seen(facts, party):
    features = {fact.peer: (float(fact.peer), 0.5) for fact in facts if isinstance(fact, Accepted)}
    return view(facts, parse_party(party), features=features)


def of(lines, saw):
    return [line for line in lines if line["saw"] == saw]


def asked(facts):
    return {fact.peer: fact.mate for fact in facts if isinstance(fact, Asked)}


# -- what they do see -----------------------------------------------------------------------------------------------


def test_the_learner_sees_rosters_and_a_label_a_reporter(study):
    facts = played(study)
    lines = seen(facts, "learner")
    assert set(collections.Counter(line["saw"] for line in lines)) == {"roster", "report", "exchange"}
    rosters = of(lines, "roster")
    assert [(one["cluster"], one["size"], len(one["members"])) for one in rosters] == [(0, 5, 5), (1, 12, 12)]
    assert sorted(member for one in rosters for member in one["members"]) == list(range(17))
    accepted = {fact.peer: (fact.at, fact.cluster, fact.label) for fact in facts if isinstance(fact, Accepted)}
    assert {one["peer"]: (one["at"], one["cluster"], one["label"]) for one in of(lines, "report")} == accepted
    assert all(one["features"] == (one["peer"], 0.5) for one in of(lines, "report"))
    assert all("learner" in (one["peer"], one["to"]) for one in of(lines, "exchange"))


def test_mates_see_who_asked_them_and_whom_they_asked_and_no_label(study):
    facts = played(study)
    lines = seen(facts, MATES)
    mate = asked(facts)
    expected = {(asker, chosen) for asker, chosen in mate.items() if {asker, chosen} & {3, 11}}
    assert {(one["asker"], one["mate"]) for one in of(lines, "ask")} == expected
    assert {(one["asker"], one["origin"]) for one in of(lines, "box")} == expected
    assert len(of(lines, "ask")) == len(of(lines, "box")) == len(expected)  # each once, though two may see it
    assert not any("label" in line or "features" in line for line in lines)
    assert {one["mate"] for one in of(lines, "tally")} == {3, 11}
    members = {member for one in of(lines, "roster") for member in one["members"]}
    for one in of(lines, "tally"):
        assert {*one["holding"]} <= {*one["ready"]} <= members
        assert len(one["ready"]) in SIZES


def test_a_party_sees_its_own_roster_refusals_report_and_end_and_nobody_elses(study):
    facts = played(study)
    refused = [Rejected(peer=peer, at=1.0, about=f"of {peer}") for peer in (*range(17), "learner")]
    cluster = {fact.peer: fact.cluster for fact in facts if isinstance(fact, Committed)}
    assert set(cluster.values()) == {0, 1}
    for mate in range(17):
        lines = seen([*facts, *refused], f"mates:{mate}")
        assert [one["cluster"] for one in of(lines, "roster")] == [cluster[mate]]
        for saw in ("refusal", "reported", "ended"):
            assert [one["peer"] for one in of(lines, saw)] == [mate]
    assert [one["about"] for one in of(seen([*facts, *refused], "learner"), "refusal")] == ["of learner"]
    together = of(seen([*facts, *refused], f"learner+{MATES}"), "refusal")
    assert {one["about"] for one in together} == {"of learner", "of 3", "of 11"}
    assert not of(seen([*facts, *refused], "observer"), "refusal")


def test_together_they_know_the_origin_of_the_boxes_that_passed_a_mate(study):
    facts = played(study)
    reports = of(seen(facts, f"learner+{MATES}"), "report")
    known = {one["peer"]: one["origin"] for one in reports if "origin" in one}
    assert known == {asker: chosen for asker, chosen in asked(facts).items() if {asker, chosen} & {3, 11}}
    assert 0 < len(known) < len(reports) == sum(SIZES)


def test_an_observer_sees_who_talks_to_whom_and_how_much_and_nothing_else(study):
    facts = played(study)
    lines = seen(facts, "observer")
    assert {tuple(line) for line in lines} == {("saw", "at", "peer", "to", "sent", "received")}
    selves = sum(asker == chosen for asker, chosen in asked(facts).items())
    assert len(lines) == sum(isinstance(fact, Exchanged) for fact in facts) - selves
    ask = next(one for one in of(seen(facts, MATES), "exchange") if one["about"] == "Ask")
    lengths = ask["sent"], ask["received"]
    assert {(one["peer"], one["to"]) for one in lines if (one["sent"], one["received"]) == lengths} == {
        (asker, chosen) for asker, chosen in asked(facts).items() if asker != chosen
    }  # so it does see who asked whom: the ask has a length of its own


def test_a_run_on_arrays_has_the_same_reports_asks_and_boxes_at_no_time(study):
    clusters = Clustering.from_payload(study.terms.clustering).assign(study.features)
    arrays = list(population.play(study.labels, clusters, [0.1, 0.1], seed=study.seed).facts())
    facts = played(study)

    def without_time(lines):
        chosen = [line for line in lines if line["saw"] in ("ask", "box", "report")]
        return sorted(json.dumps({**line, "at": 0.0}) for line in chosen)

    assert without_time(seen(arrays, f"learner+{MATES}")) == without_time(seen(facts, f"learner+{MATES}"))
    with pytest.raises(ConfigurationError, match="nothing to observe"):
        seen(arrays, "observer")


# -- and no more ----------------------------------------------------------------------------------------------------


def with_other_labels(study):
    """The same study with its labels permuted among the peers."""
    labels = np.random.default_rng(1).permutation(study.labels)
    assert (labels != study.labels).any()
    return dataclasses.replace(study, labels=labels)


def test_permuted_labels_change_nothing_that_mates_or_an_observer_see(study):
    before, after = played(study), played(with_other_labels(study))
    for party in (MATES, "observer"):
        assert seen(before, party) == seen(after, party)
    for party in PARTIES:
        if "learner" in party:  # the control: the labels did reach it, and only the labels
            assert seen(before, party) != seen(after, party)
            blind = [[{**line, "label": None} for line in seen(facts, party)] for facts in (before, after)]
            assert blind[0] == blind[1]


def test_with_boxes_as_long_as_their_label_is_large_the_same_comparison_finds_them(study, monkeypatch):
    """The positive control: one leak, of a byte, in the sealed answer."""
    seal = virtual._TransparentKeys.seal

    def leaky(self, public, plaintext, *, info):
        grown = plaintext + bytes(plaintext[0]) if len(plaintext) == 1 else plaintext
        return seal(self, public, grown, info=info)

    monkeypatch.setattr(virtual._TransparentKeys, "seal", leaky)
    before, after = played(study), played(with_other_labels(study))
    for party in (MATES, "observer"):
        assert seen(before, party) != seen(after, party)


def one_label(study):
    """The same study in which all flipped labels are equal, so that who asks whom changes no report's label."""
    terms = msgspec.structs.replace(study.terms, target_epsilon=None, flip_probability=0.0)
    return dataclasses.replace(study, terms=terms, labels=np.ones_like(study.labels))


def drawing_others(monkeypatch):
    """Every peer draws the mate after the one it would have drawn."""
    drawn = resampling.mate_index
    monkeypatch.setattr(exchange.resampling, "mate_index", lambda word, size: (drawn(word, size) + 1) % size)


def test_other_draws_change_nothing_that_the_learner_sees(study, monkeypatch):
    """Not a report, not a time, not a length: so its view holds nothing from which asker and origin would follow."""
    study = one_label(study)
    before = played(study)
    drawing_others(monkeypatch)
    after = played(study)
    assert all(asked(before)[peer] != asked(after)[peer] for peer in range(sum(SIZES)))
    assert seen(before, "learner") == seen(after, "learner")
    for party in PARTIES[1:]:  # the control: everybody else's does change
        assert seen(before, party) != seen(after, party)


def test_with_reports_sent_in_the_order_of_the_mates_asked_the_same_comparison_finds_it(study, monkeypatch):
    """The positive control: a leak through the time of a report."""
    study, on_closing = one_label(study), Reporting.on_closing_deadline

    def hasty(self, now):
        on_closing(self, now)
        peer = self._peer
        if "report" in peer._alarms:
            peer.set_alarm("report", now + 0.01 * peer.name_of(peer.my.exchange.mate))

    monkeypatch.setattr(Reporting, "on_closing_deadline", hasty)
    before = played(study)
    drawing_others(monkeypatch)
    assert seen(before, "learner") != seen(played(study), "learner")


def test_with_the_answerer_in_the_report_the_same_comparison_finds_it(study, monkeypatch):
    """The positive control: a leak through the length of a report."""
    study, make = one_label(study), report.make
    before_draws = exchange.Exchange.draw

    def draw(self):
        mate = before_draws(self)
        self._keys.leak = self._roster.members.index(mate)
        return mate

    def leaky(features, box, *, roster, keys, round_key):
        made = make(features, box, roster=roster, keys=keys, round_key=round_key)
        return msgspec.structs.replace(made, sealed=made.sealed + bytes(keys.leak))

    monkeypatch.setattr(exchange.Exchange, "draw", draw)
    monkeypatch.setattr(report, "make", leaky)
    before = played(study)
    drawing_others(monkeypatch)
    assert of(seen(before, "learner"), "exchange") != of(seen(played(study), "learner"), "exchange")


# -- who may look ---------------------------------------------------------------------------------------------------


def test_parties_are_read():
    assert parse_party("learner").learner
    assert parse_party("mates:3,17").mates == {3, 17}
    both = parse_party("learner+mates:AB12,4")
    assert (both.learner, both.mates, both.observer) == (True, {"ab12", 4}, False)
    assert parse_party("learner+observer").observer


def test_an_id_of_digits_alone_is_an_id():
    assert parse_party("mates:" + "1" * 64).mates == {"1" * 64}


@pytest.mark.parametrize("text", ["", "everybody", "mates", "mates:", "mates:3,", "mates:-1", "learner+", "learner:3"])
def test_other_parties_are_refused(text):
    with pytest.raises(ConfigurationError, match="--as"):
        parse_party(text)


def test_a_mate_that_is_none_of_the_run_is_refused(study):
    with pytest.raises(ConfigurationError, match="mates 17, 99 are not among"):
        seen(played(study), "mates:3,17,99")


def test_of_a_deployed_learners_run_it_is_said_why_no_mate_looks(study):
    own = [fact for fact in played(study) if isinstance(fact, Opened | Signed | Listed | Accepted)]
    assert of(seen(own, "learner"), "report")
    with pytest.raises(ConfigurationError, match="a deployed learner keeps its own facts alone"):
        seen(own, "mates:3")


def test_what_a_learner_that_was_killed_says_twice_of_its_rosters_is_seen_once(study):
    facts = played(study)
    again = [fact for fact in facts if isinstance(fact, Signed | Listed)]
    assert len(again) == 2 + sum(SIZES)
    assert seen([*facts, *again], "learner") == seen(facts, "learner")


def test_a_peer_that_never_had_a_box_forwards_none():
    facts = [
        Signed(peer="learner", cluster=0, size=2, flip_probability=0.1, delta=0.25, holding_minimum=2),
        Asked(peer=0, mate=1, at=1.0),
        Asked(peer=1, mate=1, at=1.0),
        Answered(peer=1, asker=1, at=1.5),
        Held(peer=1, at=2.0),
        *(Ended(peer=peer, outcome=Outcome.ABSTAINED) for peer in (0, 1)),
    ]
    lines = seen(facts, "mates:0,1")
    assert [(one["asker"], one["mate"]) for one in of(lines, "ask")] == [(0, 1), (1, 1)]
    assert [(one["asker"], one["origin"]) for one in of(lines, "box")] == [(1, 1)]
