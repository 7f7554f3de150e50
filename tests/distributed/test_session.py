#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One prompt for several ranks: lines, errors and Ctrl-C, through pipes.

    test_session.py MPI FOLDER NACRE"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import ranks

MPI, FOLDER, NACRE = sys.argv[1:4]


def start(n=3, launch=None):
    launch = launch or " ".join(ranks.launcher(MPI, n))
    return subprocess.Popen(
        [NACRE, "--launch", launch, "--no-history", "-E"],
        env=ranks.environment(MPI, FOLDER), stdin=subprocess.PIPE, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def session(text, launch=None, status=0):
    """What a session of these lines prints."""
    p = start(launch=launch)
    out, _ = p.communicate(text, timeout=ranks.LIMIT)
    assert (p.returncode == 0) == (status == 0), (p.returncode, out)
    return out


def wait_for(mark):
    limit = time.monotonic() + ranks.LIMIT
    while not os.path.exists(mark) and time.monotonic() < limit:
        time.sleep(0.02)
    time.sleep(0.2)     # the other ranks come to where they wait


def interrupt(p, mark, rest):
    """Ctrl-C when the file `mark' is there; what the session prints."""
    p.stdin.flush()
    wait_for(mark)
    p.send_signal(signal.SIGINT)
    out, _ = p.communicate(rest, timeout=ranks.LIMIT)
    return out


def expect(text, *words):
    at = 0
    for word in words:
        found = re.compile(word).search(text, at)
        assert found, f"no {word!r} behind {at} in\n{text}"
        at = found.end()


def test_lines():
    """Equal answers are shown once; @ chooses ranks; :local stays outside."""
    expect(session("x = rank + 1\n"
                   "x, size\n"
                   "dist.all_reduce(nacre.tensor{x})[1]\n"
                   "for i = 1, 2 do\n"
                   "print(i) end\n"
                   "@0,2 x\n"
                   ":local rank\n"),
           r"\[0\] 1\s3\n\[1\] 2\s3\n\[2\] 3\s3\n", r"\[0-2\] 6\n",
           r"\[0-2\]\n1\n2\n", r"\[0\] 1\n\[2\] 3\n", "nil")


def test_variables():
    """What the prompt defines is not the user's."""
    out = session("x = rank\n:whos\n:local y = size\n:local :whos\n")
    assert not re.search(r"\n *(dist|rank|size) ", out), out
    expect(out, r"\n *x +0", "no variables")


def test_ranks():
    expect(session("@1-2 for i = 1, 2 do\n"
                   "print(i) end\n"
                   "@3 rank\n"
                   "@2-1 rank\n"
                   "@1\n"),
           r"\[1,2\]\n1\n2\n", "there is no rank 3: they are 0 to 2",
           "'2-1' is neither a rank nor a range", "@ needs ranks and a line")


def test_completion():
    """Tab knows what rank 0 has, also in its tables."""
    def ask(text):
        return (":local local hooks = require 'nacre.editor_hooks' "
                f"local c = hooks.complete('{text}', {len(text)})[1] "
                "print('<' .. (c and c[1] or c) .. '>')\n")
    out = session("my_table = {element = nacre.ones(2)}\n" + ask("my_t")
                  + ask("my_table.el") + ask("@1-2 my_table.el")
                  + ask("dist.all_red") + ask(":who"))
    expect(out, "<my_table>", "<element>", "<element>", r"<all_reduce\(>",
           "<whos")


def test_long_lines():
    """What rank 0 prints is shown before the line ends; who says the same is
    named after it."""
    with tempfile.TemporaryDirectory() as folder:
        mark = os.path.join(folder, "mark")
        wait = f"repeat local f = io.open('{mark}') until f "
        p = start()
        p.stdin.write(f"print('early', rank // 2) {wait}\nprint 'x'; {wait}\n")
        p.stdin.flush()
        text = ""
        while "early\t0" not in text:
            text += p.stdout.readline()
        open(mark, "w", encoding="ascii").close()
        out, _ = p.communicate("for i = 1, 30000 do print(i, rank) end\n",
                               timeout=ranks.LIMIT)
        expect(text, r"\[0\]\nearly\t0")
        expect(out, r"\[1\] the same\n\[2\] early\t1\n", r"\[0-2\] x",
               r"\n15000\t0\n", r"\n29999\t0\n30000\t0\n\[1\]\n1\t1\n",
               r"\.\.\. \d+ bytes left out \.\.\.", r"\n30000\t1\n")


def command_line(words, given="", status=0):
    """What the program prints for these words behind --launch."""
    p = subprocess.run(
        [NACRE, "--launch", " ".join(ranks.launcher(MPI, 2)), "-E", *words],
        env=ranks.environment(MPI, FOLDER), input=given, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        timeout=ranks.LIMIT)
    assert (p.returncode == 0) == (status == 0), (p.returncode, p.stdout)
    return p.stdout


def test_command_line():
    """What -e, -p and -l say runs on all ranks, and so does a script."""
    out = command_line(["-e", "x = rank + 1", "-p", "x", "-l", "n=nacre",
                        "-p", "n == nacre", "--dtype", "float64",
                        "-p", "nacre.ones(1).dtype"])
    assert out == '[0] 1\n[1] 2\n[0,1] true\n[0,1] "float64"\n', out
    expect(command_line(["-e", "error 'bad'", "-e", "print 'not'"], status=1),
           r"^\[0,1\] error: bad\n$")
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "a script.lua")
        pathlib.Path(script).write_text(
            "nacre.distributed.init_process_group()\n"
            "io.write(('rank\\t%d\\t%s\\n'):format("
            "nacre.distributed.get_rank(), table.concat({...}, '\\t')))\n"
            "if arg[1] == 'fail' then error 'bad' end\n", encoding="ascii")
        out = command_line(["-e", "one = 1", script, "it's", "-e"])
        assert sorted(out.splitlines()) == ["rank\t0\tit's\t-e",
                                            "rank\t1\tit's\t-e"], out
        expect(command_line([script, "fail"], status=1),
               r"\[rank [01] of 2, \S+\] .*bad")
        out = command_line(["-i", script, "it's"], "rank, arg[1]\n")
        expect(out, r"\[0\] rank\t0\tit's", r"\[1\] 1\t\"it's\"")


def script(folder, name, text):
    path = pathlib.Path(folder, name)
    path.write_text("#!/bin/sh\n" + text, encoding="ascii")
    path.chmod(0o755)
    return str(path)


# What Slurm's takes: -n N, -N NODES, options of one word, the command.
SRUN = """
while :; do
  case $1 in
    -n) n=$2; shift 2 ;;
    -N) shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
export SLURM_STEP_NUM_TASKS=$n
"""


def test_slurm():
    """srun starts the ranks, and says how many there are; without its plug-in
    for this MPI each would be rank 0 of 1."""
    words = " ".join(ranks.launcher(MPI, 2)[:-1])
    with tempfile.TemporaryDirectory() as folder:
        srun = script(folder, "srun", SRUN + f'exec {words} "$n" "$@"\n')
        expect(session("size\ndist.all_reduce(nacre.ones(1)):item()\n",
                       f"{srun} -N 2 -n 3 --kill-on-bad-exit=1"),
               r"\[0-2\] 3", r"\[0-2\] 3\.0")
        alone = script(folder, "alone", SRUN + '"$@" < /dev/null & "$@"; wait\n')
        done = subprocess.run(
            [NACRE, "--launch", f"{alone} -n 2", "-E", "-p", "1"], check=False,
            env={**ranks.environment(MPI, FOLDER),
                 "OMPI_MCA_orte_abort_timeout": "1"},
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=ranks.LIMIT)
        assert done.returncode != 0
        expect(done.stderr, r"started 2 processes \(SLURM_STEP_NUM_TASKS\), but "
               ".* sees one", "srun --mpi=pmix", "the job did not start")


def test_talking_launcher():
    """What a launcher prints before the job is no answer of it."""
    with tempfile.TemporaryDirectory() as folder:
        words = " ".join(ranks.launcher(MPI, 2))
        expect(session("size\n", script(folder, "launch",
                                        "echo 'loading the module mpi'\n"
                                        f'exec {words} "$@"\n')),
               r"\[0,1\] 2")


def test_errors():
    """Who waits for a rank that failed hears of it; the next line is right."""
    expect(session("if rank == 1 then error 'bad luck' end dist.barrier()\n"
                   "dist.all_reduce(nacre.ones(2))[1]\n"
                   "dist.all_reduce(nacre.ones(1 + rank % 2))\n"
                   "nacre.ones(2) + nacre.ones(3)\n"
                   "dist.all_reduce(nacre.ones(2))[1]\n"),
           r"rank 1 \(\S+\) failed while barrier #1 waited for it: bad luck",
           r"\[1\] error: bad luck", r"\[0-2\] 3\.0",
           "the ranks ask for different things: rank 0,2: .*; rank 1: ",
           "shapes do not broadcast", r"\[0-2\] 3\.0")


def test_reasons():
    """The others hear the error, not what was printed before it."""
    expect(session("if rank == 1 then print 'x' error 'y' end dist.barrier()\n"
                   "if rank == 1 then error '' end dist.barrier()\n"
                   "dist.barrier()\n"),
           "waited for it: y", "waited for it: an error without a message",
           r"\[0-2\] true")


def test_more_ranks_than_cores():
    if MPI == "openmpi":
        words = ranks.launcher(MPI, 2) + ["--host", "localhost:1"]
        words.remove("--oversubscribe")
        expect(session("size\n", " ".join(words)), r"\[0,1\] 2")


def test_scripts():
    """A script for several ranks may connect them, and end that."""
    expect(session("dist.init_process_group() dist.barrier() "
                   "dist.destroy_process_group()\n"
                   "dist.all_reduce(nacre.ones(2))[1]\n"), r"\[0-2\] 3\.0")


def test_group_on_one_rank():
    """Ctrl-C ends the wait for the others."""
    with tempfile.TemporaryDirectory() as folder:
        mark = os.path.join(folder, "mark")
        p = start()
        p.stdin.write(f"@0 io.open('{mark}', 'w'):close(); "
                      "g = dist.new_group()\n")
        out = interrupt(p, mark, "dist.all_reduce(nacre.ones(2))[1]\n")
    expect(out, r"\[0\] interrupted", r"\[0-2\] 3\.0")


def test_interrupt():
    """Ctrl-C reaches a rank in a loop, and those that wait for it."""
    with tempfile.TemporaryDirectory() as folder:
        mark = os.path.join(folder, "mark")
        p = start()
        p.stdin.write(f"if rank == 1 then io.open('{mark}', 'w'):close() "
                      "while true do end end dist.barrier()\n")
        out = interrupt(p, mark, "dist.all_reduce(nacre.ones(2))[1]\n")
        expect(out, r"\] interrupted", r"\[0-2\] 3\.0")
        stopped = re.findall(r"^\[([\d,-]+)\] interrupted", out, re.M)
        stopped = ",".join(stopped).replace("0-2", "0,1,2").split(",")
        assert sorted(stopped) == ["0", "1", "2"], out
        assert "Forwarding signal" not in out, out


def test_stopped_rank():
    """The third Ctrl-C ends a job in which a rank does not answer."""
    with tempfile.TemporaryDirectory() as folder:
        mark = os.path.join(folder, "mark")
        p = start()
        p.stdin.write(f"@1 os.execute 'touch {mark}; kill -STOP $PPID'\n")
        p.stdin.flush()
        wait_for(mark)
        for _ in range(3):
            p.send_signal(signal.SIGINT)
            time.sleep(0.3)
        out, _ = p.communicate("1\n", timeout=ranks.LIMIT)
    expect(out, "Ctrl-C once more ends the job", "the job has ended with status")
    assert p.returncode != 0


def test_interrupted_backward():
    """Ctrl-C in a backward; the next one averages as before."""
    with tempfile.TemporaryDirectory() as folder:
        mark = os.path.join(folder, "mark")
        p = start()
        p.stdin.write(
            "net, stuck = nacre.nn.Linear(2, 2), true\n"
            "ddp = nacre.nn.parallel.DistributedDataParallel(net)\n"
            "_ = net.weight:register_hook(function() if stuck then "
            f"io.open('{mark}', 'w'):close() end while stuck do end end)\n"
            "ddp(nacre.ones(1, 2)):sum():backward()\n")
        out = interrupt(
            p, mark, "stuck = false; net:zero_grad()\n"
            "ddp(nacre.full({1, 2}, rank * 1.0)):sum():backward()\n"
            "net.weight.grad:sum():item()\n")
        expect(out, r"\] interrupted", r"\[0-2\] 4\.0")


def test_end():
    """The job ends with the session, or is reported."""
    assert "[0-2]" not in session(":quit\n")
    out = session("os.execute 'true'\n@1 os.exit(3)\n", status=1)
    expect(out, "the job has ended with status")
    out = session("@1 os.execute 'kill -9 $PPID'\n", status=1)
    expect(out, "the job has ended with status")
    out = session("@1 os.exit(0)\n1\n", status=1)
    expect(out, r"rank 1 \(\S+\) has ended", "the job has ended with status 1")
    assert "ended with" not in session("os.exit(0)\n")


def test_killed_prompt():
    """Ranks in a loop end with the prompt: they hold its output open."""
    for number in signal.SIGHUP, signal.SIGKILL:
        with tempfile.TemporaryDirectory() as folder:
            mark = os.path.join(folder, "mark")
            p = start()
            p.stdin.write(f"io.open('{mark}', 'w'):close() while true do end\n")
            p.stdin.flush()
            wait_for(mark)
            p.send_signal(number)
            p.communicate(timeout=10)


def test_no_job():
    p = subprocess.run([NACRE, "--launch", "false", "-E"], check=False,
                       stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       timeout=ranks.LIMIT)
    assert p.returncode != 0
    expect(p.stderr, "the job did not start: false")


if __name__ == "__main__":
    sys.exit(ranks.run_tests(MPI, globals()))
