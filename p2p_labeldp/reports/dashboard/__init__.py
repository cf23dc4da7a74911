"""A page on which a round can be watched while it happens.

``board`` turns facts into what is shown, without I/O; ``resources`` asks the operating system what the processes take;
``page`` puts ``page.html``, ``page.css`` and ``page.js`` together; ``server`` sends the page and, by server-sent
events, what changes.
"""

from p2p_labeldp.reports.dashboard.board import Board, Kind
from p2p_labeldp.reports.dashboard.server import Dashboard, serving

__all__ = ["Board", "Dashboard", "Kind", "serving"]
