"""Label differential privacy without a trusted server.

Each peer holds one labelled example. Peers of a public cluster of features flip their label, ask one uniformly chosen
mate for its flipped label, and forward it, sealed for a learner, with their own features. The learner trains on that.

From the bottom up; a module imports only from those before it:

- ``errors``: the one exception tree
- ``keyed_stream``: NumPy's generator over a cryptographic stream
- ``labels``, ``randomness``, ``facts``: the label space; the only door for entropy; what can happen in a round
- ``config``, ``datasets``, ``clustering``, ``topology``: what is run, on which data, who exchanges labels with whom,
  who knows whom at the start
- ``owndata``: a table of one's own as a data set
- ``mechanisms``, ``crypto``: what is done to a label; identities, signatures and sealed boxes
- ``accounting``: what may be claimed, upper bounds; it samples nothing
- ``protocol``, ``population``, ``learning``, ``auditing``: what a peer and a learner do, as state machines without I/O;
  the same round as arrays; what is fitted to the reports; what can be observed, lower bounds, never from the accountant
- ``network``: how bytes move and time passes: in memory, or between processes
- ``results``: one run's result and the directory that keeps it
- ``promise``, ``central``, ``suggestion``: what a round guarantees each cluster, and who learns what; mechanisms in one
  place, played and accounted for; clusters for somebody's table
- ``experiment``, ``reports``: from a configuration to a result; results and facts made readable
- ``federated``: the same for rounds of private updates, in which the peers train a model without a round of labels
- ``measuring``, ``comparing``: privacy and accuracy against cluster size; mechanisms side by side on one table
- ``studies``: ``simulate``, ``account``, ``plan`` and ``measure`` for five lines of Python
- ``cli``: the commands

The names below are imported when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from p2p_labeldp.accounting.planning import RosterPlan, plan_roster, roster_epsilon
    from p2p_labeldp.config import Config, load
    from p2p_labeldp.errors import ConfigurationError, LabelDPError
    from p2p_labeldp.experiment import Run, run
    from p2p_labeldp.results import Result
    from p2p_labeldp.studies import account, measure, plan, simulate

__version__ = "0.1.0"

__all__ = [
    "simulate",
    "account",
    "plan",
    "measure",
    "load",
    "run",
    "Config",
    "Run",
    "Result",
    "plan_roster",
    "roster_epsilon",
    "RosterPlan",
    "LabelDPError",
    "ConfigurationError",
    "__version__",
]

_HOMES = {
    "simulate": "studies",
    "account": "studies",
    "plan": "studies",
    "measure": "studies",
    "load": "config",
    "run": "experiment",
    "Config": "config",
    "Run": "experiment",
    "Result": "results",
    "plan_roster": "accounting.planning",
    "roster_epsilon": "accounting.planning",
    "RosterPlan": "accounting.planning",
    "LabelDPError": "errors",
    "ConfigurationError": "errors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
