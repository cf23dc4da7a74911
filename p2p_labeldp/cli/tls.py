"""The flags of TLS, the same for every command that listens for peers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from p2p_labeldp.errors import ConfigurationError

if TYPE_CHECKING:
    from p2p_labeldp.network.tls import Tls

TlsCertificate: TypeAlias = Annotated[
    str | None,
    typer.Option("--tls-certificate", metavar="FILE", help="Serve and call by TLS: this host's certificate, PEM."),
]
TlsKey: TypeAlias = Annotated[
    str | None, typer.Option("--tls-key", metavar="FILE", help="The certificate's private key, PEM.")
]
TlsAuthority: TypeAlias = Annotated[
    str | None, typer.Option("--tls-authority", metavar="FILE", help="What has to sign the others' certificates, PEM.")
]
Bind: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bind",
        metavar="ADDRESS",
        help="Address to listen on, such as 0.0.0.0, where it is not --listen's HOST, by which others reach it.",
    ),
]


def tls_of(certificate: str | None, key: str | None, authority: str | None) -> Tls | None:
    """What the three flags describe; None without any.

    Raises:
        ConfigurationError: Some are given and some are not, or a file is no good.
    """
    if certificate is None and key is None and authority is None:
        return None
    if certificate is None or key is None or authority is None:
        raise ConfigurationError(
            "given in part; --tls-certificate, --tls-key and --tls-authority go together", field="--tls-certificate"
        )
    from p2p_labeldp.network import tls

    return tls.load(certificate=certificate, key=key, authority=authority)


def bind_of(address: str | None) -> str | None:
    """The flag's address, checked.

    Raises:
        ConfigurationError: It is no name or address.
    """
    if address is not None:
        from p2p_labeldp.network.transport import authority

        try:
            authority(address, 1)
        except ConfigurationError as exc:
            raise ConfigurationError(str(exc).removeprefix("address: "), field="--bind") from exc
    return address
