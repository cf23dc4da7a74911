"""Every command and every piece of Python in the documents is extracted from the Markdown and run, in order.

A block of code is a fenced one, or lines indented by four spaces. A comment above it says what else is done with it:
``not run: why``; ``fails: why``, where a mistake is shown; ``terminals: ...``, where commands run beside each other;
``printed: ...`` above what the command before it prints, among other lines, words alike and numbers nearly so.
Python whose first line ends with a comment that is the name of a file is also kept under it, for the commands below;
with the comment ``kept: why`` it is only that.
"""

import os
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from free_ports import free_ports

import p2p_labeldp

ROOT = Path(__file__).parents[1]
DOCUMENTS = ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
LEAST = {  # blocks that run
    "README.md": 13,
    "docs/tutorial.md": 14,
    "docs/attack-us.md": 8,
    "docs/deploy.md": 2,
    "docs/mechanisms.md": 3,
    "docs/updates.md": 5,
}
PROGRAMS = ("p2p-labeldp", "make", "git", "pip", "docker", "kubectl", "sudo", "build-image", "python")
WORDS = ("for", "source")
PHASES = {"join": 12, "exchange": 5, "closing": 5, "report": 3}  # and as much more as a command takes seconds to start
SECONDS = 1200


@dataclass(frozen=True)
class Block:
    kind: str  # sh, python, text
    lines: tuple[str, ...]
    comment: str


def blocks(text):
    """All blocks of code, in order."""
    found, comment, lines = [], "", text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        if match := re.fullmatch(r"<!-- (.*) -->", line):
            comment = match[1]
        elif line.startswith("```"):
            end = lines.index("```", at + 1)
            found.append(Block(line[3:] or "text", tuple(lines[at + 1 : end]), comment))
            at, comment = end, ""
        elif line.startswith("    "):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            code = tuple(line[4:] for line in lines[at:end])
            first = code[0].split()[0]
            kind = "sh" if first in WORDS or first.rpartition("/")[2] in PROGRAMS else "text"
            found.append(Block(kind, code, comment))
            at, comment = end - 1, ""
        elif line.strip():
            comment = ""
        at += 1
    return found


def of(name):
    return blocks((ROOT / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """Runs a script where ``p2p-labeldp`` is this package."""
    place = tmp_path_factory.mktemp("bin")
    for name in ("p2p-labeldp", ".venv/bin/p2p-labeldp"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -m p2p_labeldp "$@"\n')
        (place / name).chmod(0o755)
    (place / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (place / "python").chmod(0o755)
    package = Path(p2p_labeldp.__file__).parents[1]
    path = f"{place}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(package), "OPENBLAS_NUM_THREADS": "1"}

    def run(arguments, directory):
        return subprocess.run(
            arguments, cwd=directory, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )

    run.environment = environment
    return run


def test_blocks_are_told_apart():
    text = (
        "Text.\n\n<!-- not run: why -->\n    make it\n\n    peers  5\n\nMore\n\n```python\nprint(1)\n```\n\n"
        "    p2p-labeldp run \\\n        --json\n\n```sh\np2p-labeldp plan\n```\n"
        "<!-- lost -->\nwords\n```text\nout\n```\n"
    )
    assert [(block.kind, block.lines[0], block.comment) for block in blocks(text)] == [
        ("sh", "make it", "not run: why"),
        ("python", "print(1)", ""),
        ("sh", "p2p-labeldp run \\", ""),
        ("sh", "p2p-labeldp plan", ""),
        ("text", "out", ""),
    ]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_no_command_hides_in_a_block_that_is_not_run(name):
    for block in of(name):
        if block.kind not in ("sh", "python"):
            assert not any(re.match(rf"\s*(\S*/)?({'|'.join(PROGRAMS)}) ", line) for line in block.lines), block
        assert re.match(r"$|(not run|fails|terminals|printed|kept): \S", block.comment), block.comment


def test_no_other_document_has_commands():
    for name in set(DOCUMENTS) - set(LEAST):
        assert not [block for block in of(name) if block.kind != "text"], name


def dead_links(name):
    """The links to other files, and to headings in them, that lead nowhere; from the folder of the document."""
    text, here = (ROOT / name).read_text(encoding="utf-8"), ROOT / name
    for target in re.findall(r"\]\(([^)]+)\)", text):
        path, _, heading = target.partition("#")
        there = (here.parent / path).resolve() if path else here
        if "://" in target:
            continue
        if not there.exists() or (heading and heading not in _anchors(there.read_text(encoding="utf-8"))):
            yield target


def _anchors(text):
    """What GitHub calls the headings: lower case, punctuation dropped, hyphens for spaces."""
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_leads_somewhere(name):
    assert list(dead_links(name)) == []


def test_a_link_that_leads_nowhere_is_seen(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "one.md").write_text("# A, b\n[x](#a-b) [x](#b) [x](two.md) [x](one.md#a-b) [x](https://example.org)")
    assert list(dead_links("one.md")) == ["#b", "two.md"]


@pytest.mark.processes
@pytest.mark.parametrize("name", LEAST)
def test_every_command_runs(name, shell, tmp_path):
    ran, printed = 0, ""
    for block in of(name):
        code = "\n".join(block.lines)
        if block.comment.startswith("printed"):
            assert all(any(alike(line, said) for said in printed.splitlines()) for line in block.lines), printed
        if block.kind == "text" or block.comment.startswith("not run"):
            continue
        if block.comment.startswith("terminals"):
            _terminals(code, shell, tmp_path)
        elif block.kind == "python":
            if kept := re.search(r"  # (\w+\.py)$", block.lines[0]):
                (tmp_path / kept[1]).write_text(code + "\n", encoding="utf-8")
            if block.comment.startswith("kept"):
                assert kept, code
                continue
            done = shell([sys.executable, "-W", "error::SyntaxWarning", "-c", code], tmp_path)
            assert done.returncode == 0, (code, done.stderr)
            printed = done.stdout
        else:
            done = shell(["bash", "-euo", "pipefail", "-c", code.replace(".venv/bin/", "")], tmp_path)
            if block.comment.startswith("fails"):
                assert done.returncode == 2, code
                assert done.stderr.splitlines()[-1].startswith("p2p-labeldp: ")
            else:
                assert done.returncode == 0, (code, done.stderr)
                assert done.stdout
                printed = done.stdout
        ran += 1
    assert ran >= LEAST[name]


NEARLY = 0.25
"""Numbers of a seeded run move a little from one version of a library to the next; 0 does not."""


def alike(shown, said):
    """Whether two lines have the same words and nearly the same numbers."""
    ours, theirs = shown.split(), said.split()
    return len(ours) == len(theirs) and all(map(_alike, ours, theirs))


def _alike(shown, said):
    if not (re.fullmatch(r"[\d.]+", shown) and re.fullmatch(r"[\d.]+", said)):
        return shown == said
    return abs(float(said) - float(shown)) <= NEARLY * float(shown)


def test_what_is_printed_is_compared():
    assert alike("0 of 123 said two", "0 of 118 said two")
    assert not alike("0 of 123 said two", "1 of 123 said two")
    assert not alike("0 of 123 said two", "0 of 60 said two")
    assert not alike("verdict pass", "verdict fail: flip_rate")
    assert not alike("verdict fail: flip_rate", "verdict fail: flip_rate, self_picks")


def test_a_command_that_does_not_run_is_seen(shell, tmp_path):
    assert shell(["bash", "-euc", "p2p-labeldp run nosuch"], tmp_path).returncode == 2
    assert shell(["bash", "-euc", "p2p-labeldp nosuch\np2p-labeldp configs"], tmp_path).returncode == 2


def _terminals(code, shell, directory):
    """The learner first; then the peers, who are given its address and the first one's id."""
    learner, *peers = [shlex.split(line) for line in code.replace("\\\n", " ").splitlines() if line.strip()]
    ports = free_ports(4)
    began = time.monotonic()
    assert shell(["p2p-labeldp", "keygen", "--help"], directory).returncode == 0
    slower = 1 + time.monotonic() - began

    def started(words, filled):
        words = [_filled(word, filled) for word in words]
        return subprocess.Popen(
            words, cwd=directory, env=shell.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    places = {f":78{i:02}": f":{port}" for i, port in enumerate(ports)}
    phases = {phase: f"{slower * seconds:.1f}" for phase, seconds in PHASES.items()}
    shorter = [word for phase, s in phases.items() for word in ("--set", f"exchange.deadlines.{phase}={s}")]
    running = [started([*learner, *shorter], places)]
    try:
        address = re.search(r"[0-9a-f]{64}@\S+:\d+", running[0].stderr.readline())[0]
        identity = _identity(directory / "0.key")
        running += [started(peer, {**places, "LEARNER": address, "ID_OF_PEER_0": identity}) for peer in peers]
        for peer in running[1:]:
            out, err = peer.communicate(timeout=SECONDS)
            assert out == "reported\n", err
        out, err = running[0].communicate(timeout=SECONDS)
        assert "3 reported" in out, err
    finally:
        for process in running:
            process.kill()
            process.communicate()


def _filled(word, filled):
    for name, value in filled.items():
        word = word.replace(name, value)
    return word


def _identity(key):
    from p2p_labeldp.cli.keygen import keys_of
    from p2p_labeldp.crypto.keys import Keys
    from p2p_labeldp.randomness import Secret

    return Keys(Secret(keys_of(str(key))[0]).identity()).peer_id.hex()
