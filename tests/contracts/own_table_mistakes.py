"""What people get wrong about a table of their own, and the one sentence that each mistake gets, whichever command."""

import random

HEADER = "age,bmi,sex,outcome"
NAMED = ("--csv", "people.csv", "--label", "outcome")
MISTAKES = [
    (("--label", "x"), "--label: --csv FILE is needed with it"),
    (NAMED[:2], "--label: missing; name the column whose values are to be protected"),
    (("iris", *NAMED), "--csv: given together with 'iris'; one of the two"),
    ((*NAMED[:3], "outcom"), "--label: no column 'outcom'; did you mean 'outcome'?"),
    ((*NAMED[:3], "bmi"), "--label: column 'bmi' has 95 different values, so it is no class; make ranges of it first"),
    (("--csv", "none.csv", "--label", "outcome"), "--csv: 'none.csv' can't be read: No such file"),
    (("--csv", "one.csv", "--label", "outcome"), "--label: column 'outcome' says 'ill' in every row; two classes or"),
    (
        ("--csv", "gaps.csv", "--label", "outcome"),
        "--csv: column 'bmi' is empty in 40% of the rows, more than 30%; fill",
    ),
    (("--csv", "untold.csv", "--label", "outcome"), "--label: column 'outcome' is empty in 40% of the rows; take the"),
    (
        ("--csv", "few.csv", "--label", "outcome"),
        "--csv: 16 rows are left for training, fewer than the 20 of the least cluster; take more rows, or",
    ),
    (("--csv", "five.csv", "--label", "outcome"), "--csv: 5 rows with a label; 10 or more are needed"),
    (
        ("--csv", "spelt.csv", "--label", "outcome"),
        "--label: column 'outcome' spells one class in 2 ways ('Yes', 'yes')",
    ),
    (
        (*NAMED, "--clusters", "30"),
        "--clusters: 30 given; 120 rows for training make at most 6 clusters of 20 or more: fewer clusters, or",
    ),
    ((*NAMED, "--classes", "ill"), "--classes: 1 classes given; 2 to 256"),
    ((*NAMED, "--separator", "x"), "--separator: 'x' given; one of , ; | tab is"),
    ((*NAMED, "--epsilon", "0"), "--epsilon: 0.0 given;"),
    ((*NAMED, "--set", "mechanism.target_epsilon=0"), "mechanism.target_epsilon: 0 given;"),
    ((*NAMED, "--set", "mechanism.target_epsilon=1", "--epsilon", "0"), "--epsilon: 0.0 given;"),
    ((*NAMED, "--set", "data.separator=x"), "data.separator: 'x' given;"),
    ((*NAMED, "--set", "data.label=outcom"), "data.label: no column 'outcom'; did you mean 'outcome'?"),
    ((*NAMED, "--leave-out", "ages"), "--leave-out: no column 'ages'; did you mean 'age'?"),
    (("--epsilon", "0"), "--epsilon: 0.0 given; a number above 0"),
    (("--set", "mechanism.target_epsilon=0"), "mechanism.target_epsilon: 0 given; a number above 0"),
    (("--clusters", "0"), "--clusters: 0 given;"),
    (("--seed", "-1"), "--seed: -1 given; 0 to 2^64 - 1"),
]
"""Arguments, and how the complaint begins."""


def lines(rows=150, classes=("ill", "well"), seed=0):
    """A table in which older people are the last class more often."""
    rng = random.Random(seed)
    for _ in range(rows):
        age, bmi, sex = rng.randint(20, 80), round(rng.uniform(18, 35), 1), rng.choice("fm")
        place = min(len(classes) - 1, int((age - 20) / 61 * len(classes)))
        yield [str(age), str(bmi), sex, classes[place if rng.random() < 0.9 else rng.randrange(len(classes))]]


def write(path, rows, header=HEADER):
    path.write_text("\n".join([header, *(",".join(row) for row in rows)]) + "\n")
    return str(path)


def write_all(directory):
    """The tables that the mistakes are made with, and one without any."""
    rows = list(lines())

    def labelled(label):
        return [[*row[:-1], label(i, row[-1])] for i, row in enumerate(rows)]

    write(directory / "people.csv", rows)
    write(directory / "one.csv", labelled(lambda i, label: "ill"))
    write(directory / "few.csv", rows[:20])
    write(directory / "five.csv", rows[:5])
    write(directory / "gaps.csv", [[row[0], "" if i % 5 < 2 else row[1], *row[2:]] for i, row in enumerate(rows)])
    write(directory / "untold.csv", labelled(lambda i, label: "" if i % 5 < 2 else label))
    write(directory / "spelt.csv", labelled(lambda i, label: ["Yes", "no ", "yes"][i % 3]))
    write(directory / "spaced.csv", labelled(lambda i, label: {"ill": "Yes", "well": "no "}[label]))


def complaint(err):
    """The one sentence; what stands before it are notes."""
    said = err.splitlines()
    assert all(line.startswith(("note: ", "on this screen only")) for line in said[:-1]), said
    return said[-1]
