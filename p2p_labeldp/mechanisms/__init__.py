"""What is done to a value. Pure: a value and randomness in, a value out; nothing here is re-exported.

Labels, among peers: ``randomized_response``, then ``resampling`` (Algorithm 2 of the paper).

Labels, in one place (``release`` has their interface):

- ``uniform_rr``   each label redrawn uniformly
- ``cluster_rr``   each label redrawn from the noisy distribution of its cluster (Algorithm 1)
- ``rr_with_prior``, ``staged_rr``   among likely labels; where the prior comes from, in one stage and two
- ``no_privacy``   as they are
- ``discrete_laplace``, ``probability_floor``, ``redraw``   what they are made of: exact noise, floor and coins

Updates: ``privunit``, ``privunit_infinity``, ``privunit_gaussian``, ``projunit`` (directions), ``scalar`` (magnitudes),
``separated`` (both), and what they are made of; ``noisy_average``, what a learner releases of the reports.
"""
