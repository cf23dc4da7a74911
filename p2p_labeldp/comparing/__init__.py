"""Mechanisms side by side on one table, at one guarantee, each with whom it trusts.

- ``methods``: what is compared, whom each trusts and what it releases; settings that no label had a say in
- ``interval``: of a mean over trials that share rows
- ``trials``: plays them
- ``row``: what came of it

READS TRUE LABELS, those of every row: the accuracies are functions of them, and choosing a mechanism by them is a look
at the labels. It is for whoever holds the table and may look.
"""

from p2p_labeldp.comparing.row import READS, Compared, Comparison, plain
from p2p_labeldp.comparing.trials import TRIALS, check, compare

__all__ = ["READS", "TRIALS", "Compared", "Comparison", "check", "compare", "plain"]
