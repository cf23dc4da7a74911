"""Builds the API reference from the docstrings: pages that need no network, one a module.

    python docs/reference/build.py DIR

The commands are left out: their ``--help`` is what there is to read.
"""

from __future__ import annotations

import pkgutil
import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pdoc
import pdoc.render

import p2p_labeldp

LEFT_OUT = ("p2p_labeldp.cli", "p2p_labeldp.__main__")


def modules() -> list[str]:
    """All that there are pages of."""
    found = (one.name for one in pkgutil.walk_packages(p2p_labeldp.__path__, "p2p_labeldp."))
    return ["p2p_labeldp", *(name for name in found if not name.startswith(LEFT_OUT))]


def wanted() -> Iterator[str]:
    """What has to be named to pdoc: of a package that has an ``__all__`` it finds what stands there alone."""
    yield "p2p_labeldp"
    for module in modules()[1:]:
        package, _, name = module.rpartition(".")
        curated = getattr(import_module(package), "__all__", None)
        if curated is not None and name not in curated:
            yield module


def parts(module: str) -> list[str]:
    """The modules right below one."""
    return [name for name in modules() if name.rpartition(".")[0] == module]


def build(directory: Path) -> None:
    """Writes the pages; a warning is an error."""
    for name in p2p_labeldp.__all__:  # imported when they are first used, which pdoc does not do
        setattr(p2p_labeldp, name, getattr(p2p_labeldp, name))
    pdoc.render.configure(
        docformat="google",
        footer_text=f"p2p_labeldp {p2p_labeldp.__version__}",
        show_source=False,
        template_directory=Path(__file__).parent,
    )
    pdoc.render.env.globals["parts"] = parts
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pdoc.pdoc(*wanted(), output_directory=directory)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
