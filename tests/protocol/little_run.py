"""A run of a few peers, small enough to think through: real keys, three parameters, virtual time."""

import random

import msgspec
import numpy as np

from p2p_labeldp import randomness
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.network.virtual import Killed, VirtualNetwork
from p2p_labeldp.protocol import federation, kept
from p2p_labeldp.protocol.averaging import Averager
from p2p_labeldp.protocol.effects import Address, Observed, Persist
from p2p_labeldp.protocol.federation import FederationManifest
from p2p_labeldp.protocol.messages import Contribute
from p2p_labeldp.protocol.rounds import Contributor
from p2p_labeldp.protocol.update_ledger import UpdateLedger
from protocol.little_round import LEARNER, keys
from protocol.little_round import ROUND as RUN

SEED = 11
MANIFEST = FederationManifest(
    model="logistic_regression",
    classes=("a", "b"),
    shift=(0.0, 0.0),
    scale=(1.0, 1.0),
    dimension=3,
    population=4,
    sampling_rate=0.5,
    rounds=6,
    max_radius=1.0,
    epsilon_direction=4.0,
    epsilon_magnitude=2.0,
    magnitude="absolute",
    projection=50.0,
    sigma=0.25,
    learning_rate=1.0,
    local_steps=1,
    local_rate=0.1,
    round_seconds=10.0,
    poll_seconds=0.5,
    run_key=RUN.sealing_public,
    study=True,
    opened=0.0,
    nonce=bytes(16),
)


def manifest(**changes):
    return msgspec.structs.replace(MANIFEST, **changes)


def opened(of=MANIFEST):
    envelope = federation.sign_manifest(of, LEARNER)
    return envelope, federation.open_federation(envelope, keys=LEARNER, learner=LEARNER.peer_id)


def averager(of=MANIFEST, *, log=(), seed=SEED):
    envelope, run = opened(of)
    return Averager(
        envelope=envelope,
        opened=run,
        initial=np.zeros(of.dimension),
        keys=LEARNER,
        run_keys=RUN,
        randomness=randomness.replay(seed, 0),
        log=log,
    )


def pull(parameters):
    """An update that pulls the model to (1, 2, 2)/3."""
    return np.asarray(parameters) - np.array([1.0, 2.0, 2.0]) / 3


def contributor(ordinal=0, of=MANIFEST, *, compute=pull, ledger=None, coins=None, budget=None, **terms):
    return Contributor(
        opened=opened(of)[1],
        compute=compute,
        keys=keys(ordinal),
        randomness=coins or randomness.replay(SEED, ordinal),
        learner=Address(LEARNER.peer_id, "learner", 1),
        name=ordinal,
        ordinal=ordinal,
        study=True,
        ledger=UpdateLedger(budget=budget) if ledger is None else ledger,
        **terms,
    )


def opening_of(number=0, parameters=(0.0, 0.0, 0.0), of=MANIFEST):
    run = opened(of)[1]
    return federation.sign_round(number, np.array(parameters), run_id=run.run_id, keys=LEARNER)


def box_in(contribution, ordinal=0, of=MANIFEST):
    """(ordinal, update or None) in what a peer sent."""
    return federation.open_contribution(
        contribution.sealed,
        peer_id=keys(ordinal).peer_id,
        dimension=of.dimension,
        round_id=contribution.round_id,
        keys=RUN,
    )


def contribution(update, ordinal, round_id, of=MANIFEST):
    """A box that a peer could have made."""
    box = federation.seal_contribution(
        update, ordinal=ordinal, dimension=of.dimension, run_key=of.run_key, round_id=round_id, keys=keys(ordinal)
    )
    return Contribute(round_id, box)


def facts_of(effects, kind):
    return [e.fact for e in effects if isinstance(e, Observed | Persist) and isinstance(e.fact, kind)]


class Disk:
    """Keeps facts; kills its machine at the ``dies_at``-th, before or after that is on it."""

    def __init__(self, dies_at=None, *, written=True):
        self.facts, self.dies_at, self.written = [], dies_at, written

    def __call__(self, fact):
        if not isinstance(fact, kept.KINDS):
            return
        dies = self.dies_at is not None and len(self.facts) == self.dies_at
        if not dies or self.written:
            self.facts.append(kept.decode(kept.encode(fact)))
        if dies:
            self.dies_at = None
            raise Killed


def network():
    return VirtualNetwork(rng=random.Random(0))


def play(of=MANIFEST, *, peers=None, until=200.0, disk=None, averaging=averager, hurt=None):
    """A whole run. Who is killed by its disk comes back within a second, with what is on it.

    Args:
        of: The manifest.
        peers: Those of the population unless given.
        until: Virtual seconds.
        disk: The learner's.
        averaging: Makes the learner.
        hurt: A peer's ordinal and its disk.

    Returns:
        The lives of the learner, and the network.
    """
    net, where = network(), Address(LEARNER.peer_id, "learner", 1)
    disk = disk or Disk()
    lives = []

    def live():
        lives.append(averaging(of, log=disk.facts))
        net.add(lives[-1], where, store=disk)

    def join(peer):
        store = hurt[1] if hurt is not None and hurt[0] == peer.name else None
        net.add(peer, Address(keys(peer.name).peer_id, f"peer-{peer.name}", 1), store=store)

    live()
    for i, peer in enumerate([contributor(i, of) for i in range(of.population)] if peers is None else peers):
        net.at(0.01 * i, lambda peer=peer: join(peer))

    def look():
        if LEARNER.peer_id not in net._nodes:
            live()
        if hurt is not None and keys(hurt[0]).peer_id not in net._nodes:
            join(contributor(hurt[0], of, ledger=UpdateLedger(hurt[1].facts)))
        if net.now < until:
            net.at(net.now + 1.0, look)

    net.at(1.0, look)
    net.run(until=until)
    return lives, net


def nothing_finite(_parameters):
    raise ConfigurationError("an entry is NaN or infinite; finite numbers are possible", field="update")
