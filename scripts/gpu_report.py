# SPDX-License-Identifier: MIT
"""What scripts/gpu-check writes: facts of the machine, and the report, which
is on disk after every change."""
import datetime
import glob
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


#
# The machine
#
def output(command, seconds=20, told="", **more):
    """What a command says when it is told something, or None if it fails or
    hangs."""
    try:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE,
                              input=told, errors="replace",
                              stderr=subprocess.STDOUT, text=True,
                              timeout=seconds, **more).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def find_tool(name):
    folders = [os.environ.get(v, "") + "/bin" for v in ("CUDA_HOME",
                                                        "CUDA_PATH")]
    for cuda in ["/usr/local/cuda"] + sorted(glob.glob("/usr/local/cuda-*")):
        folders += [cuda + "/bin", cuda + "/compute-sanitizer"]
    return shutil.which(name) or next(
        (path for path in (os.path.join(f, name) for f in folders)
         if os.access(path, os.X_OK)), None)


def commit():
    """What the sources are: of the bundle, or of this checkout."""
    path = os.path.join(ROOT, "commit")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            return f.read().strip()
    name = output(["git", "-C", ROOT, "rev-parse", "HEAD"])
    if name and output(["git", "-C", ROOT, "status", "--porcelain"]):
        name += ", changed"
    return name or "unknown"


def first_of(path, pattern):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            found = re.search(pattern, f.read(), re.M)
    except OSError:
        return "?"
    return found.group(1) if found else "?"


def version_of(*packages):
    for name in packages:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return "not here"


def clocks():
    return output(["nvidia-smi", "--query-gpu=name,driver_version,"
                   "memory.total,memory.used,clocks.sm,clocks.max.sm,"
                   "clocks.mem,temperature.gpu,power.draw",
                   "--format=csv,noheader"]) or "nvidia-smi says nothing"


def machine(run):
    memory = first_of("/proc/meminfo", r"^MemTotal: +(\d+)")
    sanitizer = find_tool("compute-sanitizer")
    return {
        "date": datetime.datetime.now(datetime.timezone.utc)
        .strftime("%Y-%m-%d %H:%M UTC"),
        "commit": commit(),
        "nacre": run.output("-v"),
        "system": f"{platform.system()} {platform.release()}, "
                  f"{' '.join(platform.libc_ver())}",
        "processor": f"{first_of('/proc/cpuinfo', r'^model name.*: (.*)')}, "
                     f"{os.cpu_count()} visible, memory {memory} kB",
        "GPU at the beginning": clocks(),
        "compute-sanitizer": sanitizer and
        (output([sanitizer, "--version"]) or sanitizer).splitlines()[-1] or
        "not here",
        "Python": f"{platform.python_version()} ({sys.executable})",
        "PyTorch": version_of("torch"),
        "CuPy": version_of("cupy", "cupy-cuda13x", "cupy-cuda12x"),
        "Triton": version_of("triton", "pytorch-triton"),
    }


def trouble():
    """What to look at where the device is of no use."""
    said = [clocks(),
            "devices: " + (" ".join(glob.glob("/dev/nvidia*")) or "none"),
            "LD_LIBRARY_PATH=" + os.environ.get("LD_LIBRARY_PATH", ""),
            "CUDA_VISIBLE_DEVICES=" + os.environ.get("CUDA_VISIBLE_DEVICES",
                                                     "(not set)")]
    known = output(["ldconfig", "-p"]) or ""
    said += [line.strip() for line in known.splitlines() if "libcuda" in line]
    return "\n".join(said)


#
# The report
#
def tail(text, lines=12):
    return "\n".join(text.strip().splitlines()[-lines:])


def counted(rows):
    """"3 passed, 1 FAILED"."""
    kinds = {}
    for row in rows:
        kind = row["result"].split(" (")[0]
        kinds[kind] = kinds.get(kind, 0) + 1
    return ", ".join(f"{n} {kind}" for kind, n in kinds.items())


def table(rows):
    """What is not as it should be, in full; of the rest how long it took."""
    well = ("passed", "clean", "skipped")
    lines = [counted(rows) + "."]
    slow = sorted(rows, key=lambda r: -r["seconds"])[:3]
    lines += ["Longest: " + ", ".join(
        f"{name_of(r)} {r['seconds']:.1f} s" for r in slow) + "."]
    silent = {}
    for row in rows:
        if row["result"] not in well and not row["said"]:
            silent.setdefault(row["result"], []).append(name_of(row))
    for result, names in silent.items():
        lines += ["", f"{result}: {', '.join(names)}."]
    for row in rows:
        if row["result"] not in well and row["said"]:
            lines += ["", f"{name_of(row)}: **{row['result']}** after "
                      f"{row['seconds']:.1f} s", "", "```", row["said"], "```"]
    return lines


def name_of(row):
    return f"{row['tool']} {row['test']}" if "tool" in row else row["test"]


def failed(part):
    return any(r["result"].startswith("FAILED")
               for r in [part, *part.get("rows", [])])


def verdict(steps):
    results = [r["result"] for p in steps.values()
               for r in [p, *p.get("rows", [])]]
    if any(r.startswith("FAILED") for r in results):
        return "**FAILED**."
    short = any(r.startswith(("no", "broken")) for r in results)
    return "nothing failed" + (", but not all was done." if short else ".")


class Report:
    """What was found, on disk after every change."""

    def __init__(self, args):
        self.out = os.path.abspath(args.out)
        os.makedirs(self.out, exist_ok=True)
        self.start = time.monotonic()
        self.lock = threading.Lock()
        self.data = {"machine": {}, "emulated": args.emulated, "steps": {},
                     "ended": "it was broken off"}

    def ok(self):
        return not any(failed(p) for p in self.data["steps"].values())

    def markdown(self):
        data = self.data
        lines = ["# On a GPU", ""]
        lines += [f"* {name}: {value}"
                  for name, value in data["machine"].items()]
        if data["emulated"]:
            lines += ["", "The device is emulated: the figures mean nothing."]
        lines += ["", f"In all: {data['seconds']:.0f} s, {data['ended']}; "
                  + verdict(data["steps"])]
        for name, part in data["steps"].items():
            lines += ["", f"## {name}: {part['result']}"]
            lines += ["", part["note"]] if part.get("note") else []
            lines += ["", part["said"]] if part.get("said") else []
            lines += ["", *table(part["rows"])] if part.get("rows") else []
        return "\n".join(lines) + "\n"

    def save(self):
        with self.lock:
            self.data["seconds"] = time.monotonic() - self.start
            for name, text in (("json", json.dumps(self.data, indent=1)),
                               ("md", self.markdown())):
                path = os.path.join(self.out, "gpu-check." + name)
                with open(path + ".new", "w", encoding="utf-8") as f:
                    f.write(text)
                os.replace(path + ".new", path)
