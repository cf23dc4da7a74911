"""``account reconstruction``: what is promised against an attacker, and, if asked, what one of them achieves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p2p_labeldp.cli.answers import answer, refusing
from p2p_labeldp.errors import ConfigurationError

if TYPE_CHECKING:
    from p2p_labeldp.accounting.reconstruction import ReconstructionBound

HELP = """How well anyone can reconstruct what was released, who hardly knew it before.

The prior, the best chance without any release, is that of a uniform direction (--dimension, --alpha), of a uniform
subset of a dictionary (--size, --members, --wrong), or given as its logarithm (--log-prior). In place of --epsilon,
--success asks for the largest level that keeps a breach that rare.

--attack plays an attacker against a mechanism at that level and counts: truths are drawn from the prior, a subset as a
vector of signs. Beside the share that succeeded stand its chance by the attacker's own posterior, where it is known,
and a lower bound. The verdict is fail if even that, at confidence 1 - 1e-9, is above what is promised. The exit status
is 0 either way.

Examples:

\b
    p2p-labeldp account reconstruction --dimension 500 --alpha 1 --epsilon 50
    p2p-labeldp account reconstruction --size 100000 --members 20 --wrong 5 --success 0.001
    p2p-labeldp account reconstruction --dimension 10 --alpha 0.8 --epsilon 8 --attack privunit2 --json
    p2p-labeldp account reconstruction --size 8 --members 3 --wrong 1 --epsilon 2 --attack privunit-inf
"""

MECHANISMS = "privunit2|privunit-g|privunit-inf"
MAX_WORK = 5 * 10**8
"""Numbers drawn, or sets weighed, in one attack: less than a minute."""


def command(
    epsilon: Annotated[float | None, typer.Option(metavar="E", help="Level of one release.")] = None,
    success: Annotated[float | None, typer.Option(metavar="P", help="Accepted chance of a breach.")] = None,
    participations: Annotated[int, typer.Option(metavar="T", help="Releases of one peer.")] = 1,
    dimension: Annotated[int | None, typer.Option(metavar="D", help="Of a uniform direction.")] = None,
    alpha: Annotated[float | None, typer.Option(metavar="A", help="Distance that counts as a breach.")] = None,
    off_sphere: Annotated[
        bool, typer.Option("--off-sphere", help="The estimate may be any vector, not only of length 1.")
    ] = False,
    size: Annotated[int | None, typer.Option(metavar="N", help="Words in the dictionary.")] = None,
    members: Annotated[int | None, typer.Option(metavar="M", help="Words in the subset.")] = None,
    wrong: Annotated[int | None, typer.Option(metavar="H", help="Wrong words that still are a breach.")] = None,
    log_prior: Annotated[float | None, typer.Option(metavar="L", help="log of the chance before.")] = None,
    attack: Annotated[str | None, typer.Option(metavar=MECHANISMS, help="Also attack this mechanism.")] = None,
    trials: Annotated[int, typer.Option(metavar="N", help="Truths the attacker guesses.")] = 10_000,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the attack's coins: 0 to 2^64 - 1.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """See ``HELP``."""
    if (epsilon is None) == (success is None):
        raise ConfigurationError("one of --epsilon and --success is needed")
    sphere = {"--dimension": dimension, "--alpha": alpha}
    dictionary = {"--size": size, "--members": members, "--wrong": wrong}
    if sum((_whole(sphere), _whole(dictionary), log_prior is not None)) != 1:
        raise ConfigurationError(
            "one prior is needed: --dimension, --alpha; or --size, --members, --wrong; or --log-prior"
        )
    if off_sphere and dimension is None:
        raise ConfigurationError("given; --dimension and --alpha are needed with it", field="--off-sphere")
    prior = {name.removeprefix("--"): value for name, value in (sphere | dictionary).items() if value is not None}
    with refusing():
        if log_prior is None:
            log_prior = _log_prior(prior, off_sphere)
        bound = _bound(log_prior, epsilon, success, participations)
        record: dict[str, Any] = bound.summary()
        if attack is not None:
            record["attack"] = _attacked(attack, prior, bound, trials, seed)
    if as_json:
        answer(record, as_json=True)
        return
    from p2p_labeldp.reports import answers

    answer(record, *answers.reconstructed(record), as_json=False)


def _log_prior(prior: dict[str, Any], off_sphere: bool) -> float:
    from p2p_labeldp.accounting.reconstruction import log_dictionary_prior, log_sphere_prior

    if "alpha" in prior:
        return log_sphere_prior(**prior, on_sphere=not off_sphere)
    return log_dictionary_prior(**prior)


def _bound(log_prior: float, epsilon: float | None, success: float | None, participations: int) -> ReconstructionBound:
    from p2p_labeldp.accounting.reconstruction import ReconstructionBound, largest_epsilon

    if epsilon is None:
        assert success is not None
        epsilon = largest_epsilon(log_prior=log_prior, success=success, participations=participations)
    return ReconstructionBound(log_prior=log_prior, epsilon=epsilon, participations=participations)


def _attacked(name: str, prior: dict[str, Any], bound: ReconstructionBound, trials: int, seed: int) -> dict[str, Any]:
    """What ``attack`` says in the record."""
    from p2p_labeldp.auditing.conformance import SIGNIFICANCE, Verdict
    from p2p_labeldp.auditing.lower_bound import CONFIDENCE
    from p2p_labeldp.auditing.reconstruction import MAX_SETS, attack_dictionary, attack_direction
    from p2p_labeldp.mechanisms.privunit import PrivUnit2
    from p2p_labeldp.mechanisms.privunit_gaussian import PrivUnitG
    from p2p_labeldp.mechanisms.privunit_infinity import PrivUnitInfinity
    from p2p_labeldp.randomness import Stream, check_seed, numpy_generator

    kinds: dict[str, Any] = {"privunit2": PrivUnit2, "privunit-g": PrivUnitG, "privunit-inf": PrivUnitInfinity}
    if name not in kinds:
        raise ConfigurationError(f"{name!r} given; {', '.join(kinds)} are possible", field="attack")
    if not prior:
        raise ConfigurationError(
            f"{name} given; a prior that truths can be drawn from is needed with it", field="attack"
        )
    words: int = prior["dimension"] if "alpha" in prior else prior["size"]
    sets = 1 if "alpha" in prior else min(MAX_SETS, math.comb(words, prior["members"]))
    most = MAX_WORK // (max(words, sets) * max(1, bound.participations))
    if trials > most:
        possible = f"1 to {most} are possible" if most else "fewer dimensions or participations are possible"
        raise ConfigurationError(f"{trials} given; {possible} here", field="trials")
    mechanism = kinds[name].calibrated(dimension=words, epsilon=bound.epsilon)
    coins: dict[str, Any] = {
        "trials": trials,
        "participations": bound.participations,
        "rng": numpy_generator(check_seed(seed), Stream.ATTACK),
    }
    if "alpha" in prior:
        found = attack_direction(mechanism, alpha=prior["alpha"], **coins)
    else:
        found = attack_dictionary(mechanism, members=prior["members"], wrong=prior["wrong"], **coins)
    above = found.success_lower(1.0 - SIGNIFICANCE) > bound.success
    return {
        "mechanism": name,
        "trials": found.trials,
        "breaches": found.breaches,
        "success": found.success,
        "posterior": found.posterior,
        "standard_error": found.standard_error,
        "success_lower": found.success_lower(),
        "confidence": CONFIDENCE,
        "seed": seed,
        "verdict": (Verdict.FAIL if above else Verdict.PASS).value,
    }


def _whole(options: dict[str, Any]) -> bool:
    """Whether these were given; all or none."""
    missing = [name for name, value in options.items() if value is None]
    if 0 < len(missing) < len(options):
        given = next(name for name in options if name not in missing)
        raise ConfigurationError(f"missing; {given} needs it", field=missing[0])
    return not missing
