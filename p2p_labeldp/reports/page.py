"""The report of one run or several as one HTML page: nothing is fetched, nothing runs, and it prints.

The page is made of totals, sizes and times (``kept_run`` lets nothing else through), so it can be shown to anybody who
may know that the round took place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from p2p_labeldp.auditing.lower_bound import clopper_pearson_high, clopper_pearson_low
from p2p_labeldp.reports import cautions, drawing, profiles, words
from p2p_labeldp.reports.drawing import Row, Series
from p2p_labeldp.reports.kept_run import RESAMPLING, KeptRun
from p2p_labeldp.reports.plots import Band
from p2p_labeldp.reports.style import STYLE
from p2p_labeldp.reports.table import digits_up, places_up
from p2p_labeldp.results import Accuracy, ClusterResult, Result, ViewResult

CONFIDENCE = 0.95
MOST_COLUMNS = 400
"""Bars of clusters; of more clusters every so-manyth is drawn."""
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


def render(runs: Sequence[KeptRun], measured: Sequence[Sequence[Band]]) -> str:
    """The page.

    Args:
        runs: At least one.
        measured: Measurements kept with each run; none where there are none.
    """
    title = "Label privacy report: " + ", ".join(run.name for run in runs)
    parts = [f"<h1>{escape(title)}</h1>", _introduction()]
    if len(runs) > 1:
        parts.append(_comparison(runs))
    for number, (run, bands) in enumerate(zip(runs, measured, strict=True), start=1):
        parts.append(_section(run, f"r{number}", bands, headed=len(runs) > 1))
    parts.append(_ending())
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><meta name="color-scheme" content="light dark">'
        f'<title>{escape(title)}</title><link rel="icon" href="data:,"><style>{STYLE}</style>'
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body><main>\n'
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )


def _introduction() -> str:
    return (
        "<p>A <strong>label</strong> is the one sensitive fact about a person that is to be protected, a diagnosis for"
        " example. This page says how much others can learn about a person's label from a round of learning, and from"
        " whom that is protected. It shows totals only: no participant's label, and nothing of who asked whom.</p>"
    )


def _section(run: KeptRun, key: str, bands: Sequence[Band], *, headed: bool) -> str:
    level = 3 if headed else 2
    blocks = [
        ("Warnings", _warnings(run.result)),
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


def _warnings(result: Result) -> str:
    found = cautions.due(result)
    if not found:
        return "<p>None of the conditions that this page checks calls for a warning.</p>"
    items = "".join(f'<li class="warning" data-code="{one.code}">{escape(one.text)}</li>' for one in found)
    return f'<ul class="warnings">{items}</ul>'


def _what(run: KeptRun) -> str:
    result, data = run.result, run.config.get("data", {})
    rows = [
        ("Data", str(data.get("name", "not stated"))),
        ("Participants", f"{result.peers:,}"),
        ("Clusters", f"{len(result.clusters):,}"),
        ("Chance that a label was changed", _flips(result.clusters)),
        ("Played by", run.engine),
        ("Randomness", f"seed {result.seed}: a study, not private" if result.study else "secret; no seed was given"),
    ]
    return f"<p>{MECHANISMS.get(run.mechanism, '')}</p>" + _table(("", ""), rows, caption="The run in brief")


def _flips(clusters: Sequence[ClusterResult]) -> str:
    flips = [cluster.flip_probability for cluster in clusters if cluster.flip_probability is not None]
    if not flips:
        return "differs by cluster"
    low, high = (f"{100 * flip:.3g} %" for flip in (min(flips), max(flips)))
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
        rows.append((name, f"{sees} {words.promise(view)}", _epsilon(view.epsilon), _delta(view.delta)))
    table = _table(("Who", "What it sees, and what it can learn", "ε at most", "δ"), rows, caption="Who can learn what")
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
    parts = []
    if happened.phases:
        total = happened.phases[-1].end
        lines = [
            Row(name=phase.name, start=phase.begin, value=phase.end, text=f"{phase.end - phase.begin:.1f} s")
            for phase in happened.phases
        ]
        said = "; ".join(f"{phase.name} from {phase.begin:.1f} to {phase.end:.1f} s" for phase in happened.phases)
        svg = drawing.rows(
            key=f"{key}-timeline",
            title="Phases of the round",
            description=said,
            lines=lines,
            most=total,
            label="seconds since the round opened",
        )
        clock = " Its clock was simulated." if result.bytes is None else ""
        parts.append(_figure(svg, f"The phases of the round, which took {total:.1f} seconds.{clock}"))
    else:
        parts.append("<p>There is no timeline: the facts kept hold no times.</p>")
    outcomes = [(name, OUTCOMES.get(name, ""), f"{count:,}") for name, count in result.outcomes.items()]
    parts.append(_table(("Outcome", "Participants who", "Number"), outcomes, caption="How it ended for participants"))
    if happened.reasons:
        reasons = [(reason.replace("_", " "), f"{count:,}") for reason, count in sorted(happened.reasons.items())]
        parts.append(_table(("Reason", "Number"), reasons, caption="Why participants did not report"))
    counts = [("Refused messages", f"{happened.refused:,}")]
    if result.messages is not None:
        counts.insert(0, ("Messages", f"{result.messages:,}"))
    if result.bytes is not None:
        counts.insert(1, ("Bytes sent", f"{result.bytes:,}"))
    counts += [(f"Seconds: {name}", f"{seconds:.1f}") for name, seconds in result.seconds.items()]
    return "".join(parts) + _table(("Count", "Number"), counts, caption="Counts")


def _clusters(run: KeptRun, key: str) -> str:
    clusters = sorted(run.result.clusters, key=lambda cluster: cluster.size)
    if not clusters:
        return ""
    sizes = [cluster.size for cluster in clusters]
    middle = sizes[len(sizes) // 2]
    drawn = [sizes[number * len(sizes) // MOST_COLUMNS] for number in range(MOST_COLUMNS)]
    said = f"{len(sizes):,} clusters; members of the smallest: {sizes[0]:,}, of the middle one: {middle:,}, of the"
    said += f" largest: {sizes[-1]:,}."
    svg = drawing.columns(
        key=f"{key}-sizes",
        title="Sizes of the clusters",
        description=said,
        values=sizes if len(sizes) <= MOST_COLUMNS else drawn,
        x_label="clusters, the smallest first",
        y_label="members",
    )
    rows = [
        (
            str(cluster.id),
            f"{cluster.size:,}",
            "-" if cluster.flip_probability is None else f"{100 * cluster.flip_probability:.3g} %",
            _epsilon(cluster.epsilon),
            _delta(cluster.delta),
            _epsilon(cluster.local_epsilon),
        )
        for cluster in clusters[:MOST_ROWS]
    ]
    heads = ("Cluster", "Members", "Label changed", "ε, learner alone", "δ", "ε, learner with everyone")
    left_out = len(clusters) - len(rows)
    caption = "Clusters, the smallest first" + (f"; {left_out:,} larger ones are left out" if left_out else "")
    return (
        "<p>The larger a cluster, the more members a label hides among.</p>"
        + _figure(svg, said)
        + _table(heads, rows, caption=caption)
    )


def _guarantee(run: KeptRun, key: str) -> str:
    clusters = run.result.clusters
    if not any(math.isfinite(cluster.epsilon) for cluster in clusters):
        return ""
    alone = [(cluster.size, cluster.epsilon) for cluster in clusters]
    everyone = [(cluster.size, cluster.local_epsilon) for cluster in clusters]
    series = [Series(name="learner alone", style="learner", points=alone, line=False)]
    if any(math.isfinite(value) for _, value in everyone):
        series.append(Series(name="learner with everyone", style="local", points=everyone, line=False))
    curve = profiles.by_size(run)
    said = f"Epsilon of each cluster against its size. {_range('Against the learner alone', alone)}"
    said += f" {_range('Against the learner with everyone', everyone)}" if len(series) > 1 else ""
    if curve:
        series.append(Series(name="same chance of change, other sizes", style="other", points=curve))
        said += (
            " The curve shows what size does: it is for the learner alone at δ one in the square of the size, for the"
        )
        said += " chance of change of the worst cluster, if nobody fails to answer."
    by_size = drawing.curves(
        key=f"{key}-by-size",
        title="Epsilon against cluster size",
        description=said,
        series=series,
        x_log=True,
        x_label="members of the cluster",
        y_label="epsilon",
    )
    return _figure(by_size, said) + _profile(run, key)


def _profile(run: KeptRun, key: str) -> str:
    found = profiles.profile(run)
    cluster = found.cluster
    series = [Series(name="promised", style="measured", points=[(cluster.epsilon, cluster.delta)], line=False)]
    if found.learner:
        series.insert(0, Series(name="learner alone", style="learner", points=_visible(found.learner)))
    if found.local:
        series.append(Series(name="learner with everyone", style="local", points=_visible(found.local)))
    if not found.learner and not found.local:
        return ""
    said = f"Every ε has its δ. For cluster {cluster.id} ({cluster.size:,} members), where the guarantee is weakest,"
    said += f" ε = {_epsilon(cluster.epsilon)} is promised with δ = {_delta(cluster.delta)}; a lower curve is better."
    if found.learner and not found.losses and run.mechanism == RESAMPLING:
        said += " The curve is that of a round in which nobody fails to answer; the promise allows for losses."
    svg = drawing.curves(
        key=f"{key}-profile",
        title="Delta against epsilon in the worst cluster",
        description=said,
        series=series,
        y_log=True,
        x_label="epsilon",
        y_label="delta",
    )
    everyone = dict(found.local)
    rows = [
        (
            f"{at:.3f}",
            digits_up(delta) if delta else "0",
            digits_up(everyone[at]) if everyone.get(at) else "0" if everyone else "-",
        )
        for at, delta in found.learner[::3]
    ]
    numbers = _table(("ε", "δ, learner alone", "δ, learner with everyone"), rows, caption="Points of the curves")
    details = f"<details><summary>The curves as numbers</summary>{numbers}</details>" if rows else ""
    return _figure(svg, said) + details


def _visible(curve: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Without what would only stretch the axis."""
    return [(epsilon, delta) for epsilon, delta in curve if delta >= 1e-9]


def _range(who: str, points: Sequence[tuple[float, float]]) -> str:
    values = [value for _, value in points if math.isfinite(value)]
    low, high = places_up(min(values, default=math.inf)), places_up(max(values, default=math.inf))
    return f"{who} it is {high}." if low == high else f"{who} it is between {low} and {high}."


def _measured(bands: Sequence[Band], key: str) -> str:
    if not bands:
        return ""
    bands = sorted(bands, key=lambda band: band.cluster_size)
    said = "How much the best test really told, in many repeated rounds, beside what it can tell at most. A measured"
    said += " value is a lower bound: it is no guarantee, but one above the exact value would point to an error."
    above = [band for band in bands if band.measured > band.exact]
    said += f" {len(above)} of {len(bands)} lie above." if above else " None lies above."
    series = [
        Series(name="exact", style="learner", points=[(band.cluster_size, band.exact) for band in bands]),
        Series(name="measured", style="measured", points=[(b.cluster_size, b.measured) for b in bands], line=False),
        Series(name="learner with everyone", style="local", points=[(b.cluster_size, b.local) for b in bands]),
    ]
    svg = drawing.curves(
        key=f"{key}-measured",
        title="Measured and exact epsilon",
        description=said,
        series=series,
        x_log=True,
        x_label="members of the cluster",
        y_label="epsilon",
    )
    rows = [
        (f"{b.cluster_size:,}", f"{math.floor(1000 * b.measured) / 1000:.3f}", _epsilon(b.exact), _epsilon(b.local))
        for b in bands
    ]
    heads = ("Members", "ε, measured (at least)", "ε, exact (at most)", "ε, learner with everyone")
    return _figure(svg, said) + _table(heads, rows, caption="Measured and exact")


def interval(share: float, rows: int) -> tuple[float, float]:
    """The exact (Clopper-Pearson) interval of a share of so many independent rows, at ``CONFIDENCE``."""
    right, alpha = round(share * rows), (1 - CONFIDENCE) / 2
    return float(clopper_pearson_low(right, rows, alpha)), float(clopper_pearson_high(right, rows, alpha))


def _accuracy(run: KeptRun, key: str) -> str:
    accuracy = run.result.accuracy
    lines = [
        _dot(name, value, accuracy.held_out)
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
    said = "; ".join(f"{line.name} {line.text}" for line in lines)
    svg = drawing.rows(
        key=f"{key}-accuracy",
        title="Accuracy on held-out rows",
        description=said,
        lines=lines,
        most=1.0,
        dots=True,
        label="share of held-out rows labelled rightly",
    )
    bars = "" if accuracy.held_out is None else f" Lines are {CONFIDENCE:.0%} binomial intervals for a model as it is."
    others = (
        " The model trained on true labels and the commonest label are there for comparison; they were computed from"
        " true labels, and their figures are not protected either."
        if accuracy.non_private is not None
        else ""
    )
    return _figure(svg, f"Accuracy: {said}.{bars}") + (
        f'<p class="held-out">Accuracy was measured on {rows} held-out rows, whose labels were used as they are.'
        f" <strong>Held-out labels are not protected</strong>: an accuracy that is published tells something about"
        f" them.{others}</p>"
    )


def _dot(name: str, share: float, rows: int | None) -> Row:
    if not rows:
        return Row(name=name, value=share, text=f"{share:.3f}")
    low, high = interval(share, rows)
    return Row(name=name, value=share, text=f"{share:.3f} ({low:.3f}-{high:.3f})", interval=(low, high))


def _record(run: KeptRun) -> str:
    result = run.result
    settings = [
        (f"{section}.{name}", "not set" if value is None else str(value))
        for section, values in run.config.items()
        for name, value in (values.items() if isinstance(values, Mapping) else [("", values)])
    ]
    versions = list(result.versions.items())
    return (
        f'<p>Configuration SHA-256: <code class="hash">{escape(result.config_hash)}</code></p>'
        "<details><summary>Settings and versions</summary>"
        + _table(("Setting", "Value"), settings, caption="Settings")
        + _table(("Software", "Version"), versions, caption="Versions")
        + "</details>"
    )


def _comparison(runs: Sequence[KeptRun]) -> str:
    names = [run.name for run in runs]
    by_view = [{view.view: view for view in run.result.views} for run in runs]

    def stated(view: str) -> list[str]:
        found = [views.get(view) for views in by_view]
        return ["-" if one is None else f"{_epsilon(one.epsilon)} at δ {_delta(one.delta)}" for one in found]

    sizes = [[cluster.size for cluster in run.result.clusters] for run in runs]
    rows = [
        ("Data", *(str(run.config.get("data", {}).get("name", "-")) for run in runs)),
        ("Mechanism", *(run.mechanism.replace("_", " ") for run in runs)),
        ("Participants", *(f"{run.result.peers:,}" for run in runs)),
        ("Reported", *(f"{run.result.outcomes.get('reported', 0):,}" for run in runs)),
        ("Clusters", *(f"{len(of):,}" for of in sizes)),
        ("Smallest cluster", *(f"{min(of):,}" if of else "-" for of in sizes)),
        ("Label changed", *(_flips(run.result.clusters).split(",")[0] for run in runs)),
        ("ε, learner alone", *stated("learner")),
        ("ε, learner with one other", *stated("learner+1")),
        ("ε, learner with everyone", *stated("learner+all")),
        ("Accuracy", *(_shown(run.result.accuracy) for run in runs)),
        ("Known seed (not private)", *("yes" if run.result.study else "no" for run in runs)),
        ("Warnings", *(str(len(cautions.due(run.result))) for run in runs)),
    ]
    dots = [
        _dot(run.name, run.result.accuracy.private, run.result.accuracy.held_out)
        for run in runs
        if run.result.accuracy.private is not None
    ]
    figure = ""
    if dots:
        said = "; ".join(f"{dot.name} {dot.text}" for dot in dots)
        svg = drawing.rows(
            key="compared",
            title="Accuracy of the runs",
            description=said,
            lines=dots,
            most=1.0,
            dots=True,
            label="share of held-out rows labelled rightly",
        )
        figure = _figure(svg, f"Accuracy of the models trained on reports: {said}.")
    return (
        "<section><h2>The runs side by side</h2>"
        + _table(("", *names), rows, caption="The runs side by side")
        + figure
        + '<p class="together">Each guarantee is for its own run. If a person\'s label was used in several of them, the'
        " losses add up, and no single column tells what can be learnt from all of them together.</p></section>"
    )


def _shown(accuracy: Accuracy) -> str:
    return "-" if accuracy.private is None else _dot("", accuracy.private, accuracy.held_out).text


def _ending() -> str:
    return (
        "<footer><p>Guarantees are worst cases, computed and rounded up, after Esfandiari, Mirrokni, Syed and"
        " Vassilvitskii, <cite>Label differential privacy via clustering</cite> (arXiv 2110.02159). This page describes"
        " a run; it does not decide whether the protection is enough for a purpose.</p></footer>"
    )


def _epsilon(value: float) -> str:
    return "unlimited" if math.isinf(value) else places_up(value)


def _delta(value: float) -> str:
    return "0" if value == 0 else f"{digits_up(value)} ({words.one_in(value)})"


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str) -> str:
    """A table whose first column names its rows."""
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads) if any(heads) else ""
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:]) + "</tr>"
        for row in rows
    )
    head = f"<thead><tr>{top}</tr></thead>" if top else ""
    return f'<div class="table"><table><caption>{escape(caption)}</caption>{head}<tbody>{body}</tbody></table></div>'
