"""A run in a directory of its own, with the statement that others can check."""

from __future__ import annotations

from functools import partial

from p2p_labeldp import statement
from p2p_labeldp.experiment.running import Run
from p2p_labeldp.results import RunDirectory


def keep(done: Run, directory: RunDirectory) -> None:
    """Writes all files of a run."""
    stated = partial(statement.files, result=done.result, config=done.config, noisy=done.noisy, basis=done.basis)
    directory.write(result=done.result, facts=done.facts, noisy=done.noisy, config=done.config, more=stated)
