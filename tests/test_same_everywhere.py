"""Scores, links and confidences are the same to the last bit, whatever the processor and the number of threads.

Another processor is imitated: libraries are told to use none of its newer instructions. Run as a script this file
prints digests of all results for one planted pair; a second process prints them in another environment.
"""

import ast
import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest

from rlea.agent.agent import Aligner
from rlea.evaluation.ranks import rank_metrics
from rlea.evidence.collect import Evidence
from rlea.evidence.dictionary.corpus import read_foreign, read_words
from rlea.evidence.dictionary.proposals import expected_vectors
from rlea.evidence.dictionary.translation import CrossFitted
from rlea.graph import Links, choose_pool
from rlea.io.synthetic import SyntheticSettings, generate
from rlea.matchers import MATCHERS
from rlea.matching import Task
from rlea.models.names import embed_names
from rlea.search.approximate import search_approximately
from rlea.search.candidates import find_candidates
from rlea.search.embeddings import Embeddings
from rlea.search.pairs import Pairs

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "rlea"


def digest(*parts):
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            found.update(f"{part.dtype} {part.shape}".encode() + np.ascontiguousarray(part).tobytes())
        else:
            found.update(repr(part).encode())
    return found.hexdigest()[:16]


def digests():
    pair = generate(SyntheticSettings(240, seeds=0.6, valid=0.1, name_noise=0.2, nameless=0.1))
    found = {"pair": digest(pair.source.triples, pair.target.names, pair.target.literals.values)}
    vectors = dict(all_vectors(pair))
    own = [replace(vectors["manhattan"], is_fitted=False), vectors["cosine"]]  # a channel, and fitted ones to weigh
    for label, links, given in (("seeds", pair.train, own), ("nothing", Links.empty(), [])):
        evidence = Evidence(pair, vectors=given[:1])
        channels = evidence.collect(links, links)
        pairs = Pairs.union([one.proposals for one in channels])
        for one in channels:
            ids = one.proposals.source_ids, one.proposals.target_ids
            found[f"{one.columns[0]} from {label}"] = digest(*ids, one.score(pairs), one.is_best(), one.info)
        known = replace(pair, train=links)
        found |= {f"{name} from {label}": value for name, value in of_agent(known, given, evidence)}
    for name, part in vectors.items():
        found |= {f"{what} by {name}": value for what, value in of_vectors(pair, part)}
    return found | {"dictionary": of_dictionary(pair)}


def of_dictionary(pair):
    """Scores and expectations of a dictionary from names in Latin letters and the same in Cyrillic ones."""
    names = [str(name).lower() for name in pair.source.names]
    cyrillic = str.maketrans("abcdefghijklmnopqrstuvwxyz", "абсдефгхийклмнопярстувщжыз")
    every, some = np.arange(len(names)), np.arange(0, len(names), 2)
    foreign = read_foreign([name.translate(cyrillic) for name in names])
    dictionary = CrossFitted.learn(foreign, read_words(names), some, some)
    vectors = expected_vectors(dictionary)
    return digest(dictionary.score(every, every), vectors.source.data, vectors.source.indices, vectors.target.data)


def of_agent(pair, vectors, evidence):
    """Links and confidences of the agent after every pass, and what it has learned."""
    agent = Aligner().fit(pair, vectors, evidence=evidence)
    assert (agent.pair_scorer is not None) == (len(pair.train) > 0)
    for name, scorer in (("channel scorer", agent.channel_scorer), ("pair scorer", agent.pair_scorer)):
        if scorer is not None:
            yield name, digest(*scorer.state().values())
    yield "calibration", digest(agent.calibration, agent.final_calibration, agent.weights, agent.history)
    for number, one in enumerate(agent.decide(pair, *choose_pool(pair, "all")[1:], vectors).passes):
        yield f"pass {number}", digest(one.source_ids, one.target_ids, one.confidences, one.priorities, one.logits)


def all_vectors(pair):
    rng = np.random.default_rng(5)
    source, target = (rng.random((graph.num_entities, 33)) - 0.5 for graph in (pair.source, pair.target))
    links = Links.union([pair.train, pair.test])
    target[links.target_ids] = source[links.source_ids] + 0.8 * target[links.target_ids]
    target[::7] *= 3.7
    for measure in ("cosine", "inner", "manhattan"):
        yield measure, Embeddings(source.astype(np.float32), target.astype(np.float32), measure=measure)
    yield "names", embed_names(pair)


def of_vectors(pair, vectors):
    pools = np.arange(pair.source.num_entities), np.arange(pair.target.num_entities)
    found = find_candidates(vectors, *pools, 10)
    yield "candidates", digest(found.forward_columns, found.pairs.columns, found.pairs.scores)
    yield "pairs", digest(found.score_pairs(pools[0], pools[0][::-1] % found.num_columns))
    yield "ranks", digest(rank_metrics(vectors, pair.test, pools[1]).as_dict())
    if not vectors.is_sparse:
        quick = find_candidates(vectors, *pools, 10, coarse=True)
        yield "coarse", digest(quick.forward_columns, quick.forward_scores, quick.backward_rows)
        near = search_approximately(vectors, *pools, 5, probes=3)
        yield "approximate", digest(near.candidates.forward_columns, near.candidates.forward_scores, near.as_dict())
    for name, matcher in MATCHERS.items():
        links = matcher(Task(pair.source, pair.target, pair.train, found))
        yield name, digest(links.source_ids, links.target_ids, links.confidences)


@pytest.fixture(scope="module")
def here():
    return digests()


def numpy_features():
    """The instruction sets that numpy has variants of its functions for."""
    from numpy._core import _multiarray_umath as core

    return " ".join(core.__cpu_dispatch__)


def threads(number):
    return dict.fromkeys(("NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS"), str(number))


OLD = {"NPY_DISABLE_CPU_FEATURES": numpy_features(), "OPENBLAS_CORETYPE": "Prescott"}
ENVIRONMENTS = {"two threads": threads(2), "old processor, one thread": OLD | threads(1)}


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_another_machine_gives_the_same_results(kind, here):
    environment = {**os.environ, "PYTHONHASHSEED": "7", **ENVIRONMENTS[kind]}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    there = json.loads(done.stdout)
    assert there.keys() == here.keys()
    assert [name for name, value in here.items() if there[name] != value] == []


# ---- what the source may use ----------------------------------------------------------------------------------------

DECIDING = (
    *("arithmetic.py", "matching.py", "graph/*.py", "search/*.py", "models/names.py", "io/synthetic.py"),
    *("evidence/*.py", "matchers/*.py", "evaluation/*.py", "agent/*.py"),
)
# No standard fixes the last bit of these.
FUNCTIONS = {
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "pow", "power", "float_power", "cbrt"),
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arccos", "arctan", "arctan2", "asin", "acos", "atan"),
    *("atan2", "hypot", "gamma", "lgamma", "erf", "erfc", "dist"),
}
PRODUCTS = {"einsum", "dot", "vdot", "inner", "matmul", "tensordot", "linalg", "MatMult"}  # summed in any order
ORDERS = {"partition", "argpartition", "argsort"}  # ties come in any order, unless a sort is stable
OTHERS = {"standard_normal", "normal", "round_sig_figs", "fastmath", "sklearn", "torch", "Pow"}
ALLOWED = {
    ("arithmetic.py", "Pow"): "powers of two are exact",
    ("search/rows.py", "Pow"): "constants that are powers of two",
    ("search/rows.py", "matmul"): "of whole numbers: nothing is rounded",
    ("agent/agent.py", "Pow"): "the largest random seed",
    ("agent/pair_scorer.py", "Pow"): "of whole numbers, to count weights",
    ("search/approximate.py", "MatMult"): "of whole numbers",
    ("evidence/words.py", "MatMult"): "of whole numbers",
    ("evaluation/ranks.py", "MatMult"): "near ties are computed again in a fixed order",
    ("evaluation/ranks.py", "Pow"): "constants that are powers of two",
    ("io/synthetic.py", "standard_normal"): "vectors for tests, which need not be the same everywhere",
}


def forbidden(tree):
    """The names of functions and operators that a file uses and should not."""
    for node in ast.walk(tree):
        is_library = isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("np", "math")
        if is_library and node.attr in FUNCTIONS | PRODUCTS:
            yield node.attr
        if isinstance(node, ast.Attribute) and node.attr in OTHERS:
            yield node.attr
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ORDERS:
            kinds = [ast.literal_eval(word.value) for word in node.keywords if word.arg == "kind"]
            if kinds not in (["stable"], ["mergesort"]):
                yield node.func.attr
        if isinstance(node, ast.keyword) and node.arg == "fastmath":
            yield "fastmath"
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult | ast.Pow):
            yield type(node.op).__name__
        if isinstance(node, ast.Import):
            yield from (one for name in node.names if (one := name.name.split(".")[0]) in OTHERS)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in OTHERS:
            yield node.module.split(".")[0]
        if isinstance(node, ast.ImportFrom) and node.module in ("numpy", "math"):
            yield from (name.name for name in node.names if name.name in FUNCTIONS | PRODUCTS)


def test_modules_that_decide_use_only_what_is_fixed():
    paths = {str(path.relative_to(SOURCE)): path for path in SOURCE.rglob("*.py")}
    used = set()
    for name, path in paths.items():
        if any(fnmatch(name, pattern) for pattern in DECIDING):
            used |= {(name, what) for what in forbidden(ast.parse(path.read_text()))}
    assert used == ALLOWED.keys()
    assert all(any(fnmatch(name, pattern) for name in paths) for pattern in DECIDING)


@pytest.mark.parametrize(
    "line",
    [
        "np.exp(x)",
        "math.log(x)",
        "from math import cos",
        "a @ b",
        "a @= b",
        "x ** 0.5",
        "np.linalg.norm(x)",
        "np.argsort(x)",
        "x.argsort()",
        "np.argsort(x, kind='quicksort')",
        "numba.njit(fastmath=True)",
        "import torch.nn",
        "from sklearn.preprocessing import normalize",
        "rng.standard_normal(3)",
        "pl.col('x').round_sig_figs(3)",
    ],
)
def test_what_is_not_fixed_is_found(line):
    assert len(list(forbidden(ast.parse(line)))) == 1


if __name__ == "__main__":
    print(json.dumps(digests()))
