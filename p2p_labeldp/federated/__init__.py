"""Experiments with private rounds of updates, from configuration to result.

- ``experiment``   configuration -> data -> terms -> an engine -> ledgers and accuracy
- ``population``   the engine without messages: the same coins, the same model to the last bit
- ``ledgers``      what is promised: central, local, reconstruction
- ``result``       what a run comes to
- ``table``        the same for a terminal
"""
