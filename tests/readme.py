"""The session in the README is what the program prints.

    readme.py NACRE README

Lines behind `> ` are fed to `nacre -i`; what comes out must be the text of
the README, but for the figures of `:time`.
"""
import re
import subprocess
import sys


def session(text):
    block = text.split("## A short session", 1)[1].split("```")[1]
    return block.strip("\n").split("\n")


def plain(line):
    timing = re.match(r"  [\d.]+ [num]?s  ", line)
    return re.sub(r"[\d.]+ [numkMGT]?(s|FLOP/s|B/s)\b", r"? \1", line) \
        if timing else line


def main():
    want = session(open(sys.argv[2], encoding="utf-8").read())
    typed = "".join(line[2:] + "\n" for line in want if line.startswith("> "))
    run = subprocess.run([sys.argv[1], "-E", "-q", "-i"], input=typed,
                         capture_output=True, text=True, timeout=60)
    got = run.stdout.rstrip("\n").split("\n")
    for n, (w, g) in enumerate(zip(want, got)):
        if plain(w) != plain(g):
            sys.exit(f"README, line {n + 1} of the session:\n- {w}\n+ {g}")
    if len(want) != len(got):
        sys.exit(f"README: {len(want)} lines, the program prints {len(got)}")
    print(f"README: {len(want)} lines as printed")


if __name__ == "__main__":
    main()
