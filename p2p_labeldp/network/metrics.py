"""What a party counts for its operator, in Prometheus' text format. Nothing here names a peer.

Nor does anything tell how often this peer was asked: in-degree is nobody's business, so ``Answered`` is not counted and
neither is what its server received or sent. Its own requests are: one ask, some gossip, a report.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from p2p_labeldp.facts import Accepted, Answered, Ended, Fact, Rejected, Traffic
from p2p_labeldp.network.transport import Traffic as Sent

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_UNCOUNTED = (Answered, Ended, Rejected, Accepted, Traffic)  # the first told to nobody, the others counted elsewhere


class Metrics:
    """The numbers of one process. Call it with each fact that may leave the party."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()

        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"p2p_labeldp_{name}", text, labels, registry=self._registry)

        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"p2p_labeldp_{name}", text, registry=self._registry)

        self._steps = counter("steps", "Steps of the round that were taken.", "step")
        self._ended = counter("rounds_ended", "Rounds that ended, by outcome and reason.", "outcome", "reason")
        self._rejected = counter("messages_rejected", "Signed messages that the round refused.")
        self._accepted = counter("reports_accepted", "Reports that the learner accepted.")
        self._records = gauge("directory_records", "Peer records known, the own one included.")
        self._requests = gauge("requests_sent", "Requests sent, and what they were answered.")
        self._bytes = gauge("request_bytes_sent", "Bytes of the bodies of requests sent.")

    def __call__(self, fact: Fact) -> None:
        """Counts a fact."""
        match fact:
            case Ended():
                self._ended.labels(fact.outcome.value, fact.reason.value if fact.reason else "").inc()
            case Rejected():
                self._rejected.inc()
            case Accepted():
                self._accepted.inc()
            case _ if not isinstance(fact, _UNCOUNTED):
                self._steps.labels(type(fact).__name__.lower()).inc()

    def page(self, *, records: int, sent: Sent) -> bytes:
        """All numbers, as Prometheus reads them.

        Args:
            records: Peer records known now.
            sent: What the process' client has sent.
        """
        self._records.set(records)
        self._requests.set(sent.messages_sent)
        self._bytes.set(sent.bytes_sent)
        return generate_latest(self._registry)
