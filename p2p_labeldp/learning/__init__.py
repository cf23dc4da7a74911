"""What is learnt.

- ``erm``                  any scikit-learn classifier on reported labels
- ``corrected_loss``       the loss that makes up for redrawn labels, and its minimiser
- ``corrected_logistic``   the same as a scikit-learn classifier (importing it imports scikit-learn)
- ``dpsgd``                private training by a trusted trainer: clipped gradients of Poisson batches
- ``projected_sgd``        the same in one pass over bounded features, for amplification by iteration
- ``models``               what rounds of updates train: a vector of parameters and a gradient; logistic regression
- ``local_update``         what a client computes from a model: clipped, and refused if it is no finite number
"""
