# SPDX-License-Identifier: BSD-2-Clause
"""The example program under the tracer: what was traced against what the program itself measured."""
import json
from collections import Counter

import pytest
import transformer_windows as tw


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


@pytest.fixture(scope="module", params=["transformer", "transformer-static"])
def windowed(request, build, tickmark, jsonl, tmp_path_factory):
    """Lines of each phase, and the clock, of a run that also answers and cancels while it trains."""
    folder = tmp_path_factory.mktemp("windowed")
    out = folder / "out"
    out.mkdir()
    tickmark("record", "-o", out, "--", build / request.param, "--layers", 2, "--dim", 32, "--batch", 4,
             "--steps", 6, "--tokens", 9, "--answer-every", 2, "--cancel-every", 2, "--threads", 3,
             "--prompt", "You may ", "--prompt", "It ", "--self-clock", folder / "clock.json",
             timeout=120, status=0)
    return {**by_phase(out, jsonl), "clock": json.loads((folder / "clock.json").read_text())}


@pytest.mark.parametrize("phase, layers", [("train", 4), ("infer", 2)])
def test_traced_windows_agree_with_the_programs_clock_and_counts(windowed, phase, layers):
    lines = windowed[phase]
    tw.check_against_own_clock(lines, windowed["clock"], phase)
    tw.check_counts(lines)
    tw.check_streams(lines, phase, workers=3)
    tw.check_nesting(lines, phase, layers)


def test_traced_prompts_and_device_windows(windowed):
    tw.check_prompts(windowed["infer"], prompts=5, cancelled=2)
    tw.check_device(windowed["infer"])


def test_traced_run_equals_the_programs_own_trace(build, tickmark, jsonl, tmp_path):
    """Tracer and in-process session watch the same run: same events, nothing more, nothing less.

    The numbers of two events that two threads begin at the same moment may be the other way round.
    """
    out = tmp_path / "out"
    out.mkdir()
    own = tmp_path / "own.jsonl"
    tickmark("record", "-o", out, "--", build / "transformer", "--steps", 5, "--tokens", 5,
             "--answer-every", 2, "--cancel-every", 2, "--prompt", "You may ", "--trace", own,
             timeout=120, status=0)
    traced = by_phase(out, jsonl)

    def events(lines, kind, *keys):
        return Counter(json.dumps([line.get(key) for key in keys])
                       for line in measured(lines, kind))

    def numbers(lines):
        return sorted(int(line["event_id"].rsplit("-", 1)[1])
                      for kind in ("operation", "edge_timing") for line in measured(lines, kind))

    def windows(lines):
        """What has no time of the watcher's in it: a device's duration is the device's."""
        keys = ("id", "status", "reason", "method", "flush")
        found = {}
        for line in tw.windows_of(lines):
            window = line["window"]
            device = window.get("duration_ns") if window["method"] == "device" else None
            found[window["id"]] = [line["op"], line["step"], line.get("named"), device,
                                   *(window.get(key) for key in keys)]
        return found

    for phase, path in (("train", own), ("infer", tmp_path / "own.infer.jsonl")):
        mine = jsonl(path)
        for kind, keys in (("operation", ("op", "static_id", "inputs", "output", "step")),
                           ("edge_timing", ("from_static_id", "to_static_id", "duration_ns",
                                            "step"))):
            assert events(traced[phase], kind, *keys) == events(mine, kind, *keys), (phase, kind)
        assert numbers(traced[phase]) == numbers(mine) == list(range(1, len(numbers(mine)) + 1))
        assert windows(traced[phase]) == windows(mine), phase


def test_attached_in_mid_run_every_step_but_the_first_and_last_is_whole(job, tickmark, sanitized, jsonl,
                                                                        tmp_path):
    size = ("--layers", 1, "--dim", 16, "--batch", 2) if sanitized else ()  # the sanitizers are slow
    program = job("transformer", "--steps", 100000, "--threads", 3, *size, ready=None)
    program.wait_for("step 20 ", stream="err")
    tickmark("record", "-p", program.pid, "-d", 3, "-o", tmp_path / "run.jsonl", status=0)
    assert program.alive()
    lines = jsonl(tmp_path / "run.jsonl")
    operations = measured(lines, "operation")
    steps = Counter(op["step"] for op in operations)
    edges = Counter(edge["step"] for edge in measured(lines, "edge_timing"))
    whole = sorted(steps)[1:-1]
    assert len(whole) > 5 and whole == list(range(whole[0], whole[-1] + 1))
    assert len({steps[step] for step in whole}) == 1 and len({edges[step] for step in whole}) == 1
    assert len({op["op"] for op in operations}) >= 12
    assert len({op["tid"] for op in operations}) == 4
    # What was open when it attached, or when it left, is not taken for a step.
    known = [w for w in tw.by_name(tw.windows_of(lines))["train_step"]
             if w["window"]["status"] == "closed"]
    assert [w["step"] for w in known if w["step"] in whole] == whole
    assert len({w["window"]["operations"] for w in known}) == 1
