"""Many sizes, largest first, on processes of this machine or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from p2p_labeldp.accounting.ranges import check_count
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.measuring.kept import Kept
from p2p_labeldp.measuring.one_size import Question, measure
from p2p_labeldp.measuring.row import Row
from p2p_labeldp.network_source import unwatched


def check(question: Question, *, sizes: Sequence[int], jobs: int = 1, dask: str | None = None) -> list[int]:
    """The sizes of a sweep that is possible: each once, in increasing order.

    Raises:
        ConfigurationError: A size or number of jobs out of range, or Dask asked for and not installed.
    """
    wanted = sorted({question.check_size(size) for size in sizes})
    if not wanted:
        raise ConfigurationError("none given; at least one is needed", field="sizes")
    check_count(jobs, "jobs")
    if question.engine == "processes" and (jobs > 1 or dask is not None):
        raise ConfigurationError(
            "one round at a time is possible with --engine processes, whose peers share this machine",
            field="jobs" if dask is None else "dask",
        )
    if dask is not None:
        _dask_client(dask)
    return wanted


def sweep(
    question: Question,
    *,
    sizes: Sequence[int],
    kept: Kept,
    jobs: int = 1,
    dask: str | None = None,
    on_row: Callable[[Row], None] = lambda row: None,
    playing: Callable[[int, int], None] = unwatched,
) -> list[Row]:
    """The row of each size, in increasing order; those that are kept are not measured again.

    The rows do not depend on ``jobs``: a size's coins are its own.

    Args:
        question: What is measured.
        sizes: Cluster sizes; one given twice counts once.
        kept: Where rows are looked up and kept.
        jobs: Processes of this machine; with 1 everything runs in this one.
        dask: Address of a scheduler whose workers measure instead; its workers need this package.
        on_row: Is told each row, as soon as it is measured and kept.
        playing: Is told of each round of real peers that this process plays; see ``measure``.

    Raises:
        ConfigurationError: A size or number of jobs out of range, or Dask asked for and not installed.
    """
    wanted = check(question, sizes=sizes, jobs=jobs, dask=dask)
    known = kept.answers(question)
    missing = [size for size in reversed(wanted) if size not in known]  # the longest first: no straggler at the end
    for row in _measured(question, missing, jobs, dask, playing):
        kept.append(row)
        on_row(row)
    answers = kept.answers(question)
    return [answers[size] for size in wanted]


def _measured(
    question: Question, sizes: list[int], jobs: int, dask: str | None, playing: Callable[[int, int], None]
) -> Iterable[Row]:
    if dask is None and min(jobs, len(sizes)) <= 1:
        yield from (measure(question, size, playing) for size in sizes)
        return
    import joblib

    with _backend(jobs, dask) as count:
        parallel = joblib.Parallel(n_jobs=count, return_as="generator_unordered", batch_size=1)
        yield from parallel(joblib.delayed(measure)(question, size) for size in sizes)


@contextmanager
def _backend(jobs: int, dask: str | None) -> Iterator[int]:
    """Tells joblib where to work, and how many at a time."""
    import joblib

    if dask is None:
        # One thread a process: numbers that do not depend on the machine, and no more threads than asked for.
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            yield jobs
        return
    with _dask_client(dask)(dask) as client, joblib.parallel_config(backend="dask", client=client):
        yield -1


def _dask_client(address: str) -> Any:
    """The class, unconnected."""
    try:
        from dask.distributed import Client
    except ImportError as exc:
        raise ConfigurationError(
            f"{address!r} given, and Dask is not installed: pip install 'p2p-labeldp[dask]'", field="dask"
        ) from exc
    return Client
