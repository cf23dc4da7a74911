"""What the tests of states on disk put into them: a release, the start of a round, a private update."""

from p2p_labeldp.facts import Flipped
from p2p_labeldp.protocol.kept import ContributedAs, JoinedAs

ME, OTHER = "11" * 32, "22" * 32
A, B = bytes(32), b"\1" * 32


def release(*, roster=A, round_id=A, flip=0.1, value=1, label_id="label", at=20.0):
    return Flipped(
        peer=ME,
        at=at,
        label_id=label_id,
        flip_probability=flip,
        flipped_label=value,
        round_id=round_id.hex(),
        roster=roster.hex(),
        label_space="ab",
    )


def joined(round_id=A, **changes):
    values = {"round_id": round_id, "label_id": "label", "host": "h", "port": 1, "sequence": 7, "over_by": 9.5}
    return JoinedAs(peer=ME, at=1.0, cluster=0, **{**values, **changes})


def contributed(number=0, *, run=A, round_id=A, box=b"box", epsilon=6.0):
    return ContributedAs(
        peer=ME, at=1.0, round=number, run_id=run, round_id=round_id, data_id="data", epsilon=epsilon, box=box
    )
