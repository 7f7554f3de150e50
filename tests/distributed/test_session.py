#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One prompt for several ranks: lines, errors and Ctrl-C, through pipes.

    test_session.py MPI FOLDER NACRE"""
import os
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


def session(text, launch=None):
    """What a session of these lines prints."""
    p = start(launch=launch)
    out, _ = p.communicate(text, timeout=ranks.LIMIT)
    assert p.returncode == 0, (p.returncode, out)
    return out


def interrupt(p, mark, rest):
    """Ctrl-C when the file `mark' is there; what the session prints."""
    p.stdin.flush()
    limit = time.monotonic() + ranks.LIMIT
    while not os.path.exists(mark) and time.monotonic() < limit:
        time.sleep(0.05)
    time.sleep(0.2)     # the other ranks come to where they wait
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


def test_ranks():
    expect(session("@1-2 for i = 1, 2 do\n"
                   "print(i) end\n"
                   "@3 rank\n"
                   "@2-1 rank\n"
                   "@1\n"),
           r"\[1,2\]\n1\n2\n", "there is no rank 3: they are 0 to 2",
           "'2-1' is neither a rank nor a range", "@ needs ranks and a line")


def test_completion():
    """The prompt knows the names of rank 0, and dist."""
    ask = (":local local c = require 'nacre.completion'.candidates('%s', '')[1]"
           " print(c.word or c[1] or c)\n")
    out = session("my_tensor = 1\n" + ask % "my_t" + ask % "dist.all_red")
    expect(out, r"\nmy_tensor\n", r"\nall_reduce\(\n")


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
    p = start()
    p.stdin.write("@0 g = dist.new_group()\n")
    p.stdin.flush()
    time.sleep(2)
    p.send_signal(signal.SIGINT)
    out, _ = p.communicate("dist.all_reduce(nacre.ones(2))[1]\n",
                           timeout=ranks.LIMIT)
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
    out = session("os.execute 'true'\n@1 os.exit(3)\n")
    expect(out, "the job has ended with status")
    out = session("@1 os.exit(0)\n1\n")
    expect(out, r"rank 1 \(\S+\) has ended", "the job has ended with status 1")
    assert "ended with" not in session("os.exit(0)\n")


def test_killed_prompt():
    """Ranks in a loop end with the prompt: they hold its output open."""
    for number in signal.SIGHUP, signal.SIGKILL:
        p = start()
        p.stdin.write("while true do end\n")
        p.stdin.flush()
        time.sleep(1.5)
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
