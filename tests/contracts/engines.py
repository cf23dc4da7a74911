"""One study on each engine, in a form that can be compared."""

import numpy as np

from p2p_labeldp import facts, population
from p2p_labeldp.clustering import Clustering
from p2p_labeldp.labels import LabelSpace
from p2p_labeldp.learning import erm
from p2p_labeldp.network import virtual
from p2p_labeldp.protocol.roster import plan_for


def on_arrays(study):
    """The round on the population engine: transcript, and reports as (peer, cluster, label) by peer."""
    terms = study.terms
    clusters = Clustering.from_payload(terms.clustering).assign(study.features)
    plans = [plan_for(int(size), terms) for size in np.bincount(clusters)]
    flips = [plan.flip_probability for plan in plans]
    played = population.play(study.labels, clusters, flips, seed=study.seed, num_classes=len(terms.classes))
    reports = list(zip(range(len(study)), clusters.tolist(), played.reports.tolist(), strict=True))
    return facts.transcript(played.facts()), reports


def on_machines(study):
    """The same on the virtual network; the features too are those that the learner got."""
    played = virtual.play(study)
    reports = [(report.peer, report.cluster, report.label) for report in played.collected.reports]
    return facts.transcript(played.facts), reports, np.array([report.features for report in played.collected.reports])


def accuracy(study, features, reports):
    labels = np.array([label for _, _, label in reports])
    label_space = LabelSpace(classes=study.terms.classes)
    model = erm.fit("logistic_regression", features, labels, label_space=label_space, seed=study.seed)
    return erm.accuracy(model, study.features, study.labels)
