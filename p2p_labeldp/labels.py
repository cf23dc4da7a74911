"""The label space, and one peer's labelled example."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from p2p_labeldp.errors import ConfigurationError

MAX_CLASSES = 256  # a label travels as one byte, so every sealed box has the same length


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSpace:
    """The public list of classes. It is given, never inferred: inferring it from data leaks who holds a rare class.

    Args:
        classes: Names of the classes; a label is an index into them.

    Raises:
        ConfigurationError: Fewer than 2 or more than 256 classes, or a name given twice.
    """

    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 2 <= len(self.classes) <= MAX_CLASSES:
            raise ConfigurationError(
                f"{len(self.classes)} classes given; 2 to {MAX_CLASSES} are possible", field="label space"
            )
        if len(set(self.classes)) != len(self.classes):
            raise ConfigurationError("a class is named twice; each name may stand once", field="label space")

    def __len__(self) -> int:
        return len(self.classes)

    @property
    def digest(self) -> str:
        """Names this label space, order included: SHA-256 of its classes, each behind its length; hex."""
        named = hashlib.sha256()
        for name in self.classes:
            data = name.encode("utf-8", "surrogatepass")
            named.update(len(data).to_bytes(4, "big") + data)
        return named.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """What one peer holds.

    Args:
        features: Public feature vector, shape (d,), as plain floats.
        label: The private label, an index into the label space.
        label_id: Name of this example in its peer's configuration. Coins and the ledger are tied to it; it is never
            derived from the label.
    """

    features: tuple[float, ...]
    label: int
    label_id: str = "label"
