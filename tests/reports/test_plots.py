"""Figures are written whole, in three formats, and are the same for the same numbers."""

import math
from pathlib import Path

import pytest

import p2p_labeldp
from p2p_labeldp.reports import plots
from p2p_labeldp.reports.plots import Band, bands_against_size, save

BANDS = [
    Band(cluster_size=8, measured=0.7, exact=0.9, shuffle=2.1, local=2.2, accuracy=0.9, accuracy_non_private=0.92),
    Band(cluster_size=64, measured=0.5, exact=0.8, shuffle=1.9, local=2.2, accuracy=0.8, accuracy_non_private=0.92),
    Band(cluster_size=512, measured=0.0, exact=0.3, shuffle=0.5, local=2.2),
]


def labels(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def test_the_figure_has_the_band_the_shuffle_and_the_local_value():
    figure = bands_against_size(BANDS[2:], title="t")
    [axis] = figure.axes
    assert labels(figure) == [
        r"local, $\ln((1-f)/f)$", "trusted shuffler, exact", "resampling, exact", "resampling, measured",
    ]  # fmt: skip
    by_label = {line.get_label(): list(line.get_ydata()) for line in axis.lines}
    assert by_label["resampling, exact"] == [0.3]
    assert by_label["resampling, measured"] == [0.0]
    assert by_label["trusted shuffler, exact"] == [0.5]
    assert len(axis.collections) == 1


def test_accuracy_stands_beside_where_there_is_any():
    figure = bands_against_size(BANDS, title="t")
    assert len(figure.axes) == 2
    assert [list(line.get_xdata()) for line in figure.axes[1].lines] == [[8, 64], [8, 64]]


def test_without_flips_there_is_nothing_to_draw_and_no_complaint(tmp_path):
    endless = Band(cluster_size=8, measured=3.0, exact=math.inf, shuffle=math.inf, local=math.inf)
    figure = bands_against_size([endless], title="t")
    assert [text.get_text() for text in figure.axes[0].texts] == [r"no flips: $\varepsilon$ is infinite"]
    save(figure, tmp_path / "a")


def test_the_same_numbers_give_the_same_files(tmp_path):
    written = [save(bands_against_size(BANDS, title="t"), tmp_path / name / "measure") for name in made(tmp_path)]
    assert [path.name for path in written[0]] == ["measure.png", "measure.svg", "measure.pdf"]
    for first, second in zip(*written, strict=True):
        assert first.read_bytes() == second.read_bytes()
    magic = [b"\x89PNG", b"<?xml", b"%PDF"]
    assert [path.read_bytes()[: len(begins)] for path, begins in zip(written[0], magic, strict=True)] == magic
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["measure.pdf", "measure.png", "measure.svg"]
    assert b"trusted shuffler, exact" in written[0][1].read_bytes()  # text is text


def made(path):
    for name in ("a", "b"):
        (path / name).mkdir()
    return ("a", "b")


def test_what_is_drawn_is_left_as_it_was_if_a_format_fails(tmp_path, monkeypatch):
    figure = bands_against_size(BANDS, title="t")
    save(figure, tmp_path / "measure")
    before = (tmp_path / "measure.png").read_bytes()
    monkeypatch.setattr(plots, "FORMATS", ("png",))
    monkeypatch.setattr(type(figure), "savefig", lambda *_args, **_rest: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        save(figure, tmp_path / "measure")
    assert (tmp_path / "measure.png").read_bytes() == before


def test_nothing_else_in_the_package_imports_matplotlib():
    root = Path(p2p_labeldp.__file__).parent
    importers = {
        path.relative_to(root).as_posix() for path in root.rglob("*.py") if "import matplotlib" in path.read_text()
    }
    assert importers == {"reports/plots.py"}
