# SPDX-License-Identifier: MIT
"""nacre.nn against torch.nn: the names and shapes of every module's state,
outputs and gradients with the same state, in float64.

    modules_torch.py NACRE [--device DEVICE]
"""
import argparse
import os
import subprocess
import sys
import tempfile
import warnings

import numpy
import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from lua_text import Lua, lua, plain  # noqa: E402  pylint: disable=C0413

TOLERANCE = 1e-9        # relative to the largest element
# PyTorch's gradient has a float32 1/6
TOLERANCES = {"Hardsigmoid": 1e-7}
torch.set_default_dtype(torch.float64)
MODERN = hasattr(torch, "compile")
# 2.11 divides by the counts of other classes, on the CPU; 2.15 is right
COUNTS = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 15)
warnings.filterwarnings("ignore", message="enable_nested_tensor")


def dim(d):
    return Lua(d, str(d + 1 if d >= 0 else d))


def module(name, *args, **kw):
    """A module as an argument of another."""
    if not hasattr(torch.nn, name):
        return None
    return Lua(getattr(torch.nn, name)(*args, **kw), construct(name, args, kw))


def construct(name, args, kw):
    text = [lua(a) for a in args]
    if kw:
        text.append(lua(kw))
    return f"nn.{name}({', '.join(text)})"


ROWS = []


def row(name, *args, x, eval=False, call=None, wrap=None, **kw):
    """nn.name(*args, **kw) called with inputs of these shapes; a shape that
    begins with "class" is of integers from 1 to its second element. `call`:
    keyword arguments of forward; `wrap`: a function of nn.utils that changes
    the module, and its keyword arguments."""
    ROWS.append((name, args, kw, x, eval, call or {}, wrap))


def wrapped(m, wrap):
    """What the function of nn.utils makes of the module m."""
    if wrap is None:
        return m
    f = torch.nn.utils
    for word in wrap[0].split("."):
        f = getattr(f, word)
    return f(m, **{k: plain(v) for k, v in wrap[1].items()})


def spatial(n):
    return [2, 3] + [6, 7, 5][:n]


# ---- linear layers, embedding
row("Linear", 5, 3, x=[[2, 4, 5]])
row("Linear", 5, 3, False, x=[[5]])
row("Bilinear", 3, 4, 2, x=[[6, 3], [6, 4]])
row("Identity", x=[[2, 3]])
row("Flatten", x=[[2, 3, 4]])
row("Flatten", dim(0), dim(1), x=[[2, 3, 4]])
row("Unflatten", dim(1), Lua((2, 3), "{2, 3}"), x=[[4, 6]])
row("Embedding", 7, 3, x=[["class", 7, 4, 2]])
row("Embedding", 7, 3, padding_idx=Lua(2, "3"), x=[["class", 7, 9]])
row("EmbeddingBag", 7, 3, x=[["class", 7, 4, 5]])
row("EmbeddingBag", 7, 3, mode="sum", x=[["class", 7, 4, 5]])
row("Embedding", 5, 3, scale_grad_by_freq=True, padding_idx=Lua(2, "3"),
    x=[["class", 5, 4, 5]])
for mode in ["sum", "mean"] if COUNTS else []:
    row("EmbeddingBag", 5, 3, scale_grad_by_freq=True, mode=mode,
        x=[["class", 5, 4, 5]])

# ---- convolutions and pools
for n in (1, 2, 3):
    row(f"Conv{n}d", 3, 4, 3, x=[spatial(n)])
    row(f"Conv{n}d", 3, 6, 2, stride=2, padding=1, dilation=2, groups=3,
        bias=False, x=[spatial(n)])
    for mode in ["zeros", "reflect", "replicate", "circular"]:
        if (mode, n) != ("reflect", 3) or MODERN:
            row(f"Conv{n}d", 3, 4, 3, padding=1, padding_mode=mode,
                x=[spatial(n)])
    row(f"Conv{n}d", 3, 4, 4, padding="same", padding_mode="circular",
        x=[spatial(n)])
    row(f"ConvTranspose{n}d", 3, 4, 3, stride=2, padding=1, output_padding=1,
        x=[spatial(n)])
    row(f"ConvTranspose{n}d", 4, 6, 2, groups=2, dilation=2, bias=False,
        x=[[2, 4] + [4, 3, 5][:n]])
    row(f"ConvTranspose{n}d", 3, 4, 3, dilation=3, padding=1, output_padding=2,
        x=[spatial(n)])
    row(f"MaxPool{n}d", 2, x=[spatial(n)])
    row(f"MaxPool{n}d", 3, 2, padding=1, ceil_mode=True, x=[spatial(n)])
    row(f"AvgPool{n}d", 3, stride=2, padding=1, count_include_pad=False,
        x=[spatial(n)])
    row(f"AdaptiveAvgPool{n}d", 2, x=[spatial(n)])
    row(f"AdaptiveMaxPool{n}d", 3, x=[spatial(n)])
    for pad in ["ReflectionPad", "ReplicationPad", "ZeroPad", "CircularPad"]:
        row(f"{pad}{n}d", 2, x=[spatial(n)])
    row(f"ConstantPad{n}d", 1, 2.5, x=[spatial(n)])
    row(f"BatchNorm{n}d", 3, x=[spatial(n)])
    row(f"BatchNorm{n}d", 3, x=[spatial(n)], eval=True)
    row(f"BatchNorm{n}d", 3, affine=False, track_running_stats=False,
        x=[spatial(n)])
    row(f"InstanceNorm{n}d", 3, x=[spatial(n)])
    row(f"InstanceNorm{n}d", 3, affine=True, track_running_stats=True,
        x=[spatial(n)])
    row(f"InstanceNorm{n}d", 3, momentum=Lua(None, "false"),
        track_running_stats=True, x=[spatial(n)])
    row(f"Dropout{n}d", 0.5, x=[spatial(n)], eval=True)
row("BatchNorm1d", 4, momentum=Lua(None, "false"), x=[[5, 4]])
row("LPPool1d", 2, 3, x=[spatial(1)])
row("LPPool2d", 2, 3, stride=2, x=[spatial(2)])
row("Conv2d", 3, 4, (3, 2), stride=(2, 1), padding=(1, 0), x=[spatial(2)])
row("Upsample", scale_factor=2, x=[spatial(2)])
row("Upsample", size=(9, 4), mode="bilinear", align_corners=True,
    x=[spatial(2)])
row("Upsample", scale_factor=(1.3, 2.6), mode="bilinear",
    recompute_scale_factor=True, x=[spatial(2)])
row("UpsamplingNearest2d", scale_factor=2, x=[spatial(2)])
row("UpsamplingNearest2d", size=(9, 4), x=[spatial(2)])
row("UpsamplingBilinear2d", size=(9, 4), x=[spatial(2)])
row("UpsamplingBilinear2d", scale_factor=2, x=[spatial(2)])
row("PixelShuffle", 2, x=[[1, 8, 3, 3]])
row("PixelUnshuffle", 2, x=[[1, 2, 4, 6]])
row("ChannelShuffle", 2, x=[[1, 4, 3, 3]])
row("Unfold", 2, x=[[2, 3, 4, 5]])
row("Fold", (4, 5), 2, x=[[2, 12, 12]])
row("LocalResponseNorm", 2, x=[spatial(2)])

# ---- normalization
row("GroupNorm", 2, 4, x=[[3, 4, 5]])
row("LayerNorm", 6, x=[[2, 5, 6]])
row("LayerNorm", (5, 6), x=[[2, 5, 6]])
row("LayerNorm", 6, elementwise_affine=False, x=[[2, 6]])
row("RMSNorm", 6, x=[[2, 6]])

# ---- activations
for name in """ReLU ReLU6 LeakyReLU ELU SELU CELU GELU SiLU Mish Softplus
        Softshrink Hardshrink Tanhshrink Softsign Tanh Sigmoid LogSigmoid
        Hardtanh Hardsigmoid Hardswish PReLU""".split():
    row(name, x=[[4, 5]])
row("GELU", "tanh", x=[[4, 5]])
row("LeakyReLU", 0.2, x=[[4, 5]])
row("Threshold", 0.1, 20, x=[[4, 5]])
row("PReLU", 5, x=[[4, 5]])
row("GLU", dim(0), x=[[4, 5]])
for name in ["Softmax", "LogSoftmax", "Softmin"]:
    row(name, dim(0), x=[[4, 5]])
row("Softmax2d", x=[spatial(2)])
row("RReLU", x=[[4, 5]], eval=True)
row("Dropout", 0.3, x=[[4, 5]], eval=True)
row("AlphaDropout", 0.3, x=[[4, 5]], eval=True)
row("CosineSimilarity", dim(1), x=[[4, 5], [4, 5]])
row("PairwiseDistance", x=[[4, 5], [4, 5]])

# ---- losses
for name in ["MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss"]:
    row(name, x=[[4, 5], [4, 5]])
row("GaussianNLLLoss", x=[[4, 5], [4, 5], ["positive", 4, 5]])
row("SmoothL1Loss", reduction="sum", beta=0.5, x=[[4, 5], [4, 5]])
row("PoissonNLLLoss", full=True, x=[[4, 5], ["positive", 4, 5]])
row("KLDivLoss", reduction="batchmean", x=[[4, 5], ["positive", 4, 5]])
row("BCEWithLogitsLoss", x=[[4, 5], ["positive", 4, 5]])
row("BCELoss", x=[["positive", 4, 5], ["positive", 4, 5]])
row("CrossEntropyLoss", x=[[4, 5], ["class", 5, 4]])
row("CrossEntropyLoss", label_smoothing=0.1, reduction="none",
    x=[[4, 5, 3], ["class", 5, 4, 3]])
row("NLLLoss", x=[[4, 5], ["class", 5, 4]])
row("MultiMarginLoss", x=[[4, 5], ["class", 5, 4]])
row("MarginRankingLoss", 0.5, x=[[5], [5], ["sign", 5]])
row("HingeEmbeddingLoss", x=[[5], ["sign", 5]])
row("SoftMarginLoss", x=[[5], ["sign", 5]])
row("CosineEmbeddingLoss", x=[[4, 5], [4, 5], ["sign", 4]])
row("TripletMarginLoss", x=[[4, 5], [4, 5], [4, 5]])
row("TripletMarginWithDistanceLoss", x=[[4, 5], [4, 5], [4, 5]])
row("TripletMarginWithDistanceLoss", margin=2.0, swap=True, reduction="none",
    distance_function=Lua(lambda x, y: (x - y).abs().amax(-1),
                          "function(x, y) return (x - y):abs():amax(-1) end"),
    x=[[4, 5], [4, 5], [4, 5]])
row("MultiLabelSoftMarginLoss", x=[[4, 5], ["positive", 4, 5]])

row("AdaptiveLogSoftmaxWithLoss", 9, 20, [4, 10, 15], div_value=2.0,
    x=[[8, 9], ["class", 20, 8]])
row("AdaptiveLogSoftmaxWithLoss", 9, 20, [4], head_bias=True, div_value=2.0,
    x=[[9], ["class", 20]])

# ---- recurrent
for name in ["RNN", "LSTM", "GRU"]:
    row(name, 4, 5, x=[[6, 3, 4]])
    row(name, 4, 5, x=[[6, 4]])
    row(name, 4, 5, num_layers=2, bidirectional=True, batch_first=True,
        x=[[3, 6, 4]])
    row(name, 4, 5, bias=False, x=[[6, 3, 4]])
    row(name + "Cell", 4, 5, x=[[3, 4]])
row("RNN", 4, 5, 1, "relu", x=[[6, 3, 4]])
row("LSTM", 4, 5, num_layers=2, proj_size=3, bidirectional=True, x=[[6, 3, 4]])
# sequences of several lengths, with a first state in some
for name in ["RNN", "LSTM", "GRU"]:
    state = [[1, 4, 5]] * (2 if name == "LSTM" else 1)
    for ends in [6, 6, 3, 1], [2, 5, 1, 3], [4, 4, 4, 4]:
        row(name, 4, 5, x=[[6, 4, 4]], call={"lengths": ends})
        row(name, 4, 5, bias=False, x=[[6, 4, 4]] + state,
            call={"lengths": ends})
    row(name, 4, 5, num_layers=2, bidirectional=True, batch_first=True,
        x=[[4, 6, 4]], call={"lengths": [2, 6, 1, 3]})
row("LSTM", 4, 5, proj_size=3, bidirectional=True, x=[[6, 3, 4]],
    call={"lengths": [2, 6, 4]})

# ---- attention
E8 = [5, 3, 8]
row("MultiheadAttention", 8, 2, x=[E8, [4, 3, 8], [4, 3, 8]])
row("MultiheadAttention", 8, 2, x=[E8, E8, E8], call={"need_weights": False})
row("MultiheadAttention", 8, 4, bias=False, batch_first=True,
    x=[E8, E8, E8], call={"average_attn_weights": False})
row("MultiheadAttention", 8, 2, add_bias_kv=True, add_zero_attn=True, kdim=6,
    vdim=4, x=[E8, [4, 3, 6], [4, 3, 4]])
row("MultiheadAttention", 8, 2, x=[[5, 8], [4, 8], [4, 8]])
row("TransformerEncoderLayer", 8, 2, 16, dropout=0, x=[E8])
row("TransformerEncoderLayer", 8, 2, 16, dropout=0, activation="gelu",
    norm_first=True, batch_first=True, x=[E8])
row("TransformerDecoderLayer", 8, 2, 16, dropout=0, x=[E8, [4, 3, 8]])
row("TransformerDecoderLayer", 8, 2, 16, dropout=0, norm_first=True,
    x=[E8, [4, 3, 8]])
row("TransformerEncoder", module("TransformerEncoderLayer", 8, 2, 16,
                                 dropout=0), 2, x=[E8])
row("Transformer", 8, 2, 1, 2, 16, 0, x=[E8, [4, 3, 8]])

# ---- parametrizations, layers that infer their input size
for path in ["parametrizations.weight_norm", "weight_norm"]:
    row("Linear", 5, 3, x=[[2, 5]], wrap=(path, {}))
    row("Linear", 5, 3, x=[[2, 5]], wrap=(path, {"dim": dim(1)}))
    row("Linear", 5, 3, x=[[2, 5]], wrap=(path, {"dim": Lua(None, "false")}))
    row("Linear", 5, 3, x=[[2, 5]], wrap=(path, {"name": "bias"}))
    row("Conv2d", 3, 4, 3, x=[spatial(2)], wrap=(path, {}))
    row("LSTM", 4, 5, x=[[6, 3, 4]], wrap=(path, {"name": "weight_hh_l0"}))
for path in ["parametrizations.spectral_norm", "spectral_norm"]:
    row("Linear", 5, 3, x=[[2, 5]], wrap=(path, {}))
    row("Linear", 5, 3, x=[[2, 5]], wrap=(path, {"n_power_iterations": 3}))
    row("Conv2d", 3, 4, 3, x=[spatial(2)], wrap=(path, {}))
    row("Conv2d", 3, 4, 3, x=[spatial(2)], eval=True, wrap=(path, {}))
    row("ConvTranspose2d", 3, 4, 3, x=[spatial(2)], wrap=(path, {}))
row("LazyLinear", 4, x=[[2, 3, 5]])
row("LazyLinear", 4, False, x=[[5]])
for n in (1, 2, 3):
    row(f"LazyConv{n}d", 4, 3, x=[spatial(n)])
    row(f"LazyConv{n}d", 6, 2, stride=2, groups=3, bias=False, x=[spatial(n)])
    row(f"LazyConvTranspose{n}d", 6, 2, groups=3, x=[spatial(n)])
    row(f"LazyBatchNorm{n}d", x=[spatial(n)])
    row(f"LazyInstanceNorm{n}d", affine=True, track_running_stats=True,
        x=[spatial(n)])


def draw(shape, generator):
    kind = shape[0] if isinstance(shape[0], str) else "normal"
    if kind == "class":
        return torch.randint(shape[1], shape[2:], generator=generator)
    if kind == "sign":
        return torch.randint(2, shape[1:], generator=generator) * 2.0 - 1
    if kind == "positive":
        return torch.rand(shape[1:], generator=generator) * 0.9 + 0.05
    t = torch.randn(shape, generator=generator)
    return t.requires_grad_()


def called(m, x, call):
    """m(*x, **call), where `lengths` in call are those of the sequences."""
    if "lengths" not in call:
        return m(*x, **call)
    rnn, first = torch.nn.utils.rnn, m.batch_first
    packed = rnn.pack_padded_sequence(x[0], call["lengths"], first, False)
    state = x[1] if len(x) == 2 else tuple(x[1:]) or None
    out, state = m(packed, state)
    return rnn.pad_packed_sequence(
        out, first, total_length=x[0].shape[1 if first else 0])[0], state


def tensors(out):
    """The tensors of an output, in order; None and what is not a tensor left
    out."""
    if torch.is_tensor(out):
        return [out]
    return [t for o in out or [] for t in tensors(o)] \
        if isinstance(out, (tuple, list)) else []


def reference(number, r, folder):
    """Runs PyTorch, writes what Lua needs, returns the Lua text and what is
    expected."""
    name, args, kw, shapes, evaluate, call, wrap = r
    generator = torch.Generator().manual_seed(number)
    torch.manual_seed(number)
    m = getattr(torch.nn, name)(*map(plain, args),
                                **{k: plain(v) for k, v in kw.items()})
    m = wrapped(m, wrap)
    if name.startswith("Lazy"):
        m(*[draw(s, generator) for s in shapes])
    with torch.no_grad():
        for t in list(m.parameters()):
            t.copy_(torch.randn(t.shape, generator=generator) * 0.5)
    m.train(not evaluate)
    state = {"s." + k: v.clone() for k, v in m.state_dict().items()}
    x = [draw(s, generator) for s in shapes]
    same = len(shapes) == 3 and shapes[0] is shapes[1] is shapes[2] and \
        name == "MultiheadAttention"
    if same:
        x = [x[0]] * 3
    outs = tensors(called(m, x, call))
    loss = sum((o * (torch.arange(o.numel()).reshape(o.shape) % 7 - 2.5)).sum()
               for o in outs if o.is_floating_point())
    if loss.requires_grad:
        loss.backward()
    expected = {f"out{i}": o for i, o in enumerate(outs)}
    for i, t in enumerate(x):
        if t.grad is not None and not (same and i > 0):
            expected[f"x{i}"] = t.grad
    for k, p in m.named_parameters():
        if p.grad is not None:
            expected["g." + k] = p.grad
    for k, v in m.state_dict().items():
        expected["s." + k] = v
    arrays = {f"x{i}": t + 1 if s[0] == "class" else t
              for i, (t, s) in enumerate(zip(x, shapes))}
    path = os.path.join(folder, f"{number}.npz")
    numpy.savez(path, **{k: v.detach().numpy()
                         for k, v in {**arrays, **state}.items()})
    made = construct(name, args, kw)
    if wrap:
        made = f"nn.utils.{wrap[0]}({made}, {lua(wrap[1])})"
    text = (f"row({number}, function() return {made} end, "
            f"{lua([t.requires_grad for t in x])}, {lua(same)}, "
            f"{lua(evaluate)}, {lua(call)})")
    return text, {k: v.detach().double() for k, v in expected.items()}


LUA = """
local nn, folder, device = nacre.nn, arg[1], arg[2]
local function flatten(list, out)
  for i = 1, out.n or #out do
    if nacre.is_tensor(out[i]) then list[#list + 1] = out[i]
    elseif type(out[i]) == "table" then flatten(list, out[i]) end
  end
  return list
end
local function run(number, make, needs, same, evaluate, options)
  local path = ("%s/%d.npz"):format(folder, number)
  local data, state, m = nacre.load(path), {}, make():double()
  for k, v in pairs(data) do
    if k:sub(1, 2) == "s." then state[k:sub(3)] = v end
  end
  m:load_state_dict(state)
  m:to(device):train(not evaluate)
  local x = {}
  for i = 1, #needs do
    local t = data["x" .. i - 1]:to(device)
    if same and i > 1 then t = x[1] end
    if needs[i] and not (same and i > 1) then t:requires_grad_() end
    x[i] = t
  end
  local given = table.move(x, 1, #x, 1, {n = #x})
  if options.lengths then
    given = {x[1], x[3] and {x[2], x[3]} or x[2], options, n = 3}
  elseif next(options) then
    given.n, given[#x + 1] = #x + 1, options
  end
  local outs = flatten({}, table.pack(m(table.unpack(given, 1, given.n))))
  local loss, result = 0, {}
  for i, o in ipairs(outs) do
    result["out" .. i - 1] = o:detach()
    if o:is_floating_point() then
      local w = (nacre.arange(o:numel(), {device = device}):reshape(o:size())
                 % 7):double() - 2.5
      loss = loss + (o * w):sum()
    end
  end
  if loss.requires_grad then loss:backward() end
  for i = 1, #needs do
    if x[i].grad and not (same and i > 1) then
      result["x" .. i - 1] = x[i].grad
    end
  end
  for k, p in m:named_parameters() do
    if p.grad then result["g." .. k] = p.grad end
  end
  for k, v in pairs(m:state_dict()) do result["s." .. k] = v end
  for k, v in pairs(result) do result[k] = v:cpu() end
  nacre.save(("%s/%d.out.npz"):format(folder, number), result)
end
function row(number, ...)
  local ok, e = pcall(run, number, ...)
  if not ok then print(number .. " " .. tostring(e):gsub("\\n", "; ")) end
end
"""


def differences(expected, path, tolerance):
    got = {k: torch.from_numpy(numpy.atleast_1d(v)).reshape(v.shape).double()
           for k, v in numpy.load(path).items()}
    for k, e in expected.items():
        if k not in got:
            yield f"no {k}"
        elif got[k].shape != e.shape:
            yield f"{k}: {list(got[k].shape)}, expected {list(e.shape)}"
        elif e.numel():
            error = (got[k] - e).abs().max() / e.abs().max().clamp(min=1)
            if not error < tolerance:
                yield f"{k}: relative error {error:.1e}"
    for k in got.keys() - expected.keys():
        if got[k].abs().max() > tolerance:
            yield f"{k} is not expected"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("nacre")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    bad = done = 0
    with tempfile.TemporaryDirectory() as folder:
        texts, expected = [], {}
        for number, r in enumerate(ROWS):
            if not hasattr(torch.nn, r[0]):
                continue
            try:
                text, expected[number] = reference(number, r, folder)
                texts.append(text)
            except (AttributeError, RuntimeError, TypeError,
                    ValueError) as e:
                if MODERN:
                    raise
                print(f"{r[0]}: {e}")     # an old PyTorch
        script = os.path.join(folder, "modules.lua")
        with open(script, "w", encoding="utf-8") as f:
            f.write(LUA + "\n".join(texts) + "\n")
        run = subprocess.run([options.nacre, script, folder, options.device],
                             capture_output=True, text=True)
        print(run.stdout + run.stderr, end="")
        for number, e in expected.items():
            path = os.path.join(folder, f"{number}.out.npz")
            wrong = ["failed"] if not os.path.exists(path) else \
                list(differences(
                    e, path, TOLERANCES.get(ROWS[number][0], TOLERANCE)))
            done += 1
            if wrong:
                bad += 1
                name, args, kw, x, _, _, wrap = ROWS[number]
                print(f"{number} {construct(name, args, kw)} {wrap} {x}: "
                      + "; ".join(wrong))
    print(f"modules_torch: {done} modules, {bad} differ")
    sys.exit(bad > 0)


main()
