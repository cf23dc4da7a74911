"""TLS under the peer protocol: with it both ends agree, without it nothing is readable and nobody is believed."""

import asyncio
import contextlib
import datetime
import ipaddress
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from free_ports import free_ports

from p2p_labeldp import facts, randomness
from p2p_labeldp.cli.app import main
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.errors import ConfigurationError, PeerUnreachable
from p2p_labeldp.network import tls, virtual
from p2p_labeldp.network.http import HttpClient, HttpServer
from p2p_labeldp.network.learner_process import serve
from p2p_labeldp.network.party import of_study
from p2p_labeldp.network.peer_process import run_peers
from p2p_labeldp.network.study import Where, draw_secrets, peer_specs
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.protocol.manifest import Deadlines

SERVER, CLIENT = (Keys(randomness.replay(0, i).identity()) for i in range(2))
HOST = "127.0.0.1"


def certified(directory, *, name="host", host=HOST):
    """A self-signed certificate for an address, and its key, as files."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a peer")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = directory / f"{name}.pem", directory / f"{name}.key"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    return tuple(map(str, files))


def loaded(directory, **options):
    certificate, key = certified(directory, **options)
    return tls.load(certificate=certificate, key=key, authority=certificate)


async def answer(server_tls, client_tls):
    """What a client gets from a server that echoes."""
    server = HttpServer(SERVER.signing_key, lambda _sender, body: body)
    port = await server.start(HOST, 0, tls=None if server_tls is None else server_tls.server)
    try:
        async with HttpClient(tls=None if client_tls is None else client_tls.client) as client:
            to = Address(SERVER.peer_id, HOST, port)
            return await client.post(CLIENT.signing_key, to, b"hello", timeout=60.0)
    finally:
        await server.close()


async def test_both_ends_talk_by_tls(tmp_path):
    both = loaded(tmp_path)
    assert await answer(both, both) == b"hello"


@pytest.mark.processes
async def test_a_round_by_tls_is_the_virtual_engines(tmp_path, study_of):
    both = loaded(tmp_path)
    phases = {"deadlines": Deadlines(join=3.0, exchange=6.0, closing=9.0, report=10.0), "gossip_period": 0.3}
    study = study_of(seed=1, sizes=(4,), **phases)
    heard, listens = [], asyncio.get_running_loop().create_future()
    places = [(HOST, port) for port in free_ports(len(study))]

    async def terms():
        return study.terms

    learner = serve(
        terms,
        keys=SERVER,
        host=HOST,
        port=0,
        sink=heard.append,
        announce=listens.set_result,
        stopped=asyncio.Event(),
        tls=both,
    )
    serving = asyncio.ensure_future(learner)
    at = await listens
    rings = [Keys(randomness.replay(1, i).identity()) for i in range(len(study))]
    specs = peer_specs(
        study,
        secrets=draw_secrets(study),
        ids=[ring.peer_id for ring in rings],
        places=places,
        learner=Where(at.peer_id, at.host, at.port),
    )
    await run_peers([of_study(spec, ring) for spec, ring in zip(specs, rings, strict=True)], heard.append, tls=both)
    await serving
    assert facts.transcript(heard) == facts.transcript(virtual.play(study).facts)


async def test_what_travels_is_not_readable(tmp_path):
    """And is, without TLS: a relay in the middle sees the path and the message then."""
    for one, readable in ((None, True), (loaded(tmp_path), False)):
        seen = bytearray()
        server = HttpServer(SERVER.signing_key, lambda _sender, body: body)
        port = await server.start(HOST, 0, tls=None if one is None else one.server)

        through = asyncio.Event()

        async def relay(reader, writer, port=port, seen=seen, through=through):
            far_reader, far_writer = await asyncio.open_connection(HOST, port)

            async def pump(source, sink):
                with contextlib.suppress(ConnectionError):
                    while data := await source.read(65536):
                        seen.extend(data)
                        sink.write(data)
                sink.close()

            await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))
            for sink in (writer, far_writer):
                with contextlib.suppress(ConnectionError):
                    await sink.wait_closed()
            through.set()

        middle = await asyncio.start_server(relay, HOST, 0)
        async with HttpClient(tls=None if one is None else one.client) as client:
            to = Address(SERVER.peer_id, HOST, middle.sockets[0].getsockname()[1])
            assert await client.post(CLIENT.signing_key, to, b"a message", timeout=60.0) == b"a message"
        await asyncio.wait_for(through.wait(), 60)
        middle.close()
        await server.close()
        assert (b"a message" in seen and b"/p2p/" in seen) is readable


@pytest.mark.parametrize("case", ["server without", "client without", "another authority", "another host"])
async def test_who_is_not_certified_counts_as_unreachable(tmp_path, case):
    good = loaded(tmp_path)
    server, client = {
        "server without": (None, good),
        "client without": (good, None),
        "another authority": (good, loaded(tmp_path, name="other")),
        "another host": (loaded(tmp_path, name="elsewhere", host="127.0.0.2"),) * 2,
    }[case]
    with pytest.raises(PeerUnreachable):
        await answer(server, client)


def test_older_versions_are_not_spoken(tmp_path):
    both = loaded(tmp_path)
    assert both.server.minimum_version is both.client.minimum_version is ssl.TLSVersion.TLSv1_3
    assert both.client.check_hostname


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"certificate": "nowhere"}, "--tls-certificate"),
        ({"key": "nowhere"}, "--tls-key"),
        ({"authority": "nowhere"}, "--tls-authority"),
        ({"key": "other"}, "--tls-certificate"),
        ({"authority": "no pem"}, "--tls-authority"),
    ],
)
def test_files_that_are_no_good_are_refused(tmp_path, change, field):
    certificate, key = certified(tmp_path)
    (tmp_path / "no.pem").write_text("none")
    other = certified(tmp_path, name="other")[1]
    paths = {"nowhere": str(tmp_path / "nowhere"), "other": other, "no pem": str(tmp_path / "no.pem")}
    files = {"certificate": certificate, "key": key, "authority": certificate}
    files |= {name: paths[value] for name, value in change.items()}
    with pytest.raises(ConfigurationError) as error:
        tls.load(**files)
    assert error.value.field == field


def test_half_of_the_flags_are_refused(tmp_path, capsys):
    certificate, _ = certified(tmp_path)
    assert main(["learner", "by-hand", "--listen", "127.0.0.1:1", "--tls-certificate", certificate]) == 2
    assert "go together" in capsys.readouterr().err


def test_an_address_to_listen_on_that_is_none_is_refused(capsys):
    assert main(["learner", "by-hand", "--listen", "127.0.0.1:1", "--bind", "Every Where"]) == 2
    assert "--bind: host 'Every Where' given" in capsys.readouterr().err
