# SPDX-License-Identifier: BSD-2-Clause
"""Profiling windows, seen from outside and by the program's own file.

Tests whose name begins with confNN show that statement of the conformance list.
"""
import json
import os
import re
import signal
import statistics
import subprocess
import time

import pytest

WINDOWS, FORGED = "tests/live/windows", "tests/live/forged"
NAMED = 1 << 52


def windows_of(lines):
    return [line for line in lines if "window" in line]


class Run:
    """The windows of one run of the statements, as one of both wrote them down."""

    def __init__(self, lines):
        self.lines = lines
        self.windows = windows_of(lines)
        self.capture = lines[-1]["capture"]

    def one(self, name):
        found = [w for w in self.windows if w["op"] == name]
        assert len(found) == 1, (name, found)
        return found[0]

    def all(self, name):
        return [w["window"] for w in self.windows if w["op"] == name]


@pytest.fixture(scope="module")
def statements(build, tmp_path_factory):
    """Runs the statements once, traced and with a file of its own: {"traced": Run, "in_process": Run}."""
    where = tmp_path_factory.mktemp("windows")
    own, traced, raw = where / "own.jsonl", where / "traced.jsonl", where / "run.tmk"
    target = subprocess.Popen([build / WINDOWS, "statements", own], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
    assert target.stdout.readline() == b"ready\n"
    tracer = subprocess.run([build / "tickmark", "record", "-p", str(target.pid), "-o", traced, "--raw", raw],
                            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    err = target.communicate(timeout=30)[1]
    assert target.returncode == 0, err
    assert tracer.returncode == 0, tracer.stderr

    def lines(path):
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {"traced": Run(lines(traced)), "in_process": Run(lines(own)), "summary": tracer.stdout,
            "files": {"traced": traced, "in_process": own, "raw": raw}}


@pytest.fixture(params=["traced", "in_process"])
def run(request, statements):
    return statements[request.param]


def status(line):
    return line["window"]["status"], line["window"].get("reason")


def test_conf34_key_is_stream_and_id(run):
    one, two = run.one("s34_one"), run.one("s34_two")
    assert (one["stream"], one["window"]["opened_on"], one["named"]) == (1, 1, True)
    assert (two["stream"], two["window"]["opened_on"], two["named"]) == (2, 2, True)
    assert one["window"]["id"] != two["window"]["id"]
    assert status(one) == status(two) == ("closed", None)
    keys = [(w["window"]["opened_on"], w["window"]["id"]) for w in run.windows]
    assert len(set(keys)) == len(keys)


def test_conf35_belongs_to_where_it_was_opened(run):
    w, closers = run.one("s35"), run.one("s35_closers")
    assert w["stream"] == 10 and w["window"]["operations"] == 1
    assert w["end_tid"] != w["tid"]
    assert closers["stream"] == 20 and closers["window"]["operations"] == 1
    assert "end_tid" not in closers
    # The closer's operation lies inside in time, and is not counted.
    inside = [op for op in run.lines if "duration_ns" in op and op["step"] == 35 and
              w["window"]["start_ns"] <= op["start_ns"] and
              op["start_ns"] + op["duration_ns"] <= w["window"]["end_ns"]]
    assert len(inside) == 2


def test_conf36_nested(run):
    outer, inner = run.one("s36_outer")["window"], run.one("s36_inner")["window"]
    assert 0 < inner["duration_ns"] <= outer["duration_ns"]
    assert (outer["depth"], inner["depth"], inner["parent"]) == (0, 1, outer["id"])
    assert "parent" not in outer and outer["overlaps"] == inner["overlaps"] == 0
    assert (outer["operations"], inner["operations"]) == (2, 1)


def test_conf37_overlapping(run):
    a, b = run.one("s37_a")["window"], run.one("s37_b")["window"]
    assert a["start_ns"] < b["start_ns"] < a["end_ns"] < b["end_ns"]
    assert a["duration_ns"] >= 40000 and b["duration_ns"] >= 40000
    assert a["overlaps"] == b["overlaps"] == 1 and a["depth"] == b["depth"] == 0


def test_conf38_unknown_ends_change_nothing(run):
    assert status(run.one("s38")) == status(run.one("s38_intact")) == ("closed", None)


def test_conf39_abandoned(run):
    w = run.one("s39")
    assert status(w) == ("abandoned", "program") and "duration_ns" not in w["window"]
    assert status(run.one("s39_next")) == ("closed", None)


def test_conf40_open_at_the_end_is_abandoned_and_counted(run):
    w = run.one("s40_finished")
    assert status(w) == ("abandoned", "finished") and "duration_ns" not in w["window"]
    assert run.capture["windows"]["abandoned"] == sum(
        w["window"]["status"] == "abandoned" for w in run.windows)


def test_conf41_not_measured_is_absent(run):
    for w in [run.one("s41_none")["window"]] + run.all("s41_stamps"):
        assert (w["status"], w["reason"], w["method"]) == ("not_measured", "backend", "device")
        assert "duration_ns" not in w
    assert len(run.all("s41_stamps")) == 4
    assert all(w["window"].get("duration_ns", 1) > 0 for w in run.windows)


def test_conf42_system_time(run):
    w = run.one("s42")["window"]
    assert w["method"] == "system" and w["status"] == "closed" and w["duration_ns"] >= 10000
    assert w["operations"] == 1
    assert run.all("s42_first") == []
    failed = run.one("s42_second")["window"]
    assert failed["status"] == "failed" and failed["error"] == 5 and "duration_ns" not in failed


def test_conf43_fallbacks(run):
    assert run.all("s43_failed") == []
    assert run.one("s43_system")["window"]["method"] == "system"
    end = run.one("s43_end")["window"]
    assert (end["status"], end["error"]) == ("failed", 19) and "duration_ns" not in end
    device = run.one("s43_device")["window"]
    assert (device["method"], device["status"]) == ("device", "closed")
    # The device's own clock says so, whatever the host's saw.
    assert device["duration_ns"] % 1000 == 0
    assert device["end_ns"] - device["start_ns"] >= 10000


def test_conf44_unwinding_abandons(run):
    assert status(run.one("s44_exit")) == ("abandoned", "program")
    assert status(run.one("s44_cancel")) == ("abandoned", "program")
    assert sorted(w["status"] for w in run.all("s44_guard")) == ["abandoned", "closed"]


def test_conf45_failure_poisons_what_is_open_on_that_stream(run):
    for name in ("s45_a", "s45_b"):
        w = run.one(name)["window"]
        assert w["status"] == "failed" and w["error"] == 5 and "duration_ns" not in w
    for name in ("s45_later", "s45_other_stream"):
        assert status(run.one(name)) == ("closed", None)


def test_conf46_membership(run):
    w = run.one("s46")["window"]
    assert w["operations"] == 2  # the owed one and its own; not the open one, nor the other stream's
    assert 40000 <= w["idle_ns"] < w["duration_ns"]


def test_conf47_flush(run):
    w = run.one("s47")["window"]
    assert w["flush"] is True and w["operations"] == 0
    assert run.capture["unpaired"]["ended_after_flush"] == 1
    assert all(other["window"]["flush"] is False for other in run.windows if other["op"] != "s47")


def test_conf48_device_durations_resolve_late(run):
    assert run.one("s48_first")["window"]["duration_ns"] == 1000000
    assert run.one("s48_second")["window"]["duration_ns"] == 2000000
    for name in ("s48_first", "s48_second"):
        w = run.one(name)["window"]
        assert w["method"] == "device" and w["end_ns"] - w["start_ns"] != w["duration_ns"]
    failed = run.one("s48_failed")["window"]
    assert (failed["status"], failed["error"]) == ("failed", 5)
    assert status(run.one("s48_never")) == ("not_measured", "unresolved")


def test_conf50_token_as_text(run):
    w = run.one("s50")
    assert status(w) == ("closed", None) and w["stream"] == w["window"]["opened_on"] == 2**64 - 1
    assert w["end_tid"] != w["tid"]


def test_conf49_files_are_importable(statements, verified):
    for source in ("traced", "in_process"):
        verified(statements["files"][source])


def test_traced_and_in_process_write_the_same_windows(statements):
    """The same lines in the same order, but for times; the marks of a window lie outside the file's own clock."""
    def same(run):
        lines = []
        for line in run.windows:
            line = json.loads(json.dumps(line))
            for key in ("start_ns", "end_ns", "idle_ns"):
                line["window"].pop(key, None)
            if line["window"]["method"] == "system":
                line["window"].pop("duration_ns", None)
            lines.append(line)
        return sorted(lines, key=lambda line: line["event_id"])
    traced, own = statements["traced"], statements["in_process"]
    assert same(traced) == same(own)
    assert traced.capture["windows"] == own.capture["windows"]
    for a, b in zip(sorted(traced.windows, key=lambda w: w["event_id"]),
                    sorted(own.windows, key=lambda w: w["event_id"])):
        if "duration_ns" in b["window"] and b["window"]["method"] == "system":
            # On a busy machine a thread may be switched out between two clocks.
            assert abs(a["window"]["duration_ns"] - b["window"]["duration_ns"]) < 5_000_000


def test_replay_gives_the_same_bytes(statements, tickmark, tmp_path):
    out = tmp_path / "replay.jsonl"
    tickmark("convert", statements["files"]["raw"], "-o", out, status=0)
    assert out.read_bytes() == statements["files"]["traced"].read_bytes()


def test_strict_file_has_no_windows(statements, tickmark, tmp_path, verified):
    out = tmp_path / "strict.jsonl"
    tickmark("convert", "--strict", statements["files"]["raw"], "-o", out, status=0)
    assert "window" not in out.read_text()
    verified(out)


def test_summary_shows_windows_and_streams(statements):
    lines = statements["summary"].splitlines()
    # Of more names than there are rows the longest are shown; which these are is a matter of luck.
    heading = next(i for i, line in enumerate(lines) if line.startswith("window "))
    rows = lines[heading + 1:heading + 21]
    assert all(re.match(r"s\d+\w*( \(device\))? +\d", row) for row in rows), rows
    assert re.match(r"… and \d+ more", lines[heading + 21])
    assert any(line.startswith("461 (pid ") for line in lines)
    assert "windows: 22 closed, 5 abandoned, 6 not measured, 5 failed" in lines


def test_statements_without_a_tracer(build, start, tmp_path, verified):
    out = tmp_path / "own.jsonl"
    program = start(build / WINDOWS, "statements", out, env=dict(os.environ, TMK_TEST_ALONE="1"))
    assert program.wait() == 0, program.report()
    run = Run(verified(out))
    test_conf35_belongs_to_where_it_was_opened(run)
    test_conf46_membership(run)


def test_nobody_listens_then_nothing_is_done(build, start):
    """The calls of windows do nothing while nobody listens, and what they return says so."""
    program = start(build / WINDOWS, "leak", "1000", env=dict(os.environ, TMK_TEST_ALONE="1"))
    assert program.wait() == 1  # the program insists on tokens that are not empty
    assert "w.id != 0" in program.err


def test_conf40_process_death_abandons(job, record, tmp_path, verified):
    out = tmp_path / "run.jsonl"
    target = job(WINDOWS, "die")
    tracer = record("-p", target.pid, "-o", out, attached_to=target.pid)
    assert target.wait() == -signal.SIGKILL
    assert tracer.wait() == 0, tracer.report()
    lines = verified(out)
    inner, outer = windows_of(lines) if windows_of(lines)[0]["op"] == "inner" else windows_of(lines)[::-1]
    for w in (inner, outer):
        assert status(w) == ("abandoned", "target_gone")
        assert "duration_ns" not in w["window"] and "end_ns" not in w["window"]
    assert lines[-1]["capture"]["windows"]["abandoned"] == 2
    assert lines[-1]["capture"]["status"] == "target_gone"


def test_window_open_at_detach_is_open(build, start, record, semaphores, tmp_path, verified):
    out = tmp_path / "run.jsonl"
    target = start(build / WINDOWS, "hold", stdin=-1)
    target.wait_for("ready")
    tracer = record("-p", target.pid, "-o", out, attached_to=target.pid)
    target.wait_for("held")
    assert tracer.stop() == 0, tracer.report()
    w, = windows_of(verified(out))
    assert status(w) == ("open", "stopped")
    assert "duration_ns" not in w["window"] and "end_ns" not in w["window"]
    assert target.alive() and semaphores(target.pid)[0] == 0
    target.send("go\n")
    assert target.wait() == 0, target.report()  # ended with nobody listening: no error


def test_window_opened_before_the_capture(build, start, record, tmp_path, verified):
    """A second tracer comes while the first one's window is open: it sees an end, and no duration."""
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    target = start(build / WINDOWS, "hold", stdin=-1)
    target.wait_for("ready")
    early = record("-p", target.pid, "-o", first, attached_to=target.pid)
    target.wait_for("held")
    late = record("-p", target.pid, "-o", second)
    end = time.monotonic() + 20
    while not (second.exists() and second.stat().st_size) and late.alive() and time.monotonic() < end:
        time.sleep(0.02)  # its file has the session as soon as it is attached
    target.send("go\n")
    assert target.wait() == 0, target.report()
    assert early.wait() == 0 and late.wait() == 0, late.report()
    held, after = windows_of(verified(second))
    assert held["op"] == "held" and status(held) == ("not_measured", "opened_before_capture")
    assert "start_ns" not in held["window"] and "duration_ns" not in held["window"]
    assert after["op"] == "after" and status(after) == ("closed", None)
    assert [status(w) for w in windows_of(verified(first))] == [("closed", None)] * 2


def test_durations_against_the_programs_own_clock(job, record, tmp_path, verified):
    out = tmp_path / "run.jsonl"
    target = job(WINDOWS, "clocked", 2000)
    tracer = record("-p", target.pid, "-o", out, attached_to=target.pid)
    assert target.wait() == 0
    assert tracer.wait() == 0, tracer.report()
    clocked = [tuple(map(int, line.split())) for line in target.out.splitlines()[1:]]
    windows = [w["window"] for w in windows_of(verified(out))]
    assert len(windows) == len(clocked) == 2000
    for w, (inside, outside) in zip(windows, clocked):
        assert inside <= w["duration_ns"] <= outside
        assert w["operations"] == 1 and w["idle_ns"] < w["duration_ns"]
    assert statistics.median(w["duration_ns"] - c[0] for w, c in zip(windows, clocked)) < 20000


def test_acceptance_equal_ids_on_two_streams_do_not_cross(job, record, tmp_path, verified):
    out = tmp_path / "run.jsonl"
    target = job(FORGED, "equal")
    tracer = record("-p", target.pid, "-o", out, attached_to=target.pid)
    assert target.wait() == 0
    assert tracer.wait() == 0, tracer.report()
    lines = verified(out)
    by_stream = {(w["stream"], w.get("named", False)): w["window"] for w in windows_of(lines)}
    assert len(by_stream) == 3
    one, two, own = by_stream[1, True], by_stream[2, True], by_stream[target.pid, False]
    assert one["id"] == two["id"] == NAMED | 1 and own["id"] == 1
    assert (one["operations"], two["operations"], own["operations"]) == (3, 6, 1)
    assert two["end_ns"] < one["end_ns"] <= own["end_ns"]
    assert two["duration_ns"] + 20_000_000 <= min(one["duration_ns"], own["duration_ns"]) + 1_000_000
    assert all(w["depth"] == 0 and w["overlaps"] == 0 for w in (one, two, own))


def test_lies_about_windows(job, record, tickmark, tmp_path, verified):
    out, raw = tmp_path / "run.jsonl", tmp_path / "run.tmk"
    target = job(FORGED, "lies")
    tracer = record("-p", target.pid, "-o", out, "--raw", raw, attached_to=target.pid)
    assert target.wait() == 0
    assert tracer.wait() == 3, tracer.report()  # starts of windows that were open, and no session
    assert "\x1b[2J" not in tracer.err
    lines = verified(out)
    by_key = {}
    for w in windows_of(lines):
        by_key.setdefault((w["window"]["opened_on"], w["window"]["id"]), []).append(w["window"])
    honest, = by_key[1, 500]
    assert honest["status"] == "closed" and honest["duration_ns"] == honest["end_ns"] - honest["start_ns"]
    resolved, = by_key[1, 700]
    assert (resolved["status"], resolved["duration_ns"]) == ("closed", 7000)
    assert by_key[1, 701][0]["reason"] == "unresolved"
    assert by_key[1, 702][0]["status"] == "not_measured"
    assert by_key[1, 703][0]["status"] == "failed" and by_key[1, 703][0]["error"] == 5
    # What was started twice never gets a duration.
    assert all(w["status"] != "closed" for key, ws in by_key.items() for w in ws if key[1] not in (500, 700)
               and not 600 <= key[1] < 610)
    capture = lines[-1]["capture"]
    assert sum(capture["hits"].values()) == sum(capture["delivered"].values()) + sum(capture["lost"].values())
    assert capture["unpaired"]["window_start_reused"] >= 36
    assert capture["unpaired"]["resolve_unknown"] >= 2
    replay = tmp_path / "replay.jsonl"
    tickmark("convert", raw, "-o", replay)
    assert replay.read_bytes() == out.read_bytes()


def test_nesting_100000_deep(job, record, tmp_path, verified):
    out = tmp_path / "run.jsonl"
    target = job(FORGED, "deep", 100000)
    tracer = record("-p", target.pid, "-o", out, attached_to=target.pid)
    assert target.wait(60) == 0
    assert tracer.wait(60) == 0, tracer.report()
    windows = windows_of(verified(out))
    assert len(windows) == 100000
    assert [w["window"]["depth"] for w in windows] == list(range(99999, -1, -1))


@pytest.mark.parametrize("program,n", [(FORGED, 1_000_000), (WINDOWS, 300_000)])
def test_a_leak_of_windows_is_bounded(program, n, job, record, sanitized, tmp_path):
    """The oldest go when there are too many, in the program as in the tracer; each of them is told of."""
    if sanitized:
        n //= 10
    out = tmp_path / "run.jsonl"
    target = job(program, "leak", n)
    tracer = record("-p", target.pid, "-o", out, "-q", attached_to=target.pid)
    peak = 0
    while tracer.alive():
        try:
            with open(f"/proc/{tracer.pid}/status", encoding="ascii") as file:
                peak = max([peak] + [int(line.split()[1]) for line in file if line.startswith("RssAnon")])
        except (FileNotFoundError, ProcessLookupError):
            pass
        tracer._pump(0.2)
    assert target.wait(120) == 0
    windows = given_up = 0
    with open(out, "rb") as lines:
        for line in lines:  # as text: a million of them
            windows += b'"window":{' in line
            given_up += b'"reason":"limit"' in line
    lost = sum(json.loads(line)["capture"]["lost"].values())
    assert windows + lost >= n
    assert given_up == max(0, windows - 131072)
    assert tracer.wait() == (3 if given_up or lost else 0)
    if not sanitized:
        assert 0 < peak < 160_000, f"{peak} kB"
