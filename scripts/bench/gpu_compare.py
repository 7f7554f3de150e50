#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times the cases of gpu_cases.lua in Nacre, PyTorch and CuPy by turns.

    gpu_compare.py NACRE [--device cuda:0] [--minutes M] [--quick]
                   [--json FILE] [GROUP...]

Nacre runs beside this process and waits while another one measures, so that
all meet the same clocks and temperature; a turn takes five samples, and six
turns of each make thirty. A ratio is the median over the turns of ours to
theirs of the same turn. The bytes behind a rate are those that must be moved,
once each. Prints Markdown. Cases for which the time is too short are named.
"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SAMPLES, WARMUPS, TURNS = 5, 3, 6
CACHE = 300e6


def load(name):
    try:
        module = __import__(name)
        if name == "torch":
            return module if module.cuda.is_available() else None
        return module if module.cuda.runtime.getDeviceCount() else None
    except Exception:  # pylint: disable=broad-except
        return None        # whatever it is, the others can still be measured


class Nacre:
    """The program, waiting for names of cases."""

    def __init__(self, path, device, quick):
        self.command = [path, os.path.join(HERE, "gpu.lua"), "--serve",
                        "--device", device] + ["--quick"] * quick
        self.start()

    def start(self):
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True)
        if not self.process.stdout.readline():
            sys.exit("gpu_compare: the program does not start")

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            status = self.process.wait()
            self.start()      # the other cases may go well
            raise RuntimeError(f"the program ended (status {status})")
        return json.loads(line)

    def turn(self, case):
        print(case["group"] + "/" + case["name"], file=self.process.stdin,
              flush=True)
        answer = self.answer()
        if "error" in answer:
            raise RuntimeError(answer["error"].splitlines()[0])
        case["bytes"] = answer["bytes"]
        return answer["seconds"]

    def drop(self):
        print(file=self.process.stdin, flush=True)

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


class Torch:
    """The same in PyTorch; also what a bare copy by CUDA takes."""

    def __init__(self, torch, device, quick):
        self.torch, self.device, self.quick = torch, device, quick
        self.name, self.key = "PyTorch", "torch"
        torch.backends.cudnn.benchmark = True
        self.cudart = None
        for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so"):
            try:
                self.cudart = ctypes.CDLL(name)
                break
            except OSError:
                pass
        self.current, self.sets = None, []

    def raw(self, to, source):
        if self.cudart is None:
            raise RuntimeError("there is no libcudart")
        status = self.cudart.cudaMemcpyAsync(
            ctypes.c_void_p(to.data_ptr()), ctypes.c_void_p(source.data_ptr()),
            ctypes.c_size_t(to.numel() * to.element_size()), 4,
            ctypes.c_void_p(self.torch.cuda.current_stream().cuda_stream))
        if status:
            raise RuntimeError(f"cudaMemcpyAsync failed ({status})")
        return to

    def operand(self, o, case):
        torch, size = self.torch, o["sizes"]
        dtype = getattr(torch, o["dtype"])
        on = {"device": self.device}
        return {
            "randn": lambda: torch.randn(size, **on).to(dtype),
            "image": lambda: torch.randn(size, **on).to(
                dtype, memory_format=torch.channels_last),
            "int": lambda: torch.randint(-100, 101, size, **on).to(dtype),
            "mask": lambda: torch.rand(size, **on) > 0.5,
            "index": lambda: torch.randint(0, case["limit"], size, **on),
            "pinned": lambda: torch.randn(size).pin_memory(),
            "pageable": lambda: torch.randn(size),
        }[o["kind"]]()

    def prepare(self, case):
        self.drop()
        self.current = case["name"]
        most = 1 if case.get("host") else 2 if self.quick else 16
        size = 0
        while True:
            self.sets.append({o["name"]: self.operand(o, case)
                              for o in case["operands"]})
            size += sum(self.size(x) for x in self.sets[-1].values())
            if len(self.sets) >= most or size > CACHE:
                return

    def size(self, x):
        return x.numel() * x.element_size()

    def loop(self, expression):
        scope = {"torch": self.torch, "raw": self.raw}
        exec(f"def run(calls, a=None, b=None, m=None, i=None, p=None):\n"
             f"  for _ in range(calls): y = {expression}\n", scope)
        return scope["run"]

    def event(self):
        return self.torch.cuda.Event(enable_timing=True)

    def elapsed(self, start, stop):
        return start.elapsed_time(stop)

    def synchronize(self):
        self.torch.cuda.synchronize()

    def settings(self, case):
        torch = self.torch
        torch.backends.cuda.matmul.allow_tf32 = bool(case.get("tf32"))
        torch.use_deterministic_algorithms(bool(case.get("deterministic")))

    def turn(self, case, expression):
        calls = case.get("calls", 1)
        if self.quick:
            calls = min(calls, 3)
        if self.current != case["name"]:
            self.prepare(case)
        self.settings(case)
        how = self.host if case.get("host") else self.timed
        return how(self.loop(expression), calls)

    def timed(self, run, calls):
        events = [(self.event(), self.event()) for _ in range(SAMPLES)]
        for k in range(WARMUPS):
            run(calls, **self.sets[k % len(self.sets)])
        for k, (start, stop) in enumerate(events, WARMUPS):
            start.record()
            run(calls, **self.sets[k % len(self.sets)])
            stop.record()
        self.synchronize()
        return [self.elapsed(*e) / 1e3 / calls for e in events]

    def host(self, run, calls):
        seconds = []
        for _ in range(SAMPLES + 2):
            self.synchronize()
            start = time.perf_counter()
            run(calls, **self.sets[0])
            seconds.append((time.perf_counter() - start) / calls)
        self.synchronize()
        return seconds[2:]

    def drop(self):
        self.current, self.sets = None, []
        self.torch.cuda.empty_cache()


class CuPy(Torch):
    """The same in CuPy, which has no bfloat16."""

    def __init__(self, cupy, quick):  # pylint: disable=super-init-not-called
        self.cupy, self.quick = cupy, quick
        self.name, self.key = "CuPy", "cupy"
        self.current, self.sets = None, []

    def operand(self, o, case):
        cp, size = self.cupy, o["sizes"]
        return {
            "randn": lambda: cp.random.standard_normal(size, dtype=o["dtype"]),
            "int": lambda: cp.random.randint(-100, 101, size, dtype=o["dtype"]),
            "mask": lambda: cp.random.random(size) > 0.5,
            "index": lambda: cp.random.randint(0, case["limit"], size),
        }[o["kind"]]()

    def size(self, x):
        return x.nbytes

    def loop(self, expression):
        scope = {"cp": self.cupy}
        exec(f"def run(calls, a=None, b=None, m=None, i=None, p=None):\n"
             f"  for _ in range(calls): y = {expression}\n", scope)
        return scope["run"]

    def event(self):
        return self.cupy.cuda.Event()

    def elapsed(self, start, stop):
        return self.cupy.cuda.get_elapsed_time(start, stop)

    def synchronize(self):
        self.cupy.cuda.Device().synchronize()

    def settings(self, case):
        pass

    def drop(self):
        self.current, self.sets = None, []
        self.cupy.get_default_memory_pool().free_all_blocks()


def measure(nacre, rivals, case, turns):
    """Samples of each, by name; what cannot run has its error instead."""
    samples, errors = {}, {}
    runs = [("Nacre", lambda: nacre.turn(case))]
    for rival in rivals:
        for key, name in ((rival.key, rival.name), ("raw", "cudaMemcpyAsync")):
            if case.get(key) and (key != "raw" or rival.key == "torch"):
                runs.append((name, lambda r=rival, e=case[key]:
                             r.turn(case, e)))
    for _ in range(turns):
        for name, run in runs:
            if name in errors:
                continue
            try:
                seconds = run()
                samples.setdefault(name, []).append(seconds)
            except Exception as e:  # pylint: disable=broad-except
                errors[name] = str(e).splitlines()[0] if str(e) else repr(e)
    for side in [nacre] + rivals:
        side.drop()
    return samples, errors


def summary(case, samples, errors, quick):
    row = {"group": case["group"], "case": case["name"],
           "goal": case.get("goal"), "errors": errors, "seconds": {},
           "ratio": {}}
    for name, turns in samples.items():
        row["seconds"][name] = statistics.median(sum(turns, []))
        if name != "Nacre" and "Nacre" in samples:
            row["ratio"][name] = statistics.median(
                statistics.median(a) / statistics.median(b)
                for a, b in zip(samples["Nacre"], turns))
    ours = row["seconds"].get("Nacre")
    if ours and not case.get("host"):
        row["gbs"] = case["bytes"] / ours / 1e9
        if "flops" in case and not quick:
            row["tflops"] = case["flops"] / ours / 1e12
    return row


def duration(seconds):
    if seconds is None:
        return ""
    return f"{seconds * 1e6:.2f} us" if seconds < 1e-4 \
        else f"{seconds * 1e3:.3f} ms"


def markdown(row):
    rate = f"{row['tflops']:.1f} TFLOP/s" if "tflops" in row \
        else f"{row['gbs']:.0f} GB/s" if "gbs" in row else ""
    other, ratio = row["seconds"], row["ratio"]
    goal, torch = row["goal"], ratio.get("PyTorch")
    met = "" if torch is None or goal is None \
        else "yes" if torch <= goal else "**no**"
    cells = [row["case"], duration(other.get("Nacre")), rate]
    for name in ("PyTorch", "CuPy", "cudaMemcpyAsync"):
        cells.append(f"{ratio[name]:.2f} ({duration(other[name])})"
                     if name in ratio else "")
    cells += [f"{goal:.2f}" if goal else "", met]
    text = "| " + " | ".join(cells) + " |"
    for name, error in row["errors"].items():
        text += f"\n| {row['case']}: {name}: {error} | | | | | | | |"
    return text


def first_result(path, device, torch):
    """Seconds from the start of a program to its first result."""
    commands = {"Nacre": [path, "-e", "print((nacre.ones(1, {device="
                          f"'{device}'}})+1):item())"]}
    if torch:
        commands["PyTorch"] = [
            sys.executable, "-c",
            f"import torch; print((torch.ones(1, device='{device}')+1).item())"]
    times = {name: [] for name in commands}
    for _ in range(3):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            times[name].append(time.perf_counter() - start)
    median = {name: statistics.median(t) for name, t in times.items()}
    ratio = {} if not torch else {"PyTorch": median["Nacre"] /
                                  median["PyTorch"]}
    return {"group": "start", "case": "first result of a new process",
            "goal": 0.3, "errors": {}, "seconds": median, "ratio": ratio}


def cases_of(path, quick):
    lines = subprocess.run(
        [path, os.path.join(HERE, "gpu.lua"), "--list"] + ["--quick"] * quick,
        check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


def heading(group):
    print(f"\n### {group}\n\n| case | Nacre | rate | to PyTorch | to CuPy | "
          "to cudaMemcpyAsync | goal | met |\n|---|---:|---:|---:|---:|---:|"
          "---:|---|", flush=True)


def arguments():
    p = argparse.ArgumentParser(description="ours, PyTorch and CuPy by turns")
    p.add_argument("nacre")
    p.add_argument("--device", default="cuda:0")
    p.add_argument("--minutes", type=float, default=5)
    p.add_argument("--quick", action="store_true")
    p.add_argument("--json")
    p.add_argument("groups", nargs="*")
    return p.parse_intermixed_args()


def main():
    args = arguments()
    end = time.monotonic() + 60 * args.minutes
    torch = load("torch")
    cupy = load("cupy")
    rivals = [Torch(torch, args.device, args.quick)] if torch else []
    rivals += [CuPy(cupy, args.quick)] if cupy else []
    print("Beside it: " + (", ".join(
        f"{r.name} {sys.modules[r.key].__version__}" for r in rivals)
        or "nothing; neither PyTorch nor CuPy is here"))
    rows, left, group = [], [], None
    if not args.groups:
        heading("start")
        rows.append(first_result(args.nacre, args.device, torch))
        print(markdown(rows[-1]), flush=True)
    nacre = Nacre(args.nacre, args.device, args.quick)
    for case in cases_of(args.nacre, args.quick):
        if args.groups and case["group"] not in args.groups:
            continue
        if time.monotonic() > end:
            left.append(case["name"])
            continue
        if case["group"] != group:
            group = case["group"]
            heading(group)
        samples, errors = measure(nacre, rivals, case,
                                  1 if args.quick else TURNS)
        rows.append(summary(case, samples, errors, args.quick))
        print(markdown(rows[-1]), flush=True)
    nacre.close()
    if left:
        print("\nNot measured, the time was over: " + "; ".join(left))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"rows": rows, "left": left}, f, indent=1)
    return 1 if any("Nacre" in row["errors"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
