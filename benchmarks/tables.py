"""Two tables in, links out: rlea with nothing but the files, beside plain strings and other programs.

    python benchmarks/tables.py --data DIR --json FILE

Every program gets the same two CSV files, whose gold is complete. `rlea` is `rlea align A B` without options: links as
written. Run a second time, the columns of the second table are called otherwise. Strings are TF-IDF vectors of words,
or of three letters in a row, of all values with the best one-to-one mapping; all links of it count, or those above the
threshold with the best F1, which nobody could know. splink and pyjedai run, if they are installed, with settings of our
own that nobody tuned and that were not checked against their documentation: they may do far better, splink on shops
above all. rlea was developed with these tables in sight (docs/measuring.md).
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from pathlib import Path

import numpy as np

TABLES = {"shops": ("abt.csv", "buy.csv", "|"), "bibliographies": ("dblp.csv", "acm.csv", "%")}


def read_table(path, separator):
    """All rows as dicts."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter=separator))


def score(found, gold):
    """Precision, recall and F1 of pairs of ids; gold is complete."""
    right = len(found & gold)
    return {
        "links": len(found),
        "precision": right / max(1, len(found)),
        "recall": right / len(gold),
        "f1": 2 * right / (len(found) + len(gold)),
    }


def renamed(path, separator, folder):
    """The same table with other names of its columns."""
    lines = path.read_text(encoding="utf-8").split("\n", 1)
    header = separator.join(f"feld{number}" for number, _ in enumerate(lines[0].split(separator)))
    copy = Path(folder) / path.name
    copy.write_text(f"{header}\n{lines[1]}", encoding="utf-8")
    return copy


def by_rlea(one, other):
    """`rlea align one other` and nothing else."""
    import rlea

    result = rlea.align(rlea.read(one, other))
    frame = result.to_polars()
    return set(zip(frame["source"].to_list(), frame["target"].to_list(), strict=True))


def by_strings(rows, others, pieces):
    """Pairs of the best one-to-one mapping by TF-IDF, the most alike first."""
    from scipy.optimize import linear_sum_assignment

    from rlea.graph.names import plain
    from rlea.search.bags import count_terms, having, weigh_terms

    texts = [plain(" ".join(value for key, value in row.items() if key != "id" and value)) for row in [*rows, *others]]
    counts = count_terms(map(pieces, texts))
    vectors = weigh_terms(counts, having(counts))
    alike = (vectors[: len(rows)] @ vectors[len(rows) :].T).toarray()
    ends = linear_sum_assignment(-alike)
    order = np.argsort(-alike[ends], kind="stable")
    return [(rows[ends[0][k]]["id"], others[ends[1][k]]["id"]) for k in order.tolist()]


def best_cut(pairs, gold):
    """As many of the first pairs as have the best F1."""
    right = np.cumsum([pair in gold for pair in pairs])
    return set(pairs[: int(np.argmax(2 * right / (np.arange(1, len(right) + 1) + len(gold)))) + 1])


def by_splink(rows, others):
    """Fellegi-Sunter with simple settings of our own: trained by EM, one-to-one above .5."""
    import pandas as pd
    import splink.comparison_library as cl
    from splink import DuckDBAPI, Linker, SettingsCreator, block_on

    frames = [pd.DataFrame(part).rename(columns={"id": "unique_id"}).replace("", None) for part in (rows, others)]
    names = [name for name in frames[0].columns if name != "unique_id"]
    settings = SettingsCreator(
        link_type="link_only",
        blocking_rules_to_generate_predictions=[block_on(f"substr({name}, 1, 6)") for name in names[:3]],
        comparisons=[cl.JaroWinklerAtThresholds(name, [0.9, 0.7]) for name in names],
    )
    linker = Linker(frames, settings, db_api=DuckDBAPI())
    linker.training.estimate_probability_two_random_records_match([block_on(names[0])], recall=0.5)
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6, seed=1)
    for name in names[:2]:
        linker.training.estimate_parameters_using_expectation_maximisation(block_on(f"substr({name}, 1, 6)"))
    found = linker.inference.predict(threshold_match_probability=0.5).as_pandas_dataframe()
    found = found.sort_values(["match_probability", "unique_id_l", "unique_id_r"], ascending=[False, True, True])
    left, right, pairs = set(), set(), set()
    is_first = found["source_dataset_l"].min() if len(found) else ""
    for row in found.itertuples():
        one, other = row.unique_id_l, row.unique_id_r
        if row.source_dataset_l != is_first:
            one, other = other, one
        if one not in left and other not in right:
            left.add(one)
            right.add(other)
            pairs.add((one, other))
    return pairs


def by_pyjedai(rows, others):
    """Blocks, TF-IDF of letters, unique mapping, with simple settings of our own."""
    import pandas as pd
    from pyjedai.block_building import StandardBlocking
    from pyjedai.block_cleaning import BlockFiltering, BlockPurging
    from pyjedai.clustering import UniqueMappingClustering
    from pyjedai.comparison_cleaning import WeightedEdgePruning
    from pyjedai.datamodel import Data
    from pyjedai.matching import EntityMatching

    frames = [pd.DataFrame(part).astype(str).reset_index(drop=True) for part in (rows, others)]
    data = Data(
        dataset_1=frames[0],
        id_column_name_1="id",
        attributes_1=[name for name in frames[0].columns if name != "id"],
        dataset_2=frames[1],
        id_column_name_2="id",
        attributes_2=[name for name in frames[1].columns if name != "id"],
    )
    blocks = StandardBlocking().build_blocks(data, tqdm_disable=True)
    blocks = BlockPurging().process(blocks, data, tqdm_disable=True)
    blocks = BlockFiltering(ratio=0.8).process(blocks, data, tqdm_disable=True)
    candidates = WeightedEdgePruning(weighting_scheme="EJS").process(blocks, data, tqdm_disable=True)
    matcher = EntityMatching(
        metric="cosine", tokenizer="char_tokenizer", vectorizer="tfidf", qgram=3, similarity_threshold=0.0
    )
    graph = matcher.predict(candidates, data, tqdm_disable=True)
    clusters = UniqueMappingClustering().process(graph, data, similarity_threshold=0.17)
    first = frames[0]["id"].to_list(), frames[1]["id"].to_list()
    pairs = set()
    for cluster in clusters:
        ids = sorted(cluster)
        if len(ids) == 2:
            pairs.add((first[0][ids[0]], first[1][ids[1] - len(first[0])]))
    return pairs


def measure(name, folder):
    """Rows of figures of one pair of tables."""
    from rlea.evidence.words import trigrams

    one, other, separator = TABLES[name]
    paths = folder / one, folder / other
    rows, others = (read_table(path, separator) for path in paths)
    gold = {tuple(row.values()) for row in read_table(folder / "gold.csv", separator)}
    by_rlea(*paths)  # compiling is not part of aligning

    def timed(program, run):
        begin = time.perf_counter()
        try:
            found = run()
        except ImportError as error:
            return {"pair": name, "program": program, "missing": str(error.name)}
        return {"pair": name, "program": program, **score(found, gold), "seconds": time.perf_counter() - begin}

    yield timed("rlea", lambda: by_rlea(*paths))
    with tempfile.TemporaryDirectory() as place:
        copy = renamed(paths[1], separator, place)
        yield timed("rlea, other names of columns", lambda: by_rlea(paths[0], copy))
    for kind, pieces in (("words", str.split), ("three letters", trigrams)):
        yield timed(f"TF-IDF of {kind}", lambda pieces=pieces: set(by_strings(rows, others, pieces)))
        yield timed(
            f"TF-IDF of {kind}, best threshold",
            lambda pieces=pieces: best_cut(by_strings(rows, others, pieces), gold),
        )
    yield timed("splink", lambda: by_splink(rows, others))
    yield timed("pyjedai", lambda: by_pyjedai(rows, others))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with shops and bibliographies")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    import rlea
    from rlea.record import as_json, describe_run

    found, prints = [], {}
    for name, (one, other, _) in TABLES.items():
        prints[name] = rlea.read(options.data / name / one, options.data / name / other).fingerprint
        for row in measure(name, options.data / name):
            found.append({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
            print(found[-1], flush=True)
    if options.json:
        record = describe_run(rows=found, fingerprints=prints, seed=0)
        record["command"] = "python benchmarks/tables.py --data DIR"
        options.json.write_text(as_json(record), encoding="utf-8")


if __name__ == "__main__":
    main()
