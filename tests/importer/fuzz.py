#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares `tickmark check` with candle-graph's own importer on texts that nobody would write.

    tests/importer/fuzz.py [--seconds N | --cases N] [--seed N]

Texts are the oracle files and records made from the importer's own tables, both mangled: bytes, tokens,
members, forms; some have windows, and a capture line that makes them tickmark's own. Each goes to the Rust
program and to tmk_check_memory(), built here with address and undefined-behaviour sanitizers, which are all
that watches tmk_check_windows() here: its rules must never change the verdict. Prints every text on which they differ; exit status 1 if there is one.
The same seed and number of cases give the same texts. Without cargo it says so and exits 77.
"""

import argparse
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from importer_tool import TOP, Importer, batch_verdicts  # noqa: E402

BUILD = pathlib.Path(os.environ.get("TMK_BUILD", TOP / "build")).resolve()

CHECK_SOURCES = ["runtime3/check.c", "runtime3/record.c", "runtime3/record_tables.c", "runtime3/json.c",
                 "runtime3/text.c", "runtime3/event_ids.c", "runtime3/check_windows.c",
                 "runtime3/window_claims.c", "runtime3/window_facts.c", "base/report.c"]


def check_build():
    """tmk_check_memory() as a batch program, with sanitizers."""
    program = BUILD / "tests" / "check_batch"
    program.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [os.environ.get("CC", "cc"), "-std=gnu11", "-O1", "-g", "-D_GNU_SOURCE",
         "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
         f"-I{TOP}/include", f"-I{TOP}/user", "-o", program, TOP / "tests/importer/batch.c",
         *(TOP / "user" / source for source in CHECK_SOURCES)], check=True)
    return [program]


# The importer's structs: (name, type, required), in its order.
RUN = [("entrypoint", "str", 1), ("profile", "str", 1), ("cargo_features", "strs", 0),
       ("cfg", "strs", 0), ("analysis_id", "str?", 0), ("build_id", "str?", 0), ("phase", "str?", 0)]
RECORDS = {
    "meta": [("schema", "schema", 1)] + RUN,
    "tensor": [("event_id", "id", 1), ("static_id", "str?", 0), ("source", "str?", 0),
               ("step", "u64?", 0), ("shape", "usizes", 1), ("dtype", "str", 1),
               ("device", "str", 1), ("contiguous", "bool", 1), ("requires_grad", "bool", 1),
               ("storage_id", "str?", 0)],
    "operation": [("event_id", "id", 1), ("op", "str", 1), ("static_id", "str?", 0),
                  ("source", "str?", 0), ("inputs", "strs", 0), ("output", "str?", 0),
                  ("step", "u64?", 0), ("duration_ns", "u64?", 0)],
    "gradient": [("event_id", "id", 1), ("root", "str", 1), ("key", "str", 1),
                 ("state", "state", 1), ("step", "u64?", 0), ("norm", "f64?", 0)],
    "value": [("event_id", "id", 1), ("static_id", "str?", 0), ("source", "str?", 0),
              ("step", "u64?", 0), ("min", "f64", 1), ("max", "f64", 1), ("abs_max", "f64", 1),
              ("nonfinite_count", "u64", 0), ("saturated_count", "u64", 0)],
    "edge_timing": [("event_id", "id", 1), ("from_static_id", "str", 1), ("to_static_id", "str", 1),
                    ("duration_ns", "u64", 1), ("step", "u64?", 0)],
}
SECTIONS = {"tensors": "tensor", "operations": "operation", "gradients": "gradient",
            "values": "value", "edge_timings": "edge_timing"}
NAMES = sorted({name for members in RECORDS.values() for name, _, _ in members}
               | set(SECTIONS) | {"kind", "run", "window", "capture", "unfinished", "start_ns", "stream",
                                  "named", ""})

# tickmark's own "window", beside its id.
WINDOW_NUMBERS = ["start_ns", "end_ns", "duration_ns", "error", "depth", "parent", "overlaps", "operations",
                  "idle_ns"]
WINDOW_WORDS = [("method", ["system", "device", ""]),
                ("status", ["closed", "abandoned", "not_measured", "failed", "open", "shut"]),
                ("reason", ["program", "backend", "detached", "exec"])]

STRINGS = ['""', '"a"', '"b"', '"\\u0061"', '"\\n\\t\\b\\f\\r\\/\\\\\\""', '"\\ud83d\\ude00"', '"é"',
           '"\U0001f600"', '"\u2028"', '"\x7f"', '"\\u0000"', '"\\uD800"', '"\\udc00"', '"\\ud800\\u0041"',
           '"\\ud800\\ud800\\udc00"', '"\\x41"', '"\\u12"', '"\\u12g4"', '"\t"', '"\x00"', '"present"',
           '"operation"', '"\\u006fperation"', '"unterminated', "'single'", '"' + "z" * 70 + '"']
NUMBERS = ["0", "1", "-1", "-0", "0.0", "-0.0", "1.0", "1e3", "1E+3", "1e-3", "00", "01", "+1", ".5", "1.",
           "1.e3", "1e", "1e+", "-", "0x1", "NaN", "Infinity", "18446744073709551615",
           "18446744073709551616", "18446744073709551614.5", "1844674407370955161.5",
           "1844674407370955161.6", "18446744073709551615.0", "9223372036854775808",
           "-9223372036854775808", "-9223372036854775809", "1e308", "1.7976931348623157e308",
           "1.7976931348623159e308", "1.8e308", "1e309", "-1e309", "1e400", "1e-400", "5e-324",
           "2e-324", "1e-324", "0e999999", "0e99999999999", "1e99999999999", "1e-99999999999",
           "0.0e99999999999", "0.1e99999999999", "1e2147483647", "1e2147483648", "1e-2147483648",
           "1e-2147483649", "123456789012345678901234567890", "1" + "0" * 308, "1" + "0" * 309,
           "9" * 400, "9" * 400 + "e-200", "0." + "0" * 400 + "1", "0." + "0" * 400 + "1e400",
           "0." + "0" * 400 + "1e720", "1" + "0" * 400 + "e-100", "1" + "0" * 400 + "e-91"]
OTHERS = ["null", "true", "false", "nul", "True", "[]", "{}", "[1]", '["a"]', '{"a":1}', "[,]", "[1,]",
          '{"a":1,}', '{"a"}', '{a:1}', "[[]]", "", "[1 2]", '{"a":1 "b":2}', '["a",null]', "\x0c",
          '{"present":null}', '{"zero":null}', '{"missing":{}}', '{"zero":null,"zero":null}',
          '{"zero":1,"zero":null}', '{"zero":null,"present":null}', '{"zero":[]}', '{"odd":null}',
          '{"zer\\u006f":null}', '{"zero" : null }', '{"zero":null,}', "{\"\\ud800\":1}"]
SPACES = ["", "", "", "", " ", "\t", "\r", "  ", "\x0b", "\x0c", "\u0085", "\u00a0", "\u1680", "\u2000",
          "\u2003", "\u200a", "\u200b", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\ufeff", "\x1c",
          "\x00"]


class Maker:
    """Makes texts. `odd` is how likely each small decision goes wrong."""

    def __init__(self, rng, corpus):
        self.rng = rng
        self.corpus = corpus
        self.odd = 0.0
        self.ids = 0

    def chance(self, p):
        return self.rng.random() < p

    def edge_number(self):
        """At the upper or lower end of what an f64 holds, where the rounding decides."""
        digits = self.rng.choice(["17976931348623157", "17976931348623158", "24703282292062327"])
        digits = digits[:self.rng.randrange(1, 18)] + "".join(
            self.rng.choice("0123456789") for _ in range(self.rng.choice([0, 0, 1, 3, 10])))
        point = self.rng.randrange(1, len(digits) + 1)
        power = (308 if digits.startswith("1") else -324) + 1 - point + self.rng.choice([0, 0, 0, 1])
        fraction = "." + digits[point:] if point < len(digits) else ""
        zeros = "0" * self.rng.choice([0, 0, 0, 5, 400])
        return f"{digits[:point]}{zeros}{fraction}e{power - len(zeros)}"

    def number(self):
        r = self.rng
        if self.chance(0.3):
            return self.edge_number()
        if self.chance(0.5):
            return r.choice(NUMBERS)
        text = r.choice(["", "", "-"]) + r.choice(["0", str(r.randrange(1, 10 ** r.randrange(1, 25)))])
        if self.chance(0.5):
            text += "." + "".join(r.choice("0123456789") for _ in range(r.randrange(1, 30)))
        if self.chance(0.5):
            text += r.choice("eE") + r.choice(["", "+", "-"]) + str(r.choice(
                [r.randrange(0, 30), r.randrange(270, 345), r.randrange(0, 10 ** 11)]))
        return text

    def deep(self):
        n = self.rng.choice([1, 5, 100, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 130, 300])
        opens = [self.rng.choice(["[", '{"a":']) for _ in range(n)]
        closes = ["]" if o == "[" else "}" for o in reversed(opens)]
        return "".join(opens) + "1" + "".join(closes)

    def anything(self):
        pick = self.rng.random()
        if pick < 0.3:
            return self.rng.choice(STRINGS)
        if pick < 0.6:
            return self.number()
        if pick < 0.65:
            return self.deep()
        if pick < 0.75:
            return "[" + self.space().join(self.anything() + "," for _ in range(self.rng.randrange(3))) + "1]"
        return self.rng.choice(OTHERS)

    def harmless(self):
        """A value that may stand in an unknown member, strictly or leniently read."""
        r = self.rng
        return r.choice(["1", "null", '"x"', "[]", '{"a":[1,{"b":"c"}]}', "-0", "1.5e3", "true",
                         '{"id":3,"status":"closed"}',
                         # only fine where it is skipped
                         '"\\ud800"', "1e400", '{"\\udc00":1}', "9" * 310])

    def value(self, kind):
        r = self.rng
        if self.chance(self.odd):
            return self.anything()
        if kind.endswith("?"):
            if self.chance(0.3):
                return "null"
            kind = kind[:-1]
        if kind == "id":
            self.ids += 1
            return r.choice(['"e%d"', '"\\u0065%d"', '"train-op-0-%d"']) % (
                self.ids if not self.chance(self.odd) else r.randrange(3))
        if kind == "str":
            return r.choice(STRINGS[:11])
        if kind == "strs":
            return "[" + ",".join(r.choice(STRINGS[:11]) for _ in range(r.randrange(3))) + "]"
        if kind == "usizes":
            return "[" + ",".join(r.choice(["0", "7", "18446744073709551615"])
                                  for _ in range(r.randrange(3))) + "]"
        if kind == "u64":
            return r.choice(["0", "7", "18446744073709551615"])
        if kind == "f64":
            return r.choice(["0", "-1", "1.5", "1e-400", "-0", "1e308", "123456789012345678901234567890",
                             self.edge_number()])
        if kind == "bool":
            return r.choice(["true", "false"])
        if kind == "schema":
            return '"candle-graph/runtime/%s"' % r.choice("33333123"[: 8 if self.chance(0.9) else 1])
        if kind == "state":
            return r.choice(['"present"', '"missing"', '"zero"', '"non_finite"', '"zero"', '"present"',
                             r.choice([v for v in OTHERS if v.startswith("{")])])
        return self.anything()

    def space(self):
        return self.rng.choice(["", " ", "\t"]) if self.chance(0.1) else ""

    def name(self, name):
        if self.chance(0.03) and name:
            name = "\\u%04x" % ord(name[0]) + name[1:]
        return f'"{name}"'

    def members(self, kind):
        """(name, value) of a record, some of them wrong."""
        r = self.rng
        out = []
        for name, kind_of, required in (RUN if kind == "run" else RECORDS[kind]):
            if self.chance(self.odd if required else 0.3):
                continue
            out.append((name, self.value(kind_of)))
            if self.chance(self.odd):
                out.append((name, self.value(kind_of)))
        if self.chance(0.2):
            out.append((r.choice(["x", "window", "capture", "start_ns", "stream", "named", "kernel"]),
                        self.harmless()))
        if self.chance(self.odd):
            out.append((r.choice(NAMES), self.anything()))
        if self.chance(0.3):
            r.shuffle(out)
        return out

    def object(self, members):
        s = self.space
        text = ",".join(f"{s()}{self.name(n)}{s()}:{s()}{v}{s()}" for n, v in members)
        if self.chance(self.odd / 4):
            text += ","
        return "{" + text + "}"

    def array(self, kind, first=None):
        values = [] if first is None else [first]
        members = RUN if kind == "run" else RECORDS[kind]
        n = len(members) if self.chance(0.5) else self.rng.randrange(len(members) + 2)
        for i in range(n):
            values.append(self.value(members[i][1]) if i < len(members) else self.anything())
        return "[" + ",".join(values) + "]"

    def record(self, kind):
        if self.chance(0.08):
            return self.array(kind)
        return self.object(self.members(kind))

    def line(self, kind):
        tag = f'"{kind}"' if not self.chance(self.odd) else self.rng.choice(
            ['"Operation"', '"window"', "1", "null", '"\\u006deta"', '"edge-timing"'])
        if self.chance(0.05):
            return self.array(kind, tag)
        members = self.members(kind)
        if not self.chance(self.odd):
            members.insert(self.rng.choice([0, 0, 0, len(members)]), ("kind", tag))
        if self.chance(self.odd / 2):
            members.append(("kind", tag))
        return self.object(members)

    def number_of_ours(self):
        return self.number() if self.chance(self.odd) else self.rng.choice(["0", "1", "2", "3", "9", "500"])

    def own_members(self):
        """What tickmark writes on a line of its own: an operation's time and stream, or a window."""
        r = self.rng
        out = [("stream", self.number_of_ours())]
        if self.chance(0.3):
            out.append(("named", "true"))
        if self.chance(0.5):
            return out + [("start_ns", self.number_of_ours())]
        members = [(name, self.number_of_ours()) for name in WINDOW_NUMBERS if self.chance(0.7)]
        members += [(name, f'"{r.choice(words)}"') for name, words in WINDOW_WORDS if self.chance(0.8)]
        members += [(name, r.choice(["true", "false"])) for name in ("flush", "incomplete")]
        if self.chance(self.odd):
            members.append((r.choice(WINDOW_NUMBERS), self.anything()))
        return out + [("window", self.object([("id", self.number_of_ours()), ("opened_on", "0")] + members))]

    def line_of_ours(self):
        members = [("kind", '"operation"')] + self.members("operation") + self.own_members()
        return self.object(members)

    def capture_of_ours(self):
        windows = [(status, self.number_of_ours()) for status in WINDOW_WORDS[1][1] if self.chance(0.7)]
        capture = [("status", '"complete"'), ("source", '"traced"'), ("windows", self.object(windows))]
        return self.object([("kind", '"operation"'), ("event_id", '"capture"'), ("op", '"capture"'),
                            ("capture", self.object(capture))])

    def edge(self):
        return self.rng.choice(SPACES) if self.chance(0.05) else ""

    def lines(self):
        r = self.rng
        lines = [self.line(r.choice(list(RECORDS)[1:])) for _ in range(r.choice([0, 1, 1, 2, 3]))]
        for _ in range(1 if not self.chance(self.odd) else r.choice([0, 2])):
            lines.insert(r.choice([0, 0, 0, len(lines)]), self.line("meta"))
        if self.chance(0.3):
            lines += [self.line_of_ours() for _ in range(r.randrange(6))] + [self.capture_of_ours()]
        end = r.choice(["\n", "\n", "\n", "\r\n"])
        text = end.join(self.edge() + line + self.edge() for line in lines)
        return self.edge() + text + r.choice([end, end, "", end + end, end + self.edge()])

    def document(self):
        r = self.rng
        members = []
        if not self.chance(self.odd):
            members.append(("schema", self.value("schema")))
        if not self.chance(self.odd):
            members.append(("run", self.record("run")))
        for section, kind in SECTIONS.items():
            if self.chance(0.4):
                continue
            for _ in range(2 if self.chance(self.odd) else 1):
                value = "[" + ",".join(self.record(kind) for _ in range(r.randrange(3))) + "]"
                members.append((section, value if not self.chance(self.odd) else self.anything()))
        if self.chance(self.odd):
            members.append(r.choice([("run", self.record("run")), ("schema", self.value("schema"))]))
        if self.chance(0.2):
            members.append((r.choice(["x", "kind", "frames"]), self.harmless()))
        if self.chance(0.3):
            r.shuffle(members)
        text = self.object(members)
        if self.chance(0.5):
            # over many lines: a newline where JSON allows white space (and, rarely, where it does not)
            parts = text.split(",")
            text = parts[0]
            for part in parts[1:]:
                text += r.choice([",", ",", ",\n", "\n,", ",\r\n"]) + part
            if self.chance(0.5):
                text = "{\n" + text[1:]
        return self.edge() + text + r.choice(["", "\n", "\r\n", self.edge()])

    def mangle(self, data):
        """A few wounds in a text's bytes."""
        r = self.rng
        data = bytearray(data)
        for _ in range(r.choice([1, 1, 1, 2, 4])):
            at = r.randrange(len(data) + 1)
            to = min(len(data), at + r.choice([1, 1, 2, 5, 20]))
            pick = r.randrange(8)
            if pick == 0:
                del data[at:to]
            elif pick == 1:
                data[at:at] = bytes([r.choice(b'{}[],:"\\0123456789eE+-.ntfu \t\r\n\x00\x0b\x1f\x7f\x80\xc2\xed\xf4\xff')])
            elif pick == 2 and at < len(data):
                data[at] = r.randrange(256)
            elif pick == 3:
                data[at:at] = data[r.randrange(len(data) + 1):][:r.choice([1, 5, 40])]
            elif pick == 4:
                data[at:at] = self.anything().encode()
            elif pick == 5:
                data[at:at] = r.choice(SPACES + ["\n", "\r", "\n\n"]).encode()
            elif pick == 6:
                self.token_swap(data)
            else:
                del data[to if self.chance(0.1) else len(data) - r.randrange(len(data) + 1) // 4:]
        return bytes(data)

    def token_swap(self, data):
        """Replaces what stands between a colon or comma and the next comma or bracket."""
        starts = [i for i, c in enumerate(data) if c in b":,["]
        if not starts:
            return
        at = self.rng.choice(starts) + 1
        to = at
        while to < len(data) and data[to] not in b",]}":
            to += 1
        data[at:to] = self.anything().encode()

    def text(self):
        r = self.rng
        self.odd = r.choice([0.0, 0.0, 0.0, 0.01, 0.03, 0.1])
        self.ids = 0
        pick = r.random()
        if pick < 0.25:
            return self.mangle(r.choice(self.corpus))
        data = (self.lines() if pick < 0.65 else self.document()).encode("utf-8")
        return self.mangle(data) if self.chance(0.2) else data


def corpus_read():
    files = sorted((TOP / "tests/data/importer").glob("*/*.jsonl"))
    assert files, "no oracle files in tests/data/importer"
    return [file.read_bytes() for file in files]


def differences(importer, check, texts):
    for text, real, ours in zip(texts, importer.batch(texts), batch_verdicts(check, texts)):
        if real[0] != ours[0]:
            yield text, real, ours


def main():
    parser = argparse.ArgumentParser(description="compare tickmark check with the real importer")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    importer, why = Importer.find()
    if not importer:
        print(f"fuzz: {why}")
        return 1 if shutil.which("cargo") else 77
    check = check_build()
    maker = Maker(random.Random(args.seed), corpus_read())
    done = accepted = differ = 0
    began = time.monotonic()
    while done < args.cases if args.cases else time.monotonic() - began < args.seconds:
        texts = [maker.text() for _ in range(min(2000, args.cases - done if args.cases else 2000))]
        for text, real, ours in differences(importer, check, texts):
            differ += 1
            if differ <= 20:
                print(f"DIFFER {text!r}\n  importer: {real}\n  check:    {ours}")
        accepted += sum(ok for ok, _ in batch_verdicts(check, texts))
        done += len(texts)
    print(f"fuzz: {done} texts (seed {args.seed}), {accepted} accepted, {differ} differences")
    return 1 if differ or not done else 0


if __name__ == "__main__":
    sys.exit(main())
