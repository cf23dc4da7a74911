"""Messages to bytes and back. Bytes are counted before they are parsed."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from p2p_labeldp.errors import MalformedMessage
from p2p_labeldp.protocol.messages import MAX_MESSAGE_BYTES, AnyMessage, Message

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[AnyMessage] = msgspec.msgpack.Decoder(AnyMessage)

T = TypeVar("T")


def encode(message: Message) -> bytes:
    """The MessagePack form of a message."""
    return _encoder.encode(message)


def decode(data: bytes) -> AnyMessage:
    """The message in ``data``.

    Raises:
        MalformedMessage: More than 1 MiB, or no message of the protocol.
    """
    if len(data) > MAX_MESSAGE_BYTES:
        raise MalformedMessage(f"a message has at most {MAX_MESSAGE_BYTES} bytes, not {len(data)}")
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise MalformedMessage("no message of this protocol") from exc


def decode_payload(payload: bytes, decoder: msgspec.msgpack.Decoder[T]) -> T:
    """The content of a verified envelope, whose size its verifier has bounded.

    Raises:
        MalformedMessage: Not what the envelope's kind promises.
    """
    try:
        return decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise MalformedMessage("a signed record that does not decode") from exc
