"""Peers of a run of private rounds on real sockets: they only ask, so none of them listens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.crypto.signatures import ClockSkew
from p2p_labeldp.errors import ConfigurationError, LabelDPError, ProtocolError
from p2p_labeldp.facts import Ended, Exchanged, Fact, Listening, Outcome, Reason, Rejected, Traffic
from p2p_labeldp.network.federated.study import ContributorSpec
from p2p_labeldp.network.host import Host, Sink, fetch_manifest
from p2p_labeldp.network.http import HttpClient
from p2p_labeldp.network.peer_process import PATIENCE_SECONDS, Scout
from p2p_labeldp.protocol.federation import open_federation

NOWHERE = "not-listening", 1
"""What a peer that serves nobody says of where it can be reached."""


async def run_contributors(
    specs: Sequence[ContributorSpec], sink: Sink, *, stopped: asyncio.Event, patience: float = PATIENCE_SECONDS
) -> None:
    """Runs the peers of one process until each has its outcome.

    Args:
        specs: What each is told.
        sink: Is told what happens; not of single messages, which would be many.
        stopped: Ends them early.
        patience: Seconds to wait for the learner to open its run.
    """

    def tell(fact: Fact) -> None:
        if not isinstance(fact, Exchanged):
            sink(fact)

    scout = Scout()
    async with HttpClient() as client:
        working = asyncio.gather(*(_run(spec, client, tell, scout, patience) for spec in specs))
        stop = asyncio.ensure_future(stopped.wait())
        await asyncio.wait((working, stop), return_when=asyncio.FIRST_COMPLETED)
        for task in (working, stop):
            task.cancel()
        sent = client.traffic
        sink(Traffic(peer=specs[0].ordinal, messages=sent.messages_sent, bytes=sent.bytes_sent))


async def _run(spec: ContributorSpec, client: HttpClient, sink: Sink, scout: Scout, patience: float) -> None:
    keys = Keys(spec.coins().identity())
    learner, name = spec.learner.address(), spec.ordinal
    host = Host(key=keys.signing_key, client=client, sink=sink)
    sink(Listening(peer=name))
    try:
        asking = fetch_manifest(client, keys.signing_key, learner, host=NOWHERE[0], port=NOWHERE[1], patience=patience)
        async with scout:
            reply = await asking
        opened = open_federation(reply.manifest, keys=keys, learner=learner.peer_id)
        host.start(spec.contributor(opened, keys=keys), elapsed=reply.elapsed)
        await host.finished()
    except ClockSkew:
        sink(Ended(peer=name, outcome=Outcome.FAILED, reason=Reason.CLOCK_SKEW))
    except (ProtocolError, ConfigurationError) as exc:  # no manifest, or of a model that isn't known here
        sink(Rejected(peer=name, about=f"policy: manifest: {getattr(exc, 'detail', '') or exc}"))
        sink(Ended(peer=name, outcome=Outcome.REFUSED, reason=Reason.POLICY))
    except LabelDPError as exc:
        sink(Rejected(peer=name, about=str(exc)))
        sink(Ended(peer=name, outcome=Outcome.UNREACHABLE))
    finally:
        await host.close()
