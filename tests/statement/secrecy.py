"""Looks in the directory of a deployed learner for what must not be in it."""

import json

from p2p_labeldp import facts
from p2p_labeldp.facts import SHORT_ID, Accepted, Exchanged, Listed, Opened, Rejected, Signed, Traffic
from p2p_labeldp.statement.signed import from_file

OF_THE_LEARNER = (Opened, Exchanged, Signed, Listed, Accepted, Rejected, Traffic)
NAMELESS = ("config.json", "guarantee.json", "noisy.csv", "report.html", "result.json")


def told(directory, ids, classes):
    """What tells who asked whom, names a peer where none is named, or writes a label out; each as one line.

    Args:
        directory: Of a learner, with its report.
        ids: Of the peers, hex.
        classes: Their labels are among these words.
    """
    found = []
    files = {path.name: path.read_bytes() for path in directory.iterdir()}
    assert set(files) == {*NAMELESS, "evidence.json", "facts.jsonl"}
    for line in files["facts.jsonl"].splitlines():
        fact = facts.decode(line)
        named = [one for one in ids if one[:SHORT_ID].encode() in line]
        if not isinstance(fact, OF_THE_LEARNER) or len(named) > 1:
            found.append(f"facts.jsonl: {type(fact).__name__}")
        if isinstance(fact, Exchanged) and fact.peer != "learner":
            found.append("facts.jsonl: an exchange of peers")
    for name in NAMELESS:
        found += [f"{name}: a peer" for one in ids if one[:SHORT_ID].encode() in files[name]]
    evidence = from_file(files["evidence.json"])
    everybody = {bytes.fromhex(one) for one in ids}
    found += ["evidence.json: a manifest that names a peer" for one in everybody if one in evidence.manifest]
    for name, receipt in evidence.receipts:
        others = [one for one in everybody if one in receipt and one.hex() != name]
        found += ["evidence.json: a receipt that names another peer" for _ in others]
    data = json.loads(files["config.json"])["data"]
    for name in set(files) - ({"config.json"} if data["classes"] else set()):  # the learner's own words
        found += [f"{name}: a label" for one in classes if one.encode() in files[name]]
    return sorted(set(found))
