"""A mechanism of the user's own, named as ``module:object`` or ``path/to/file.py:object``.

The object is a ``Mechanism`` (``auditing.mechanism``), or a class or function that makes one; the latter is called with
``flip_probability`` if it has a parameter of that name. Loading runs the user's code, which is what it was named for.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from p2p_labeldp.auditing import Mechanism
from p2p_labeldp.errors import ConfigurationError, LabelDPError

FIELD = "--mechanism"
CLASSES = 2


def load(reference: str, *, flip_probability: float | None = None) -> Mechanism:
    """The mechanism that ``reference`` names.

    Args:
        reference: ``module:object`` or ``file.py:object``.
        flip_probability: For one that is made; None leaves it to the maker.

    Raises:
        ConfigurationError: No such file, module or object, code that fails, or an object that is no mechanism.
    """
    place, separator, name = reference.rpartition(":")
    if not (separator and place and name):
        raise ConfigurationError(f"{reference!r} given; module:object or file.py:object is needed", field=FIELD)
    module = _imported(place)
    found = getattr(module, name, None)
    if found is None:
        raise ConfigurationError(f"{place} has no {name}", field=FIELD)
    if isinstance(found, type) or not hasattr(found, "sample"):
        found = _made(found, name, flip_probability)
    if not isinstance(found, Mechanism):
        raise ConfigurationError(f"{name} is no mechanism: it needs classes and sample(labels, rng)", field=FIELD)
    return found


def load_flipping(reference: str, *, flip_probability: float | None = None) -> Mechanism:
    """The same, of one that claims to be resampling with binary labels: it says so by its ``flip_probability``.

    Raises:
        ConfigurationError: Also for any other mechanism.
    """
    found = load(reference, flip_probability=flip_probability)
    if not flips(found):
        raise ConfigurationError(
            f"{reference} has no flip_probability, or not {CLASSES} classes: what it promises is not resampling's;"
            " the audit command takes it",
            field=FIELD,
        )
    return found


def flips(mechanism: Mechanism) -> bool:
    """Whether it claims to be resampling with binary labels."""
    return mechanism.classes == CLASSES and getattr(mechanism, "flip_probability", None) is not None


def fingerprint(reference: str) -> str:
    """``reference`` and the start of its source's SHA-256, so that rows of changed code are not taken for its own."""
    source = _imported(reference.rpartition(":")[0]).__file__
    content = Path(source).read_bytes() if source else b""
    return f"{reference}@{hashlib.sha256(content).hexdigest()[:12]}"


@contextmanager
def blaming(reference: str) -> Iterator[None]:
    """What the user's code raises is said in one line, with the place.

    Raises:
        ConfigurationError: In place of it.
    """
    try:
        yield
    except LabelDPError:
        raise
    except Exception as exc:
        frames = traceback.extract_tb(exc.__traceback__)
        place = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}"
        raise ConfigurationError(f"{reference} raised {_line(exc)} ({place})", field=FIELD) from exc


def _imported(place: str) -> ModuleType:
    try:
        if not place.endswith(".py"):
            if "" not in sys.path and str(Path.cwd()) not in sys.path:
                sys.path.append(str(Path.cwd()))  # a module beside which the command is run, as with python -m
            return importlib.import_module(place)
        path = Path(place).resolve()
        name = f"_own_mechanism_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
    except Exception as exc:  # whatever the user's code raises
        raise ConfigurationError(f"{place} can't be imported: {_line(exc)}", field=FIELD) from exc
    return module


def _made(maker: Callable[..., Any], name: str, flip_probability: float | None) -> Any:
    try:
        takes_flip = "flip_probability" in inspect.signature(maker).parameters
        if takes_flip and flip_probability is not None:
            return maker(flip_probability=flip_probability)
        return maker()
    except Exception as exc:
        raise ConfigurationError(f"{name} can't be made: {_line(exc)}", field=FIELD) from exc


def _line(exc: Exception) -> str:
    """The error's kind and the first line of what it says."""
    text = str(exc).splitlines()
    return f"{type(exc).__name__}: {text[0]}" if text else type(exc).__name__
