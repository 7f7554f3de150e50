#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_tensor_files.py - nacre FILE..., --ls, --diff and --convert.

import json
import os

import launch
from launch import Program

MAKE = r"""
local a, b = nacre.arange(6):reshape(2, 3):float(), nacre.arange(5)
nacre.save("a.npz", {w = a, b = b})
nacre.save("b.npz", {w = a + 0.5, b = b, c = b})
nacre.save("near.npz", {w = a * 1.001, b = b})
nacre.save("double.npz", {w = a:double(), b = b})
nacre.save("a.npy", a)
nacre.save("large.npy", nacre.tensor{2^53|0, 3})
nacre.save("larger.npy", nacre.tensor{(2^53|0) + 1, 3})
nacre.save("t.csv", a, {header = {"x", "y", "z"}})
nacre.save("nan.npy", nacre.tensor{1, 0/0, 1/0, -2})
nacre.save("escape.safetensors", {["x\27[31m"] = a})
nacre.png("p.png", nacre.zeros(3, 4, 5))
os.execute "mkdir shards"
nacre.save("shards/m-1.safetensors", {a = a, b = b})
nacre.save("shards/m-2.safetensors", {c = b + 1})
local function index(name, text)
  local f <close> = io.open("shards/" .. name, "w")
  f:write(text)
end
index("m.safetensors.index.json", [[
{"metadata": {"total_size": [1, 2.5e3, {"x": null}], "ok": true},
 "weight_map": {"a": "m-1.safetensors", "c": "m-2.safetensors"}}]])
"""


class TensorFiles(Program):
    def setUp(self):
        super().setUp()
        self.good("-e", MAKE)

    def good(self, *args, text=None):
        status, out, err = self.run_(*args, text=text)
        self.assertEqual((status, err), (0, ""), args)
        return out

    def bad(self, status, what, *args):
        got, out, err = self.run_(*args)
        self.assertEqual(got, status, (args, out, err))
        self.assertIn(what, err)

    # ---- --ls

    def test_list(self):
        self.assertEqual(self.good("--ls", "a.npz"), """\
a.npz: 2 tensors, 64 B
  name  dtype    shape  bytes
  b     int64    [5]     40 B
  w     float32  [2x3]   24 B
""")

    def test_list_reads_no_data(self):
        # the data are gone, the headers are there
        size = os.path.getsize(os.path.join(self.home, "a.npy"))
        with open(os.path.join(self.home, "a.npy"), "r+b") as f:
            f.seek(size - 24)
            f.write(b"\xff" * 24)
        self.assertIn("float32  [2x3]", self.good("--ls", "a.npy"))
        os.truncate(os.path.join(self.home, "a.npy"), size - 4)
        self.bad(2, "a.npy: data: float32[2x3] takes 24 bytes, the file has "
                    "20 left", "--ls", "a.npy")

    def test_list_every_format(self):
        out = self.good("--ls", "a.npy", "t.csv", "p.png")
        self.assertIn("t.csv: 1 tensor, 24 B", out)
        self.assertIn("uint8  [3x4x5]", out)

    def test_list_statistics(self):
        rows = json.loads(self.good("--ls", "--stats", "--json", "nan.npy"))
        self.assertEqual(rows[0]["tensors"][0], {
            "name": "", "dtype": "float32", "shape": [4], "bytes": 16,
            "min": -2, "max": None, "mean": None, "nan": 1})
        self.assertRegex(self.good("--ls", "--stats", "a.npz"),
                         r"w +float32 +\[2x3\] +24 B +0 +5 +2\.5 +0\n")

    def test_names_are_escaped(self):
        out = self.good("--ls", "escape.safetensors")
        self.assertNotIn("\33", out)
        self.assertIn(r"x\x1b[31m", out)

    # ---- shards

    def test_shards(self):
        out = self.good("--ls", "--json",
                        "shards/m.safetensors.index.json")
        names = [t["name"] for t in json.loads(out)[0]["tensors"]]
        self.assertEqual(names, ["a", "c"])
        self.assertEqual(self.good("-p", "nacre.load('shards').c"),
                         "int64[5] cpu  40 B\n  1  2  3  4  5\n")
        os.unlink(os.path.join(self.home, "shards",
                               "m.safetensors.index.json"))
        self.assertIn("shards: 3 tensors", self.good("--ls", "shards"))

    def test_empty_index(self):
        self.file("shards/x.index.json", '{"weight_map": {}}')
        self.assertIn("0 tensors", self.good("--ls", "shards/x.index.json"))

    # A long name stands out of its column, which does not get as wide.
    def test_long_name(self):
        header = ('{"%s":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},'
                  '"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
                  % (70000 * "n"))
        with open(os.path.join(self.home, "long.safetensors"), "wb") as f:
            f.write(len(header).to_bytes(8, "little") + header.encode())
        lines = self.good("--ls", "long.safetensors").splitlines()
        self.assertEqual(len(lines), 4)
        self.assertTrue(70000 < len(lines[2]) < 70100, len(lines[2]))
        self.assertLess(len(lines[3]), 300)

    def test_bad_indexes(self):
        for what, text in [
            ('"../a.safetensors" is not the name of a file next to it',
             '{"weight_map": {"a": "../a.safetensors"}}'),
            ('"a" is not in', '{"weight_map": {"a": "m-2.safetensors"}}'),
            ('the name "a" occurs twice', '{"weight_map": {"a": '
             '"m-1.safetensors", "a": "m-1.safetensors"}}'),
            ("No such file", '{"weight_map": {"a": "m-9.safetensors"}}'),
            ("a weight_map", '{"metadata": {}}'),
            ("nothing more", '{"weight_map": {}} x'),
            ("a closing quote", '{"weight_map": {"a'),
            ("less nesting", '{"x": ' + 200 * "["),
        ]:
            self.file("shards/x.index.json", text)
            self.bad(2, what, "--ls", "shards/x.index.json")

    # ---- --diff

    def test_equal(self):
        self.assertEqual(self.good("--diff", "a.npz", "a.npz"),
                         "equal: 2 tensors\n")

    def test_differ(self):
        status, out, err = self.run_("--diff", "a.npz", "b.npz")
        self.assertEqual((status, err), (1, ""))
        self.assertRegex(out, r"w +float32\[2x3\] +6 of 6 +5\.0e-01 at \[1,1\]")
        self.assertIn("only in b.npz", out)
        self.assertIn("2 of 3 tensors differ\n", out)

    def test_tolerances(self):
        self.assertEqual(self.run_("--diff", "near.npz", "a.npz")[0], 1)
        for o in [("--rtol", "0.01"), ("--rtol=0.01",), ("--atol", "0.1")]:
            self.assertIn("1 within rtol",
                          self.good("--diff", *o, "near.npz", "a.npz"))
        # nan and inf are never within a tolerance of a number
        self.good("-e", "nacre.save('n2.npy', nacre.tensor{1, 1, 1/0, -2})"
                        "nacre.save('n3.npy', nacre.tensor{1, 1, 1, -2})")
        for a, b in [("nan", "n2"), ("n2", "nan"), ("n2", "n3"),
                     ("n3", "n2")]:
            self.assertEqual(self.run_("--diff", "--atol", "1e9", "--rtol",
                                       "1e9", a + ".npy", b + ".npy")[0], 1)
        self.good("--diff", "nan.npy", "nan.npy")

    def test_dtypes_differ(self):
        status, out, _ = self.run_("--diff", "--rtol", "1", "a.npz",
                                   "double.npz")
        self.assertEqual(status, 1)
        self.assertIn("float32 and float64", out)

    def test_large_integers_differ(self):
        status, out, _ = self.run_("--diff", "large.npy", "larger.npy")
        self.assertEqual(status, 1)
        self.assertIn("1.0e+00 at [1]", out)

    def test_complex_numbers_differ(self):
        for name, values in (("z1", "1 + 2*nacre.i, 3"),
                             ("z2", "1 + 2.5*nacre.i, 3"), ("z3", "1.0, 3")):
            self.run_("-e", f'nacre.save("{name}.npy", '
                            f'nacre.tensor{{{values}}})')
        for other, largest in (("z2", r"5\.0e-01"), ("z3", r"2\.0e\+00")):
            status, out, _ = self.run_("--diff", "z1.npy", other + ".npy")
            self.assertEqual(status, 1)
            self.assertRegex(out, largest + r" at \[1\]")
        self.assertEqual(self.run_("--diff", "z1.npy", "z1.npy")[0], 0)

    def test_difference_as_json(self):
        status, out, _ = self.run_("--diff", "--json", "a.npz", "b.npz")
        d = json.loads(out)
        self.assertEqual((status, d["equal"]), (1, False))
        w = [t for t in d["tensors"] if t["name"] == "w"][0]
        self.assertEqual((w["abs"], w["different"], w["elements"]), (0.5, 6, 6))

    def test_trouble(self):
        self.bad(2, "nosuch.npz: No such file", "--diff", "a.npz",
                 "nosuch.npz")
        self.bad(2, "two files are needed, not 1", "--diff", "a.npz")
        self.bad(2, "did you mean --rtol?", "--diff", "--rtoll", "1", "a", "b")
        self.bad(2, "--rtol needs a number", "--diff", "--rtol", "x", "a", "b")
        self.bad(2, "a file is needed", "--ls")
        self.bad(2, "must be the first option", "-q", "--ls", "a.npy")

    def test_help(self):
        for tool in ["--ls", "--diff", "--convert"]:
            self.assertTrue(self.good(tool, "--help").startswith(
                "usage: nacre " + tool))

    # ---- --convert

    def test_convert(self):
        self.good("--convert", "a.npz", "x.safetensors")
        self.good("--diff", "a.npz", "x.safetensors")
        self.good("--convert", "--name", "w", "x.safetensors", "w.csv")
        self.good("--convert", "--dtype", "float32", "w.csv", "w.npy")
        self.good("--diff", "w.npy", "a.npy")
        self.good("--convert", "t.csv", "t.tsv")
        with open(os.path.join(self.home, "t.tsv")) as f:
            self.assertEqual(f.readline(), "x\ty\tz\n")
        self.good("--convert", "a.npy", "one.npz")
        self.assertIn("  a     float32", self.good("--ls", "one.npz"))

    def test_convert_keeps_metadata(self):
        has = 'nacre.save("%s", {x = nacre.ones(2)}, {metadata = {by = "me"}})'
        self.good("-e", has % "m.safetensors")
        if self.run_("-e", has % "m.h5")[0] != 0:
            return  # no HDF5 library
        self.good("--convert", "m.safetensors", "n.h5")
        self.good("--convert", "m.h5", "n.safetensors")
        for call in 'load "n.h5")["/"]', 'load "n.safetensors")':
            self.assertEqual(self.good("-p", "select(2, nacre." + call + ".by"),
                             '"me"\n')

    def test_convert_replaces_nothing_unasked(self):
        self.bad(2, "--force replaces it", "--convert", "a.npz", "b.npz")
        self.assertIn("3 tensors", self.good("--ls", "b.npz"))
        self.good("--convert", "--force", "a.npz", "b.npz")
        self.assertIn("2 tensors", self.good("--ls", "b.npz"))
        self.bad(2, "--name NAME chooses it", "--convert", "a.npz", "x.npy")

    def test_a_missing_file_among_others(self):
        status, out, err = self.run_("--ls", "a.npy", "nope.npy", "a.npz")
        self.assertEqual(status, 2)
        self.assertIn("nope.npy", err)
        self.assertIn("a.npy: 1 tensor", out)
        self.assertIn("a.npz: 2 tensors", out)

    # ---- nacre FILE...

    def test_one_file(self):
        self.assertEqual(self.good("-p", "file.b:sum()", "a.npz"),
                         "10  int64[] cpu\n")
        self.assertEqual(self.good("-i", "a.npy", text="file[2][3]\n"),
                         "file = a.npy: float32[2x3]\n> file[2][3]\n5.0\n")
        self.assertIn("  file  float32[2x3]",
                      self.good("-i", "a.npy", text=":whos\n"))

    def test_several_files(self):
        self.assertEqual(self.good("a.npy", "t.csv", text="""\
            print(#files, files[2].shape)"""), "2\t{2, 3}\n")
        self.assertIn("files[2] = a.npz: 2 tensors", self.good(
            "-i", "a.npy", "a.npz", text=""))

    def test_by_content(self):
        os.rename(os.path.join(self.home, "a.npy"),
                  os.path.join(self.home, "weights"))
        self.assertEqual(self.good("-p", "file:dim()", "weights"), "2\n")
        self.file("x.txt", "print 'a script'")
        self.assertEqual(self.good("x.txt"), "a script\n")

    def test_no_such_file(self):
        self.bad(2, "cannot open nosuch.npy", "nosuch.npy")
        self.bad(2, "without .safetensors files", "-p", "1", "/dev")


if __name__ == "__main__":
    launch.main()
