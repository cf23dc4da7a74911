"""ClusterRR: its constants, its exact laws against what is claimed, and what an audit finds."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from p2p_labeldp.auditing.lower_bound import Tally, lower_bound
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.mechanisms import discrete_laplace
from p2p_labeldp.mechanisms.cluster_rr import ClusterRR
from p2p_labeldp.mechanisms.probability_floor import floored
from p2p_labeldp.mechanisms.redraw import Redraw
from p2p_labeldp.mechanisms.release import LabelMechanism


def mechanism(num_classes=2, sigma="1", redraw=1.0, floor=0.0, **more):
    return ClusterRR(
        num_classes=num_classes, noise_scale=Fraction(sigma), floor=floor, redraw_probability=redraw, **more
    )


@pytest.mark.parametrize(
    ("num_classes", "sigma", "single", "redraw", "floor", "epsilon_noise", "epsilon_redraw", "epsilon"),
    [
        (2, "2", False, 0.5, 0.1, 1.0, 2.397895272798371, 3.397895272798371),
        (2, "2", True, 0.5, 0.1, 0.5, 2.397895272798371, 2.897895272798371),
        (10, "4", False, 0.9, 0.01, 0.5, 2.494123304892924, 2.994123304892924),
        (10, "8", False, 0.99, 0.001, 0.25, 2.407036104269031, 2.657036104269031),
        (100, "3/2", False, 0.7, 0.002, 1.333333333333333, 5.371966049571182, 6.705299382904515),
        (2, "1/2", True, 1.0, 0.0, 2.0, 0.0, 2.0),
    ],
)
def test_epsilon_is_that_of_closed_forms(
    num_classes, sigma, single, redraw, floor, epsilon_noise, epsilon_redraw, epsilon
):
    built = mechanism(num_classes, sigma, redraw, floor, single_count=single)
    assert built.epsilon_noise == pytest.approx(epsilon_noise, rel=1e-13)
    assert built.epsilon_redraw == pytest.approx(epsilon_redraw, rel=1e-13)
    assert built.epsilon == pytest.approx(epsilon, rel=1e-13)


@pytest.mark.parametrize(
    ("epsilon_noise", "epsilon_redraw", "floor", "sigma", "redraw"),
    [
        (0.5, 0.5, 0.1, 4.0, 0.9390798900441615),
        (0.25, 0.75, 0.01, 8.0, 0.9889533904642230),
        (1.0, 3.0, 0.05, 2.0, 0.5116982284087522),
    ],
)
def test_calibration_is_that_of_closed_forms(epsilon_noise, epsilon_redraw, floor, sigma, redraw):
    epsilon = epsilon_noise + epsilon_redraw
    built = ClusterRR.calibrated(num_classes=10, epsilon=epsilon, floor=floor, noise_share=epsilon_noise / epsilon)
    assert float(built.noise_scale) == pytest.approx(sigma, rel=1e-11)
    assert built.redraw_probability == pytest.approx(redraw, rel=1e-12)
    assert built.correction == 0


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1, 8, 100, 700])
@pytest.mark.parametrize("num_classes", [2, 3, 10, 256])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_calibration_never_overshoots(num_classes, epsilon, share):
    floor = 0.1 / num_classes
    built = ClusterRR.calibrated(num_classes=num_classes, epsilon=epsilon, floor=floor, noise_share=share)
    assert epsilon * (1 - 1e-6) < built.epsilon <= epsilon


def test_two_classes_need_half_the_noise():
    scales = [float(ClusterRR.calibrated(num_classes=k, epsilon=1, floor=0.1).noise_scale) for k in (2, 3)]
    assert scales == pytest.approx([2.0, 4.0])


def law(built, counts, reach):
    """Exact law of q for two classes, by enumeration of the noise up to ``reach`` and of the geometric tails."""
    scale, size, found = built.noise_scale, sum(counts), {}
    noise = {k: discrete_laplace.mass(k, scale) for k in range(-reach + 1, reach)}
    tail = (1 - sum(noise.values())) / 2
    noise |= {-reach: tail, reach: tail}  # what lies further out gives the same q if ``reach`` is above the size
    for first, second in itertools.product(noise, repeat=2):
        q = floored((counts[0] + first, counts[1] + second), size, built.floor)
        found[q] = found.get(q, 0.0) + noise[first] * noise[second]
    return found


@pytest.mark.parametrize(
    ("size", "sigma", "loss"),
    [
        (5, "1", 1.793048497688203),
        (5, "2", 0.9338022308899212),
        (20, "1/2", 2.863389096293036),
        (20, "1", 1.999897070582914),
    ],
)
def test_one_over_sigma_is_violated_and_two_over_sigma_is_not(size, sigma, loss):
    """All outputs are the second label, with lambda = 1 and no floor; the counts are (n, 0) and (n - 1, 1)."""
    built = mechanism(sigma=sigma)
    events = []
    for counts in ((size, 0), (size - 1, 1)):
        found = law(built, counts, reach=2 * size + 2)
        events.append(sum(mass * float(q[1]) ** size for q, mass in found.items()))
    violated = math.log(events[1] / events[0])
    assert violated == pytest.approx(loss, rel=1e-6)
    assert 1 / float(Fraction(sigma)) < violated <= built.epsilon_noise == 2 / float(Fraction(sigma))


@pytest.mark.parametrize("counts", [(1, 0), (2, 1), (3, 0), (0, 4)])
@pytest.mark.parametrize(("redraw", "floor"), [(1.0, 0.0), (0.9, 0.05), (0.5, 0.2), (0.8, 0.5)])
def test_no_output_exceeds_the_guarantee_by_enumeration(counts, redraw, floor):
    """Every q and every output of all members, for neighbours that move one label from the first class."""
    built, size = mechanism(redraw=redraw, floor=floor), sum(counts)
    if counts[0] == 0:
        counts = counts[::-1]
    labels = [0] * counts[0] + [1] * counts[1]
    joint = []
    for truth in (labels, [1, *labels[1:]]):
        found = law(built, (truth.count(0), truth.count(1)), reach=2 * size + 2)
        table = {}
        for q, mass in found.items():
            channel = Redraw(redraw_probability=redraw, distribution=q).channel
            for told in itertools.product((0, 1), repeat=size):
                row = math.prod(channel[true, out] for true, out in zip(truth, told, strict=True))
                table[q, told] = mass * row
        joint.append(table)
    assert set(joint[0]) == set(joint[1])
    losses = [
        abs(math.log(joint[0][key] / joint[1][key]))
        for key in joint[0]
        if joint[0][key] > 1e-12 or joint[1][key] > 1e-12
    ]
    assert max(losses) <= built.epsilon + 1e-9
    if redraw == 1.0 and floor == 0.0:
        assert max(losses) > 1.0  # 1/sigma, the claim that does not hold


def counted(built, truth, trials, rng):
    """How often the released distribution of a lone member has the second class on top."""
    labels, clusters = np.array([truth]), np.array([0])
    released = (built.release(labels, clusters, count=1, rng=rng) for _ in range(trials))
    return sum(bool(one.distributions[0, 1] > 0.999) for one in released)


def test_an_audit_finds_nothing_above_two_over_sigma_and_something_above_one_over_sigma():
    trials, rng = 20_000, random.Random(7)
    built = mechanism(sigma="1")
    hits = counted(built, 1, trials, rng)
    misses = counted(built, 0, trials, rng)
    tally = Tally(direction="to 1", hits=hits, trials=trials, hits_neighbour=misses, trials_neighbour=trials)
    # each end of the bound errs with 5e-7: either assertion fails by chance with probability below 1e-6
    found = lower_bound(tally, delta=0.0, confidence=1 - 1e-6).epsilon_lower
    assert found <= built.epsilon == 2.0
    assert found > 1.5


def test_the_audit_sees_a_single_count_at_one_over_sigma():
    """The same audit where 1/sigma is true: nothing above it."""
    trials, rng = 20_000, random.Random(7)
    built = mechanism(sigma="1", single_count=True)
    hits, misses = (counted(built, truth, trials, rng) for truth in (1, 0))
    tally = Tally(direction="to 1", hits=hits, trials=trials, hits_neighbour=misses, trials_neighbour=trials)
    found = lower_bound(tally, delta=0.0, confidence=1 - 1e-6).epsilon_lower
    assert 0.7 < found <= built.epsilon == 1.0


def test_noise_however_adversarial_leaves_the_floor(monkeypatch):
    built = ClusterRR.calibrated(num_classes=10, epsilon=1, floor=0.01)
    rng = random.Random(3)
    monkeypatch.setattr(discrete_laplace, "draw", lambda scale, rng: rng.choice([-(10**9), -7, 0, 10**9]))
    labels, clusters = np.arange(50) % 10, np.repeat(np.arange(5), 10)
    for _ in range(200):
        released = built.release(labels, clusters, count=5, rng=rng)
        assert released.distributions.min() >= 0.01
        assert released.distributions.sum(axis=1) == pytest.approx(1)


def test_an_absent_class_changes_neither_shape_nor_guarantee():
    built = ClusterRR.calibrated(num_classes=10, epsilon=1, floor=0.02)
    clusters = np.repeat(np.arange(4), 25)
    every, few = np.arange(100) % 10, np.arange(100) % 3
    for labels in (every, few):
        released = built.release(labels, clusters, count=6, rng=random.Random(1))
        assert released.distributions.shape == (6, 10)
        assert released.labels.shape == (100,)
        assert released.distributions.min() >= 0.02
    told = built.release(few, clusters, count=6, rng=random.Random(1)).labels
    assert set(told.tolist()) - set(few.tolist())  # classes that nobody has are told too


def test_clusters_of_nobody_and_of_one_are_served():
    built = ClusterRR.calibrated(num_classes=3, epsilon=1, floor=0.1)
    released = built.release(np.array([2]), np.array([1]), count=3, rng=random.Random(0))
    assert released.labels.shape == (1,)
    assert released.distributions[0] == pytest.approx(1 / 3)
    assert released.distributions.sum(axis=1) == pytest.approx(1)


def test_without_noise_to_speak_of_labels_follow_their_cluster():
    built = mechanism(num_classes=4, sigma="1/1000", redraw=1.0)
    labels = np.repeat([0, 0, 0, 1], 5000)
    released = built.release(labels, np.zeros(20_000, dtype=int), count=1, rng=random.Random(2))
    assert released.distributions[0] == pytest.approx([0.75, 0.25, 0, 0])
    # 5.1 standard deviations
    assert np.mean(released.labels == 0) == pytest.approx(0.75, abs=5.1 * math.sqrt(0.1875 / 20_000))
    # redrawn, not kept: members tell of each other
    assert np.mean(released.labels[labels == 1] == 1) == pytest.approx(0.25, abs=5.1 * math.sqrt(0.1875 / 5000))


def test_one_seed_gives_one_release_and_another_seed_another():
    built = ClusterRR.calibrated(num_classes=3, epsilon=1, floor=0.1)
    labels, clusters = np.arange(60) % 3, np.arange(60) % 4
    a, b, c = (built.release(labels, clusters, count=4, rng=random.Random(seed)) for seed in (1, 1, 2))
    assert (a.labels == b.labels).all()
    assert (a.distributions == b.distributions).all()
    assert (a.labels != c.labels).any()
    assert isinstance(built, LabelMechanism)
    assert built.needs_curator


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"floor": 0.0, "redraw": 0.5}, "floor"),
        ({"floor": 0.6}, "floor"),
        ({"floor": math.nan}, "floor"),
        ({"redraw": 0.0}, "redraw_probability"),
        ({"redraw": math.nan, "floor": 0.1}, "redraw_probability"),
        ({"correction": 0.7, "redraw": 0.6, "floor": 0.1}, "correction"),
        ({"correction": 1.0}, "correction"),
        ({"correction": math.nan}, "correction"),
        ({"sigma": "0"}, "noise_scale"),
        ({"num_classes": 3, "single_count": True}, "single_count"),
        ({"num_classes": 1}, "num_classes"),
    ],
)
def test_impossible_parameters_are_refused(change, field):
    with pytest.raises(ConfigurationError, match=f"^{field}: "):
        mechanism(**change)


@pytest.mark.parametrize("share", [0, 1, -0.5, math.nan, True])
def test_impossible_shares_are_refused(share):
    with pytest.raises(ConfigurationError, match="noise_share: "):
        ClusterRR.calibrated(num_classes=3, epsilon=1, floor=0.1, noise_share=share)


@pytest.mark.parametrize(
    ("labels", "clusters", "field"),
    [
        ([0, 3], [0, 0], "labels"),
        ([0, -1], [0, 0], "labels"),
        ([0.0, 1.0], [0, 0], "labels"),
        ([[0, 1]], [0, 0], "labels"),
        ([0, 1], [0, 2], "clusters"),
        ([0, 1], [0], "clusters"),
    ],
)
def test_labels_and_clusters_that_do_not_fit_are_refused(labels, clusters, field):
    built = ClusterRR.calibrated(num_classes=3, epsilon=1, floor=0.1)
    with pytest.raises(ConfigurationError, match=f"^{field}: "):
        built.release(np.array(labels), np.array(clusters), count=2, rng=random.Random(0))
