"""Algorithm 2 at a member of the little round."""

from p2p_labeldp import randomness
from p2p_labeldp.mechanisms import randomized_response
from p2p_labeldp.protocol.exchange import Exchange, answer_info
from protocol.little_round import OPENED, ROUND, example, keys, open_roster

ROSTER = open_roster()


def exchange(number=1, *, label=0, seed=1, opened_roster=ROSTER):
    return Exchange(
        roster=opened_roster,
        example=example(number, label),
        num_classes=2,
        keys=keys(number),
        randomness=randomness.replay(seed, number),
        round_key=ROUND.sealing_public,
    )


def ask(number, opened_roster=ROSTER):
    """What an honest member asks."""
    return exchange(number, opened_roster=opened_roster).ask()


def opened_box(box, asker, opened_roster=ROSTER):
    info = answer_info(OPENED.round_id, opened_roster.digest, keys(asker).peer_id)
    return ROUND.open(box, info=info)


def expected_flip(number, label, seed):
    flip = ROSTER.roster.flip_probability
    word = randomness.replay(seed, number).flip_word(label_id=str(number), flip_probability=flip)
    return randomized_response.flip(label, word, randomized_response.flip_threshold(flip))
