#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random collective operations, messages and values beside torch.distributed
with gloo, on as many ranks.

    collectives_torch.py MPI FOLDER NACRE [--seed S] [--cases N] [--ranks N]

Each rank of both writes what it got for each case; the files must be equal.
What gloo refuses is left out."""
import argparse
import multiprocessing
import os
import pathlib
import random
import sys
import tempfile

import ranks

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from lua_text import lua  # noqa: E402  pylint: disable=C0413

try:
    import torch
    import torch.distributed as dist
except ImportError:
    sys.exit(77)

FOLDS = {"sum": "SUM", "prod": "PRODUCT", "min": "MIN", "max": "MAX",
         "band": "BAND", "bor": "BOR", "bxor": "BXOR", "mean": "AVG"}
DTYPES = ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16",
          "float32", "float64"]
# The arguments of each, words for what operands() gives, and which of them, on
# which rank alone, is looked at afterwards.
CALLS = {
    "all_reduce": ("t fold", "t"), "reduce": ("t root fold", "t_at_root"),
    "broadcast": ("t root", "t"), "all_gather": ("list t", "list"),
    "all_gather_into_tensor": ("wide t", "wide"),
    "gather": ("t list_at_root root", "list_at_root"),
    "scatter": ("t blocks_at_root root", "t"),
    "reduce_scatter": ("t blocks fold", "t"),
    "reduce_scatter_tensor": ("t joined fold", "t"),
    "all_to_all": ("list blocks", "list"),
    "all_to_all_single": ("rows cut to given", "rows"),
    "broadcast_object_list": ("objects root", "objects"),
    "all_gather_object": ("slots tagged", "slots"),
    "gather_object": ("short slots_at_root root", "slots_at_root"),
    "scatter_object_list": ("slot values_at_root root", "slot")}
OPS = ["all_reduce", "all_reduce", *CALLS, "messages", "batch", "send_recv",
       "send_object_list", "ranks"]
WORLD_ONLY = ["messages", "batch", "send_recv", "send_object_list"]


def make_cases(seed, count, size):
    """The groups, as lists of ranks, and the cases, as tables of names."""
    r = random.Random(seed)
    groups = [[0, size - 1], list(range(1, size))]
    cases = []
    for i in range(1, count + 1):
        op, dtype = r.choice(OPS), r.choice(DTYPES)
        fold = r.choice(list(FOLDS))
        if "float" in dtype and fold.startswith("b") or (
                "float" not in dtype and fold == "mean") or dtype == "bool":
            fold = "max"
        group = 0 if op in WORLD_ONLY else r.choice([0, 0, 1, 2])
        members = groups[group - 1] if group else list(range(size))
        shape = r.choice([[1], [5], [2, 3], [3, 1, 4], [100]])
        words, result = CALLS.get(op, ("", ""))
        cases.append({
            "id": i, "op": op, "words": words.split(), "result": result,
            "dtype": dtype, "fold": fold, "group": group, "shape": shape,
            "root": r.choice(members),
            "async": r.random() < 0.4,
            "splits": [[r.randrange(4) for _ in members] for _ in members]})
    return groups, cases


# ---- the same with torch

class Runner:
    """One rank of torch."""

    def __init__(self, rank, size, groups):
        self.rank, self.size = rank, size
        self.groups = [None] + [dist.new_group(g) for g in groups]
        self.lists = [list(range(size))] + groups

    def data(self, c, shape, block=0):
        n = 1
        for k in shape:
            n *= k
        values = [(i * 7 + self.rank * 5 + c["id"] * 3 + i * i * self.rank
                   + block * 11) % 7 - 3 for i in range(n)]
        if c["dtype"] == "bool":
            values = [v % 2 for v in values]
        elif c["dtype"] == "uint8":
            values = [v + 3 for v in values]
        return torch.tensor(values, dtype=torch.float64).to(
            getattr(torch, c["dtype"])).reshape(shape)

    def run(self, c):
        self.group, self.members = self.groups[c["group"]], self.lists[c["group"]]
        if self.rank not in self.members:
            return None
        self.n, self.me = len(self.members), self.members.index(self.rank)
        t = self.data(c, c["shape"])
        if c["op"] not in CALLS:
            return getattr(self, c["op"])(c, t)
        o = self.operands(c, t)
        rest = {"group": self.group}
        if "object" not in c["op"]:
            rest["async_op"] = c["async"]
        work = getattr(dist, c["op"])(*[o[w] for w in c["words"]], **rest)
        if work is not None:
            work.wait()
        return o[c["result"]]

    def operands(self, c, t):
        n, me, blocks = self.n, self.me, [
            self.data(c, c["shape"], i + 1) for i in range(self.n)]
        to, given = [row[me] for row in c["splits"]], c["splits"][me]
        cut = self.data(c, [sum(given), 2])
        here = self.rank == c["root"]
        o = {"t": t, "root": c["root"], "blocks": blocks, "cut": cut,
             "fold": getattr(dist.ReduceOp, FOLDS[c["fold"]]),
             "list": [torch.zeros_like(t) for _ in range(n)],
             "wide": t.new_zeros(n * t.shape[0], *t.shape[1:]),
             "joined": torch.cat(blocks), "rows": cut.new_zeros(sum(to), 2),
             "to": to, "given": given, "slots": [None] * n, "slot": [None],
             "objects": ["a", c["id"], [self.rank, 2.5]] if here else [0, 0, 0],
             "tagged": [self.rank, "x", t], "short": [self.rank, "y" * self.rank],
             "values": [[i + 1, "z" * ((i + 1) * c["id"])] for i in range(n)]}
        return o | {k + "_at_root": v if here else None for k, v in o.items()}

    def neighbours(self):
        return (self.rank + 1) % self.size, (self.rank - 1) % self.size

    def messages(self, _, t):
        right, left = self.neighbours()
        out = [torch.zeros_like(t), torch.zeros_like(t)]
        works = [dist.irecv(out[1], left, tag=8), dist.irecv(out[0], left, tag=7),
                 dist.isend(t, right, tag=7), dist.isend(t + t, right, tag=8)]
        for w in works:
            w.wait()
        return out

    def batch(self, _, t):
        right, left = self.neighbours()
        out = torch.zeros_like(t)
        for w in dist.batch_isend_irecv([dist.P2POp(dist.isend, t, right),
                                         dist.P2POp(dist.irecv, out, left)]):
            w.wait()
        return out

    def send_recv(self, c, t):
        if self.rank == 0:
            dist.send(t, 1, tag=c["id"])
        elif self.rank == 1:
            return [t, dist.recv(t, 0, tag=c["id"])]
        return None

    def send_object_list(self, c, _):
        out = [self.rank, c["id"], ["v"]]
        if self.rank == 0:
            dist.send_object_list(out, 1)
        elif self.rank == 1:
            return [out, dist.recv_object_list(out, 0)]
        return None

    def ranks(self, *_):
        dist.monitored_barrier(self.group)
        group = self.group or dist.group.WORLD
        members = dist.get_process_group_ranks(group)
        return [dist.get_rank(group), dist.get_world_size(group), members,
                dist.get_global_rank(group, 0),
                dist.get_group_rank(group, members[0]), dist.is_initialized()]


def text(v):
    if isinstance(v, torch.Tensor):
        values = " ".join(f"{x:.6g}" for x in v.double().flatten().tolist())
        return f"{str(v.dtype)[6:]}[{','.join(map(str, v.shape))}] {values}"
    if isinstance(v, list):
        return "{" + "; ".join(map(text, v)) + "}"
    if isinstance(v, bool):
        return str(v).lower()
    return f"{v:.6g}" if isinstance(v, float) else str(v)


def with_torch(path, rank, size, groups, cases):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}.store",
                            rank=rank, world_size=size)
    runner = Runner(rank, size, groups)
    with open(f"{path}.torch.{rank}", "w", encoding="utf-8") as out:
        for c in cases:
            try:
                result = runner.run(c)
                line = "-" if result is None else text(result)
            except (RuntimeError, ValueError, NotImplementedError) as e:
                line = f"refused: {str(e).splitlines()[0]}"
            out.write(f"{c['id']} {line}\n")
    dist.destroy_process_group()


def compare(path, size, cases):
    wrong, refused = 0, {}
    for rank in range(size):
        ours = pathlib.Path(f"{path}.{rank}").read_text("utf-8").splitlines()
        others = pathlib.Path(f"{path}.torch.{rank}").read_text(
            "utf-8").splitlines()
        assert len(ours) == len(others) == len(cases)
        for c, a, b in zip(cases, ours, others):
            if "refused" in b:
                refused[f"{c['op']} {b[b.index('refused'):]}"] = c["dtype"]
            elif a != b:
                wrong += 1
                print(f"rank {rank}: {c}\n  nacre {a}\n  torch {b}")
    for what in sorted(refused):
        print(what)
    print(f"{len(cases)} cases on {size} ranks, {wrong} differences")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mpi")
    parser.add_argument("folder")
    parser.add_argument("nacre")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--ranks", type=int, default=3)
    o = parser.parse_args()
    if ranks.launcher(o.mpi, 1) is None or not dist.is_gloo_available():
        return 77
    if not hasattr(dist, "send_object_list"):
        print("this PyTorch cannot send lists of objects")
        return 77
    groups, cases = make_cases(o.seed, o.cases, o.ranks)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cases.lua")
        pathlib.Path(path).write_text(
            "local c = {groups = " + lua(groups) + "}\n"
            + "".join(f"c[{c['id']}] = {lua(c)}\n" for c in cases)
            + "return c\n", encoding="utf-8")
        done = ranks.run(o.mpi, o.ranks, o.folder, [
            o.nacre, str(ranks.ROOT / "tests/distributed/collectives_torch.lua"),
            path])
        print(done.stdout + done.stderr)
        if done.returncode != 0:
            return 1
        context = multiprocessing.get_context("spawn")
        team = [context.Process(target=with_torch, args=(
            path, r, o.ranks, groups, cases)) for r in range(o.ranks)]
        for p in team:
            p.start()
        for p in team:
            p.join(120)
            p.kill()
        return compare(path, o.ranks, cases) > 0


if __name__ == "__main__":
    sys.exit(main())
