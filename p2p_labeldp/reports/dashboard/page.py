"""The page: one HTML document with its own style and script, which loads nothing else.

Its policy allows this very style and this very script, by their digests, and events of the place it came from.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources

SCRIPTS = ("drawing", "panels", "graph", "page")
"""Files of the script, in the order in which they build on each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Args:
    body: The document, UTF-8.
    policy: Its Content-Security-Policy.
    """

    body: bytes
    policy: str


@cache
def page() -> Page:
    """The page, put together."""
    files = resources.files(__package__)
    html, style = (files.joinpath(name).read_text("utf-8") for name in ("page.html", "page.css"))
    script = "\n".join(files.joinpath(f"{name}.js").read_text("utf-8") for name in SCRIPTS)
    policy = (
        f"default-src 'none'; script-src {_digest(script)}; style-src {_digest(style)}; connect-src 'self';"
        " img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return Page(body=html.replace("/*style*/", style).replace("/*script*/", script).encode(), policy=policy)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
