"""What a page says of one run, block by block."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import PurePath

from p2p_labeldp.reports import cautions, figures, markup, profiles, words
from p2p_labeldp.reports.kept_run import RESAMPLING, KeptRun
from p2p_labeldp.reports.plots import Band
from p2p_labeldp.reports.table import digits_up
from p2p_labeldp.results import ClusterResult, ViewResult

NBSP = "\N{NO-BREAK SPACE}"
MOST_ROWS = 60
"""Lines of the table of clusters: the smallest."""

MECHANISMS = {
    RESAMPLING: "Each participant holds one label and changes it at random before telling it to anybody. Within a"
    " group of similar participants (a cluster) each then passes on the changed label of one member drawn at random,"
    " sealed so that only the learner can open it. The learner trains a model on what it gets.",
    "permute": "Each participant changes their label at random. A trusted third party then mixes the labels of each"
    " cluster, and the learner trains a model on what it gets.",
    "cluster_rr": "A trusted curator collects the labels, counts them by cluster with random noise, and replaces labels"
    " at random by what is common in the cluster. The learner trains a model on the outcome.",
    "uniform_rr": "Each participant's label is replaced at random by any label. The learner trains a model on the"
    " outcome.",
    "none": "The labels were used as they are. There is no protection.",
}
OUTCOMES = {
    "reported": "sent their report in time",
    "abstained": "stayed silent to keep the guarantee",
    "refused": "declined by their own limits",
    "unreachable": "could not be reached",
    "late": "reported too late",
    "invalid": "sent something that is no label",
    "failed": "failed",
}
NOT_PROTECTED = (
    "Features (everything but the label) are shared openly and are not protected.",
    "That somebody took part is not hidden.",
    "What the model teaches about people in general is its purpose and is not hidden: whoever knows a person's features"
    " can apply the model to them, whether or not that person took part.",
    "The guarantee is for one round. If the same labels are used again, the losses add up.",
    "It holds if the software runs as published, each participant's secret stays secret, and the encryption holds.",
)


def section(run: KeptRun, key: str, bands: Sequence[Band], *, headed: bool) -> str:
    """One run; ``key`` begins the names of its figures, ``headed`` says whether the run's own name stands above."""
    level = 3 if headed else 2
    blocks = [
        ("Warnings", _warnings(run)),
        ("What was run", _what(run)),
        ("Who can learn what", _views(run)),
        ("How the round went", _course(run, key)),
        ("Clusters", _clusters(run, key)),
        ("The guarantee as curves", _guarantee(run, key)),
        ("Measured against exact", _measured(bands, key)),
        ("How good the model is", _accuracy(run, key)),
        ("Record", _record(run)),
    ]
    parts = [f"<h2>Run {escape(run.name)}</h2>"] if headed else []
    parts += [f"<h{level}>{name}</h{level}>\n{body}" for name, body in blocks if body]
    return f'<section id="{key}">\n' + "\n".join(parts) + "\n</section>"


def _warnings(run: KeptRun) -> str:
    found = cautions.due(run.result)
    if not found:
        return "<p>None of the conditions that this page checks calls for a warning.</p>"
    items = "".join(f'<li class="warning" data-code="{one.code}">{escape(one.text)}</li>' for one in found)
    return f'<ul class="warnings">{items}</ul>'


def _what(run: KeptRun) -> str:
    result = run.result
    rows = [
        ("Data", run.data),
        ("Participants", f"{result.peers:,}"),
        ("Clusters", f"{len(result.clusters):,}"),
        ("Chance that a label was changed", flips(result.clusters)),
        ("Played by", run.engine),
        ("Randomness", f"seed {result.seed}: a study, not private" if result.study else "secret; no seed was given"),
    ]
    notes = "".join(f"<li>{escape(note)}</li>" for note in result.notes)
    read = f"<p><strong>How the table was read, and what to beware of</strong></p><ul>{notes}</ul>" if notes else ""
    brief = markup.table(("", ""), rows, caption="The run in brief")
    return f"<p>{MECHANISMS.get(run.mechanism, '')}</p>{brief}{read}"


def flips(clusters: Sequence[ClusterResult]) -> str:
    """The chance that a label was changed, over the clusters."""
    found = [cluster.flip_probability for cluster in clusters if cluster.flip_probability is not None]
    if not found:
        return "differs by cluster"
    low, high = (f"{100 * flip:.3g}{NBSP}%" for flip in (min(found), max(found)))
    return low if low == high else f"{low} to {high}, depending on the cluster"


def _views(run: KeptRun) -> str:
    if not run.result.views:
        return "<p>No cluster took part; there is nothing to state.</p>"
    intro = (
        "<p>For each party, the most it can learn about one person's label, in the cluster where that is most. It may"
        f" know all features and everybody else's label.</p><p><strong>How to read it.</strong> {words.TEST}"
        " <strong>Epsilon</strong> (ε) measures how well the two answers can be told apart: 0 is not at all, smaller is"
        " better. <strong>Delta</strong> (δ) is a probability that may come on top; it should be far below one in the"
        " number of participants.</p>"
    )
    rows = []
    for view in run.result.views:
        name, sees = words.who(view.view, run.mechanism)
        rows.append((name, f"{sees} {words.promise(view)}", markup.epsilon(view.epsilon), markup.delta(view.delta)))
    table = markup.table(
        ("Who", "What it sees, and what it can learn", "ε at most", "δ"), rows, caption="Who can learn what"
    )
    methods = "".join(f"<li>{escape(_method(view, run.mechanism))}</li>" for view in run.result.views)
    outside = "".join(f"<li>{escape(line)}</li>" for line in NOT_PROTECTED)
    return (
        f"{intro}{table}<p><strong>How each number was found</strong></p><ul>{methods}</ul>"
        f"<p><strong>What is not protected, and what the guarantee rests on</strong></p><ul>{outside}</ul>"
    )


def _method(view: ViewResult, mechanism: str) -> str:
    return f"{words.who(view.view, mechanism)[0]}: {view.method}"


def _course(run: KeptRun, key: str) -> str:
    result, happened = run.result, run.happened
    if happened.phases:
        timeline = figures.timeline(happened.phases, key=key, simulated=result.bytes is None)
    else:
        timeline = "<p>There is no timeline: the facts kept hold no times.</p>"
    outcomes = [(name, OUTCOMES.get(name, ""), f"{count:,}") for name, count in result.outcomes.items()]
    parts = [timeline]
    parts.append(
        markup.table(("Outcome", "Participants who", "Number"), outcomes, caption="How it ended for participants")
    )
    if happened.reasons:
        reasons = [(reason.replace("_", " "), f"{count:,}") for reason, count in sorted(happened.reasons.items())]
        parts.append(markup.table(("Reason", "Number"), reasons, caption="Why participants did not report"))
    counts = [("Refused messages", f"{happened.refused:,}")]
    if result.messages is not None:
        counts.insert(0, ("Messages", f"{result.messages:,}"))
    if result.bytes is not None:
        counts.insert(1, ("Bytes sent", f"{result.bytes:,}"))
    counts += [(f"Seconds: {name}", f"{seconds:.1f}") for name, seconds in result.seconds.items()]
    return "".join(parts) + markup.table(("Count", "Number"), counts, caption="Counts")


def _clusters(run: KeptRun, key: str) -> str:
    clusters = sorted(run.result.clusters, key=lambda cluster: cluster.size)
    if not clusters:
        return ""
    rows = [
        (
            str(cluster.id),
            f"{cluster.size:,}",
            "-" if cluster.flip_probability is None else f"{100 * cluster.flip_probability:.3g}{NBSP}%",
            markup.epsilon(cluster.epsilon),
            markup.delta(cluster.delta).replace(" ", NBSP),
            markup.epsilon(cluster.local_epsilon),
        )
        for cluster in clusters[:MOST_ROWS]
    ]
    heads = ("Cluster", "Members", "Label changed", "ε, learner alone", "δ", "ε, learner with everyone")
    left_out = len(clusters) - len(rows)
    caption = "Clusters, the smallest first" + (f"; {left_out:,} larger ones are left out" if left_out else "")
    return (
        "<p>The larger a cluster, the more members a label hides among.</p>"
        + figures.sizes([cluster.size for cluster in clusters], key=key)
        + markup.table(heads, rows, caption=caption)
    )


def _guarantee(run: KeptRun, key: str) -> str:
    if not any(math.isfinite(cluster.epsilon) for cluster in run.result.clusters):
        return ""
    found = profiles.profile(run)
    everyone = dict(found.local)
    rows = [
        (
            f"{at:.3f}",
            digits_up(delta) if delta else "0",
            digits_up(everyone[at]) if everyone.get(at) else "0" if everyone else "-",
        )
        for at, delta in found.learner[::3]
    ]
    numbers = markup.table(("ε", "δ, learner alone", "δ, learner with everyone"), rows, caption="Points of the curves")
    details = f"<details><summary>The curves as numbers</summary>{numbers}</details>" if rows else ""
    return figures.by_size(run, key=key) + figures.profile(run, found, key=key) + details


def _measured(bands: Sequence[Band], key: str) -> str:
    if not bands:
        return ""
    bands = sorted(bands, key=lambda band: band.cluster_size)
    rows = [
        (
            f"{b.cluster_size:,}",
            f"{math.floor(1000 * b.measured) / 1000:.3f}",
            markup.epsilon(b.exact),
            markup.epsilon(b.local),
        )
        for b in bands
    ]
    heads = ("Members", "ε, measured (at least)", "ε, exact (at most)", "ε, learner with everyone")
    return figures.measured(bands, key=key) + markup.table(heads, rows, caption="Measured and exact")


def _accuracy(run: KeptRun, key: str) -> str:
    accuracy = run.result.accuracy
    lines = [
        figures.dot(name, value, accuracy.held_out)
        for name, value in (
            ("trained on the reports", accuracy.private),
            ("trained on true labels", accuracy.non_private),
            ("always the commonest", accuracy.majority),
        )
        if value is not None
    ]
    if not lines:
        return "<p>No model was trained: there were no reports.</p>"
    rows = "an unknown number of" if accuracy.held_out is None else f"{accuracy.held_out:,}"
    others = (
        " The model trained on true labels and the commonest label are there for comparison; they were computed from"
        " true labels, and their figures are not protected either."
        if accuracy.non_private is not None
        else ""
    )
    return figures.accuracy(lines, intervals=accuracy.held_out is not None, key=key) + (
        f'<p class="held-out">Accuracy was measured on {rows} held-out rows, whose labels were used as they are.'
        f" <strong>Held-out labels are not protected</strong>: an accuracy that is published tells something about"
        f" them.{others}</p>"
    )


def _setting(section: str, name: str, value: object) -> str:
    if value is None:
        return "not set"
    return PurePath(str(value)).name if (section, name) == ("data", "csv") else str(value)


def _record(run: KeptRun) -> str:
    result = run.result
    settings = [
        (f"{section}.{name}", _setting(section, name, value))
        for section, values in run.config.items()
        for name, value in (values.items() if isinstance(values, Mapping) else [("", values)])
    ]
    versions = list(result.versions.items())
    return (
        f'<p>Configuration SHA-256: <code class="hash">{escape(result.config_hash)}</code></p>'
        "<details><summary>Settings and versions</summary>"
        + markup.table(("Setting", "Value"), settings, caption="Settings")
        + markup.table(("Software", "Version"), versions, caption="Versions")
        + "</details>"
    )
