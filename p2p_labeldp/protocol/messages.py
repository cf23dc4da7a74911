"""What peers and the learner say to each other: one request, one immediate reply.

    request                     reply                    between
    GetManifest                 ManifestReply            peer -> learner
    Digest                      Offer                    peer -> peer, learner -> peer
    Push                        Done                     peer -> peer
    GetRoster                   RosterReply              peer -> learner, peer -> peer
    Contradiction               Done                     peer -> peer; also the reply to a digest
    Ask                         Answer                   peer -> peer
    Report                      Receipt                  peer -> learner
    GetRound                    RoundReply               peer -> learner, in rounds of updates
    Contribute                  Done                     peer -> learner, in rounds of updates
    anything                    Refusal                  a rule says no; `retry`: later may help

Messages travel as MessagePack arrays, inside a signed HTTP body; the sender is known from the signature and so is never
a field. Whatever outlives a connection (manifest, peer record, roster, ready record, receipt) is a signed envelope and
travels as bytes.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

DIGEST_BYTES = 32
ROOT_BYTES = 8  # of a salted hash of a whole set: nobody can look for a collision before the salt is drawn
SALTED_ID_BYTES = 3  # of a record, in one gossip exchange; two of them meet by chance in one of 2^23
ROUND_START_BYTES = 8  # of the round's id, in gossip: enough to notice a mistake; records say whole what they belong to
MAX_MESSAGE_BYTES = 1 << 20  # checked before a byte is parsed; a manifest of 100 centroids of 784 features fits
MAX_ENVELOPE_BYTES = 900_000
MAX_RECORD_BYTES = 1024  # one gossiped record; a real one has about 230
MAX_CLUSTER_SIZE = 10_000  # bounds every table of a cluster; its digest (30 kB) fits a message
MAX_OFFER_BYTES = 256 << 10  # records handed over in one reply; the rest goes in the next exchange
MAX_OFFER_RECORDS = 2048
MAX_EAGER_BYTES = 4096  # of a small set that travels whole with its digest: a push less
MAX_CONTACTS = 4  # that one reply names: few enough that a liar costs little

Hash = Annotated[bytes, Meta(min_length=DIGEST_BYTES, max_length=DIGEST_BYTES)]
RoundStart = Annotated[bytes, Meta(min_length=ROUND_START_BYTES, max_length=DIGEST_BYTES)]
SaltedIds = Annotated[bytes, Meta(max_length=SALTED_ID_BYTES * MAX_CLUSTER_SIZE)]
Salt = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]  # the widest that msgspec bounds
RecordBytes = Annotated[bytes, Meta(max_length=MAX_RECORD_BYTES)]
Records = Annotated[tuple[RecordBytes, ...], Meta(max_length=MAX_OFFER_RECORDS)]
Envelope = Annotated[bytes, Meta(max_length=MAX_ENVELOPE_BYTES)]
RosterEnvelope = Annotated[bytes, Meta(max_length=MAX_ENVELOPE_BYTES // 2)]  # 10,000 ids; two fit a message
# A name or an address as URLs have it, up to a DNS name's longest text form. What else it has to be is found out by
# whoever connects; here it is kept out of logs and tables.
Host = Annotated[str, Meta(min_length=1, max_length=253, pattern=r"\A[a-z0-9_.:-]+\Z")]
Port = Annotated[int, Meta(ge=1, le=65535)]
Seconds = Annotated[float, Meta(ge=0, le=1e9)]  # a NaN or an infinity would stop the clock of whoever believes it
Cluster = Annotated[int, Meta(ge=0, le=1_000_000)]


class Topic(IntEnum):
    """What a gossip exchange is about."""

    DIRECTORY = 0
    CLOSING = 1


class Message(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Anything that travels."""


class GetManifest(Message, frozen=True, tag="manifest?"):
    """Asks the learner for the round; says where the asker can be reached."""

    host: Host
    port: Port


class ManifestReply(Message, frozen=True, tag="manifest"):
    """The signed manifest, and the seconds since the round's opening when the reply was made."""

    manifest: Envelope
    elapsed: Seconds


class Place(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Where somebody can be reached."""

    host: Host
    port: Port


class Contact(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Whom to ask. Nothing is believed of it: whoever answers there has to prove to be this peer."""

    peer_id: Hash
    cluster: Cluster
    at: Place


class Digest(Message, frozen=True, tag="digest"):
    """Opens a push-pull exchange: the salted ids of what the sender has about ``cluster``, and a few records at once.

    ``records`` holds the whole set while it is small, ``at`` the sender's place for a stranger who may tell others.
    """

    round_id: RoundStart
    topic: Topic
    cluster: Cluster
    have: SaltedIds
    records: Records
    salt: Salt = 0
    at: Place | None = None
    root: Annotated[bytes, Meta(max_length=ROOT_BYTES)] = b""


class Offer(Message, frozen=True, tag="offer"):
    """What the sender of the digest lacks, the salted ids of what the other lacks, and whom to ask next."""

    records: Records
    wanted: SaltedIds
    contacts: Annotated[tuple[Contact, ...], Meta(max_length=MAX_CONTACTS)] = ()
    differs: bool = False
    cluster: Cluster | None = None


class Push(Message, frozen=True, tag="push"):
    """The records that an offer wanted."""

    round_id: RoundStart
    topic: Topic
    records: Records


class Done(Message, frozen=True, tag="done"):
    """Nothing more to say."""


class GetRoster(Message, frozen=True, tag="roster?"):
    """Asks the learner for the roster of a cluster."""

    round_id: Hash
    cluster: Cluster


class RosterReply(Message, frozen=True, tag="roster"):
    """The signed roster; and of peers left out of it for equivocation the records, in pairs, that prove it."""

    roster: Envelope
    proofs: Records = ()


class Contradiction(Message, frozen=True, tag="rosters"):
    """Proof that the learner signed two rosters for one cluster: both of them."""

    first: RosterEnvelope
    second: RosterEnvelope


class Ask(Message, frozen=True, tag="ask"):
    """Asks a mate for its flipped label. ``ask_id`` makes a repeat recognisable."""

    round_id: Hash
    roster: Hash
    ask_id: Annotated[bytes, Meta(min_length=16, max_length=16)]


class Answer(Message, frozen=True, tag="answer"):
    """The mate's flipped label in a box that only the learner opens."""

    box: Annotated[bytes, Meta(max_length=256)]


class Report(Message, frozen=True, tag="report"):
    """Features and the unopened box, sealed for the learner."""

    round_id: Hash
    roster: Hash
    sealed: Envelope


class Receipt(Message, frozen=True, tag="receipt"):
    """The learner's signed receipt for one report."""

    receipt: RecordBytes


class GetRound(Message, frozen=True, tag="round?"):
    """Asks the learner which round of updates is open."""

    run_id: Hash


class RoundReply(Message, frozen=True, tag="round"):
    """The signed opening of the round, with the model; or nothing, and that the asker's contribution to it is there."""

    opening: Envelope
    answered: bool


class Contribute(Message, frozen=True, tag="contribution"):
    """A peer's sealed contribution to a round: an update, or nothing, which only the learner can tell."""

    round_id: Hash
    sealed: Envelope


class Refusal(Message, frozen=True, tag="no"):
    """No, and why. ``retry``: the same request may be right later."""

    reason: Annotated[str, Meta(max_length=64)]
    retry: bool = False


AnyMessage: TypeAlias = (
    GetManifest
    | ManifestReply
    | Digest
    | Offer
    | Push
    | Done
    | GetRoster
    | RosterReply
    | Contradiction
    | Ask
    | Answer
    | Report
    | Receipt
    | GetRound
    | RoundReply
    | Contribute
    | Refusal
)
