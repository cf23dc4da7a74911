"""Whatever bytes come in, a decoder gives a value or its one kind of refusal, in memory that the input bounds.

Every place that turns untrusted bytes into values stands in ``DECODERS``, and a test below finds those that don't.
"""

import importlib
import json
import pkgutil
import re
import tomllib
import tracemalloc
import typing
from pathlib import Path

import msgspec
import pytest
from altering import damaged
from hypothesis import given, settings
from hypothesis import strategies as st

import p2p_labeldp
from contracts.decoders import DECODERS, FACT, MESSAGES, Case, read_config
from p2p_labeldp import facts, protocol
from p2p_labeldp.clustering import Clustering
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.protocol import effects, kept, wire
from p2p_labeldp.protocol import messages as m


@pytest.fixture(scope="module", autouse=True)
def _directory(tmp_path_factory):
    read_config.directory = tmp_path_factory.mktemp("decoders")


PARTS = (m.Place, m.Contact)  # inside Digest and Offer
NOT_READ = (m.Message,)  # a base
KEPT = {one for one in vars(kept).values() if isinstance(one, type) and one.__module__ == kept.__name__}  # on disk
EFFECTS = {effects.Address, *typing.get_args(effects.Effect)}  # from a machine to its host, in memory

READ_ELSEWHERE = {
    "owndata/reading.py": "a table of the user's; tests/owndata",
    "cli/deploy.py": "examples in files of the user's; tests/deployment/test_deploy.py",
    "deployment/shard.py": "the operator's own peers; tests/cli/test_shard.py",
    "network/study_party.py": "a study's own specs; tests/network/test_hosts.py",
    "reports/kept_run.py": "a run's own directory; tests/cli/test_report.py",
    "cli/peer.py": "an example in a file of the user's; tests/cli/test_peer.py",
    "network/federated/learner.py": "the launcher's order, from a pipe of its own",
    "network/federated/zygote.py": "the launcher's specs, from a pipe of its own",
    "network/learner_process.py": "the launcher's terms, from a pipe of its own",
    "network/zygote.py": "the launcher's specs, from a pipe of its own",
    "network/store.py": "the peer's own state; tests/network/store/",
    "protocol/kept.py": "the party's own log; tests/network/store/",
    "reports/views.py": "a run's own directory; tests/cli/test_view.py",
    "statement/kept_files.py": "a run's own directory; tests/statement/test_verifying.py",
    "statement/making.py": "nothing: it writes a number one way",
    "results.py": "a result in a file of the user's; tests/test_results.py",
}
TESTED_HERE = {
    "config/reading.py",
    "facts.py",
    "measuring/row.py",
    "network/conducting.py",
    "protocol/admission.py",
    "protocol/closing.py",
    "protocol/directory.py",
    "protocol/federation.py",
    "protocol/manifest.py",
    "protocol/report.py",
    "protocol/roster.py",
    "protocol/wire.py",
    "statement/content.py",
    "statement/signed.py",
}
READS = re.compile(
    r"\b(msgpack|json)\.(Decoder|decode)\(|msgspec\.convert\(|\bjson\.loads?\(|tomllib\.loads?\(|np\.load|pickle\.|csv\.reader"
)


# -- nothing is forgotten -------------------------------------------------------------------------------------------


def struct_types():
    found = set()
    for module in pkgutil.iter_modules(protocol.__path__, f"{protocol.__name__}."):
        members = vars(importlib.import_module(module.name)).values()
        found |= {one for one in members if isinstance(one, type) and issubclass(one, msgspec.Struct)}
    return {one for one in found if one.__module__.startswith(protocol.__name__)} - KEPT - EFFECTS


def test_every_type_that_travels_has_a_decoder_tested_here():
    covered = {kind for case in DECODERS.values() for kind in case.covers} | set(PARTS) | set(NOT_READ)
    assert struct_types() == covered
    assert set(typing.get_args(m.AnyMessage)) <= covered


def test_every_module_that_decodes_is_known_here():
    root = Path(p2p_labeldp.__file__).parent
    found = {str(path.relative_to(root)) for path in root.rglob("*.py") if READS.search(path.read_text())}
    assert found == TESTED_HERE | set(READ_ELSEWHERE)


# -- what comes in --------------------------------------------------------------------------------------------------

ODD = [
    None,
    True,
    -1,
    0,
    2**63,
    2**64 - 1,
    -(2**63),
    1.5,
    float("nan"),
    float("inf"),
    "",
    "x" * 300,
    b"",
    b"\0" * 40,
    [],
    {},
]
ODD += [[[]], {"": []}, {1: 2}, ["a", 1, None], [1e308] * 5]


def leaves(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from leaves(inner, (*path, key))


def with_other(value, path, other):
    if not path:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = with_other(copy[path[0]], path[1:], other)
    return copy


def swapped(data, form, draw):
    """One value inside becomes another type, or goes, or comes twice."""
    if form == "bytes":
        return data
    loads, dumps = (
        (json.loads, lambda v: json.dumps(v, default=repr).encode())
        if form == "json"
        else (
            msgspec.msgpack.decode,
            msgspec.msgpack.encode,
        )
    )
    tree = loads(data)
    path = draw(st.sampled_from(sorted(leaves(tree), key=repr)))
    if path and draw(st.booleans()):
        parent = tree
        for key in path[:-1]:
            parent = parent[key]
        rest = (
            {k: v for k, v in parent.items() if k != path[-1]}
            if isinstance(parent, dict)
            else parent[: path[-1]] + parent[path[-1] :] * 2
        )
        return dumps(with_other(tree, path[:-1], rest))
    return dumps(with_other(tree, path, draw(st.sampled_from(ODD))))


@st.composite
def wrong(draw, case):
    """The valid bytes, or those of another value, with something wrong; now and then unhurt."""
    return draw(damaged(swapped(case.valid, case.form, draw) if draw(st.booleans()) else case.valid))


HEADS = [b"\xdd", b"\xdf", b"\xc6", b"\xdb", b"\xc9"]  # array, map, bytes, text, extension of four bytes' length
BOMBS = [head + b"\xff\xff\xff\xff" + b"\x01" * 10 for head in HEADS]
BOMBS += [b"\x93" + bomb for bomb in BOMBS]
BOMBS += [b"\x91" * 200_000, b"\x81\xa1a" * 100_000, b"[" * 200_000, b'{"a":' * 180_000, b"a = " + b"[" * 100_000]


def comes_to(case, data):
    """A value, or the decoder's refusal; any other exception fails the test."""
    try:
        return case.decode(data)
    except case.refusal as exc:
        return exc


def drop(case, inputs):
    for data in inputs:
        comes_to(case, data)


@pytest.mark.parametrize("name", DECODERS)
def test_valid_bytes_decode(name):
    assert not isinstance(comes_to(DECODERS[name], DECODERS[name].valid), Exception)


@pytest.mark.parametrize("name", DECODERS)
@settings(max_examples=60)
@given(data=st.binary(max_size=300))
def test_any_bytes_are_a_value_or_a_refusal(name, data):
    comes_to(DECODERS[name], data)


@pytest.mark.parametrize("name", DECODERS)
@settings(max_examples=120)
@given(data=st.data())
def test_damaged_bytes_are_a_value_or_a_refusal(name, data):
    case = DECODERS[name]
    comes_to(case, data.draw(wrong(case)))


@pytest.mark.parametrize("name", DECODERS)
def test_lengths_that_lie_and_endless_nesting_are_refused_in_bounded_memory(name):
    case = DECODERS[name]
    comes_to(case, case.valid)  # what is imported or cached at the first call does not count
    for bomb in BOMBS:
        tracemalloc.start()
        try:
            assert isinstance(comes_to(case, bomb), case.refusal)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 4 << 20, (len(bomb), bomb[:8], peak)


def test_a_decoder_that_lets_another_exception_out_is_found():
    """The control: the same inputs against decoders without their boundary."""
    bare = {
        "message": Case(msgspec.msgpack.Decoder(m.AnyMessage).decode, wire.encode(MESSAGES[0])),
        "fact": Case(msgspec.json.Decoder(facts.AnyFact).decode, facts.encode(FACT), ConfigurationError, form="json"),
        "configuration": Case(lambda data: tomllib.loads(data.decode()), b"a = 1", ConfigurationError),
        "clustering": Case(lambda data: Clustering(**msgspec.msgpack.decode(data)), b"\x80", ConfigurationError),
    }
    for case in bare.values():
        with pytest.raises((ValueError, TypeError, RecursionError)):
            drop(case, BOMBS)
