# SPDX-License-Identifier: MIT
"""Every hint that the shell gives is followed: what hints.txt has and every
name of other_libraries.lua is typed, and the line that the prompt suggests then
is run. `test_hints.py PROGRAM --update' writes into hints.txt what is said now.

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
CASES = HERE / "hints.txt"
HINTS = ROOT / "repl/errors/hints"
SETUP = ("x = torch.tensor{1.,2.,3.}; y = torch.tensor{3.,2.,1.}; "
         "z = torch.tensor{7.}; m = torch.tensor{{4.,1,0},{1,3,1},{0,1,2}}; "
         "w = m:clone(); n = 3; s = 'text'; t = {1, 2, 3}; a = 1; b = 2; "
         "k = {rate = 1}; g = function(v) return v end; f = nil; i = nil; "
         "nothing = nil; label = s; dev = 'cpu'; "
         "put = function(p, s) local f = io.open(p, 'wb'); f:write(s); "
         "f:close() end")
EMULATED = os.path.join(os.path.dirname(PROGRAM), "libnacre_cuda_emulated.so")


# Prints the line that the next prompt would suggest.
LINES = """setmetatable(require "nacre.state", {__newindex = function(t, k, v) \
if k ~= "correction" then rawset(t, k, v) \
elseif v then print("@line " .. v) end end})"""
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
MODULES = ("dot_call", "foreign_calls", "foreign_definitions",
           "foreign_expressions", "foreign_literals", "foreign_loops",
           "foreign_parser", "foreign_statements", "foreign_syntax",
           "network_misuse", "nil_argument",
           "nonfinite_hints", "rewrite_hint", "runtime_errors",
           "runtime_misuse", "unknown_names", "zero_based")


def session(inputs, watch=False, environment=()):
    """The output that belongs to each list of inputs."""
    lines = [LINES, WATCH] if watch else [LINES]
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
    return [found[k].rpartition(f"> {case[-1]}\n")[2]
            for k, case in enumerate(inputs)]


# What is said beside hints: of these, the first that an output has.
SAID = [r"^  hint: (.*)$", r"is a method: (.*)$", r"is not a method: (.*)$",
        r"Lua has no \S+; (.*)$", r"did you mean '(.*)'\?",
        r"^\(no variable '\w+'; (.*)\)$", r"(the command is :\w+.*)\)$",
        r"^error: (.*)$", r"^\((.*)\)$"]


def said(output):
    """What is said in an output: in short, the error and that, the error."""
    found = next(filter(None, (re.search(p, output, re.M) for p in SAID)), None)
    text = found[1] if found else ""
    error = re.search(r"^error: (.*)$", output, re.M)
    return [text, *([f"{error[1]} | {text}", error[1]] if error else [])]


def corrected(output):
    """The line that is suggested then; a block that it begins is empty."""
    found = re.findall(r"^@line (.*)$", output, re.M)
    line, hint = found[-1] if found else "", said(output)[0]
    if hint.startswith(f"{line} ... end"):
        whole = re.sub(r"  \(.*\)$|, counted from 1.*$| to change .*$", "",
                       hint)
        return re.sub(r" \.\.\.(?= |$)", "", whole)
    return line


class Case:
    """A line of hints.txt: what is typed before, what is typed, what is said
    then, and the lines that are run to follow it. Of these the first is the one
    that is suggested; it is not repeated if what is said begins with it."""

    def __init__(self, line, setup):
        inputs, *rest = re.split(r"  (--+>?)(?: |$)", line)
        self.typed = inputs.split(" ==> ")[-1]
        self.head = inputs
        self.before = setup + inputs.split(" ==> ")[:-1]
        self.said = rest[1] if rest else ""
        self.begins = rest[:1] == ["-->"]
        self.lines = rest[3::2]

    def take(self, output):
        """What is said now."""
        line = corrected(output)
        if not matches(self.said, output):
            self.said = said(output)[0]
        begins = bool(line) and any(t.startswith(line)
                                    for t in plain(self.said))
        others = [x for x in self.lines if x != line]
        self.lines = [line, *others] if line and not begins else others
        self.begins = begins

    def text(self):
        """The line of hints.txt."""
        mark = "  -->" if self.begins else "  --"
        return "  --> ".join([f"{self.head}{mark} {self.said}".rstrip(),
                              *self.lines])


def plain(text):
    """What is said without the error, and as a line without what is left
    out."""
    text = re.sub(r"^.* \| ", "", text)
    return [text, re.sub(r" \.\.\.(?= |$)", "", text)]


def groups():
    """The cases by the environment that a heading of hints.txt names; all its
    lines, of which those that are cases are Cases."""
    found, lines, setup = {(): []}, [], []
    here = None
    for line in CASES.read_text("utf-8").splitlines():
        if line.startswith("# -- "):
            setup = []
            here = found.setdefault(tuple(
                re.findall(r"(NACRE_\w+)=(\S+)", line)), [])
        elif line.startswith("@ "):
            setup = [line[2:]]
        elif here is not None:
            line = Case(line, setup)
            here.append(line)
        lines.append(line)
    if not os.path.exists(EMULATED):
        found = {e: c for e, c in found.items()
                 if ("NACRE_CUDA", "emulated") not in e}
    return found, lines


def update():
    """Writes what is said now into hints.txt."""
    found, lines = groups()
    for environment, cases in found.items():
        outputs = session([[*c.before, c.typed] for c in cases],
                          environment=environment)
        for case, output in zip(cases, outputs):
            case.take(output)
    CASES.write_text("".join(
        f"{x.text() if isinstance(x, Case) else x}\n" for x in lines))


def matches(expected, output):
    """Is this said in an output?  <...> stands for anything."""
    pattern = re.escape(expected).replace("<\\.\\.\\.>", ".*")
    return any(re.fullmatch(pattern, text) for text in said(output))


@functools.cache
def watched(environment):
    """What the cases of an environment print under WATCH, and what SEEN."""
    inputs = [[*c.before, c.typed] for c in groups()[0][environment]]
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
                     line) and not re.search(
                         r"require|:match|:find|:gsub|^statements", line):
            yield n, line


# Lines that end the session, leave the folder, need the network or Python, or
# read the input that follows.
LEFT_OUT = r":quit$|:cd |error\(|!|.* io\.read\(\)$|.*nacre\.python\(\)"


class Hints(unittest.TestCase):
    maxDiff = None

    def follow(self, cases, environment=()):
        """Types the cases, compares what is said, then runs what follows."""
        outputs = session([[*c.before, c.typed] for c in cases],
                          environment=environment)
        wrong, follow = [], {}
        for case, output in zip(cases, outputs):
            old = case.text()
            case.take(output)
            if case.text() != old:
                wrong.append(f"{old}\n  is now\n{case.text()}")
            lines = [corrected(output)] if case.begins else []
            follow.update({(*case.before, line): case
                           for line in [*lines, *case.lines]
                           if not re.match(LEFT_OUT, line)})
        self.assertEqual("\n".join(wrong), "")
        count = len(follow)
        for _ in range(4):
            follow = self.run_lines(follow, environment)
        self.assertFalse(follow)
        return count

    def run_lines(self, follow, environment):
        """Runs the lines; gives those that other hints suggest then."""
        wrong, further = [], {}
        outputs = session(follow, environment=environment)
        for (line, case), output in zip(follow.items(), outputs):
            if not re.search(r"^error:(?!.*no usable CUDA)", output, re.M):
                continue                # it ran, or would on a GPU
            next_line = corrected(output)
            if next_line and next_line not in (line[-1], case.typed):
                further[(*line[:-1], next_line)] = case
            else:
                wrong.append(f"{case.typed}\n  followed by {line[-1]}\n" +
                             output)
        self.assertEqual("\n".join(wrong), "")
        return further

    def test_each_hint_is_followed(self):
        self.assertGreater(self.follow(groups()[0][()]), 500)

    def test_each_hint_of_other_environments(self):
        for environment, cases in groups()[0].items():
            if environment:
                with self.subTest(environment=environment):
                    self.follow(cases, environment)

    def test_no_hint_is_without_a_case(self):
        seen = set(re.findall(r"^@seen (\S+)$", watched(())[1], re.M))
        self.assertGreater(len(seen), 500)
        unseen = [f"{m}.lua:{n}: {line}" for m in MODULES
                  for n, line in texts(m) if f"{m}:{n}" not in seen]
        self.assertFalse(unseen, "\n" + "\n".join(unseen))

    def test_no_text_of_a_hint_is_without_a_case(self):
        raw = []
        for environment in groups()[0]:
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
            typed.append((f"torch.{part}.{name}" if part
                          else f"torch.{name}", code))
            if not part and "." not in name:
                object_ = "m" if re.search(r"\bm\b", code) else "x"
                typed.append((f"{object_}:{name}()", code))
        hints = [said(o)[0] for o in session([[line] for line, _ in typed])]
        outputs = session([[re.sub(r"  \(.*\)$", "", hint)] for hint in hints])
        wrong = [f"{line}\n  hint {hint}\n{output}"
                 for (line, code), hint, output in zip(typed, hints, outputs)
                 if not hint or code and re.search(r"^error:", output, re.M)]
        self.assertEqual("\n".join(wrong), "")

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
    ("torch.vmap(function(x) return x:item() end)(x)", "mapped"),
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
    if "--update" in sys.argv:
        sys.exit(update())
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
