"""Are links right as often as their confidence says, on small pairs, with more and more seeds, beside plain strings?

    python benchmarks/confidence.py --data DIR --parts strings,small,unequal,seeds --json FILE

Pairs are cut as in `rlea reproduce overlap`, so a link that is not gold is wrong.

- small: pairs of 50 to 300 entities a side of which none, 15 %, 50 % or all are shared, twenty random draws each, from
  the smallest to the largest; and as many entities of two graphs, or tables, of different fields.
- unequal: 100 entities against 900, and 900 against 100, of which none or 50 are shared, five random draws each.
- seeds: the F1 of links of entities that are never seeds, by the number of seeds; drawn at random, and among the most
  connected tenth.
- strings: what is to be beaten on tables: words or three letters in a row of all values as TF-IDF vectors, the best
  one-to-one mapping, and the threshold that gives the best F1, which nobody could know.

Parts and pairs that the file has and that are not asked for stay in it.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

SHARES, DRAWS = (0.0, 0.15, 0.5, 1.0), 20
SIZES = [(size, size) for size in np.linspace(50, 300, DRAWS).round().astype(int).tolist()]  # of every draw
SMALL, LARGE, HALF, FEWER_DRAWS = 100, 900, (0.0, 0.5), 5
PAIRS, STRANGERS = ("bibliographies", "shops", "demo", "D_W"), ("unrelated", "unrelated-tables")
SEEDS = (0, 20, 50, 100, 300, 1000, 0.2)
SEEDED = (
    *(("bibliographies", 0.25), ("shops", 0.5), ("demo", 0.5)),
    *(("D_W", 0.25), ("D_W", 1.0), ("EN_FR", 1.0), ("EN_DE", 1.0), ("D_Y", 1.0)),
)


def small_pair(pair, gold, share, draw, sizes):
    """So many entities a side of a whole pair, a share of those of the smaller side with their counterpart."""
    from rlea.graph import GraphPair, Links

    order = np.random.default_rng([draw, round(100 * share)]).permutation(len(gold))
    shared = round(share * min(sizes))
    both, one, other = np.split(order[: sum(sizes) - shared], [shared, sizes[0]])
    source, target = (
        np.sort(ids[np.concatenate([both, own])]) for ids, own in ((gold.source_ids, one), (gold.target_ids, other))
    )
    links = Links.of(np.searchsorted(source, gold.source_ids[both]), np.searchsorted(target, gold.target_ids[both]))
    return GraphPair(pair.name, pair.source.some(source), pair.target.some(target)), links


def strangers(pair, draw, size):
    """So many entities of either graph of an unrelated pair."""
    from rlea.graph import GraphPair, Links

    random = np.random.default_rng([draw, size])
    source, target = (graph.some(random.permutation(graph.num_entities)[:size]) for graph in (pair.source, pair.target))
    return GraphPair(pair.name, source, target), Links.empty()


def is_right(links, gold):
    """Which links are gold."""
    known = set(zip(gold.source_ids.tolist(), gold.target_ids.tolist(), strict=True))
    return np.array(
        [one in known for one in zip(links.source_ids.tolist(), links.target_ids.tolist(), strict=True)], bool
    )


def measure_small(name, pair, gold, part, draws, shares):
    """Figures over all draws, each of a size: links of all draws are put together."""
    import rlea

    for share in shares:
        written, confidences, right, estimates = [], [], [], []
        for draw, sizes in enumerate(draws):
            is_unrelated = name in STRANGERS
            own, links = strangers(pair, draw, sizes[0]) if is_unrelated else small_pair(pair, gold, share, draw, sizes)
            result = rlea.align(own, pool="all")
            written.append((len(result), int(is_right(result.matching, links).sum()), len(links)))
            for found in (result.matching, result.doubtful):
                confidences.append(found.confidences)
                right.append(is_right(found, links))
            estimates.append(0.0 if result.overlap is None else result.overlap.shared / min(sizes))
        links, found, there = np.sum(written, axis=0)
        confidences, right = np.concatenate(confidences), np.concatenate(right)
        sure = confidences >= 0.9
        bins = np.minimum((10 * confidences).astype(int), 9)
        gaps = [abs(float((confidences - right)[bins == k].sum())) for k in range(10)]
        yield {
            "part": part,
            "pair": name,
            "share": share,
            "entities": sorted({source for source, _ in draws}),
            "targets": sorted({target for _, target in draws}),
            "draws": len(draws),
            "f1": 2 * found / max(1, links + there),
            "links": links / len(draws),
            "right": found / len(draws),
            "links@.9": int(sure.sum()),
            "precision@.9": float(right[sure].mean()) if sure.any() else None,
            "ece": sum(gaps) / max(1, len(right)),
            "overlap": float(np.mean(estimates)),
            "overlap_off": float(np.mean(np.abs(np.array(estimates) - share))),
        }


def measure_seeds(name, share, pair, gold, by):
    """F1 of links of entities that are a seed in no row, as written by default."""
    import rlea
    from rlea.graph import Links

    counts = [round(number * len(gold)) if 0 < number < 1 else int(number) for number in SEEDS]
    order = np.random.default_rng(5).permutation(len(gold))
    if by == "degree":
        degrees = np.bincount(pair.source.triples[:, [0, 2]].ravel(), minlength=pair.source.num_entities)
        tenth = np.argsort(-degrees[gold.source_ids], kind="stable")[: len(gold) // 10]
        order = tenth[np.random.default_rng(5).permutation(len(tenth))]
    counts = sorted({count for count in counts if count <= len(order)})
    judged = np.setdiff1d(np.arange(len(gold)), order[: counts[-1]])
    kept = Links.of(gold.source_ids[judged], gold.target_ids[judged])
    never = np.setdiff1d(gold.source_ids, kept.source_ids)
    for count in counts:
        chosen = order[:count]
        seeded = replace(pair, train=Links.of(gold.source_ids[chosen], gold.target_ids[chosen]))
        links = rlea.align(seeded, pool="all").matching
        links = links.some(~np.isin(links.source_ids, never))
        f1 = 2 * int(is_right(links, kept).sum()) / max(1, len(links) + len(kept))
        yield {"part": "seeds", "pair": name, "share": share, "drawn": by or "at random", "seeds": count, "f1": f1}


def measure_strings(name, share, pair, gold):
    """The best F1 of plain strings over all thresholds."""
    from scipy.optimize import linear_sum_assignment

    from rlea.evidence.words import texts_of, trigrams
    from rlea.search.bags import count_terms, having, weigh_terms

    texts = [*texts_of(pair.source), *texts_of(pair.target)]
    row = {"part": "strings", "pair": name, "share": share}
    for kind, pieces in (("words", str.split), ("letters", trigrams)):
        counts = count_terms(map(pieces, texts))
        vectors = weigh_terms(counts, having(counts))
        alike = (vectors[: pair.source.num_entities] @ vectors[pair.source.num_entities :].T).toarray()
        source, target = linear_sum_assignment(-alike)
        order = np.argsort(-alike[source, target], kind="stable")
        known = set(zip(gold.source_ids.tolist(), gold.target_ids.tolist(), strict=True))
        right = np.cumsum([pair in known for pair in zip(source[order].tolist(), target[order].tolist(), strict=True)])
        row[kind] = float((2 * right / (np.arange(1, len(right) + 1) + len(gold))).max())
    yield row


def known_pair(workspace, name):
    """A whole pair, and all right links."""
    from rlea.experiments.overlap import NO_SEEDS, seen_and_judged
    from rlea.graph import GraphPair

    if name == "unrelated-tables":
        shops, bibliographies = (workspace.pair(one, "1") for one in ("shops", "bibliographies"))
        return GraphPair(name, shops.source, bibliographies.source), None
    return seen_and_judged(workspace, name, 1.0, NO_SEEDS)


def rows_of(part, workspace, wanted):
    """All rows of a part, one after the other."""
    from rlea.experiments.overlap import NO_SEEDS, seen_and_judged

    if part == "small":
        for name in wanted(*PAIRS, *STRANGERS):
            shares = (0.0,) if name in STRANGERS else SHARES
            yield from measure_small(name, *known_pair(workspace, name), part, SIZES, shares)
    elif part == "unequal":
        for name in wanted(*PAIRS):
            for sizes in ((SMALL, LARGE), (LARGE, SMALL)):
                yield from measure_small(name, *known_pair(workspace, name), part, [sizes] * FEWER_DRAWS, HALF)
    elif part == "seeds":
        for name, share in (one for one in SEEDED if wanted(one[0])):
            pair, gold = seen_and_judged(workspace, name, share, NO_SEEDS)
            for by in ("", "degree") if len(pair.source.triples) else ("",):
                yield from measure_seeds(name, share, pair, gold, by)
    else:
        for name in wanted("shops", "bibliographies"):
            for share in (0.1, 0.25, 0.5, 1.0):
                yield from measure_strings(name, share, *seen_and_judged(workspace, name, share, NO_SEEDS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with openea-15k-v1 and tables")
    parser.add_argument("--parts", default="strings,small,unequal,seeds")
    parser.add_argument("--pairs", help="with commas, in place of all")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    from rlea.experiments.options import Options
    from rlea.experiments.workspace import Workspace
    from rlea.record import as_json, describe_run

    workspace = Workspace(Options(data=options.data / "openea-15k-v1"))
    known = json.loads(options.json.read_text(encoding="utf-8")) if options.json and options.json.exists() else {}
    rows = known.get("rows", [])
    runs = known.get("runs", {})

    def wanted(*names):
        return [name for name in names if not options.pairs or name in options.pairs.split(",")]

    for part in options.parts.split(","):
        rows = [row for row in rows if row["part"] != part or not wanted(row["pair"])]
        for row in rows_of(part, workspace, wanted):
            rows.append({key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()})
            print(json.dumps(rows[-1], default=float), flush=True)
            if options.json:
                name = row["pair"]
                run = describe_run(fingerprint=known_pair(workspace, name)[0].fingerprint, seed=0)
                run["command"] = f"python benchmarks/confidence.py --data DIR --parts {part} --pairs {name}"
                runs[f"{part} {name}"] = run
                options.json.write_text(as_json({"rows": rows, "runs": runs}), encoding="utf-8")


if __name__ == "__main__":
    main()
