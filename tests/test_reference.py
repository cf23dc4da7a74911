"""The API reference is made of docstrings: they are whole, and its pages are made without a warning."""

import ast
import dataclasses
import importlib.util
import inspect
import re
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

import p2p_labeldp
from p2p_labeldp import comparing, studies

BUILD = Path(__file__).parents[1] / "docs" / "reference" / "build.py"
PUBLIC = {
    **{name: getattr(p2p_labeldp, name) for name in p2p_labeldp.__all__ if name != "__version__"},
    **{one.__name__: one for one in (studies.Simulated, studies.Accounted, studies.Planned, studies.Measured)},
    **{one.__name__: one for one in (comparing.compare, comparing.Compared, comparing.Comparison)},
}


def section(documented, name):
    """Names explained under ``Args:`` or ``Raises:``."""
    text = inspect.getdoc(documented) or ""
    found = re.search(rf"^{name}:\n((?:    .*\n?|\n)+)", text, re.MULTILINE)
    return set(re.findall(r"^    (\w+): \S", found[1], re.MULTILINE)) if found else set()


def fields_with_a_docstring(section_type):
    """Of a class whose fields have theirs below them."""
    tree = ast.parse(inspect.getsource(section_type))
    body = tree.body[0].body
    return {
        one.target.id
        for one, after in pairwise(body)
        if isinstance(one, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    }


def missing(documented):
    """What the docstring of a public object does not explain."""
    if not (inspect.getdoc(documented) or "").strip() or not documented.__doc__:
        return {"everything"}
    if inspect.isfunction(documented):
        lacking = set(inspect.signature(documented).parameters) - section(documented, "Args")
        return lacking | ({"Raises"} if not section(documented, "Raises") else set())
    if dataclasses.is_dataclass(documented):
        return {field.name for field in dataclasses.fields(documented)} - section(documented, "Args")
    if issubclass(documented, msgspec.Struct):
        return set(documented.__struct_fields__) - fields_with_a_docstring(documented)
    return set()


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_object_explains_all_that_it_takes(name):
    assert missing(PUBLIC[name]) == set()


def test_a_docstring_that_lacks_something_is_seen():
    def short(size, loss):
        """Does it.

        Args:
            size: s.
        """

    def bare(): ...

    @dataclasses.dataclass
    class Half:
        """Of it.

        Args:
            one: First.
        """

        one: int
        two: int

    assert missing(short) == {"loss", "Raises"}
    assert missing(bare) == {"everything"}
    assert missing(Half) == {"two"}


@pytest.fixture(scope="module")
def build():
    pytest.importorskip("pdoc")
    spec = importlib.util.spec_from_file_location("build", BUILD)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(build, tmp_path_factory):
    directory = tmp_path_factory.mktemp("api")
    build.build(directory)  # a warning would be an error
    return directory


def test_every_module_has_a_page_and_commands_have_none(build, pages):
    made = {".".join(path.relative_to(pages).with_suffix("").parts) for path in pages.rglob("*.html")}
    assert made - {"index"} == set(build.modules())
    assert "p2p_labeldp.accounting.planning" in made
    assert not [name for name in made if name.startswith("p2p_labeldp.cli")]


def test_pages_need_no_network(pages):
    for page in pages.rglob("*.html"):
        fetched = re.findall(r'<(?:script|link|img|iframe)[^>]* (?:src|href)="(\w+:)?//', page.read_text())
        assert not fetched, page


def test_the_first_page_leads_to_all_others(pages):
    text = (pages / "p2p_labeldp.html").read_text()
    for name in ("accounting", "studies", "owndata"):
        assert f'href="p2p_labeldp/{name}.html"' in text
    assert 'href="accounting/planning.html"' in (pages / "p2p_labeldp" / "accounting.html").read_text()
    assert 'id="simulate"' in text
    assert "Of every coin; who knows it knows every label." in text


def test_a_warning_stops_the_build(build, tmp_path, monkeypatch):
    monkeypatch.setattr(p2p_labeldp, "__all__", [*p2p_labeldp.__all__, "nosuch"])
    with pytest.raises((AttributeError, UserWarning), match="nosuch"):
        build.build(tmp_path)
    assert not list(tmp_path.iterdir())
