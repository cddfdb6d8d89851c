from __future__ import annotations

from pathlib import Path

from rlea.io.readers import is_pair, read_pair
from small_graphs import named, write

NT = '<http://s/1> <http://r> <http://s/2> .\n<http://s/3> <http://name> "drei" .\n'
TABLES = {"target/triples.csv": "head,relation,tail\nt1,r,t2\nt2,r,t3\n", "target/names.tsv": "t1\teins\n"}
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


def test_pairs_are_recognised(tmp_path: Path) -> None:
    write(tmp_path, {"ours/source.nt": NT, "openea/rel_triples_1": "", "ids/0_3/ent_ids_1": "", "no/x": "", "file": ""})
    known = [name for name in ("ours", "openea", "ids", "ids/0_3", "no", "file", "missing") if is_pair(tmp_path / name)]
    assert known == ["ours", "openea", "ids", "ids/0_3"]
