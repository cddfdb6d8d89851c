"""The paper's agent as an object: `fit` on a pair's seeds, `match` any task in the same space, `save`, `load`."""

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
from rlea.io.agent_files import load_agent_file, save_agent_file, whole_agent
from rlea.matching import Matching, Task
from rlea.models.checkpoint import check_state, going_on, load_checkpoint, save_checkpoint
from rlea.models.training import choose_device as choose_device
from rlea.models.training import require_seed
from rlea.paper.episode import Floats, PairSequence, Steps, label_sequence, make_sequence, play
from rlea.paper.policy import GraphView, Policy, Value
from rlea.paper.presets import PRESETS, AgentSettings, settings_of
from rlea.paper.reinforce import Learner, PolicyInput, decode, match_probabilities, run_episode, under
from rlea.progress import Progress, silent
from rlea.record import as_rows
from rlea.search.candidates import Candidates, find_candidates, prepare
from rlea.search.embeddings import Embeddings

FORMAT = "rlea agent 2"
CHECKPOINT_EVERY = 10  # episodes


class Agent:
    """Decides candidate pairs one after another. `device` is "cpu", "cuda", or "auto" for CUDA if available.

    >>> pair = rlea.read("D_W_15K_V1")                              # doctest: +SKIP
    >>> vectors = rlea.embed_entities(pair, "vectors.safetensors")  # doctest: +SKIP
    >>> agent = rlea.paper.agent.Agent("paper").fit(pair, vectors)              # doctest: +SKIP
    >>> links = agent.match(pair, vectors)                          # doctest: +SKIP
    >>> agent.save("agent.safetensors")                             # doctest: +SKIP
    """

    def __init__(self, settings: AgentSettings | str = "paper", *, seed: int = 0, device: str = "cpu") -> None:
        if isinstance(settings, str):
            if settings not in PRESETS:
                raise InputError(f"unknown preset {settings!r}", remedy=f"use one of {', '.join(PRESETS)}")
            settings = PRESETS[settings]
        require_seed(seed)
        self.settings, self.seed = settings, seed
        self.device = torch.device(choose_device(device))
        self.policy: Policy | None = None
        self.history: list[dict[str, Any]] = []
        self.best_episode = 0
        self.space = ""  # digest of sparse vectors: the axes they are reduced to are those of one pair

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
        """Learn from the seeds; keep the policy with the most correct links on `valid`, or the last without them.

        Seeds and validation links are the pair's own unless others are given; its test links are not read. The
        candidates of a seed's source are searched for among the seeds' targets (or all, see `pool`), those of a
        validation source among all targets except the seeds'. With `checkpoint` a stopped run continues.
        """
        seeds = pair.train if seeds is None else seeds
        valid = pair.valid if valid is None else valid
        if not len(seeds):
            raise InputError(
                "the agent is trained on seed links and there are none", remedy="give some, or a trained agent"
            )
        checkpoint = None if checkpoint is None else Path(checkpoint)
        settings, every = self.settings, np.arange(pair.target.num_entities, dtype=np.int32)
        self.policy, self.history, self.best_episode = None, [], 0
        self.space = space_of(embeddings)
        vectors = dense(embeddings, self.seed)
        views = self._views(pair.source, pair.target, vectors)
        learner = self._start(int(views[0].vectors.shape[1]))
        policy = learner.policy

        def labelled(links: Links, pool: NDArray[np.int32]) -> PolicyInput:
            found = find_candidates(embeddings, shuffled(links.source_ids, 1), shuffled(pool, 2), settings.candidates)
            inputs = self._input(found, views, self.seed)
            sequence = label_sequence(inputs.sequence, found, links, tau=settings.tau, best_of=settings.best_of)
            return replace(inputs, sequence=sequence)

        training = labelled(seeds, seeds.target_ids if settings.pool == "seeds" else every)
        validation = labelled(valid, np.setdiff1d(every, seeds.target_ids)) if len(valid) else None

        best_score, best = -1, copied(policy)
        run = self._identity(pair, vectors, seeds, valid)
        if checkpoint is not None and checkpoint.exists():
            best_score, best = self._resume(checkpoint, run, learner)
        last = settings.train.episodes
        if learner.episode > last:
            raise InputError(
                f"is the checkpoint of episode {learner.episode}, and {last} episodes are asked for",
                path=checkpoint,
                remedy=f"delete it to train afresh, or ask for {learner.episode} or more",
            )
        while learner.episode < last:
            row = run_episode(learner, training, settings.env, self.seed)
            is_last = learner.episode == last
            if validation is not None and (learner.episode % settings.train.valid_every == 0 or is_last):
                steps = self._decode(validation.sequence, match_probabilities(policy, validation), learner.episode)
                row["valid_aligned"] = int((validation.sequence.labels[steps.pairs] & (steps.actions == 1)).sum())
                # Of equals the later one: it has seen more, and the paper takes the last of all.
                if row["valid_aligned"] >= best_score:
                    best_score, self.best_episode, best = row["valid_aligned"], learner.episode, copied(policy)
            self.history.append(row)
            if on_episode is not None:
                on_episode(row)
            if checkpoint is not None and (learner.episode % CHECKPOINT_EVERY == 0 or is_last):
                self._save_state(checkpoint, run, learner, best_score, best)
            note = f"aligned {row['aligned']}  length {row['length']}  reward {row['reward']:.0f}"
            progress("agent", learner.episode, last, note)
        if validation is not None:
            policy.load_state_dict(best)
        else:
            self.best_episode = last
        self.policy = policy
        return self

    # ---- decoding ---------------------------------------------------------------------------------------------------

    def match(self, what: Task | GraphPair, embeddings: Embeddings | None = None, *, pool: str = "auto") -> Matching:
        """One-to-one links in the same embedding space; the confidence is the policy's probability of a match.

        Takes a task, or a pair with vectors: then candidates are searched for here, among the entities of the test
        links, or among all without a seed (see `choose_pool`).
        """
        if isinstance(what, GraphPair):
            if embeddings is None:
                raise InputError("a pair is matched by its vectors and there are none", remedy="give embeddings")
            _, source_ids, target_ids = choose_pool(what, pool)
            candidates = find_candidates(embeddings, source_ids, target_ids, self.settings.candidates)
            what = Task(what.source, what.target, what.train, candidates, self.seed)
        sequence, probability = self.probabilities(what)
        steps = self._decode(sequence, probability, what.seed)
        taken = steps.pairs[steps.actions == 1]
        if self.settings.complete:
            taken = np.append(taken, unmatched_pairs(sequence, taken))
        source_ids, target_ids = what.candidates.source_ids, what.candidates.target_ids
        return Matching.of(source_ids[sequence.rows[taken]], target_ids[sequence.columns[taken]], probability[taken])

    def probabilities(self, task: Task) -> tuple[PairSequence, Floats]:
        """The candidate pairs of a task in the order in which they are decided, and pi(match | s) of each."""
        if self.policy is None:
            raise InputError("the agent has not been trained", remedy="call fit or load first")
        candidates = task.candidates
        if candidates.num_rows == 0 or candidates.num_columns == 0:
            return make_sequence(candidates, self.settings.candidates, task.seed), np.zeros(0, np.float32)
        if space_of(candidates.embeddings) != self.space:
            raise InputError(
                "the agent was trained in another space: sparse vectors (names) have axes of their own for every pair",
                remedy="train it on this pair, or on dense vectors that both pairs share",
            )
        views = self._views(task.source, task.target, dense(candidates.embeddings, self.seed))
        dim = views[0].vectors.shape[1]
        if dim != self.policy.dim:
            raise InputError(
                f"the agent was trained on vectors of {self.policy.dim} dimensions, not {dim}",
                remedy="use the vectors it was trained on, or train again",
            )
        inputs = self._input(candidates, views, task.seed)
        return inputs.sequence, match_probabilities(self.policy, inputs)

    def _decode(self, sequence: PairSequence, probability: Floats, number: int) -> Steps:
        """A test episode; actions are drawn if the settings say so, by random numbers made of `number`."""
        draws = np.random.default_rng([number, 7]).random(len(sequence), dtype=np.float32)
        return decode(sequence, probability, draws if self.settings.sampled else None)

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
        with whole_agent(path):
            agent = Agent(settings_of(about["settings"]), seed=about["seed"], device=device)
            dim = weights["trunk.encoder.layers.0.weight"].shape[1]
            agent.policy = Policy(dim, agent.settings.policy).to(agent.device)
            agent.policy.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
            agent.history = about["history"]
            agent.best_episode = about["best_episode"]
            agent.space = about["space"]
            return agent

    # ---- parts of training ------------------------------------------------------------------------------------------

    def _start(self, dim: int) -> Learner:
        """Networks with their first weights, drawn on the CPU: the same on every device, and no other draw changes."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.seed)
            policy, value = Policy(dim, self.settings.policy), Value(dim, self.settings.policy)
        return Learner(policy.to(self.device), value.to(self.device), self.settings.train)

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

    def _input(self, candidates: Candidates, views: tuple[GraphView, GraphView], seed: int) -> PolicyInput:
        sequence = make_sequence(candidates, self.settings.candidates, seed)
        columns = candidates.forward_columns[:, : self.settings.candidates].astype(np.int64)
        target_ids = np.where(columns < 0, -1, candidates.target_ids[columns])
        ids = (
            torch.as_tensor(array.astype(np.int64), device=self.device) for array in (candidates.source_ids, target_ids)
        )
        return PolicyInput(sequence, *views, *ids)

    def _identity(self, pair: GraphPair, vectors: Embeddings, seeds: Links, valid: Links) -> dict[str, Any]:
        """What must agree for a run to be resumed; the number of episodes may differ, as may the test links."""
        digests = {
            "vectors": digest_of(vectors.source, vectors.target),
            "links": digest_of(seeds.source_ids, seeds.target_ids, valid.source_ids, valid.target_ids),
        }
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
        arrays = {f"best.{name}": tensor.cpu().numpy() for name, tensor in best.items()} | learner.arrays()
        state = {"run": run, "episode": learner.episode, "best_score": best_score}
        state |= {"best_episode": self.best_episode, "history": self.history}
        save_checkpoint(path, arrays, state)

    def _resume(self, path: Path, run: dict[str, Any], learner: Learner) -> tuple[int, dict[str, torch.Tensor]]:
        arrays, state = load_checkpoint(path, run)
        with going_on(path):
            check_state(state, {"episode": 0, "best_episode": 0, "best_score": 0})
            tensors = {name: torch.as_tensor(np.array(array)) for name, array in arrays.items()}
            learner.load(tensors)
            learner.episode = state["episode"]
            self.best_episode, self.history = state["best_episode"], as_rows(state["history"])
            if not 0 <= self.best_episode <= learner.episode == len(self.history):
                raise ValueError("its episodes are not those of its history")
            best = under(tensors, "best.")
            learner.policy.load_state_dict({**learner.policy.state_dict(), **best})  # whether they would fit
            learner.load(tensors)
            return state["best_score"], best


def copied(policy: Policy) -> dict[str, torch.Tensor]:
    """The weights as they are now."""
    return {name: tensor.clone() for name, tensor in policy.state_dict().items()}


def shuffled(ids: NDArray[np.int32], side: int) -> NDArray[np.int32]:
    """Ids in a random order, another for each side, so that positions tell nothing."""
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


def digest_of(*arrays: Any) -> str:
    """SHA-256 of arrays and their lengths."""
    digest = hashlib.sha256(f"{[len(array) for array in arrays]}".encode())
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def unmatched_pairs(sequence: PairSequence, taken: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pairs of entities that are still free, taken in descending similarity, one-to-one."""
    rows, columns = np.isin(sequence.rows, sequence.rows[taken]), np.isin(sequence.columns, sequence.columns[taken])
    always, never = np.ones(len(sequence), np.float32), np.zeros(len(sequence), np.float32)
    return play(sequence, always, (rows | columns).astype(np.float32), never, never).pairs
