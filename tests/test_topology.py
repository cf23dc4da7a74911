"""Every graph of first contacts is connected, mutual and decided by its seed."""

import subprocess
import sys
import typing

import pytest

from p2p_labeldp import config, topology
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.topology import neighbours

RANDOM = ("random_regular", "small_world")


def reached(graph):
    seen, todo = {0}, [0]
    while todo:
        for other in graph[todo.pop()]:
            if other not in seen:
                seen.add(other)
                todo.append(other)
    return seen


def check(graph, size):
    assert len(graph) == size
    assert reached(graph) == set(range(size))
    for ordinal, known in enumerate(graph):
        assert known == sorted(set(known))
        assert ordinal not in known
        assert all(type(other) is int and ordinal in graph[other] for other in known)


def test_the_kinds_are_those_of_the_configuration():
    assert typing.get_args(config.TopologyKind) == topology.KINDS


@pytest.mark.parametrize("kind", ["random_regular", "ring", "small_world", "star"])
@pytest.mark.parametrize("size", [2, 3, 4, 5, 8, 101])
@pytest.mark.parametrize("degree", [2, 3, 4, 6, 7, 50, 1000])
def test_graphs_are_connected_mutual_and_without_loops(kind, size, degree):
    check(neighbours(kind, size, degree=degree, seed=1), size)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 8, 101])
@pytest.mark.parametrize("degree", [1, 2, 3, 7, 50, 1000])
def test_everybody_is_told_of_seeds_only_and_no_seed_is_an_island(size, degree):
    graph = neighbours("seeds", size, degree=degree, seed=1)
    seeds = {other for known in graph for other in known}
    assert len(graph) == size
    assert all(len(known) == len(set(known)) == min(degree, len(seeds) - 1) for known in graph)
    assert all(ordinal not in known and known == sorted(known) for ordinal, known in enumerate(graph))
    assert seeds == {i * size // len(seeds) for i in range(len(seeds))} <= reached(graph)
    assert len(seeds) == min(size, max(degree + 1, 16))


def test_which_seeds_a_peer_is_told_is_drawn():
    first, second = (neighbours("seeds", 101, degree=3, seed=seed) for seed in (1, 2))
    assert first == neighbours("seeds", 101, degree=3, seed=1)
    assert first != second
    assert len({tuple(known) for known in first}) > 50


@pytest.mark.parametrize(
    ("size", "asked", "given"),
    [
        (100, 6, 6),
        (101, 6, 6),
        (101, 7, 6),
        (100, 7, 7),
        (5, 1, 2),
        (5, 3, 2),
        (3, 6, 2),
        (8, 6, 6),
        (9, 6, 6),
        (2, 1, 1),
    ],
)
def test_a_regular_graph_has_the_degree_asked_for_or_the_documented_neighbour(size, asked, given):
    for seed in range(5):
        graph = neighbours("random_regular", size, degree=asked, seed=seed)
        assert {len(known) for known in graph} == {given}


def test_a_small_world_has_the_lattices_mean_degree():
    for asked, mean in ((6, 6), (7, 6), (2, 2), (1, 2)):
        graph = neighbours("small_world", 60, degree=asked, seed=0)
        assert sum(map(len, graph)) == mean * 60


def test_a_regular_graph_of_degree_two_is_one_ring_of_all():
    for seed in range(5):
        check(neighbours("random_regular", 30, degree=2, seed=seed), 30)


def test_ring_and_star_are_what_they_are_called():
    assert neighbours("ring", 4, degree=6, seed=0) == [[1, 3], [0, 2], [1, 3], [0, 2]]
    assert neighbours("star", 4, degree=6, seed=0) == [[1, 2, 3], [0], [0], [0]]


@pytest.mark.parametrize("kind", RANDOM)
def test_one_seed_gives_one_graph_and_another_seed_another(kind):
    a, b, c = (neighbours(kind, 40, degree=4, seed=seed) for seed in (5, 5, 6))
    assert a == b
    assert a != c


def test_a_file_is_read_with_comments_blank_lines_and_repeats(tmp_path):
    path = tmp_path / "edges"
    path.write_text("# a path\n0 1\n\n1\t2  # back\n2 1\n")
    assert neighbours("file", 3, degree=6, seed=0, path=str(path)) == [[1], [0, 2], [1]]


@pytest.mark.parametrize("line", ["0", "0 1 2", "0 3", "1 1", "a b", "-1 0", "0 ²", "0 " + "9" * 5000, "0,1"])
def test_a_line_that_is_no_edge_is_named(tmp_path, line):
    path = tmp_path / "edges"
    path.write_text(f"0 1\n1 2\n{line}\n")
    with pytest.raises(ConfigurationError, match=r"^topology\.path: line 3 of .*two different ordinals 0 to 2"):
        neighbours("file", 3, degree=6, seed=0, path=str(path))


def test_a_disconnected_file_is_refused_and_a_stranded_peer_named(tmp_path):
    path = tmp_path / "edges"
    path.write_text("0 1\n2 3\n")
    with pytest.raises(ConfigurationError, match="not connected: peer 2 can't reach peer 0"):
        neighbours("file", 4, degree=6, seed=0, path=str(path))
    path.write_text("0 1\n2 3\n1 2")
    check(neighbours("file", 4, degree=6, seed=0, path=str(path)), 4)


def test_a_file_that_can_not_be_read_is_refused(tmp_path):
    for path, text in ((None, "missing"), (str(tmp_path / "none"), "No such file"), (str(tmp_path), "Is a directory")):
        with pytest.raises(ConfigurationError, match=rf"^topology\.path: .*{text}"):
            neighbours("file", 4, degree=6, seed=0, path=path)


def test_parameters_out_of_range_are_refused():
    for kind, size, degree, line in (
        ("mesh", 4, 2, "topology.kind: 'mesh' given; one of"),
        ("ring", 1, 2, "data.peers: 1 given; at least 2"),
        ("random_regular", 4, 0, "topology.degree: 0 given; 1 to 3"),
        ("random_regular", 10, 1, "topology.degree: 1 given for 10 peers, whose graph can't be connected; 2 to 9"),
    ):
        with pytest.raises(ConfigurationError) as caught:
            neighbours(kind, size, degree=degree, seed=0)
        assert str(caught.value).startswith(line)
        assert "\n" not in str(caught.value)


def test_importing_topology_does_not_import_networkx():
    code = "import sys, p2p_labeldp.topology; sys.exit('networkx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
