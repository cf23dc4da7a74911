"""Who knows whom at the start: a connected graph of first contacts. The only importer of networkx.

A peer is told its neighbours as ``id@host:port`` and finds the rest of its cluster by gossip, so the graph carries no
labels and its randomness protects nothing; it decides how many hops news takes and who carries how much.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

from p2p_labeldp import randomness
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.randomness import Stream

if TYPE_CHECKING:
    import networkx

KINDS = ("random_regular", "ring", "small_world", "star", "seeds", "file")
_REWIRED = 0.1  # share of small-world edges that are rewired: short paths, still many triangles (Watts, Strogatz 1998)
_SEEDS = 16  # as many as somebody would keep running
_ATTEMPTS = 100  # draws of a random graph until one is connected; from degree 3 the first one nearly always is


def neighbours(kind: str, size: int, *, degree: int, seed: int, path: str | None = None) -> list[list[int]]:
    """The graph as a list: whom each ordinal 0 .. size - 1 knows, in increasing order.

    - ``random_regular``: uniform among the connected graphs in which each peer knows ``degree`` others.
    - ``ring``: each knows the two beside it.
    - ``small_world``: a ring lattice of ``degree`` neighbours, a tenth of its edges rewired, connected.
    - ``star``: all know ordinal 0, and it knows all.
    - ``seeds``: as a deployment is set up. A few peers are seeds, evenly spread over the ordinals: each peer is told
      ``degree`` of them, drawn uniformly, and nobody is told of anybody else. Mates meet at seeds, so that among many
      clusters a peer finds its own after fewer questions than in another graph.
    - ``file``: an edge list, two ordinals a line; blank lines and what follows ``#`` don't count.

    Knowing is mutual, but that seeds are not told who knows them. ``degree`` is read by the random kinds only. It is
    cut to ``size - 1`` (everybody knows everybody), so that a default made for many peers serves three. Where no graph
    has it exactly (an odd degree with an odd number of peers; any odd degree in a small world, whose lattice has as
    many neighbours on either side) it is lowered by one, from 1 raised to 2.

    Args:
        kind: One of ``KINDS``.
        size: Number of peers, at least 2.
        degree: First contacts of a peer, at least 1.
        seed: Of the study; the graph is ordinal 0 of the TOPOLOGY stream.
        path: The edge list of ``file``, relative to the working directory.

    Raises:
        ConfigurationError: An unknown kind, a size or degree out of range, a graph that is not connected, or a file
            that can't be read as one.
    """
    if kind not in KINDS:
        raise ConfigurationError(f"{kind!r} given; one of {', '.join(KINDS)} is allowed", field="topology.kind")
    if size < 2:
        raise ConfigurationError(f"{size} given; at least 2 are needed to know each other", field="data.peers")
    if degree < 1:
        raise ConfigurationError(f"{degree} given; 1 to {size - 1} are possible here", field="topology.degree")
    import networkx as nx

    # A generator object, so that a second attempt goes on where the first one stopped.
    source = random.Random(randomness.generator_seed(seed, Stream.TOPOLOGY))  # noqa: S311  replayable on purpose
    if kind == "seeds":
        return _seeds(size, degree, source)
    if kind == "ring":
        graph = nx.cycle_graph(size)
    elif kind == "star":
        graph = nx.star_graph(size - 1)
    elif kind == "file":
        graph = _read(path, size)
    else:
        even = kind == "small_world" or size % 2 == 1
        graph = _random(kind, size, _possible(degree, size, even=even), source)
    return [sorted(graph[ordinal]) for ordinal in range(size)]


def _possible(degree: int, size: int, *, even: bool) -> int:
    if degree >= size - 1:
        return size - 1
    return degree if not even or degree % 2 == 0 else max(2, degree - 1)


def _random(kind: str, size: int, degree: int, source: random.Random) -> networkx.Graph:
    import networkx as nx

    if degree == size - 1:
        return nx.complete_graph(size)
    if degree < 2:
        raise ConfigurationError(
            f"{degree} given for {size} peers, whose graph can't be connected; 2 to {size - 1} are possible here",
            field="topology.degree",
        )
    if kind == "small_world":
        try:
            return nx.connected_watts_strogatz_graph(size, degree, _REWIRED, tries=_ATTEMPTS, seed=source)
        except nx.NetworkXError as exc:
            raise _disconnected(degree, size) from exc
    for _ in range(_ATTEMPTS):
        if 2 * degree < size:
            graph = nx.random_regular_graph(degree, size, seed=source)
        else:  # the complement of a sparse one: pairing stubs of a dense graph nearly always ends in a dead end
            graph = nx.complement(nx.random_regular_graph(size - 1 - degree, size, seed=source))
        if nx.is_connected(graph):
            return graph
    raise _disconnected(degree, size)


def _disconnected(degree: int, size: int) -> ConfigurationError:
    return ConfigurationError(
        f"{degree} given for {size} peers; {_ATTEMPTS} graphs drawn, none connected; 3 to {size - 1} give one",
        field="topology.degree",
    )


def _seeds(size: int, degree: int, source: random.Random) -> list[list[int]]:
    """Seeds know as many others in a ring of them as they are told, so that none is an island; the rest draw theirs."""
    count = min(size, max(_SEEDS, degree + 1))
    told = min(degree, count - 1)
    seeds = [step * size // count for step in range(count)]  # processes that hold a range of peers each carry a share
    graph = [sorted(source.sample(seeds, told)) for _ in range(size)]
    for step, seed in enumerate(seeds):
        graph[seed] = sorted(seeds[(step + 1 + i) % count] for i in range(told))
    return graph


def _read(path: str | None, size: int) -> networkx.Graph:
    import networkx as nx

    if path is None:
        raise ConfigurationError("missing; kind 'file' needs an edge list", field="topology.path")
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else "no UTF-8 text"
        raise ConfigurationError(f"{path!r} can't be read: {reason}", field="topology.path") from exc
    graph = nx.empty_graph(size)
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        ends = [int(word) for word in words if word.isascii() and word.isdigit() and len(word) < 19]
        if not len(ends) == len(words) == 2 or max(ends) >= size or ends[0] == ends[1]:
            raise ConfigurationError(
                f"line {number} of {path!r} is {line[:40]!r}; two different ordinals 0 to {size - 1} are needed",
                field="topology.path",
            )
        graph.add_edge(*ends)
    if not nx.is_connected(graph):
        stranded = min(set(graph) - nx.node_connected_component(graph, 0))
        raise ConfigurationError(
            f"the graph of {path!r} is not connected: peer {stranded} can't reach peer 0; every peer must",
            field="topology.path",
        )
    return graph
