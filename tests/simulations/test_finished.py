"""What is finished is not run again, whatever stopped the run."""

from dataclasses import dataclass

import pytest

from finished import Finished, finish

SETTINGS = {"seed": 1, "levels": (0.5, 1.0)}


@dataclass(frozen=True)
class Square:
    number: int

    @property
    def key(self) -> str:
        return f"square {self.number}"


class Worker:
    """Squares numbers; stops at one, as a kill would."""

    def __init__(self, stops_at: int | None = None) -> None:
        self.stops_at, self.ran = stops_at, []

    def __call__(self, cell: Square) -> dict[str, int]:
        if cell.number == self.stops_at:
            raise KeyboardInterrupt
        self.ran.append(cell.number)
        return {"square": cell.number**2}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "finished.jsonl"


def run(path, worker, *, settings=SETTINGS, count=4):
    with Finished(path, settings) as kept:
        finish("squares", [Square(number) for number in range(count)], worker, kept=kept, jobs=1)
        return kept.values


def test_a_run_that_was_stopped_goes_on_where_it_was(path):
    with pytest.raises(KeyboardInterrupt):
        run(path, Worker(stops_at=2))
    again = Worker()
    values = run(path, again)
    assert again.ran == [2, 3]
    assert values == {f"square {number}": {"square": number**2} for number in range(4)}


def test_a_line_that_was_cut_off_is_dropped_and_run_again(path):
    run(path, Worker())
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    again = Worker()
    run(path, again)
    assert again.ran == [3]
    assert path.read_bytes().count(b"\n") == 4
    finally_ = Worker()
    run(path, finally_)
    assert finally_.ran == []


def test_other_settings_run_everything_and_leave_the_first_ones_lines(path):
    run(path, Worker())
    other, same = Worker(), Worker()
    run(path, other, settings=SETTINGS | {"seed": 2})
    run(path, same)
    assert (other.ran, same.ran) == ([0, 1, 2, 3], [])


def test_two_runs_at_once_are_refused(path):
    with Finished(path, SETTINGS), pytest.raises(SystemExit, match="held by another run"):
        run(path, Worker())
    run(path, Worker())


def test_progress_and_cpu_time_are_told(path, capsys):
    run(path, Worker())
    assert capsys.readouterr().err.splitlines()[-1].startswith("squares: 4/4, ")


@pytest.mark.processes
def test_two_processes_find_what_one_finds(path):
    from figure1_curves import FlipCell, flips

    cells = [FlipCell(epsilon=epsilon, num_classes=10, sizes=(2, 5)) for epsilon in (1.0, 2.0)]
    found = []
    for jobs in (1, 2):
        with Finished(path.with_name(f"{jobs}.jsonl"), SETTINGS) as kept:
            finish("flips", cells, flips, kept=kept, jobs=jobs)
            found.append(kept.values)
    assert found[0] == found[1]
    assert len(found[0]) == 2
