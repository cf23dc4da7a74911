"""``data``: the image sets' files: which there are, fetching them, checking them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from p2p_labeldp.cli.answers import to_json
from p2p_labeldp.errors import ConfigurationError

if TYPE_CHECKING:
    from p2p_labeldp.datasets.catalogue import ImageSet
    from p2p_labeldp.datasets.files import Found

HELP = """Files of the image data sets: list, fetch, check.

They are looked for in --data-dir, else in the directory that the environment variable P2P_LABELDP_DATA names, else in
the user's cache.

Example:

\b
    p2p-labeldp data check mnist --data-dir /data
"""

LIST_HELP = """List the image sets, where they are published, and how many of their files are in place, unread.

Example:

\b
    p2p-labeldp data list --json
"""

FETCH_HELP = """Download the files of image sets that are missing, and keep those whose content is the published one.

Downloads are tested against a local server; the published addresses were never tried.

Example:

\b
    p2p-labeldp data fetch mnist fashion-mnist --data-dir data
"""

CHECK_HELP = """Read the files of image sets and compare their content with the published sums.

Ends with status 2 unless every file is the published one.

Example:

\b
    p2p-labeldp data check mnist --json
"""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Directory = Annotated[str | None, typer.Option("--data-dir", metavar="DIR", help="Where the files are.")]
Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Data sets. Default: all.")]

app = typer.Typer(name="data", help=HELP, rich_markup_mode=None, add_completion=False)


@app.command("list", help=LIST_HELP)
def list_sets(data_dir: Directory = None, as_json: Json = False) -> None:
    """See ``LIST_HELP``."""
    from p2p_labeldp.datasets import files
    from p2p_labeldp.datasets.catalogue import UNTRIED

    place = files.data_directory(data_dir)
    sets: list[dict[str, Any]] = [
        {
            "name": one.name,
            "classes": list(one.classes.classes),
            "files": len(one.files),
            "bytes": sum(file.size for file in one.files),
            "present": sum(files.find(one, file, place) is not None for file in one.files),
            "sources": list(one.sources),
        }
        for one in _wanted(None)
    ]
    _print(
        {"directory": str(place), "note": UNTRIED, "sets": sets},
        [
            f"directory {place}",
            *(
                f"{one['name']:<14}{one['present']} of {one['files']} files in place; from {one['sources'][0]}"
                for one in sets
            ),
            UNTRIED,
        ],
        as_json,
    )


@app.command("fetch", help=FETCH_HELP)
def fetch(
    names: Names = None,
    data_dir: Directory = None,
    source: Annotated[
        str | None, typer.Option("--source", metavar="URL", help="Instead of the published addresses; ends in /.")
    ] = None,
    as_json: Json = False,
) -> None:
    """See ``FETCH_HELP``."""
    from p2p_labeldp.datasets import download, files

    if source is not None and not (source.startswith(("http://", "https://")) and source.endswith("/")):
        raise ConfigurationError(f"{source!r} given; http(s)://.../ is possible", field="--source")
    place, written = files.data_directory(data_dir), list[Path]()
    for one in _wanted(names):
        written += download.fetch(
            one, place, sources=None if source is None else [source], say=lambda line: typer.echo(line, err=True)
        )
    paths = [str(path) for path in written]
    _print({"directory": str(place), "written": paths}, paths or ["nothing was missing"], as_json)


@app.command("check", help=CHECK_HELP)
def check(names: Names = None, data_dir: Directory = None, as_json: Json = False) -> None:
    """See ``CHECK_HELP``."""
    from p2p_labeldp.datasets import files

    place, rows, wrong = files.data_directory(data_dir), list[dict[str, Any]](), list[str]()
    for one in _wanted(names):
        for file in one.files:
            found = files.look(one, file, place)  # one at a time: their contents are large
            rows.append(_row(one, found))
            wrong += [found.detail] if found.detail else []
    lines = [f"{row['set'] + '/' + row['file']:<40}{row['state']:<12}{row['path'] or ''}".rstrip() for row in rows]
    _print({"directory": str(place), "verified": not wrong, "files": rows}, lines, as_json)
    if wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise ConfigurationError(f"{wrong[0]}{more}", field="data check")


def _wanted(names: list[str] | None) -> list[ImageSet]:
    from p2p_labeldp.datasets import catalogue

    return [catalogue.find(name) for name in names or catalogue.IMAGE_SETS]


def _row(one: ImageSet, found: Found) -> dict[str, Any]:
    return {
        "set": one.name,
        "file": found.file.name,
        "state": found.state.value,
        "path": None if found.path is None else str(found.path),
        "detail": found.detail or None,
    }


def _print(record: dict[str, Any], lines: list[str], as_json: bool) -> None:
    typer.echo(to_json(record) if as_json else "\n".join(lines))
