"""The learner of a deployment: one round with peers that are somewhere else, and the model of what they report."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from p2p_labeldp import promise
from p2p_labeldp.config import Config, config_hash
from p2p_labeldp.crypto.keys import Keys
from p2p_labeldp.experiment import learning, playing, preparing
from p2p_labeldp.experiment.playing import Progress, Silence
from p2p_labeldp.experiment.running import Run, versions
from p2p_labeldp.facts import Accepted, Fact, Outcome, Traffic
from p2p_labeldp.network import loops
from p2p_labeldp.network.stopping import Stopping
from p2p_labeldp.network.store import Store
from p2p_labeldp.network.transport import format_address
from p2p_labeldp.protocol.effects import Address
from p2p_labeldp.randomness import Secret
from p2p_labeldp.results import Accuracy, Result
from p2p_labeldp.statement import Basis, Engine

if TYPE_CHECKING:
    from p2p_labeldp.network.learner_process import Proposal
    from p2p_labeldp.network.peer_process import Watcher
    from p2p_labeldp.network.tls import Tls


def learn_from_peers(
    config: Config,
    *,
    coins: Secret,
    host: str,
    port: int,
    say: Callable[[str], None],
    stopping: Stopping,
    store: Store | None = None,
    proposal: Proposal | None = None,
    operator: tuple[str, int] | None = None,
    on_fact: Callable[[Fact], None] | None = None,
    progress: Progress | None = None,
    watcher: Watcher | None = None,
    bind: str | None = None,
    tls: Tls | None = None,
) -> Run:
    """Opens one round as the learner of a deployment, waits for its end, and trains on what was reported.

    Args:
        config: Terms of the round; the clustering is fitted to the public features of its data set, whose labels only
            measure the model.
        coins: The learner's.
        host: Where to listen.
        port: Where to listen.
        say: Is told how far it is, a line at a time.
        stopping: Ends the round early.
        store: Where the learner keeps its round; a round it died in is taken up. The caller has it forget the round
            when the result is in safe hands.
        proposal: The round, if it was signed beforehand: by this learner, with these terms; its deadlines count from
            then. Otherwise one is signed that opens now.
        operator: Where to answer the operator; nowhere if not given.
        on_fact: Is told what happens, instead of ``say``.
        progress: Is told how far it is, too; of how many peers there will be, 0.
        watcher: Is told of the host.
        bind: Address to listen on, where it is not ``host``, by which peers know it.
        tls: Serves and calls by TLS, if given.

    Raises:
        ConfigurationError: Something is impossible; no round was opened.
    """
    from p2p_labeldp.network import learner_process  # takes half a second

    began, told = time.monotonic(), progress or Silence()
    prepared = preparing.prepare(config, engine="processes", seed=preparing.PUBLIC_SEED)
    terms = msgspec.structs.replace(prepared.study.terms, study=False)
    keys = Keys(coins.identity())
    opened_at: float | None = None
    taken_up = learner_process.in_a_round(store)
    if proposal is not None and not taken_up:
        opened_at = learner_process.check_proposal(proposal, terms=terms, keys=keys).opened  # before it listens
    heard: list[Fact] = []

    def hear(fact: Fact) -> None:
        heard.append(fact)
        told.happened(fact)
        if on_fact is not None:
            on_fact(fact)
        elif isinstance(fact, Accepted):
            say(f"{fact.at:6.1f} s  accepted a report for cluster {fact.cluster}")

    def announce(address: Address) -> None:
        left = terms.deadlines.join - (0.0 if opened_at is None else time.time() - opened_at)
        what = "it goes on with the round that it was in" if taken_up else f"peers can join for {left:.0f} s"
        say(f"the learner is {format_address(address)}; {what}")
        say(f"classes: {','.join(terms.classes)}")

    told.playing(peers=0, clusters=len(prepared.sizes), engine="processes", pace=prepared.pace)
    collected = loops.run(
        learner_process.serve_until_told(
            terms,
            stopping=stopping,
            keys=keys,
            host=host,
            port=port,
            sink=hear,
            announce=announce,
            store=store,
            proposal=proposal,
            operator=operator,
            watcher=watcher,
            bind=bind,
            tls=tls,
            retold=heard.append,
        ),
        parties=1,
    )
    told.learning()
    noisy = playing.noisy_of(prepared, collected)
    members = sum(roster.size for roster in collected.rosters)
    counts = {Outcome.REPORTED.value: len(noisy.labels), Outcome.UNREACHABLE.value: members - len(noisy.labels)}
    traffic = [fact for fact in heard if isinstance(fact, Traffic)]
    model = learning.fit(prepared, noisy)
    clusters = promise.of_clusters(collected.rosters, config, len(prepared.split.label_space))
    result = Result(
        peers=members,
        outcomes={name: count for name, count in counts.items() if count},
        clusters=clusters,
        views=promise.of_views(collected.rosters, clusters, config, len(prepared.split.label_space)),
        accuracy=Accuracy(
            private=None if model is None else learning.measured(prepared, model),
            non_private=None,
            majority=None,
            held_out=len(prepared.split.test_labels),
        ),
        seconds={"total": time.monotonic() - began},
        messages=sum(fact.messages for fact in traffic),
        bytes=sum(fact.bytes for fact in traffic),
        config_hash=config_hash(config),
        seed=None,
        versions=versions(),
        complete=collected.complete,
        unverified=not prepared.split.verified,
        reports=None,
    )
    basis = Basis(
        engine=Engine.DEPLOYMENT,
        num_classes=len(prepared.split.label_space),
        rosters=collected.rosters,
        evidence=collected.evidence,
        keys=keys,
    )
    # a learner that died as it told of its rosters tells of them again
    return Run(result=result, facts=list(dict.fromkeys(heard)), noisy=noisy, config=config, basis=basis)
