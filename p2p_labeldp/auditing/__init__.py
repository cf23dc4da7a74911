"""What can be observed: lower bounds, and whether what runs has the law it claims. Never imports the accounting.

checked         ranges of numbers, refused in one line
distinguisher   the law of T, written for audits alone, and the tail events chosen from it before the data
lower_bound     Clopper-Pearson; ``LowerBound``, a type of its own so that it is never printed as a guarantee
observed        rounds as arrays; samples of T; what an engine offers an audit
transcripts     rounds from the facts of any engine
once            what must not have happened twice in a round, whoever was killed in it and came back
invariants      what must hold after every round, whatever went wrong in it
p_values        exact or bounding p-values, none by a limit theorem
coins           peers, clusters, rounds or purposes that share randomness
conformance     the checks by name, the one verdict, the one threshold
audit           one audit: bound and verdict
mechanism       anybody's mechanism, and the epsilon measured of it
reconstruction  attackers that guess what was released, and how often they succeed
contract        the suite that every mechanism should pass
"""

from p2p_labeldp.auditing.audit import Audit
from p2p_labeldp.auditing.conformance import Conformance, Verdict
from p2p_labeldp.auditing.lower_bound import LowerBound
from p2p_labeldp.auditing.mechanism import Mechanism, measured_epsilon
from p2p_labeldp.auditing.observed import OnesSample, Rounds
from p2p_labeldp.auditing.reconstruction import Attack, attack_dictionary, attack_direction
from p2p_labeldp.auditing.transcripts import rounds_of_facts

__all__ = [
    "Attack",
    "Audit",
    "Conformance",
    "LowerBound",
    "Mechanism",
    "OnesSample",
    "Rounds",
    "Verdict",
    "attack_dictionary",
    "attack_direction",
    "measured_epsilon",
    "rounds_of_facts",
]
