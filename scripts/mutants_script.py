# SPDX-License-Identifier: BSD-3-Clause
"""Lies in Python and JavaScript: wrong values, fields, units and formats, negated conditions, missing calls.

As in C, all lies of a file are inserted at once and are inactive behind `_lie(ID)` and `crema_lie(ID)`. A browser has no
environment: it gets the id from its user agent (scripts/mutate sets it).
"""
import ast
import re
from typing import NamedTuple

from mutants import QUANTITY, Lie, squeeze


class Spot(NamedTuple):
    """A piece of the text, and a lie about it; in the template @@ is the original text, $$ the id."""
    at: int
    end: int
    kind: str
    new: str
    template: str


class Script:
    places = ()  # places that a compiler might reject: none

    def __init__(self, file, text):
        self.file, self.text, self.spots = file, text, []

    def add(self, at, end, kind, new, template):
        self.spots.append(Spot(at, end, kind, new.replace("@@", squeeze(self.text[at:end])), template))

    def most(self):
        return len(self.spots)

    def planted(self, first):
        told, inner = {}, {}
        for number, spot in enumerate(sorted(self.spots), first):
            line = self.text.count("\n", 0, spot.at) + 1
            start, stop = self.text.rfind("\n", 0, spot.at) + 1, self.text.find("\n", spot.at)
            old = squeeze(self.text[start:stop])
            told[number] = Lie(self.file, line, spot.kind, f"{old} @{spot.at - start}" if len(old) > 60 else old, spot.new)
            inner.setdefault((spot.at, spot.end), []).append(spot.template.replace("$$", str(number)))

        def render(at, end, spans):
            pieces, i = [], 0
            while i < len(spans):
                span = spans[i]
                rest = [s for s in spans[i + 1:] if s[0] < span[1]]
                piece = render(*span, rest)
                for template in inner[span]:
                    piece = template.replace("@@", piece)
                pieces.append(self.text[at:span[0]] + piece)
                at, i = span[1], i + 1 + len(rest)
            return "".join(pieces) + self.text[at:end]

        return self.awake(render(0, len(self.text), sorted(inner, key=lambda s: (s[0], -s[1])))), told


class PythonSource(Script):
    """Values that are returned, assigned, added or passed; conditions; numbers in comparisons and expressions."""

    def __init__(self, file, text):
        super().__init__(file, text)
        self.starts = [0]
        for line in text.splitlines(True):
            self.starts.append(self.starts[-1] + len(line))
        self.visit(ast.parse(text))

    def visit(self, node):
        if isinstance(node, (ast.Return, ast.AugAssign)) and node.value is not None:
            self.value(node.value)
        elif isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Tuple) and node.col_offset:
            self.value(node.value)
        elif isinstance(node, ast.Dict):
            for value in node.values:
                self.value(value)
        elif isinstance(node, (ast.If, ast.IfExp)):
            self.spot(node.test, "negate", "not (@@)", "((@@) if not _lie($$) else not (@@))")
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                self.spot(test, "negate", "not (@@)", "((@@) if not _lie($$) else not (@@))")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self.spot(node.value, "drop", "(left out)", "(None if _lie($$) else @@)")
        elif isinstance(node, (ast.BinOp, ast.Compare)):
            for side in (getattr(node, "left", None), getattr(node, "right", None), *getattr(node, "comparators", ())):
                if isinstance(side, ast.Constant) and isinstance(side.value, (int, float)):
                    self.spot(side, "one", "@@ + 1", "(@@ + _lie($$))")
        if not isinstance(node, (ast.JoinedStr, ast.Raise)):  # positions inside an f-string are wrong before Python 3.12
            for child in ast.iter_child_nodes(node):
                self.visit(child)

    def value(self, node):
        if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, str)):
            return
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            self.spot(node, "negate", "not @@", "(@@ ^ _lie($$))")
        elif not isinstance(node, (ast.Lambda, ast.JoinedStr, ast.Await, ast.Yield)):
            self.spot(node, "constant", "0", "(0 if _lie($$) else @@)")
            self.spot(node, "one more", "@@ with one more", "(_more(@@) if _lie($$) else @@)")

    def place(self, line, column):
        """The offset of a line and a column in bytes."""
        start = self.starts[line - 1]
        return start + len(self.text[start:self.starts[line]].encode()[:column].decode())

    def spot(self, node, *lie):
        if node.lineno == node.end_lineno:
            self.add(self.place(node.lineno, node.col_offset), self.place(node.end_lineno, node.end_col_offset), *lie)

    def awake(self, text):
        helper = ("import os as _os; _lie = lambda i: _os.environ.get('CREMA_TEST_LIE') == str(i); _more = lambda v: "
                  "v + 1 if isinstance(v, (int, float)) else v * 2 if isinstance(v, (str, list, tuple)) else not v; ")
        first = next(node for node in ast.parse(text).body if not isinstance(node, ast.Expr))
        lines = text.splitlines(True)
        lines[first.lineno - 1] = helper + lines[first.lineno - 1]
        return "".join(lines)


# Not numbers: positions and sizes on the screen, the focus, themes, times between requests.
LAYOUT = re.compile(r"[wW]idth|height|opacity|left|right|bottom|narrow|dash|\barea\b|\brow \*|px\b|padStart|\bfit\(|perLetter|tabindex|POLL|theme|focus|scroll|open|"
                    r"\bactive\b|slice\(|letters|cursors|stroke|\"r\"|toFixed\(1\)|Math\.max\(2,|\+ 13|\+ 6\)|\bi \* line|steps|\btail\b|ticks\(|tickSize|nice\(|\.has\(|strip\b")


def code_of(text):
    """The same text with comments, strings, regular expressions and the fixed text of templates blank."""
    out, stack, at = list(text), [], 0
    ends = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
    regex = re.compile(r"/(?![*/])(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\[\n])+/[a-z]*")

    def blank(a, b):
        for i in range(a, b):
            out[i] = out[i] if out[i] == "\n" else "_"

    def template(at):
        """Blanks the fixed text from here to the end of the template or to the next ${."""
        stop = re.compile(r"(?:\\.|[^`\\$]|\$(?!\{))*", re.S).match(text, at).end()
        blank(at, stop)
        if text[stop] == "$":
            stack.append("}")
            return stop + 2
        return stop + 1

    while at < len(text):
        found = ends.match(text, at) or ("".join(out[:at]).rstrip()[-1:] in "(,=:[!&|?{};" and regex.match(text, at)) or None
        if found:
            quote = text[at] in "\"'"
            blank(at + quote, found.end() - quote)
            at = found.end()
        elif text[at] == "`":
            at = template(at + 1)
        elif text[at] == "}" and stack and stack.pop() == "}":
            at = template(at + 1)
        else:
            if text[at] == "{":
                stack.append("{")
            at += 1
    return "".join(out)


class JavaScriptSource(Script):
    """Fields, formats and numbers in statements that display something; conditions; calls that draw."""

    def __init__(self, file, text):
        super().__init__(file, text)
        self.code = code_of(text)
        self.fields = sorted({f for f in re.findall(r"\.([a-z]+(?:_[a-z]+)+)\b(?!\()", self.code) if QUANTITY.search(f)})
        self.formats = sorted(set(re.findall(r"\bas\.(\w+)\b", self.code)) | {"count", "bytes", "seconds"})
        self.starts = [m.start() for m in re.finditer("^", text, re.M)]
        for m in re.finditer(r"\b[A-Za-z_]\w*(?:\.\w+)*\.([a-z]+(?:_[a-z]+)+)\b(?!\s*(?:\(|=[^=]))", self.code):
            others = [f for f in self.fields if f != m[1] and f.rpartition("_")[2] == m[1].rpartition("_")[2]] or self.fields
            if QUANTITY.search(m[1]):
                other = m[0][:-len(m[1])] + others[sum(map(ord, m[0])) % len(others)]
                self.add(m.start(), m.end(), "swap", other, f"(crema_lie($$) ? {other} : @@)")
        for m in re.finditer(r"\bas\.(\w+)\b", self.code):
            others = [f for f in self.formats if f not in (m[1], "text")]
            other = f"as.{others[m.start() % len(others)]}"
            self.add(*m.span(), "unit", other, f"(crema_lie($$) ? {other} : @@)")
        for m in re.finditer(r"(?<![\w.$])\d[\d_]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w.])", self.code):
            self.number(m)
        for m in re.finditer(r"\bif \(", self.code):
            self.condition(m.end(), self.closing(m.end() - 1))
        for m in re.finditer(r"(?<!\?)\?(?![.?])", self.code):
            at = self.opening(m.start())
            if self.code.startswith("for (", at):
                continue
            self.condition(at, at + len(self.code[at:m.start()].rstrip()))
        for m in re.finditer(r"\bshare\((?=\w)", self.code):
            if "function" not in self.code[m.start() - 9:m.start()]:
                self.add(m.start(), m.end() - 1, "swap", "whole / part", "(crema_lie($$) ? (p, w) => @@(w, p) : @@)")
        for m in re.finditer(r"(?<=[;{}]\n)[ ]+(?=(?:box|series|names|words|more|svg|node)\.(?:append|push|replaceChildren)\(|\w+Chart\(|drawHead)", self.code):
            end = self.code.find(";", m.end())
            self.add(m.end(), max(end, m.end()), "drop", "(left out)", "if (!crema_lie($$)) @@")

    def line(self, at):
        start = self.text.rfind("\n", 0, at) + 1
        return self.text[start:self.text.find("\n", at)]

    def closing(self, at):
        depth = 0
        for i in range(at, len(self.code)):
            depth += (self.code[i] in "([{") - (self.code[i] in ")]}")
            if not depth:
                return i
        return len(self.code)

    def opening(self, at):
        """The start of the condition before this ?."""
        depth = 0
        for i in range(at - 1, -1, -1):
            c = self.code[i]
            if c == "}" and not depth and self.code[i + 1] == "\n":
                return i + 1 + len(self.code[i + 1:at]) - len(self.code[i + 1:at].lstrip())  # a block before the statement
            if c in ")]}":
                depth += 1
            elif c in "([{" and depth:
                depth -= 1
            elif not depth and (c in "([{,;:" or self.code[i:i + 2] == "? " or self.code[i - 1:i + 1] == "=>" or
                                (c == "=" and self.code[i - 1] not in "=!<>" and self.code[i + 1] not in "=>") or
                                self.code[max(i - 6, 0):i + 1] == "return "):
                return i + 1 + len(self.code[i + 1:at]) - len(self.code[i + 1:at].lstrip())
        return 0

    def number(self, m):
        """A number in a statement with layout words is a position."""
        piece = self.text[max(m.start() - 40, self.text.rfind("\n", 0, m.start()) + 1):m.end() + 25]
        if LAYOUT.search(piece) or re.search(r"\[\s*$", self.code[:m.start()]) and m[0] not in "01":
            return
        if "e" in m[0] or len(m[0]) > 3:
            self.add(*m.span(), "x 1000", "1000 * @@", "(@@ * (crema_lie($$) ? 1000 : 1))")
        else:
            self.add(*m.span(), "one", "@@ + 1", "(@@ + (crema_lie($$) ? 1 : 0))")

    def condition(self, at, end):
        if not LAYOUT.search(self.text[at:end]) and "crema" not in self.text[at:end]:
            self.add(at, end, "negate", "!(@@)", "(crema_lie($$) ? !(@@) : (@@))")

    def awake(self, text):
        if not self.file.endswith("page_format.js"):  # the first file of the page's script
            return text
        return text + ("function crema_lie(id) { crema_lie.told ??= Number((/ lie=(-?\\d+)/.exec(navigator.userAgent) || [0, -1])[1]); "
                       "return crema_lie.told === id; }\n")
