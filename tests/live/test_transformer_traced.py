# SPDX-License-Identifier: BSD-2-Clause
"""The example program under the tracer: what was traced against what the program itself measured."""
import json
from collections import Counter

import pytest


def measured(lines, kind):
    return [line for line in lines if line["kind"] == kind and "duration_ns" in line]


def by_phase(folder, jsonl):
    """The one file of each phase that a tracer wrote into a folder."""
    files = {}
    for path in folder.glob("*.jsonl"):
        lines = jsonl(path)
        meta = next(line for line in lines if line["kind"] == "meta")
        assert meta["phase"] not in files, f"two sessions of phase {meta['phase']}"
        files[meta["phase"]] = lines
    return files


@pytest.mark.parametrize("program", ["transformer", "transformer-static"])
def test_traced_durations_agree_with_the_programs_clock(build, tickmark, jsonl, tmp_path, program):
    out = tmp_path / "out"
    out.mkdir()
    tickmark("record", "-o", out, "--", build / program, "--steps", 12, "--tokens", 12,
             "--prompt", "You may ", "--self-clock", tmp_path / "clock.json", timeout=120, status=0)
    clock = json.loads((tmp_path / "clock.json").read_text())
    files = by_phase(out, jsonl)
    assert set(files) == {"train", "infer"}
    for phase, lines in files.items():
        counts, sums = Counter(), Counter()
        for op in measured(lines, "operation"):
            counts[op["op"]] += 1
            sums[op["op"]] += op["duration_ns"]
        assert counts == {name: row["count"] for name, row in clock[phase].items()}
        for name, row in clock[phase].items():
            assert row["inner_ns"] <= sums[name] <= row["outer_ns"], (phase, name)


def test_traced_run_equals_the_programs_own_trace(build, tickmark, jsonl, tmp_path):
    """Tracer and in-process session watch the same run: same events, nothing more, nothing less."""
    out = tmp_path / "out"
    out.mkdir()
    own = tmp_path / "own.jsonl"
    tickmark("record", "-o", out, "--", build / "transformer", "--steps", 5, "--tokens", 5,
             "--prompt", "You may ", "--trace", own, timeout=120, status=0)
    traced = by_phase(out, jsonl)
    for phase, path in (("train", own), ("infer", tmp_path / "own.infer.jsonl")):
        mine = jsonl(path)
        for kind, keys in (("operation", ("event_id", "op", "static_id", "inputs", "output", "step")),
                           ("edge_timing", ("event_id", "from_static_id", "to_static_id",
                                            "duration_ns", "step"))):
            def pick(lines, kind=kind, keys=keys):
                return {line["event_id"]: [line.get(key) for key in keys]
                        for line in measured(lines, kind)}
            assert pick(traced[phase]) == pick(mine), (phase, kind)
