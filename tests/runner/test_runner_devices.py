#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_runner_devices.py - nacre --test on several devices: one text for all,
# what differs between them, jobs that share a GPU.

import os
import subprocess
import time
import unittest

import runner_case
from runner_case import Case


class Devices(Case):
    """On the CPU and a CUDA device, the real one or that of NACRE_CUDA."""
    cuda = os.environ.get("NACRE_CUDA")

    @classmethod
    def setUpClass(cls):
        p = subprocess.run([runner_case.NACRE, "-p", "nacre.cuda.is_available()"],
                           stdout=subprocess.PIPE, encoding="utf-8")
        if p.stdout != "true\n":
            raise unittest.SkipTest("cuda not available")

    ONES = "> a = nacre.ones(16,16)\n"
    OFF = "> if nacre.get_default_device() ~= 'cpu' then a[{3,4}] = 1.5 end\n"

    def test_one_text_for_all(self):
        text = self.ONES + "> a\nfloat32[16x16] cpu  1.0 KiB  all 1\n"
        self.assertIn("2 passed", self.passes(text))
        self.assertIn("2 passed", self.passes(text.replace("cpu", "cuda:0")))
        self.assertIn("1 passed", self.passes(text, "--device", "cuda"))
        self.assertIn("1 passed", self.passes("--: devices cpu\n" + text))
        self.assertIn("1 passed", self.passes(text, "--device", "cpu"))
        self.passes("--: devices cpu cuda\n--: only cuda {\n"
                    "> tostring(nacre.ones(2).device)\n\"cuda:0\"\n--: }\n")

    def test_one_device_differs(self):
        text = self.ONES + self.OFF + "> a:mul(2):sum():item()\n512.0\n"
        out = self.fails(text)
        self.assertIn("1 failed, 1 passed", out)
        self.assertRegex(out, "FAIL a.nacre:4  cuda:0 ")
        for line in ("cpu gives 512.0, within tolerance: only cuda:0 differs",
                     "tensor a:mul(2): 1 of 256 elements outside, worst at "
                     "[3,4]: 3 / 2 (4194304 ulp)",
                     "rerun   nacre --test a.nacre:4 --device cuda:0 --seed 0"):
            self.assertIn("\n       " + line + "\n", out)
        out = self.fails(text, "--update", "--ok")
        self.assertIn("refused: cpu gives 512.0, cuda:0 gives 513.0", out)
        self.assertEqual(self.read("a.nacre"), text)

    def test_devices_that_differ_a_little(self):
        """A tolerance is noted where --within allows it."""
        off = self.OFF.replace("1.5", "1 + 2^-12")
        text = (self.ONES + off + "> a:sum():item() / 3\n> a:sum() / 3\n"
                "> a:sum():item()\n")
        self.file("a.nacre", text)
        self.assertEqual(self.nacre("--update", "--ok")[0], 1)
        self.assertEqual(self.read("a.nacre"), text)
        out = self.nacre("--update", "--ok", "--within", "1e-5")[1]
        self.assertIn("or within the #~ of 3 lines", out)
        self.assertRegex(self.read("a.nacre"), r"""
85\.33+  #~ rtol=1e-6
> a:sum\(\) / 3
85\.3333  float32\[\] cpu  #~ atol=1e-4
> a:sum\(\):item\(\)
256\.0  #~ rtol=1e-6
""")
        self.assertEqual(self.nacre()[0], 0)
        text = text.replace("2^-12", "2^-3")
        self.file("a.nacre", text)
        self.assertEqual(self.nacre("--update", "--within", "1e-5")[0], 1)
        self.assertEqual(self.read("a.nacre"), text)

    def test_jobs_on_a_device(self):
        for name in "abc":
            self.file(name + ".nacre", "--: devices cuda\n"
                      "> nacre.ones(1):sum():item()\n1.0\n"
                      "> os.execute 'sleep 0.5';\n")
        begin = time.time()
        self.assertEqual(self.nacre("-j4")[0], 0)
        self.assertGreater(time.time() - begin, 1.5)
        self.assertEqual(self.nacre("-j4", "--gpu-jobs", "3")[0], 0)

    def test_units(self):
        self.assertIn("2 passed", self.passes(
            "test('x', function(t) t.eq(tostring(nacre.ones(1).device), "
            "t.device) t.close(nacre.ones(3), nacre.ones(3)) end)",
            name="u_test.lua"))

    def test_a_session_becomes_a_test(self):
        out = self.typed(":seed 1\nnacre.randn(64, 32):mm(nacre.randn("
                         "32, 16)):sum():item()\n:save --test t.nacre\n")
        self.assertIn("t.nacre: 2 inputs, replayed twice on cpu and cuda:0, "
                      "identical within written digits", out)
        # what devices round differently is in the test, and passes
        self.assertEqual(self.nacre("t.nacre")[0], 0, self.read("t.nacre"))


if __name__ == "__main__":
    runner_case.main()
