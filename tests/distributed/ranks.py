# SPDX-License-Identifier: MIT
"""Runs the program on several ranks. As a program:

    ranks.py build MPI FOLDER NACRE         builds the plug-in of an MPI there
    ranks.py run MPI N FOLDER NACRE WORD... runs NACRE WORD... on N ranks

MPI is openmpi or mpich. Exits with 77 where that MPI is not installed."""
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

LIMIT = 300 if os.environ.get("NACRE_NIGHTLY") else 150  # seconds of a run
ROOT = pathlib.Path(__file__).resolve().parents[2]


def tool(name, mpi):
    """The program of this MPI; None if it is not there."""
    path = shutil.which(f"{name}.{mpi}")
    if path or shutil.which(name) is None:
        return path
    said = subprocess.run([name, "--version" if name == "mpirun" else "-show"],
                          capture_output=True, text=True, check=False).stdout
    is_openmpi = "Open MPI" in said or "openmpi" in said
    return shutil.which(name) if is_openmpi == (mpi == "openmpi") else None


def launcher(mpi, n):
    """The words that start n ranks; None if this MPI is not there."""
    mpirun = tool("mpirun", mpi)
    if mpirun is None:
        return None
    if mpi == "mpich":
        return [mpirun, "-n", str(n)]
    return [mpirun, "-q", "--oversubscribe", "--allow-run-as-root", "-n", str(n)]


def environment(mpi, folder, **more):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("NACRE_", "OMPI_", "PMI", "SLURM_"))
           or k == "NACRE_NIGHTLY"}
    env["NACRE_MPI"] = os.path.join(folder, f"libnacre_{mpi}.so")
    env["OMPI_MCA_btl_vader_single_copy_mechanism"] = "none"  # as containers
    env["OMPI_MCA_plm_rsh_agent"] = "sh"                      # without ssh
    # There are more ranks than cores: who waits sleeps, and does not keep
    # the others from a core by polls, or itself by giving it up each time.
    env["NACRE_DISTRIBUTED_SPIN"] = "0"
    env["OMPI_MCA_mpi_yield_when_idle"] = "0"
    given = env.get("ASAN_OPTIONS")     # MPI keeps memory until the end
    env["ASAN_OPTIONS"] = (given + ":" if given else "") + "detect_leaks=0"
    return {**env, **more}


def build(mpi, folder, nacre):
    compiler = tool("mpicc", mpi)
    if compiler is None:
        return 77
    os.makedirs(folder, exist_ok=True)
    return subprocess.run([nacre, f"--build-mpi={folder}"], check=False,
                          env={**os.environ, "MPICC": compiler}).returncode


def run(mpi, n, folder, words, **more):
    """The completed process; its output is captured."""
    return subprocess.run(
        [*launcher(mpi, n), *words], env=environment(mpi, folder, **more),
        capture_output=True, text=True, check=False, timeout=LIMIT,
        stdin=subprocess.DEVNULL)


def run_until(word, path, mpi, n, folder, words, **more):
    """As run, and makes the file when the word has been printed."""
    text = ""
    with subprocess.Popen(
            [*launcher(mpi, n), *words], env=environment(mpi, folder, **more),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            stdin=subprocess.DEVNULL) as process:
        limit = threading.Timer(LIMIT, process.kill)
        limit.start()
        for line in process.stdout:
            text += line
            if word in line:
                pathlib.Path(path).touch()
        limit.cancel()
    return process.returncode, text


def run_test(name, test):
    """Calls the function; 1 if it failed."""
    begin, said = time.monotonic(), "ok"
    try:
        test()
    except Exception as e:  # also a run that hung
        said = f"FAIL {e}"
    print(f"{name[5:]} {time.monotonic() - begin:.1f} s {said}", flush=True)
    return said != "ok"


def run_tests(mpi, names):
    """Calls the functions test_... among the names, some beside each other, as
    they wait for most of the time; the exit status."""
    if launcher(mpi, 1) is None or tool("mpicc", mpi) is None:
        return 77
    tests = [(name, test) for name, test in names.items()
             if name.startswith("test_")]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return max(pool.map(lambda t: run_test(*t), tests), default=0)


def main(words):
    if words[0] == "build":
        return build(*words[1:])
    _, mpi, n, folder, *command = words
    if launcher(mpi, n) is None or tool("mpicc", mpi) is None:
        return 77
    more = dict(word.split("=", 1) for word in os.environ.get(
        "RANKS_ENVIRONMENT", "").split())
    done = run(mpi, n, folder, command, **more)
    print(done.stdout + done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
