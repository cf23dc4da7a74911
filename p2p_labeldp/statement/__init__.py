"""What a run promises, stated so that somebody else can check it: ``guarantee.json``, and what it is checked against.

- ``content``: the statement, its file, its signature
- ``making``: from a run that is over to its files
- ``accountant``: every number of a statement worked out anew
- ``happened``: one pass over the facts of a run
- ``kept_files``: the directory of a run, held against its statement
- ``signed``: what the learner signed in the round (``evidence.json``), held against both; a peer's own receipt
- ``verifying``: all of that, as a list of checks

**Who signs.** Where peers talk to a learner that has a key (processes, deployments), the learner signs with that key:
the one that signed manifest, rosters and receipts, so a peer that pinned it then can pin it now. A round on the
in-memory network or on arrays has no such key (there the keys are transparent, or there are none), and whoever ran it
held every label and could state anything: its file is unsigned and says why. A key made up for it would look like more
than it is.

**What is not in it.** No digest of the table or of the reports, which would let anybody test guesses of them, and no
name of a peer: receipts stand as digests, of which each peer recognises its own and nobody a stranger's. So the file
may be shown to peers without the rest of the directory. The digest of the facts can be tested by whoever guesses every
report of the round (and, where the engine has a clock, each of its times); that is no more than the learner sees, which
its epsilon bounds.
"""

from p2p_labeldp.statement.checks import Check, Status
from p2p_labeldp.statement.content import Engine
from p2p_labeldp.statement.making import Basis, files
from p2p_labeldp.statement.verifying import Verdict, verify

__all__ = ["Basis", "Check", "Engine", "Status", "Verdict", "files", "verify"]
