"""What a machine or a container has to give, read from trees of files as Linux has them."""

from types import SimpleNamespace

import pytest

from p2p_labeldp.network import limits

MEMINFO = "MemTotal:       24684084 kB\nMemFree:        1 kB\nMemAvailable:   8000000 kB\n"
GB = 10**9


@pytest.fixture
def machine(tmp_path):
    """A machine without control groups; ``put`` adds files."""

    def put(path, text):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    put("proc/meminfo", MEMINFO)
    put("proc/sys/kernel/pid_max", "32768\n")
    put("proc/sys/kernel/threads-max", "192730\n")
    put("proc/loadavg", "1.00 1.00 1.00 3/768 4711\n")
    put("proc/self/cgroup", "")
    return SimpleNamespace(put=put, read=lambda: limits.read(tmp_path))


def test_without_groups_it_is_the_machine_that_limits(machine, monkeypatch):
    monkeypatch.setattr(limits.os, "geteuid", lambda: 0)
    found = machine.read()
    assert (found.memory, found.memory_of) == (8000000 * 1024, "machine")
    assert (found.processes, found.processes_of) == (32768 - 768, "machine")


def test_a_user_is_bound_by_its_own_number_of_processes_and_root_is_not(machine, monkeypatch):
    monkeypatch.setattr(limits.resource, "getrlimit", lambda _: (1000, 5000))
    monkeypatch.setattr(limits.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(limits.os, "getuid", lambda: 1000)
    machine.put("proc/12/status", "Uid:\t1000\t1000\t1000\t1000\nThreads:\t3\n")
    machine.put("proc/13/status", "Uid:\t1001\t1001\t1001\t1001\nThreads:\t5\n")
    assert machine.read().processes == 1000 - 3
    monkeypatch.setattr(limits.os, "geteuid", lambda: 0)
    assert machine.read().processes == 32768 - 768


@pytest.mark.parametrize("path", ["", "a/b"], ids=["in a container", "on the host"])
def test_a_container_of_version_2_is_read_where_its_group_is(machine, path):
    machine.put("proc/self/cgroup", "0::/a/b\n")
    here = f"sys/fs/cgroup/{path}"
    machine.put(f"{here}/memory.max", f"{2 * GB}\n")
    machine.put(f"{here}/memory.current", f"{GB}\n")
    machine.put(f"{here}/memory.stat", "anon 5\ninactive_file 250000000\n")
    machine.put(f"{here}/pids.max", "100\n")
    machine.put(f"{here}/pids.current", "10\n")
    machine.put(f"{here}/cpu.max", "150000 100000\n")
    found = machine.read()
    assert (found.memory, found.processes, found.cores) == (GB + 250_000_000, 90, 1.5)
    assert found.memory_of.endswith("memory.max")


def test_a_container_of_version_1_is_read_by_controller(machine):
    machine.put("proc/self/cgroup", "8:pids:/x\n4:memory:/x\n1:cpu,cpuacct:/x\n0::/\n")
    machine.put("sys/fs/cgroup/memory/x/memory.limit_in_bytes", f"{GB}\n")
    machine.put("sys/fs/cgroup/memory/x/memory.usage_in_bytes", f"{GB // 2}\n")
    machine.put("sys/fs/cgroup/memory/x/memory.stat", "inactive_file 1\ntotal_inactive_file 1000\n")
    machine.put("sys/fs/cgroup/pids/x/pids.max", "50\n")
    machine.put("sys/fs/cgroup/pids/x/pids.current", "8\n")
    machine.put("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "50000\n")
    machine.put("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n")
    found = machine.read()
    assert (found.memory, found.processes, found.cores) == (GB // 2 + 1000, 42, 0.5)


@pytest.mark.parametrize("unlimited", ["max", str(2**63 - 4096), "-1"])
def test_no_limit_is_none_in_either_version(machine, unlimited):
    machine.put("proc/self/cgroup", "8:pids:/\n4:memory:/\n0::/\n")
    for file in ("memory/memory.limit_in_bytes", "memory.max", "pids/pids.max", "pids.max"):
        machine.put(f"sys/fs/cgroup/{file}", unlimited)
    found = machine.read()
    assert (found.memory_of, found.processes_of) == ("machine", "machine")


def test_a_group_above_limits_those_within(machine):
    machine.put("proc/self/cgroup", "0::/outer/inner\n")
    for group, most in (("outer", 1), ("outer/inner", 4)):
        machine.put(f"sys/fs/cgroup/{group}/memory.max", f"{most * GB}\n")
        machine.put(f"sys/fs/cgroup/{group}/memory.current", "0\n")
    assert machine.read().memory == GB


def test_what_is_used_up_leaves_nothing_and_not_less(machine):
    machine.put("proc/self/cgroup", "0::/\n")
    machine.put("sys/fs/cgroup/memory.max", "100\n")
    machine.put("sys/fs/cgroup/memory.current", "200\n")
    assert machine.read().memory == 0


def test_where_nothing_can_be_read_nothing_is_claimed(tmp_path):
    found = limits.read(tmp_path)
    assert found.memory is None
    assert found.processes_of in ("unknown", "machine")


def test_this_machine_can_be_read():
    found = limits.read()
    assert found.memory is None or found.memory > 0
    assert found.descriptors > 0
    assert found.addresses > 1000
    assert found.cores > 0
    assert 0 < found.clock_step_seconds < 1
