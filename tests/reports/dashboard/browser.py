"""A headless Chromium, driven by its DevTools protocol: opens pages, runs scripts in them, hears their complaints."""

import asyncio
import base64
import itertools
import shutil
from contextlib import asynccontextmanager

import aiohttp

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
)


class Tab:
    """One page. ``complaints`` are console errors and warnings, exceptions, and what the policy refused."""

    def __init__(self, socket):
        self.complaints = []
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting = {}
        self._reader = asyncio.ensure_future(self._read())

    async def _read(self):
        async for message in self._socket:
            said = message.json()
            if "id" in said:
                self._waiting.pop(said["id"]).set_result(said)
                continue
            about = said["params"]
            match said["method"]:
                case "Runtime.exceptionThrown":
                    self.complaints.append(
                        about["exceptionDetails"]["text"]
                        + str(about["exceptionDetails"].get("exception", {}).get("description", ""))
                    )
                case "Runtime.consoleAPICalled" if about["type"] in ("error", "warning", "assert"):
                    self.complaints.append(str(about["args"]))
                case "Log.entryAdded" if about["entry"]["level"] in ("error", "warning"):
                    self.complaints.append(f"{about['entry']['text']} {about['entry'].get('url', '')}")

    async def call(self, method, **params):
        number = next(self._numbers)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        said = await self._waiting[number]
        assert "error" not in said, said
        return said["result"]

    async def run(self, script):
        """What a script gives; a promise is waited for."""
        said = await self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    async def open(self, url):
        for domain in ("Runtime", "Log", "Page"):
            await self.call(f"{domain}.enable")
        await self.call("Page.navigate", url=url)

    async def until(self, condition):
        """Waits in the page for a condition of its script to hold."""
        await self.run(
            "new Promise((done) => { const look = () => {"
            f" let held = false; try {{ held = Boolean({condition}); }} catch {{ }}"
            " if (held) done(true); else setTimeout(look, 20); }; look(); })"
        )

    async def look_like(self, *, width=1200, height=900, scheme="light", motion="no-preference"):
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": motion},
        ]
        await self.call("Emulation.setEmulatedMedia", features=features)

    async def picture(self, path):
        await self.call("Page.bringToFront")  # one in the background may never be drawn
        said = await self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(said["data"]))


@asynccontextmanager
async def browser(profile):
    """A function that opens a tab; ``profile`` is a directory for the browser's files."""
    process = await asyncio.create_subprocess_exec(
        CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        while b"DevTools listening on" not in (line := await process.stderr.readline()):
            assert line, "the browser ended"
        devtools = line.decode().rsplit(" ", 1)[1].strip().split("/")[2]
        drain = asyncio.ensure_future(process.stderr.read())
        async with aiohttp.ClientSession() as session:
            tabs = []

            async def tab():
                async with session.put(f"http://{devtools}/json/new?about:blank") as made:
                    place = (await made.json())["webSocketDebuggerUrl"]
                tabs.append(Tab(await session.ws_connect(place, max_msg_size=0)))
                return tabs[-1]

            yield tab
            for one in tabs:
                await one._socket.close()
                await one._reader
    finally:
        process.kill()
        await process.wait()
    await drain
