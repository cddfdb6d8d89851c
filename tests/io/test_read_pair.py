from __future__ import annotations

from pathlib import Path

from small_graphs import named, write

from rlea.io.readers import is_pair, read_pair

NT = '<http://s/1> <http://r> <http://s/2> .\n<http://s/3> <http://name> "drei" .\n'
TABLES = {
    "target/triples.csv": "head,relation,tail\nt1,r,t2\nt2,r,t3\n",
    "target/names.tsv": "t1\teins\n",
}
LINKS = {"seeds.tsv": "source\ttarget\nhttp://s/1\tt1\n", "test.tsv": "source\ttarget\nhttp://s/3\tt3\n"}


def test_graphs_of_different_formats(tmp_path: Path) -> None:
    pair = read_pair(write(tmp_path / "mine", {"source.nt": NT, **TABLES, **LINKS}))
    assert pair.name == "mine"
    assert pair.source.entities == ("http://s/1", "http://s/2", "http://s/3")
    assert pair.target.names == ("eins", "t2", "t3")
    assert (named(pair, "train"), named(pair, "valid")) == ([("http://s/1", "t1")], [])
    assert named(pair, "test") == [("http://s/3", "t3")]
    assert (pair.fold, pair.notes) == ("", ())


def test_links_are_optional(tmp_path: Path) -> None:
    pair = read_pair(write(tmp_path, {"source.nt": NT, **TABLES}))
    assert len(pair.train) == len(pair.valid) == len(pair.test) == 0
    assert pair.notes == ("seeds.tsv is absent, so there are no seeds",)
    pair = read_pair(write(tmp_path, {"seeds.tsv": "source\ttarget\n"}))
    assert (len(pair.train), pair.notes) == (0, ())


def test_test_links_keep_away_from_seeds(tmp_path: Path) -> None:
    links = {**LINKS, "test.tsv": "http://s/1\tt1\nhttp://s/3\tt3\nhttp://s/2\tt1\n"}
    pair = read_pair(write(tmp_path, {"source.nt": NT, **TABLES, **links}))
    assert named(pair, "test") == [("http://s/3", "t3")]
    assert [note.split(", the first")[0] for note in pair.notes] == [
        "test.tsv: left out 1 of 3 links that contradict an earlier link of the same entity",
        "test.tsv: left out 1 of 3 links that also stand in another split",
    ]


def test_pairs_are_recognised(tmp_path: Path) -> None:
    write(tmp_path, {"ours/source.nt": NT, "openea/rel_triples_1": "", "ids/0_3/ent_ids_1": "", "no/x": "", "file": ""})
    known = [name for name in ("ours", "openea", "ids", "ids/0_3", "no", "file", "missing") if is_pair(tmp_path / name)]
    assert known == ["ours", "openea", "ids", "ids/0_3"]


def test_the_same_pair_in_other_formats_has_the_same_fingerprint(tmp_path: Path) -> None:
    """What `convert` relies on: the content decides, not the files."""
    first = read_pair(write(tmp_path / "a", {"source.nt": NT, **TABLES, **LINKS}))
    turtle = '<http://s/3> <http://name> "drei" . <http://s/1> <http://r> <http://s/2> .'
    tables = {"target/triples.tsv": "t2\tr\tt3\nt1\tr\tt2\n", "target/names.csv": "entity,name\nt1,eins\n"}
    second = read_pair(write(tmp_path / "b", {"source.ttl": turtle, **tables, **LINKS}))
    assert first.fingerprint == second.fingerprint
