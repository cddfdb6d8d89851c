"""The agent as an object: `fit` on a pair's seeds, `match` any task in the same space, `save`, `load`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rlea.errors import InputError
from rlea.graph import GraphPair, KnowledgeGraph, Links, choose_pool
from rlea.io.agent_files import load_agent_file, save_agent_file
from rlea.matching import Matching, Task
from rlea.paper.deck import Deck, label_deck, make_deck
from rlea.paper.env import AlignmentEnv, Vectors
from rlea.paper.policy import GraphView, Policy, Value
from rlea.paper.presets import PRESETS, AgentSettings, settings_of
from rlea.paper.reinforce import (
    Learner,
    Table,
    as_numbers,
    decode,
    match_probabilities,
    run_episode,
)
from rlea.progress import Progress, silent
from rlea.search.candidates import Candidates, find_candidates, prepare
from rlea.search.embeddings import Embeddings

FORMAT = "rlea agent 2"


class Agent:
    """Decides candidate pairs one after another. `device` is "cpu", "cuda", or "auto" for CUDA where there is some.

    >>> pair = rlea.read("D_W_15K_V1")                              # doctest: +SKIP
    >>> vectors = rlea.embed_entities(pair, "vectors.safetensors")  # doctest: +SKIP
    >>> agent = rlea.Agent("paper").fit(pair, vectors)              # doctest: +SKIP
    >>> links = agent.match(pair, vectors)                          # doctest: +SKIP
    >>> agent.save("agent.safetensors")                             # doctest: +SKIP
    """

    def __init__(self, settings: AgentSettings | str = "paper", *, seed: int = 0, device: str = "cpu") -> None:
        if isinstance(settings, str):
            if settings not in PRESETS:
                raise InputError(f"unknown preset {settings!r}", remedy=f"use one of {', '.join(PRESETS)}")
            settings = PRESETS[settings]
        if not 0 <= seed < 2**63:
            raise InputError(f"the seed is {seed}", remedy="give a number from 0 to 2^63 - 1")
        self.settings = settings
        self.seed = seed
        self.device = torch.device(choose_device(device))
        self.policy: Policy | None = None
        self.history: list[dict[str, Any]] = []
        self.best_episode = 0
        self.space = ""  # of sparse vectors: which ones, since their axes are made anew for other ones

    # ---- training ---------------------------------------------------------------------------------------------------

    def fit(
        self,
        pair: GraphPair,
        embeddings: Embeddings,
        seeds: Links | None = None,
        valid: Links | None = None,
        *,
        progress: Progress = silent,
        checkpoint: str | Path | None = None,
        on_episode: Callable[[dict[str, Any]], None] | None = None,
    ) -> Agent:
        """Learn from the seeds; keep the policy with the most right links on `valid`, or the last without them.

        Seeds and validation links are the pair's own unless others are given; its test links are not read. The
        candidates of a seed's source are sought among the seeds' targets (or all, see `pool`), those of a validation
        source among all targets that are no seed's. With `checkpoint` a stopped run goes on where it was.
        """
        source, target = pair.source, pair.target
        seeds = pair.train if seeds is None else seeds
        valid = pair.valid if valid is None else valid
        if not len(seeds):
            raise InputError(
                "the agent is trained on seed links and there are none", remedy="give some, or a trained agent"
            )
        checkpoint = None if checkpoint is None else Path(checkpoint)
        self.policy, self.history, self.best_episode = None, [], 0
        self.space = space_of(embeddings)
        vectors = dense(embeddings, self.seed)
        views = self._views(source, target, vectors)
        dim = int(views[0].vectors.shape[1])
        # Weights are drawn on the CPU: the same start on every device, and no other generator is touched.
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.seed)
            policy, value = Policy(dim, self.settings.policy), Value(dim, self.settings.policy)
        learner = Learner(policy.to(self.device), value.to(self.device), self.settings.train)

        met = seeds.target_ids if self.settings.pool == "seeds" else np.arange(target.num_entities, dtype=np.int32)
        found = find_candidates(embeddings, shuffled(seeds.source_ids, 1), shuffled(met, 2), self._k)
        deck = label_deck(
            make_deck(found, self._k, self.seed), found, seeds, tau=self.settings.tau, best_of=self.settings.best_of
        )
        table = self._table(deck, found)
        env = AlignmentEnv(deck, env_vectors(views, found), self.settings.env)
        exam = None
        if len(valid):
            pool = np.setdiff1d(np.arange(target.num_entities, dtype=np.int32), seeds.target_ids)
            asked = find_candidates(embeddings, shuffled(valid.source_ids, 1), shuffled(pool, 2), self._k)
            answers = label_deck(make_deck(asked, self._k, self.seed), asked, valid)
            exam = self._table(answers, asked)

        best_score, best = -1, {name: tensor.clone() for name, tensor in policy.state_dict().items()}
        run = self._identity(pair, vectors, seeds, valid)
        if checkpoint is not None and checkpoint.exists():
            best_score, best = self._resume(checkpoint, run, learner)
        last = self.settings.train.episodes
        if learner.episode > last:
            raise InputError(
                f"is the checkpoint of episode {learner.episode}, and {last} episodes are asked for",
                path=checkpoint,
                remedy=f"delete it to train afresh, or ask for {learner.episode} or more",
            )
        while learner.episode < last:
            result = run_episode(learner, *views, table, self.settings.env, env.skip_rates, self.seed)
            row = as_numbers(result)
            if exam is not None and (learner.episode % self.settings.train.valid_every == 0 or learner.episode == last):
                draws = self._draws(exam.deck, learner.episode)
                steps = decode(exam.deck, match_probabilities(policy, *views, exam), draws)
                row["valid_aligned"] = int((exam.deck.labels[steps.pairs] & (steps.actions == 1)).sum())
                # Of equals the later one: it has seen more, and the paper takes the last of all.
                if row["valid_aligned"] >= best_score:
                    best_score, self.best_episode = row["valid_aligned"], learner.episode
                    best = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
            self.history.append(row)
            if on_episode is not None:
                on_episode(row)
            if checkpoint is not None and (learner.episode % 10 == 0 or learner.episode == last):
                self._save_state(checkpoint, run, learner, best_score, best)
            note = f"aligned {result.aligned}  length {result.length}  reward {result.reward:.0f}"
            progress("agent", learner.episode, last, note)
        if exam is not None:
            policy.load_state_dict(best)
        else:
            self.best_episode = last
        self.policy = policy
        return self

    # ---- decoding ---------------------------------------------------------------------------------------------------

    def match(self, what: Task | GraphPair, embeddings: Embeddings | None = None, *, pool: str = "auto") -> Matching:
        """One-to-one links in the same embedding space; the confidence is the policy's.

        Of a task, or of a pair with vectors: then the candidates are found here, over the entities of the test links or
        all without a seed (see `choose_pool`).
        """
        if self.policy is None:
            raise InputError("the agent has not been trained", remedy="call fit or load first")
        if isinstance(what, GraphPair):
            if embeddings is None:
                raise InputError("a pair is matched by its vectors and there are none", remedy="give embeddings")
            _, source_ids, target_ids = choose_pool(what, pool)
            candidates = find_candidates(embeddings, source_ids, target_ids, self._k)
            task = Task(what.source, what.target, what.train, candidates, self.seed)
        else:
            task = what
        candidates = task.candidates
        if candidates.num_rows == 0 or candidates.num_columns == 0:
            return Matching.of([], [], [])
        if space_of(candidates.embeddings) != self.space:
            raise InputError(
                "the agent was trained in another space: sparse vectors (names) have axes of their own for every pair",
                remedy="train it on this pair, or on dense vectors that both pairs share",
            )
        vectors = dense(candidates.embeddings, self.seed)
        views = self._views(task.source, task.target, vectors)
        expected = self.policy.dim
        if views[0].vectors.shape[1] != expected:
            raise InputError(
                f"the agent was trained on vectors of {expected} dimensions, not {views[0].vectors.shape[1]}",
                remedy="use the vectors it was trained on, or train again",
            )
        deck = make_deck(candidates, self._k, task.seed)
        probability = match_probabilities(self.policy, *views, self._table(deck, candidates))
        draws = self._draws(deck, task.seed)
        steps = decode(deck, probability, draws)
        taken = steps.pairs[steps.actions == 1]
        if self.settings.complete:
            taken = np.append(taken, left_over(deck, taken))
        return Matching.of(
            candidates.source_ids[deck.rows[taken]], candidates.target_ids[deck.columns[taken]], probability[taken]
        )

    # ---- keeping ----------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Weights and settings as safetensors with JSON; no pickle."""
        if self.policy is None:
            raise InputError("the agent has not been trained", remedy="call fit before save")
        about = {
            "format": FORMAT,
            "settings": asdict(self.settings),
            "seed": self.seed,
            "best_episode": self.best_episode,
            "history": self.history,
            "space": self.space,
        }
        save_agent_file(path, about, {name: part.cpu().numpy() for name, part in self.policy.state_dict().items()})

    @staticmethod
    def load(path: str | Path, *, device: str = "cpu") -> Agent:
        """An agent as it was saved."""
        about, weights = load_agent_file(path)
        if about.get("format") != FORMAT:
            raise InputError("is no trained agent of this version", path=path, remedy="train it again")
        agent = Agent(settings_of(about["settings"]), seed=about["seed"], device=device)
        dim = weights["trunk.encoder.layers.0.weight"].shape[1]
        agent.policy = Policy(dim, agent.settings.policy).to(agent.device)
        agent.policy.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
        agent.history = about["history"]
        agent.best_episode = about["best_episode"]
        agent.space = about["space"]
        return agent

    # ---- small parts ------------------------------------------------------------------------------------------------

    @property
    def _k(self) -> int:
        return self.settings.candidates

    def _draws(self, deck: Deck, number: int) -> NDArray[np.float32] | None:
        """Random numbers to draw actions by where the agent does so, else nothing."""
        if not self.settings.sampled:
            return None
        return np.random.default_rng([number, 7]).random(len(deck), dtype=np.float32)

    def _views(
        self, source: KnowledgeGraph, target: KnowledgeGraph, vectors: Embeddings
    ) -> tuple[GraphView, GraphView]:
        for side, graph, rows in (("source", source, vectors.source), ("target", target, vectors.target)):
            if rows.shape[0] != graph.num_entities:
                raise InputError(
                    f"the {side} graph has {graph.num_entities} entities and {rows.shape[0]} vectors",
                    remedy="use vectors of this pair",
                )
        return (
            GraphView(source, np.asarray(prepare(vectors.source, vectors)), self.device),
            GraphView(target, np.asarray(prepare(vectors.target, vectors)), self.device),
        )

    def _table(self, deck: Deck, candidates: Candidates) -> Table:
        columns = candidates.forward_columns[:, : self._k].astype(np.int64)
        ids = np.where(columns < 0, -1, candidates.target_ids[columns])
        return Table(
            deck,
            torch.as_tensor(candidates.source_ids.astype(np.int64), device=self.device),
            torch.as_tensor(ids, device=self.device),
        )

    def _identity(self, pair: GraphPair, vectors: Embeddings, seeds: Links, valid: Links) -> dict[str, Any]:
        """What must agree for a run to be taken up again; the number of episodes may differ, as may the test links."""
        digests = {}
        for name, arrays in (
            ("vectors", (vectors.source, vectors.target)),
            ("links", (seeds.source_ids, seeds.target_ids, valid.source_ids, valid.target_ids)),
        ):
            digest = hashlib.sha256(f"{[len(array) for array in arrays]}".encode())
            for array in arrays:
                digest.update(np.ascontiguousarray(array).tobytes())
            digests[name] = digest.hexdigest()
        settings = asdict(self.settings)
        del settings["train"]["episodes"]
        return {
            "format": FORMAT,
            "source": pair.source.fingerprint,
            "target": pair.target.fingerprint,
            "measure": vectors.measure,
            "seed": self.seed,
            "device": self.device.type,
            **digests,
            **settings,
        }

    def _save_state(
        self, path: Path, run: dict[str, Any], learner: Learner, best_score: int, best: dict[str, torch.Tensor]
    ) -> None:
        from rlea.models.checkpoint import save_checkpoint

        arrays: dict[str, NDArray[Any]] = {f"best.{name}": tensor.cpu().numpy() for name, tensor in best.items()}
        for title, module, optimiser in (
            ("policy", learner.policy, learner.policy_optimiser),
            ("value", learner.value, learner.value_optimiser),
        ):
            arrays |= {f"{title}.{name}": tensor.cpu().numpy() for name, tensor in module.state_dict().items()}
            for number, moments in optimiser.state_dict()["state"].items():
                arrays |= {
                    f"{title}-adam.{number}.{name}": np.asarray(tensor.cpu()) for name, tensor in moments.items()
                }
        state = {"run": run, "episode": learner.episode, "best_score": best_score}
        state |= {"best_episode": self.best_episode, "history": self.history}
        save_checkpoint(path, arrays, state)

    def _resume(self, path: Path, run: dict[str, Any], learner: Learner) -> tuple[int, dict[str, torch.Tensor]]:
        from rlea.models.checkpoint import load_checkpoint

        arrays, state = load_checkpoint(path, run)
        tensors = {name: torch.as_tensor(np.array(array)) for name, array in arrays.items()}
        for title, module, optimiser in (
            ("policy", learner.policy, learner.policy_optimiser),
            ("value", learner.value, learner.value_optimiser),
        ):
            module.load_state_dict(part(tensors, f"{title}."))
            groups = optimiser.state_dict()["param_groups"]
            moments: dict[int, dict[str, torch.Tensor]] = {}
            for name, tensor in part(tensors, f"{title}-adam.").items():
                number, key = name.split(".")
                moments.setdefault(int(number), {})[key] = tensor
            optimiser.load_state_dict({"state": moments, "param_groups": groups})
        learner.episode = state["episode"]
        self.best_episode, self.history = state["best_episode"], state["history"]
        return state["best_score"], part(tensors, "best.")


def choose_device(device: str) -> str:
    """The name of the device to work on, chosen as the embedding models choose it."""
    from rlea.models.training import choose_device as choose

    return choose(device)


def part(tensors: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    """The entries under a prefix, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def shuffled(ids: NDArray[np.int32], side: int) -> NDArray[np.int32]:
    """Ids in a random order of their side's own, so that positions tell nothing."""
    return np.random.default_rng(side).permutation(np.unique(ids))


def dense(embeddings: Embeddings, seed: int, dim: int = 100) -> Embeddings:
    """The embeddings themselves, or sparse ones reduced to `dim` dimensions by a truncated SVD of both sides."""
    if not embeddings.is_sparse:
        return embeddings
    from scipy.sparse import vstack
    from sklearn.decomposition import TruncatedSVD

    source: Any = embeddings.source
    target: Any = embeddings.target
    both = vstack([source, target])
    width = max(1, min(dim, both.shape[1] - 1))
    reduced = TruncatedSVD(width, random_state=seed % 2**32).fit_transform(both).astype(np.float32)
    split = embeddings.source.shape[0]
    return replace(embeddings, source=reduced[:split], target=reduced[split:])


def space_of(embeddings: Embeddings) -> str:
    """A digest of sparse vectors; empty for dense ones, whose space is not known from their numbers."""
    if not embeddings.is_sparse:
        return ""
    digest = hashlib.sha256()
    for side in (embeddings.source, embeddings.target):
        matrix: Any = side
        for array in (matrix.data, matrix.indices, matrix.indptr):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def env_vectors(views: tuple[GraphView, GraphView], candidates: Candidates) -> Vectors:
    """What the environment shows of the entities of the pools: own vectors and means over the neighbourhood."""
    source, target = views
    rows, columns = candidates.source_ids.astype(np.int64), candidates.target_ids.astype(np.int64)
    return Vectors(
        source.vectors[rows].cpu().numpy(),
        target.vectors[columns].cpu().numpy(),
        source.averaged[rows].cpu().numpy(),
        target.averaged[columns].cpu().numpy(),
    )


def left_over(deck: Deck, taken: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pairs among what is unmatched, in descending similarity, one-to-one."""
    from rlea.paper.deck import play_deck

    free = np.ones(len(deck), np.float32)
    used_rows, used_columns = np.isin(deck.rows, deck.rows[taken]), np.isin(deck.columns, deck.columns[taken])
    never = np.zeros(len(deck), np.float32)
    blocked = (used_rows | used_columns).astype(np.float32)
    return play_deck(deck, free, blocked, never, never).pairs
