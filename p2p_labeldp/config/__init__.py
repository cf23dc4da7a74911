"""TOML to frozen, typed values.

A configuration is a table of sections. Every complaint is one line: the dotted field, what was given, what is allowed.
An unknown key is refused and the nearest known one named, because a misspelt privacy parameter that is silently
ignored is worse than a run that does not start.

- ``rules``: what a value may be, in words and as a check
- ``section``: what a section is
- ``sections``, ``updates``: the sections and their fields, each documented
- ``reading``: files, overrides, names of configurations, the hash

Configurations that come with the package are found by name in ``p2p_labeldp/configs/experiments`` (an installed wheel)
or in ``configs/experiments`` beside the package (a working copy, an editable install).
"""

from p2p_labeldp.config.reading import config_hash, from_mapping, known, load, locate
from p2p_labeldp.config.section import Section
from p2p_labeldp.config.sections import (
    Clusters,
    Config,
    Data,
    Deadlines,
    Exchange,
    ExchangeKind,
    Learner,
    Mechanism,
    MechanismKind,
    ModelName,
    Network,
    Output,
    Policy,
    Topology,
    TopologyKind,
)
from p2p_labeldp.config.updates import Updates

__all__ = [
    "load",
    "locate",
    "from_mapping",
    "known",
    "config_hash",
    "Config",
    "Section",
    "Data",
    "Clusters",
    "Topology",
    "Mechanism",
    "Exchange",
    "Deadlines",
    "Network",
    "Policy",
    "Learner",
    "Updates",
    "Output",
    "TopologyKind",
    "ExchangeKind",
    "MechanismKind",
    "ModelName",
]
