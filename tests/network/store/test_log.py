"""The log of a round comes back as it was written, and what must not outlive the round is erased from the file."""

import pytest

from network.store.stored import ME, A, B, joined
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.facts import Outcome, Ready
from p2p_labeldp.protocol.kept import (
    AcceptedFrom,
    AnsweredWith,
    AskedFor,
    Checkpoint,
    Cleared,
    Closed,
    CommittedTo,
    EndedIn,
    GatheredThese,
    Heard,
    HeldBox,
    OpenedWith,
    ReportedAs,
    Rostered,
    RunClosed,
    RunOpened,
    SignedRoster,
)

ROUND = [
    joined(),
    GatheredThese(peer=ME, at=2.0, cluster=0, records=1, signers=(A,)),
    CommittedTo(peer=ME, at=3.0, cluster=0, size=1, roster=b"roster", records=(b"record",)),
    AskedFor(peer=ME, at=4.0, mate="m", mate_id=B),
    AnsweredWith(peer=ME, at=4.5, asker="a", asker_id=A, ask_id=b"i" * 16, box=b"box-given"),
    HeldBox(peer=ME, at=5.0, box=b"box-held"),
    Ready(peer=ME, at=6.0, holding=True),
    Cleared(peer=ME, at=7.0, report_at=7.5),
    ReportedAs(peer=ME, at=7.5, sealed=b"report-sent"),
]
ENDED = EndedIn(peer=ME, at=8.0, outcome=Outcome.REPORTED, round_id=A, receipt=b"receipt")


def test_the_log_comes_back_as_it_was_written_and_in_order(open_store):
    one = open_store()
    for fact in ROUND:
        one(fact)
    one.close()
    assert open_store().facts() == ROUND


def test_at_the_end_of_a_round_all_but_outcome_and_receipt_is_erased_from_the_file_itself(open_store, tmp_path):
    one = open_store()
    for fact in ROUND:
        one(fact)

    def content():
        return b"".join(file.read_bytes() for file in sorted(tmp_path.iterdir()))

    secrets = (b"box-given", b"box-held", b"report-sent")
    assert all(secret in content() for secret in secrets)  # the control: they were there
    one(ENDED)
    assert one.facts() == [ROUND[0], ENDED]
    assert not any(secret in content() for secret in secrets)


def test_a_new_round_takes_the_place_of_the_last(open_store):
    one = open_store()
    for fact in (*ROUND, ENDED, joined(B)):
        one(fact)
    assert one.facts() == [joined(B)]


def test_another_address_in_the_same_round_is_the_same_round(open_store):
    one = open_store()
    moved = joined(host="elsewhere", sequence=8)
    for fact in (*ROUND, moved):
        one(fact)
    assert one.facts() == [*ROUND, moved]


def test_the_end_of_a_round_that_a_peer_never_joined_is_not_kept(open_store):
    one = open_store()
    one(EndedIn(peer=ME, outcome=Outcome.REFUSED, round_id=B))
    one(joined())
    one(EndedIn(peer=ME, outcome=Outcome.REFUSED, round_id=B))
    assert one.facts() == [joined()]


def test_a_learners_round_key_is_erased_with_its_round_and_its_reports_are_kept(open_store, tmp_path):
    one = open_store()
    secret = b"the secret of the round's key..."
    accepted = AcceptedFrom(
        peer="p", cluster=0, label=1, reporter=A, ordinal=0, features=(0.5,), report=B, receipt=b"receipt"
    )
    rostered = Rostered(peer="learner", rosters=(SignedRoster(0, b"roster", (0, 0), ()),))
    one(OpenedWith(peer="learner", manifest=b"manifest", round_secret=secret))
    one(Heard(peer="learner", addresses=((A, "h", 1),)))
    one(rostered)
    one(accepted)
    assert secret in b"".join(file.read_bytes() for file in sorted(tmp_path.iterdir()))
    closed = Closed(peer="learner", at=9.0, manifest=b"manifest")
    one(closed)
    assert one.facts() == [rostered, accepted, closed]
    assert secret not in b"".join(file.read_bytes() for file in sorted(tmp_path.iterdir()))
    one.forget()
    assert one.facts() == []


def test_a_learner_keeps_the_last_checkpoint_and_forgets_the_runs_key_with_the_run(open_store):
    one = open_store()
    one(OpenedWith(peer="learner", manifest=b"of a round before", round_secret=bytes(32)))
    one(RunOpened(peer="learner", manifest=b"manifest", run_secret=b"\7" * 32))
    for number in range(4):
        one(Checkpoint(peer="learner", opening=bytes([number]), cohorts=(1,) * number, participations={"0": number}))
    assert one.facts() == [
        RunOpened(peer="learner", manifest=b"manifest", run_secret=b"\7" * 32),
        Checkpoint(peer="learner", opening=b"\3", cohorts=(1, 1, 1), participations={"0": 3}),
    ]
    one(RunClosed(peer="learner", manifest=b"manifest"))
    assert [type(fact) for fact in one.facts()] == [Checkpoint, RunClosed]
    one.close()
    assert b"\7" * 32 not in one.path.read_bytes()


def test_a_log_that_can_not_be_read_is_an_error_not_an_empty_log(open_store):
    one = open_store()
    one._db.execute("INSERT INTO log (kind, fact) VALUES ('JoinedAs', x'00')")
    with pytest.raises(ConfigurationError, match=r"--state: .*can't be read"):
        one.facts()
