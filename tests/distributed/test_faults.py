#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What happens when something goes wrong on one of several ranks: the text
names the rank, all ranks end, and none hangs.

    test_faults.py MPI FOLDER NACRE"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

import ranks

MPI, FOLDER, NACRE = sys.argv[1:4]
START = "local dist = nacre.distributed; dist.init_process_group(%s) " \
        "local rank = dist.get_rank() "


def run(code, n=3, options="", mpi=MPI, plugin=None, **more):
    """(status, output) of the code on n ranks."""
    if plugin is not None:
        more["NACRE_MPI"] = plugin
    done = ranks.run(mpi, n, FOLDER, [NACRE, "-e", START % options + code],
                     **more)
    return done.returncode, done.stdout + done.stderr


def expect(text, *words):
    for word in words:
        assert re.search(word, text), f"no {word!r} in\n{text}"


def fails(code, *words, **how):
    status, text = run(code, **how)
    assert status != 0, text
    expect(text, *words)
    return text


def test_lua_error():
    """An error on one rank ends those that wait for it."""
    fails("if rank == 1 then error 'bad luck' end dist.barrier()",
          r"\[rank 1 of 3, [^]]+\] .*bad luck")


def test_output():
    """Lines with the rank before them, or of rank 0 only; none is lost, also
    where an error ends the job."""
    code = "print('a', rank) io.write('b', rank, '\\nc') if rank == 1 then "
    status, text = run(code + "os.exit(0) end", options="{output = 'prefix'}")
    lines = [line for line in text.splitlines() if line.startswith("[rank")]
    assert status == 0 and sorted(lines) == sorted(
        f"[rank {r}] {what}" for r in range(3)
        for what in (f"a\t{r}", f"b{r}", "c")), text
    fails(code + "error 'bad' end dist.barrier()", r"\[rank 1\] a\t1",
          r"\[rank 1\] c", NACRE_DISTRIBUTED_OUTPUT="prefix")
    status, text = run(code + "end", options="{output = 'rank0'}")
    assert status == 0 and text == "a\t0\nb0\nc", text
    fails("", "output must be one of all|prefix|rank0, not 'what'",
          options="{output = 'what'}")


def test_early_end():
    fails("if rank == 2 then os.exit(0) end dist.barrier()",
          r"rank 2 \(\S+\) has ended, and barrier #1 waits for it")


def test_exit_status():
    fails("if rank == 1 then os.exit(3) end dist.barrier()")


def test_good_end():
    """Without destroy_process_group, and one rank late."""
    status, text = run("dist.barrier() if rank == 0 then "
                       "local t = os.clock() while os.clock() - t < 0.3 do end "
                       "end print('end ' .. rank)")
    assert status == 0, text
    expect(text, "end 0", "end 1", "end 2")


def test_kill():
    fails("if rank == 1 then io.open('/proc/self/stat'):close() "
          "os.execute('kill -9 $PPID') end dist.barrier()")


def test_mismatch():
    code = "dist.all_reduce(nacre.ones(rank == 1 and 5 or 3))"
    text = fails(code, "the ranks ask for different things: "
                 r"rank 0,2: #1 all_reduce sum float32\[3\]; "
                 r"rank 1: #1 all_reduce sum float32\[5\]")
    assert text.count("ask for different things") >= 1
    fails("if rank == 0 then dist.barrier() "
          "else dist.broadcast(nacre.ones(2, 3), 1) end",
          r"rank 0: #1 barrier; "
          r"rank 1,2: #1 broadcast float32\[2x3\], rank 1")


def test_mismatch_is_survived():
    """The group goes on after the error, which is no failure of a process."""
    status, text = run(
        "local ok, e = pcall(dist.all_reduce, nacre.ones(1 + rank % 2)) "
        "assert(not ok and e.code == 'EVALUE' and e.op == 'all_reduce') "
        "assert(dist.all_reduce(nacre.ones(2))[1] == 3)")
    assert status == 0, text


def test_timeout():
    code = "if rank == 2 then local t = os.time() " \
           "while os.time() - t < 5 do end end " \
           "local ok, e = pcall(dist.barrier) " \
           "assert(not ok and e.code == 'EPEER') " \
           "if rank < 2 then print(rank, e.rank, e.host, e.message) end " \
           "error(e)"
    begin = time.monotonic()
    fails(code, r"[01]\t2\t\S+\tbarrier #1: no answer from rank 2 \(\S+\) in 1 s",
          options="{timeout = 1}")
    assert time.monotonic() - begin < ranks.LIMIT


def test_late_rank():
    """Rank 2 comes to the barrier when the others have said that it is
    late."""
    with tempfile.TemporaryDirectory() as folder:
        said = os.path.join(folder, "said")
        status, text = ranks.run_until(
            "waits since", said, MPI, 3, FOLDER,
            [NACRE, "-e", START % "" + "if rank == 2 then "
             f"repeat local f = io.open('{said}') until f end dist.barrier()"],
            NACRE_DISTRIBUTED_WARN="1")
    assert status == 0, text
    expect(text, r"\(barrier #1 waits since 1 s for rank 2 \(\S+\)\)")
    assert text.count("waits since") == 1, text


def test_broken_group():
    """A group that was left in the middle cannot go on; renew makes a new
    world, and messages of the old one do not arrive there."""
    status, text = run(
        "local g = dist.new_group() "
        "if rank < 2 then "
        "  local ok, e = pcall(dist.all_reduce, nacre.ones(3), {group = g}) "
        "  assert(not ok and e.code == 'EPEER') "
        "  ok, e = pcall(dist.barrier, g) "
        "  assert(not ok and e.message:find 'left in the middle') "
        "end "
        "dist.renew() "
        "assert(dist.all_reduce(nacre.ones(2))[1] == 3) "
        "dist.barrier() print('went on')", options="{timeout = 1}")
    assert status == 0, text
    assert text.count("went on") == 3, text


def test_messages():
    fails("if rank == 0 then dist.send(nacre.ones(5), 1) "
          "elseif rank == 1 then dist.recv(nacre.ones(3), 0) end",
          "recv: (another rank sent more elements than fit here|rank 0 "
          "sent 5 elements, 3 are expected here)", n=2)
    fails("if rank == 0 then dist.send(nacre.ones(3), 1) "
          "elseif rank == 1 then dist.recv(nacre.ones(5), 0) end",
          "recv: rank 0 sent 3 elements, 5 are expected here", n=2)


def test_failed_work():
    """A second wait fails, too."""
    status, text = run(
        "if rank == 0 then dist.send(nacre.ones(3), 1) else "
        "local w = dist.irecv(nacre.ones(5), 0) "
        "assert(not pcall(w.wait, w)) local ok, e = pcall(w.wait, w) "
        "assert(not ok and e.message == 'the operation has failed') "
        "assert(tostring(w):find 'failed') end", n=2)
    assert status == 0, text


def test_works_of_a_destroyed_group():
    """What is under way goes on."""
    status, text = run(
        "local g, x = dist.new_group(), nacre.ones(100000) "
        "local w = dist.all_reduce(x, {group = g, async_op = true}) "
        "local lost = dist.irecv(nacre.ones(1), (rank + 1) % 3, g) "
        "dist.destroy_process_group(g) w:wait() assert(x[1] == 3) "
        "assert(not pcall(lost.wait, lost, 0.1)) lost = nil collectgarbage() "
        "dist.barrier()")
    assert status == 0, text


def test_works_of_an_old_world():
    """They fail after renew, and the thread goes on in the new world."""
    status, text = run(
        "local w = dist.irecv(nacre.ones(1), (rank + 1) % 3) "
        "if rank < 2 then assert(not pcall(dist.barrier)) end dist.renew() "
        "local ok, e = pcall(w.wait, w) "
        "assert(not ok and e.message:find 'left in the middle') "
        "assert(dist.all_reduce(nacre.ones(2))[1] == 3)",
        options="{timeout = 1}")
    assert status == 0, text


def test_groups():
    """A rank alone at new_group or renew is told; another operation is
    another operation."""
    text = fails("if rank == 0 then dist.new_group() else dist.barrier() end")
    expect(text, "rank 0: #1 split; rank 1,2: #1 barrier")
    fails("if rank == 0 then dist.new_group() end",
          r"rank [12] \(\S+\) has ended, and split #1 waits for it")
    fails("if rank == 0 then dist.split(0) elseif rank == 1 then "
          "os.execute 'sleep 4' end",
          r"split #1: no answer from|rank 2 \(\S+\) has ended",
          options="{timeout = 1}")
    fails("if rank == 0 then dist.renew() end",
          r"renew: rank [12] \(\S+\) has ended")


def test_launcher_of_another():
    """Under the launcher of another MPI each process would be rank 0 of 1."""
    other = "mpich" if MPI == "openmpi" else "openmpi"
    if ranks.launcher(other, 2) is None or ranks.tool("mpicc", other) is None:
        return
    fails("", r"the launcher started 2 processes \(\w+\), but .* sees one: the "
          "launcher belongs to another MPI",
          r"use the launcher of that MPI, or nacre --build-mpi with the mpicc "
          "of the launcher's MPI", n=2, mpi=other,
          plugin=os.path.join(FOLDER, f"libnacre_{MPI}.so"))


def test_torchrun():
    """Under torchrun, too."""
    if MPI != "openmpi":
        return
    env = {**ranks.environment(MPI, FOLDER), "TORCHELASTIC_RUN_ID": "none",
           "WORLD_SIZE": "2", "OMPI_MCA_orte_abort_timeout": "1"}
    done = subprocess.run([NACRE, "-e", START % ""], capture_output=True,
                          text=True, check=False, env=env)
    expect(done.stderr, r"the launcher started 2 processes \(WORLD_SIZE\), but")


def test_plugin():
    fails("", "no MPI plug-in was found",
          "nacre --build-mpi builds one with the mpicc of this machine", n=2,
          plugin="", HOME="/nowhere", XDG_DATA_HOME="/nowhere")
    fails("", "/no/such.so is missing", n=2, plugin="/no/such.so")
    fails("", "NACRE_MPI=off turns MPI off", n=2, plugin="off")
    fails("", "NACRE_MPI is 'what', not openmpi, mpich, off or the path", n=2,
          plugin="what")


def test_plugin_of_another_build():
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "source")
        for name in ("mpi", "core"):
            shutil.copytree(ranks.ROOT / name, os.path.join(source, name),
                            ignore=lambda _, names: {
                                n for n in names if not n.endswith((".c", ".h"))})
        header = pathlib.Path(source, "core", "transport.h")
        text = re.sub(r"(#define NC_TRANSPORT_ABI) \d+", r"\1 9999",
                      header.read_text())
        assert "ABI 9999" in text
        header.write_text(text)
        path = os.path.join(folder, "libnacre_other.so")
        subprocess.run([ranks.tool("mpicc", MPI), "-shared", "-fPIC", "-w",
                        "-I" + source, "-o", path,
                        *map(str, pathlib.Path(source, "mpi").glob("*.c")),
                        "-lpthread"], check=True)
        fails("", "the MPI plug-in was built for another version than",
              "nacre --build-mpi builds it again", n=2, plugin=path)


def test_builds_beside_each_other():
    with tempfile.TemporaryDirectory() as folder:
        builds = [subprocess.Popen(
            [NACRE, f"--build-mpi={folder}"], stdout=subprocess.DEVNULL,
            env={**os.environ, "MPICC": ranks.tool("mpicc", MPI)})
            for _ in range(4)]
        assert [build.wait() for build in builds] == [0] * 4
        assert os.listdir(folder) == [f"libnacre_{MPI}.so"]


if __name__ == "__main__":
    sys.exit(ranks.run_tests(MPI, globals()))
