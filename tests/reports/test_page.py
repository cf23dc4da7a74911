"""The page says what is true, warns exactly when it is due, and shows nothing of a label or of who asked whom."""

import math
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from reports.runs import IDS, PRIVATE, changed, cluster, facts, kept, view
from scipy.stats import binomtest

from p2p_labeldp.facts import Accepted, Opened, Rejected, Signed
from p2p_labeldp.reports import cautions, figures, page, words
from p2p_labeldp.reports.kept_run import add_up
from p2p_labeldp.reports.plots import Band
from p2p_labeldp.reports.style import STYLE
from p2p_labeldp.results import Accuracy, ReportedLabel

VOID = {"meta", "link", "br", "img", "input"}
SHAPES = {"line", "rect", "circle", "polyline", "svg", "text"}


class Page(HTMLParser):
    """A page as a reader of HTML finds it; complains of what is not closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.open, self.headings = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def values(self, name):
        return [value for _, attribute, value in self.attributes if attribute == name]


def reaches_out(text):
    """What a browser would fetch or run."""
    found = Page(text)
    references = [value for name in ("src", "href", "data", "action", "srcset") for value in found.values(name)]
    fetched = [value for value in references if value != "data:,"]
    handlers = [name for _, name, _ in found.attributes if name.startswith("on")]
    return (
        fetched + handlers + [tag for tag in found.tags if tag == "script"] + re.findall(r"url\(|@import|https?:", text)
    )


def rendered(run):
    return page.render([run], [()])


def test_the_page_is_whole_and_reaches_out_for_nothing():
    text = rendered(kept())
    assert reaches_out(text) == []
    for control in ('<img src="x.png">', "<script></script>", '<p onclick="x"></p>', "<style>@import</style>"):
        assert reaches_out(text.replace("<main>", f"<main>{control}"))
    with pytest.raises((AssertionError, IndexError)):
        Page(text.replace("</figure>", "", 1))


def test_every_figure_is_drawn_named_and_described():
    bands = [Band(cluster_size=s, measured=0.1, exact=0.3, shuffle=0.4, local=1.4) for s in (8, 16)]
    text = page.render([kept(), kept(name="two")], [bands, ()])
    figures = re.findall(r'<svg id="([^"]+)" role="img" aria-labelledby="(\S+) (\S+)"[^>]*>(.*?)</svg>', text)
    names = ("timeline", "sizes", "by-size", "profile", "accuracy")
    expected = {"compared", "r1-measured", *(f"{run}-{name}" for run in ("r1", "r2") for name in names)}
    assert {figure[0] for figure in figures} == expected
    ids = Page(text).values("id")
    assert len(ids) == len(set(ids))
    for _, title, description, body in figures:
        assert f'<title id="{title}">' in body
        assert f'<desc id="{description}">' in body
        assert any(f"<{shape} class=" in body for shape in ("rect", "circle", "polyline"))
        assert not re.search(r'="(nan|inf|-inf)|[" ,]nan', body)


def test_headings_never_skip_a_level():
    for runs in ([kept()], [kept(), kept(name="two")]):
        levels = Page(page.render(runs, [()] * len(runs))).headings
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))


def test_a_run_that_gives_no_cause_has_no_warning():
    assert cautions.due(PRIVATE) == []
    assert 'class="warning"' not in rendered(kept())


SMALL = cautions.SMALL_CLUSTER
DUE = {
    "study": ({"seed": 7}, {"seed": None}),
    "delta": (
        {"views": [view("learner", 0.3, 1 / 200)]},
        {"views": [view("learner", 0.3, 1 / 201)]},
    ),
    "small-clusters": (
        {"clusters": [cluster(), cluster(size=SMALL - 1)]},
        {"clusters": [cluster(), cluster(size=SMALL)]},
    ),
    "coalitions": (
        {"views": [view("learner", 0.3, 1e-4), view("learner+all", 0.4)]},
        {"views": [view("learner", 0.3), view("learner+all", 0.3)]},
    ),
    "large-epsilon": ({"views": [view("learner", 3.1, 1e-4)]}, {"views": [view("learner", 3.0, 1e-4)]}),
    "no-privacy": ({"views": [view("learner", math.inf)]}, {}),
    "no-guarantee": ({"views": [], "clusters": []}, {}),
    "large-local": (
        {"views": [view("learner", 3.0), view("learner+all", 3.1)]},
        {"views": [view("learner", 3.0), view("learner+all", 3.0)]},
    ),
    "curator": ({"views": [view("learner", 0.3), view("curator", math.inf)]}, {}),
    "incomplete": ({"complete": False}, {}),
    "unverified": ({"unverified": True}, {}),
}


@pytest.mark.parametrize("code", DUE)
def test_a_warning_appears_exactly_when_it_is_due(code):
    due, not_due = DUE[code]
    codes = {"large-local": ["coalitions", "large-local"]}.get(code, [code])
    assert [one.code for one in cautions.due(changed(**due))] == codes
    assert cautions.due(changed(**not_due)) == []
    assert f'data-code="{code}"' in rendered(kept(changed(**due)))
    assert f'data-code="{code}"' not in rendered(kept(changed(**not_due)))


def test_the_page_of_a_deployment_does_not_depend_on_labels_or_on_who_asked_whom():
    one = rendered(kept(happened=facts(IDS, [0] * 6)))
    other = rendered(kept(happened=facts(IDS[::-1], [1] * 6)))
    assert one == other
    fewer = [fact for fact in facts(IDS, [0] * 6) if not isinstance(fact, Rejected)]
    assert rendered(kept(happened=fewer)) != one  # facts do reach the page
    reports = [ReportedLabel(peer=IDS[0], cluster=0, label=1)]
    assert rendered(kept(changed(reports=reports), happened=facts(IDS, [0] * 6))) == one


def test_the_page_of_a_deployment_names_no_peer():
    text = rendered(kept())
    assert not [peer for peer in IDS if peer in text]
    assert IDS[0] in rendered(kept(name=IDS[0]))


def test_held_out_labels_are_said_to_be_unprotected():
    assert "Held-out labels are not protected" in rendered(kept())
    nobody = changed(accuracy=Accuracy(private=None, non_private=None, majority=None))
    assert "Held-out labels" not in rendered(kept(nobody))


def test_phases_are_those_of_the_facts():
    phases = [(phase.name, phase.begin, phase.end) for phase in add_up(facts(IDS, [0] * 6)).phases]
    assert phases == [
        ("finding each other", 0.0, 5.0),
        ("exchange of labels", 5.0, 8.0),
        ("closing", 8.0, 9.0),
        ("reports", 9.0, 10.0),
    ]


def test_a_learner_knows_less_of_the_phases():
    seen = [fact for fact in facts(IDS, [0] * 6) if isinstance(fact, Opened | Signed | Accepted)]
    assert [phase.name for phase in add_up(seen).phases] == ["finding each other", "between the peers", "reports"]
    assert add_up([Accepted(peer=0, cluster=0, label=1)]).phases == []  # of arrays


def test_names_are_escaped():
    text = rendered(kept(name="<b>&", data={"name": "<i>"}))
    assert "&lt;b&gt;&amp;" in text
    assert "<b>" not in text
    assert "<i>" not in text
    assert "<by>" not in text


def test_own_data_is_named_by_its_file_and_says_how_it_was_read():
    table = {"name": None, "csv": "/home/zaphod/people.csv", "label": "outcome"}
    text = rendered(kept(changed(notes=["'id' left out: every row has another <value>"]), data=table))
    assert "<td>people.csv, labels: outcome</td>" in text
    assert "<li>&#x27;id&#x27; left out: every row has another &lt;value&gt;</li>" in text
    assert "zaphod" not in text
    assert ">None<" not in text
    assert "How the table was read" not in rendered(kept())
    assert "zaphod" in rendered(kept(name="zaphod"))


def test_runs_side_by_side_say_who_is_trusted():
    def sections(kind, exchange="resample"):
        return {"mechanism": {"kind": kind, "tolerated_loss": 0.05}, "exchange": {"kind": exchange}}

    runs = [kept(), kept(**sections("cluster_rr")), kept(**sections("resampling", "permute"))]
    text = page.render(runs, [()] * 3)
    row = re.search(r'<th scope="row">Trusted with true labels</th>(.*?)</tr>', text)[1]
    assert re.findall("<td>(.*?)</td>", row) == ["nobody", "a curator", "nobody, but a shuffler with changed ones"]


def test_a_missing_number_of_held_out_rows_gives_no_interval():
    text = rendered(kept(changed(accuracy=Accuracy(private=0.9, non_private=None, majority=None))))
    assert "an unknown number of held-out rows" in text
    assert "binomial" not in text
    assert "binomial" in rendered(kept())


def test_the_interval_is_the_exact_binomial_one():
    exact = binomtest(111, 114).proportion_ci(0.95, method="exact")
    assert figures.interval(111 / 114, 114) == pytest.approx((exact.low, exact.high), abs=1e-12)


def test_the_words_bound_what_randomized_response_attains():
    # Says "yes" whenever the told label is 1: wrong with probability f, right with probability 1 - f.
    epsilon, f = math.log(4), 0.2
    assert words.right_alarms(epsilon, 0.0, f) == pytest.approx(1 - f)
    assert words.right_alarms(0.99 * epsilon, 0.0, f) < 1 - f
    assert words.right_alarms(0.0, 0.0, 0.05) == pytest.approx(0.05)
    assert words.right_alarms(math.inf, 0.0, 0.05) == 1.0
    assert "at most 14 times in 100" in words.promise(view("learner", 1.0, 1 / 625))  # 5 e + .16 = 13.75
    assert words.one_in(1 / 625) == "1\N{NO-BREAK SPACE}in\N{NO-BREAK SPACE}625"


def test_a_run_of_more_than_two_classes_has_every_figure_and_is_told_what_a_bound_is():
    one = cluster(size=60, flip_probability=0.05, epsilon=3.6, delta=1 / 3600, local_epsilon=math.log(0.95 * 2 / 0.05))
    text = rendered(kept(changed(clusters=[one]), happened=[]))
    assert "bound, which is proved" in text
    assert "same chance of change, other sizes" in text
    assert text.count('<polyline class="learner"') >= 2  # the curve and its sample in the legend
    assert "bound, which is proved" not in rendered(kept())


@pytest.mark.parametrize(
    ("mechanism", "exchange", "one"),
    [
        ("resampling", "permute", cluster()),
        ("resampling", "resample", cluster(flip_probability=0.02, local_epsilon=math.log(98))),
        ("resampling", "resample", cluster(size=400)),
        ("resampling", "resample", cluster(flip_probability=0.0, epsilon=math.inf, local_epsilon=math.inf)),
        ("cluster_rr", "resample", cluster(flip_probability=None, delta=0.0, local_epsilon=math.inf)),
        ("none", "resample", cluster(flip_probability=0.0, epsilon=math.inf, delta=0.0, local_epsilon=math.inf)),
    ],
)
def test_every_mechanism_has_a_page(mechanism, exchange, one):
    sections = {"mechanism": {"kind": mechanism, "tolerated_loss": 0.05}, "exchange": {"kind": exchange}}
    text = rendered(kept(changed(clusters=[one]), happened=[], **sections))
    Page(text)
    assert "nan" not in re.sub(r"[a-z]nan|nan[a-z]", "", text)
    assert ('id="r1-profile"' in text) == math.isfinite(one.epsilon)


def luminance(colour):
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_colours_can_be_told_apart_in_light_and_dark():
    blocks = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    assert len(blocks) == 2
    light, dark = (dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in blocks)
    for colours in (light, dark):
        assert contrast(colours["ink"], colours["paper"]) >= 7
        assert contrast(colours["soft"], colours["paper"]) >= 7
        assert contrast(colours["ink"], colours["note"]) >= 7
        assert all(contrast(colours[mark], colours["paper"]) >= 3 for mark in ("learner", "local", "other", "measured"))
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#888888") < 3
