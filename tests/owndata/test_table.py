"""From a table to features and labels: nothing is guessed that its owner alone can know."""

from random import Random

import numpy as np
import pytest

from p2p_labeldp import owndata
from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.owndata import Choices

ROWS = 40


def table(tmp_path, columns, *, separator=",", name="table.csv"):
    """Writes columns of ``ROWS`` cells each, given as functions of the row."""
    lines = [separator.join(columns)]
    lines += [separator.join(str(cell(i)) for cell in columns.values()) for i in range(ROWS)]
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


BASE = {"age": lambda i: 20 + i * 7 % 31, "label": lambda i: "yes" if i % 3 else "no"}


def loaded(tmp_path, more=(), *, label="label", separator=",", **said):
    path = table(tmp_path, {**BASE, **dict(more)}, separator=separator)
    return owndata.load(path, label=label, choices=Choices(**said))


def refusal(tmp_path, more=(), **said):
    assert len(loaded(tmp_path)) == ROWS
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, more, **said)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_numbers_and_few_words_become_features_and_labels_an_index(tmp_path):
    found = loaded(tmp_path, {"sex": lambda i: "fm"[i % 2], "site": lambda i: f"site {i % 3}"})
    assert found.names == ("age", "sex=m", "site=site 0", "site=site 1", "site=site 2")
    assert found.features.shape == (ROWS, 5)
    assert found.features[1].tolist() == [27, 1, 0, 1, 0]
    assert found.label_space.classes == ("no", "yes")
    assert found.labels.tolist() == [int(bool(i % 3)) for i in range(ROWS)]
    assert found.notes[0].startswith("classes no, yes: read off 'label', so that they occur is public")


def test_gaps_are_filled_with_the_median_and_marked(tmp_path):
    found = loaded(tmp_path, {"bmi": lambda i: "NA" if i % 10 == 0 else 20 + i % 5})
    assert found.names == ("age", "bmi", "bmi missing")
    assert found.features[0].tolist() == [20, 22, 1]
    assert "'bmi': 4 gaps filled with the median, and marked in a column" in found.notes


def test_constant_empty_and_free_text_columns_and_identifiers_are_left_out_with_a_line_each(tmp_path):
    found = loaded(
        tmp_path,
        {
            "country": lambda i: "NL",
            "spare": lambda i: "",
            "remarks": lambda i: f"seen on day {i}, well",
            "row": lambda i: i,
            "patient_id": lambda i: 7919 * (i // 2) % 1009,
        },
        separator=";",
    )
    assert found.names == ("age",)
    notes = "\n".join(found.notes)
    for line in (
        "left out 'country': it never changes",
        "left out 'spare': it is empty",
        "left out 'remarks': 40 different texts, an identifier or free text",
        "left out 'row': an identifier (--keep row if it is none)",
        "'patient_id' repeats, up to 2 rows for one: the guarantee is for one row, and 2 times weaker",
    ):
        assert line in notes
    kept = loaded(tmp_path, {"row": lambda i: i}, keep=("row",))
    assert kept.names == ("age", "row")


@pytest.mark.parametrize("step", [7, 7919])
@pytest.mark.parametrize("name", ["PatientenNr", "Fallnummer", "caseNumber", "MRN"])
def test_numbers_of_people_are_left_out_by_their_name_unless_they_are_kept(tmp_path, name, step):
    number = {name: lambda i: 100_000 + step * i % 900_001}
    found = loaded(tmp_path, number)
    assert found.names == ("age",)
    assert f"left out {name!r}: an identifier (--keep {name} if it is none)" in found.notes
    kept = loaded(tmp_path, number, keep=(name,))
    assert kept.names == ("age", name)
    assert not any(name in note for note in kept.notes)
    few = loaded(tmp_path, {name: lambda i: i % 9})
    assert few.names == ("age", name)


def test_numbers_that_all_differ_are_kept_with_a_note_that_says_how_to_answer_it(tmp_path):
    number = {"Barcode": lambda i: 100_000 + 7919 * i % 900_001}
    note = "'Barcode' has another whole number in every row, as an identifier has: features are public; --leave-out"
    note += " Barcode takes it out, --keep Barcode if it is a measurement"
    found = loaded(tmp_path, number)
    assert (found.names, note in found.notes) == (("age", "Barcode"), True)
    assert found.notes == loaded(tmp_path, {**number, "label": lambda i: "no" if i % 3 else "yes"}).notes
    assert note not in loaded(tmp_path, number, keep=("Barcode",)).notes
    assert note not in loaded(tmp_path, {"Barcode": lambda i: 100_000 + 7919 * (i // 2)}).notes


def test_numbers_that_repeat_for_a_person_are_seen_under_german_names(tmp_path):
    for name in ("PatientenNr", "Fallnummer", "patientid"):
        notes = "\n".join(loaded(tmp_path, {name: lambda i: 1000 + i // 4}).notes)
        assert f"{name!r} repeats, up to 4 rows for one" in notes
    assert "repeats" not in "\n".join(loaded(tmp_path, {"Monat": lambda i: i // 4}).notes)


@pytest.mark.parametrize(
    "name", ["PLZ", "WohnPLZ", "Plz_Praxis", "zip", "ZipCode", "home zip", "postcode", "Postleitzahl"]
)
def test_where_somebody_lives_is_noted(tmp_path, name):
    note = "{!r} may say who somebody is: features are public; --leave-out takes it out"
    found = loaded(tmp_path, {name: lambda i: 10115 + i % 5, "Rezipient": lambda i: i % 7, "Postop": lambda i: i % 2})
    assert note.format(name) in found.notes
    assert not any("Rezipient" in note or "Postop" in note for note in found.notes)


@pytest.mark.parametrize(
    ("cells", "value"),
    [
        *(("1,5", 1.5), ("1.234,5", 1234.5), ("-0,25", -0.25), ("0,125", 0.125), ("3", 3.0), ("7,5 %", 7.5)),
        *(("1 234,5", 1234.5), ("1\u00a0234", 1234), ("1'000'000", 1e6)),
    ],
)
def test_decimal_commas_are_seen(tmp_path, cells, value):
    found = loaded(tmp_path, {"x": lambda i: cells if i else "2,75"}, separator=";")
    assert found.features[:, 1].tolist() == [2.75] + [value] * (ROWS - 1)


@pytest.mark.parametrize(
    ("cell", "decimal", "value"),
    [
        *(("1.234.567,8", ",", 1234567.8), ("1.234", ",", 1234), ("-12.345", ",", -12345), ("1,5e3", ",", 1500)),
        *(("1,234,567.8", ".", 1234567.8), ("1,234", ".", 1234), ("12.5", ".", 12.5)),
        *((text, ",", None) for text in ("12.04.2024", "10.0.123.123", "1.5", "1234.567", "1.234.56", "1.234,567.8")),
        *((text, ".", None) for text in ("12,04,2024", "10,0,123,123", "1,5", "1234,567", "12.04.2024", "1,234.567,8")),
    ],
)
def test_thousands_stand_in_groups_of_three_and_nothing_else_is_a_number(tmp_path, cell, decimal, value):
    found = loaded(tmp_path, {"x": lambda i: cell if i else "7"}, separator=";", decimal=decimal)
    if value is None:
        assert found.names == ("age", f"x={'7' if cell < '7' else cell}")  # two words
    else:
        assert (found.names, found.features[1, 1]) == (("age", "x"), value)


def test_dates_and_addresses_beside_decimal_commas_are_texts_and_not_large_numbers(tmp_path):
    found = loaded(
        tmp_path,
        {
            "Wert": lambda i: f"{i % 7},5",
            "Datum": lambda i: f"{1 + i % 28:02d}.{1 + i % 12:02d}.2024",
            "IP": lambda i: f"10.0.{100 + i}.{100 + i}",
            "Quartal": lambda i: f"01.0{1 + i % 4 * 2}.2024",
        },
        separator=";",
    )
    assert found.names == ("age", "Wert", *(f"Quartal=01.0{month}.2024" for month in (1, 3, 5, 7)))
    assert "left out 'Datum': 40 different texts, an identifier or free text" in found.notes
    assert "left out 'IP': 40 different texts, an identifier or free text" in found.notes
    mixed = refusal(tmp_path, {"x": lambda i: "1.4.2024" if i == 7 else f"{i},5"}, separator=";")
    assert "column 'x' holds numbers, but '1.4.2024' in " in mixed


def test_decimal_points_with_thousands_are_seen(tmp_path):
    found = loaded(tmp_path, {"x": lambda i: "1,234.5" if i else "2.25"}, separator=";")
    assert found.features[:2, 1].tolist() == [2.25, 1234.5]


def test_what_may_be_a_thousand_or_a_fraction_is_asked_for(tmp_path):
    income = {"income": lambda i: f"{1 + i % 7},{i + 100}"}
    text = refusal(tmp_path, income, separator=";")
    assert text == "data.csv: '1,100' in 'income' may be a thousand or a fraction; say --decimal , or --decimal ."
    assert loaded(tmp_path, income, separator=";", decimal=",").features[0, 1] == 1.1
    assert loaded(tmp_path, income, separator=";", decimal=".").features[0, 1] == 1100
    mixed = refusal(tmp_path, {"x": lambda i: "1,5" if i % 2 else "1.5"}, separator=";")
    assert "has a decimal comma and '1.5' in 'x' a decimal point; make them alike, or say --decimal" in mixed


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"bmi": lambda i: "" if i % 5 < 2 else i}, "column 'bmi' is empty in 40% of the rows, more than 30%; fill it"),
        (
            {"bmi": lambda i: "unknown" if i == 7 else i},
            "holds numbers, but 'unknown' in line 9; put a number or nothing",
        ),
        ({"bmi": lambda i: "inf" if i == 7 else i / 2}, "holds numbers, but 'inf' in line 9"),
        ({"label": lambda i: "ill"}, "column 'label' says 'ill' in every row; two classes or more are needed"),
        ({"label": lambda i: ""}, "column 'label' is empty; choose the column that holds the label"),
        ({"label": lambda i: "" if i % 5 < 2 else "ab"[i % 2]}, "column 'label' is empty in 40% of the rows"),
        ({"label": lambda i: i / 3}, "has 40 different values, so it is no class; make ranges of it first"),
        (
            {"label": lambda i: ["Yes", "yes ", "no", " NO"][i % 4]},
            "column 'label' spells one class in 2 ways ('NO', 'no'); make them one, or say --classes NO,Yes",
        ),
        ({"age": lambda i: 5}, "no column beside 'label' can be a feature"),
    ],
)
def test_each_mistake_gets_one_sentence_with_the_fix(tmp_path, more, sentence):
    assert sentence in refusal(tmp_path, more)


@pytest.mark.parametrize("said", [{"leave_out": ("agee",)}, {"keep": ("agee",)}, {"label": "labell"}])
def test_a_wrong_column_is_answered_with_the_nearest(tmp_path, said):
    near = "label" if "label" in said else "age"
    assert f"did you mean {near!r}? there are age, label" in refusal(tmp_path, **said)


def test_too_few_rows_are_refused(tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("a,label\n" + "1,x\n2,y\n" * 4)
    with pytest.raises(ConfigurationError, match=r"8 rows with a label; 10 or more are needed"):
        owndata.load(path, label="label")


def test_spaces_around_labels_are_nothing_and_classes_that_are_said_take_every_spelling(tmp_path):
    trimmed = loaded(tmp_path, {"label": lambda i: ["Yes", "no "][i % 2]})
    assert trimmed.label_space.classes == ("Yes", "no")
    spelt = loaded(tmp_path, {"label": lambda i: ["Yes", "yes ", "no", " NO"][i % 4]}, classes=("no", "yes"))
    assert spelt.labels[:4].tolist() == [1, 1, 0, 0]
    assert not any(note.startswith("classes") for note in spelt.notes)
    text = refusal(tmp_path, {"label": lambda i: ["yes", "no", "maybe"][i % 3]}, classes=("no", "yes"))
    assert text == "data.classes: 'maybe' in column 'label' is none of no, yes; correct it, or add it"
    assert "differ only in case" in refusal(tmp_path, classes=("No", "no"))
    assert "a class is named twice" in refusal(tmp_path, classes=("no", "no"))


def test_numbers_are_classes_whatever_their_spelling_in_their_order(tmp_path):
    found = loaded(tmp_path, {"label": lambda i: ["10", "2", "2.0", "02"][i % 4]})
    assert found.label_space.classes == ("2", "10")
    assert found.labels[:4].tolist() == [1, 0, 0, 0]


def test_a_dash_may_be_a_class(tmp_path):
    assert loaded(tmp_path, {"label": lambda i: "+-"[i % 2]}).label_space.classes == ("+", "-")


def test_rows_without_a_label_take_no_part(tmp_path):
    found = loaded(tmp_path, {"label": lambda i: "" if i < 4 else "ab"[i % 2]})
    assert len(found) == ROWS - 4
    assert found.features[0, 0] == 20 + 4 * 7 % 31
    assert "4 rows without a label in 'label' take no part" in found.notes


def test_warnings_depend_on_names_and_features_only(tmp_path):
    more = {
        "label_code": lambda i: i * i % 13,
        "patient_number": lambda i: i // 4,
        "name": lambda i: ["Ann", "Bo"][i % 2],
    }
    found = loaded(tmp_path, more)
    swapped = loaded(tmp_path, {**more, "label": lambda i: "no" if i % 3 else "yes"})
    assert found.notes == swapped.notes
    assert (found.labels != swapped.labels).all()
    notes = "\n".join(found.notes)
    assert "'label_code' is called like the label" in notes
    assert "'name' may say who somebody is" in notes
    assert "'patient_number' repeats, up to 4 rows for one" in notes


def test_one_gap_is_one_gap(tmp_path):
    gaps = {"label": lambda i: "" if i == 4 else "ab"[i % 2], "bmi": lambda i: "NA" if i == 3 else 20 + i % 5}
    notes = loaded(tmp_path, gaps).notes
    assert "1 row without a label in 'label' takes no part" in notes
    assert "'bmi': 1 gap filled with the median, and marked in a column" in notes


def test_rows_that_are_alike_are_counted(tmp_path):
    found = loaded(tmp_path, {"age": lambda i: i % 10})
    assert any(note.startswith("rows with the features of another row: 30;") for note in found.notes)


def test_a_column_that_tells_the_label_is_found_by_who_reads_labels_and_by_nobody_else(tmp_path):
    found = loaded(tmp_path, {"code": lambda i: "x" if i % 3 else "y", "noise": lambda i: i * 13 % 17})
    [line] = owndata.diagnostics(found.features, found.names, found.labels)
    assert line.startswith("'code=y' alone tells the label of 100% of the rows")
    assert not any("tells the label of" in note for note in found.notes)
    shuffled = np.random.default_rng(1).permutation(found.labels)
    assert owndata.diagnostics(found.features, found.names, shuffled) == []


def test_arrays_are_taken_as_scikit_learn_has_them():
    features = np.arange(60.0).reshape(20, 3)
    found = owndata.from_arrays(features, ["b", "a"] * 10)
    assert (found.names, found.label_space.classes) == (("x0", "x1", "x2"), ("a", "b"))
    assert found.labels[:2].tolist() == [1, 0]
    assert owndata.from_arrays(features, [0, 1] * 10, classes=("0", "1", "2")).label_space.classes == ("0", "1", "2")
    for wrong, field in (
        ((features, [0] * 20), "y: "),
        ((features, [0, 1]), "X, y: "),
        ((features * np.nan, [0, 1] * 10), "X: "),
        (([["a"]], [0]), "X: "),
        ((features, [None] * 20), "y: "),
    ):
        with pytest.raises(ConfigurationError, match=f"^{field}"):
            owndata.from_arrays(*wrong)


def test_the_split_is_the_seeds_alone(tmp_path):
    found = loaded(tmp_path)
    one, same, other = (found.split(seed=seed, test_share=0.25) for seed in (1, 1, 2))
    assert (one.train_features == same.train_features).all()
    assert (one.train_features != other.train_features).any()
    assert (len(one.train_labels), len(one.test_labels)) == (30, 10)
    assert len(found.split(seed=1, test_share=0.25, peers=12).train_labels) == 12
    for wrong in ({"test_share": 1.0}, {"test_share": 0.2, "peers": 33}, {"test_share": 0.99}):
        with pytest.raises(ConfigurationError, match="data"):
            found.split(seed=1, **wrong)


def test_a_frame_is_understood_as_a_file_is(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({
        "age": [float(20 + i * 7 % 31) for i in range(ROWS)],
        "sex": ["fm"[i % 2] for i in range(ROWS)],
        "bmi": [None if i % 10 == 0 else 20.5 + i % 5 for i in range(ROWS)],
        "row": range(ROWS),
    })  # fmt: skip
    labels = pandas.Series(["yes" if i % 3 else None if i == 0 else "no" for i in range(ROWS)])
    found = owndata.from_arrays(frame, labels)
    assert found.names == ("age", "sex=m", "bmi", "bmi missing")
    assert (len(found), found.label_space.classes) == (ROWS - 1, ("no", "yes"))
    assert found.features[9].tolist() == [20 + 70 % 31, 0, 22.5, 1]
    assert "left out 'row': an identifier (--keep row if it is none)" in found.notes
    with pytest.raises(ConfigurationError, match=r"^X: column 'bmi' holds numbers, but 'low' in row 3;"):
        owndata.from_arrays(frame.assign(bmi=[1.5, 2.5, "low", 3.5] * 10), labels)
    with pytest.raises(ConfigurationError, match=r"^X: column 'bmi' is empty in 50%"):
        owndata.from_arrays(frame.assign(bmi=[None, 1.0] * 20), labels)


def test_whatever_a_file_holds_it_is_understood_or_refused_in_one_sentence(tmp_path):
    """600 tables of awkward cells, some with a byte changed; warnings are errors."""
    random = Random(5)
    cells = ["", "1", "-2", "1.5", "1,5", "1e400", "nan", "-inf", "NA", "yes", "No", "no ", '"a,b"', '"x\ny"', '"']
    cells += ["\ufeff", "é", "1_000", "\u0663", "1,234", "--", "x" * 50, "\0", "½", "=1+1", "1\u00a0000", ".", "5."]
    path, understood, refused = tmp_path / "table.csv", 0, []
    for _ in range(600):
        width, separator = random.randint(1, 3), random.choice(",;\t|")
        pools = [random.sample(cells, random.randint(1, 3)) for _ in range(width)] + [["yes", "no"]]
        lines = [[random.choice(pool) for pool in pools] for _ in range(random.randint(0, 30))]
        lines = [[*(f"c{i}" for i in range(width)), "label"], *lines]
        text = random.choice(["\n", "\r\n"]).join(separator.join(line) for line in lines)
        data = bytearray(text.encode(random.choice(["utf-8", "utf-16", "utf-8-sig", "cp1252"]), "replace"))
        if random.random() < 0.2:
            data[random.randrange(len(data))] = random.randrange(256)
        path.write_bytes(data)
        try:
            found = owndata.load(path, label="label")
        except ConfigurationError as exc:
            refused.append(str(exc))
            continue
        assert np.isfinite(found.features).all()
        owndata.diagnostics(found.features, found.names, found.labels)
        understood += 1
    assert understood > 60
    assert len(refused) == 600 - understood
    assert not any("\n" in sentence for sentence in refused)
