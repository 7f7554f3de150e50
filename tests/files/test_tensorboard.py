#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""TensorBoard reads what nacre.utils.tensorboard writes; PyTorch's writer, if it
is there, writes the same histograms.

    test_tensorboard.py NACRE
"""
import os
import subprocess
import sys
import tempfile

try:
    from tensorboard.backend.event_processing import event_accumulator
    from tensorboard.util import tensor_util
except ImportError:
    print("the package tensorboard was not found")
    sys.exit(77)

VALUES = [-3.5, -1.0, -1e-5, 0.0, 0.0, 0.25, 1.0, 1.0, 7.5, 1e3]
LUA = """
local w <close> = nacre.utils.tensorboard.SummaryWriter(arg[1])
for i = 1, 5 do w:add_scalar("train/loss", 1 / i, i) end
w:add_scalar("exact", 0.1, 7, {double_precision = true})
w:add_text("note", "hello, *you*", 2)
local values = nacre.tensor({VALUES}, {dtype = "float64"})
w:add_histogram("weights", values, 3)
w:add_histogram("positive", values:abs() + 1, 3)
w:add_histogram("bins", values, 3, 4)
local x = nacre.arange(0.0, 24):reshape(2, 3, 4) / 23
w:add_image("picture", x[{{1, 1}}], 1)
w:add_scalars("both", {a = 1, b = 2}, 1)
""".replace("VALUES", ", ".join(map(repr, VALUES)))


def load(folder):
    """What TensorBoard finds in a folder."""
    found = event_accumulator.EventAccumulator(
        folder, size_guidance={"tensors": 0, "scalars": 0, "histograms": 0})
    found.Reload()
    return found


def check_histograms(ours, folder):
    """Those of PyTorch."""
    try:
        import numpy
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        print("PyTorch was not found: its histograms are not compared")
        return
    writer, values = SummaryWriter(folder), numpy.array(VALUES)
    writer.add_histogram("weights", values, 3)
    writer.add_histogram("positive", abs(values) + 1, 3)
    writer.add_histogram("bins", values, 3, bins=4)
    writer.close()
    theirs = load(folder)
    for tag in "weights", "positive", "bins":
        a = ours.Histograms(tag)[0].histogram_value
        b = theirs.Histograms(tag)[0].histogram_value
        assert list(a.bucket) == list(b.bucket), (tag, a, b)
        for x, y in zip(a.bucket_limit, b.bucket_limit):
            assert abs(x - y) <= 1e-12 * abs(y), (tag, x, y)
        for key in "min", "max", "num", "sum", "sum_squares":
            x, y = getattr(a, key), getattr(b, key)
            assert abs(x - y) <= 1e-12 * abs(y), (tag, key, x, y)


def main(program):
    """All of it."""
    with tempfile.TemporaryDirectory() as folder:
        script, runs = folder + "/s.lua", folder + "/runs"
        with open(script, "w", encoding="utf-8") as f:
            f.write(LUA)
        subprocess.run([program, script, runs], check=True, cwd=folder)
        found = load(runs)
        loss = found.Scalars("train/loss")
        assert [s.step for s in loss] == [1, 2, 3, 4, 5]
        assert all(abs(s.value * s.step - 1) < 1e-6 for s in loss)
        exact = found.Tensors("exact")[0].tensor_proto
        assert tensor_util.make_ndarray(exact).item() == 0.1
        text = found.Tensors("note/text_summary")[0].tensor_proto
        assert tensor_util.make_ndarray(text)[0] == b"hello, *you*"
        image = found.Images("picture")[0]
        assert (image.width, image.height) == (4, 3)
        assert image.encoded_image_string.startswith(b"\x89PNG")
        assert load(runs + "/both_b").Scalars("both")[0].value == 2
        check_histograms(found, folder + "/theirs")
        assert os.listdir(runs)
    print("ok")


if __name__ == "__main__":
    main(sys.argv[1])
