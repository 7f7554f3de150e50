# SPDX-License-Identifier: MIT
"""Fused functions and kernels on a device where the compiler is missing, too
old, or fails, and where the cache on disk cannot be written or is damaged: the
results are right, and the words say what is wrong.

test_nvrtc.py NACRE FAKENVRTC SOURCES
"""
import glob
import os
import resource
import signal
import subprocess
import sys
import tempfile

FUSED = """
local machine = require "nacre.machine"
local f = nacre.fuse(function(a, b) return (a * b + 1):tanh(), a - b end)
local a, b = nacre.arange(1000):float(), nacre.ones(1000) * 2
for _ = 1, 3 do
  local y, z = f(a:cuda(), b:cuda())
  assert(y:cpu():allclose((a * 2 + 1):tanh()))
  assert(z:cpu():equal(a - 2))
end
print("compiled", machine.figure "fused_compiled", "cached",
      machine.figure "fused_cached", "failed", machine.figure "fused_failed",
      "launched", machine.figure "fused")
"""
RAW = """
print(pcall(nacre.cuda.kernel, "__global__ void f(int *x) { x = y; }", "f"))
"""


def small_files():
    """The disk is full after 8 KiB of a file."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))


class Check:
    def __init__(self, nacre, fake, sources):
        self.nacre, self.fake, self.sources = nacre, fake, sources

    def run(self, cache, nvrtc, script=FUSED, before=None, **env):
        everything = {**os.environ, "NACRE_CUDA": "emulated",
                      "NACRE_FUSE": "wait", "XDG_CACHE_HOME": cache, **env}
        everything.pop("NACRE_NVRTC", None)
        if nvrtc is not None:
            everything["NACRE_NVRTC"] = nvrtc
        r = subprocess.run([self.nacre, "-E", "-q", "-i", "-e", script],
                           env=everything, input=":doctor\n", check=False,
                           capture_output=True, text=True, preexec_fn=before)
        said = r.stdout + r.stderr
        assert r.returncode == 0, said
        return said

    def has(self, said, *parts):
        for part in parts:
            assert part in said, f"{part!r} is not in\n{said}"

    def counts(self, said, compiled, cached, failed, launched):
        self.has(said.expandtabs(1), f"compiled {compiled} cached {cached} "
                 f"failed {failed} launched {launched}")

    def no_compiler(self, cache):
        for nvrtc, words in ((None, "the emulated device has no compiler"),
                             ("none", "NVRTC is turned off"),
                             ("/no/such/file", "is missing (/no/such/file)")):
            said = self.run(cache, nvrtc)
            self.has(said, words)
            self.counts(said, 0, 0, 0, 0)
            self.has(self.run(cache, nvrtc, RAW), words)

    def bad_compiler(self, cache):
        for mode in ("old", "dies"):
            said = self.run(cache, self.fake, FAKE_NVRTC=mode)
            self.has(said, "NVRTC is missing")
            self.counts(said, 0, 0, 0, 0)
        said = self.run(cache, self.fake, FAKE_NVRTC="refuses")
        self.counts(said, 0, 0, 1, 0)
        self.has(said, "NVRTC 13.0", "runs unfused", 'identifier "x"')
        said = self.run(cache, self.fake, FAKE_NVRTC="fails")
        self.counts(said, 0, 0, 1, 0)
        self.has(said, "NVRTC_ERROR_INTERNAL_ERROR")
        said = self.run(cache, self.fake, RAW, FAKE_NVRTC="refuses")
        self.has(said, 'line 3: identifier "x" is undefined')

    def code_that_does_not_load(self, cache):
        for cached in (0, 1):
            said = self.run(cache, self.fake, FAKE_NVRTC="garbage")
            self.counts(said, 1 - cached, cached, 1, 0)
            self.has(said, "the driver does not load the code")

    def no_room(self, cache):
        """A cache that is a file, and a full disk."""
        path = os.path.join(cache, "file")
        with open(path, "w", encoding="ascii"):
            pass
        for where, before in ((path, None), ("/proc/nowhere", None),
                              (cache, small_files)):
            said = self.run(where, self.fake, before=before,
                            FAKE_NVRTC="garbage")
            self.counts(said, 1, 0, 1, 0)
        assert not glob.glob(cache + "/nacre/kernels/*"), "nothing is left"

    def damaged(self, cache):
        """Code on disk is used, unless a byte of it differs."""
        self.counts(self.run(cache, self.sources), 1, 0, 0, 3)
        path, = glob.glob(cache + "/nacre/kernels/*")
        self.counts(self.run(cache, self.sources), 0, 1, 0, 3)
        with open(path, "rb") as f:
            whole = f.read()
        for at in (0, 20, 100, len(whole) - 1):
            with open(path, "wb") as f:
                f.write(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:])
            self.counts(self.run(cache, self.sources), 1, 0, 0, 3)
        for size in (0, 10, 48, len(whole) - 1):
            with open(path, "wb") as f:
                f.write(whole[:size])
            self.counts(self.run(cache, self.sources), 1, 0, 0, 3)
        with open(path, "rb") as f:
            assert len(f.read()) == len(whole), "it is whole again"

    def writable(self, cache):
        """Code that others may write is not run, and none is kept where they
        may; what is written is the user's alone."""
        was = os.umask(0)
        self.counts(self.run(cache, self.sources), 1, 0, 0, 3)
        os.umask(was)
        folder = cache + "/nacre/kernels"
        path, = glob.glob(folder + "/*")
        assert os.stat(path).st_mode & 0o777 == 0o600, oct(os.stat(path).st_mode)
        for bits in 0o620, 0o602:
            os.chmod(path, bits)
            self.counts(self.run(cache, self.sources), 1, 0, 0, 3)
            assert os.stat(path).st_mode & 0o777 == 0o600
        self.counts(self.run(cache, self.sources), 0, 1, 0, 3)
        for place in folder, cache + "/nacre":
            for bits in 0o770, 0o707:
                os.chmod(place, bits)
                self.counts(self.run(cache, self.sources), 1, 0, 0, 3)
                os.chmod(place, 0o700)
        self.counts(self.run(cache, self.sources), 0, 1, 0, 3)

    def limited(self, cache):
        """What was not used for the longest time is removed."""
        folder = cache + "/nacre/kernels"
        os.makedirs(folder)
        for i in range(4):
            path = f"{folder}/{i:032x}"
            with open(path, "wb") as f:
                f.write(bytes(300 << 10))
            os.utime(path, (1e9 + i, 1e9 + i))
        with open(folder + "/notes", "wb") as f:
            f.write(bytes(5 << 20))     # of somebody else
        for cached in (0, 1):
            said = self.run(cache, self.sources, NACRE_KERNEL_CACHE="1")
            self.counts(said, 1 - cached, cached, 0, 3)
        left = {os.path.basename(p) for p in glob.glob(folder + "/*")}
        old = {name for name in left if name.startswith("0" * 16)}
        assert len(left) == len(old) + 2, "the new one, and notes, are there"
        assert old and max(old) == f"{3:032x}" and len(old) < 3, left
        for path in glob.glob(folder + "/*"):
            os.remove(path)
        said = self.run(cache, self.sources, NACRE_KERNEL_CACHE="0")
        self.counts(said, 1, 0, 0, 3)
        assert not os.listdir(folder), "nothing is kept"


def main(*words):
    check = Check(*words)
    for f in (check.no_compiler, check.bad_compiler,
              check.code_that_does_not_load, check.no_room, check.damaged,
              check.writable, check.limited):
        with tempfile.TemporaryDirectory() as cache:
            f(cache)
    print("nvrtc: passed")


if __name__ == "__main__":
    main(*sys.argv[1:])
