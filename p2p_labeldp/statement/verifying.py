"""Everything that can be checked of a statement, from its file alone or with the directory of its run.

Nothing that the file says is believed. What no file can show is said as such: whether coins were tossed as they should
be, whether the labels were those of people, whether the learner kept what it had to forget.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from p2p_labeldp.errors import AuthenticationFailed, ConfigurationError, naming
from p2p_labeldp.network.store import KeptReceipt
from p2p_labeldp.statement import accountant, content, kept_files, reading, signed
from p2p_labeldp.statement.checks import Check, Status, cause, failed, passed, unchecked
from p2p_labeldp.statement.content import Stated, Statement
from p2p_labeldp.statement.making import UNSIGNED


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What came of it.

    Args:
        statement: The statement.
        checks: In their order.
    """

    statement: Statement
    checks: list[Check]

    @property
    def holds(self) -> bool:
        """Whether no check failed."""
        return all(check.status is not Status.FAILED for check in self.checks)


def verify(path: str | Path, *, learner: str | None = None, receipt: KeptReceipt | None = None) -> Verdict:
    """Checks a statement.

    Args:
        path: The directory of a run, or a ``guarantee.json`` by itself, of which less can be checked.
        learner: Id (hex) of the learner who has to have signed it.
        receipt: A peer's own.

    Raises:
        ConfigurationError: There is no statement, or no whole run beside it.
    """
    place = Path(path)
    file = place / content.NAME if place.is_dir() else place
    try:
        data = reading.content_of(file, longest=content.MAX_BYTES)
    except (OSError, ValueError) as exc:  # a path with a null character is a ValueError
        reason = exc.strerror if isinstance(exc, OSError) else exc
        raise ConfigurationError(f"{str(file)!r} can't be read: {reason}", field="DIR") from exc
    with naming({} if place.is_dir() else {content.NAME: repr(str(file))}):  # whatever file was given
        stated = content.from_file(data)
    checks = list(_checks(stated, place if place.is_dir() else None, learner=learner, receipt=receipt))
    return Verdict(statement=stated.statement, checks=checks)


def _checks(
    stated: Stated, directory: Path | None, *, learner: str | None, receipt: KeptReceipt | None
) -> Iterator[Check]:
    statement = stated.statement
    yield _signature(stated, learner=learner, receipt=receipt)
    yield from accountant.checks(statement)
    if directory is None:
        yield unchecked("facts", "the file is alone; who has the directory of the run can check sizes and counts")
        if statement.learner is not None:
            number = len(statement.receipts)
            them = "it" if number == 1 else "them"
            text = f"{number} {'is' if number == 1 else 'are'} counted; who has the directory can check {them}"
            yield unchecked("receipts", text)
    else:
        kept = kept_files.read(directory)
        yield from kept_files.checks(statement, kept)
        yield from signed.checks(statement, signed.read(directory), kept.facts)
    if receipt is not None:
        yield signed.check_own(statement, receipt, alone=directory is None)
        if directory is None:
            yield unchecked(
                "cluster size",
                "your receipt names its roster, not how many are in it: only who has the directory of the run can count"
                " them; if it was smaller than stated, what holds of your label is the local epsilon",
            )
    yield _coins(statement)


def _signature(stated: Stated, *, learner: str | None, receipt: KeptReceipt | None) -> Check:
    name, statement = "signature", stated.statement
    try:
        signer = stated.signer()
    except AuthenticationFailed as exc:
        return failed(name, cause(exc))
    if (None if signer is None else signer.hex()) != statement.learner:
        return failed(name, f"by {'nobody' if signer is None else signer.hex()}, not by the learner that is stated")
    engine = statement.engine
    if (signer is None) != (engine in UNSIGNED):
        rule = "the learner signs" if signer is None else "nobody has a key to sign with"
        return failed(name, f"{'unsigned' if signer is None else 'signed'}, and of engine {engine.value!r} {rule}")
    if statement.unsigned_because != (UNSIGNED[engine] if signer is None else None):
        return failed(name, "signed or unsigned for another reason than is stated")
    if learner is not None and statement.learner != learner:
        return failed(name, f"by {statement.learner or 'nobody'}, not by {learner}")
    if signer is None:
        return unchecked(name, f"unsigned: {statement.unsigned_because}")
    if learner is not None:
        return passed(name, f"by learner {signer.hex()}, as expected")
    if receipt is not None:
        return passed(name, f"by learner {signer.hex()}; see whether your receipt is of the same")
    return passed(name, f"by {signer.hex()}, whoever that is: --learner-key ID says who it has to be")


def _coins(statement: Statement) -> Check:
    if statement.seed is not None:
        text = f"they come from the seed {statement.seed}: whoever knows it knows every flip, whatever the epsilons say"
    else:
        text = "no seed is stated; that each coin was secret and fair leaves no trace that could be checked"
    return unchecked("coins", text)
