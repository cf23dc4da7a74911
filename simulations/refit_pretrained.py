"""Pretrained models refitted to a new population by private rounds: the last layer only, with the sigma that is honest.

Claim: (1) What no cohort of ``mnist_cnn.py`` can bear, a last layer can: d is thousands instead of millions, features
are computed once, and thousands of clients take part in a round. With the noise that central (1.9, 1e-9) needs, and
reports of eps1 + 10 each against the learner, digits' network refitted to clothes gains most of what refitting gains
without privacy, and a next-word model refitted to other books gains some of it at every level, most at the larger ones.
(2) The threshold d/8 is one for few reports: thousands of them, 40 times, are worth something at d/2560 already. (3)
The honest sigma is what small cohorts can't bear: at eps1 = 64, 6 clients of 60,000 or 5 of 23,317 gain a seventh at
most with it (words get worse), and with the reduced one two fifths of what images can gain and a seventh of what words
can; ten times as many gain .44 (images) and .05 (words) with it. (4) Where sigma is honest, fewer parameters are better
at small levels and worse at large ones: 128 public axes of the 1,024 features (d = 1,290) are ahead at eps1 = 4 and
behind at 64. (5) Moments stand for drawn reports.

Where the expectation is not what happens: pretraining is worth nothing to the images. A network that has seen no digit
gives clothes features as good as one that gets .968 of digits right. To the words it is worth everything: from zeros,
40 rounds without any privacy end behind where the pretrained model begins.

What the other two ledgers say (columns of the table). The learner sees reports by name, and a client may send up to 21
of images or 28 of words in all: at eps1 = 4 those are 294 and 392 together, no guarantee in words of epsilon. Against
reconstruction they still are one for images with all features: the bound for features to within .5 is e^-452 at eps1 =
4 and e^-200 at 16 after all reports, at 64 it is one after a single report only, at d/8 none at all. With 128 axes it
is one after a single report only, up to 64; for all but 4 of a client's 16 words too, at 4 and 16. Bounds are for
uniform priors.

Config. Images: the network of ``mnist_cnn.py``, 200 batches of 50 digits; each client has one of the 60,000 training
images of Fashion-MNIST, in published order; accuracy on its 10,000 test images (``refit_images.py``). Words: American
Standard Version, 4 words before each, vocabulary of the 256 most frequent words of the public New Testament, which are
.697 of the words of the Old; 23,317 clients of 16 predicted words; measured on a tenth of the chapters
(``refit_words.py``). 40 rounds, q = .1 of images and 5,000 expected of words, gradients clipped to norm 1, ScalarDP at
eps2 = 10, eps1 in {4, 16, 64, d/8}, rho that shrinks nothing; cohorts of a tenth, a hundredth and a thousandth of these
at eps1 = 64. Curves and rates are those of ``network_rounds.py``; eta_0 and c were chosen by hand on short runs, over
the rows that measure. Sums of reports are drawn by their moments, except for two curves of 12 rounds in which every
report is. Seed 0.

Expected, after 40 rounds:

                        not refitted   eps1 = 4   16     64     d/8    not private   rows are
    images, accuracy    .100           .613       .742   .765   .776   .776          honest, (1.9, 1e-9)
                                       .730       .768   .774   .776                 reduced, (13.2, 1e-9)
    128 axes, accuracy  .100           .701       .747   .748   .749   .749          honest
    words, perplexity   37.3           36.2       34.8   33.6   32.1   32.0          honest
                                       34.3       32.8   32.1   32.0                 reduced, (22.6, 1e-9)
    words, accuracy     .250           .255       .258   .260   .266   .266          honest

The reduced sigma of 128 axes is 8 % below the honest one: there is nothing to reduce. Digits' own last layer gets .076
of the clothes right. Tolerance: shares of the gain without privacy (accuracy of images, log loss of words) as in
``LEAST_SHARE`` and what stands below it; .03 between drawn reports and moments and between the two networks.

    OPENBLAS_NUM_THREADS=1 python simulations/refit_pretrained.py [--quick] [--data-dir DIR] [--parts DIR] [--out DIR]

writes refit_pretrained.csv, .png and .svg (with --quick refit_pretrained_quick.csv alone) and exits with 1 if a claim
fails. Needs JAX (extra ``jax``; for features, not in the rounds) and a text (extra ``corpus``). DIR has folders mnist
and fashion-mnist. With --parts a run that was cut short goes on at the curve it was in. Twelve minutes of
CPU time on one core, --quick 20 seconds.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

import p2p_labeldp
import refit_images
import refit_words
from frame import Study
from last_layer import LastLayer
from network_rounds import FOLDERS, HONEST, NOT_PRIVATE, REDUCED, SEED, Curve, Data, Plan, once, one_thread, played
from p2p_labeldp.accounting.federated import PeerLedger, most_participations
from p2p_labeldp.accounting.reconstruction import log_dictionary_prior, log_sphere_prior
from p2p_labeldp.learning.networks import MNIST

IMAGES, NARROW, UNTRAINED = "images", "images, 128 axes", "images, untrained network"
WORDS, FROM_ZEROS = "words", "words, from zeros"
NAMES = (IMAGES, NARROW, UNTRAINED, WORDS, FROM_ZEROS)
PARAMETERS = {IMAGES: 10_250, NARROW: 1_290, UNTRAINED: 10_250, WORDS: 8_192, FROM_ZEROS: 8_192}
LEVELS, EIGHTH = (4.0, 16.0, 64.0), 8
"""eps1, and d/8 beside them."""
MIDDLE, SWEPT = 16.0, 64.0
"""eps1 of the curves beside the others, and of cohorts."""
BESIDE = ((NOT_PRIVATE, math.inf), (HONEST, MIDDLE), (HONEST, SWEPT))
"""Curves of what is not pretrained."""
SHARES = (1000, 100, 10)
"""Smaller cohorts: the expected one divided by these."""
EXACT_ROUNDS = 12
DIGITS_STEPS, PUBLIC = 200, 10_000
ALPHA, WRONG = 0.5, 4
"""What counts as reconstructed: features within ALPHA; all but WRONG of a client's words."""
QUICK = "4 rounds of cohorts of 200 over 2,000 clients with a hardly pretrained model; only counts are claimed"

LEAST_SHARE = {
    IMAGES: (0.7, 0.92, 0.96, 0.98),
    NARROW: (0.88, 0.97, 0.97, 0.98),
    WORDS: (0.15, 0.4, 0.63, 0.95),
}
"""Of the gain without privacy, with the honest sigma, at each level."""
LEAST_OF_FEW = {IMAGES: 0.3, NARROW: 0.3, WORDS: 0.05}
"""The same in the smallest cohort, with the reduced sigma."""
MOST_OF_FEW = 0.2
"""There with the honest one."""
SAME, EXACT = 0.03, 0.03
"""Largest differences in accuracy: what pretraining on digits is worth, either way; drawn reports from moments."""

PLAN = Plan(
    network=LastLayer(start=np.zeros((10, 1025))),
    rounds=40,
    target=(1.9, 1e-9),
    population=60_000,
    cohort=6_000.0,
    images=1,
    radius=1.0,
    rate=16.0,
    noise_length=8.0,
    every=4,
    block=100,
)
WORDS_COHORT, WORDS_RATE, WORDS_NOISE_LENGTH = 5_000.0, 4.0, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is refitted on whom.

    Args:
        name: One of ``NAMES``.
        plan: With the last layer as its network.
        data: The new population.
        log_prior: log of the best chance to reconstruct a client's data before any report, under a uniform prior.
    """

    name: str
    plan: Plan
    data: Data
    log_prior: float


@dataclass(frozen=True, kw_only=True)
class Row:
    """A measurement: the model after ``round`` rounds on held-out rows, and what was guaranteed for all rounds."""

    task: str
    noise: str
    epsilon_direction: float
    mode: str
    expected_cohort: float
    round: int
    accuracy: float
    loss: float
    tested: int
    sigma: float
    honest_sigma: float
    central_epsilon: float
    central_delta: float
    local_epsilon: float
    most_reports: int
    local_epsilon_of_all: float
    log_prior: float
    log_success_one: float
    log_success_all: float
    rate: float
    reports: int
    cpu_seconds: float
    parameters: int
    population: int
    rows: int
    data: str
    seed: int = SEED
    version: str = p2p_labeldp.__version__


def images(folder: Path | None, *, quick: bool) -> tuple[dict[str, Callable[[], Task]], str]:
    """The three tasks of images, made when they are played, and what is to be said of the network."""
    digits, clothes = refit_images.read(folder)
    trained = refit_images.pretrained(digits, 4 if quick else DIGITS_STEPS)
    people, tested, public = (2_000, 500, 1_100) if quick else (PLAN.population, 10_000, PUBLIC)

    def task(name: str, seen: refit_images.Clothes, axes: int) -> Task:
        layer = LastLayer(start=np.zeros((refit_images.CLASSES, axes + 1)))
        plan = replace(PLAN, network=layer, population=people)
        return Task(name=name, plan=plan, data=seen.data(axes), log_prior=log_sphere_prior(dimension=axes, alpha=ALPHA))

    found = {
        of: refit_images.seen_by(parameters, digits, clothes, people=people, tested=tested, public=public)
        for of, parameters in (("trained", trained), ("untrained", MNIST.initial(SEED)))
    }
    said = (
        f"images: the network as it is gets {refit_images.accuracy(trained, digits, tested):.4f} of digits right,"
        f" {refit_images.accuracy(trained, clothes, tested):.4f} of clothes by the digits' own last layer"
    )
    return {
        IMAGES: lambda: task(IMAGES, found["trained"], 1024),
        NARROW: lambda: task(NARROW, found["trained"], 128),
        UNTRAINED: lambda: task(UNTRAINED, found["untrained"], 1024),
    }, said


def words(*, quick: bool) -> tuple[dict[str, Callable[[], Task]], str]:
    """The two tasks of words, and what is to be said of the text."""
    chapters, verified = refit_words.read()
    public, old = refit_words.halves(chapters)
    known = refit_words.vocabulary(public)
    chosen, measuring = refit_words.held_out(old)
    learned, clients, held = (refit_words.texts(half.values(), known) for half in (public, chosen, measuring))
    if quick:
        learned, clients = (
            refit_words.Texts(contexts=t.contexts[:2_000], words=t.words[:2_000]) for t in (learned, clients)
        )
    model = refit_words.pretrained(learned, len(known), epochs=1 if quick else refit_words.EPOCHS)
    data = refit_words.data(model, clients, held, verified=verified)
    prior = log_dictionary_prior(size=len(known), members=refit_words.PREDICTED, wrong=WRONG)
    seen = set(known)
    covered = sum(word in seen for words in old.values() for word in words)

    def task(name: str, layer: LastLayer) -> Task:
        plan = replace(
            PLAN,
            network=layer,
            population=len(clients.words),
            cohort=WORDS_COHORT,
            images=refit_words.PREDICTED,
            rate=WORDS_RATE,
            noise_length=WORDS_NOISE_LENGTH,
        )
        return Task(name=name, plan=plan, data=data, log_prior=prior)

    said = (
        f"words: the vocabulary covers {covered / sum(map(len, old.values())):.3f} of the new population's words; the"
        f" rest is neither learned nor measured; a client has {refit_words.PREDICTED}"
    )
    return {
        WORDS: lambda: task(WORDS, LastLayer(start=model.last)),
        FROM_ZEROS: lambda: task(FROM_ZEROS, LastLayer(start=np.zeros_like(model.last))),
    }, said


def levels(parameters: int) -> tuple[float, ...]:
    """All eps1 of a task of so many parameters."""
    return (*LEVELS, parameters / EIGHTH)


def runs(name: str, plan: Plan) -> Iterator[tuple[Plan, Curve]]:
    """All curves of a task, each with its cohort."""

    def curve(noise: str, epsilon: float, mode: Literal["moments", "exact"] = "moments", rounds: int = 0) -> Curve:
        return Curve(noise=noise, epsilon=epsilon, mode=mode, rounds=rounds or plan.rounds)

    yield plan, Curve(noise=NOT_PRIVATE, epsilon=math.inf, mode="clipped", rounds=plan.rounds)
    if name in (UNTRAINED, FROM_ZEROS):
        yield from ((plan, curve(noise, epsilon)) for noise, epsilon in BESIDE if noise == HONEST)
        return
    for epsilon in levels(plan.network.dimension):
        yield from ((plan, curve(noise, epsilon)) for noise in (HONEST, REDUCED))
    if name != NARROW:
        yield plan, curve(HONEST, MIDDLE, "exact", min(EXACT_ROUNDS, plan.rounds))
    for share in SHARES:
        yield from ((replace(plan, cohort=plan.cohort / share), curve(noise, SWEPT)) for noise in (HONEST, REDUCED))


def quick(plan: Plan) -> Plan:
    """Enough to see that it runs."""
    return replace(plan, rounds=4, cohort=200.0, population=min(plan.population, 2_000), every=2)


def measured(task: Task, plan: Plan, curve: Curve) -> Iterator[Row]:
    """Plays a curve and measures it; says how it goes."""
    layer = plan.network
    assert isinstance(layer, LastLayer)
    private = curve.noise != NOT_PRIVATE
    level = plan.mechanism(curve.epsilon).epsilon if private else math.inf
    most = most_participations(sampling_rate=plan.sampling_rate, rounds=plan.rounds, population=plan.population)

    def log_success(reports: int) -> float:
        if not private:
            return 0.0
        return PeerLedger(epsilon=level, participations=reports).reconstruction(task.log_prior).log_success

    for at in played(plan, curve, task.data):
        accuracy, loss = layer.measure(at.parameters, task.data.test, task.data.test_labels)
        print(
            f"{task.name:<26} {curve.name:<22} {plan.cohort:>6g} round {at.round:>3}"
            f"  {accuracy:.4f}  {loss:.4f}  {at.cpu_seconds:6.1f} s",
            flush=True,
        )
        yield Row(
            task=task.name,
            noise=curve.noise,
            epsilon_direction=curve.epsilon,
            mode=curve.mode,
            expected_cohort=plan.cohort,
            round=at.round,
            accuracy=round(accuracy, 4),
            loss=round(loss, 4),
            tested=len(task.data.test_labels),
            sigma=at.sigma,
            honest_sigma=at.honest_sigma,
            central_epsilon=at.central_epsilon,
            central_delta=plan.target[1],
            local_epsilon=level,
            most_reports=most,
            local_epsilon_of_all=most * level,
            log_prior=task.log_prior,
            log_success_one=log_success(1),
            log_success_all=log_success(most),
            rate=at.rate,
            reports=at.reports,
            cpu_seconds=at.cpu_seconds,
            parameters=layer.dimension,
            population=plan.population,
            rows=plan.images,
            data="verified" if task.data.verified else "unverified",
        )
        assert at.refused == 0


def play(study: Study, task: Task) -> list[Row]:
    """All curves of a task; those that an earlier run kept are read."""
    rows: list[Row] = []
    chosen = list(runs(task.name, quick(task.plan) if study.quick else task.plan))
    if study.quick:
        chosen = [(plan, curve) for plan, curve in chosen if curve.epsilon in (MIDDLE, math.inf)]
    for plan, curve in chosen:
        name = f"{task.name}-{curve.name}-{plan.cohort:g}".replace(" ", "-").replace(",", "")
        rows += once(study, name, Row, lambda plan=plan, curve=curve: measured(task, plan, curve))
    return rows


def of(
    rows: Sequence[Row], task: str, noise: str, epsilon: float, *, cohort: float | None = None, mode: str | None = None
) -> list[Row]:
    """A curve, in the order of rounds; of the largest cohort unless another is asked for."""
    mode = mode or ("clipped" if noise == NOT_PRIVATE else "moments")
    found = [
        row for row in rows if (row.task, row.noise, row.epsilon_direction, row.mode) == (task, noise, epsilon, mode)
    ]
    wanted = cohort or max((row.expected_cohort for row in found), default=0.0)
    return sorted((row for row in found if row.expected_cohort == wanted), key=lambda row: row.round)


def cohorts(rows: Sequence[Row], task: str) -> list[float]:
    """Expected ones of a task, small ones first."""
    return sorted({row.expected_cohort for row in rows if row.task == task})


def share(rows: Sequence[Row], curve: Sequence[Row]) -> float:
    """How much of what refitting without privacy gains a curve gains: in accuracy for images, in loss for words."""
    plain = of(rows, curve[0].task, NOT_PRIVATE, math.inf)

    def worth(row: Row) -> float:
        return -row.loss if row.task in (WORDS, FROM_ZEROS) else row.accuracy

    start = worth(plain[0])
    return (worth(curve[-1]) - start) / (worth(plain[-1]) - start)


def failures(rows: Sequence[Row]) -> Iterator[str]:
    """What of the claims the rows contradict."""
    yield from structure(rows)
    for task, least in LEAST_SHARE.items():
        for epsilon, wanted in zip(levels(PARAMETERS[task]), least, strict=True):
            if not (found := share(rows, of(rows, task, HONEST, epsilon))) >= wanted:
                yield f"{task}: with the honest sigma at eps1 = {epsilon:g} {found:.3f} of the gain, claimed {wanted}"
        small = cohorts(rows, task)[0]
        honest, reduced = (share(rows, of(rows, task, noise, SWEPT, cohort=small)) for noise in (HONEST, REDUCED))
        if not honest <= MOST_OF_FEW:
            yield f"{task}: in cohorts of {small:g} {honest:.3f} with the honest sigma, at most {MOST_OF_FEW}"
        if not reduced >= LEAST_OF_FEW[task]:
            yield f"{task}: in cohorts of {small:g} {reduced:.3f} with the reduced sigma, claimed {LEAST_OF_FEW[task]}"
    for epsilon, sign in ((4.0, 1.0), (64.0, -1.0)):
        ahead = of(rows, NARROW, HONEST, epsilon)[-1].accuracy - of(rows, IMAGES, HONEST, epsilon)[-1].accuracy
        if not sign * ahead > 0.0:
            yield f"fewer axes are {ahead:.4f} ahead at eps1 = {epsilon:g}"
    for noise, epsilon in BESIDE:
        gained = of(rows, IMAGES, noise, epsilon)[-1].accuracy - of(rows, UNTRAINED, noise, epsilon)[-1].accuracy
        if not abs(gained) <= SAME:
            yield f"pretraining on digits is worth {gained:.4f} ({noise}, eps1 = {epsilon:g}), claimed at most {SAME}"
    as_it_is = of(rows, WORDS, NOT_PRIVATE, math.inf)[0].loss
    for noise, epsilon in BESIDE:
        if not (loss := of(rows, FROM_ZEROS, noise, epsilon)[-1].loss) > as_it_is:
            yield f"words, {noise}, eps1 = {epsilon:g}: loss from zeros {loss}, as pretrained {as_it_is}"
    for row in (row for row in rows if row.mode == "exact"):
        beside = [one for one in of(rows, row.task, HONEST, row.epsilon_direction) if one.round == row.round]
        if not beside or not abs(row.accuracy - beside[0].accuracy) <= EXACT:
            yield f"{row.task}, round {row.round}: {row.accuracy} with every report drawn, not so by moments"


def structure(rows: Sequence[Row]) -> Iterator[str]:
    """What must hold of any run: counts, and that honest is honest."""
    for name in NAMES:
        if (found := {row.parameters for row in rows if row.task == name}) != {PARAMETERS[name]}:
            yield f"{name}: {found or 'no'} parameters, {PARAMETERS[name]} are claimed"
    for row in rows:
        if row.noise == HONEST and not row.central_epsilon <= PLAN.target[0]:
            yield f"{row.task}: the honest sigma does not meet epsilon {PLAN.target[0]}"


def header(rows: Sequence[Row], said: Sequence[str]) -> list[str]:
    """What stands above the table."""
    lines = [
        "mode moments: the sum of a cohort's reports as one Gaussian with their first two moments; exact: every report"
        " drawn; clipped: no privacy",
        f"central_epsilon is that of sigma at central_delta; the honest sigma is for ({PLAN.target[0]:g},"
        f" {PLAN.target[1]:g})",
        "local_epsilon is of one report, against the learner; most_reports is what no client exceeds but with"
        " probability 1e-6; local_epsilon_of_all is theirs together",
        "log_prior: natural log of the best chance to reconstruct a client's data before any report, a uniform prior;"
        " log_success_one, log_success_all: of its bound after one report and after most_reports",
        f"reconstructed is, of images, features to within {ALPHA:g} in direction; of words, all but {WRONG}",
        "loss is in nats",
        *said,
    ]
    if any(row.data == "unverified" for row in rows):
        lines.append("unverified: the data files are not the published ones")
    return lines


def draw(rows: Sequence[Row], study: Study) -> None:
    """Images and words by round; images by level; what is gained by cohort."""
    with study.figure(2, 2, size=(11, 8.2)) as (_, ((left, right), (by_level, by_cohort))):
        for axis, task in ((left, IMAGES), (right, WORDS)):
            _draw_rounds(axis, rows, task)
        left.set(ylabel="accuracy on held-out clothes", ylim=(0, 0.82))
        left.set_title("Images: digits' network refitted to clothes, d = 10,250", fontsize=10)
        right.set(ylabel="perplexity on held-out chapters (lower is better)", ylim=(31.8, 40.5))
        right.set_title("Words: New Testament's model refitted to the Old, d = 8,192", fontsize=10)
        for task, colour in ((IMAGES, "tab:blue"), (NARROW, "tab:orange")):
            shown = levels(PARAMETERS[task])
            for noise, line in ((HONEST, "o-"), (REDUCED, "o:")):
                y = [of(rows, task, noise, epsilon)[-1].accuracy for epsilon in shown]
                by_level.plot(shown, y, line, ms=4, color=colour, label=f"d = {PARAMETERS[task]:,}, {noise} σ")
            plain = of(rows, task, NOT_PRIVATE, math.inf)[-1].accuracy
            by_level.axhline(plain, ls="--", lw=0.9, color=colour)
            by_level.axvline(shown[-1], lw=0.7, color=colour, alpha=0.5)
        by_level.set(xscale="log", xlabel="ε₁ (vertical: d/8; dashed: not private)", ylabel="accuracy at the end")
        by_level.set_title("Images: all features, and 128 public axes of them", fontsize=10)
        for task, colour in ((IMAGES, "tab:blue"), (NARROW, "tab:orange"), (WORDS, "tab:green")):
            x = cohorts(rows, task)
            for noise, line in ((HONEST, "o-"), (REDUCED, "o:")):
                y = [share(rows, of(rows, task, noise, SWEPT, cohort=cohort)) for cohort in x]
                by_cohort.plot(x, y, line, ms=4, color=colour, label=f"{task}, {noise} σ")
        by_cohort.axhline(0, color="k", lw=0.8)
        by_cohort.axhline(1, color="k", lw=0.8, ls="--")
        by_cohort.set(xscale="log", xlabel="expected cohort", ylabel="share of the gain without privacy")
        by_cohort.set_title(f"Which cohort the honest σ takes, ε₁ = {SWEPT:g}", fontsize=10)
        for axis in (left, right, by_level, by_cohort):
            axis.grid(alpha=0.25)
            axis.legend(fontsize=7.5, ncols=2 if axis is right else 1)


def _draw_rounds(axis: Any, rows: Sequence[Row], task: str) -> None:
    def line(found: Sequence[Row], style: str, **more: Any) -> None:
        y = [math.exp(row.loss) if task == WORDS else row.accuracy for row in found]
        axis.plot([row.round for row in found], y, style, ms=3, **more)

    line(of(rows, task, NOT_PRIVATE, math.inf), "k--", label="not private (clipped)")
    names = [f"{epsilon:g}" for epsilon in LEVELS] + [f"d/{EIGHTH}"]
    shown = list(zip(levels(PARAMETERS[task]), names, strict=True))
    for (epsilon, name), colour in zip(shown, ("#fdae61", "#f46d43", "#c51b3a", "#67001f"), strict=True):
        line(of(rows, task, HONEST, epsilon), "o-", color=colour, label=f"honest σ, ε₁ = {name}")
    for (epsilon, name), colour in zip(shown, ("#9ecae1", "#6baed6", "#3182bd", "#08306b"), strict=True):
        line(of(rows, task, REDUCED, epsilon), "-", lw=1, color=colour, label=f"reduced σ, ε₁ = {name}")
    line(of(rows, task, HONEST, MIDDLE, mode="exact"), "x", color="k", label=f"every report drawn, ε₁ = {MIDDLE:g}")
    axis.set(xlabel="round (0: not refitted)")


def main() -> int:
    """Runs all curves, writes the table and the figure, says what held."""
    study = Study.from_command_line(__file__, __doc__, quick=QUICK, folders=FOLDERS)
    one_thread()
    rows: list[Row] = []
    said: list[str] = []
    for tasks, line in (words(quick=study.quick), images(study.folders["data-dir"], quick=study.quick)):
        said.append(line)
        for make in tasks.values():
            rows += play(study, make())
    rows.sort(key=lambda row: NAMES.index(row.task))
    study.write_table((asdict(row) for row in rows), header=header(rows, said))
    if study.quick:
        return study.verdict(structure(rows), held="counts and guarantees are right")
    draw(rows, study)
    return study.verdict(failures(rows), held=f"all claims hold in {len(rows)} rows")


if __name__ == "__main__":
    sys.exit(main())
