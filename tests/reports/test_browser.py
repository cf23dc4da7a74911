"""A browser shows the page of a real run: nothing to complain of, every figure drawn, in light, dark and on paper."""

import re
import shutil
import subprocess

import numpy as np
import pytest

from p2p_labeldp.cli import main
from p2p_labeldp.reports.style import STYLE

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.processes, pytest.mark.skipif(BROWSER is None, reason="no Chromium")]
WIDTH, HEIGHT = 900, 5000
LEARNER = [re.search(r"--learner: #(\w{6})", block)[1] for block in re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "one"
    assert main(["run", "iris", "--engine", "virtual", "--quiet", "--out", str(run)]) == 0
    assert main(["report", str(run)]) == 0
    return run / "report.html"


@pytest.fixture
def opened(tmp_path):
    """Opens a page; what the browser writes about it."""

    def run(page, *arguments):
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", *arguments, f"file://{page}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]

    return run


def pixels(path):
    image = pytest.importorskip("PIL.Image")
    return np.asarray(image.open(path).convert("RGB"))


def drawn(picture, colour):
    """How many pixels have it."""
    wanted = [int(colour[at : at + 2], 16) for at in (0, 2, 4)]
    return int((picture == wanted).all(axis=-1).sum())


@pytest.mark.parametrize(("preferred", "scheme"), [(1, 0), (0, 1)], ids=["light", "dark"])
def test_the_page_is_shown_without_complaint(page, opened, tmp_path, preferred, scheme):
    _, complaints = opened(
        page,
        f"--blink-settings=preferredColorScheme={preferred}",
        f"--screenshot={tmp_path / 'shot.png'}",
        f"--window-size={WIDTH},{HEIGHT}",
    )
    assert complaints == []
    picture = pixels(tmp_path / "shot.png")
    assert drawn(picture, LEARNER[scheme]) > 5000  # bars, at the least
    assert drawn(picture, LEARNER[1 - scheme]) < 50


def test_every_figure_is_drawn_on_its_own(page, opened, tmp_path):
    text = page.read_text()
    figures = re.findall(r"<figure>.*?</figure>", text)
    assert len(figures) == 5
    for number, figure in enumerate(figures):
        alone = tmp_path / f"{number}.html"
        alone.write_text(text[: text.index("<h1>")] + figure + "</main></body></html>")
        opened(alone, f"--screenshot={tmp_path / 'shot.png'}", f"--window-size={WIDTH},600")
        assert drawn(pixels(tmp_path / "shot.png"), LEARNER[0]) > 40, figure[:200]
    empty = tmp_path / "empty.html"
    empty.write_text(
        re.sub(r"<(rect|circle|polyline)[^>]*/>", "", alone.read_text()).replace('line class="learner"', "g")
    )
    opened(empty, f"--screenshot={tmp_path / 'shot.png'}", f"--window-size={WIDTH},600")
    assert drawn(pixels(tmp_path / "shot.png"), LEARNER[0]) <= 40


def test_it_prints(page, opened, tmp_path):
    _, complaints = opened(page, f"--print-to-pdf={tmp_path / 'page.pdf'}")
    assert complaints == []
    assert (tmp_path / "page.pdf").read_bytes()[:5] == b"%PDF-"
    assert (tmp_path / "page.pdf").stat().st_size > 20_000


def test_a_complaint_is_seen(page, opened, tmp_path):
    broken = tmp_path / "broken.html"
    broken.write_text(page.read_text().replace("<h1>", '<script>alert("x")</script><h1>'))
    assert opened(broken, f"--screenshot={tmp_path / 'shot.png'}")[1]
