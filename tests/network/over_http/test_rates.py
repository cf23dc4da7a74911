"""Token buckets: never more than burst and rate allow, never less, and nothing remembered that time has refilled."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol.scenes import Scene

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.network.http.rates import Limiter, Rate
from p2p_labeldp.network.http.server import SENDER_RATE, TOTAL_RATE
from p2p_labeldp.network.learner_process import TOTAL_RATE as LEARNERS_RATE
from p2p_labeldp.network.pace import phases

A, B = b"a", b"b"


def limiter(per_second=2.0, burst=3.0, **terms):
    return Limiter(Rate(per_second=per_second, burst=burst), **terms)


def test_a_burst_is_allowed_and_then_the_rate():
    one = limiter()
    assert [one.charge(A, 10.0) for _ in range(5)] == [0, 0, 0, 0.5, 0.5]
    assert one.charge(A, 10.4) == pytest.approx(0.1)
    assert one.charge(A, 10.5) == 0
    assert one.charge(A, 10.5) == pytest.approx(0.5)


def test_keys_have_buckets_of_their_own():
    one = limiter(burst=1.0)
    assert (one.charge(A, 0.0), one.charge(B, 0.0)) == (0, 0)
    assert one.charge(A, 0.0) > 0


def test_a_refusal_costs_nothing():
    one = limiter(burst=1.0)
    one.charge(A, 0.0)
    for _ in range(100):
        assert one.charge(A, 0.25) == pytest.approx(0.25)
    assert one.charge(A, 0.5) == 0


@given(st.lists(st.floats(0, 3), max_size=60), st.floats(0.1, 20), st.floats(1, 20))
def test_it_is_a_token_bucket(pauses, per_second, burst):
    """Against the bucket written out."""
    one, tokens, now = limiter(per_second, burst), burst, 0.0
    for pause in pauses:
        now += pause
        tokens = min(burst, tokens + pause * per_second)
        wait = one.charge(A, now)
        if abs(tokens - 1) > 1e-6:  # else either is right, in floats
            assert (wait == 0) == (tokens >= 1)
        if wait == 0:
            tokens -= 1
        else:
            assert wait == pytest.approx((1 - tokens) / per_second, abs=1e-6)


def test_what_is_full_again_is_forgotten_first_and_memory_is_bounded():
    one = limiter(capacity=3)
    for i in range(100):
        one.charge(bytes([i]), 0.1 * i)
        assert len(one) <= 3
    old = limiter(capacity=2, burst=1.0, per_second=1.0)
    old.charge(A, 0.0)
    old.charge(B, 1.0)
    old.charge(b"c", 1.1)  # A is full again and goes; B is not
    assert old.charge(B, 1.1) > 0


@pytest.mark.parametrize(
    ("field", "wrong"),
    [(name, wrong) for name in ("per_second", "burst") for wrong in (0.0, -1.0, math.nan, math.inf, True)],
)
def test_an_impossible_rate_is_named(field, wrong):
    with pytest.raises(ConfigurationError, match=rf"^{field}: "):
        Rate(**{"per_second": 1.0, "burst": 1.0, field: wrong})


# -- honest rounds --------------------------------------------------------------------------------------------------


def refusals(scene, *, sender_rate=SENDER_RATE, total_rate=TOTAL_RATE, learners_rate=LEARNERS_RATE):
    """How many of a round's requests servers with these rates would have refused."""
    found, senders, totals = 0, {}, {}
    for now, sender, to, _, _ in sorted(scene.traffic, key=lambda said: said[0]):
        rate = learners_rate if to == scene.learner else total_rate
        found += totals.setdefault(to, Limiter(rate, capacity=1)).charge(b"", now) > 0
        found += senders.setdefault(to, Limiter(sender_rate)).charge(sender, now) > 0
    return found


ROUNDS = {
    "three peers in processes": ("processes", (3,), False),
    "three hundred in processes that all know one first": ("processes", (30,) * 10, True),
    "a thousand on the virtual engine": ("virtual", (50,) * 20, False),
    "a thousand on the virtual engine that all know one first": ("virtual", (50,) * 20, True),
}


@pytest.mark.parametrize("which", ROUNDS)
def test_honest_rounds_at_their_default_pace_never_meet_a_rate(study_of, which):
    """Packing peers changes nothing of it: each has its own server, and its own key at those of the others."""
    engine, sizes, star = ROUNDS[which]
    pace = phases(peers=sum(sizes), engine=engine)
    study = study_of(seed=1, sizes=sizes, deadlines=pace.deadlines(), gossip_period=pace.gossip_period, degree=2)
    if star:
        study.neighbours[:] = [[], *[[0]] * (len(study) - 1)]
    scene = Scene(study).play()
    assert len(scene.ends()) == len(study)
    assert refusals(scene) == 0
    low = Rate(per_second=0.2, burst=1.0)
    assert refusals(scene, sender_rate=low) > 0  # the control: it would show
    assert refusals(scene, total_rate=low) > 0
    assert refusals(scene, learners_rate=low) > 0
