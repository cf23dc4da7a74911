"""No refusal depends on a label: each is played with both, and all that the peer says and does is compared.

Every sentence with which a peer refuses a round, as the modules that refuse have it, is among those compared here.
"""

import ast
import inspect
import re

import pytest

from p2p_labeldp.facts import Rejected
from p2p_labeldp.labels import Example, LabelSpace
from p2p_labeldp.protocol import admission, exchanging, joining, ledger, peer, policy, roster
from p2p_labeldp.protocol.admission import Admission, enrol
from p2p_labeldp.protocol.ledger import Ledger
from p2p_labeldp.protocol.messages import Contradiction
from p2p_labeldp.protocol.policy import Policy
from protocol import test_ledger, test_manifest, test_policy, test_roster
from protocol.little_round import DEADLINES, Hand, committed, gathered, given, keys, open_round, record
from protocol.little_round import peer as party
from protocol.little_round import roster as signed

ENROLMENT, OTHER = keys(700), keys(701)
LISTED = {"admission": Admission.ALLOWLIST, "enrolment_key": ENROLMENT.peer_id}
PINNED = Policy(enrolment_key=ENROLMENT.peer_id)


def joins(label, *, opened=None, **own):
    """A peer at the start of a round."""
    if "example" in own:
        own["example"] = Example(features=own["example"].features, label=label)
    hand = Hand(party(opened=opened or open_round(), **{"label": label, **own}))
    hand.start()
    return hand


def enrolled(label, enrolment):
    return joins(label, opened=open_round(**LISTED), policy=PINNED, enrolment=enrolment)


def lacks_a_record(label):
    hand = given(signed(), label=label, records=[record(i) for i in (2, 3, 4)])
    hand.run(DEADLINES.exchange)
    return hand


def two_rosters(label):
    hand = committed(label=label)
    hand.receive(Contradiction(signed(), signed(holding_minimum=4)), keys(2).peer_id, DEADLINES.join + 5.0)
    return hand


def again(label):
    """The label may leave in another roster, and its limit says what that costs."""
    past = Ledger([test_ledger.release(flip_probability=test_ledger.SIX_FLIP)], another_roster=True)
    return test_ledger.six(label=label, ledger=past, policy=Policy(epsilon=1.0))


def spent(label, **changes):
    return test_ledger.six(label=label, ledger=Ledger([test_ledger.release(**changes)]))


# A peer with one of two labels is played as far as its refusal.
REFUSED = {
    **{
        f"manifest: {why[:40]}": lambda label, terms=terms, own=own: joins(label, opened=open_round(**terms), **own)
        for why, terms, own in test_manifest.DISAGREEMENTS
    },
    "open admission": lambda label: joins(label, policy=PINNED),
    "another enrolment key": lambda label: joins(
        label, opened=open_round(**{**LISTED, "enrolment_key": OTHER.peer_id}), policy=PINNED
    ),
    "no enrolment": lambda label: enrolled(label, b""),
    "the enrolment of another peer": lambda label: enrolled(label, enrol(keys(2).peer_id, ENROLMENT)),
    "an enrolment by another key": lambda label: enrolled(label, enrol(keys(1).peer_id, OTHER)),
    "an enrolment of no form": lambda label: enrolled(label, ENROLMENT.sign(admission.KIND, b"\xc1")),
    "a label spent in another round": lambda label: joins(
        label, opened=test_ledger.OTHER, ledger=Ledger([test_ledger.release()])
    ),
    "a label spent in another label space": lambda label: joins(
        label, ledger=Ledger([test_ledger.release(label_space=LabelSpace(classes=("yes", "no")).digest)])
    ),
    "a label spent in another roster": lambda label: spent(label, flip_probability=test_ledger.SIX_FLIP),
    "a label spent at another flip probability": spent,
    "a label that costs the local epsilon by now": again,
    **{
        f"limit: {view}": lambda label, limits=limits: test_policy.wanting(limits, label=label)
        for view, (limits, _, _) in test_policy.LIMITS.items()
    },
    "a cluster below the peer's own minimum": lambda label: given(
        signed((1, 2), opened=open_round(minimum_size=3)),
        hand=gathered(members=(1, 2), label=label, policy=Policy(minimum_size=3)),
    ),
    **{
        f"roster: {why}": lambda label, make=make: given(make(), hand=gathered(label=label))
        for why, (make, _) in test_roster.REFUSED.items()
    },
    "a flip that is not the manifest's": lambda label: given(
        signed(opened=FIXED, flip_probability=0.19), hand=gathered(opened=FIXED, label=label)
    ),
    "a holding minimum that is not its size's": lambda label: given(
        signed(opened=FIXED, holding_minimum=4), hand=gathered(opened=FIXED, label=label)
    ),
    "a record that never comes": lacks_a_record,
    "two rosters of one cluster": two_rosters,
}
FIXED = open_round(target_epsilon=None, flip_probability=0.2)


def both(why):
    return [REFUSED[why](label) for label in (0, 1)]


@pytest.mark.parametrize("why", REFUSED)
def test_a_refusal_is_the_same_whatever_the_label(why):
    zero, one = both(why)
    assert (zero.machine.example.label, one.machine.example.label) == (0, 1)
    assert zero.machine.over
    assert zero.facts(Rejected)
    assert zero.end == one.end
    for hand in (zero, one):
        hand.run(DEADLINES.report + 10)
        assert hand.label_is_untouched
    assert zero.effects == one.effects


@pytest.mark.parametrize("why", ["manifest: minimum size 2 below 3", "limit: the local view", "roster: unsorted"])
def test_a_refusal_that_knows_the_label_is_found_by_the_same_comparison(why, monkeypatch):
    """The control: one letter of a sentence."""
    refuse = peer.Participant.refuse

    def tells(self, reason, about, now):
        refuse(self, reason, about + "." * self.example.label, now)

    monkeypatch.setattr(peer.Participant, "refuse", tells)
    zero, one = both(why)
    assert zero.effects != one.effects


# -- and none is forgotten ------------------------------------------------------------------------------------------

SPEAKS = re.compile("(policy|roster|label spent|not admitted): |the roster's |the learner signed ")
NEVER_SAID = {  # by a peer in a round: what comes before says no first
    r"policy:\ .*\ members,\ below\ .*": "the manifest's minimum, which is not below the peer's, is held against first",
    r"label\ spent:\ .*\ has\ left\ as\ another\ value": "the value is the ledger's own; tests/protocol/test_ledger.py",
}


def sentences(module):
    """Every sentence of refusal in a module's source, as a pattern: what stands in braces may be anything."""
    tree = ast.parse(inspect.getsource(module))
    inside = {id(part) for one in ast.walk(tree) if isinstance(one, ast.JoinedStr) for part in one.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            parts = [node.value]
        else:
            continue
        first = parts[0]
        if isinstance(first, str) and SPEAKS.match(first) and "\n" not in first and " " in first:
            yield "".join(".*" if part is None else re.escape(part) for part in parts)


def test_every_sentence_of_refusal_is_among_those_compared():
    said = [fact.about for why in REFUSED for fact in REFUSED[why](0).facts(Rejected)]
    known = {
        one for module in (policy, peer, joining, exchanging, roster, ledger, admission) for one in sentences(module)
    }
    assert len(known) > 20
    unsaid = {one for one in known if not any(re.fullmatch(f"(policy: )?{one}", about) for about in said)}
    assert unsaid == set(NEVER_SAID)
