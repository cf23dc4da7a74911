"""How what has a table of transitions moves: from a state and an event to the state that the table names."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from p2p_labeldp.errors import LocalProtocolError

State = TypeVar("State", bound=Enum)


def after(event: str, *, state: State, table: Mapping[tuple[State, str], State]) -> State:
    """The state after an event.

    Raises:
        LocalProtocolError: The table has none; whoever asked stays where it is.
    """
    try:
        return table[state, event]
    except KeyError:
        raise LocalProtocolError(f"{event} while {state.name}") from None
