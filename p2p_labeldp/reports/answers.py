"""What ``account``, ``plan`` and ``audit`` answer, for a terminal.

What is promised is rounded up, and what was measured, a lower bound, down.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from p2p_labeldp.reports.table import digits_up, places_up


def accounted(record: Mapping[str, Any]) -> list[RenderableType]:
    """Of ``account resampling``."""
    facts = {
        "epsilon": f"{places_up(record['epsilon'])} at delta {small(record['delta'])}",
        "local": places_up(record["local_epsilon"]),
    }
    if record["worst_ones"] is not None:
        facts["worst data"] = f"{record['worst_ones']} ones among the others, direction {record['direction']}"
    profile = columns("epsilon", "delta")
    for point in record["profile"]:
        profile.add_row(f"{point['epsilon']:g}", small(point["delta"]))
    views = columns("view", "epsilon", "at delta", "method", left=("view", "method"))
    for view in record["views"]:
        views.add_row(view["view"], places_up(view["epsilon"]), small(view["delta"]), view["method"])
    parts: list[RenderableType] = [paired(facts)]
    if record["profile"]:
        parts += [Text(), profile]
    parts += [Text(), views]
    if math.isinf(record["local_epsilon"]):
        parts.append(Text("inf: no privacy at this flip probability", style="bold red"))
    return parts


def planned(record: Mapping[str, Any], *, delta: float) -> list[RenderableType]:
    """Of ``plan``, whichever of flip and size was asked for."""
    rows = {name.replace("_", " "): _plain(value) for name, value in record.items()}
    rows["epsilon"] = f"{places_up(record['epsilon'])} at delta {small(delta)}"
    return [paired(rows)]


def audited(record: Mapping[str, Any], *, failed: Sequence[str], threshold: float) -> list[RenderableType]:
    """Of ``audit``: the verdict names the checks below the threshold, the worst first."""
    lower = Decimal(record["epsilon_lower"]).quantize(Decimal("0.001"), rounding=ROUND_FLOOR)
    facts = {
        "measured": f"epsilon is at least {lower} at delta {small(record['delta'])},"
        f" confidence {record['confidence']:g}; a lower bound, no guarantee",
        "verdict": ": ".join(filter(None, (record["verdict"], ", ".join(failed)))),
        "threshold": f"{threshold:.3g}, of each p-value",
    }
    checks = columns("check", "p-value", left=("check",))
    for name, p_value in record["conformance"].items():
        checks.add_row(name, f"{p_value:.3g}")
    parts: list[RenderableType] = [paired(facts)]
    if record["conformance"]:
        parts += [Text(), checks]
    if "contract" in record:
        parts += [Text(), paired({name: broken or "holds" for name, broken in record["contract"].items()})]
    return parts


def stated(record: Mapping[str, Any]) -> list[RenderableType]:
    """Constants by name; of a group, each with the group's name before its own."""
    flat: dict[str, Any] = {}
    for name, value in record.items():
        flat |= {f"{name} {key}": part for key, part in value.items()} if isinstance(value, Mapping) else {name: value}
    return [paired({name.replace("_", " "): _plain(value) for name, value in flat.items()})]


def reconstructed(record: Mapping[str, Any]) -> list[RenderableType]:
    """Of ``account reconstruction``, with an attack or without."""
    promised = {name: value for name, value in record.items() if name != "attack"}
    parts = stated(promised)
    if "attack" in record:
        attack = record["attack"]
        lower = Decimal(attack["success_lower"]).quantize(Decimal("0.000001"), rounding=ROUND_FLOOR)
        facts = {
            "attacked": f"{attack['mechanism']}: {attack['breaches']:,} breaches in {attack['trials']:,} guesses",
            "success": f"{attack['success']:.6g}, standard error {attack['standard_error']:.2g}",
            "posterior": "not known" if attack["posterior"] is None else f"{attack['posterior']:.6g}",
            "measured": f"at least {lower}, confidence {attack['confidence']:g}; a lower bound, no guarantee",
            "verdict": f"{attack['verdict']}: {'above' if attack['verdict'] == 'fail' else 'within'} what is promised",
        }
        parts += [Text(), paired(facts)]
    return parts


def paired(rows: Mapping[str, str]) -> Text:
    """Names and values, one a line."""
    width = max(len(name) for name in rows) + 2
    return Text("\n".join(f"{name:<{width}}{value}" for name, value in rows.items()))


def columns(*names: str, left: tuple[str, ...] = ()) -> Table:
    """A table without lines; numbers to the right."""
    table = Table(box=None, padding=(0, 0, 0, 2), pad_edge=False, header_style="")
    for name in names:
        table.add_column(name, justify="left" if name in left else "right", no_wrap=True)
    return table


def small(delta: float) -> str:
    """A delta, rounded up."""
    return "0" if delta == 0 else digits_up(delta)


def _plain(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)
