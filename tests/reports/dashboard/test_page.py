"""The page is one document that loads nothing, obeys a strict policy, and can be read in light and dark."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from p2p_labeldp.reports.dashboard.board import BINS
from p2p_labeldp.reports.dashboard.page import page

BODY = page().body.decode()
STYLE = BODY.partition("<style>")[2].partition("</style>")[0]
SCRIPT = BODY.partition("<script>")[2].partition("</script>")[0]
TEXT, MARK = 7.0, 3.0  # least contrasts


def allowed(directive):
    return next(part.split()[1:] for part in page().policy.split(";") if part.split()[0] == directive)


def digest(text):
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_only_this_script_and_this_style_are_allowed():
    assert allowed("default-src") == ["'none'"]
    assert allowed("script-src") == [digest(SCRIPT)]
    assert allowed("style-src") == [digest(STYLE)]
    assert allowed("connect-src") == ["'self'"]
    assert "unsafe" not in page().policy


class Found(HTMLParser):
    def __init__(self):
        super().__init__()
        self.attributes, self.tags, self.ids = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]


@pytest.fixture(scope="module")
def found():
    parser = Found()
    parser.feed(BODY)
    return parser


def test_nothing_is_loaded_and_no_handler_stands_in_the_document(found):
    assert not [name for _, name, _ in found.attributes if name.startswith("on") or name in ("style", "src", "action")]
    assert {value[:1] for _, name, value in found.attributes if name == "href"} <= {"#", "d"}  # itself, and data:
    assert set(re.findall(r"https?://[^\s\"'`]+", BODY)) == {"http://www.w3.org/2000/svg"}  # a name, not a place
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", SCRIPT)


def test_every_place_that_the_script_or_the_document_names_is_there(found):
    named = set(re.findall(r'(?:byId|say)\("([\w-]+)"', SCRIPT))
    referred = [value for _, name, value in found.attributes if name in ("aria-labelledby", "for")]
    assert named | set(referred) <= set(found.ids)
    assert len(found.ids) == len(set(found.ids))
    assert len(named) > 15


def test_script_and_board_divide_time_alike():
    assert re.search(r"const BINS = (\d+)", SCRIPT)[1] == str(BINS)


def test_phases_are_read_aloud_and_headings_and_language_are_there(found):
    assert ("p", "aria-live", "polite") in found.attributes
    assert ("html", "lang", "en") in found.attributes
    assert found.tags.count("h1") == 1
    assert "main" in found.tags


def colours(style):
    found = dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", style))
    assert len(found) == 12
    return found


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    """WCAG 2.2, contrast ratio."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_marks_can_be_told_from_what_is_behind_them(scheme):
    light, _, dark = STYLE.partition("@media (prefers-color-scheme: dark)")
    shown = colours(light if scheme == "light" else dark.partition("}")[0])
    assert all(contrast(shown["ink"], shown[back]) >= TEXT for back in ("paper", "card", "note"))
    assert all(contrast(shown["soft"], shown[back]) >= TEXT for back in ("paper", "card"))
    marks = ("main", "good", "bad", "other", "edge", "soft")
    assert all(contrast(shown[mark], shown["card"]) >= MARK for mark in marks)
    assert all(contrast(shown[mark], shown["track"]) >= MARK for mark in ("main", "bad"))
    assert contrast("#777777", "#ffffff") < TEXT  # the control: a common grey is not enough
