"""What a command prints: one JSON object, or one line about what is wrong with its arguments."""

import json

import pytest

from p2p_labeldp.cli import main


def printed(capsys, *arguments):
    """The JSON object on stdout; NaN and bare infinities are none."""
    assert main([*map(str, arguments), "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def complaint(capsys, *arguments, status=2):
    """The one line on stderr, of a command that prints nothing else."""
    assert main([*map(str, arguments)]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("p2p-labeldp: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err.removeprefix("p2p-labeldp: ").strip()
