"""``account`` of what one place does to all labels: UniformRR, ClusterRR, DP-SGD."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from p2p_labeldp.cli.answers import refusing, state
from p2p_labeldp.errors import ConfigurationError

UNIFORM_RR_HELP = """Every label randomized alone: K-ary randomized response at a level, or of a redraw probability.

Example:

\b
    p2p-labeldp account uniform-rr --classes 10 --epsilon 1
"""

CLUSTER_RR_HELP = """Labels redrawn by a curator from noisy distributions of their clusters (Algorithm 1 of the paper).

Epsilon is that of a label, at delta = 0: 2/sigma for the noisy counts (1/sigma where there are two classes, of which
one count is noised) and ln(1 + (1 - lambda)/(lambda tau)) for the redrawn labels. In place of --epsilon, --noise-scale
and --redraw give sigma and lambda.

Examples:

\b
    p2p-labeldp account cluster-rr --classes 10 --epsilon 1 --floor 0.01
    p2p-labeldp account cluster-rr --classes 10 --floor 0.01 --noise-scale 4 --redraw 0.9 --json
"""

DP_SGD_HELP = """DP-SGD over N examples: epsilon by Poisson subsampling, or by amplification by iteration.

The noise multiplier is the deviation of the noise over the distance between gradients that --iteration hides, or over
the clip. Without --iteration, batches hold each example with probability B/N: replace is for a changed label or
example, add_or_remove what most publications state. With it, one pass over batches of B releases its last weights only:
random_order needs a secret uniform order, worst holds in any, and the quantiles say how many examples fare better; they
are no guarantee. Delta is 1/N unless given; a random order is vacuous there, so it is stated at 1/(10 N) too.

Examples:

\b
    p2p-labeldp account dp-sgd --examples 60000 --batch 600 --epochs 10 --noise 1 --json
    p2p-labeldp account dp-sgd --examples 60000 --batch 1 --noise 4 --iteration
"""

MAX_EPOCHS = 10_000
LEAST_NOISE = 0.1
"""Noise multiplier below which one step's losses fill the grid; its epsilon would be in the hundreds."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Classes = Annotated[int, typer.Option("--classes", metavar="K", help="Labels there are, 2 to 256.")]
Redraw = Annotated[
    float | None, typer.Option("--redraw", metavar="P", help="lambda, with which a label is redrawn; above 0, to 1.")
]


def uniform_rr(
    classes: Classes,
    epsilon: Annotated[float | None, typer.Option(metavar="E", help="Level, 1e-6 to 700.")] = None,
    redraw: Redraw = None,
    as_json: Json = False,
) -> None:
    """See ``UNIFORM_RR_HELP``."""
    from p2p_labeldp.mechanisms.uniform_rr import UniformRR

    with refusing(redraw_probability="--redraw"):
        if redraw is not None:
            _without("--redraw", {"--epsilon": epsilon})
            mechanism = UniformRR(num_classes=classes, redraw_probability=redraw)
        else:
            mechanism = UniformRR.calibrated(num_classes=classes, epsilon=_given("--epsilon", epsilon, "--redraw"))
        state(mechanism.summary(), as_json)


def cluster_rr(
    classes: Classes,
    floor: Annotated[float, typer.Option(metavar="T", help="tau, the least probability redrawn, to 1/K.")],
    epsilon: Annotated[float | None, typer.Option(metavar="E", help="Level, 1e-6 to 700.")] = None,
    noise_share: Annotated[
        float | None, typer.Option(metavar="P", help="Of the level, for the counts. Default: 0.5.")
    ] = None,
    noise_scale: Annotated[float | None, typer.Option(metavar="S", help="sigma, in counts.")] = None,
    redraw: Redraw = None,
    as_json: Json = False,
) -> None:
    """See ``CLUSTER_RR_HELP``."""
    from p2p_labeldp.mechanisms.cluster_rr import NOISE_SHARE, ClusterRR
    from p2p_labeldp.mechanisms.discrete_laplace import scale_up

    with refusing(
        redraw_probability="--redraw", floor="--floor", noise_scale="--noise-scale", noise_share="--noise-share"
    ):
        if noise_scale is None and redraw is None:
            mechanism = ClusterRR.calibrated(
                num_classes=classes,
                epsilon=_given("--epsilon", epsilon, "--noise-scale with --redraw"),
                floor=floor,
                noise_share=NOISE_SHARE if noise_share is None else noise_share,
            )
        else:
            _without("--noise-scale and --redraw", {"--epsilon": epsilon, "--noise-share": noise_share})
            mechanism = ClusterRR(
                num_classes=classes,
                noise_scale=scale_up(_given("--noise-scale", noise_scale, "--epsilon")),
                floor=floor,  # type: ignore[arg-type]  # `calibrated` makes any number or text a fraction
                redraw_probability=_given("--redraw", redraw, "--epsilon"),
                single_count=classes == 2,
            )
        state(mechanism.summary(), as_json)


def dp_sgd(
    examples: Annotated[int, typer.Option(metavar="N", help="Rows trained on.")],
    noise: Annotated[float, typer.Option(metavar="Z", help="Noise multiplier.")],
    batch: Annotated[int, typer.Option(metavar="B", help="Examples of a batch; in expectation where sampled.")] = 1,
    epochs: Annotated[float, typer.Option(metavar="E", help="Passes over the data; 1 with --iteration.")] = 1.0,
    delta: Annotated[float | None, typer.Option(metavar="D", help="Default: 1/N.")] = None,
    iteration: Annotated[bool, typer.Option("--iteration", help="One pass, last weights only.")] = False,
    noise_only_steps: Annotated[
        int, typer.Option(metavar="M", help="Steps of noise alone at the end, with --iteration.")
    ] = 0,
    as_json: Json = False,
) -> None:
    """See ``DP_SGD_HELP``."""
    from p2p_labeldp.accounting.ranges import check_count

    with refusing(
        examples="--examples", batch="--batch", epochs="--epochs", noise_multiplier="--noise",
        noise_only_steps="--noise-only-steps",
    ):  # fmt: skip
        check_count(examples, "examples", least=2)
        if check_count(batch, "batch") > examples:
            raise ConfigurationError(f"{batch} given; 1 to {examples} is possible", field="batch")
        at = 1 / examples if delta is None else delta
        if iteration:
            if epochs != 1:
                raise ConfigurationError(f"{epochs} given; 1 is possible with --iteration", field="epochs")
            record = _iterated(examples, batch, noise, noise_only_steps, at)
        else:
            if noise_only_steps:
                raise ConfigurationError(f"{noise_only_steps} given without --iteration", field="noise_only_steps")
            record = _subsampled(examples, batch, epochs, noise, at)
    state(record, as_json)


def _subsampled(examples: int, batch: int, epochs: float, noise: float, delta: float) -> dict[str, Any]:
    from p2p_labeldp.accounting.subsampled import SubsampledGaussian

    if not 0 < epochs <= MAX_EPOCHS:  # NaN compares false
        raise ConfigurationError(f"{epochs} given; above 0 and at most {MAX_EPOCHS} is possible", field="epochs")
    if noise < LEAST_NOISE:
        raise ConfigurationError(f"{noise} given; {LEAST_NOISE} and above is possible", field="noise_multiplier")
    training = SubsampledGaussian(
        noise_multiplier=noise,
        sampling_probability=batch / examples,
        steps=max(1, math.ceil(epochs * examples / batch)),
    )
    replace = training.pld_epsilon(delta)
    return {
        "epsilon": replace,
        "delta": delta,
        "method": "subsampled gaussian",
        "sampling_probability": training.sampling_probability,
        "steps": training.steps,
        "noise_multiplier": noise,
        "epsilon_replace_pld": replace,
        "epsilon_add_or_remove_pld": training.pld_epsilon(delta, relation="add_or_remove"),
        "epsilon_add_or_remove_rdp": training.rdp_epsilon(delta),
    }


def _iterated(examples: int, batch: int, noise: float, noise_only_steps: int, delta: float) -> dict[str, Any]:
    from p2p_labeldp.accounting.iteration import Iteration

    one = Iteration(steps=examples // batch, noise_multiplier=noise, noise_only_steps=noise_only_steps)
    tenth = 1 / (10 * examples)
    return {
        "epsilon": one.worst_epsilon(delta),
        "delta": delta,
        "method": "amplification by iteration",
        "steps": one.steps,
        "noise_multiplier": noise,
        "epsilon_worst": one.worst_epsilon(delta),
        "epsilon_random_order": one.random_order_epsilon(delta),
        "epsilon_random_order_at_tenth": one.random_order_epsilon(tenth),
        "delta_tenth": tenth,
        "quantiles": {share: one.quantile_epsilon(share, delta) for share in ("0.99", "0.9", "0.5")},
    }


def _given(option: str, value: float | None, instead: str) -> float:
    if value is None:
        raise ConfigurationError(f"missing; it or {instead} is needed", field=option)
    return value


def _without(option: str, others: dict[str, float | None]) -> None:
    for other, value in others.items():
        if value is not None:
            raise ConfigurationError(f"given together with {option}; one or the other is possible", field=other)
