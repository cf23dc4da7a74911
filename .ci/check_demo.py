"""Checks the result of the default demo, given its JSON on the processes engine and on the population engine."""

import json
import sys
from pathlib import Path

demo, arrays = (json.loads(Path(name).read_text()) for name in sys.argv[1:3])
assert demo["outcomes"] == {"reported": demo["peers"]}, demo["outcomes"]
for cluster in demo["clusters"]:
    assert cluster["epsilon"] <= 1, cluster
    assert cluster["delta"] == 1 / cluster["size"] ** 2, cluster
assert demo["accuracy"] == arrays["accuracy"], (demo["accuracy"], arrays["accuracy"])
assert demo["clusters"] == arrays["clusters"]
print(f"demo: {demo['peers']} processes, all reported; accuracy {demo['accuracy']}; {demo['seconds']['total']:.0f} s")
