#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# test_picture_files.py - what :plot, :scatter, :hist and :heat write with -o:
# the SVG is read back and compared with the values, the PNG by its pixels.

import re
import xml.etree.ElementTree

import launch

SVG = "{http://www.w3.org/2000/svg}"


class PictureFiles(launch.Program):
    def lua(self, code, **variables):
        status, out, err = self.run_("-e", code, **variables)
        self.assertEqual((status, err), (0, ""))
        return out

    def session(self, text, **variables):
        return self.run_("-i", "-q", text=text, **variables)[1]

    def svg(self, name):
        return xml.etree.ElementTree.fromstring(self.read(name))

    def texts(self, root):
        return [t.text for t in root.iter(SVG + "text")]

    def curves(self, root):
        """The points of each curve, as lists of (x, y)."""
        paths = [p.get("d") for p in root.iter(SVG + "path")
                 if p.get("stroke-linejoin")]
        number = r"(-?[\d.]+)"
        return [[(float(x), float(y)) for x, y in
                 re.findall("[ML]%s %s" % (number, number), d)] for d in paths]

    def frame(self, root):
        rect = list(root.iter(SVG + "rect"))[-1]
        x, y, w, h = (float(rect.get(k)) for k in ("x", "y", "width", "height"))
        return x, y, x + w, y + h

    def expected(self, frame, points):
        """Where values lie in the frame."""
        left, top, right, bottom = frame
        xs, ys = zip(*points)
        def place(v, list_, a, b):
            part = (v - min(list_)) / (max(list_) - min(list_))
            return a + (b - a) * part
        return [(place(x, xs, left, right), place(y, ys, bottom, top))
                for x, y in points]

    def near(self, found, expected):
        self.assertEqual(len(found), len(expected))
        for (x, y), (u, v) in zip(found, expected):
            self.assertAlmostEqual(x, u, delta=0.02)
            self.assertAlmostEqual(y, v, delta=0.02)

    def test_plot(self):
        out = self.lua("shell.plot(nacre.tensor{0, 1, 4, 9, 2},"
                       " {file = 'a.svg', title = 'a < b & \"c\"\\n'})")
        self.assertRegex(out, r"^a\.svg: [\d.]+ KiB\n$")
        root = self.svg("a.svg")
        self.assertEqual((root.get("width"), root.get("height")),
                         ("800", "480"))
        self.assertIn('a < b & "c" ', self.texts(root))
        values = list(enumerate([0, 1, 4, 9, 2], 1))
        self.near(self.curves(root)[0],
                  self.expected(self.frame(root), values))

    def test_numbers_of_axes(self):
        # each label is near the value that it stands for, and there once
        for low, high in ((100000, 100001), (1e12, 1e12 + 100),
                          (258123.25, 258123.75), (-0.5, 0.5), (0, 1e-7),
                          (123456.7, 123456.9), (-3, 1e6)):
            self.session("x = nacre.linspace(%r, %r, 9, {dtype = 'float64'})\n"
                         ":plot x x -o n.svg\n:heat x:view(3, 3) -o h.svg\n"
                         % (low, high))
            labels = [float(t) for t in self.texts(self.svg("n.svg"))
                      if re.match(r"-?[\d.]+(e[-+]\d+)?$", t or "")]
            self.assertGreaterEqual(len(labels), 4)
            room = (high - low) * 0.02
            self.assertTrue(all(low - room <= v <= high + room
                                for v in labels), labels)
            for v in labels: # of x and of y
                self.assertLessEqual(labels.count(v), 2, labels)
            ends = [float(t) for t in self.texts(self.svg("h.svg"))
                    if re.match(r"-?[\d.]+(e[-+]\d+)?$", t or "")][-2:]
            self.assertGreater(abs(ends[1] - ends[0]), room, ends)

    def test_gaps_and_several(self):
        out = self.session("x = nacre.tensor{1, 2, 4, 8}\n"
                           "y = nacre.tensor{1, 0/0, 3, 4}\n"
                           ":plot x y y*2 -o b.svg\n")
        self.assertIn("! 2 not finite, left out", out)
        root = self.svg("b.svg")
        first, second = self.curves(root)
        self.assertEqual(len(first), 3)
        d = [p.get("d") for p in root.iter(SVG + "path")
             if p.get("stroke-linejoin")][0]
        self.assertEqual((d.count("M"), d.count("L")), (2, 1))
        self.assertEqual({"y", "y*2"} - set(self.texts(root)), set())
        self.near(second, self.expected(
            self.frame(root), [(1, 2), (4, 6), (8, 8), (1, 1)])[:3])

    def test_log_axis(self):
        self.session("y = nacre.tensor{1, 10, 1000}\n:plot y -y log -o c.svg\n")
        root = self.svg("c.svg")
        self.near(self.curves(root)[0], self.expected(
            self.frame(root), [(1, 0), (2, 1), (3, 3)]))
        self.assertEqual({"1", "10", "100", "1000"} - set(self.texts(root)),
                         set())

    def test_function(self):
        self.session(":plot math.exp -1 1 -o d.svg\n")
        root = self.svg("d.svg")
        points = self.curves(root)[0]
        self.assertGreater(len(points), 500)
        self.assertIn("math.exp", self.texts(root))
        left, top, right, bottom = self.frame(root)
        # exp(0) lies (1 - 1/e) / (e - 1/e) of the way up
        middle = min(points, key=lambda p: abs(p[0] - (left + right) / 2))
        self.assertAlmostEqual((bottom - middle[1]) / (bottom - top), 0.26894,
                               delta=0.001)

    def test_scatter(self):
        points = [(3, 1), (1, 2), (2, -5)]
        self.session("m = nacre.tensor{{3, 1}, {1, 2}, {2, -5}}\n"
                     ":scatter m -o e.svg\n:scatter m[{{}, 1}] m[{{}, 2}] "
                     "-o f.svg\n")
        for name in "e.svg", "f.svg":
            root = self.svg(name)
            self.near(self.curves(root)[0],
                      self.expected(self.frame(root), points))
            d = [p.get("d") for p in root.iter(SVG + "path")
                 if p.get("stroke-linejoin")][0]
            self.assertEqual(d.count("L"), 0)

    def test_scatter_of_many(self):
        out = self.session(":scatter nacre.randn(50000,2) -o g.svg\n")
        self.assertIn("~ a sample of 16667 of 50000", out)
        self.assertEqual(len(self.curves(self.svg("g.svg"))[0]), 16667)

    def test_histogram(self):
        self.session("x = nacre.tensor{1, 1, 1, 2, 2, 5}\n:hist x -o h.svg\n"
                     ":hist x/2 2 -o i.svg\n")
        for name, counts in ("h.svg", [3, 2, 0, 0, 1]), ("i.svg", [5, 1]):
            root = self.svg(name)
            left, top, right, bottom = self.frame(root)
            bars = [float(r.get("height")) for r in root.iter(SVG + "rect")
                    if r.get("fill") == "#0072b2"]
            self.assertEqual(len(bars), len(counts))
            for bar, n in zip(bars, counts):
                self.assertAlmostEqual(bar, (bottom - top) * n / max(counts),
                                       delta=0.02)

    def test_heat(self):
        self.session(":heat nacre.tensor{{0, 1, 1}, {0/0, 2, 0}} -o j.svg\n")
        root = self.svg("j.svg")
        cells = {}
        for p in root.find(SVG + "g").iter(SVG + "path"):
            for x, y, n in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\3z",
                                      p.get("d")):
                for k in range(int(n)):
                    cells[int(x) + k, int(y)] = p.get("fill")
        self.assertEqual(sorted(cells), [(0, 0), (1, 0), (1, 1), (2, 0),
                                         (2, 1)])
        self.assertEqual(cells[0, 0], "#440154")
        self.assertEqual(cells[2, 1], cells[0, 0])
        self.assertEqual(cells[1, 1], "#fde725")
        self.assertEqual(cells[1, 0], cells[2, 0])
        self.assertNotIn(cells[1, 0], (cells[0, 0], cells[1, 1]))

    def test_names(self):
        out = self.session("x = nacre.ones(3)\n:plot x -o k.jpg\n"
                           ":hist x -o nosuch/k.svg\n:plot x*0/0 -o k.svg\n")
        self.assertIn("error: a picture is written as .svg or .png, k.jpg is "
                      "neither\n", out)
        self.assertIn("error: cannot write nosuch/k.svg: ", out)
        self.assertIn("error: no finite value\n", out)
        self.assertEqual(self.lua("print(pcall(shell.heat, nacre.eye(2), "
                                  "{file = 'k'}))"),
                         "false\ta picture is written as .svg or .png, k is "
                         "neither\n")

    # ---- PNG

    def test_without_librsvg(self):
        out = self.session(":plot nacre.ones(3) -o l.png\n", NACRE_RSVG="none")
        self.assertIn("error: a picture in a PNG file needs librsvg", out)

    def test_png(self):
        code = "shell.heat(nacre.eye(2), {file = 'm.png'})"
        # what librsvg draws text with keeps its fonts until the end
        leaks = "print_suppressions=0:suppressions=" + self.file(
            "leaks", "leak:libfontconfig\n")
        status, _, err = self.run_("-e", code, LSAN_OPTIONS=leaks)
        if "needs librsvg" in err:
            self.skipTest("librsvg is not installed")
        self.assertEqual((status, err), (0, ""))
        out = self.lua("""
            local img = nacre.readpng "m.png"
            print(table.concat(img:size(), "x"))
            local function seen(r, g, b)
              return (img[1]:eq(r) & img[2]:eq(g) & img[3]:eq(b)):sum():item()
            end
            print(seen(0x44, 0x01, 0x54), seen(0xfd, 0xe7, 0x25))""")
        size, counts = out.split("\n")[:2]
        self.assertEqual(size, "3x960x1600")
        low, high = map(int, counts.split())
        # two squares each, and a 64th of the bar, which blends at its edges
        self.assertGreater(low, 100000)
        self.assertLess(abs(low - high), 5000)


if __name__ == "__main__":
    launch.main()
