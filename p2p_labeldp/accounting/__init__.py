"""What may be claimed: upper bounds on what others learn of one label. Nothing here samples, nothing here is
re-exported.

What to call:

- ``guarantee``    an (epsilon, delta) and whose eyes it holds against
- ``views``        all guarantees of a cluster, or of a planned roster: learner, learner+t, learner+all, mates
- ``planning``     the least flip of a roster whose members may fail to answer; what a peer checks
- ``targets``      the least flip for targets against learner, local and coalition; the least cluster for a flip
- ``resampling``   the paper's Algorithm 2 against the learner alone, exact; memoised rounds are more reports
- ``shuffle``      the same flips permuted, exact, and published bounds
- ``coalition``    the learner with mates that follow the protocol
- ``multiclass``   K classes, a certified bound
- ``composition``  fresh rounds, and other mechanisms, through dp-accounting
- ``subsampled``   DP-SGD on Poisson batches, through dp-accounting (which nothing but these two and ``renyi`` imports)
- ``federated``     rounds of private updates: the central guarantee, each peer's local and reconstruction ledgers
- ``iteration``    one pass of noisy projected gradient descent, in a random or a fixed order
- ``gaussian``     the Gaussian mechanism, exact
- ``theorems``     the paper's statement and approximations, to compare with and never to publish

What they are made of: ``exact`` chooses between ``tables`` (all label counts of a small cluster; ``pools`` has the laws
of the flipped labels) and ``scan`` (branch and bound over the counts of a large one; ``tails`` walks the law of one
count); ``divergence`` compares two laws, ``binomial`` has their probabilities with NumPy alone, ``ranges`` what
arguments may be.
"""
