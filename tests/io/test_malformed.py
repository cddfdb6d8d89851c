"""Bad input of every kind we could think of: one sentence that names the file, the line and the remedy.

Each case writes its files into a folder and gives the command line that would read them; `expected` begins with the
name of the file at fault. The same table serves the readers, called directly, and the command line.
"""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from safetensors.numpy import save_file

from rlea.errors import InputError
from rlea.io.read import read
from rlea.io.readers import is_pair, read_graph, read_pair
from rlea.io.readers.link_files import looks_like_links, read_link_rows
from rlea.io.readers.links import read_matching_and_gold
from rlea.io.readers.vectors import read_embeddings

Build = Callable[[Path], list[str]]


@dataclass(frozen=True)
class Case:
    """One kind of bad input: `build` writes it and returns the arguments of the command that meets it."""

    id: str
    build: Build
    expected: tuple[str, ...]


def read_as_command(argv: list[str]) -> None:
    """Call the readers that a command line would call, in its order."""
    command, *rest = argv
    places: list[Path] = []
    options: dict[str, str] = {}
    words = iter(rest)
    for word in words:
        if word.startswith("--"):
            options[word] = next(words)
        else:
            places.append(Path(word))
    if command == "evaluate":
        read_matching_and_gold(*places)
    elif command == "convert":
        if is_pair(places[0]):
            read_pair(places[0], options.get("--fold"))
        elif looks_like_links(places[0]):
            read_link_rows(places[0])
        else:
            read_graph(places[0])
    else:
        pair = read(*places, fold=options.get("--fold"), seeds=options.get("--seeds"))
        if options["--embedding"] != "names":
            read_embeddings(options["--embedding"], pair.source, pair.target)


# ---- good files, of which every case spoils one ---------------------------------------------------------------------

OPENEA = {
    "rel_triples_1": "a1\tr\ta2\na2\tr\ta3\na3\tr\ta4\n",
    "rel_triples_2": "b1\tq\tb2\nb2\tq\tb3\nb3\tq\tb4\n",
    "attr_triples_1": 'a1\tlabel\t"one"@en\na2\tlabel\ttwo\n',
    "attr_triples_2": "b1\tlabel\teins\n",
    "ent_links": "a1\tb1\na2\tb2\na3\tb3\na4\tb4\n",
    "721_5fold/1/train_links": "a1\tb1\na2\tb2\n",
    "721_5fold/1/valid_links": "a3\tb3\n",
    "721_5fold/1/test_links": "a4\tb4\n",
}
DBP15K = {
    "ent_ids_1": "0\thttp://zh/a\n4\thttp://zh/b\n",
    "ent_ids_2": "2\thttp://en/a\n4\thttp://en/b\n",
    "rel_ids_1": "0\thttp://zh/r\n",
    "rel_ids_2": "0\thttp://en/r\n",
    "triples_1": "0\t0\t4\n",
    "triples_2": "4\t0\t2\n",
    "sup_ent_ids": "4\t4\n",
    "ref_ent_ids": "0\t2\n",
}
NT = "<http://s/1> <http://r> <http://s/2> .\n<http://s/2> <http://r> <http://s/3> .\n"
PAIR = {
    "source.nt": NT,
    "target.nt": NT.replace("http://s/", "http://t/"),
    "seeds.tsv": "source\ttarget\nhttp://s/1\thttp://t/1\n",
    "test.tsv": "source\ttarget\nhttp://s/2\thttp://t/2\n",
}
RDF_XML = (
    '<?xml version="1.0"?>\n'
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">\n'
    '<rdf:Description rdf:about="http://s/1">\n<e:r rdf:resource="http://s/2"/>\n</rdf:Description>\n</rdf:RDF>\n'
)
SSSOM = (
    "#curie_map:\n#  S: http://s/\n#  T: http://t/\n"
    "subject_id\tpredicate_id\tobject_id\tmapping_justification\tconfidence\n"
    "S:1\tskos:exactMatch\tT:1\tsemapv:LexicalMatching\t0.9\n"
)
CELL = (
    "<?xml version='1.0'?>\n<rdf:RDF xmlns='http://knowledgeweb.semanticweb.org/heterogeneity/alignment#'\n"
    " xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>\n<Alignment><map><Cell>\n"
    "<entity1 rdf:resource='http://s/1'/>\n<entity2 rdf:resource='http://t/1'/>\n<measure>0.9</measure>\n"
    "<relation>=</relation></Cell></map></Alignment></rdf:RDF>\n"
)

Content = str | bytes | None


def write(folder: Path, files: Mapping[str, Content]) -> Path:
    """Write files; None stands for no file."""
    for name, content in files.items():
        if content is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def align(*places: Path, tmp: Path, **options: str) -> list[str]:
    settings = {"embedding": "names", "matcher": "nearest", "output": str(tmp / "out")} | options
    return ["align", *map(str, places), *[word for key, value in settings.items() for word in (f"--{key}", value)]]


def openea(changes: Mapping[str, Content], **options: str) -> Build:
    return lambda tmp: align(write(tmp / "pair", OPENEA | dict(changes)), tmp=tmp, **options)


def dbp15k(changes: Mapping[str, Content], **options: str) -> Build:
    return lambda tmp: align(write(tmp / "zh_en" / "0_3", DBP15K | dict(changes)), tmp=tmp, **options)


def pair(changes: Mapping[str, Content], **options: str) -> Build:
    return lambda tmp: align(write(tmp / "pair", PAIR | dict(changes)), tmp=tmp, **options)


def graph(name: str, content: Content) -> Build:
    """A graph to be converted."""
    return lambda tmp: ["convert", str(write(tmp, {name: content}) / name), str(tmp / "out.nt")]


def source_graph(name: str, content: Content) -> Build:
    """A graph to be aligned with a good one."""
    return lambda tmp: align(write(tmp, {name: content}) / name, write(tmp, PAIR) / "target.nt", tmp=tmp)


def tables(files: Mapping[str, Content]) -> Build:
    """A folder of tables to be aligned with a good graph."""
    return lambda tmp: align(write(tmp / "tables", files), write(tmp, PAIR) / "target.nt", tmp=tmp)


def seeds(name: str, content: Content) -> Build:
    def build(tmp: Path) -> list[str]:
        write(tmp, PAIR)
        path = write(tmp, {name: content}) / name
        return align(tmp / "source.nt", tmp / "target.nt", tmp=tmp, seeds=str(path))

    return build


def evaluate(links: Content, gold: Content) -> Build:
    return lambda tmp: [
        "evaluate",
        *[str(write(tmp, {n: c}) / n) for n, c in (("links.tsv", links), ("gold.tsv", gold))],
    ]


def parquet(columns: Mapping[str, Any]) -> bytes:
    import io

    stream = io.BytesIO()
    pl.DataFrame(columns).write_parquet(stream)
    return stream.getvalue()


def npy(array: Any, *, allow_pickle: bool = False) -> bytes:
    import io

    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=allow_pickle)
    return stream.getvalue()


IDS = "".join(f"http://{side}/{number}\n" for side in "st" for number in (1, 2, 3))
VECTORS = np.arange(12, dtype=np.float32).reshape(6, 2)


def vectors(name: str, files: Mapping[str, Content]) -> Build:
    """Vectors for the entities of a good pair."""

    def build(tmp: Path) -> list[str]:
        write(tmp / "vectors", files)
        return align(write(tmp / "pair", PAIR), tmp=tmp, embedding=str(tmp / "vectors" / name))

    return build


def safetensors(matrices: Mapping[str, Any] | None = None, without: tuple[str, ...] = (), **metadata: Any) -> Build:
    def build(tmp: Path) -> list[str]:
        tensors = {"source": VECTORS[:3].copy(), "target": VECTORS[3:].copy()} | dict(matrices or {})
        told = {side + "_ids": [f"http://{side[0]}/{n}" for n in (1, 2, 3)] for side in ("source", "target")}
        told |= metadata
        kept = {key: value for key, value in tensors.items() if key not in without}
        text = json.dumps({key: value for key, value in told.items() if key not in without})
        save_file(kept, tmp / "x.safetensors", {"rlea": text})
        return align(write(tmp / "pair", PAIR), tmp=tmp, embedding=str(tmp / "x.safetensors"))

    return build


def safetensors_of(text: str | None) -> Build:
    """Good matrices with this text for metadata."""

    def build(tmp: Path) -> list[str]:
        matrices = {"source": VECTORS[:3].copy(), "target": VECTORS[3:].copy()}
        save_file(matrices, tmp / "x.safetensors", None if text is None else {"rlea": text})
        return align(write(tmp / "pair", PAIR), tmp=tmp, embedding=str(tmp / "x.safetensors"))

    return build


def word2vec(text: str) -> Build:
    return vectors("x.vec", {"x.vec": text})


W2V = "".join(f"{name} 0.5 {row}\n" for row, name in enumerate(IDS.split()))

LABELS = "id\tlabel\n" + "".join(f"{number}\t{name}\n" for number, name in enumerate(IDS.split()))


def torch_model(table: Any = VECTORS, *, spoil: Callable[[Any], Any] = lambda model: model) -> bytes:
    """A module with the attribute names of PyKEEN's models, as torch saves it."""
    import io

    import torch

    module = torch.nn.Module()
    module.entity_representations = torch.nn.ModuleList([torch.nn.Module()])
    module.entity_representations[0]._embeddings = torch.nn.Embedding.from_pretrained(torch.as_tensor(table))
    stream = io.BytesIO()
    torch.save(spoil(module), stream)
    return stream.getvalue()


def pykeen(model: Callable[[], bytes | None] = torch_model, labels: Content = LABELS) -> Build:
    """A folder of PyKEEN's; the model comes as a function, since only the cases that need torch should import it."""

    def build(tmp: Path) -> list[str]:
        files = {"trained_model.pkl": model(), "training_triples/entity_to_id.tsv.gz": labels}
        (tmp / "vectors" / "training_triples").mkdir(parents=True)
        return vectors(".", files)(tmp)

    return build


def bfloat16_table() -> Any:
    import torch

    return torch.ones(6, 2, dtype=torch.bfloat16)


class Harm:
    """Asks for a command to be run when it is unpickled."""

    def __reduce__(self) -> Any:
        import os

        return os.system, ("exit 1",)


def without_table(model: Any) -> Any:
    del model.entity_representations[0]._embeddings
    return model


# ---- the cases ------------------------------------------------------------------------------------------------------

BENCHMARK_CASES = [
    Case("triples-missing", openea({"rel_triples_2": None}), ("rel_triples_2", "no such file")),
    Case("triples-short-row", openea({"rel_triples_1": "a1\tr\ta2\na2\tr\n"}), ("rel_triples_1", "line 2", "2 fields")),
    Case("triples-long-row", openea({"rel_triples_2": "b1\tq\tb2\tb3\n"}), ("rel_triples_2", "line 1", "4 fields")),
    Case("triples-empty-head", openea({"rel_triples_1": "a1\tr\ta2\n\tr\ta2\n"}), ("rel_triples_1", "line 2", "head")),
    Case("triples-blank-tail", openea({"rel_triples_1": "a1\tr\t \n"}), ("rel_triples_1", "line 1", "tail")),
    Case("triples-no-bytes", openea({"rel_triples_1": ""}), ("rel_triples_1", "empty")),
    Case("triples-blank-lines-only", openea({"rel_triples_1": "\n\r\n \n"}), ("rel_triples_1", "empty")),
    Case(
        "triples-latin-1",
        openea({"rel_triples_1": b"a1\tr\ta2\na2\tr\tMalm\xf6\n"}),
        ("rel_triples_1", "line 2", "UTF-8"),
    ),
    Case(
        "triples-utf-16",
        openea({"rel_triples_1": OPENEA["rel_triples_1"].encode("utf-16")}),
        ("rel_triples_1", "line 1", "UTF-16"),
    ),
    Case(
        "triples-utf-32",
        openea({"rel_triples_1": OPENEA["rel_triples_1"].encode("utf-32")}),
        ("rel_triples_1", "line 1", "UTF-32"),
    ),
    Case(
        "triples-utf-16-without-mark",
        openea({"rel_triples_1": OPENEA["rel_triples_1"].encode("utf-16-le")}),
        ("rel_triples_1", "line 1", "zero byte"),
    ),
    Case("triples-spaces-for-tabs", openea({"rel_triples_1": "a1 r a2\n"}), ("rel_triples_1", "line 1", "not spaces")),
    Case("triples-commas-for-tabs", openea({"rel_triples_1": "a1,r,a2\n"}), ("rel_triples_1", "line 1", ".csv")),
    Case(
        "triples-carriage-returns-only",
        openea({"rel_triples_1": "a1\tr\ta2\ra2\tr\ta3\r"}),
        ("rel_triples_1", "line 1"),
    ),
    Case("triples-folder", openea({"rel_triples_2": None, "rel_triples_2/x": "y"}), ("rel_triples_2", "folder")),
    Case(
        "triples-gzip-cut", openea({"rel_triples_1": gzip.compress(b"a\tr\tb\n" * 99)[:-9]}), ("rel_triples_1", "gzip")
    ),
    Case("attributes-short-row", openea({"attr_triples_1": "a1\tlabel\tx\na2\tlabel\n"}), ("attr_triples_1", "line 2")),
    Case("attributes-empty-entity", openea({"attr_triples_2": "\tlabel\tx\n"}), ("attr_triples_2", "line 1", "entity")),
    Case("links-missing", openea({"ent_links": None}), ("ent_links", "no such file")),
    Case("links-short-row", openea({"ent_links": "a1\tb1\na2\n"}), ("ent_links", "line 2", "1 field")),
    Case("links-swapped", openea({"ent_links": "b1\ta1\nb2\ta2\nb3\ta3\n"}), ("ent_links", "line 1", "swapped")),
    Case("fold-unknown", openea({}, fold="9"), ("721_5fold", "'9'", "those there: 1")),
    Case("fold-set-unknown", openea({}, fold="631_5fold/1"), ("pair", "'631_5fold'")),
    Case(
        "folds-absent",
        openea({name: None for name in OPENEA if "fold" in name}),
        ("pair", "721_5fold", "train_links"),
    ),
    Case(
        "fold-sets-ambiguous",
        openea(
            {name: None for name in OPENEA if "fold" in name}
            | {"532_5fold/1/train_links": "a1\tb1\n", "820_5fold/1/train_links": "a1\tb1\n"}
        ),
        ("pair", "532_5fold, 820_5fold", "532_5fold/1"),
    ),
    Case("seeds-missing", openea({"721_5fold/1/train_links": None}), ("train_links", "no such file")),
    Case(
        "seeds-unknown",
        openea({"721_5fold/1/train_links": "a1\tb1\nx\tb2\na2\ty\n"}),
        ("train_links", "line 2", "source graph has no entity 'x'", "2 of 3"),
    ),
    Case("seeds-swapped", openea({"721_5fold/1/train_links": "b1\ta1\n"}), ("train_links", "line 1", "swapped")),
    Case("test-empty-target", openea({"721_5fold/1/test_links": "a4\tb4\na3\t\n"}), ("test_links", "line 2", "target")),
    Case(
        "seeds-third-column", openea({"721_5fold/1/train_links": "a1\tb1\tsure\n"}), ("train_links", "line 1", "'sure'")
    ),
    Case("ids-conflict", dbp15k({"ent_ids_1": "0\thttp://x\n0\thttp://y\n"}), ("ent_ids_1", "line 2", "'http://y'")),
    Case("ids-short-row", dbp15k({"ent_ids_2": "2\n"}), ("ent_ids_2", "line 1")),
    Case("ids-missing-file", dbp15k({"ent_ids_2": None}), ("ent_ids_2", "no such file")),
    Case(
        "ids-unknown-entity", dbp15k({"triples_1": "0\t0\t4\n7\t0\t4\n"}), ("triples_1", "line 2", "'7'", "ent_ids_1")
    ),
    Case("ids-unknown-relation", dbp15k({"triples_2": "4\t5\t2\n"}), ("triples_2", "line 1", "'5'", "rel_ids_2")),
    Case("ids-unknown-test", dbp15k({"ref_ent_ids": "0\t2\n0\t9\n"}), ("ref_ent_ids", "line 2", "'9'")),
    Case("ids-seeds-missing", dbp15k({"sup_ent_ids": None}), ("sup_ent_ids", "no such file")),
    Case("ids-fold-asked", dbp15k({}, fold="1"), ("0_3", "no folds", "leave out")),
    Case(
        "ids-several-splits",
        lambda tmp: align(
            write(tmp / "zh_en", {f"{split}/{n}": c for split in ("0_3", "0_4") for n, c in DBP15K.items()}), tmp=tmp
        ),
        ("zh_en", "0_3, 0_4"),
    ),
    Case("pair-two-sources", pair({"source.tsv": "a\tr\tb\n"}), ("pair", "source.nt and source.tsv", "remove")),
    Case("pair-no-target", pair({"target.nt": None}), ("pair", "no graph called target", "add target.nt")),
    Case("pair-seeds-ragged", pair({"seeds.tsv": "source\ttarget\nhttp://s/1\n"}), ("seeds.tsv", "line 2")),
    Case("pair-seeds-no-bytes", pair({"seeds.tsv": ""}), ("seeds.tsv", "empty")),
    Case("pair-test-unknown", pair({"test.tsv": "http://s/1\thttp://t/99\n"}), ("test.tsv", "line 1", "'http://t/99'")),
    Case("pair-fold-asked", pair({}, fold="2"), ("pair", "no folds")),
    Case(
        "pair-of-nothing",
        lambda tmp: align(write(tmp / "pair", {"notes.txt": "x"}), tmp=tmp),
        ("pair", "rel_triples_1"),
    ),
    Case("pair-missing", lambda tmp: align(tmp / "nowhere", tmp=tmp), ("nowhere", "no such folder")),
    Case("pair-is-file", lambda tmp: align(write(tmp, PAIR) / "source.nt", tmp=tmp), ("source.nt", "folder")),
    Case(
        "pair-one-level-up",
        lambda tmp: align(write(tmp / "all", {f"X_Y/{n}": c for n, c in OPENEA.items()}), tmp=tmp),
        ("all", "in it: X_Y"),
    ),
]

GRAPH_CASES = [
    Case("graph-missing", lambda tmp: ["convert", str(tmp / "no.nt"), str(tmp / "out.nt")], ("no.nt", "no such file")),
    Case("graph-extension", graph("x.json", "{}"), ("x.json", ".json", ".ttl")),
    Case("graph-no-extension", graph("dump", NT + "x\ty\tz\n"), ("dump", "(none)")),
    Case("graph-is-pair", lambda tmp: align(write(tmp / "p", OPENEA), tmp / "t.nt", tmp=tmp), ("p", "pair of graphs")),
    Case("nt-no-object", source_graph("x.nt", NT + "<http://s/1> <http://r> .\n"), ("x.nt", "line 3", "column 25")),
    Case("nt-bare-word", source_graph("x.nt", "<http://s/1> <http://r> word .\n"), ("x.nt", "line 1")),
    Case("nt-cut-off", source_graph("x.nt", NT + "<http://s/1> <htt"), ("x.nt", "line 3")),
    Case("nt-literal-subject", source_graph("x.nt", '"a" <http://r> <http://s> .\n'), ("x.nt", "line 1")),
    Case("nt-half-surrogate", source_graph("x.nt", '<http://s> <http://r> "\\uD800" .\n'), ("x.nt", "line 1")),
    Case("nt-two-on-a-line", source_graph("x.nt", NT.replace("\n", " ")), ("x.nt", "line 1")),
    Case(
        "nt-latin-1",
        source_graph("x.nt", NT.encode() + b'<http://s> <http://r> "\xe9" .\n'),
        ("x.nt", "line 3", "UTF-8"),
    ),
    Case("nt-utf-16", source_graph("x.nt", NT.encode("utf-16")), ("x.nt", "line 1", "UTF-16")),
    Case("nt-no-bytes", source_graph("x.nt", ""), ("x.nt", "no triples")),
    Case("nt-comments-only", source_graph("x.nt", "# nothing\n"), ("x.nt", "no triples")),
    Case(
        "nt-triple-in-triple",
        source_graph("x.nt", "<http://s> <http://r> <<( <http://a> <http://b> <http://c> )>> .\n"),
        ("x.nt", "object of another"),
    ),
    Case("nt-gzip-cut", source_graph("x.nt.gz", gzip.compress(NT.encode() * 50)[:-12]), ("x.nt.gz", "gzip")),
    Case("nt-gzip-broken", source_graph("x.nt.gz", gzip.compress(NT.encode())[:-8] + bytes(8)), ("x.nt.gz", "gzip")),
    Case("nt-gzip-twice-wrong-name", source_graph("x.nt", gzip.compress(b"\x00" * 9)), ("x.nt", "line 1")),
    Case(
        "ttl-prefix", source_graph("x.ttl", "@prefix a: <http://a/> .\na:x b:y a:z .\n"), ("x.ttl", "line 2", "prefix")
    ),
    Case("ttl-unclosed", source_graph("x.ttl", "<http://a> <http://b> [ <http://c> 1 .\n"), ("x.ttl", "line 1")),
    Case(
        "nq-fifth-term",
        source_graph("x.nq", "<http://a> <http://b> <http://c> <http://g> <http://h> .\n"),
        ("x.nq", "line 1"),
    ),
    Case(
        "trig-unclosed",
        source_graph("x.trig", "<http://g> {\n<http://a> <http://b> <http://c> .\n"),
        ("x.trig", "line"),
    ),
    Case("xml-tags-crossed", source_graph("x.rdf", RDF_XML.replace("</rdf:Desc", "</rdf:Disc")), ("x.rdf", "line 5")),
    Case("xml-cut-off", source_graph("x.rdf", RDF_XML[: RDF_XML.index("</rdf:Desc")]), ("x.rdf", "line 5", "cut off")),
    Case("xml-namespace", source_graph("x.owl", RDF_XML.replace("<e:r", "<f:r")), ("x.owl", "line 4", "prefix")),
    Case("xml-web-page", source_graph("x.xml", "<html><body><p>Not found</p></body></html>"), ("x.xml", "RDF/XML")),
    Case(
        "xml-latin-1",
        source_graph("x.rdf", RDF_XML.replace("http://s/2", "http://s/ü").encode("latin-1")),
        ("x.rdf", "line 4", "UTF-8"),
    ),
    Case(
        "xml-other-encoding",
        source_graph("x.rdf", RDF_XML.replace('"1.0"', '"1.0" encoding="ISO-8859-1"')),
        ("x.rdf", "UTF-8"),
    ),
    Case(
        "xml-endless-entity",
        source_graph(
            "x.rdf",
            '<!DOCTYPE r [<!ENTITY a "&b;"><!ENTITY b "&a;">]>\n<r xmlns="http://x/">&a;</r>',
        ),
        ("x.rdf", "line 2"),
    ),
    Case("csv-short-row", graph("x.csv", "head,relation,tail\na,r,b\na,r\n"), ("x.csv", "line 3", "2 fields")),
    Case("csv-open-quote", graph("x.csv", 'a,r,b\n"a,r,b\na,r,b\n'), ("x.csv", "line 2", "quote")),
    Case("csv-text-after-quote", graph("x.csv", 'a,r,b\n"a"x,r,b\n'), ("x.csv", "line 2", "quote")),
    Case(
        "csv-column-name", graph("x.csv", "head,rel,tail\na,r,b\n"), ("x.csv", "line 1", "no column relation", "'rel'")
    ),
    Case("csv-column-twice", graph("x.csv", "head,relation,tail,tail\na,r,b,c\n"), ("x.csv", "line 1", "tail twice")),
    Case("csv-semicolons", graph("x.csv", "a;r;b\n"), ("x.csv", "line 1", "commas")),
    Case("csv-empty-relation", graph("x.csv", "a,r,b\na,,b\n"), ("x.csv", "line 2", "relation")),
    Case("tsv-header-only", graph("x.tsv", "head\trelation\ttail\n"), ("x.tsv", "no triples")),
    Case("tsv-four-columns", source_graph("x.tsv", "a\tr\tb\tc\n"), ("x.tsv", "line 1", "4 fields")),
    Case("parquet-garbage", graph("x.parquet", "not at all"), ("x.parquet", "Parquet")),
    Case("parquet-cut-off", graph("x.parquet", parquet({"head": ["a"] * 99})[:50]), ("x.parquet", "Parquet")),
    Case("parquet-columns", graph("x.parquet", parquet({"a": ["x"], "b": ["y"]})), ("x.parquet", "no column head")),
    Case(
        "parquet-type",
        graph("x.parquet", parquet({"head": ["a"], "relation": ["r"], "tail": [0.5]})),
        ("x.parquet", "column tail", "Float64"),
    ),
    Case(
        "parquet-null",
        graph("x.parquet", parquet({"head": ["a", None], "relation": ["r", "r"], "tail": ["b", "b"]})),
        ("x.parquet", "row 2", "head"),
    ),
    Case("tables-no-triples", tables({"literals.tsv": "a\tlabel\tx\n"}), ("tables", "no triples.tsv")),
    Case(
        "tables-two-triples",
        tables({"triples.tsv": "a\tr\tb\n", "triples.csv": "a,r,b\n"}),
        ("tables", "triples.csv and triples.tsv"),
    ),
    Case(
        "tables-names-contradict",
        tables({"triples.tsv": "a\tr\tb\n", "names.tsv": "a\tAnna\nb\tBea\na\tAnne\n"}),
        ("names.tsv", "line 3", "'Anne'"),
    ),
    Case(
        "tables-literals-short",
        tables({"triples.tsv": "a\tr\tb\n", "literals.tsv": "a\tlabel\n"}),
        ("literals.tsv", "line 1", "2 fields"),
    ),
    Case(
        "tables-literals-header",
        tables({"triples.tsv": "a\tr\tb\n", "literals.tsv": "entity\tattribute\ttext\na\tlabel\tx\n"}),
        ("literals.tsv", "line 1", "no column value"),
    ),
]

LINK_CASES = [
    Case("seeds-no-file", seeds("x.tsv", None), ("x.tsv", "no such file")),
    Case("seeds-extension", seeds("x.json", "[]"), ("x.json", ".json", ".sssom.tsv")),
    Case("seeds-no-bytes", seeds("x.tsv", ""), ("x.tsv", "empty")),
    Case("seeds-header-only", seeds("x.tsv", "source\ttarget\tconfidence\n"), ("x.tsv", "no links")),
    Case(
        "seeds-header-wrong",
        seeds("x.tsv", "source\tcible\nhttp://s/1\thttp://t/1\n"),
        ("x.tsv", "line 1", "no column target"),
    ),
    Case("seeds-in-brackets", seeds("x.tsv", "<http://s/1>\t<http://t/1>\n"), ("x.tsv", "line 1", "angle brackets")),
    Case(
        "seeds-other-identifiers", seeds("x.tsv", "one\teins\n"), ("x.tsv", "line 1", "'one'", "such as 'http://s/1'")
    ),
    Case("seeds-target-unknown", seeds("x.tsv", "http://s/1\teins\n"), ("x.tsv", "line 1", "target graph", "'eins'")),
    Case("seeds-confidence-high", seeds("x.csv", "http://s/1,http://t/1,1.5\n"), ("x.csv", "line 1", "'1.5'")),
    Case(
        "seeds-confidence-nan",
        seeds("x.tsv", "source\ttarget\tconfidence\nhttp://s/1\thttp://t/1\tnan\n"),
        ("x.tsv", "line 2", "'nan'"),
    ),
    Case("seeds-one-column", seeds("x.csv", "http://s/1\n"), ("x.csv", "line 1", "1 field")),
    Case("seeds-four-columns", seeds("x.csv", "a,b,c,d\n"), ("x.csv", "line 1", "4 fields")),
    Case(
        "seeds-parquet-columns",
        seeds("x.parquet", parquet({"left": ["a"], "right": ["b"]})),
        ("x.parquet", "no column source"),
    ),
    Case(
        "seeds-parquet-row",
        seeds("x.parquet", parquet({"source": ["http://s/1", "z", "y"], "target": ["http://t/1"] * 3})),
        ("x.parquet", "row 2", "'z'"),
    ),
    Case(
        "sssom-prefix",
        seeds("x.sssom.tsv", SSSOM + "U:1\tskos:exactMatch\tT:1\tx\t1\n"),
        ("x.sssom.tsv", "line 6", "'U:1'", "curie_map"),
    ),
    Case("sssom-no-curie", seeds("x.sssom.tsv", SSSOM.replace("S:1", "one")), ("x.sssom.tsv", "line 5", "no CURIE")),
    Case("sssom-confidence", seeds("x.sssom.tsv", SSSOM.replace("0.9", "high")), ("x.sssom.tsv", "line 5", "'high'")),
    Case(
        "sssom-other-predicate",
        seeds("x.sssom.tsv", SSSOM.replace("exactM", "broadM")),
        ("x.sssom.tsv", "skos:exactMatch"),
    ),
    Case("sssom-short-row", seeds("x.sssom.tsv", SSSOM + "S:1\tT:1\n"), ("x.sssom.tsv", "line 6", "2 fields")),
    Case("sssom-empty-object", seeds("x.sssom.tsv", SSSOM.replace("T:1", "")), ("x.sssom.tsv", "line 5", "object_id")),
    Case("sameas-none", seeds("x.nt", NT), ("x.nt", "owl:sameAs")),
    Case("sameas-syntax", seeds("x.nt", "\n<http://s/1> owl:sameAs <http://t/1> .\n"), ("x.nt", "line 2")),
    Case(
        "sameas-unknown",
        seeds("x.nt", "# links\n\n<http://s/9> <http://www.w3.org/2002/07/owl#sameAs> <http://t/1> .\n"),
        ("x.nt", "line 3", "'http://s/9'"),
    ),
    Case("alignment-half-cell", seeds("x.rdf", CELL.replace("entity2", "entity3")), ("x.rdf", "link 1", "no entity2")),
    Case("alignment-measure", seeds("x.rdf", CELL.replace("0.9", "-1")), ("x.rdf", "link 1", "'-1'")),
    Case("alignment-cut-off", seeds("x.rdf", CELL[:-12]), ("x.rdf", "line 8", "cut off")),
    Case("gold-header-only", evaluate("a\tb\n", "source\ttarget\n"), ("gold.tsv", "no links")),
    Case("gold-swapped", evaluate("a\tb\n", "b\ta\n"), ("links.tsv", "line 1", "exchange")),
    Case("gold-of-other-graphs", evaluate("a\tb\n", "c\td\n"), ("links.tsv", "line 1", "'a'", "gold.tsv")),
    Case("evaluated-confidence", evaluate("a\tb\t0.5\nc\td\t0,5\n", "a\tb\n"), ("links.tsv", "line 2", "'0,5'")),
]

VECTOR_CASES = [
    Case("vectors-extension", vectors("x.bin", {"x.bin": b"\x00\x01"}), ("x.bin", ".bin", ".safetensors")),
    Case("npy-without-ids", vectors("x.npy", {"x.npy": npy(VECTORS)}), ("x.npy", "no x.ids")),
    Case(
        "npy-objects",
        vectors("x.npy", {"x.npy": npy(np.array([[{}]], dtype=object), allow_pickle=True), "x.ids": IDS}),
        ("x.npy", "pickled"),
    ),
    Case("npy-is-pickle", vectors("x.npy", {"x.npy": pickle.dumps([1.0]), "x.ids": IDS}), ("x.npy", "no .npy file")),
    Case("npy-cut-off", vectors("x.npy", {"x.npy": npy(VECTORS)[:-8], "x.ids": IDS}), ("x.npy", "cut off")),
    Case("npy-no-bytes", vectors("x.npy", {"x.npy": b"", "x.ids": IDS}), ("x.npy", "no .npy file")),
    Case("npy-not-a-matrix", vectors("x.npy", {"x.npy": npy(VECTORS.ravel()), "x.ids": IDS}), ("x.npy", "(12,)")),
    Case("npy-words", vectors("x.npy", {"x.npy": npy(np.array([["a"]] * 6)), "x.ids": IDS}), ("x.npy", "type <U1")),
    Case("npy-no-columns", vectors("x.npy", {"x.npy": npy(VECTORS[:, :0]), "x.ids": IDS}), ("x.npy", "no columns")),
    Case(
        "npy-nan",
        vectors("x.npy", {"x.npy": npy(np.where(VECTORS == 5, np.nan, VECTORS)), "x.ids": IDS}),
        ("x.npy", "row 3", "not finite"),
    ),
    Case(
        "npy-too-large-numbers",
        vectors("x.npy", {"x.npy": npy(VECTORS.astype(np.float64) * 1e300), "x.ids": IDS}),
        ("x.npy", "row 1", "not finite"),
    ),
    Case(
        "npy-ids-too-few", vectors("x.npy", {"x.npy": npy(VECTORS), "x.ids": "a\nb\n"}), ("x.ids", "line 2", "6 rows")
    ),
    Case(
        "npy-ids-twice",
        vectors("x.npy", {"x.npy": npy(VECTORS), "x.ids": "a\nb\nc\na\nd\ne\n"}),
        ("x.ids", "line 4", "line 1"),
    ),
    Case(
        "npy-ids-blank",
        vectors("x.npy", {"x.npy": npy(VECTORS), "x.txt": "a\n\nc\nd\ne\nf\n"}),
        ("x.txt", "line 2", "empty"),
    ),
    Case(
        "npy-entity-missing",
        vectors("x.npy", {"x.npy": npy(VECTORS), "x.ids": IDS.replace("t/3", "t/4")}),
        ("x.npy", "1 of 3 target", "'http://t/3'"),
    ),
    Case(
        "npy-folder-half", vectors(".", {"source.npy": npy(VECTORS), "source.ids": IDS}), ("target.npy", "no such file")
    ),
    Case(
        "npy-folder-dimensions",
        vectors(
            ".", {"source.npy": npy(VECTORS), "source.ids": IDS, "target.npy": npy(VECTORS[:, :1]), "target.ids": IDS}
        ),
        ("vectors", "2 and 1 dimensions"),
    ),
    Case("w2v-short-row", word2vec(W2V + "http://x 0.5\n"), ("x.vec", "line 7", "1 numbers where 2")),
    Case("w2v-long-row", word2vec(W2V + "http://x 0.5 1 2\n"), ("x.vec", "line 7", "3 numbers where 2")),
    Case("w2v-word", word2vec(W2V.replace("0.5 4", "0.5 four")), ("x.vec", "line 5", "'four'")),
    Case("w2v-infinite", word2vec(W2V.replace("0.5 4", "0.5 inf")), ("x.vec", "line 5", "not finite")),
    Case("w2v-cut-off", word2vec("7 2\n" + W2V), ("x.vec", "line 7", "promises 7")),
    Case("w2v-wrong-dimension", word2vec("6 3\n" + W2V), ("x.vec", "line 2", "2 numbers where 3")),
    Case("w2v-twice", word2vec(W2V + "http://s/1 1 1\n"), ("x.vec", "line 7", "line 1")),
    Case("w2v-header-only", word2vec("0 2\n"), ("x.vec", "no vectors")),
    Case(
        "w2v-entity-missing",
        word2vec(W2V.replace("http://s/2", "http://s/7")),
        ("x.vec", "1 of 3 source", "'http://s/2'"),
    ),
    Case("w2v-latin-1", vectors("x.vec", {"x.vec": W2V.encode() + b"\xe9 1 1\n"}), ("x.vec", "line 7", "UTF-8")),
    Case("safetensors-garbage", vectors("x.safetensors", {"x.safetensors": "hello"}), ("x.safetensors", "cut off")),
    Case("safetensors-no-target", safetensors(without=("target",)), ("x.safetensors", "no matrix target")),
    Case("safetensors-no-metadata", safetensors_of(None), ("x.safetensors", "no metadata rlea")),
    Case("safetensors-no-json", safetensors_of("a,b,c"), ("x.safetensors", "rlea is no JSON;")),
    Case("safetensors-no-object", safetensors_of('["a"]'), ("x.safetensors", "rlea is no JSON object")),
    Case("safetensors-deep", safetensors_of("[" * 100_000), ("x.safetensors", "rlea is no JSON;")),
    Case("safetensors-no-ids", safetensors(without=("source_ids",)), ("x.safetensors", "rlea has no source_ids")),
    Case(
        "safetensors-ids-no-list", safetensors(target_ids={"a": 1}), ("x.safetensors", "target_ids", "list of strings")
    ),
    Case("safetensors-ids-too-few", safetensors(source_ids=["a"]), ("x.safetensors", "1 source_ids for the 3 rows")),
    Case("safetensors-ids-twice", safetensors(source_ids=["a", "b", "a"]), ("x.safetensors", "source row 3")),
    Case("safetensors-measure", safetensors(measure="euclid"), ("x.safetensors", "'euclid'", "manhattan")),
    Case("safetensors-measure-no-string", safetensors(measure=["inner"]), ("x.safetensors", "measure", "manhattan")),
    Case("safetensors-name", safetensors(name=3), ("x.safetensors", "name in its metadata is no JSON string")),
    Case("safetensors-info", safetensors(info=[1]), ("x.safetensors", "info in its metadata is no JSON object")),
    Case("safetensors-format", safetensors(format=2), ("x.safetensors", "format '2'", "update rlea")),
    Case(
        "safetensors-nan",
        safetensors({"target": np.full((3, 2), np.nan, np.float32)}),
        ("x.safetensors", "target row 1", "3 such"),
    ),
    Case(
        "safetensors-dimensions",
        safetensors({"target": np.ones((3, 4), np.float32)}),
        ("x.safetensors", "2 and 4 dimensions"),
    ),
    Case(
        "safetensors-shape",
        safetensors({"source": np.ones(3, np.float32)}),
        ("x.safetensors", "the matrix source", "(3,)"),
    ),
    Case("pykeen-no-model", pykeen(lambda: None), ("trained_model.pkl", "no such file")),
    Case("pykeen-no-bytes", pykeen(lambda: b""), ("trained_model.pkl", "damaged", "save_to_directory")),
    Case("pykeen-garbage", pykeen(lambda: pickle.dumps([1.0])), ("trained_model.pkl", "no model saved by PyKEEN")),
    Case("pykeen-cut-off", pykeen(lambda: torch_model()[:-99]), ("trained_model.pkl", "damaged")),
    Case("pykeen-harmful", pykeen(lambda: torch_model(spoil=lambda _: Harm())), ("trained_model.pkl", "system'")),
    Case(
        "pykeen-weights-alone",
        pykeen(lambda: torch_model(spoil=lambda model: model.state_dict())),
        ("trained_model.pkl", "holds OrderedDict", "no entity representations"),
    ),
    Case(
        "pykeen-no-table", pykeen(lambda: torch_model(spoil=without_table)), ("trained_model.pkl", "computes", ".npy")
    ),
    Case("pykeen-transposed", pykeen(lambda: torch_model(np.ones((2, 6)).T)), ("trained_model.pkl", "no plain matrix")),
    Case(
        "pykeen-type", pykeen(lambda: torch_model(bfloat16_table())), ("trained_model.pkl", "bfloat16", "model.float")
    ),
    Case(
        "pykeen-nan",
        pykeen(lambda: torch_model(np.where(VECTORS == 5, np.nan, VECTORS))),
        ("trained_model.pkl", "row 3", "not finite"),
    ),
    Case("pykeen-no-labels", pykeen(labels=None), ("entity_to_id.tsv.gz", "no such file", "TriplesFactory")),
    Case(
        "pykeen-labels-too-few",
        pykeen(lambda: torch_model(np.ones((7, 2)))),
        ("entity_to_id.tsv.gz", "6 labels for the 7 vectors"),
    ),
    Case(
        "pykeen-labels-too-many",
        pykeen(labels=LABELS + "6\tmore\n"),
        ("entity_to_id.tsv.gz", "line 8", "below 6", "'6\\tmore'"),
    ),
    Case(
        "pykeen-id-twice", pykeen(labels=LABELS.replace("\n4", "\n3")), ("entity_to_id.tsv.gz", "line 6", "each once")
    ),
    Case("pykeen-id-no-number", pykeen(labels=LABELS.replace("\n4", "\n-4")), ("entity_to_id.tsv.gz", "line 6", "'-4")),
    Case("pykeen-short-row", pykeen(labels=LABELS + "6\n"), ("entity_to_id.tsv.gz", "line 8", "'6'")),
    Case("pykeen-no-header", pykeen(labels=LABELS[9:]), ("entity_to_id.tsv.gz", "line 1", "id and label")),
    Case("pykeen-open-quote", pykeen(labels=LABELS + '6\t"more\n'), ("entity_to_id.tsv.gz", "line 8", "quotes")),
    Case(
        "pykeen-label-twice", pykeen(labels=LABELS.replace("t/3", "t/2")), ("entity_to_id.tsv.gz", "line 7", "line 6")
    ),
    Case(
        "pykeen-entity-missing",
        pykeen(labels=LABELS.replace("t/3", "t/4")),
        ("trained_model.pkl", "1 of 3 target", "'http://t/3'"),
    ),
]

CASES = [*BENCHMARK_CASES, *GRAPH_CASES, *LINK_CASES, *VECTOR_CASES]


def check_message(message: str, expected: tuple[str, ...]) -> None:
    """One sentence with its place and, behind the semicolon, what to do about it."""
    assert "\n" not in message
    assert message.endswith(".")
    assert not message.endswith("..")
    assert "; " in message
    place, _, problem = message.partition(": ")
    assert Path(place.partition(", line ")[0]).name == expected[0]
    assert problem
    for part in expected[1:]:
        assert part in message


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_readers_explain(case: Case, tmp_path: Path) -> None:
    argv = case.build(tmp_path)
    with pytest.raises(InputError) as caught:
        read_as_command(argv)
    check_message(str(caught.value), case.expected)


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_command_line_explains_and_leaves_nothing(case: Case, tmp_path: Path, run_cli: Any) -> None:
    argv = case.build(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    done = run_cli(*argv)
    assert done.code == 2
    assert done.out == ""
    assert "Traceback" not in done.err
    *_, last = done.err.strip().splitlines()
    assert last.startswith("Error: ")
    check_message(last.removeprefix("Error: "), case.expected)
    assert sorted(tmp_path.rglob("*")) == before


def test_kinds_are_distinct() -> None:
    assert len({case.id for case in CASES}) == len(CASES) >= 60


@pytest.mark.parametrize(
    "build",
    [
        openea({}),
        dbp15k({}),
        pair({}),
        graph("x.nt", NT),
        source_graph("x.rdf", RDF_XML),
        seeds("x.sssom.tsv", SSSOM),
        seeds("x.rdf", CELL),
        evaluate("a\tb\t0.5\n", "a\tb\n"),
        word2vec(W2V),
        word2vec("6 2\n" + W2V),
        safetensors(),
        vectors("x.npy", {"x.npy": npy(VECTORS), "x.ids": IDS}),
        pykeen(),
    ],
)
def test_good_files_pass(build: Build, tmp_path: Path) -> None:
    """What the cases spoil is good before: no case may fail for another reason than its own."""
    argv = build(tmp_path)
    assert read_as_command(argv) is None  # type: ignore[func-returns-value]
