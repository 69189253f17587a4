# SPDX-License-Identifier: BSD-2-Clause
"""`tickmark check` and the files we write, against the importer that they are written for."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
from importer_tool import importer  # noqa: E402,F401

ORACLE = TESTS / "data" / "importer"
META = {"kind": "meta", "schema": "candle-graph/runtime/3", "entrypoint": "Mlp::forward",
        "profile": "release", "cargo_features": [], "cfg": [], "phase": "infer"}


def oracle_files():
    files = {verdict: sorted((ORACLE / verdict).glob("*.jsonl")) for verdict in ("accept", "reject")}
    assert {verdict: len(found) for verdict, found in files.items()} == {"accept": 45, "reject": 71}
    return files


def test_conf25_check_gives_the_recorded_verdicts(tickmark):
    for verdict, files in oracle_files().items():
        for file in files:
            done = tickmark("check", file)
            assert done.returncode == (verdict == "reject"), f"{file}: {done.stdout}{done.stderr}"


def test_conf25_the_recorded_verdicts_are_the_importers(importer):
    for verdict, files in oracle_files().items():
        for got in importer.verdicts(files):
            assert got["accepted"] == (verdict == "accept"), got


def test_check_agrees_with_the_importer_on_mangled_texts(importer):
    fuzz = subprocess.run([sys.executable, TESTS / "importer" / "fuzz.py", "--seconds", "4"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(fuzz.stdout)
    assert fuzz.returncode == 0, fuzz.stdout


def trace_write(path, events):
    path.write_text("".join(json.dumps(event) + "\n" for event in [META, *events]))
    return path


def operation(number, static_id, duration_ns=None, **more):
    return {"kind": "operation", "event_id": f"infer-op-0-{number}", "op": "add", "static_id": static_id,
            "inputs": [], "step": number % 3,
            **({} if duration_ns is None else {"duration_ns": duration_ns}), **more}


def edge(number, duration_ns):
    return {"kind": "edge_timing", "event_id": f"infer-edge-0-{number}", "from_static_id": "tensor:a",
            "to_static_id": "operation:b", "duration_ns": duration_ns, "step": 0}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The source of a model with 60 additions, which the importer finds in each phase."""
    source = tmp_path_factory.mktemp("model")
    additions = "".join(f"        let x{i + 1} = (&x{i} + &x{i})?;\n" for i in range(60))
    (source / "src").mkdir()
    (source / "src" / "lib.rs").write_text(f"""
use candle_core::{{Result, Tensor}};
use candle_nn::{{linear, Linear, Module, VarBuilder}};

pub struct Mlp {{ up: Linear }}

impl Mlp {{
    pub fn new(vb: VarBuilder) -> Result<Self> {{
        Ok(Self {{ up: linear(4, 4, vb.pp("up"))? }})
    }}

    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {{
        let x0 = self.up.forward(x)?;
{additions}        Ok(x60)
    }}
}}
""")
    return source


def test_conf24_edges_are_averaged(importer, model, tmp_path):
    trace = trace_write(tmp_path / "t.jsonl", [edge(1, 10), edge(2, 15)])
    assert importer.profile(model, trace)["runtime"]["edge_timings"] == [
        {"from": "tensor:a", "to": "operation:b",
         "timing": {"avg_ns": 12, "min_ns": 10, "max_ns": 15, "samples": 2}}]


def test_conf32_profile_merge(importer, model, tmp_path):
    """Floor averages by static id over all steps; the 50 slowest, descending, ties by id."""
    ids = [o["id"] for o in importer.operations(model) if ":infer:" in o["id"]]
    assert len(ids) == 60
    events, average = [], {}
    for i, static_id in enumerate(ids):
        # every third one ties with its neighbours; the two samples average to a half, floored
        average[static_id] = 1000 + i // 3 * 10
        events += [operation(3 * i, static_id, average[static_id] - 5),
                   operation(3 * i + 1, static_id, average[static_id] + 6),
                   operation(3 * i + 2, f"not:in:the:model:{i}", 7)]
    answer = importer.profile(model, trace_write(tmp_path / "t.jsonl", events))
    slowest = [(o["id"], o["timing"]["avg_ns"], o["timing"]["samples"])
               for o in answer["slowest_operations"]]
    assert slowest == [(static_id, average[static_id], 2)
                       for static_id in sorted(ids, key=lambda s: (-average[s], s))[:50]]
    durations = [event["duration_ns"] for event in events]
    assert answer["runtime"]["avg_operation_duration_ns"] == sum(durations) // len(durations)


def test_conf49_own_lines_change_no_average(importer, model, tmp_path):
    """Window, unfinished and capture lines: only the count of observations grows."""
    static_id = importer.operations(model)[0]["id"]
    events = [operation(1, static_id, 40), operation(2, static_id, 45), edge(3, 10)]
    own = [operation(4, static_id, window={"id": 0, "duration_ns": 9}),
           operation(5, static_id, unfinished={"start_ns": 1, "reason": "target_gone"}),
           operation(6, "", capture={"status": "complete", "hits": {"op_begin": 3}})]
    plain = importer.profile(model, trace_write(tmp_path / "plain.jsonl", events))
    more = importer.profile(model, trace_write(tmp_path / "own.jsonl", events + own))
    assert plain["slowest_operations"][0]["timing"]["avg_ns"] == 42
    assert plain["runtime"].pop("operation_observations") == 2
    assert more["runtime"].pop("operation_observations") == 5
    assert more == plain


class Run:
    """A run on a few streams, with operations and windows that nest and overlap as they please."""

    def __init__(self, seed, static_ids):
        self.random = random.Random(seed)
        self.streams = [(7, False), (7, True), (2**64 - 1, True)]
        self.ops = [self.op_make(n, static_ids) for n in range(1, 601)]
        self.windows = [self.window_make(n) for n in range(1, 301)]

    def span_make(self):
        start = self.random.randrange(1, 10**6)
        return start, start + self.random.choice([1, 10, 1000, 10**5, 10**6])

    def op_make(self, n, static_ids):
        start, end = self.span_make()
        return {"stream": self.random.choice(self.streams), "start": start, "end": end,
                "line": operation(n, self.random.choice(static_ids), end - start)}

    def window_make(self, n):
        start, end = self.span_make()
        return {"id": n, "stream": self.random.choice(self.streams), "start": start, "end": end}

    def holders(self, w):
        """The windows that hold one whole, the innermost last."""
        return sorted((o for o in self.windows if o is not w and o["stream"] == w["stream"]
                       and o["start"] < w["start"] and o["end"] > w["end"]),
                      key=lambda o: (o["start"], o["id"]))

    def window_fields(self, w):
        kind = w["id"] % 5
        # what becomes of it: a device's duration, none, a failure, given up, or the host's clock
        outcome = [{"method": "device", "status": "closed", "duration_ns": 5 * 10**9},
                   {"method": "device", "status": "not_measured", "reason": "unresolved"},
                   {"method": "system", "status": "failed", "error": 5},
                   {"method": "system", "status": "abandoned", "reason": "program"},
                   {"method": "system", "status": "closed", "duration_ns": w["end"] - w["start"]}][kind]
        holders = self.holders(w)
        inside = sum(1 for op in self.ops
                     if op["stream"] == w["stream"] and w["start"] <= op["end"] <= w["end"])
        return {"id": w["id"], "opened_on": w["stream"][0], "start_ns": w["start"], "end_ns": w["end"],
                **outcome, "depth": len(holders), **({"parent": holders[-1]["id"]} if holders else {}),
                "overlaps": 0, "flush": kind == 0, "operations": inside, "idle_ns": 0}

    def stream_fields(self, stream):
        return {"stream": stream[0], **({"named": True} if stream[1] else {})}

    def events(self):
        """(what the base format knows, what is tickmark's own)."""
        base = [{**op["line"], "start_ns": op["start"], "pid": 1, "tid": 7, **self.stream_fields(op["stream"])}
                for op in self.ops]
        windows = [self.window_fields(w) for w in self.windows]
        own = [{"kind": "operation", "event_id": f"infer-window-0-{w['id']}", "op": "add", "inputs": [],
                "step": 0, "pid": 1, "tid": 7, **self.stream_fields(w["stream"]), "window": fields}
               for w, fields in zip(self.windows, windows)]
        own += [operation(n, self.ops[0]["line"]["static_id"], pid=1, tid=7, stream=7,
                          unfinished={"start_ns": 1, "reason": "finished"}) for n in range(700, 720)]
        counts = {status: sum(1 for w in windows if w["status"] == status)
                  for status in ("closed", "abandoned", "not_measured", "failed", "open")}
        capture = operation(0, "", capture={"status": "complete", "source": "traced", "windows": counts})
        return base, own, {**capture, "event_id": "capture", "op": "capture"}


def test_conf49_a_file_full_of_windows_has_the_same_averages(importer, tickmark, model, tmp_path):
    ids = [o["id"] for o in importer.operations(model) if ":infer:" in o["id"]]
    for seed in range(3):
        base, own, capture = Run(seed, ids).events()
        lines = base + own
        random.Random(seed).shuffle(lines)
        full = trace_write(tmp_path / f"full{seed}.jsonl", [*lines, capture])
        bare = trace_write(tmp_path / f"bare{seed}.jsonl", base)
        tickmark("check", full, status=0)
        more, plain = importer.verdicts([full, bare])
        assert (plain.pop("operations"), more.pop("operations")) == (600, 921)
        assert plain["timed_operations"] == more["timed_operations"] == 600
        assert {**plain, "file": ""} == {**more, "file": ""}
        more, plain = importer.profile(model, full), importer.profile(model, bare)
        assert len(plain["slowest_operations"]) == 50
        assert more["slowest_operations"] == plain["slowest_operations"]
        assert plain["runtime"].pop("operation_observations") == 600
        assert more["runtime"].pop("operation_observations") == 921
        assert more == plain


def test_check_finds_a_wrong_count_in_such_a_file(tickmark, tmp_path):
    base, own, capture = Run(4, ["s"]).events()
    own[17]["window"]["operations"] += 1000
    done = tickmark("check", trace_write(tmp_path / "t.jsonl", [*base, *own, capture]), status=1)
    assert ":619: window: operations: " in done.stdout and ": 1 window rule broken\n" in done.stdout
