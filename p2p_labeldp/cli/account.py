"""``account``: what a mechanism promises, exactly. One command for each mechanism."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p2p_labeldp.cli import account_central, account_federated, reconstruction
from p2p_labeldp.cli.answers import answer, check_colluders, check_flip, check_size, delta_of, refusing
from p2p_labeldp.cli.answers import state as _state
from p2p_labeldp.errors import ConfigurationError

if TYPE_CHECKING:
    from p2p_labeldp.accounting.guarantee import Guarantee

HELP = """Say what a mechanism promises.

Example:

\b
    p2p-labeldp account resampling --cluster-size 100 --flip 0.1
"""

RESAMPLING_HELP = """Epsilon and delta of one cluster whose members swap flipped labels, and what each party learns.

Epsilon is the learner's. Delta is 1/s^2 unless given. The view of a coalition, of one mate unless --colluders says how
many, is stated at the given delta, or else where it means something: 1/s^2 above the chance that a mate was asked for
the label. Unasked it is left out where it is not accounted for, or would take long: above 20,000 members, or 100 if
there are more than two classes.

Examples:

\b
    p2p-labeldp account resampling --cluster-size 100 --flip 0.1
    p2p-labeldp account resampling --cluster-size 100 --flip 0.1 --epsilon 0.5 --epsilon 1 --json
    p2p-labeldp account resampling --cluster-size 100 --flip 0.1 --rounds 10 --fresh
"""

PRIVUNIT2_HELP = """A private direction, for the Euclidean norm.

Example:

\b
    p2p-labeldp account privunit2 --dimension 1000 --epsilon 10
"""

PRIVUNIT_INF_HELP = """A private point of the cube, for the maximum norm.

Example:

\b
    p2p-labeldp account privunit-inf --dimension 1000 --epsilon 10
"""

SCALAR_HELP = """A private magnitude whose error is the same for all magnitudes.

Example:

\b
    p2p-labeldp account scalar --epsilon 4 --max-radius 1
"""

SCALAR_REL_HELP = """A private magnitude whose error is relative to it.

Example:

\b
    p2p-labeldp account scalar-rel --epsilon 4 --max-radius 1
"""

LARGE_CLUSTER = 20_000
LARGE_CLUSTER_OF_CLASSES = 100
"""Members, times rounds, up to which a coalition's view takes a few seconds."""
MAX_REPORTS = 10**8
MAX_SIZE_OF_CLASSES, MAX_REPORTS_OF_CLASSES = 20_000, 200_000

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Dimension = Annotated[int, typer.Option("--dimension", metavar="D", help="Of the update.")]
Level = Annotated[float, typer.Option("--epsilon", metavar="E", help="Level of local privacy, 1e-6 to 1e5.")]
Radius = Annotated[
    float | None, typer.Option("--radius", metavar="R", help="Magnitude the variance is for. Default: the largest.")
]
MaxRadius = Annotated[float, typer.Option("--max-radius", metavar="R", help="What is larger is clipped to it.")]

app = typer.Typer(name="account", help=HELP, rich_markup_mode=None, add_completion=False)
app.command("uniform-rr", help=account_central.UNIFORM_RR_HELP)(account_central.uniform_rr)
app.command("cluster-rr", help=account_central.CLUSTER_RR_HELP)(account_central.cluster_rr)
app.command("dp-sgd", help=account_central.DP_SGD_HELP)(account_central.dp_sgd)
app.command("federated", help=account_federated.HELP)(account_federated.command)


@app.command("resampling", help=RESAMPLING_HELP)
def resampling(
    cluster_size: Annotated[int, typer.Option(metavar="S", help="Members able to answer.")],
    flip: Annotated[float, typer.Option(metavar="F", help="Flip probability, 0 to (K - 1)/K.")],
    delta: Annotated[float | None, typer.Option(metavar="D", help="0 <= D < 1. Default: 1/s^2.")] = None,
    exchange: Annotated[str, typer.Option(metavar="resample|permute", help="Who reports which label.")] = "resample",
    reports: Annotated[int | None, typer.Option(metavar="R", help="Reports of a round. Default: s.")] = None,
    rounds: Annotated[int, typer.Option(metavar="N", help="Rounds; of one set of flips unless --fresh.")] = 1,
    fresh: Annotated[bool, typer.Option("--fresh", help="Flip anew in each round.")] = False,
    colluders: Annotated[int | None, typer.Option(metavar="T", help="Mates in the coalition. Default: 1.")] = None,
    classes: Annotated[int, typer.Option(metavar="K", help="Labels there are.")] = 2,
    epsilons: Annotated[
        list[float] | None, typer.Option("--epsilon", metavar="E", help="Also say delta here; may be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """See ``RESAMPLING_HELP``."""
    asked = {
        "cluster_size": cluster_size,
        "flip_probability": flip,
        "exchange": exchange,
        "reports": reports,
        "rounds": rounds,
        "fresh": fresh,
        "num_classes": classes,
    }
    with refusing():
        record = _resampling_record(asked, delta, colluders, epsilons or [])
    if as_json:
        answer(record, as_json=True)
        return
    from p2p_labeldp.reports import answers

    answer(record, *answers.accounted(record), as_json=False)


def _resampling_record(
    asked: dict[str, Any], delta: float | None, colluders: int | None, epsilons: list[float]
) -> dict[str, Any]:
    from p2p_labeldp.accounting.ranges import check_epsilon
    from p2p_labeldp.accounting.views import views

    size = check_size(asked["cluster_size"])
    points = [check_epsilon(epsilon) for epsilon in epsilons]
    at = delta_of(size, delta)
    check_flip(asked["flip_probability"])
    _check_affordable(asked)
    if colluders is None:
        colluders = _unasked_colluders(asked)
    else:
        check_colluders(colluders, size)
    stated = views(**asked, delta=delta, colluders=(colluders,))
    learner, everyone = stated[0], stated[-2]
    worst_ones, direction = _worst(asked, at, learner)
    return {
        "delta": at,
        "epsilon": learner.epsilon,
        "local_epsilon": everyone.epsilon,
        "worst_ones": worst_ones,
        "direction": direction,
        "profile": [{"epsilon": point, "delta": found} for point, found in _profile(asked, points)],
        "views": [asdict(guarantee) for guarantee in stated],
    }


def _check_affordable(asked: dict[str, Any]) -> None:
    """Refuses what would take more time or memory than anyone has."""
    from p2p_labeldp.accounting.ranges import check_count

    size = asked["cluster_size"]
    check_count(asked["rounds"], "rounds")
    many = asked["num_classes"] > 2
    if many and size > MAX_SIZE_OF_CLASSES:
        raise ConfigurationError(
            f"{size} given; 1 to {MAX_SIZE_OF_CLASSES} are possible with more than 2 classes", field="cluster_size"
        )
    most = MAX_REPORTS_OF_CLASSES if many else MAX_REPORTS
    if _reports(asked) > most:
        raise ConfigurationError(f"{_reports(asked)} given in all rounds; up to {most} are possible", field="reports")


def _unasked_colluders(asked: dict[str, Any]) -> int:
    """One, where its view is accounted for and takes a few seconds at most."""
    size, rounds = asked["cluster_size"], asked["rounds"]
    if asked["reports"] not in (None, size) or (asked["fresh"] and rounds > 1):
        return 0
    large = LARGE_CLUSTER if asked["num_classes"] == 2 else LARGE_CLUSTER_OF_CLASSES
    return 1 if size > 1 and size * rounds <= large else 0


def _worst(asked: dict[str, Any], delta: float, learner: Guarantee) -> tuple[int | None, str | None]:
    """Where the learner's epsilon is attained; nowhere that is known, if it is a bound or composed."""
    from p2p_labeldp.accounting import resampling, shuffle

    if not learner.method.startswith("exact") or asked["num_classes"] > 2:
        return None, None
    cluster = {name: asked[name] for name in ("cluster_size", "flip_probability")}
    if asked["exchange"] == "permute":
        loss = shuffle.loss(**cluster, delta=delta)
    else:
        loss = resampling.loss(**cluster, delta=delta, reports=_reports(asked))
    return loss.worst_ones, loss.direction


def _profile(asked: dict[str, Any], epsilons: list[float]) -> list[tuple[float, float]]:
    """(epsilon, delta) against the learner."""
    if not epsilons:
        return []
    from p2p_labeldp.accounting import multiclass, resampling, shuffle
    from p2p_labeldp.errors import UnsupportedComposition

    if asked["fresh"] and asked["rounds"] > 1:
        raise UnsupportedComposition("fresh rounds are accounted at a delta; leave --epsilon out")
    permuted = asked["exchange"] == "permute"
    cluster = {name: asked[name] for name in ("cluster_size", "flip_probability")}
    if asked["num_classes"] > 2:
        if permuted:
            members = multiclass.Classes(**cluster, num_classes=asked["num_classes"])
            pair = multiclass.shuffled(members)
            return [(point, min(pair.delta(point), members.local_delta(point))) for point in epsilons]
        members = multiclass.Classes(**cluster, num_classes=asked["num_classes"], reports=_reports(asked))
        return [(point, multiclass.delta(members, point)) for point in epsilons]
    if permuted:
        losses = shuffle.profile(**cluster, epsilons=epsilons)
    else:
        losses = resampling.profile(**cluster, epsilons=epsilons, reports=_reports(asked))
    return [(loss.epsilon, loss.delta) for loss in losses]


def _reports(asked: dict[str, Any]) -> int:
    """Of one set of flips: memoised rounds are one long round."""
    each: int = asked["cluster_size"] if asked["reports"] is None else asked["reports"]
    return each if asked["fresh"] else each * int(asked["rounds"])


@app.command("privunit2", help=PRIVUNIT2_HELP)
def privunit2(
    dimension: Dimension,
    epsilon: Level,
    calibration: Annotated[
        str, typer.Option(metavar="exact|theorem1", help="By the exact level, or by the paper's conditions.")
    ] = "exact",
    as_json: Json = False,
) -> None:
    """See ``PRIVUNIT2_HELP``."""
    from p2p_labeldp.mechanisms.privunit import PrivUnit2

    with refusing():
        mechanism = PrivUnit2.calibrated(
            dimension=dimension,
            epsilon=epsilon,
            calibration=calibration,  # type: ignore[arg-type]  # any text: `calibrated` refuses what is none
        )
        _state(mechanism.summary(), as_json)


@app.command("privunit-inf", help=PRIVUNIT_INF_HELP)
def privunit_inf(dimension: Dimension, epsilon: Level, as_json: Json = False) -> None:
    """See ``PRIVUNIT_INF_HELP``."""
    from p2p_labeldp.mechanisms.privunit_infinity import PrivUnitInfinity

    with refusing():
        _state(PrivUnitInfinity.calibrated(dimension=dimension, epsilon=epsilon).summary(), as_json)


@app.command("scalar", help=SCALAR_HELP)
def scalar(
    epsilon: Level,
    max_radius: MaxRadius = 1.0,
    levels: Annotated[
        int | None, typer.Option(metavar="N", help="End points besides 0. Default: the best number.")
    ] = None,
    radius: Radius = None,
    as_json: Json = False,
) -> None:
    """See ``SCALAR_HELP``."""
    from p2p_labeldp.mechanisms.scalar import ScalarDP

    with refusing():
        mechanism = ScalarDP.calibrated(epsilon=epsilon, max_radius=max_radius, levels=levels)
        _state(mechanism.summary(radius), as_json)


@app.command("scalar-rel", help=SCALAR_REL_HELP)
def scalar_rel(epsilon: Level, max_radius: MaxRadius = 1.0, radius: Radius = None, as_json: Json = False) -> None:
    """See ``SCALAR_REL_HELP``."""
    from p2p_labeldp.mechanisms.scalar import ScalarRelDP

    with refusing():
        _state(ScalarRelDP.calibrated(epsilon=epsilon, max_radius=max_radius).summary(radius), as_json)


app.command("reconstruction", help=reconstruction.HELP)(reconstruction.command)
