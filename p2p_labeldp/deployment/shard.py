"""What a container of peers is given: a file of secrets, as JSON."""

from __future__ import annotations

from pathlib import Path

import msgspec

from p2p_labeldp.errors import ConfigurationError


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What each peer of a shard accepts, as in the options of ``peer``."""

    max_epsilon: float | None = None
    max_local_epsilon: float | None = None
    colluders: int | None = None
    max_colluder_epsilon: float | None = None
    minimum_size: int = 3


class Content(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An example, as in the file that ``peer`` reads."""

    features: list[float]
    label: str


class Member(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A peer of a shard. ``key`` is the secret itself, hex."""

    key: str
    port: int
    example: Content
    contacts: list[str] = []
    label_id: str = "label"


class Shard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a container of peers is given."""

    learner: str
    classes: list[str]
    host: str
    peers: list[Member]
    limits: Limits = Limits()


def read(file: str) -> Shard:
    """The shard in a file.

    Raises:
        ConfigurationError: No such file, or no shard. The text never quotes what the file holds.
    """
    try:
        shard = msgspec.json.decode(Path(file).read_bytes(), type=Shard)
    except OSError as exc:
        raise ConfigurationError(f"{file!r} can't be read: {exc.strerror}", field="FILE") from exc
    except msgspec.DecodeError:
        raise ConfigurationError(f"{file!r} is no shard; `p2p-labeldp deploy` writes them", field="FILE") from None
    if not shard.peers:
        raise ConfigurationError(f"{file!r} lists no peers; 1 or more are needed", field="FILE")
    return shard
