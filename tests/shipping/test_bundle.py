#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The bundle of scripts/gpu-check runs where it is put, with its own libraries
and without ours: test_bundle.py SOURCE BUILD"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

import search_paths

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..",
                                "distributed"))
import ranks  # noqa: E402


def opened_late(plugin):
    """What is opened late gets its thread-local memory late as well: little
    is kept for it, on some systems less than NVIDIA's runtime has."""
    if os.path.exists(plugin) and shutil.which("readelf"):
        flags = subprocess.run(["readelf", "-dW", plugin], check=True,
                               stdout=subprocess.PIPE, text=True).stdout
        assert "STATIC_TLS" not in flags, f"{plugin} may not load: {flags}"


def check_ranks(nacre, env, folder):
    """It carries the plug-in for each MPI that is here."""
    for mpi in "openmpi", "mpich":
        if ranks.launcher(mpi, 2) is None or ranks.tool("mpicc", mpi) is None:
            continue
        more = {k: v for k, v in ranks.environment(mpi, "").items()
                if k.startswith("OMPI_")}
        said = subprocess.run(
            [*ranks.launcher(mpi, 2), nacre, "-e", "local dist = "
             "nacre.distributed dist.init_process_group() local x = "
             "dist.all_reduce(nacre.ones(1)) "
             "if dist.get_rank() == 0 then print('sum', x[1]) end"],
            env={**env, **more}, cwd=folder, check=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            text=True).stdout
        assert said == "sum\t2.0\n", said


def check_files(folder):
    """It has the files of other folders that its tests open."""
    for path in glob.glob(os.path.join(folder, "tests", "**", "*.lua"),
                          recursive=True):
        with open(path, encoding="utf-8") as f:
            named = re.findall(r'"(?:\.\./)+((?:bindings|core|cuda|docs|repl|'
                               r'scripts)/[\w/-]+\.\w+)"', f.read())
        for name in named:
            assert os.path.exists(os.path.join(folder, name)), (
                f"{path}: {name} is not in the bundle")


def main(source, build):
    with tempfile.TemporaryDirectory() as folder:
        made, moved = os.path.join(folder, "made"), os.path.join(folder, "b")
        subprocess.run([sys.executable,
                        os.path.join(source, "scripts", "gpu-check"),
                        "--bundle", made, "--build", build], check=True)
        os.rename(made, moved)
        check_files(moved)
        search_paths.check(moved)
        nacre = os.path.join(moved, "bin", "nacre")
        opened_late(os.path.join(moved, "lib/nacre/libnacre_cuda.so"))
        env = {"PATH": "/usr/bin:/bin", "HOME": folder}
        for test in ("ops/matmul", "ops/view"):
            subprocess.run([nacre, os.path.join(moved, "tests",
                                                test + ".lua")],
                           env=env, cwd=folder, check=True)
        loaded = subprocess.run(
            [nacre, "-e", "a = nacre.ones(9, 9) a = a:mm(a) "
             "for line in io.lines('/proc/self/maps') do print(line) end"],
            env=env, cwd=folder, check=True, stdout=subprocess.PIPE,
            text=True).stdout
        for library in ("liblua5.4", "libreadline", "libtinfo", "libopenblas",
                        "libgfortran", "libquadmath"):
            paths = {line.split()[-1] for line in loaded.splitlines()
                     if library in line}
            outside = [p for p in paths if not p.startswith(moved)]
            assert not outside, f"not of the bundle: {outside}"
        check_ranks(nacre, env, folder)
        for name in ("gpu-check", "crossover.lua", "bench/rows/gpu.py"):
            assert os.path.exists(os.path.join(moved, "scripts", name)), name
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
