"""TLS under the peer protocol, for those who want what is signed and sealed anyway to be unreadable on the way as well.

It hides from an observer what the messages say: who is of which cluster, who asks whom is still told by the addresses.
Identities stay what they are, the peers' keys: a certificate only says that a host is the one that was called, and the
authority that signs it is one of the round's own, not of the system. Everybody of a round uses TLS, or nobody.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from p2p_labeldp.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """What both ends need.

    Args:
        server: Shows this party's certificate.
        client: Trusts the round's authority alone, and compares the host's name or address.
    """

    server: ssl.SSLContext
    client: ssl.SSLContext


def load(*, certificate: str, key: str, authority: str) -> Tls:
    """Both ends from PEM files.

    Args:
        certificate: This party's, for the host that it is reached at, with what lies between it and the authority.
        key: The certificate's private key, without a password.
        authority: Certificates that all others' have to be signed by; a self-signed one signs itself.

    Raises:
        ConfigurationError: A file can't be read, or does not hold that.
    """
    for file, field in ((certificate, "--tls-certificate"), (key, "--tls-key"), (authority, "--tls-authority")):
        try:
            Path(file).open("rb").close()
        except OSError as exc:
            raise ConfigurationError(f"{file!r} can't be read: {exc.strerror}", field=field) from exc
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for context in (server, client):
        context.minimum_version = ssl.TLSVersion.TLSv1_3  # both ends are ours
    try:
        server.load_cert_chain(certificate, key, password=_no_password)
    except (ssl.SSLError, ValueError) as exc:
        raise ConfigurationError(
            f"{certificate!r} and {key!r} are no certificate and its private key in PEM", field="--tls-certificate"
        ) from exc
    try:
        client.load_verify_locations(cafile=authority)
    except ssl.SSLError as exc:
        raise ConfigurationError(f"{authority!r} holds no certificate in PEM", field="--tls-authority") from exc
    return Tls(server=server, client=client)


def _no_password() -> str:
    """Without it OpenSSL asks the terminal."""
    raise ValueError("the key has a password")
