"""`rlea explain` on tables: rows and columns instead of entities, attributes and neighbours."""

import random

import pytest

STREETS = ("High Road", "Mill Lane", "Park Avenue", "Station Street", "Church Walk")
GRAPH_WORDS = ("neighbour", "relation", "attribute ", "entity", "graph")


def write(path, header, rows):
    path.write_text("\n".join(",".join(row) for row in [header, *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def people():
    draw = random.Random(3)
    firsts, lasts = (
        ("Ann", "Bert", "Cleo", "Dora", "Egon", "Fay"),
        ("Ames", "Boyle", "Cross", "Dunn", "Ellis", "Finch", "Gray"),
    )
    return [
        (str(100 + k), f"{firsts[k % 6]} {lasts[k // 6]}", f"{draw.randint(1, 99)} {draw.choice(STREETS)}", f"d{k % 3}")
        for k in range(42)
    ]


def test_plain_tables_are_explained_without_words_of_graphs(run_cli, tmp_path, people):
    one = write(tmp_path / "ours.csv", ("id", "name", "street"), [row[:3] for row in people])
    other = write(
        tmp_path / "theirs.csv", ("no", "person", "place"), [(f"x{a}", b.upper(), c) for a, b, c, _ in people]
    )
    done = run_cli("align", one, other, "--output", tmp_path / "out", "--quiet")
    assert (done.code, done.err) == (0, "")
    assert "42 rows, 84 values / 42 rows, " in done.out
    told = run_cli("explain", tmp_path / "out", "Ann Ames").out
    assert "Ann Ames - ANN AMES" in told
    assert "Values of corresponding columns" in told
    assert [word for word in GRAPH_WORDS if word in told.replace("attributes ", "")] == []
    assert "missing" not in told
    missing = run_cli("explain", tmp_path / "out", "Zoe Young")
    assert missing.code == 2
    assert "neither table has a row 'Zoe Young'" in missing.err


def test_rows_that_a_column_refers_to_are_called_rows(run_cli, tmp_path, people):
    for name, prefix in (("a", ""), ("b", "x")):
        (tmp_path / name).mkdir()
        header = ("id", "name", "department_id")
        write(tmp_path / name / "people.csv", header, [(prefix + a, b, prefix + d) for a, b, _, d in people])
        departments = [
            (f"{prefix}d{k}", title) for k, title in enumerate(("Sales Office", "Legal Affairs", "Research"))
        ]
        write(tmp_path / name / "departments.csv", ("id", "title"), departments)
    run_cli("align", tmp_path / "a", tmp_path / "b", "--output", tmp_path / "out", "--quiet")
    told = run_cli("explain", tmp_path / "out", "people/100").out
    assert "Matched rows that support it" in told
    assert "neighbour" not in told.replace("neighbours' words", "")
