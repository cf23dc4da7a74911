"""A headless Chromium follows real rounds to their end; skipped where there is none."""

import asyncio
import re
import sys

import aiohttp
import msgspec
import pytest
from free_ports import free_ports
from reports.dashboard.browser import CHROMIUM, browser

from p2p_labeldp.cli.app import main

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed"),
]

PHASES = ["Start", "Join", "Exchange", "Closing", "Report", "Training", "The round is over"]


def settings(**seconds):
    return [text for name, value in seconds.items() for text in ("--set", f"exchange.deadlines.{name}={value}")]


STUDY = settings(join=6, exchange=4, closing=4, report=2)
DEPLOYED = settings(join=20, exchange=8, closing=8, report=3)  # its peers start one after the other
RECORD = """
    window.spoken = [];
    const note = () => spoken.push(document.getElementById("announce").textContent);
    new MutationObserver(note).observe(document.getElementById("announce"), { childList: true });
    note();
"""


async def command(*arguments):
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "p2p_labeldp", *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )


async def said(process, pattern):
    """What the first line of stderr says that has the pattern."""
    while line := (await process.stderr.readline()).decode():
        if found := re.search(pattern, line):
            return found[1]
    pytest.fail(f"it ended without {pattern}")


def free_places(count):
    return [f"127.0.0.1:{port}" for port in free_ports(count)]


async def all_cells(url):
    """Every cell that a viewer is sent until the end, and the bytes of the stream."""
    cells, stream = {}, b""
    async with aiohttp.ClientSession(read_bufsize=1 << 20) as session, session.get(url + "events") as response:
        while line := await response.content.readline():
            stream += line
            if line.startswith(b"data: {"):
                cells |= msgspec.json.decode(line.removeprefix(b"data: "))["cells"]
    return cells, stream


async def followed(tab, url):
    """The phases as they were read aloud, when the command has ended."""
    await tab.open(url)
    await tab.until("document.getElementById('steps').children.length")
    await tab.run(RECORD)
    await tab.until("document.getElementById('link').dataset.state === 'ended'")
    return [text.partition(":")[0].partition(".")[0] for text in await tab.run("spoken") if text]


async def fits(tab, width, scheme):
    await tab.look_like(width=width, scheme=scheme)
    await tab.run("new Promise((done) => setTimeout(done, 0))")
    return await tab.run("document.documentElement.scrollWidth <= innerWidth")


async def focused_by_tab(tab, presses):
    """Ids, or names, of what the tab key comes to."""
    found = []
    for _ in range(presses):
        for kind in ("rawKeyDown", "keyUp"):
            await tab.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
        found.append(
            await tab.run(
                "document.activeElement.id || document.activeElement.className || document.activeElement.tagName"
            )
        )
    return found


async def test_a_study_is_followed_to_its_end_with_the_graph_of_its_asks(tmp_path):
    small = ["--set", "data.peers=12", "--set", "clusters.count=1", "--set", "clusters.minimum_size=3"]
    async with browser(tmp_path) as new_tab:
        tab = await new_tab()
        (place,) = free_places(1)
        process = await command("run", "--dashboard", place, *small, *STUDY)
        try:
            url = await said(process, r"dashboard: (\S+)")
            assert url == f"http://{place}/"
            watching = asyncio.ensure_future(all_cells(url))
            spoken = await followed(tab, url)
            _, complaints = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode == 0, complaints
        assert [phase for phase in PHASES if phase in spoken] == spoken
        assert {"Join", "Exchange", "Closing", "Report", "The round is over"} <= set(spoken)
        cells, _ = await watching
        asked = {name: node for name, node in cells.items() if name.startswith("peer/") and node[2] is not None}
        assert len(asked) == cells["steps"]["asked"] > 0
        assert await tab.run("document.querySelectorAll('#graph .node').length") == 12
        assert await tab.run("document.querySelectorAll('#graph path.ask').length") == len(asked)
        assert "seed 0" in await tab.run("document.getElementById('remarks').textContent")
        assert await tab.run("document.querySelectorAll('#guarantee tr').length") == 4
        assert await tab.run("document.querySelectorAll('#clusters tbody tr').length") == 1
        for width, scheme in ((1200, "dark"), (390, "light")):
            assert await fits(tab, width, scheme)
            await tab.picture(tmp_path / f"{width}-{scheme}.png")
        reached = await focused_by_tab(tab, 6)
        assert reached[0] == "skip"
        assert {"choice", "SUMMARY"} <= set(reached)
        assert tab.complaints == []


async def test_the_console_tells_what_the_page_does_wrong(tmp_path):
    """The control of an empty list of complaints."""
    async with browser(tmp_path) as new_tab:
        tab = await new_tab()
        page = "<meta http-equiv=Content-Security-Policy content=\"script-src 'none'\"><script>1</script>"
        await tab.open(f"data:text/html,{page}")
        await tab.until("document.readyState === 'complete'")
        await tab.run("setTimeout(() => missing(), 0); new Promise((done) => setTimeout(done, 1))")
        assert any("Content Security Policy" in one for one in tab.complaints)
        assert any("missing is not defined" in one for one in tab.complaints)


async def test_a_deployed_learner_is_followed_and_nobody_is_named(tmp_path, capsys):
    assert main(["examples", "breast-cancer", "--count", "3", "--out", str(tmp_path / "people")]) == 0
    keys = [str(tmp_path / f"{number}.key") for number in range(3)]
    capsys.readouterr()
    for key in keys:
        assert main(["keygen", key]) == 0
    ids = capsys.readouterr().out.split()
    at, page, *places = free_places(5)
    running = []
    async with browser(tmp_path / "browser") as new_tab:
        tab = await new_tab()
        try:
            learner = await command("learner", "by-hand", "--json", "--listen", at, "--dashboard", page, *DEPLOYED)
            running.append(learner)
            url = await said(learner, r"dashboard: (\S+)")
            watching = asyncio.ensure_future(all_cells(url))
            following = asyncio.ensure_future(followed(tab, url))
            address = await said(learner, r"([0-9a-f]{64}@\S+);")
            contact = ()
            for number, place in enumerate(places):
                peer = await command(
                    "peer", str(tmp_path / "people" / f"{number}.json"), "--key", keys[number], "--listen", place,
                    "--classes", "malignant,benign", "--learner", address, *contact,
                )  # fmt: skip
                running.append(peer)
                contact = ("--contact", f"{ids[0]}@{places[0]}")
            ends = [await one.communicate() for one in running]
            spoken = await following
        finally:
            for one in running:
                if one.returncode is None:
                    one.kill()
                    await one.wait()
        assert learner.returncode == 0, ends
        reported = msgspec.json.decode(ends[0][0])["outcomes"].get("reported", 0)  # of three, on an idle machine
        assert {"Join", "Exchange", "Closing", "Report", "The round is over"} <= set(spoken)
        cells, stream = await watching
        assert cells["steps"]["accepted"] == reported
        assert not any(name.startswith("peer/") for name in cells)
        named = [one for one in (*ids, address) if one[:16].encode() in stream]  # by the short ids of facts
        assert named == []
        assert await tab.run("document.getElementById('asks').hidden")
        assert not await tab.run("document.getElementById('unshown').hidden")
        assert await tab.run("document.querySelectorAll('#graph .node').length") == 0
        assert tab.complaints == []
