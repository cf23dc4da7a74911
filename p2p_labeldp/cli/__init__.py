"""The command line: thin verbs.

- ``app``: the commands and what ends them: an exit status, and one line on stderr for whoever asked the impossible
- ``run``, ``configs``, ``account``, ``plan``, ``audit``: a verb each
- ``answers``: how those that compute answer, and whose option a complaint is about
- ``progress``: what is told on stderr while a run lasts

stdout carries results only. Nothing slow is imported before a verb needs it: help and complaints come at once.
"""

from p2p_labeldp.cli.app import main

__all__ = ["main"]
