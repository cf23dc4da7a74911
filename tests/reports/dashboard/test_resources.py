"""What processes take is added up over those started by one, from files like those of /proc."""

import os

from p2p_labeldp.reports.dashboard.resources import look

TICK = 1 / os.sysconf("SC_CLK_TCK")


def process(proc, pid, parent, *, ticks=(0, 0, 0, 0), pss=None, name="python"):
    directory = proc / str(pid)
    directory.mkdir()
    (directory / "stat").write_text(f"{pid} ({name}) S {parent} " + "0 " * 9 + " ".join(map(str, ticks)) + " 20 0 1")
    if pss is not None:
        (directory / "smaps_rollup").write_text(f"00-ff ---p 0 00:00 0 [rollup]\nRss: 9999 kB\nPss:  {pss} kB\n")


def test_all_below_a_process_count_and_no_other(tmp_path):
    (tmp_path / "meminfo").write_text("not a process")
    process(tmp_path, 1, 0, ticks=(1000, 0, 0, 0), pss=5000)
    process(tmp_path, 10, 1, ticks=(1, 2, 3, 4), pss=10, name="a ) (b")
    process(tmp_path, 11, 10, ticks=(10, 0, 0, 0), pss=20)
    process(tmp_path, 12, 11, ticks=(0, 20, 0, 0), pss=30)
    process(tmp_path, 13, 1, ticks=(500, 0, 0, 0), pss=7000)
    assert look(10, proc=tmp_path) == {"processes": 3, "cpu_seconds": 40 * TICK, "memory_bytes": 60 * 1024}


def test_what_is_gone_or_not_told_is_left_out(tmp_path):
    process(tmp_path, 10, 1, ticks=(7, 0, 0, 0))
    process(tmp_path, 11, 10, ticks=(5, 0, 0, 0))
    (tmp_path / "11" / "stat").unlink()
    (tmp_path / "12").mkdir()
    (tmp_path / "12" / "stat").write_text("")
    assert look(10, proc=tmp_path) == {"processes": 1, "cpu_seconds": 7 * TICK}


def test_this_process_is_found():
    usage = look(os.getpid())
    assert usage["processes"] >= 1
    assert usage["cpu_seconds"] > 0
    assert usage["memory_bytes"] > 1 << 20
