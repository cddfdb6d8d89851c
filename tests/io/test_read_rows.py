"""Tables with one row per entity: what separates fields, what identifies and names rows, keys between tables."""

import io
import sqlite3
import sys

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rlea
from rlea.errors import InputError
from rlea.io.readers import read_graph
from rlea.io.readers.row_files import find_separator
from rlea.io.readers.rows import RowOptions, looks_like_triples

PEOPLE = [
    ("id", "name", "city", "born"),
    ("17", "Elena Werner", "Basel", "1971-09-15"),
    ("18", "Paul Meier", "Bern", "1980-01-02"),
    ("23", "Anna, called Ann", "Basel", ""),
]


def write(path, rows, separator=",", encoding="utf-8"):
    quoted = [[f'"{cell}"' if separator in cell else cell for cell in row] for row in rows]
    path.write_bytes("\n".join(separator.join(row) for row in quoted).encode(encoding))
    return path


def values_of(graph, entity):
    own = graph.literals
    number = graph.entity_index[entity]
    rows = zip(own.entity_ids.tolist(), own.attribute_ids.tolist(), own.values, strict=True)
    return {graph.attributes[attribute]: value for one, attribute, value in rows if one == number}


@pytest.mark.parametrize("separator", [",", ";", "\t", "|", "%"])
@pytest.mark.parametrize("name", ["people.csv", "people.txt"])
def test_what_separates_fields_is_found_by_looking(tmp_path, separator, name):
    graph = read_graph(write(tmp_path / name, PEOPLE, separator))
    assert graph.entities == ("17", "18", "23")
    assert graph.names == ("Elena Werner", "Paul Meier", "Anna, called Ann")
    assert values_of(graph, "17") == {"name": "Elena Werner", "city": "Basel", "born": "1971-09-15"}
    assert values_of(graph, "23") == {"name": "Anna, called Ann", "city": "Basel"}  # an empty field says nothing
    assert graph.num_triples == 0
    (note,) = graph.notes
    assert "identified by id" in note
    assert "named by name" in note


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_encoding_is_found_by_looking(tmp_path, encoding):
    rows = [("id", "name", "city", "born"), ("1", "Jürg Öhri", "Zürich", "x"), ("2", "Zoë Müller", "Genève", "y")]
    graph = read_graph(write(tmp_path / "people.csv", rows, encoding=encoding))
    assert graph.names == ("Jürg Öhri", "Zoë Müller")


def test_quotes_that_do_not_match_have_no_meaning(tmp_path):
    path = tmp_path / "screens.csv"
    path.write_text('id|name|size\n1|a 24" screen|x\n2|a "thin one|y\n')
    assert read_graph(path).names == ('a 24" screen', 'a "thin one')


def test_three_columns_with_an_id_are_rows_and_their_header_is_no_entity(tmp_path):
    graph = read_graph(write(tmp_path / "places.csv", [row[:3] for row in PEOPLE]))
    assert graph.entities == ("17", "18", "23")
    assert graph.attributes == ("city", "name")


@pytest.mark.parametrize(
    "rows",
    [
        [("head", "relation", "tail"), ("a", "near", "b"), ("b", "near", "c"), ("c", "part of", "a")],
        [("a", "near", "b"), ("b", "near", "c"), ("c", "near", "a"), ("d", "near", "a")],
        [("a", "near", "b")],
    ],
)
def test_triples_are_read_as_before(tmp_path, rows):
    graph = read_graph(write(tmp_path / "triples.csv", rows))
    assert graph.num_triples == len(rows) - (rows[0][0] == "head")
    assert len(graph.literals) == 0


@given(st.lists(st.tuples(*[st.sampled_from("abcde")] * 3), min_size=1, max_size=30))
def test_heads_that_repeat_are_no_identifiers(rows):
    raw = pl.DataFrame([*rows, rows[-1], rows[-1]], schema=["0", "1", "2"], orient="row").with_row_index("line")
    assert looks_like_triples(raw)


def test_without_a_header_columns_are_numbered(tmp_path):
    graph = read_graph(write(tmp_path / "people.csv", PEOPLE[1:]))
    assert graph.num_entities == 3
    assert graph.attributes == ("column 2", "column 3", "column 4")


@pytest.mark.parametrize(
    ("header", "named"),
    [
        (("nr", "kunde", "ort", "geboren"), "kunde"),  # by its values: no header says so
        (("nr", "ort", "fullName", "geboren"), "ort"),  # values of `fullName` are towns here: not unique
    ],
)
def test_the_column_of_names_is_found_by_its_values(tmp_path, header, named):
    rows = [(str(k), f"Person Nr {chr(65 + k)}", "Basel" if k % 2 else "Bern", "1971") for k in range(12)]
    graph = read_graph(write(tmp_path / "people.csv", [header, *rows]))
    assert f"named by {named}" in graph.notes[0]
    assert "Person Nr C" in graph.names


def test_an_address_is_no_name_beside_one(tmp_path):
    rows = [(f"N{k}", f"Sum{k} Lane {k}, 8001 Town", f"{'ABCDEFGHIJ'[k // 2]}nn Ray{'ab'[k % 2]}") for k in range(12)]
    rows[1] = (*rows[1][:2], rows[0][2])  # two people have one name, and no two an address
    graph = read_graph(write(tmp_path / "people.csv", [("nr", "address", "client"), *rows]))
    assert "named by client" in graph.notes[0]


def test_first_and_last_names_are_joined(tmp_path):
    rows = [("id", "first_name", "last_name", "mail"), ("1", "Ann", "Ray", "a@x.org"), ("2", "Ann", "Lee", "b@x.org")]
    assert read_graph(write(tmp_path / "people.csv", rows)).names == ("Ann Ray", "Ann Lee")


def test_columns_can_be_named(tmp_path):
    path = write(
        tmp_path / "people.csv", [("key", "no", "who"), ("1", "x", "Ann"), ("2", "y", "Lee"), ("3", "z", "Ray")]
    )
    graph = read_graph(path, RowOptions(id="no", name="who", columns=("who",)))
    assert graph.entities == ("x", "y", "z")
    assert graph.names == ("Ann", "Lee", "Ray")
    assert set(graph.attributes) <= {"who", "no"}


def test_rows_without_a_key_are_numbered(tmp_path):
    rows = [("who", "city"), ("Ann Ray", "Basel"), ("Ann Ray", "Bern"), ("Paul Lee", "Basel")]
    graph = read_graph(write(tmp_path / "people.csv", rows))
    assert graph.entities == ("1", "2", "3")
    assert "rows are numbered" in graph.notes[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (RowOptions(id="nr"), "has no column nr (it has 'id', 'name', 'city', 'born')"),
        (RowOptions(name="title"), "has no column title"),
        (RowOptions(columns=("price",)), "has no column price"),
        (RowOptions(id="city"), "people.csv, line 4: the column city has the value 'Basel' a second time"),
        (RowOptions(id="born"), "line 4: the field born is empty"),
    ],
)
def test_wrong_columns_are_told(tmp_path, options, words):
    with pytest.raises(InputError) as problem:
        read_graph(write(tmp_path / "people.csv", PEOPLE), options)
    assert words in str(problem.value)


def test_a_column_twice_and_a_table_without_rows_are_told(tmp_path):
    with pytest.raises(InputError, match="twice"):
        read_graph(write(tmp_path / "a.csv", [("id", "name", "Name", "x"), ("1", "b", "c", "d")]))
    for header in (("id", "name", "city", "x"), ("id", "name", "city")):
        with pytest.raises(InputError, match="has a header and no rows"):
            read_graph(write(tmp_path / "b.csv", [header]))


def test_numbers_that_identify_say_nothing_but_codes_do(tmp_path):
    numbers = read_graph(write(tmp_path / "a.csv", [("id", "name"), ("1", "Ann"), ("2", "Lee"), ("3", "Ray")]))
    codes = read_graph(write(tmp_path / "b.csv", [("sku", "name"), ("KX-1", "Ann"), ("KX-2", "Lee"), ("KX-3", "Ray")]))
    assert numbers.attributes == ("name",)
    assert codes.attributes == ("name", "sku")
    assert codes.entities == ("KX-1", "KX-2", "KX-3")


# ---- several tables -------------------------------------------------------------------------------------------------

STAFF = [("id", "name", "dept_id", "manager_id", "age"), ("1", "Ann", "7", "", "8"), ("2", "Lee", "8", "1", "7")]
DEPARTMENTS = [("id", "title"), ("7", "Sales"), ("8", "Research")]


def check_company(graph):
    assert graph.entities == ("departments/7", "departments/8", "staff/1", "staff/2")
    named = [(graph.entities[h], graph.relations[r], graph.entities[t]) for h, r, t in graph.triples.tolist()]
    assert sorted(named) == [
        ("staff/1", "dept_id", "departments/7"),
        ("staff/2", "dept_id", "departments/8"),
        ("staff/2", "manager_id", "staff/1"),
    ]
    assert values_of(graph, "staff/2") == {"name": "Lee", "age": "7"}  # a number is no key because it could be one


def test_tables_of_a_folder_are_joined_by_their_keys(tmp_path):
    write(tmp_path / "staff.csv", STAFF)
    write(tmp_path / "departments.csv", DEPARTMENTS)
    graph = read_graph(tmp_path)
    check_company(graph)
    assert any("dept_id refers to departments" in note for note in graph.notes)


def test_sqlite(tmp_path):
    with sqlite3.connect(tmp_path / "company.sqlite") as base:
        base.execute("CREATE TABLE departments (id INTEGER PRIMARY KEY, title TEXT)")
        base.execute("CREATE TABLE staff (id INTEGER, name TEXT, dept_id INTEGER, manager_id INTEGER, age INTEGER)")
        base.executemany("INSERT INTO departments VALUES (?, ?)", DEPARTMENTS[1:])
        base.executemany("INSERT INTO staff VALUES (?, ?, ?, ?, ?)", [[c or None for c in row] for row in STAFF[1:]])
    base.close()
    check_company(read_graph(tmp_path / "company.sqlite"))


def test_keys_that_a_database_declares_need_no_name(tmp_path):
    with sqlite3.connect(tmp_path / "company.db") as base:
        base.execute("CREATE TABLE d (id INTEGER PRIMARY KEY, title TEXT)")
        base.execute("CREATE TABLE s (id INTEGER PRIMARY KEY, name TEXT, w INTEGER REFERENCES d(id))")
        base.executemany("INSERT INTO d VALUES (?, ?)", DEPARTMENTS[1:])
        base.executemany("INSERT INTO s VALUES (?, ?, ?)", [("1", "Ann", "7"), ("2", "Lee", "8")])
    base.close()
    graph = read_graph(tmp_path / "company.db")
    assert graph.relations == ("w",)


def test_duckdb(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "company.duckdb")) as base:
        base.execute("CREATE TABLE departments (id INTEGER, title VARCHAR)")
        base.execute("CREATE TABLE staff (id INTEGER, name VARCHAR, dept_id INTEGER, manager_id INTEGER, age INTEGER)")
        base.executemany("INSERT INTO departments VALUES (?, ?)", DEPARTMENTS[1:])
        base.executemany("INSERT INTO staff VALUES (?, ?, ?, ?, ?)", [[c or None for c in row] for row in STAFF[1:]])
    check_company(read_graph(tmp_path / "company.duckdb"))


def test_excel(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("fastexcel")
    book = openpyxl.Workbook()
    book.active.title = "departments"
    for row in DEPARTMENTS:
        book.active.append([int(cell) if cell.isdigit() else cell for cell in row])
    sheet = book.create_sheet("staff")
    for row in STAFF:
        sheet.append([int(cell) if cell.isdigit() else cell or None for cell in row])
    book.save(tmp_path / "company.xlsx")
    check_company(read_graph(tmp_path / "company.xlsx"))


@pytest.mark.parametrize("name", ["a.sqlite", "a.xlsx", "a.duckdb"])
def test_damaged_files_are_told(tmp_path, name):
    (tmp_path / name).write_bytes(b"no database" * 100)
    with pytest.raises(InputError, match="or is damaged"):
        read_graph(tmp_path / name)


def test_parquet_with_a_row_an_entity(tmp_path):
    frame = pl.DataFrame({"id": [1, 2, 3], "name": ["Ann", "Lee", None], "price": [1.5, None, 2.0]})
    frame.write_parquet(tmp_path / "things.parquet")
    graph = read_graph(tmp_path / "things.parquet")
    assert graph.entities == ("1", "2", "3")
    assert values_of(graph, "1") == {"name": "Ann", "price": "1.5"}


def test_standard_input(tmp_path, monkeypatch):
    text = "\n".join(";".join(row) for row in PEOPLE)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8"))
    assert read_graph("-").names[0] == "Elena Werner"


def test_a_folder_of_nothing_but_literals_is_a_graph(tmp_path):
    (tmp_path / "literals.tsv").write_text("a\tname\tAnn\nb\tname\tLee\n")
    graph = read_graph(tmp_path)
    assert graph.entities == ("a", "b")
    assert graph.num_triples == 0


def test_the_columns_of_two_tables_may_differ(tmp_path):
    one = write(tmp_path / "a.csv", [("sku", "what", "x"), ("1", "Bolt", "p"), ("2", "Nut", "q"), ("3", "Pin", "r")])
    two = write(tmp_path / "b.csv", [("no", "item", "y"), ("7", "Bolt", "p"), ("8", "Nut", "q"), ("9", "Pin", "r")])
    pair = rlea.read(one, two, id_column="sku,no", name_column="what,item")
    assert (pair.source.names, pair.target.entities) == (("Bolt", "Nut", "Pin"), ("7", "8", "9"))
    assert pair.inputs["id_column"] == "sku,no"
    with pytest.raises(InputError, match="one of each table"):
        rlea.read(one, two, id_column="a,b,c")


@given(st.sampled_from(",;|\t%"), st.integers(2, 6), st.integers(2, 10), st.randoms())
def test_a_separator_that_stands_in_every_row_is_found(separator, width, height, random):
    rows = [["".join(random.choices("abc 123", k=4)) for _ in range(width)] for _ in range(height)]
    assert find_separator("\n".join(separator.join(row) for row in rows))[1] == separator


@pytest.mark.parametrize(
    ("dates", "read"),
    [
        (("05/11/1986", "23/01/1990"), ("1986-11-05", "1990-01-23")),
        (("05/11/1986", "01/23/1990"), ("1986-05-11", "1990-01-23")),
        (("05/11/1986", "01/02/1990"), ("05/11/1986", "01/02/1990")),  # nothing shows which is the day
        (("23/11/1986", "01/23/1990"), ("23/11/1986", "01/23/1990")),  # they contradict each other
    ],
)
def test_the_order_of_days_and_months_is_that_of_the_column(tmp_path, dates, read):
    rows = [("id", "name", "born", "x"), ("1", "Ann", dates[0], "-"), ("2", "Lee", dates[1], "-")]
    graph = read_graph(write(tmp_path / "people.csv", rows))
    assert tuple(values_of(graph, one)["born"] for one in ("1", "2")) == read


def test_a_column_that_no_table_has_is_told(tmp_path):
    one, two = (write(tmp_path / f"{name}.csv", PEOPLE) for name in "ab")
    with pytest.raises(InputError, match="no table has values in a column 'dbo'"):
        rlea.read(one, two, columns="name,dbo")
    assert rlea.read(one, two, columns="name").source.attributes == ("name",)


def test_standard_input_cannot_be_both_tables():
    with pytest.raises(InputError, match="both tables"):
        rlea.read("-", "-")


@pytest.mark.parametrize(
    "header",
    [
        ("", "name", "city", "age"),  # an index has no name
        ("country", "code", "2019", "2020"),
        ("id", "type", "name", "age"),  # a value may be called as its column is
    ],
)
def test_headers_as_programs_write_them(tmp_path, header):
    rows = [(str(k), "type" if k == 3 else f"kind {k % 4}", f"Town {chr(65 + k)}", str(20 + k)) for k in range(24)]
    graph = read_graph(write(tmp_path / "a.csv", [header, *rows]))
    assert graph.num_entities == 24
    assert set(filter(None, header)) & set(graph.attributes)


def test_a_column_that_is_asked_for_makes_a_header(tmp_path):
    rows = [("1971", "x"), ("1971", "a"), ("1972", "b")]
    assert read_graph(write(tmp_path / "a.csv", rows), RowOptions(id="x")).entities == ("a", "b")


def test_tables_of_one_name_stay_apart(tmp_path):
    write(tmp_path / "a.csv", [("id", "name"), ("1", "Ann"), ("2", "Lee")])
    write(tmp_path / "a.tsv", [("id", "name"), ("1", "Ray"), ("2", "Sue")], "\t")
    assert set(read_graph(tmp_path).names) == {"Ann", "Lee", "Ray", "Sue"}


def test_large_tables_in_utf16(tmp_path):
    rows = [("id", "name", "city", "born"), *((str(k), f"Person {k}", "Zürich", "1971") for k in range(9000))]
    assert read_graph(write(tmp_path / "a.csv", rows, encoding="utf-16")).num_entities == 9000


def people_as_rdf(tmp_path):
    lines = [f'<http://e/{k}> <http://e/called> "Ann {"abcdefg"[k]}" .\n' for k in range(7)]
    lines += [f'<http://e/{k}> <http://e/nick> "dear {"gfedcba"[k]}" .\n' for k in range(7)]
    path = tmp_path / "people.nt"
    path.write_text("".join(lines))
    return path


def test_the_attribute_that_names_entities_of_a_graph_can_be_said(tmp_path):
    path, table = people_as_rdf(tmp_path), write(tmp_path / "people.csv", PEOPLE)
    pair = rlea.read(path, path, name_column="nick,called")
    assert pair.source.names[0] == "dear g"
    assert pair.target.names[0] == "Ann a"
    assert "people.nt: names of entities are taken from nick (7), as --name says" in pair.notes
    other = rlea.read(table, path, name_column="city,")  # nothing is said of the second
    assert other.source.names[0] == "Basel"


def test_columns_of_graphs_are_refused(tmp_path):
    path, table = people_as_rdf(tmp_path), write(tmp_path / "people.csv", PEOPLE)
    for options, words in (
        ({"id_column": "id"}, "people.nt: --id id is for tables with one row per entity"),
        ({"id_column": "id,"}, ""),
        ({"columns": "called"}, "people.nt: --columns called is for tables"),
        ({"name_column": "title"}, "people.nt: has no attribute 'title' .it has 'called', 'nick'."),
    ):
        sides = (table, path) if options == {"id_column": "id,"} else (path, path)
        if not words:
            assert rlea.read(*sides, **options).source.entities[0] == "17"
            continue
        with pytest.raises(InputError, match=words):
            rlea.read(*sides, **options)


def test_of_many_columns_the_first_are_told(tmp_path):
    header = ["id", *(f"c{k}" for k in range(30))]
    with pytest.raises(InputError, match=r"'c18' and 11 more\)"):
        read_graph(write(tmp_path / "wide.csv", [header, ["a", *"x" * 30], ["b", *"y" * 30]]), RowOptions(name="d"))


def test_a_list_of_names_is_a_table_and_other_lines_of_text_are_none(tmp_path):
    for name in ("names.csv", "names.txt"):
        (tmp_path / name).write_text("customer\nAnn Lee\nPaul Ray\nAnn Lee\n", encoding="utf-8")
    graph = read_graph(tmp_path / "names.csv")
    assert (graph.names, graph.columns) == (("Ann Lee", "Paul Ray", "Ann Lee"), ("customer",))
    with pytest.raises(InputError, match="1 field where 3"):
        read_graph(tmp_path / "names.txt")
