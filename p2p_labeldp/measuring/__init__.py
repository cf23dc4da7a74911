"""Privacy against cluster size: what is promised, what an attacker measures, what it costs in accuracy.

row        one cluster size: every number, and what it was computed with
one_size   measures it
kept       the rows in a file that an interrupted sweep goes on from
sweep      many sizes, in parallel
"""

from p2p_labeldp.measuring.kept import Kept
from p2p_labeldp.measuring.one_size import Question, measure, planned_flip
from p2p_labeldp.measuring.row import Row
from p2p_labeldp.measuring.sweep import check, sweep

__all__ = ["Row", "Question", "measure", "planned_flip", "Kept", "check", "sweep"]
