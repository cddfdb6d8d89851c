"""What a dictionary learned from links adds: names in two languages, with seeds and without, with it and without.

Needs the data sets: DBP15K's zh_en, and OpenEA's 15K pairs and the demo pair, in which the channel has nothing to say.
Without seeds all entities are matched and all links are gold.
"""

import hashlib
import time
from dataclasses import replace

from measuring import keep_rows, parser_of

LANGUAGES = ("zh_en",)
OTHERS = ("demo", "EN_FR", "EN_DE", "D_W", "D_Y")


def read_pair(data, name):
    import rlea

    if name == "demo":
        return rlea.read_demo()
    return rlea.read(data / "dbp15k" / name if name in LANGUAGES else data / "openea-15k-v1" / f"{name}_15K_V1")


def without_seeds(pair):
    from rlea.graph import GraphPair, Links

    every = Links.union([pair.train, pair.valid, pair.test])
    return GraphPair(pair.name, pair.source, pair.target, test=every, inputs=pair.inputs)


def run(pair, beginning, channels):
    """One alignment and its scores."""
    import rlea
    from rlea.evaluation.metrics import link_metrics

    start = time.process_time()
    result = rlea.align(pair, channels=channels, pool="test" if beginning == "seeds" else "all")
    sure = link_metrics(result.matching.at_least(0.9), pair.test)
    links = result.matching
    told = next((one for one in result.info["evidence"] if one["channel"] == "dictionary"), {})
    return {
        "beginning": beginning,
        "dictionary": "dictionary" in channels,
        "precision": result.links.precision,
        "recall": result.links.recall,
        "f1": result.links.f1,
        "links": len(links),
        "precision of sure links": sure.precision,
        "sure links": sure.matched,
        "learned from": told.get("links", 0),
        "entries": len(result.dictionary),
        "processor seconds": time.process_time() - start,
        "md5": hashlib.md5(links.source_ids.tobytes() + links.target_ids.tobytes()).hexdigest()[:12],
        "fingerprint": pair.fingerprint,
    }


def rows_of(options):
    from rlea.evidence import CHANNELS, DICTIONARY
    from rlea.evidence.dictionary.channel import is_useful

    without = tuple(name for name in CHANNELS if name != DICTIONARY)
    for name in options.pairs:
        pair = read_pair(options.data, name)
        bare = without_seeds(pair)
        if not is_useful(pair):
            yield {"pair": name, "is useful": False, "fingerprint": pair.fingerprint}
            if name != "demo":
                continue
        for channels in (CHANNELS, without):
            for beginning in options.beginnings if name in LANGUAGES else ("no seeds",):
                own = pair if beginning == "seeds" else bare
                yield {"pair": name, **run(replace(own), beginning, channels)}


def main():
    parser = parser_of(__doc__, data=True)
    parser.add_argument("--pairs", nargs="+", default=[*LANGUAGES, *OTHERS])
    parser.add_argument("--beginnings", nargs="+", default=["seeds", "no seeds"])
    options = parser.parse_args()
    if options.data is None:
        print("skipped: --data names the folder of the data sets")
        return
    command = f"dictionary.py --data DIR --pairs {' '.join(options.pairs)} --json results/dictionary.json"
    keep_rows(options.json, command, rows_of(options), seed=0)


if __name__ == "__main__":
    main()
