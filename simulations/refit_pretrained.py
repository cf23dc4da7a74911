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
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Literal

from frame import Study
from kept_curves import once
from last_layer import LastLayer
from network_rounds import HONEST, NOT_PRIVATE, REDUCED, Curve, Plan, one_thread, played
from network_study import FOLDERS
from p2p_labeldp.accounting.federated import PeerLedger, most_participations
from refit_picture import draw
from refit_table import MIDDLE, SWEPT, Row, cohorts, header, levels, of, share
from refit_tasks import FROM_ZEROS, IMAGES, NAMES, NARROW, PARAMETERS, PLAN, UNTRAINED, WORDS, Task, images, words

BESIDE = ((NOT_PRIVATE, math.inf), (HONEST, MIDDLE), (HONEST, SWEPT))
"""Curves of what is not pretrained."""
SHARES = (1000, 100, 10)
"""Smaller cohorts: the expected one divided by these."""
EXACT_ROUNDS = 12
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
    for divisor in SHARES:
        yield from ((replace(plan, cohort=plan.cohort / divisor), curve(noise, SWEPT)) for noise in (HONEST, REDUCED))


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
