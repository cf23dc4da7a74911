"""Several runs side by side."""

from __future__ import annotations

from collections.abc import Sequence

from p2p_labeldp.reports import cautions, figures, markup, sections
from p2p_labeldp.reports.kept_run import KeptRun
from p2p_labeldp.results import Accuracy

TRUSTED = {"cluster_rr": "a curator", "permute": "nobody, but a shuffler with changed ones", "none": "everybody"}
"""Mechanisms that somebody has to be trusted for."""


def comparison(runs: Sequence[KeptRun]) -> str:
    """A table with a column a run, and their accuracies."""
    by_view = [{view.view: view for view in run.result.views} for run in runs]

    def stated(view: str) -> list[str]:
        found = [views.get(view) for views in by_view]
        return [
            "-" if one is None else f"{markup.epsilon(one.epsilon)} at δ {markup.delta(one.delta)}" for one in found
        ]

    sizes = [[cluster.size for cluster in run.result.clusters] for run in runs]
    rows = [
        ("Data", *(run.data for run in runs)),
        ("Mechanism", *(run.mechanism.replace("_", " ") for run in runs)),
        ("Trusted with true labels", *(TRUSTED.get(run.mechanism, "nobody") for run in runs)),
        ("Participants", *(f"{run.result.peers:,}" for run in runs)),
        ("Reported", *(f"{run.result.outcomes.get('reported', 0):,}" for run in runs)),
        ("Clusters", *(f"{len(of):,}" for of in sizes)),
        ("Smallest cluster", *(f"{min(of):,}" if of else "-" for of in sizes)),
        ("Label changed", *(sections.flips(run.result.clusters).split(",")[0] for run in runs)),
        ("ε, learner alone", *stated("learner")),
        ("ε, learner with one other", *stated("learner+1")),
        ("ε, learner with everyone", *stated("learner+all")),
        ("Accuracy", *(_shown(run.result.accuracy) for run in runs)),
        ("Known seed (not private)", *("yes" if run.result.study else "no" for run in runs)),
        ("Warnings", *(str(len(cautions.due(run.result))) for run in runs)),
    ]
    dots = [
        figures.dot(run.name, run.result.accuracy.private, run.result.accuracy.held_out)
        for run in runs
        if run.result.accuracy.private is not None
    ]
    return (
        "<section><h2>The runs side by side</h2>"
        + markup.table(("", *(run.name for run in runs)), rows, caption="The runs side by side")
        + (figures.accuracies(dots) if dots else "")
        + '<p class="together">Each guarantee is for its own run. If a person\'s label was used in several of them, the'
        " losses add up, and no single column tells what can be learnt from all of them together.</p></section>"
    )


def _shown(accuracy: Accuracy) -> str:
    return "-" if accuracy.private is None else figures.dot("", accuracy.private, accuracy.held_out).text
