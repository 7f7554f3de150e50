# SPDX-License-Identifier: MIT
"""Every hint that the shell gives is followed: what hints.txt has and every
name of other_libraries.lua is typed, and the line that the hint names is run.

What the shell cannot say is found, too: each line of the modules of hints that
holds a text for the user must be reached by some case, and each text of the
core, of the bindings and of the CUDA plug-in must be given in one.

test_hints.py PROGRAM"""
import functools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

import hint_sites

PROGRAM = os.path.abspath(sys.argv[1])
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HINTS = ROOT / "repl/errors/hints"
SETUP = ("x = torch.tensor{1.,2.,3.}; y = torch.tensor{3.,2.,1.}; "
         "z = torch.tensor{7.}; m = torch.tensor{{4.,1,0},{1,3,1},{0,1,2}}; "
         "w = m:clone(); n = 3; s = 'text'; t = {1, 2, 3}; a = 1; b = 2; "
         "k = {rate = 1}; g = function(v) return v end; f = nil; i = nil; "
         "nothing = nil; label = s; dev = 'cpu'; "
         "put = function(p, s) local f = io.open(p, 'wb'); f:write(s); "
         "f:close() end")
EMULATED = os.path.join(os.path.dirname(PROGRAM), "libnacre_cuda_emulated.so")


# Notes which lines of our modules run, where hints are looked for: the shell
# has a hook of its own while a block runs.
WATCH = """seen = {}; do local create, info = coroutine.create, debug.getinfo; \
local function line(_, n) local s = info(2, "S").source; \
if s:find "^=nacre%." then seen[s:sub(8) .. ":" .. n] = true end end; \
coroutine.create = function(f) local co = create(f); \
debug.sethook(co, line, "l"); return co end; \
for module, name in pairs {syntax_errors = "render", \
runtime_errors = "unknown_variable"} do \
local t = require("nacre." .. module); local f = t[name]; \
t[name] = function(...) debug.sethook(line, "l"); \
local text = f(...); debug.sethook(); return text end end; \
local habits = require "nacre.runtime_errors"; \
local running = habits.explain; \
habits.explain = function(o, ...) \
if o.hint then print("@raw " .. o.hint) end; return running(o, ...) end end"""
SEEN = 'for k in pairs(seen) do print("@seen " .. k) end'
MODULES = ("dot_call", "foreign_syntax", "network_misuse", "nil_argument",
           "nonfinite_hints", "python_calls", "python_definitions",
           "python_statements", "rewrite_hint", "runtime_errors",
           "runtime_misuse", "unknown_names")


def session(inputs, watch=False, environment=()):
    """The output that belongs to each list of inputs."""
    lines = [WATCH] if watch else []
    for k, case in enumerate(inputs):
        lines += [f'print("@@{k}@@")', SETUP, *case]
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "x.csv").write_text("1,2\n3,4\n")
        with zipfile.ZipFile(f"{folder}/model.pt", "w") as z:
            z.writestr("model/data.pkl", b"\x80\2cos\nsystem\n.")
        done = subprocess.run(
            [PROGRAM, "-i", "--no-history", "--device", "cpu"],
            input="\n".join(lines) + "\n", cwd=folder, text=True,
            capture_output=True, timeout=240, check=False,
            env={**os.environ, "TERM": "dumb", "NACRE_CUDA": "off",
                 "HOME": folder, **dict(environment)})
    text = done.stdout + done.stderr
    parts = re.split(r"^@@(\d+)@@$", text, flags=re.M)
    found = dict(zip(map(int, parts[1::2]), parts[2::2]))
    return [found.get(k, "") for k in range(len(inputs))]


# A text that is words alone: there is nothing to run.
PROSE = re.compile(r"^(there (is|are) |a block ends|names are ASCII|strings are"
                   r" |a list is written|variables are global|no mod|nothing is"
                   r"|memory (is|cannot)|not (used|avail)|histograms|of "
                   r"|searched "
                   r"|\w+ is a number|== compares|\{name = value\}|a comment "
                   r"|goto continue|\w+_ works in|local |a tensor holds"
                   r"|commands begin|a result's backward|dims count"
                   r"|arg\[1\], arg|nacre, also|the functions of layers"
                   r"|os and io|string\.match and|nacre\.rand, nacre"
                   r"|no such|start with|nacre\.linalg has|\w+ is (there|avail)"
                   r"|and$|or$|elseif$|elseif \.\.\. then$|else$|lapply"
                   r"|write: |tensor\{|1 is the first|no variable|[\w.]+ is nil"
                   r"|nacre\.autograd\.grad\(|[\w.]+:requires_grad_\(\), then"
                   r"|:plot, :hist|CPU tensors|install it|CUDA operations"
                   r"|ordinals count|element \d|t:copy_\(result\)"
                   r"|\d is the first|use logical_xor|use ~|none of "
                   r"|a device is"
                   r"|:totable|matmul broadcasts|a range needs|indices as text"
                   r"|\{2,-1\}|\{x = t\}|t:flatten|names may|PyTorch reads"
                   r"|\.npy, |npz and|floats from|what is \.safe|in Python:"
                   r"|tar -xf|sqlite3|gunzip|bunzip2|unxz|unzstd|iconv"
                   r"|convert it|it is no text|binary_cross|change a :clone"
                   r"|nacre\.stack joins|nacre\.enable_grad|nacre\.no_grad\(fu"
                   r"|nacre --doctor|reshape |\(\.\.\.\)|backward\(\{re"
                   r"|[\w ]+ has \d+ values? |\w+ overflows"
                   r"|ddp:|[\w.]+\.init\(self|a new schedule|the parameters count"
                   r"|state\.\w+ = nil, if|opt:load_state_dict\(saved\), too"
                   r"|t:to\(|nacre\.tensor\{\.\.\.|wait for|move the module)")


def instead(hint, typed):
    """The line with what the hint says in the place of what it is about: the
    options of the call, or an operand; None if the hint is no such thing."""
    options = re.match(r"^(\{\w+=.*?\})( reads | rounds | makes | gives |$)",
                       hint)
    if options:
        bare = re.sub(r", \{\w+=.*\}\)$|\)$", "", typed)
        return f"{bare}, {options[1]})"
    first = re.sub(" first$| before it is used$", "", hint)
    operand = re.match(r"^(.+):(?:to|clone|long|permute|contiguous|cpu|"
                       r"requires_grad_)\([^()]*\)$", first)
    if operand and operand[1] in typed and (
            first != hint or not re.match(rf"{re.escape(operand[1])}[:.]\w",
                                          typed)):
        place = rf"(?<!\w){re.escape(operand[1])}(?!\w)"
        return re.sub(place, lambda _: operand[0], typed)
    return None


def runnable(hint, typed):
    """The lines that a hint names, as they can be typed; none if it is
    prose."""
    called = re.match(r"^(\w+) is called (\w+)$", hint)
    if called:
        return [re.sub(rf"\b{called[1]}\b", called[2], typed)]
    hint = re.sub(r"  \(.*\)$", "", hint)
    if hint.startswith("local "):
        return [hint]
    hint = re.sub(r"^.* has \d+ values? .*; (.*) is finite$", r"\1", hint)
    if PROSE.match(hint):
        return []
    lines = [instead(part, typed) for part in re.split(", or ", hint)]
    if None not in lines:
        return lines
    hint = re.sub(r" gives \w+\[[\dx]*\]$| makes one$| swaps the last two$"
                  r"| to have it worked out$| has no history$"
                  r"| gives a tensor without history$| adds up .*$"
                  r"| is the (first|last) \w+$", "", hint)
    parts = re.split(r" is the first \w+, |, or ", hint)
    if len(parts) > 1:
        return [re.sub(r" is the .*$", "", part) for part in parts
                if not part.startswith("in place")]
    hint = re.sub(r", counted from 1(; .*)?$|, without :item\(\)$", "", hint)
    hint = re.sub(r" is (a|the) (tensor|number)( already)?$", "", hint)
    hint = re.sub(r" (is a step|reads a table of numbers|lists them)$", "",
                  hint)
    hint = re.sub(r"^[\w.()\[\]{}, ]+ is a number; ", "", hint)
    hint = re.sub(r" is \{.*\}$|<Tab>.*$", "", hint)
    hint = re.sub(r", or in place .*$|, or not .*$", "", hint)
    hint = re.sub(r"^if \.\.\. then \.\.\.", "if true then", hint)
    hint = re.sub(r"if \.\.\. then", "if true then", hint)
    hint = re.sub(r"while \.\.\. do", "while false do", hint)
    hint = re.sub(r"\.\.\. do", "do", hint)
    return [hint.replace(" ... end", " end")]


# In what is said beside hints.
SAID = [r"^  hint: (.*)$", r"is a method: (.*)$", r"did you mean '(.*)'\?",
        r"Lua has no \S+; (.*)$", r"^\(no variable '\w+'; here (.*)\)$",
        r"the command is (:\w+.*)\)$", r"is not a method: (.*)$"]


def lines_of(output, typed):
    for pattern in SAID:
        for hint in re.findall(pattern, output, re.M):
            yield from runnable(hint, typed)


def groups():
    """The cases by the environment that a heading of hints.txt names."""
    found = {(): []}
    here = found[()]
    for line in (HERE / "hints.txt").read_text("utf-8").splitlines():
        if line.startswith("# -- "):
            here = found.setdefault(tuple(
                re.findall(r"(NACRE_\w+)=(\S+)", line)), [])
        elif line and not re.match(r"# (What|vec)", line):
            before, _, typed = line.rpartition(" ==> ")
            here.append((([before] if before else []), typed, True))
    if not os.path.exists(EMULATED):
        found = {e: c for e, c in found.items()
                 if ("NACRE_CUDA", "emulated") not in e}
    return found


@functools.cache
def watched(environment):
    """What the cases of an environment print under WATCH, and what SEEN."""
    inputs = [[*before, typed] for before, typed, _ in groups()[environment]]
    *outputs, seen = session([*inputs, [SEEN]], True, environment)
    return "".join(outputs), seen


def wordrows():
    """The names of other_libraries.lua, with their lines."""
    code = ('for _, e in ipairs(require "nacre.other_libraries".rows) do '
            'print(e.name, e.code or "", e.part or "") end')
    done = subprocess.run([PROGRAM, "-i", "--no-history"], input=code,
                          text=True, capture_output=True, check=True)
    for line in done.stdout.splitlines():
        if line.count("\t") == 2:
            yield line.split("\t")


def texts(module):
    """The lines of a module that make a text for the user."""
    source = HINTS / f"{module}.lua"
    for n, line in enumerate(source.read_text("utf-8").splitlines(), 1):
        if re.search(r"(return|hint =|message =).*[\"'][^\"']*[A-Za-z]{2}",
                     line) and not re.search(r"require|:match|:find|:gsub",
                                             line):
            yield n, line


class Hints(unittest.TestCase):
    def follow(self, list_, environment=()):
        """Types the cases, then runs what their hints say."""
        outputs = session([[*before, typed] for before, typed, _ in list_],
                          environment=environment)
        follow, wrong, known = [], [], []
        for (before, typed, runs), output in zip(list_, outputs):
            said = any(re.search(p, output, re.M) for p in SAID) or \
                "is written" in output or "no variable" in output
            if not said:
                wrong.append(f"{typed}: no hint:\n" +
                             output.partition(SETUP)[2])
            for line in lines_of(output, typed) if runs else ():
                if (before, line) not in known:
                    known.append((before, line))
                    follow.append((before, typed, line))
        outputs = session([[*before, line] for before, _, line in follow],
                          environment=environment)
        for (_, typed, line), output in zip(follow, outputs):
            if re.search(r"^error:", output, re.M):
                wrong.append(f"{typed}\n  hint {line}\n" +
                             output.partition(SETUP)[2])
        self.assertFalse(wrong, "\n" + "\n".join(wrong))
        return len(follow)

    def test_each_hint_is_followed(self):
        self.assertGreater(self.follow(groups()[()]), 120)

    def test_each_hint_of_other_environments(self):
        for environment, list_ in groups().items():
            if environment:
                with self.subTest(environment=environment):
                    self.follow(list_, environment)

    def test_no_hint_is_without_a_case(self):
        seen = set(re.findall(r"^@seen (\S+)$", watched(())[1], re.M))
        self.assertGreater(len(seen), 500)
        unseen = [f"{m}.lua:{n}: {line}" for m in MODULES
                  for n, line in texts(m) if f"{m}:{n}" not in seen]
        self.assertFalse(unseen, "\n" + "\n".join(unseen))

    def test_no_text_of_a_hint_is_without_a_case(self):
        raw = []
        for environment in groups():
            raw += re.findall(r"^@raw (.*)$", watched(environment)[0], re.M)
        if not os.path.exists(EMULATED):
            self.skipTest("no emulated device was built")
        never = [place for place, pattern in hint_sites.texts(ROOT)
                 if not any(re.search(pattern, r) for r in raw) and
                 not hint_sites.apart(ROOT, place)]
        self.assertFalse(never, "\n" + "\n".join(never))

    def test_words_of_other_libraries(self):
        rows = list(wordrows())
        self.assertGreater(len(rows), 200)
        typed = []
        for name, code, part in rows:
            typed.append(([], f"torch.{part}.{name}" if part
                          else f"torch.{name}", bool(code)))
            if not part and "." not in name:
                object_ = "m" if re.search(r"\bm\b", code) else "x"
                typed.append(([], f"{object_}:{name}()", bool(code)))
        self.follow(typed)

    def test_no_word_is_ours(self):
        names = [row[0] for row in wordrows()]
        outputs = session([[f"print(rawget(nacre._functions, '{name}') ~= nil "
                            f"or nacre._methods['{name}'] ~= nil)"]
                           for name in names])
        ours = [n for n, o in zip(names, outputs)
                if re.search(r"^true$", o, re.M)]
        self.assertEqual(ours, [])


# What fails, and what its error says of the cause.
CAUSES = [
    ("x:add()", "missing other"), ("torch.linalg.inv()", "missing A"),
    ("x:reshape(i)", "type shape nil"), ("x:sum('1')", "type dim string"),
    ("torch.linalg.inv(t)", "tensor A table"),
    ("torch.add('a', x)", "tensor self string"),
    ("x:sum{axis = 1}", "argument axis"),
    ("torch.linalg.inv(m, {axis = 1})", "argument axis"),
    ("return x[i]", "index nil"), ("return x[true]", "index boolean"),
    ("x:fillna()", "method fillna"), ("return x.gradd", "field gradd"),
    ("torch.nn.LSTMM()", "function nn.LSTMM"), ("torch.lstm()", "function lstm"),
    ("return x + torch.ones(2)", "broadcast"),
    ("return x .. 7", "type number"),
    ("shell.nan 'trap'; return (x * 100):exp()", "infinite")]


class Causes(unittest.TestCase):
    """The causes by which hints decide are raised, with their name and type."""

    def test_each_is_raised(self):
        outputs = session([[
            f"_, e = pcall(load({code!r})); print('is', e.cause .. (e.name and "
            f"' ' .. e.name or '') .. (e.got and ' ' .. e.got or ''))"]
            for code, _ in CAUSES])
        self.assertEqual([(code, *re.findall(r"^is\t(.*)$", output, re.M))
                          for (code, _), output in zip(CAUSES, outputs)],
                         CAUSES)

    def test_those_of_hints_exist(self):
        table = (ROOT / "core/error.h").read_text().partition("NC_CAUSES(X)")[2]
        names = set(re.findall(r"^  X\((\w+)\)", table, re.M))
        self.assertEqual(names, {said.split()[0] for _, said in CAUSES})
        used = {name for path in (ROOT / "repl/errors").rglob("*.lua")
                for name in re.findall(r'cause [=~]= "(\w+)"',
                                       path.read_text())}
        self.assertGreater(len(used), 5)
        self.assertLessEqual(used, names)


def script(text, *args):
    """What a script of this text says of its error."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "s.lua").write_text(text)
        pathlib.Path(folder, "bad.npy").write_bytes(
            b"\x93NUMPY\x01\x00\x36\x00" +
            b"{'descr': '<f4', 'fortran_order': False, }".ljust(53) + b"\n")
        done = subprocess.run([PROGRAM, "s.lua", *args], cwd=folder, text=True,
                              capture_output=True, timeout=60, check=False)
    return done.stderr


class Absent(unittest.TestCase):
    """A variable that exists and is nil is not said to be none."""

    def hint(self, text, *args):
        return "".join(re.findall(r"hint: (.*)", script(text, *args)))

    def test_locals(self):
        self.assertEqual(
            self.hint("local n = tonumber(arg[1])\n"
                      "local x = nacre.zeros(n, 3)\n"),
            "n is nil, set in line 1: n = tonumber(arg[1])")
        self.assertEqual(
            self.hint("local path = arg[1]\nlocal x = nacre.load(path)\n"
                      "print(x:sum())\n"),
            "path is nil, set in line 1: path = arg[1]")
        self.assertEqual(
            self.hint("local function f(opts)\n  local limit = opts.limit\n"
                      "  return nacre.ones(3) * limit\nend\nprint(f{})\n"),
            "limit is nil, set in line 2: limit = opts.limit")

    def test_other_blocks(self):
        """What another block calls n is another variable."""
        self.assertEqual(
            self.hint("local n = tonumber('x')\n"
                      "local function f(n)\n  n = 2\nend\n"
                      "for n = 1, 2 do\n  local m = n\nend\n"
                      "do\n  local n = 3\nend\nlocal t = {\n  n = 4}\n"
                      "print(nacre.ones(n))\n"),
            "n is nil, set in line 1: n = tonumber('x')")
        self.assertEqual(
            self.hint("local t, n = {}\nif t then\n  n = t.n\n"
                      "else\n  local n = 2\nend\nprint(nacre.ones(n))\n"),
            "n is nil, set in line 3: n = t.n")

    def test_parameters_and_upvalues(self):
        self.assertEqual(self.hint("local up\nlocal function f() "
                                   "return nacre.ones(up) end\nf()\n"),
                         "up is nil")
        self.assertEqual(self.hint("local function f(n) return nacre.ones(n) "
                                   "end\nprint(f())\n"), "n is nil")

    def test_fields(self):
        self.assertEqual(self.hint("local cfg = {rates = 1}\n"
                                   "nacre.ones(2):sub_(cfg.rate)\n"),
                         "cfg.rate is nil")
        self.assertEqual(self.hint("print(nacre.load(arg[1]))\n"),
                         "arg[1] is nil: the script has no arguments")

    def test_what_is_no_variable(self):
        self.assertEqual(self.hint("print(nacre.ones(nosuchname))\n"),
                         "no variable 'nosuchname'")

    def test_an_error_of_a_file(self):
        said = script("local x = nacre.load(arg[1]) print(x:sum())\n",
                      "bad.npy")
        self.assertIn("'shape' is missing", said)
        self.assertNotIn("no variable", said)
        self.assertNotIn("is nil", said)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
