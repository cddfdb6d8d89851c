"""Bad input of every kind we could think of: one sentence that names the file, the line and the remedy.

Each case writes its files into a folder and gives the command line that would read them; `expected` begins with the
name of the file at fault. The same table serves the readers, called directly, and the command line.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import json
import lzma
import os
import pickle
import struct
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import zstandard
from safetensors.numpy import save

from rlea.errors import InputError
from rlea.io.read import read
from rlea.io.readers import is_pair, read_graph, read_pair
from rlea.io.readers.columns import quiet_panics
from rlea.io.readers.link_files import looks_like_links, read_link_rows
from rlea.io.readers.links import read_matching_and_gold
from rlea.io.readers.vectors import read_embeddings
from small_graphs import write

Build = Callable[[Path], list[str]]


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


def align(*places: Path, tmp: Path, **options: str) -> list[str]:
    settings = {"embedding": "names", "matcher": "nearest", "output": str(tmp / "out")} | options
    return ["align", *map(str, places), *[word for key, value in settings.items() for word in (f"--{key}", value)]]


def spoil(good: Mapping[str, str], folder: str, changes: Mapping[str, Content], **options: str) -> Build:
    return lambda tmp: align(write(tmp / folder, {**good, **changes}), tmp=tmp, **options)


openea, dbp15k, pair = partial(spoil, OPENEA, "pair"), partial(spoil, DBP15K, "zh_en/0_3"), partial(spoil, PAIR, "pair")


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
        write(tmp, {**PAIR, name: content})
        return align(tmp / "source.nt", tmp / "target.nt", tmp=tmp, seeds=str(tmp / name))

    return build


def evaluate(links: Content, gold: Content) -> Build:
    files = {"links.tsv": links, "gold.tsv": gold}
    return lambda tmp: ["evaluate", *[str(write(tmp, files) / name) for name in files]]


def saved(save: Callable[[io.BytesIO], object]) -> bytes:
    """What a function writes to a file."""
    stream = io.BytesIO()
    save(stream)
    return stream.getvalue()


def parquet(columns: Mapping[str, Any]) -> bytes:
    return saved(pl.DataFrame(columns).write_parquet)


def npy(array: Any, *, allow_pickle: bool = False) -> bytes:
    return saved(lambda stream: np.save(stream, array, allow_pickle=allow_pickle))


def npy_of(header: str) -> bytes:
    text = header.ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(48)


def eight_bits() -> bytes:
    """A safetensors file with numbers of a type that numpy does not have."""
    told = {side: {"dtype": "F8_E4M3", "shape": [1, 2], "data_offsets": [0, 2]} for side in ("source",)}
    text = json.dumps(told).encode()
    return struct.pack("<Q", len(text)) + text + bytes(2)


IDS = "".join(f"http://{side}/{number}\n" for side in "st" for number in (1, 2, 3))
VECTORS = np.arange(12, dtype=np.float32).reshape(6, 2)


def vectors(name: str, files: Mapping[str, Content]) -> Build:
    """Vectors for the entities of a good pair."""

    def build(tmp: Path) -> list[str]:
        write(tmp / "vectors", files)
        return align(write(tmp / "pair", PAIR), tmp=tmp, embedding=str(tmp / "vectors" / name))

    return build


def safetensors(matrices: Mapping[str, Any] | None = None, without: tuple[str, ...] = (), **metadata: Any) -> Build:
    told = {side + "_ids": [f"http://{side[0]}/{n}" for n in (1, 2, 3)] for side in ("source", "target")} | metadata
    text = json.dumps({key: value for key, value in told.items() if key not in without})
    return safetensors_of(text, matrices, without)


def safetensors_of(text: str | None, matrices: Mapping[str, Any] | None = None, without: tuple[str, ...] = ()) -> Build:
    """Good matrices, but for those given, with this text for metadata."""
    tensors = {"source": VECTORS[:3].copy(), "target": VECTORS[3:].copy()} | dict(matrices or {})
    kept = {key: value for key, value in tensors.items() if key not in without}
    return vectors("x.safetensors", {"x.safetensors": save(kept, None if text is None else {"rlea": text})})


def word2vec(text: str) -> Build:
    return vectors("x.vec", {"x.vec": text})


W2V = "".join(f"{name} 0.5 {row}\n" for row, name in enumerate(IDS.split()))

LABELS = "id\tlabel\n" + "".join(f"{number}\t{name}\n" for number, name in enumerate(IDS.split()))


def torch_model(table: Any = VECTORS, *, change: Callable[[Any], Any] = lambda model: model) -> bytes:
    """A module with the attribute names of PyKEEN's models, as torch saves it."""
    import torch

    module = torch.nn.Module()
    module.entity_representations = torch.nn.ModuleList([torch.nn.Module()])
    module.entity_representations[0]._embeddings = torch.nn.Embedding.from_pretrained(torch.as_tensor(table))
    return saved(lambda stream: torch.save(change(module), stream))


def pykeen(model: Callable[[], bytes | None] = torch_model, labels: Content = LABELS) -> Build:
    """A folder of PyKEEN's; the model comes as a function, since only the cases that need torch should import it."""

    def build(tmp: Path) -> list[str]:
        files = {"trained_model.pkl": model(), "training_triples/entity_to_id.tsv.gz": labels}
        (tmp / "vectors" / "training_triples").mkdir(parents=True)
        return vectors(".", files)(tmp)

    return build


class Harm:
    """Asks for a command to be run when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("exit 1",)


def without_table(model: Any) -> Any:
    del model.entity_representations[0]._embeddings
    return model


# ---- the cases ------------------------------------------------------------------------------------------------------

# The file, what stands in it instead (None: nothing), words of the message.
SPOILT_OPENEA = [
    ("rel_triples_2", None, "no such file"),
    ("rel_triples_1", "a1\tr\ta2\na2\tr\n", "line 2", "2 fields"),
    ("rel_triples_2", "b1\tq\tb2\tb3\n", "line 1", "4 fields"),
    ("rel_triples_1", "a1\tr\ta2\n\tr\ta2\n", "line 2", "head"),
    ("rel_triples_1", "", "empty"),
    ("rel_triples_1", b"a1\tr\ta2\na2\tr\tMalm\xf6\n", "line 2", "UTF-8"),
    ("rel_triples_1", OPENEA["rel_triples_1"].encode("utf-16"), "line 1", "UTF-16"),
    ("rel_triples_1", "a1 r a2\n", "line 1", "not spaces"),
    ("rel_triples_1", "a1,r,a2\n", "line 1", ".csv"),
    ("rel_triples_1", "a1\tr\ta2\ra2\tr\ta3\r", "line 1"),
    ("rel_triples_1", gzip.compress(b"a\tr\tb\n" * 99)[:-9], "gzip"),
    ("attr_triples_1", "a1\tlabel\tx\na2\tlabel\n", "line 2"),
    ("ent_links", None, "no such file"),
    ("ent_links", "b1\ta1\nb2\ta2\nb3\ta3\n", "line 1", "swapped"),
    ("721_5fold/1/train_links", None, "no such file"),
    ("721_5fold/1/train_links", "a1\tb1\nx\tb2\na2\ty\n", "line 2", "source graph has no entity 'x'", "2 of 3"),
    ("721_5fold/1/train_links", "b1\ta1\n", "line 1", "swapped"),
    ("721_5fold/1/test_links", "a4\tb4\na3\t\n", "line 2", "target"),
    ("721_5fold/1/train_links", "a1\tb1\tsure\n", "line 1", "'sure'"),
]
SPOILT_DBP15K = [
    ("ent_ids_1", "0\thttp://x\n0\thttp://y\n", "line 2", "'http://y'"),
    ("ent_ids_2", None, "no such file"),
    ("triples_1", "0\t0\t4\n7\t0\t4\n", "line 2", "'7'", "ent_ids_1"),
    ("triples_2", "4\t5\t2\n", "line 1", "'5'", "rel_ids_2"),
    ("ref_ent_ids", "0\t2\n0\t9\n", "line 2", "'9'"),
    ("sup_ent_ids", None, "no such file"),
]
SPOILT_PAIR = [
    ("seeds.tsv", "source\ttarget\nhttp://s/1\n", "line 2"),
    ("seeds.tsv", "", "empty"),
    ("test.tsv", "http://s/1\thttp://t/99\n", "line 1", "'http://t/99'"),
]
# Graphs that are converted.
BAD_GRAPHS = [
    ("x.json", "{}", ".json", ".ttl"),
    ("dump", NT + "x\ty\tz\n", "(none)"),
    ("x.csv", "head,relation,tail\na,r,b\na,r\n", "line 3", "2 fields"),
    ("x.csv", 'a,r,b\n"a,r,b\na,r,b\n', "line 2", "quote"),
    ("x.csv", 'a,r,b\n"a"x,r,b\n', "line 2", "quote"),
    ("x.csv", "head,rel,tail\na,r,b\n", "line 1", "no column relation", "'rel'"),
    ("x.csv", "head,relation,tail,tail\na,r,b,c\n", "line 1", "tail twice"),
    ("x.csv", "a;r;b\n", "line 1", "commas"),
    ("x.csv", '""\n', "nothing but empty fields"),
    ("x.csv", "a,r,b\na,,b\n", "line 2", "relation"),
    ("x.tsv", "head\trelation\ttail\n", "no triples"),
    ("x.parquet", "not at all", "Parquet"),
    ("x.parquet", parquet({"head": ["a"] * 99})[:50], "Parquet"),
    ("x.parquet", parquet({"head": ["a"], "relation": ["r"], "tail": [0.5]}), "column tail", "Float64"),
    ("x.parquet", parquet({"head": ["a", None], "relation": ["r", "r"], "tail": ["b", "b"]}), "row 2", "head"),
]
# Graphs that are aligned with a good one.
BAD_SOURCES = [
    ("x.nt", NT + "<http://s/1> <http://r> .\n", "line 3", "column 25"),
    ("x.nt", "<http://s/1> <http://r> word .\n", "line 1"),
    ("x.nt", NT + "<http://s/1> <htt", "line 3"),
    ("x.nt", '"a" <http://r> <http://s> .\n', "line 1"),
    ("x.nt", '<http://s> <http://r> "\\uD800" .\n', "line 1"),
    ("x.nt", NT.replace("\n", " "), "line 1"),
    ("x.nt", NT.encode() + b'<http://s> <http://r> "\xe9" .\n', "line 3", "UTF-8"),
    ("x.nt", NT.encode("utf-16"), "line 1", "UTF-16"),
    ("x.nt", "", "no triples"),
    ("x.nt", "# nothing\n", "no triples"),
    ("x.nt", "<http://s> <http://r> <<( <http://a> <http://b> <http://c> )>> .\n", "object of another"),
    ("x.nt.gz", gzip.compress(NT.encode() * 50)[:-12], "gzip"),
    ("x.nt.gz", gzip.compress(NT.encode())[:-8] + bytes(8), "gzip"),
    ("x.nt.bz2", bz2.compress(NT.encode() * 50)[:-12], "bzip2", "cut off"),
    ("x.nt.bz2", bz2.compress(NT.encode())[:20] + bytes(30), "bzip2"),
    ("x.nt.xz", lzma.compress(NT.encode() * 50)[:-12], "xz", "cut off"),
    ("x.nt.xz", lzma.compress(NT.encode())[:30] + bytes(30), "xz"),
    ("x.nt.zst", zstandard.compress(NT.encode() * 50)[:-4], "Zstandard", "cut off"),
    ("x.nt.zst", zstandard.compress(NT.encode())[:9] + bytes(30), "Zstandard"),
    ("x.ttl.zst", bytes(30), "no Zstandard archive"),
    ("x.jsonld", '{"@context": "https://schema.org/", "@id": "http://a", "name": "A"}', "@context", "fetched"),
    ("x.jsonld", '{"@id": "http://a", ', "line 1", "JSON-LD"),
    ("x.nt", gzip.compress(b"\x00" * 9), "line 1"),
    ("x.ttl", "@prefix a: <http://a/> .\na:x b:y a:z .\n", "line 2", "prefix"),
    ("x.ttl", "<http://a> <http://b> [ <http://c> 1 .\n", "line 1"),
    ("x.nq", "<http://a> <http://b> <http://c> <http://g> <http://h> .\n", "line 1"),
    ("x.trig", "<http://g> {\n<http://a> <http://b> <http://c> .\n", "line"),
    ("x.rdf", RDF_XML.replace("</rdf:Desc", "</rdf:Disc"), "line 5"),
    ("x.rdf", RDF_XML[: RDF_XML.index("</rdf:Desc")], "line 5", "cut off"),
    ("x.owl", RDF_XML.replace("<e:r", "<f:r"), "line 4", "prefix"),
    ("x.xml", "<html><body><p>Not found</p></body></html>", "RDF/XML"),
    ("x.rdf", RDF_XML.replace("http://s/2", "http://s/ü").encode("latin-1"), "line 4", "UTF-8"),
    ("x.rdf", RDF_XML.replace('"1.0"', '"1.0" encoding="klingon"'), "line 1", "klingon", "UTF-8"),
    ("x.rdf", RDF_XML.replace('"1.0"', '"1.0" encoding="ascii"').replace("s/2", "s/ü"), "line 4", "ascii"),
    ("x.rdf", '<!DOCTYPE r [<!ENTITY a "&b;"><!ENTITY b "&a;">]>\n<r xmlns="http://x/">&a;</r>', "line 2"),
    ("x.tsv", "a\tr\tb\tc\n", "a header and no rows"),
]
# Links between two good graphs.
BAD_SEEDS = [
    ("x.tsv", None, "no such file"),
    ("x.json", "[]", ".json", ".sssom.tsv"),
    ("x.tsv", "source\ttarget\tconfidence\n", "no links"),
    ("x.tsv", "source\tcible\nhttp://s/1\thttp://t/1\n", "line 1", "no column target"),
    ("x.tsv", "<http://s/1>\t<http://t/1>\n", "line 1", "angle brackets"),
    ("x.tsv", "one\teins\n", "line 1", "'one'", "such as 'http://s/1'"),
    ("x.tsv", "http://s/1\teins\n", "line 1", "target graph", "'eins'"),
    ("x.csv", "http://s/1,http://t/1,1.5\n", "line 1", "'1.5'"),
    ("x.tsv", "source\ttarget\tconfidence\nhttp://s/1\thttp://t/1\tnan\n", "line 2", "'nan'"),
    ("x.csv", "a,b,c,d\n", "line 1", "4 fields"),
    ("x.csv", '""\n""\n', "nothing but empty fields"),
    ("x.parquet", parquet({"left": ["a"], "right": ["b"]}), "no column source"),
    ("x.parquet", parquet({"source": ["http://s/1", "z", "y"], "target": ["http://t/1"] * 3}), "row 2", "'z'"),
    ("x.jsonl", '{"source": "http://s/1", "target": "http://t/1"}\n["http://s/1"]\n', "line 2", "no link"),
    ("x.jsonl", '{"source": "http://s/1", "target": 7}\n', "line 1", "target is no text"),
    ("x.jsonl", '{"source": "http://s/1", "target": "\\ud800"}\n', "line 1", "target is no text"),
    ("x.jsonl", '{"source": "http://s/1", "target": " "}\n', "line 1", "target is empty"),
    ("x.jsonl", '{"source": "http://s/1", "target": "http://t/1", "confidence": 2}\n', "line 1", "'2'"),
    ("x.jsonl", "", "no links"),
    ("x.sssom.tsv", SSSOM + "U:1\tskos:exactMatch\tT:1\tx\t1\n", "line 6", "'U:1'", "curie_map"),
    ("x.sssom.tsv", SSSOM.replace("S:1", "one"), "line 5", "no CURIE"),
    ("x.sssom.tsv", SSSOM.replace("0.9", "high"), "line 5", "'high'"),
    ("x.sssom.tsv", SSSOM.replace("exactM", "broadM"), "skos:exactMatch"),
    ("x.sssom.tsv", SSSOM.replace("T:1", ""), "line 5", "object_id"),
    ("x.nt", NT, "owl:sameAs"),
    ("x.nt", "\n<http://s/1> owl:sameAs <http://t/1> .\n", "line 2"),
    (
        "x.nt",
        "# links\n\n<http://s/9> <http://www.w3.org/2002/07/owl#sameAs> <http://t/1> .\n",
        "line 3",
        "'http://s/9'",
    ),
    ("x.rdf", CELL.replace("entity2", "entity3"), "link 1", "no entity2"),
    ("x.rdf", CELL.replace("0.9", "-1"), "link 1", "'-1'"),
    ("x.rdf", CELL[:-12], "line 8", "cut off"),
]
# Vectors as text.
BAD_WORD2VEC = [
    (W2V + "http://x 0.5\n", "line 7", "1 numbers where 2"),
    (W2V + "http://x 0.5 1 2\n", "line 7", "3 numbers where 2"),
    (W2V.replace("0.5 4", "0.5 four"), "line 5", "'four'"),
    (W2V.replace("0.5 4", "0.5 inf"), "line 5", "not finite"),
    ("7 2\n" + W2V, "line 7", "promises 7"),
    ("6 3\n" + W2V, "line 2", "2 numbers where 3"),
    ("0 2\n", "no vectors"),
    ("² ²\n" + W2V, "line 1", "1 numbers where 2"),
    ("6 99999999999999999999999\n" + W2V, "line 1", "1 numbers where 2"),
    ("6 2000000000\n" + W2V, "line 2", "2 numbers where 2000000000"),
]
# Headers of .npy files over the numbers of a good one.
BAD_NPY = [
    "{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 2), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 2), }",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (True, 2), }",
    "{'descr': ((((((",
    "(" * 5000,
    "",
]
# Arguments of `safetensors`.
BAD_SAFETENSORS = [
    ({"without": ("target",)}, "no matrix target"),
    ({"without": ("source_ids",)}, "rlea has no source_ids"),
    ({"target_ids": {"a": 1}}, "target_ids", "list of strings"),
    ({"source_ids": ["a"]}, "1 source_ids for the 3 rows"),
    ({"measure": "euclid"}, "'euclid'", "manhattan"),
    ({"name": 3}, "name in its metadata is no JSON string"),
    ({"info": [1]}, "info in its metadata is no JSON object"),
    ({"format": 2}, "format '2'", "update rlea"),
    ({"matrices": {"target": np.full((3, 2), np.nan, np.float32)}}, "target row 1", "3 such"),
    ({"matrices": {"target": np.ones((3, 4), np.float32)}}, "2 and 4 dimensions"),
    ({"matrices": {"source": np.ones(3, np.float32)}}, "the matrix source", "(3,)"),
]
# Text for the metadata.
BAD_METADATA = [
    (None, "no metadata rlea"),
    ("a,b,c", "rlea is no JSON;"),
    ('["a"]', "rlea is no JSON object"),
    ("[" * 100_000, "rlea is no JSON;"),
]
# Models of PyKEEN, made only when needed.
BAD_MODELS = [
    (lambda: None, "no such file"),
    (lambda: torch_model()[:-99], "damaged"),
    (lambda: torch_model(change=lambda _: Harm()), "system'"),
    (lambda: torch_model(change=lambda model: model.state_dict()), "holds OrderedDict", "no entity representations"),
    (lambda: torch_model(change=without_table), "computes", ".npy"),
    (lambda: torch_model(np.ones((2, 6)).T), "no plain matrix"),
    (lambda: torch_model(change=lambda model: model.bfloat16()), "bfloat16", "model.float"),
]
# Labels of PyKEEN.
BAD_LABELS = [
    (None, "no such file", "TriplesFactory"),
    (LABELS + "6\tmore\n", "line 8", "below 6", "not '6'"),
    (LABELS.replace("\n4", "\n3"), "line 6", "each once"),
    (LABELS.replace("\n4", "\n-4"), "line 6", "'-4"),
    (LABELS + '6\t"more\n', "line 8", "quotes"),
    (LABELS.replace("t/3", "t/2"), "line 7", "line 6"),
]
OTHERS = [
    (openea({"rel_triples_2": None, "rel_triples_2/x": "y"}), "rel_triples_2", "folder"),
    (openea({}, fold="9"), "721_5fold", "'9'", "those there: 1"),
    (openea({}, fold="631_5fold/1"), "pair", "'631_5fold'"),
    (openea({name: None for name in OPENEA if "fold" in name}), "pair", "721_5fold", "train_links"),
    (
        openea(
            {name: None for name in OPENEA if "fold" in name}
            | {"532_5fold/1/train_links": "a1\tb1\n", "820_5fold/1/train_links": "a1\tb1\n"}
        ),
        "pair",
        "532_5fold, 820_5fold",
        "532_5fold/1",
    ),
    (dbp15k({}, fold="1"), "0_3", "no folds", "leave out"),
    (
        lambda tmp: align(
            write(tmp / "zh_en", {f"{split}/{n}": c for split in ("0_3", "0_4") for n, c in DBP15K.items()}), tmp=tmp
        ),
        "zh_en",
        "0_3, 0_4",
    ),
    (pair({"source.tsv": "a\tr\tb\n"}), "pair", "source.nt and source.tsv", "remove"),
    (pair({"target.nt": None}), "pair", "no graph called target", "add target.nt"),
    (pair({}, fold="2"), "pair", "no folds"),
    (lambda tmp: align(write(tmp / "pair", {"notes.txt": "x"}), tmp=tmp), "pair", "rel_triples_1"),
    (lambda tmp: align(tmp / "nowhere", tmp=tmp), "nowhere", "no such folder"),
    (lambda tmp: align(write(tmp, PAIR) / "source.nt", tmp=tmp), "source.nt", "second one"),
    (lambda tmp: align(write(tmp / "all", {f"X_Y/{n}": c for n, c in OPENEA.items()}), tmp=tmp), "all", "in it: X_Y"),
    (lambda tmp: ["convert", str(tmp / "no.nt"), str(tmp / "out.nt")], "no.nt", "no such file"),
    (lambda tmp: align(write(tmp / "p", OPENEA), tmp / "t.nt", tmp=tmp), "p", "pair of graphs"),
    (tables({"notes.md": "a\tlabel\tx\n"}), "tables", "no triples.tsv"),
    (tables({"triples.tsv": "a\tr\tb\n", "triples.csv": "a,r,b\n"}), "tables", "triples.csv and triples.tsv"),
    (tables({"triples.tsv": "a\tr\tb\n", "names.tsv": "a\tAnna\nb\tBea\na\tAnne\n"}), "names.tsv", "line 3", "'Anne'"),
    (tables({"triples.tsv": "a\tr\tb\n", "literals.tsv": "a\tlabel\n"}), "literals.tsv", "line 1", "2 fields"),
    (
        tables({"triples.tsv": "a\tr\tb\n", "literals.tsv": "entity\tattribute\ttext\na\tlabel\tx\n"}),
        "literals.tsv",
        "line 1",
        "no column value",
    ),
    (evaluate("a\tb\n", "source\ttarget\n"), "gold.tsv", "no links"),
    (evaluate("a\tb\n", "b\ta\n"), "links.tsv", "line 1", "exchange"),
    (evaluate("a\tb\n", "c\td\n"), "links.tsv", "line 1", "'a'", "gold.tsv"),
    (evaluate("a\tb\t0.5\nc\td\t0,5\n", "a\tb\n"), "links.tsv", "line 2", "'0,5'"),
    (vectors("x.bin", {"x.bin": b"\x00\x01"}), "x.bin", ".bin", ".safetensors"),
    (vectors("x.npy", {"x.npy": npy(VECTORS)}), "x.npy", "no x.ids"),
    (
        vectors("x.npy", {"x.npy": npy(np.array([[{}]], dtype=object), allow_pickle=True), "x.ids": IDS}),
        "x.npy",
        "pickled",
    ),
    (vectors("x.npy", {"x.npy": pickle.dumps([1.0]), "x.ids": IDS}), "x.npy", "no .npy file"),
    (vectors("x.npy", {"x.npy": npy(VECTORS)[:-8], "x.ids": IDS}), "x.npy", "cut off"),
    (vectors("x.npy", {"x.npy": npy(VECTORS.ravel()), "x.ids": IDS}), "x.npy", "(12,)"),
    (vectors("x.npy", {"x.npy": npy(np.array([["a"]] * 6)), "x.ids": IDS}), "x.npy", "type <U1"),
    (vectors("x.npy", {"x.npy": npy(VECTORS[:, :0]), "x.ids": IDS}), "x.npy", "no columns"),
    (
        vectors("x.npy", {"x.npy": npy(np.where(VECTORS == 5, np.nan, VECTORS)), "x.ids": IDS}),
        "x.npy",
        "row 3",
        "not finite",
    ),
    (vectors("x.npy", {"x.npy": npy(VECTORS), "x.ids": "a\nb\n"}), "x.ids", "line 2", "6 rows"),
    (vectors("x.npy", {"x.npy": npy(VECTORS), "x.ids": "a\nb\nc\na\nd\ne\n"}), "x.ids", "line 4", "line 1"),
    (vectors("x.npy", {"x.npy": npy(VECTORS), "x.txt": "a\n\nc\nd\ne\nf\n"}), "x.txt", "line 2", "empty"),
    (
        vectors("x.npy", {"x.npy": npy(VECTORS), "x.ids": IDS.replace("t/3", "t/4")}),
        "x.npy",
        "1 of 3 target",
        "'http://t/3'",
    ),
    (vectors(".", {"source.npy": npy(VECTORS), "source.ids": IDS}), "target.npy", "no such file"),
    (
        vectors(
            ".", {"source.npy": npy(VECTORS), "source.ids": IDS, "target.npy": npy(VECTORS[:, :1]), "target.ids": IDS}
        ),
        "vectors",
        "2 and 1 dimensions",
    ),
    (vectors("x.safetensors", {"x.safetensors": eight_bits()}), "x.safetensors", "'source' of a type", "float32"),
    (vectors("x.safetensors", {"x.safetensors": "hello"}), "x.safetensors", "cut off"),
    (pykeen(lambda: torch_model(np.ones((7, 2)))), "entity_to_id.tsv.gz", "6 labels for the 7 vectors"),
]
CASES: list[tuple[Build, tuple[str, ...]]] = [
    *[(openea({file: content}), (Path(file).name, *words)) for file, content, *words in SPOILT_OPENEA],
    *[(dbp15k({file: content}), (file, *words)) for file, content, *words in SPOILT_DBP15K],
    *[(pair({file: content}), (file, *words)) for file, content, *words in SPOILT_PAIR],
    *[(graph(name, content), (name, *words)) for name, content, *words in BAD_GRAPHS],
    *[(source_graph(name, content), (name, *words)) for name, content, *words in BAD_SOURCES],
    *[(seeds(name, content), (name, *words)) for name, content, *words in BAD_SEEDS],
    *[(word2vec(text), ("x.vec", *words)) for text, *words in BAD_WORD2VEC],
    *[(safetensors(**more), ("x.safetensors", *words)) for more, *words in BAD_SAFETENSORS],
    *[(safetensors_of(text), ("x.safetensors", *words)) for text, *words in BAD_METADATA],
    *[(vectors("x.npy", {"x.npy": npy_of(header), "x.ids": IDS}), ("x.npy", "no .npy file")) for header in BAD_NPY],
    *[(pykeen(model), ("trained_model.pkl", *words)) for model, *words in BAD_MODELS],
    *[(pykeen(labels=labels), ("entity_to_id.tsv.gz", *words)) for labels, *words in BAD_LABELS],
    *[(build, tuple(words)) for build, *words in OTHERS],
]
IDS_OF_CASES = [" ".join(expected[:3]) for _, expected in CASES]


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


@pytest.mark.parametrize(("build", "expected"), CASES, ids=IDS_OF_CASES)
def test_readers_explain(build: Build, expected: tuple[str, ...], tmp_path: Path) -> None:
    argv = build(tmp_path)
    with pytest.raises(InputError) as caught:
        read_as_command(argv)
    check_message(str(caught.value), expected)


# What the readers raise, the command line prints: some of each kind are enough.
@pytest.mark.parametrize(("build", "expected"), CASES[::7], ids=IDS_OF_CASES[::7])
def test_command_line_explains_and_leaves_nothing(
    build: Build, expected: tuple[str, ...], tmp_path: Path, run_cli: Any
) -> None:
    argv = build(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    done = run_cli(*argv)
    assert (done.code, done.out) == (2, "")
    *_, last = done.err.strip().splitlines()
    assert last.startswith("Error: ")
    check_message(last.removeprefix("Error: "), expected)
    assert sorted(tmp_path.rglob("*")) == before


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


def test_a_message_is_a_sentence_however_long_the_identifier() -> None:
    with pytest.raises(InputError) as caught:
        read([("a", "r", "b")], [("c", "r", "d")], seeds={"q" * 70_000: "c"})
    assert len(str(caught.value)) < 3000


def test_half_a_character_in_an_iri_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "x.nt").write_text("<urn:rlea:%ED%A0%80> <http://r> <urn:rlea:b%20c> .\n")
    assert read_graph(tmp_path / "x.nt").entities == ("b c", "urn:rlea:%ED%A0%80")


def test_damaged_parquet_prints_nothing_of_its_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Some damage makes the parser panic, which prints where in its source that was."""
    pl.DataFrame({"head": ["a"] * 99, "relation": ["r"] * 99, "tail": ["b"] * 99}).write_parquet(tmp_path / "good")
    good, chance = (tmp_path / "good").read_bytes(), np.random.default_rng(1)
    for _ in range(150):
        spoilt = bytearray(good)
        for place in chance.integers(len(good), size=4).tolist():
            spoilt[place] = int(chance.integers(256))
        (tmp_path / "x.parquet").write_bytes(spoilt)
        with contextlib.suppress(InputError):
            read_graph(tmp_path / "x.parquet")
    assert capfd.readouterr() == ("", "")


def test_what_others_print_while_parquet_is_read_is_not_lost(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet_panics():
        os.write(2, b"progress")
    assert capfd.readouterr().err == "progress"
