"""The one exception tree.

LabelDPError
  ConfigurationError         impossible parameters; raised before anything runs
  PrivacyError               going on would void the guarantee; never retried
    BudgetExhausted            a ledger has nothing left to spend
    LabelAlreadyReleased       one label, one release
    ClusterTooSmall            fewer members than the guarantee needs
    UnsupportedComposition     no accountant knows the combination: an error, never a guess
  ProtocolError
    LocalProtocolError         our own caller broke the contract of a state machine
    RemoteProtocolError        the other side did
      MalformedMessage           bytes that are no message, or too many of them
      AuthenticationFailed       one text on the wire, the detail in the log
      ReplayedMessage            a nonce seen before within its validity
      RosterMismatch             the digest of another roster
  TransportError             may be retried
    PeerUnreachable
    DeadlineExceeded
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager


class LabelDPError(Exception):
    """Root of all errors raised on purpose by this package."""


class ConfigurationError(LabelDPError):
    """An impossible parameter. The text is one line: the field, what was given, what is allowed.

    Args:
        message: What is wrong and what would be right.
        field: Dotted name of the configuration key or parameter, when there is one.
    """

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.field = field


@contextmanager
def naming(words: Mapping[str, str]) -> Iterator[None]:
    """Has complaints name what was given, the option of a command, say, where the code below knows a parameter or key.

    Args:
        words: What to say, by the complaint's field; a complaint about another field stays as it is.

    Raises:
        ConfigurationError: The complaint.
    """
    try:
        yield
    except ConfigurationError as exc:
        word = words.get(exc.field or "")
        if word is None:
            raise
        raise ConfigurationError(str(exc).removeprefix(f"{exc.field}: "), field=word) from exc


class PrivacyError(LabelDPError):
    """Going on would void the guarantee."""


class BudgetExhausted(PrivacyError):
    """A ledger has nothing left to spend."""


class LabelAlreadyReleased(PrivacyError):
    """The label has left its peer once; it does not leave again."""


class ClusterTooSmall(PrivacyError):
    """The cluster has fewer members than the guarantee or the policy needs."""


class UnsupportedComposition(PrivacyError):
    """No accountant here knows this combination of releases."""


class ProtocolError(LabelDPError):
    """A rule of the protocol was broken."""


class LocalProtocolError(ProtocolError):
    """Our own caller asked a state machine for an illegal transition. The state is unchanged."""


class RemoteProtocolError(ProtocolError):
    """The other side broke a rule."""


class MalformedMessage(RemoteProtocolError):
    """Bytes that decode to no message of the protocol, or more bytes than a message may have."""


class AuthenticationFailed(RemoteProtocolError):
    """A signature, key or recipient that does not verify.

    Args:
        detail: For the log only. What goes on the wire is always ``str(error)``, the same for every cause.
    """

    def __init__(self, detail: str = "") -> None:
        super().__init__("authentication failed")
        self.detail = detail


class ReplayedMessage(RemoteProtocolError):
    """A nonce seen before within its validity."""


class RosterMismatch(RemoteProtocolError):
    """A message of another roster than the one accepted."""


class TransportError(LabelDPError):
    """Bytes did not arrive; trying again may help."""


class PeerUnreachable(TransportError):
    """No connection, or a connection that ended before an answer."""


class DeadlineExceeded(TransportError):
    """No answer in time."""
