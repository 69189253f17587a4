# SPDX-License-Identifier: BSD-2-Clause
"""`tickmark convert`: raw captures in, files out, and one line for everything that is no such file."""
import json
import os
import random
import re
import resource
import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "data"
sys.path[:0] = [str(HERE), str(HERE.parent)]

import rawfile as R  # noqa: E402
from importer_tool import importer  # noqa: E402,F401

OWN = {"start_ns", "pid", "tid", "end_tid", "stream", "named", "truncated"}
OWN_LINES = ("unfinished", "capture", "window")


@pytest.fixture
def work(tmp_path, monkeypatch):
    """An empty current directory."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def convert(tickmark, work):
    """convert(CAPTURE, ARGS…, status=0, out="out.jsonl") → CompletedProcess; writes work/in.tmk first."""
    def run(capture, *args, status=0, out="out.jsonl"):
        data = capture.data() if isinstance(capture, R.Capture) else capture
        (work / "in.tmk").write_bytes(data)
        return tickmark("convert", "in.tmk", "-o", out, *args, status=status)
    return run


def one_error_line(done):
    """A failure is one line on stderr that names what to do, and nothing on stdout."""
    assert done.stdout == ""
    assert re.fullmatch(r"tickmark: [^\n]*; [^\n]*\n", done.stderr), done.stderr
    return done.stderr


def operations(lines):
    return [line for line in lines if line["kind"] == "operation" and not set(OWN_LINES) & set(line)]


def stripped(data):
    """A file without tickmark's own lines and fields, which follow the base fields of a line."""
    out = []
    for line in data.splitlines(keepends=True):
        fields = json.loads(line)
        if set(OWN_LINES) & set(fields):
            continue
        own = [key for key in fields if key in OWN]
        if own:
            at = line.index(b',"' + own[0].encode() + b'":')
            assert all(line.index(b',"' + key.encode() + b'":') >= at for key in own)
            line = line[:at] + b"}\n"
        out.append(line)
    return b"".join(out)


def without_durations(data):
    """Durations of operations are measurements; an edge's is the caller's and stays."""
    lines = data.splitlines(keepends=True)
    return b"".join(re.sub(rb',"duration_ns":\d+', b"", line) if b'"kind":"operation"' in line else line
                    for line in lines)


# --- what comes out

def test_kept_capture_is_what_the_writer_here_makes():
    """The format on disk is the one that both sides know; a change of it must not go unnoticed."""
    assert (DATA / "profile_session.tmk").read_bytes() == R.profile_session().data()


@pytest.mark.parametrize("strict", [False, True])
def test_conf29_profile_session_byte_for_byte(tickmark, work, strict):
    args = ["--strict"] if strict else []
    tickmark("convert", DATA / "profile_session.tmk", "-o", "out.jsonl", *args, status=0)
    got = (work / "out.jsonl").read_bytes()
    expected = (DATA / "profile_session.jsonl").read_bytes()
    assert without_durations(stripped(got)) == without_durations(expected)
    if strict:
        assert without_durations(got) == without_durations(expected)
    assert got.count(b'"duration_ns":3000') == 1 and got.count(b'"duration_ns":2000') == 1


def test_conf30_strict_is_the_rest_without_own_fields(convert, work):
    raw = R.simple(50)
    convert(raw)
    full = (work / "out.jsonl").read_bytes()
    convert(raw, "--strict", out="strict.jsonl")
    assert stripped(full) == (work / "strict.jsonl").read_bytes()
    assert full.count(b"\n") == 52


def test_conf25_importer_reads_what_is_written(convert, work, tickmark, importer):  # noqa: F811
    raw = R.Capture().process("j\x1bob").session().site(0x10, b"\xff\xfe", b"op\x00"[:2], b"\xc0\x80")
    raw.begin(token=1, site=0x10, time=100).end(token=1, time=200)
    raw.begin(token=2, site=0x99, time=300).tide(400).end_capture(R.STOPPED)
    convert(raw, status=3)  # one name is unknown
    verdict, = importer.verdicts([work / "out.jsonl"])
    assert verdict["accepted"], verdict
    tickmark("check", "out.jsonl", status=0)


def test_own_fields(convert, work, jsonl):
    raw = R.Capture(1, 100, 101).process("job").session().site(0x10, "s", "op", "a", "b", flags=R.CUT_INPUTS)
    raw.begin(token=1, site=0x10, step=3, time=100, stream=9).thread(102)
    raw.end(token=1, step=4, time=250)
    raw.begin(token=2 | R.TOKEN_NAMED, site=0x10, step=5, time=260, stream=2**64 - 1)
    raw.end(token=2 | R.TOKEN_NAMED, step=5, time=270).tide(300).end_capture(R.DETACHED)
    convert(raw)
    op, on_stream = operations(jsonl(work / "out.jsonl"))
    assert op == {"kind": "operation", "event_id": "train-op-3-1", "op": "op", "static_id": "s",
                  "inputs": ["a", "b"], "step": 4, "duration_ns": 150, "start_ns": 100, "pid": 100,
                  "tid": 101, "end_tid": 102, "stream": 101, "truncated": ["inputs"]}
    # A thread's own stream goes by the thread as the tracer knows it; the program's goes by its number.
    assert on_stream == {"kind": "operation", "event_id": "train-op-5-2", "op": "op", "static_id": "s",
                         "inputs": ["a", "b"], "step": 5, "duration_ns": 10, "start_ns": 260, "pid": 100,
                         "tid": 102, "stream": 2**64 - 1, "named": True, "truncated": ["inputs"]}


def test_capture_line_is_last_and_balances(convert, work, jsonl):
    raw = R.Capture().process().session().site(0x10, "s", "op")
    raw.begin(token=1, site=0x10, time=100).end(token=1, time=200).end(token=9, time=210).tide(300, lost=2)
    raw.end_capture(R.STOPPED, time=900, start=50, lost={(R.OP_BEGIN, R.RING_FULL): 2}, hit_cost=100)
    done = convert(raw, status=3)
    capture = jsonl(work / "out.jsonl")[-1]["capture"]
    assert capture["status"] == "stopped" and capture["start_ns"] == 50 and capture["end_ns"] == 900
    assert capture["hits"] == {"op_begin": 3, "op_end": 2}
    assert capture["delivered"] == {"op_begin": 1, "op_end": 2}
    assert capture["lost"] == {"ring_full": 2, "recursion": 0, "invalid": 0}
    assert capture["unpaired"]["end_without_begin"] == 1
    assert capture["overhead"] == {"hit_ns": 100, "hits_total_ns": 500}
    assert capture["operations"] == 1 and capture["unfinished"] == 0
    assert "hits 5 = delivered 3 + lost 2" in done.stdout
    assert "2 of 5 hits" in done.stderr


def test_unfinished_and_exit_of_the_target(convert, work, jsonl):
    raw = R.Capture().process().session().site(0x10, "s", "stuck")
    raw.begin(token=1, site=0x10, step=2, time=100).gone(500, known=True, status=9).tide(600)
    raw.end_capture(R.TARGET_GONE)
    done = convert(raw)
    lines = jsonl(work / "out.jsonl")
    assert lines[1]["unfinished"] == {"start_ns": 100, "reason": "target_gone"}
    assert lines[1]["event_id"] == "train-op-2-1" and "duration_ns" not in lines[1]
    assert lines[2]["capture"]["status"] == "target_gone"
    assert lines[2]["capture"]["exit"] == {"signal": 9}
    assert "unfinished: stuck" in done.stdout


def test_conf10_13_two_rings_come_in_the_order_of_time(convert, work, jsonl):
    """One ring after the other, the second with the begins of what the first one ends."""
    n = 2000
    raw = R.Capture().process().session().site(0x10, "s", "op")
    for i in range(n):
        raw.thread(102).end(token=i + 1, step=i, time=1000 + i * 10 + 7)
    for i in range(n):
        raw.thread(101).begin(token=i + 1, site=0x10, step=i, time=1000 + i * 10)
    raw.tide(10**6).end_capture(R.DETACHED)
    convert(raw)
    ops = operations(jsonl(work / "out.jsonl"))
    assert [op["event_id"] for op in ops] == [f"train-op-{i}-{i + 1}" for i in range(n)]
    assert all(op["duration_ns"] == 7 and op["tid"] == 101 and op["end_tid"] == 102 for op in ops)


def test_conf31_any_subset_of_records_gives_no_wrong_pair(convert, work, jsonl):
    """Half of the marks are lost at random: every line that is left is one of the true ones."""
    rng = random.Random(31)
    for _ in range(5):
        raw = R.Capture().process().session().site(0x10, "s", "op")
        true, kept = {}, {}
        marks = []
        for token in range(1, 400):
            begin = token * 10 + rng.randrange(10)
            end = begin + rng.randrange(1, 300)
            true[token] = (begin, end - begin)
            marks += [(begin, "b", token), (end, "e", token)]
        for time, what, token in sorted(marks):
            if rng.random() < 0.5:
                continue
            kept.setdefault(token, set()).add(what)
            if what == "b":
                raw.begin(token=token, site=0x10, step=token, time=time)
            else:
                raw.end(token=token, step=token, time=time)
        raw.tide(10**6).end_capture(R.DETACHED)
        convert(raw)
        lines = jsonl(work / "out.jsonl")
        ops = operations(lines)
        assert sorted(op["step"] for op in ops) == sorted(t for t in kept if len(kept[t]) == 2)
        assert all((op["start_ns"], op["duration_ns"]) == true[op["step"]] for op in ops)
        capture = lines[-1]["capture"]
        assert capture["unfinished"] == sum(k == {"b"} for k in kept.values())
        assert capture["unpaired"]["end_without_begin"] == sum(k == {"e"} for k in kept.values())


def test_conf21_two_sessions_two_files(convert, work, jsonl):
    raw = R.Capture().process().session(1).session(2, "Other").site(0x10, "s", "op")
    for session in (2, 1):
        raw.begin(session, token=1, site=0x10, time=100 * session)
        raw.end(session, token=1, time=100 * session + session)
    raw.tide(1000).end_capture(R.DETACHED)
    done = convert(raw)
    assert "out.2.jsonl" in done.stderr
    assert operations(jsonl(work / "out.jsonl"))[0]["duration_ns"] == 1
    assert jsonl(work / "out.2.jsonl")[0]["entrypoint"] == "Other"
    assert operations(jsonl(work / "out.2.jsonl"))[0]["event_id"] == "train-op-0-1"
    (work / "traces").mkdir()
    convert(raw, out="traces")
    assert sorted(p.name for p in (work / "traces").iterdir()) == ["job-100-1.jsonl", "job-100-2.jsonl"]
    done = convert(raw, out="-", status=3)
    assert done.stdout.count('"kind":"meta"') == 1 and "1 more" in done.stderr


def test_conf08_a_session_without_events(convert, work, tickmark):
    raw = R.Capture().process().session().finish(time=100).tide(200).end_capture()
    convert(raw)
    assert (work / "out.jsonl").read_bytes().count(b"\n") == 2
    convert(raw, "--strict", out="strict.jsonl")
    assert (work / "strict.jsonl").read_bytes().count(b"\n") == 1
    tickmark("check", "out.jsonl", "strict.jsonl", status=0)


def test_default_output_and_summary(tickmark, work, tmp_path):
    (tmp_path / "run.tmk").write_bytes(R.simple().data())
    done = tickmark("convert", tmp_path / "run.tmk", status=0)
    assert (work / "run.jsonl").exists()
    assert re.search(r"^matmul +3 +126 ns +100.0 % +42 ns +42 ns +42 ns +42 ns$", done.stdout, re.M)
    assert done.stderr == ""
    done = tickmark("convert", tmp_path / "run.tmk", "-q", status=0)
    assert done.stdout == done.stderr == ""


def test_standard_output(convert, work):
    done = convert(R.simple(), out="-")
    assert done.stdout.count("\n") == 5 and done.stdout.startswith('{"kind":"meta"')
    assert "matmul" in done.stderr
    assert list(work.iterdir()) == [work / "in.tmk"]


def test_hostile_names_reach_no_terminal(convert, work):
    raw = R.Capture().process("\x1b[2J").session(1, "\x1b]0;x\x07").site(0x10, "s", "op\x1b[31m\xff")
    raw.begin(token=1, site=0x10, time=100).end(token=1, time=200)
    raw.begin(token=2, site=0x10, time=300).tide(400).end_capture(R.STOPPED)
    done = convert(raw)
    assert "\x1b" not in done.stdout + done.stderr and "op?[31m" in done.stdout
    assert b"\x1b" not in (work / "out.jsonl").read_bytes()


def test_large_capture(tickmark, build, work, jsonl):
    """Two rings, four threads, nested operations, many tides: all there, in the order of their ends."""
    n = 200000
    subprocess.run([build / "tests/tools/raw_synth", "in.tmk", str(n)], check=True, timeout=60)
    tickmark("convert", "in.tmk", "-q", status=0)
    ops = operations(jsonl(work / "in.jsonl"))
    ends = [op["start_ns"] + op["duration_ns"] for op in ops]
    assert len(ops) == n and ends == sorted(ends)
    # The counter follows the begins: one each 1000 ns.
    assert all(op["start_ns"] == 10**9 + 1000 * (int(op["event_id"].rsplit("-", 1)[1]) - 1) for op in ops)
    tickmark("check", "in.jsonl", status=0)


# --- what does not

def damaged():
    good = R.simple().data()
    size = R.HEADER.size
    yield "empty", b"", "empty"
    yield "text", b"hello\n" * 100, "not a raw capture"
    yield "jsonl", (DATA / "profile_session.jsonl").read_bytes(), "not a raw capture"
    yield "random", random.Random(1).randbytes(5000), "not a raw capture"
    yield "magic", R.header(magic=b"TICKMARX") + good[size:], "not a raw capture"
    yield "version", R.header(version=2) + good[size:], "another format version"
    yield "byte order", R.header(order=0x04030201) + good[size:], "other byte order"
    yield "order damaged", R.header(order=0) + good[size:], "damaged"
    yield "header too long", R.header(length=1 << 30) + good[size:], "damaged"
    yield "header alone", good[:size], "cut short"
    yield "header cut", good[:size - 1], "cut short"
    yield "end cut", good[:-1], "--partial"
    yield "no end", good[:size] + good[size:-R.REC.size - 832], "--partial"
    yield "last record cut", good[:size + 100], "--partial"
    yield "random records", good[:size] + random.Random(2).randbytes(4096), "--partial"
    yield "zeroed records", good[:size] + bytes(4096), "--partial"
    yield "behind the end", good + bytes(24), "behind the end"


@pytest.mark.parametrize("data,why", [pytest.param(d, w, id=i) for i, d, w in damaged()])
def test_no_capture_no_output(convert, work, data, why):
    """One line, exit status 1, no new file, and an old one untouched."""
    assert why in one_error_line(convert(data, status=1))
    assert not (work / "out.jsonl").exists()
    (work / "out.jsonl").write_text("old")
    convert(data, status=1)
    assert (work / "out.jsonl").read_text() == "old"


# --- windows


def windowed(steps=6, **end):
    """A whole capture whose windows nest, overlap, wait for a device, and are closed from another thread."""
    raw = R.Capture().process().session().site(0x10, "s:0", "matmul", "x").name(0x30, "step").name(0x31, "layer")
    for n in range(steps):
        t, own = n * 1000 + 100, {"name": 0x30, "opened_on": 101}
        named = {"name": 0x31, "window": 100 + n | R.WINDOW_NAMED, "opened_on": 2**64 - 1 - n % 2}
        raw.window_start(window=n, **own, step=n, time=t)
        raw.begin(token=n + 1, site=0x10, step=n, time=t + 10)
        raw.window_start(**named, step=n, time=t + 20)
        raw.end(token=n + 1, step=n, time=t + 100)
        raw.thread(102).window_end(window=n, **own, how=R.W_CLOSED | R.HOW_FLUSH * (n % 2), time=t + 200).thread(101)
        raw.window_end(**named, how=R.W_PENDING | R.HOW_DEVICE, time=t + 300)
        raw.window_resolve(window=named["window"], opened_on=named["opened_on"], duration=7000 + n,
                           time=t + 1500).tide(t + 400)
    time = steps * 1000 + 2000
    return raw.finish(time=time).tide(time).end_capture(**end)


def windows(lines):
    return [line for line in lines if "window" in line]


def test_windows(convert, work, jsonl, tickmark, importer):  # noqa: F811
    convert(windowed())
    lines = jsonl(work / "out.jsonl")
    steps = [w for w in windows(lines) if w["op"] == "step"]
    layers = [w for w in windows(lines) if w["op"] == "layer"]
    assert [w["window"]["duration_ns"] for w in steps] == [200] * 6
    assert all(w["window"]["idle_ns"] == 110 and w["window"]["operations"] == 1 for w in steps)
    assert all((w["tid"], w["end_tid"], w["stream"]) == (101, 102, 101) for w in steps)
    assert [w["window"]["flush"] for w in steps] == [False, True] * 3
    assert sorted(w["window"]["duration_ns"] for w in layers) == [7000 + n for n in range(6)]
    assert {w["window"]["method"] for w in layers} == {"device"}
    assert all(w["window"]["operations"] == 0 for w in layers)  # another stream's
    assert lines[-1]["capture"]["windows"] == {"closed": 12, "abandoned": 0, "not_measured": 0, "failed": 0,
                                               "open": 0}
    tickmark("check", "out.jsonl", status=0)
    verdict, = importer.verdicts([work / "out.jsonl"])
    assert verdict["accepted"], verdict
    convert(windowed(), "--strict")
    assert not windows(jsonl(work / "out.jsonl"))


def test_conf31_any_subset_of_records_gives_no_wrong_duration(convert, work, jsonl, tickmark):
    """Lost records make windows unmeasured, open or absent; a duration that is there is the true one."""
    rng = random.Random(48)
    whole = windowed(40)
    convert(whole)

    def durations():
        return {(w["window"]["id"], w["window"]["opened_on"], w["window"]["duration_ns"])
                for w in windows(jsonl(work / "out.jsonl")) if "duration_ns" in w["window"]}

    true, seen = durations(), 0
    for _ in range(20):
        part = R.Capture()
        part.parts = [p for p in whole.parts
                      if len(p) < R.REC.size or not 1 <= p[2] < R.MARKERS or rng.random() < 0.7]
        convert(part, status=None)
        assert durations() <= true
        seen += len(durations())
        tickmark("check", "out.jsonl", status=0)
    assert seen > 20 * 20  # and it does not say nothing


@pytest.mark.parametrize("capture", [R.simple, windowed])
def test_every_truncation(capture, convert, work, tickmark):
    """Cut anywhere, a capture is refused; with --partial, what is left makes a file that is whole."""
    good = capture(3).data()
    for size in list(range(R.HEADER.size, len(good), 24)) + [len(good) - 1]:
        (work / "out.jsonl").unlink(missing_ok=True)
        one_error_line(convert(good[:size], status=1))
        assert not (work / "out.jsonl").exists()
        done = convert(good[:size], "--partial", "-q", status=None)
        if not (work / "out.jsonl").exists():
            assert done.returncode == 1 and "no session" in one_error_line(done)
            continue
        assert done.returncode == 3 and "cut short" in done.stderr
        last = (work / "out.jsonl").read_bytes().splitlines()[-1]
        capture = json.loads(last)["capture"]
        assert capture["status"] in ("failed", "complete")  # complete: its finish was seen
        assert not {"hits", "delivered", "lost", "overhead"} & set(capture)
        tickmark("check", "out.jsonl", status=0)


def test_partial_of_a_whole_capture_changes_nothing(convert, work):
    convert(R.simple())
    whole = (work / "out.jsonl").read_bytes()
    convert(R.simple(), "--partial")
    assert (work / "out.jsonl").read_bytes() == whole


def test_malformed_records_are_left_out_and_counted(convert, work, jsonl):
    """Well framed, but nonsense inside: the rest is converted, and the exit status says so."""
    raw = R.Capture().process().session().site(0x10, "s", "op")
    raw.begin(token=1, site=0x10, time=100)
    raw.raw(R.REC.pack(32, 200, 0, 1, 100, 101, 110) + bytes(8))        # no such kind
    raw.raw(R.REC.pack(32, R.OP_BEGIN, 0, 1, 100, 101, 110) + bytes(8))  # too short for its kind
    raw.raw(R.REC.pack(24, R.OP_END, 0, 0, 0, 0, 110))
    raw.describe(99, 0x50, ["x"])
    raw.end(token=1, time=200).tide(300).end_capture(R.DETACHED)
    done = convert(raw, status=3)
    assert "4 malformed records" in done.stderr
    assert operations(jsonl(work / "out.jsonl"))[0]["duration_ns"] == 100


@pytest.mark.parametrize("capture", [R.simple, windowed])
def test_random_damage_never_kills(capture, convert, work, tickmark):
    """Random bytes anywhere behind the header: a file that is whole, or one line."""
    rng = random.Random(7)
    good = capture(20).data()
    for _ in range(150):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 20)):
            data[rng.randrange(R.HEADER.size, len(data))] = rng.randrange(256)
        (work / "out.jsonl").unlink(missing_ok=True)
        done = convert(bytes(data), "--partial", status=None)
        assert done.returncode in (0, 1, 3), done.stderr
        if (work / "out.jsonl").exists():
            tickmark("check", "out.jsonl", status=0)
        else:
            assert done.returncode == 1


def test_counters_that_contradict_one_another(convert, work, jsonl):
    raw = R.Capture().process().session().finish(time=5).tide(10)
    raw.end_capture(R.COMPLETE, hits=[0] * 3 + [7] + [0] * 12, delivered=[0] * 3 + [5] + [0] * 12)
    done = convert(raw, status=1)
    assert "DISAGREE" in done.stdout and "contradict" in done.stderr
    assert jsonl(work / "out.jsonl")[-1]["capture"]["status"] == "failed"


def test_no_session(convert, work):
    raw = R.Capture().process().begin(token=1, site=0x10, time=10).tide(20).end_capture(R.STOPPED)
    done = convert(raw, "-q", status=1)
    assert "no session" in one_error_line(done)
    assert not (work / "out.jsonl").exists()


def test_input_that_is_no_file(tickmark, work):
    (work / "dir.tmk").mkdir()
    os.mkfifo(work / "fifo.tmk")
    for name, why in (("missing.tmk", "no such file"), ("dir.tmk", "directory"),
                      ("fifo.tmk", "not a regular file"), ("/dev/null", "not a regular file")):
        assert why in one_error_line(tickmark("convert", name, "-o", "out.jsonl", status=1))
    assert not (work / "out.jsonl").exists()


def test_output_that_cannot_be(convert, work):
    raw = R.simple()
    assert "create it first" in one_error_line(convert(raw, out="missing/out.jsonl", status=1))
    assert "input" in one_error_line(convert(raw, "-q", out="in.tmk", status=1))
    os.link(work / "in.tmk", work / "other-name")
    assert "input" in one_error_line(convert(raw, "-q", out="other-name", status=1))
    assert (work / "in.tmk").read_bytes() == raw.data()
    (work / "file").write_text("x")
    assert "directory" in one_error_line(convert(raw, out="file/", status=1))
    assert "directory" in one_error_line(convert(raw, out="file/out.jsonl", status=1))


def test_conf33_no_space(convert, work):
    assert "No space left" in one_error_line(convert(R.simple(), "-q", out="/dev/full", status=1))


def test_conf33_no_space_later_leaves_nothing(build, work):
    """The file grows over a limit in the middle: it can be made again, so half of it is not left."""
    (work / "in.tmk").write_bytes(R.simple(5000).data())

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300000, 300000))
    done = subprocess.run([build / "tickmark", "convert", "in.tmk", "-q"], preexec_fn=limit, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "File too large" in one_error_line(done)
    assert not (work / "in.jsonl").exists()


def test_standard_output_that_is_closed_early(build, work):
    (work / "in.tmk").write_bytes(R.simple(20000).data())
    done = subprocess.run(["sh", "-c", f"'{build}/tickmark' convert in.tmk -q -o - | head -n 1"], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.stdout.startswith('{"kind":"meta"') and done.stdout.count("\n") == 1


@pytest.mark.parametrize("args", [[], ["a.tmk", "b.tmk"], ["--nonsense", "a.tmk"], ["a.tmk", "-o"]])
def test_wrong_usage(tickmark, work, args):
    done = tickmark("convert", *args, status=2)
    assert done.stdout == "" and "tickmark convert" in done.stderr


def test_help_shows_examples_first(tickmark):
    done = tickmark("convert", "--help", status=0)
    assert done.stdout.index("tickmark convert run.tmk") < done.stdout.index("--strict")
    assert "Exit status" in done.stdout and done.stderr == ""


def test_abi_sizes_agree():
    """This second implementation lays records out as capture_abi.h does."""
    source = (HERE.parent.parent / "include" / "capture_abi.h").read_text()
    sizes = dict(re.findall(r"TMK_ASSERT_SIZE\((\w+), (\d+)\)", source))
    raw = R.Capture()
    for name, make in (("tmk_rec", lambda: raw.exec(0)), ("tmk_rec_session", raw.open),
                       ("tmk_rec_op_begin", lambda: raw.begin(token=1, site=1, time=1)),
                       ("tmk_rec_op_end", lambda: raw.end(token=1, time=1)),
                       ("tmk_rec_edge", lambda: raw.edge(site=1, duration=1, time=1))):
        make()
        assert len(raw.parts[-1]) == int(sizes[name]), name
        assert struct.unpack_from("<H", raw.parts[-1])[0] == len(raw.parts[-1])
