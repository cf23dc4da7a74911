"""What ``refit_pretrained.py`` refits, and on whom: the tasks of images and of words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import refit_images
import refit_words
from last_layer import LastLayer
from network_rounds import SEED, Data, Plan
from p2p_labeldp.accounting.reconstruction import log_dictionary_prior, log_sphere_prior
from p2p_labeldp.learning.networks import MNIST

IMAGES, NARROW, UNTRAINED = "images", "images, 128 axes", "images, untrained network"
WORDS, FROM_ZEROS = "words", "words, from zeros"
NAMES = (IMAGES, NARROW, UNTRAINED, WORDS, FROM_ZEROS)
PARAMETERS = {IMAGES: 10_250, NARROW: 1_290, UNTRAINED: 10_250, WORDS: 8_192, FROM_ZEROS: 8_192}
DIGITS_STEPS, PUBLIC = 200, 10_000
ALPHA, WRONG = 0.5, 4
"""What counts as reconstructed: features within ALPHA; all but WRONG of a client's words."""
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
