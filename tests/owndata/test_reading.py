"""Any text file with a header is read for certain, or refused in one sentence."""

import pytest

from p2p_labeldp.errors import ConfigurationError
from p2p_labeldp.owndata.reading import read

TABLE = "größe,note,label\n1.5,ü,yes\n2.5,é,no\n3.5,x,yes\n"


def written(tmp_path, content):
    path = tmp_path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refused(tmp_path, content, **said):
    with pytest.raises(ConfigurationError) as caught:
        read(written(tmp_path, content), **said)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "latin-1"],
)
def test_every_encoding_gives_the_same_table(tmp_path, encoding):
    rows = read(written(tmp_path, TABLE.encode(encoding)))
    assert rows.names == ["größe", "note", "label"]
    assert rows.columns[1] == ["ü", "é", "x"]
    guessed = encoding in ("cp1252", "latin-1")
    assert rows.notes == (["read as cp1252, not being UTF-8; if names look wrong, say --encoding"] if guessed else [])


def test_an_encoding_that_is_said_is_taken(tmp_path):
    path = written(tmp_path, "имя,label\nа,б\n".encode("koi8-r"))
    assert read(path, encoding="koi8-r").names == ["имя", "label"]
    assert read(path).names != ["имя", "label"]
    assert "data.encoding: 'utf-8' given; the file is in another one" in refused(
        tmp_path, path.read_bytes(), encoding="utf-8"
    )
    assert "data.encoding: 'klingon' given; there is no such encoding" in refused(
        tmp_path, b"a,b\n1,2\n", encoding="klingon"
    )


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_separators_and_line_ends_are_found_out(tmp_path, separator, ending):
    lines = [["a b", "c", "label"], ["1", '"x, y; z|"', "yes"], ["2", '"say ""hi"""', "no"], [], ["3", "w", " no "]]
    rows = read(written(tmp_path, ending.join(separator.join(line) for line in lines) + ending))
    assert rows.separator == separator
    assert rows.names == ["a b", "c", "label"]
    assert rows.columns == [["1", "2", "3"], ["x, y; z|", 'say "hi"', "w"], ["yes", "no", "no"]]


def test_a_decimal_comma_does_not_pass_for_a_separator(tmp_path):
    assert read(written(tmp_path, "a;b;label\n1,5;2,5;x\n3,5;4,5;y\n")).separator == ";"


def test_a_quoted_field_may_hold_line_breaks(tmp_path):
    rows = read(written(tmp_path, 'a,"label\nof all"\n"x\ny",yes\n1,no\n'))
    assert rows.names == ["a", "label of all"]
    assert rows.columns == [["x\ny", "1"], ["yes", "no"]]


def test_excels_separator_line_and_trailing_separators_are_understood(tmp_path):
    rows = read(written(tmp_path, "sep=;\r\na;label;\r\n1;yes;\r\n2;no;\r\n"))
    assert (rows.names, rows.columns) == (["a", "label"], [["1", "2"], ["yes", "no"]])


@pytest.mark.parametrize(("head", "before"), [("", 0), ("sep=;\n", 1), ("\n\n", 2)])
def test_a_bad_cell_and_a_bad_line_are_counted_alike_as_lines_of_the_file(tmp_path, head, before):
    good = head + 'a;label\n1;"x\ny"\n\n'
    rows = read(written(tmp_path, good + "2;z\n"))
    assert rows.lines == [3 + before, 5 + before]
    assert [rows.place(row) for row in range(2)] == [f"line {3 + before}", f"line {5 + before}"]
    assert f"line {5 + before} has 1 field and the header 2" in refused(tmp_path, good + "2\n3;z\n")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"a,label\n", "has a header and no rows"),
        (b"alone\n1\n2\n", "no comma, semicolon, tab or bar divides its lines"),
        (b"a,b,label\n1,2,x\n1,2,3,y\n", "line 3 has 4 fields and the header 3; put quotes around"),
        (b"a,label\n1,x\n2\n", "line 3 has 1 field and the header 2"),
        (b"5.1,3.5,0\n4.9,3.0,1\n", "holds numbers (5.1, 3.5, 0, ...) and no names; add a header line"),
        (b"a,a,label\n1,2,x\n", "2 columns are called 'a'; give each a name of its own"),
        (b'a,label\n"1,x\n2,y\n', "the quotes up to line 3 don't match; close them"),
        (b"PK\x03\x04rest", "is an Excel workbook or a zip archive; save the sheet as CSV (UTF-8)"),
        (b"\x1f\x8brest", "compressed by gzip; unpack it first"),
        (b"PAR1rest", "a Parquet file"),
        (bytes(range(256)) * 4, "the file is no text"),
    ],
)
def test_what_is_no_table_is_refused_in_one_sentence_that_says_what_to_do(tmp_path, content, sentence):
    assert sentence in refused(tmp_path, content)


def test_files_that_cannot_be_opened_are_refused(tmp_path):
    for path in (tmp_path / "none.csv", tmp_path, "with\0null"):
        with pytest.raises(ConfigurationError, match=r"^data.csv: .*(can't be read|given)"):
            read(path)


def test_a_separator_that_is_none_is_refused(tmp_path):
    assert "data.separator: 'x' given" in refused(tmp_path, "axb\n1x2\n", separator="x")
