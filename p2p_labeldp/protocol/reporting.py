"""The last two phases of a peer: it learns who is ready, then reports, or abstains."""

from __future__ import annotations

from p2p_labeldp.errors import ProtocolError
from p2p_labeldp.facts import Outcome, Reason, Tallied
from p2p_labeldp.protocol import dissemination, report
from p2p_labeldp.protocol.kept import Cleared, ReportedAs
from p2p_labeldp.protocol.messages import AnyMessage, Receipt, Refusal, Report
from p2p_labeldp.protocol.participant import Participant, State

GRACE_SECONDS = 5.0  # after the report deadline: for a receipt on its way; then the round is over whatever happened


class Reporting:
    """Gives the verdict at the closing deadline, sends the report, checks the receipt.

    Args:
        peer: Whose phases these are.
    """

    def __init__(self, peer: Participant) -> None:
        self._peer = peer

    def on_closing_deadline(self, now: float) -> None:
        """Whether this peer may report; if so, it chooses when."""
        peer, exchange = self._peer, self._peer.my.exchange
        peer.clear_alarm(dissemination.ALARM)
        ready, holding = peer.my.closing.tally()
        peer.observe(Tallied(peer=peer.name, at=now, ready=ready, holding=holding))
        reason = peer.my.closing.verdict(me=peer.keys.peer_id, mate=exchange.mate, holding=exchange.holding)
        if reason is not None:
            peer.end(Outcome.ABSTAINED, peer.my.last_failure if reason is Reason.MATE_TIMEOUT else reason, now)
            return
        peer.go("may report")
        closing, window = peer.deadlines.closing, peer.deadlines.report - peer.deadlines.closing
        report_at = closing + window * peer.randomness.report_delay()
        peer.persist(Cleared(peer=peer.name, at=now, report_at=report_at))
        peer.set_alarm("report", report_at)

    def resume(self, cleared: Cleared, reported: ReportedAs | None, now: float) -> None:
        """Was cleared in an earlier life; what was sent then is sent again as it was."""
        peer, part = self._peer, self._peer.my
        peer.go("may report")
        for alarm in (dissemination.ALARM, "closing"):
            peer.clear_alarm(alarm)
        if reported is not None:
            part.report = Report(peer.opened.round_id, part.roster.digest, reported.sealed)
        peer.set_alarm("report", max(now, cleared.report_at))

    def on_report(self, now: float) -> None:
        """Sends the report, made at the first call."""
        peer, part = self._peer, self._peer.my
        if part.report is None:
            assert part.exchange.box is not None  # the verdict was: holding
            part.report = report.make(
                peer.example.features,
                part.exchange.box,
                roster=part.roster,
                keys=peer.keys,
                round_key=peer.opened.manifest.round_key,
            )
            peer.persist(ReportedAs(peer=peer.name, at=now, sealed=part.report.sealed))
        peer.send(peer.learner, part.report, self._take_receipt, now, peer.deadlines.report + GRACE_SECONDS)

    def _take_receipt(self, reply: AnyMessage | None, _reason: str, now: float) -> None:
        peer, sent = self._peer, self._peer.my.report
        if peer.state is not State.REPORTING or sent is None:
            return
        match reply:
            case Receipt():
                try:
                    report.check_receipt(reply.receipt, sent, keys=peer.keys, learner=peer.opened.learner)
                except ProtocolError as exc:
                    peer.mistrust(exc, now)
                    peer.end(Outcome.FAILED, Reason.NO_RECEIPT, now)
                else:
                    peer.end(Outcome.REPORTED, None, now, receipt=reply.receipt)
            case Refusal(reason="bad_box"):
                peer.end(Outcome.INVALID, Reason.BAD_BOX, now)
            case Refusal(retry=False):
                peer.end(Outcome.FAILED, Reason.NO_RECEIPT, now)
            case _:
                peer.again("report", now, peer.deadlines.report + GRACE_SECONDS)

    def on_end(self, now: float) -> None:
        """No receipt came."""
        self._peer.end(Outcome.FAILED, Reason.NO_RECEIPT, now)
