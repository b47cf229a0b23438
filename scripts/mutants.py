# SPDX-License-Identifier: BSD-3-Clause
"""Small mutations ("lies") of the sources: finds them, and writes the same source with all of them, inactive.

A lie is a wrong number: a constant, another field, one more, a wrong unit, a negated condition, a missing
statement. All lies of a file are compiled at once, each behind `crema_lie(ID)`, which is true for the one whose id is
in the environment (CREMA_TEST_LIE, which agents inherit). So there is one build for all lies, and the active one is chosen at run time.

Only statements about quantities are considered (QUANTITY), not capacities, error paths and logging.
"""
import re
from dataclasses import dataclass

QUANTITY = re.compile(
    r"bytes|calls|(?<![a-z])ns(?![a-z])|seconds|events|entries|count|wall|cpu|rss|executing|ready|last_seen|first_seen|"
    r"requests|retries|attempts|chunks|tasks|workers|threads|cores|ratio|rate|share|percent|total|mean|median|peak|"
    r"wait|latency|pages|spill|memory|CREMA_[CT]_|tally|own\b|pool\b")
INFRASTRUCTURE = re.compile(
    r"\blog_|\bwarn|stderr|\berrno\b|\bfree\(|alloc\(|release\(|\bclose\(|memset|timeout|TIMEOUT|\bcap\b|_MAX\b|"
    r"no_memory|->error\b|assert|deadline|sizeof|-E[A-Z]{3,}|ARRAY_|\block\b|unlock|buf_|\blen\b|_init\(|errors?_|snprintf|strlen|\brc\b")
TIME = re.compile(r"_ns\b|_ms\b|seconds|time|utc|wall|cpu|rss|(?<![a-z])now\b|clock|wait|since|start|stop")
PREFIX = r"""#ifndef CREMA_LIE_H
#define CREMA_LIE_H
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((weak, visibility("hidden"))) int crema_lie_told = -1;
__attribute__((weak, visibility("hidden"))) unsigned char *crema_lie_reached;
__attribute__((weak, visibility("hidden"), constructor)) void crema_lie_choose(void)
{
	const char *told = getenv("CREMA_TEST_LIE"), *path = getenv("CREMA_TEST_LIE_REACHED");
	long fd, at;

	crema_lie_told = told ? (int)strtol(told, NULL, 10) : -1;
	if (!path || crema_lie_reached)
		return;
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
	at = fd < 0 ? -1 : syscall(SYS_mmap, NULL, 1L << 17, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
	if (fd >= 0)
		syscall(SYS_close, fd);
	if (at > 0)
		crema_lie_reached = (unsigned char *)at;
}
static inline int crema_lie(int id)
{
	if (__builtin_expect(crema_lie_reached != NULL, 0))
		crema_lie_reached[id] = 1;
	return __builtin_expect(crema_lie_told == id, 0);
}
#endif
"""


@dataclass
class Lie:
    """`old` and `new` are the statement without and with it."""
    file: str
    line: int
    kind: str
    old: str
    new: str
    nth: int = 0  # among equal lies in this file

    @property
    def key(self):
        return f"{self.file} | {self.kind} | {self.old}" + (f" | {self.nth}" if self.nth else "")


@dataclass
class Place:
    """A piece of the text and its lies, by form: [(kind, new, expression)]. The first form is tried first; if it does
    not compile, the next one is tried. In the expression @@ is the original text, $$ the id."""
    at: int
    end: int
    line: int
    last: int
    name: tuple  # the text, and the number of equal texts before it
    forms: list
    form: int = 0


def masked(text):
    """The same text with comments, strings and preprocessor lines blank."""
    def blank(m):
        word = m.group()
        return word[0] + re.sub(r"[^\n]", "_", word[1:-1]) + word[-1] if word[0] in "\"'" else re.sub(r"[^\n]", " ", word)

    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*', blank, text,
                  flags=re.S | re.M)


def closing(code, at):
    """The end of the bracket that opens at `at`."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] in "([{") - (code[i] in ")]}")
        if depth == 0:
            return i
    return len(code)


def statements(code, at, end):
    """(kind, at, end) of conditions and simple statements between two positions."""
    while at < end:
        found = re.compile(r"\s+|[{};]|(?:else|do)\b|case\b[^:]*:|\w+\s*:(?!:)").match(code, at, end)
        if found:
            at = found.end()
            continue
        found = re.compile(r"(if|while|for|switch)\s*\(").match(code, at, end)
        if found:
            close = closing(code, found.end() - 1)
            if found.group(1) in ("if", "while"):
                yield "condition", found.end(), close
            at = close + 1
            continue
        stop = at
        while stop < end and code[stop] != ";":
            stop = closing(code, stop) if code[stop] in "([{" else stop
            stop += 1
        yield "statement", at, stop
        at = stop + 1


def top_level(text, characters):
    depth = 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if depth == 0 and c in characters:
            return i
    return -1


def is_truth(text):
    """A comparison stored as an int: a thousand times its value is still just true."""
    for _ in range(text.count("(") + text.count("[")):
        text = re.sub(r"\([^()\[\]]*\)|\[[^()\[\]]*\]", "_", text)
    return "?" not in text and bool(re.match(r"!", text) or re.search(r"&&|\|\||[=!<>]=|(?<![<>-])[<>](?![<>])", text))


def squeeze(text):
    return re.sub(r"\s+", " ", text).strip()


class CSource:
    def __init__(self, file, text):
        self.file, self.text, self.code = file, text, masked(text)
        self.members = sorted(set(re.findall(r"->(\w+)(?!\w*\()", self.code)))
        self.counters = sorted(set(re.findall(r"\bCREMA_[CT]_\w+", self.code)))
        self.places = []
        for body in re.finditer(r"^\{\n(.*?)^\}", self.code, re.S | re.M):
            head = self.code[:body.start()].rstrip().rpartition("\n\n")[2]
            self.returns = "bool" if re.match(r"[^(]*\bbool\b", head) else "pointer" if re.match(r"[^(]*\*", head) else "number"
            self.body, self.head = body.group(), head.partition("(")[0]
            for kind, at, end in statements(self.code, body.start(1), body.end(1)):
                self.consider(kind, at, end)

    def consider(self, kind, at, end):
        text, code = self.text[at:end], self.code[at:end]
        about = text + self.head if code.startswith("return ") else text
        if not QUANTITY.search(about) or INFRASTRUCTURE.search(text) or "#" in text:
            return
        if kind == "condition":
            if not re.search(r"\w\s*=\s*[^=]", code):
                self.add(at, end, [[("negate", f"!({squeeze(text)})", "!!(@@) ^ crema_lie($$)")]])
        elif code.startswith("return ") and len(code) > 7:
            self.expression(at + 7, end, "return ", None, {"bool": 1, "pointer": 2}.get(self.returns, 0))
        elif not re.match(r"(static|return|goto|break|continue|typedef|extern|struct \w+ \{)", code):
            self.simple(at, end, text, code)

    def simple(self, at, end, text, code):
        declared = re.match(r"(?:(?:const|unsigned|struct|enum)\s+)*\w+[\s*]+(\w+)\s*=\s*", code)
        assigned = re.match(r"([\w.>()*&-]+(?:\[[^;=]*?\][\w.>-]*)*)\s*([-+|]?=)(?!=)\s*", code)
        call = re.match(r"\w+\(", code)
        found = declared or assigned
        if found:
            if top_level(code[found.end():], ",{") < 0:
                self.expression(at + found.end(), end, squeeze(text[:found.end()]) + " ", found.group(1), 0)
        elif call and closing(code, call.end() - 1) == len(code) - 1:
            self.arguments(at + call.end(), at + len(code) - 1, text[:call.end()])
            self.add(at, end + 1, [[("drop", "(left out)", "{ if (!crema_lie($$)) @@ }")]])
        elif re.fullmatch(r"[\w.>\[\]-]+(\+\+|--)", code):
            self.add(at, end + 1, [[("drop", "(left out)", "{ if (!crema_lie($$)) @@ }")]])

    def arguments(self, at, end, name):
        """The last argument of a call that passes on a number; an atomic's memory order follows it, and its display
        format (a unit, AS_BYTES) is not a number."""
        end -= len(self.code[at:end]) - len(re.sub(r",\s*__ATOMIC_\w+\s*$", "", self.code[at:end]))
        if name.startswith("value_number(") or not re.search(r"emit|pack|put|add|count|page_|set|kv|value|credit|_see\b", name):
            return  # value_number() checks its argument; without the flag that it sets the rest is undefined
        commas, depth = [at - 1], 0
        for i in range(at, end):
            depth += (self.code[i] in "([{") - (self.code[i] in ")]}")
            commas += [i] if self.code[i] == "," and not depth else []
        if len(commas) > 1 and re.fullmatch(r'\s*(AS_\w+|"[^"]*")', self.code[commas[-1] + 1:end]):
            end = commas.pop()
        start = commas[-1] + 1
        start += len(self.code[start:end]) - len(self.code[start:end].lstrip())
        if start == end:
            return  # a call without arguments
        if not re.fullmatch(r"[jve]|pk|NULL|\"[^\"]*\"|&?\w{1,2}", self.code[start:end]):
            self.expression(start, end, f"{squeeze(name)}... ", None, 0)

    def expression(self, at, end, before, target, form):
        text = squeeze(self.text[at:end])
        literal = re.fullmatch(r"[\d.]+[uUlL]*|true|false|NULL|NAN|\(double\)NAN", text)
        named = re.fullmatch(r"[A-Z][A-Z_0-9]*", text)  # a name from a list: not replaced by 0 or a thousand times it
        timed = TIME.search(before + text)
        unit, far = ("x 1000", "1000 * ({})") if len(text) % 2 else ("/ 1024", "({}) / 1024")
        scale = "* (crema_lie($$) ? 1000 : 1)" if len(text) % 2 else "/ (crema_lie($$) ? 1024 : 1)"
        swaps = self.swaps(text)
        if literal and text in ("true", "false"):
            forms = [[("negate", f"!{text}", "crema_lie($$) ^ (@@)")]]
        elif re.fullmatch(r"(?:\w[\w.>-]* = )*(NULL|NAN|\(double\)NAN|value_null\(\))", text) or text[0] == '"' or re.search(r"[^=!<>]= 0$", text):
            return  # not a number; an error message; a = b = 0
        elif before == "return " and re.search(r"\bby_\w+$", self.head):
            forms = [[("constant", "0", "crema_lie($$) ? 0 : (@@)")]]  # only the sign of a comparison matters
        elif literal or named:
            forms = [[("one", f"{text} + 1", "(@@) + crema_lie($$)")]]
        else:
            const = ("constant", "0", "crema_lie($$) ? (__typeof__(@@)){0} : (@@)")
            verdict = re.fullmatch(r"draft_\w+\(.*\)", text)
            number = [] if is_truth(text) else [(unit, far.format(text), "(@@) " + scale)]
            if not timed:
                number.append(("one", f"{text} + 1", "(@@) + crema_lie($$)"))
            is_bool = f"__builtin_types_compatible_p(__typeof__({target or '(' + text + ')'}), _Bool)"
            check, bool_check = (("", "", f'({{ _Static_assert({sign}{is_bool}, "type"); (@@); }})') for sign in ("!", ""))
            negate = [("negate", f"!({text})", "!(@@) ^ !crema_lie($$)"), *([] if form == 1 else [bool_check])]
            numeric = [*swaps, const, *number]
            forms = [[*numeric, check], [const, *number, check], negate, [const]] if not verdict else [[const]]
            if re.search(r"[<>=!]=|&&|\|\|", text) and not re.search(r"[?({]", text):
                forms = [negate[:1]]
            forms = forms[{1: 2, 2: 3}.get(form, 0):] if len(forms) == 4 else forms
        self.add(at, end, [[(k, f"{before}{n}" if k else "", x) for k, n, x in form] for form in forms])

    def swaps(self, text):
        """Replaces a field by another one of the same struct, or a counter by another one."""
        for names, pattern in ((self.counters, r"\bCREMA_[CT]_\w+"), (self.members, r"(?<=->)\w+\b(?!\()")):
            found = list(re.finditer(pattern, text))
            for m in found[-1:]:
                prefix = m.group()[:8] if names is self.counters else ""
                others = [n for n in names if n != m.group() and n.startswith(prefix) and QUANTITY.search(n) and
                          (prefix or n.rpartition("_")[2] == m.group().rpartition("_")[2] or f"->{n}" in self.body)]
                if not others or not QUANTITY.search(m.group()):
                    continue
                other = others[sum(map(ord, text)) % len(others)]
                new = text[:m.start()] + other + text[m.end():]
                return [("swap", new, f"crema_lie($$) ? ({new}) : (@@)")]
        return []

    def add(self, at, end, forms):
        text = squeeze(self.text[at:end])
        line, last = (self.text.count("\n", 0, i) + 1 for i in (at, end))
        self.places.append(Place(at, end, line, last, (text, sum(p.name[0] == text for p in self.places)), forms))

    def most(self):
        return sum(max(map(len, place.forms)) for place in self.places)

    def failed(self, line):
        """The compiler rejected this line: the places on it take their next form. [(statement, which, form it had)]"""
        hit = [p for p in self.places if p.line <= line <= p.last and p.form < len(p.forms)]
        for place in hit:
            place.form += 1
        return [(*p.name, p.form - 1) for p in hit]

    def planted(self, first):
        """(text, {id: lie}); a place keeps its ids in every form, so that no other file must be compiled again."""
        told, out, inner, number = {}, self.text, {}, first
        for place in self.places:
            old = squeeze(out[out.rfind("\n", 0, place.at) + 1:place.end])
            form = place.forms[place.form] if place.form < len(place.forms) else ()
            for i, (kind, new, template) in enumerate(form):
                if kind:
                    told[number + i] = Lie(self.file, place.line, kind, old, new)
                inner.setdefault((place.at, place.end), []).append(template.replace("$$", str(number + i)))
            number += max(map(len, place.forms))
        spans = sorted(inner, key=lambda s: (s[0], -s[1]))

        def render(at, end, todo):
            """The text between the two positions, with the places of `todo`, of which outer ones come first."""
            pieces, i = [], 0
            while i < len(todo):
                span, rest = todo[i], [s for s in todo[i + 1:] if s[0] < todo[i][1]]
                piece = render(*span, rest)
                lines = piece.count("\n")  # keeps the number of lines, by which the compiler reports errors
                piece = piece.replace("\n", " ")
                for word in inner[span]:
                    piece = word.replace("@@", piece)
                    if "if (!crema_lie" not in word:
                        piece = f"({piece})"
                pieces.append(out[at:span[0]] + piece + "\n" * lines)
                at, i = span[1], i + 1 + len(rest)
            return "".join(pieces) + out[at:end]

        return render(0, len(out), spans), told


def numbered(lies):
    """Numbers equal lies in a file."""
    seen = {}
    for lie in lies:
        base = (lie.file, lie.kind, lie.old)
        lie.nth = seen[base] = seen.get(base, -1) + 1
    return lies
