#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What happens when something goes wrong while the devices of several ranks work
together (NCCL, emulated): the host's wait ends, and says why.

    test_device_faults.py MPI FOLDER NACRE"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import ranks

MPI, FOLDER, NACRE = sys.argv[1:4]
START = "local dist = nacre.distributed; dist.init_process_group(%s) " \
        "local rank = dist.get_rank() " \
        "nacre.set_default_device('cuda:' .. rank) " \
        "dist.all_reduce(nacre.ones(1)) " \
        "nacre.cuda.set_device(rank) assert(dist.info().gpu == 'nccl') "
BLIND = "{check = false, timeout = 1}"
WENT_ON = "dist.renew() assert(dist.all_reduce(nacre.ones(2))[1] == %d) " \
          "dist.barrier() print('went on')"


def run(code, n=2, options="", emulation="", **more):
    """(status, output) of the code on n ranks, each with a device."""
    done = ranks.run(MPI, n, FOLDER, [NACRE, "-e", START % options + code],
                     NACRE_CUDA="emulated",
                     NACRE_EMULATION=f"devices={n}{emulation}", **more)
    return done.returncode, done.stdout + done.stderr


def expect(code, *words, status=0, **how):
    got, text = run(code, **how)
    assert (got == 0) == (status == 0), text
    for word in words:
        assert re.search(word, text), f"no {word!r} in\n{text}"
    return text


def test_mismatch():
    """It is found before NCCL is called, and the group goes on."""
    expect("local ok, e = pcall(dist.all_reduce, nacre.ones(2 + rank)) "
           "assert(not ok and e.code == 'EVALUE') print(e.message) "
           "assert(dist.all_reduce(nacre.ones(2))[1] == 2)",
           r"rank 0: #2 all_reduce sum float32\[2\] on a GPU; "
           r"rank 1: #2 all_reduce sum float32\[3\] on a GPU")


def test_other_places():
    """One rank has its tensor on the host, or on another device."""
    expect("local d = rank == 0 and 'cuda:0' or 'cpu' "
           "local x = nacre.ones(2, {device = d}) "
           "local ok, e = pcall(dist.all_reduce, x) print(e.message) "
           "d = 'cuda:' .. (rank == 0 and 0 or 0) "
           "ok, e = pcall(dist.all_reduce, nacre.ones(2, {device = d})) "
           "print(e.message)",
           r"float32\[2\] on a GPU; rank 1: #2 all_reduce sum float32\[2\]\n",
           r"on a GPU; rank 1: #3 \S+ \S+ \S+ on a GPU that is new here")


def test_no_answer():
    """A rank does not come: the wait for a value ends, and not before."""
    begin = time.monotonic()
    text = expect(
        "if rank == 0 then local x = nacre.ones(3) dist.all_reduce(x) "
        "local ok, e = pcall(x.item, x:sum()) "
        "assert(not ok and e.code == 'EPEER') print(e.message) "
        "ok, e = pcall(dist.all_reduce, x) print(e.message) end "
        + WENT_ON % 2, options=BLIND, emulation=",streams=lazy")
    assert "all_reduce #2: no answer from rank 1" in text, text
    assert "left in the middle of an operation" in text, text
    assert text.count("went on") == 2, text
    assert time.monotonic() - begin < ranks.LIMIT


def test_work_of_a_lost_group():
    """Its wait fails, also after renew; that of an earlier one does not."""
    text = expect(
        "local y = nacre.ones(1) "
        "local good = dist.all_reduce(y, {async_op = true}) "
        "nacre.cuda.synchronize() "
        "local x, w = nacre.ones(3) "
        "if rank == 0 then w = dist.all_reduce(x, {async_op = true}) "
        "local ok, e = pcall(w.wait, w, 1) print(e.message) end "
        + WENT_ON % 2 + " if rank == 0 then "
        "local ok, e = pcall(w.wait, w) print(e.message) end "
        "assert(good:wait()[1] == 2)", options=BLIND)
    assert "no answer from" in text and "left in the middle" in text, text


def test_interrupt():
    """Ctrl-C ends the wait for the device, which would not end."""
    begin = time.monotonic()
    expect("if rank == 0 then local x = nacre.ones(3) dist.all_reduce(x) "
           "os.execute('(sleep 1; kill -INT $PPID) &') x:sum():item() end "
           "os.execute 'sleep 2' dist.barrier()",
           "interrupted: cuda:0 was waiting for other ranks", status=1,
           options="{check = false}")
    assert time.monotonic() - begin < 100


def test_early_end():
    expect("if rank == 1 then os.exit(0) end local x = nacre.ones(3) "
           "dist.all_reduce(x) x:sum():item()",
           r"rank 1 \(\S+\) has ended, and all_reduce #2 waits for it",
           status=1, options="{check = false}")


def test_lua_error():
    begin = time.monotonic()
    expect("if rank == 1 then error 'bad luck' end local x = nacre.ones(3) "
           "dist.all_reduce(x) x:sum():item()",
           r"\[rank 1 of 2, [^]]+\] .*bad luck", status=1,
           options="{check = false}")
    assert time.monotonic() - begin < 100


def test_groups():
    """A group of its own, destroyed; one of a single rank copies."""
    expect("local g = dist.new_group() local x = nacre.ones(3) "
           "dist.all_reduce(x, {group = g}) dist.destroy_process_group(g) "
           "assert(x[1] == 2) local alone = dist.split(rank) "
           "local y = dist.all_gather(x, {group = alone}) "
           "assert(y.is_cuda and y[1][3] == 2) dist.barrier()")


def test_parts():
    """Groups made after the first operation are connected when they are made:
    each with its ranks in the order of the keys, on one rank not at all."""
    expect("local g = dist.split(rank % 2, -rank) "
           "local all = dist.all_gather(nacre.tensor {rank}, {group = g}) "
           "assert(all[1][1] == rank % 2 + 2 and all[2][1] == rank % 2) "
           "local part = dist.new_group {0, 1, 2} "
           "if rank == 3 then return end "
           "local ok, e = pcall(dist.all_reduce, nacre.ones(2 + rank), "
           "{group = part}) print(e.message) "
           "assert(dist.all_reduce(nacre.ones(2), {group = part})[1] == 3)",
           r"rank 0: #1 all_reduce sum float32\[2\] on a GPU;", n=4,
           emulation=",streams=lazy", NACRE_NCCL_ROOTS="3")


def test_turned_off():
    expect("", "", status=1, NACRE_NCCL="none")
    done = ranks.run(
        MPI, 2, FOLDER,
        [NACRE, "-e", "local dist = nacre.distributed dist.init_process_group() "
         "local x = nacre.ones(2, {device = 'cuda:' .. dist.get_rank()}) "
         "assert(dist.all_reduce(x)[2] == 2) "
         "nacre.cuda.set_device(dist.get_rank()) print(dist.info().gpu)"],
        NACRE_CUDA="emulated", NACRE_EMULATION="devices=2", NACRE_NCCL="none")
    assert "rank 0 of the group has no NCCL" in done.stdout, done


def session(lines, mark=None, rest=""):
    """What a prompt for two ranks, each with a device, prints. Ctrl-C when the
    file `mark' is there, then the rest."""
    env = ranks.environment(MPI, FOLDER, NACRE_CUDA="emulated",
                            NACRE_EMULATION="devices=2,streams=lazy",
                            NACRE_DISTRIBUTED_CHECK="0")
    with subprocess.Popen(
            [NACRE, "--launch", " ".join(ranks.launcher(MPI, 2)),
             "--no-history", "-E"], env=env, stdin=subprocess.PIPE, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as p:
        p.stdin.write("x = nacre.ones(3, {device = 'cuda:' .. rank})\n" + lines)
        if mark:
            p.stdin.flush()
            limit = time.monotonic() + ranks.LIMIT
            while not os.path.exists(mark) and time.monotonic() < limit:
                time.sleep(0.05)
            time.sleep(0.2)
            p.send_signal(signal.SIGINT)
        out, _ = p.communicate(rest, timeout=ranks.LIMIT)
    return out


def test_session():
    """A rank fails while the device of the other waits for it: the next line is
    right, by NCCL."""
    text = session(
        "dist.all_reduce(x)[1]\n"
        "if rank == 1 then error 'bad luck' end dist.all_reduce(x) x:sum():item()\n"
        "x:fill_(1) dist.all_reduce(x)[1]\n"
        "nacre.cuda.set_device(rank) dist.info().gpu\n")
    for word in (r"\[0\]\s+error: .*rank 1 \(\S+\) failed while all_reduce #\d "
                 "waited for it: bad luck", r"\[1\] error: bad luck"):
        assert re.search(word, text), f"no {word!r} in\n{text}"
    assert text.count("[0,1] 2.0") == 2 and '[0,1] "nccl"' in text, text


def test_session_interrupt():
    """Ctrl-C, with one rank in a wait for its device and the other in a loop."""
    with tempfile.TemporaryDirectory() as folder:
        mark = os.path.join(folder, "mark")
        text = session(
            f"if rank == 1 then io.open('{mark}', 'w'):close() while true do end "
            "end dist.all_reduce(x) x:sum():item()\n", mark,
            "x:fill_(1) dist.all_reduce(x)[1]\n")
    # after times that may differ
    assert re.search(r"\[(0,1|0)\] interrupted", text), text
    assert re.search(r"\[(0,1|1)\] interrupted", text), text
    assert "[0,1] 2.0" in text, text


if __name__ == "__main__":
    sys.exit(ranks.run_tests(MPI, globals()))
