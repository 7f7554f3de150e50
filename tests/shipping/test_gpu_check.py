#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/gpu-check where things go wrong: tests that crash, hang and fail, a
sanitizer that finds something or does not work, a program that is ended, a
machine without a GPU. The report is always there and says what happened. The
program, the sanitizer, nvidia-smi and the benchmark are stand-ins:
test_gpu_check.py SOURCE"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

NACRE = r"""#!{python}
import os, signal, subprocess, sys, time
words = sys.argv[1:]
if "-v" in words: print("nacre 0")
elif "-i" in words:
    assert sys.stdin.read() == ":doctor\n"
    print("cuda      cuda:0: a GPU")
elif words[0] == "-e" and "why" in words[1]:
    print(os.environ.get("FAKE_WHY", "usable"))
elif words[0] == "-e": print(9)
else:
    name = next((w for w in words if w.endswith(".lua")), words[-1])
    name = os.path.basename(name).split(".")[0]
    assert name.startswith(("cuda", "parity")) or "cuda:0" in words, words
    busy = os.path.join(os.environ["FAKE_BUSY"], str(os.getpid()))
    open(busy, "w").close()
    assert name != "cuda_timing" or len(os.listdir(os.path.dirname(busy))) == 1
    time.sleep(0.05)
    os.remove(busy)
    trouble = os.environ.get("FAKE_TROUBLE", "").split()
    if name not in trouble: print("ok", os.environ.get("NACRE_CUBLAS"))
    elif name == "crashes": os.kill(os.getpid(), signal.SIGSEGV)
    elif name == "fails":
        print("early line\n" * 30 + "last words")
        sys.exit(1)
    elif name == "skips": sys.exit(77)
    elif name == "hangs":      # and so does what it started
        child = subprocess.Popen(["sleep", "98765"])
        print("started", flush=True)
        with open(os.environ["FAKE_PIDS"], "a") as f:
            f.write("%d %d\n" % (os.getpid(), child.pid))
        time.sleep(98765)
"""

SANITIZER = r"""#!{python}
import os, subprocess, sys
if "--version" in sys.argv:
    print("Version 2025.3")
    sys.exit()
tool = sys.argv[2]
at = next(i for i, w in enumerate(sys.argv) if w.endswith("bin/nacre"))
mode = os.environ.get("FAKE_SANITIZER", "")
print("========= COMPUTE-SANITIZER")
if mode == "refuses":
    print("========= Error: Device not supported.")
    sys.exit(1)
status = subprocess.run(sys.argv[at:]).returncode
name = os.path.basename(sys.argv[-1])
if tool == "racecheck":
    found = mode == "finds" and name == "reduce_dim.lua"
    if found:
        print("========= Error: Race reported between Write access at "
              "sumrows(float *)+0x110\n"
              "=========     and Read access at sumrows(float *)+0x230\n"
              "=========\n========= another one")
    print("========= RACECHECK SUMMARY: %d hazards displayed" % found)
    sys.exit(9 if found else status)
if not (mode == "silent" and name == "view.lua"):
    print("========= ERROR SUMMARY: 0 errors")
sys.exit(status)
"""

BENCH = r"""import os, sys, time
print("| a+b | 1.00 us |", flush=True)
if os.environ.get("FAKE_BENCH") == "hangs": time.sleep(98765)
if os.environ.get("FAKE_BENCH") == "crashes": sys.exit("no such case")
with open(sys.argv[sys.argv.index("--json") + 1], "w") as f:
    f.write('{"records": [{"name": "a+b"}], "left": []}')
with open(sys.argv[sys.argv.index("--markdown") + 1], "w") as f:
    f.write("| a+b | 1.00 us | yes |")
"""

OWN = ["cuda_basics", "cuda_conv", "cuda_none", "cuda_products", "cuda_streams",
       "cuda_timing"]
ON_DEVICE = ["reduce_dim", "index", "sort", "view", "random", "create",
             "crashes", "fails", "skips", "hangs"]


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


def make(source, root):
    for name in ("gpu-check", "gpu_report.py"):
        os.makedirs(root + "/scripts", exist_ok=True)
        shutil.copy(os.path.join(source, "scripts", name), root + "/scripts")
    write(root + "/commit", "c0ffee\n")
    write(root + "/scripts/crossover.lua", "")
    write(root + "/scripts/bench/suite.py", BENCH)
    for name in ["parity/parity", "parity/parity_programs"] + [
            "cuda/" + own for own in OWN] + ["ops/" + n for n in ON_DEVICE]:
        write(f"{root}/tests/{name}.lua", "")
    write(root + "/tests/cuda/on_device.txt",
          "".join(f"ops/{name}\n" for name in ON_DEVICE))
    write(root + "/bin/nacre", NACRE.replace("{python}", sys.executable),
          0o755)
    write(root + "/tools/compute-sanitizer",
          SANITIZER.replace("{python}", sys.executable), 0o755)
    write(root + "/tools/nvidia-smi", "#!/bin/sh\necho NVIDIA X1, 580.1\n",
          0o755)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Check:
    """One run of gpu-check."""

    def __init__(self, root, minutes, *words, longest=120, **fakes):
        self.out = tempfile.mkdtemp(dir=root)
        self.pids = os.path.join(self.out, "pids")
        os.mkdir(self.out + "/busy")
        env = {k: v for k, v in os.environ.items()
               if k != "PYTHONDONTWRITEBYTECODE"} # it is gpu-check that forbids
        env = {**env, "PATH": root + "/tools:/usr/bin:/bin",
               "FAKE_PIDS": self.pids, "FAKE_BUSY": os.path.join(self.out, "busy"),
               **{"FAKE_" + k.upper(): v for k, v in fakes.items()}}
        # as python3 gpu-check would, which writes no byte code of it itself
        code = ("import sys, types\n"
                "path, sys.argv = sys.argv[1], sys.argv[1:]\n"
                "sys.path.insert(0, path.rsplit('/', 1)[0])\n"
                "m = sys.modules['check'] = types.ModuleType('check')\n"
                "m.__file__ = path\n"
                "exec(compile(open(path).read(), path, 'exec'), m.__dict__)\n"
                f"m.LONGEST = {longest}\n"
                "sys.exit(m.main())\n")
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, root + "/scripts/gpu-check", "--out",
             self.out, "--minutes", str(minutes), *words], env=env,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def finish(self, status):
        self.said = self.process.communicate(timeout=100)[0]
        assert self.process.returncode == status, self.said
        with open(self.out + "/gpu-check.json", encoding="utf-8") as f:
            self.data = json.load(f)
        with open(self.out + "/gpu-check.md", encoding="utf-8") as f:
            self.text = f.read()
        if os.path.exists(self.pids):
            with open(self.pids, encoding="utf-8") as f:
                left = [pid for pid in f.read().split() if alive(pid)]
            assert not left, f"still running: {left}"
        return self

    def has(self, *parts):
        for part in parts:
            assert part in self.text, f"{part!r} is not in\n{self.text}"
        return self

    def row(self, step, name, tool=None):
        return next(r for r in self.data["steps"][step]["rows"]
                    if r["test"] == name and r.get("tool") == tool)["result"]


def goes_well(root):
    c = Check(root, 1).finish(0)
    c.has("nothing failed", "28 passed", "36 clean", "c0ffee", "NVIDIA X1",
          "| a+b | 1.00 us | yes |",
          "cuda:0: a GPU")
    assert [p["result"] for p in c.data["steps"].values()] == [
        "done", "passed", "passed", "done"], c.text
    assert c.data["steps"]["speed"]["cases"] == [{"name": "a+b"}]
    assert not os.path.exists(root + "/scripts/__pycache__")


def goes_wrong(root):
    c = Check(root, 2, longest=3, trouble="crashes fails skips hangs",
              sanitizer="finds").finish(1)
    c.has("**FAILED**", "SIGSEGV", "last words", "no end after 3 s",
          "racecheck reduce_dim", "sumrows(float *)+0x110")
    assert c.text.count("early line") < 15 and "another one" not in c.text
    assert c.row("tests", "hangs") == "FAILED (no end after 3 s)"
    assert c.row("tests", "skips") == "skipped"
    c.has("Skipped: skips.")
    assert c.row("tests", "parity_programs 8") == "passed"
    assert c.row("tests", "sort") == "passed"
    assert c.row("sanitizer", "reduce_dim", "memcheck") == "clean"
    assert c.row("sanitizer", "reduce_dim", "racecheck") == "FAILED (1 found)"


def sanitizer_is_of_no_use(root):
    c = Check(root, 1, "sanitizer", sanitizer="refuses").finish(0)
    c.has("does not work here", "Device not supported")
    c = Check(root, 1, "sanitizer", sanitizer="silent").finish(1)
    assert c.row("sanitizer", "view", "memcheck") == "FAILED (no summary)"


def time_is_over(root):
    c = Check(root, 0.35, trouble="hangs", bench="hangs").finish(0)
    c.has("hangs: **no end after ", "started", "| a+b |",
          "but not all was done")
    assert c.data["steps"]["speed"]["result"] == "not finished"
    assert c.data["steps"]["sanitizer"]["result"] == "not reached", c.text
    Check(root, 1, "speed", bench="crashes").finish(1).has("no such case")


def is_ended(root):
    c = Check(root, 2, trouble="hangs")
    end = time.monotonic() + 60
    while not os.path.exists(c.pids) and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(0.5)
    c.process.send_signal(signal.SIGTERM)
    c.finish(1).has("it was broken off", "passed", "## sanitizer: not reached")


def has_no_device(root):
    c = Check(root, 1, why="there is no NVIDIA driver").finish(1)
    c.has("there is nothing to check", "no NVIDIA driver", "LD_LIBRARY_PATH")
    assert "no NVIDIA driver" in c.said


def main(source):
    with tempfile.TemporaryDirectory() as root:
        make(source, root)
        for case in (goes_well, goes_wrong, sanitizer_is_of_no_use,
                     time_is_over, is_ended, has_no_device):
            case(root)
            print(case.__name__, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
