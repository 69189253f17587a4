# SPDX-License-Identifier: BSD-2-Clause
"""tickmark record against running programs: what was marked is what is in the file, and nothing else.

Tests whose name begins with confNN show that statement of the conformance list.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parent.parent / "data"
MARKED = "tests/live/marked"
BOTH = pytest.mark.parametrize("program", [MARKED, MARKED + "-shared"])

OWN = ("start_ns", "pid", "tid", "stream", "end_tid", "truncated")


def library_of(program, build):
    return str(build / "libtickmark.so.0") if program.endswith("-shared") else None


def operations(lines):
    return [line for line in lines if line["kind"] == "operation" and "duration_ns" in line]


def balanced(capture):
    assert set(capture["delivered"]) <= set(capture["hits"])
    return sum(capture["hits"].values()) == (sum(capture["delivered"].values()) +
                                             sum(capture["lost"].values()))


@BOTH
def test_conf26_profile_session_is_reproduced(program, job, build, record, tmp_path, verified):
    out = tmp_path / "run.jsonl"
    target = job(program, "session")
    tracer = record("-p", target.pid, "-o", out, attached_to=target.pid,
                    library=library_of(program, build))
    assert target.wait() == 0
    assert tracer.wait() == 0, tracer.report()
    verified(out)

    def base(text):
        text = re.sub(r',"start_ns":\d+,"pid":\d+,"tid":\d+(,"stream":\d+)?(,"end_tid":\d+)?', "", text)
        lines = [line for line in text.splitlines() if '"capture":{' not in line]
        lines[2:] = [re.sub(r'"duration_ns":\d+', '"duration_ns":0', line) for line in lines[2:]]
        return lines
    assert base(out.read_text()) == base((DATA / "profile_session.jsonl").read_text())


@BOTH
@pytest.mark.parametrize("on_path", [False, True])
def test_command_that_ends_at_once_loses_nothing(program, on_path, build, tickmark, tmp_path, verified):
    out = tmp_path / "run.jsonl"
    path = build / program
    env = dict(os.environ, PATH=f"{path.parent}:{os.environ['PATH']}")
    done = tickmark("record", "-o", out, "--", path.name if on_path else path, "once", env=env)
    assert done.returncode == 0, done.stderr
    assert "exited with status 7" in done.stderr
    lines = verified(out)
    ops = operations(lines)
    assert [(op["event_id"], op["output"]) for op in ops] == [("train-op-0-1", "out")]
    capture = lines[-1]["capture"]
    assert capture["status"] == "complete" and balanced(capture)
    assert capture["hits"] == {"session_open": 1, "session_finish": 1, "op_begin": 1, "op_end": 1}
    assert capture["exit"] == {"code": 7}


def test_command_in_a_stripped_static_binary(build, tickmark, sanitized, tmp_path, verified):
    if sanitized:
        pytest.skip("a sanitizer cannot be linked statically")
    stripped = tmp_path / "stripped"
    subprocess.run(["gcc", "-static", "-O2", "-I", "include", "-o", stripped, "tests/live/marked.c",
                    build / "libtickmark.a", "-lpthread"], check=True, cwd=DATA.parent.parent)
    subprocess.run(["strip", "-s", stripped], check=True)
    out = tmp_path / "run.jsonl"
    tickmark("record", "-o", out, "--", stripped, "once", status=0)
    assert len(operations(verified(out))) == 1


def test_command_behind_a_shell_that_execs_it(build, tickmark, tmp_path, verified):
    out = tmp_path / "run.jsonl"
    tickmark("record", "-o", out, "--", "sh", "-c", f"sleep 0.2; exec {build / MARKED} once", status=0)
    assert len(operations(verified(out))) == 1


def test_command_gets_the_signals_of_its_caller(tickmark, tmp_path):
    """The recorder blocks some signals and ignores SIGPIPE; its command must do neither."""
    question = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]

    def masks(text):  # of the 31 classic signals: what the C library does with its own is not ours
        return {key: int(value, 16) & 0x7fffffff for key, value in
                re.findall(r"^(Sig\w+):\s+([0-9a-f]+)$", text, re.M)}
    plain = subprocess.run(question, stdout=subprocess.PIPE, text=True, check=True).stdout
    done = tickmark("record", "-o", tmp_path / "run.jsonl", "--", *question)
    assert masks(done.stdout) == masks(plain) and len(masks(plain)) == 2


def test_command_killed_by_a_signal_is_reported(build, tickmark, tmp_path):
    done = tickmark("record", "-o", tmp_path / "run.jsonl", "--", "sh", "-c", "kill -SEGV $$")
    assert done.returncode == 1
    assert "killed by signal 11" in done.stderr and "no tickmark markers" in done.stderr
    assert list(tmp_path.iterdir()) == []


@BOTH
def test_conf11_durations_against_the_programs_own_clock(program, job, build, record, tmp_path, verified):
    out = tmp_path / "run.jsonl"
    target = job(program, "clocked", 5000)
    tracer = record("-p", target.pid, "-o", out, attached_to=target.pid,
                    library=library_of(program, build))
    assert target.wait() == 0
    assert tracer.wait() == 0, tracer.report()
    clocked = [tuple(map(int, line.split())) for line in target.out.splitlines()[1:]]
    ops = operations(verified(out))
    assert len(ops) == len(clocked) == 5000
    for op, (inside, outside) in zip(ops, clocked):
        assert inside <= op["duration_ns"] <= outside, op


def test_conf13_operations_that_end_on_another_thread(job, record, tmp_path, verified):
    out = tmp_path / "run.jsonl"
    target = job(MARKED, "threads", 4)
    tracer = record("-p", target.pid, "-o", out, attached_to=target.pid)
    assert target.wait() == 0
    assert tracer.wait() == 0, tracer.report()
    lines = verified(out)
    ops = operations(lines)
    assert len(ops) == 1000
    assert len({op["event_id"] for op in ops}) == 1000
    assert sum("end_tid" in op for op in ops) >= 998
    for op in ops:
        assert op.get("end_tid", 0) != op["tid"]
    # One baton: an operation begins after the one before has ended.
    for before, after in zip(ops, ops[1:]):
        assert before["start_ns"] + before["duration_ns"] <= after["start_ns"]
    assert not any(lines[-1]["capture"]["unpaired"].values())


@BOTH
def test_attach_and_detach_leave_the_job_alone(program, job, build, record, tmp_path, verified, semaphores):
    out = tmp_path / "run.jsonl"
    library = library_of(program, build)
    target = job(program, "service")
    assert semaphores(target.pid, library) == (0, 0)
    tracer = record("-p", target.pid, "-o", out, "-d", "1", attached_to=target.pid, library=library)
    assert tracer.wait() == 0, tracer.report()
    assert target.alive() and semaphores(target.pid, library) == (0, 0)
    lines = verified(out)
    capture = lines[-1]["capture"]
    assert capture["status"] == "detached" and balanced(capture)
    assert sum(capture["lost"].values()) == 0
    assert capture["operations"] == len(operations(lines)) > 100
    assert {op["op"] for op in operations(lines)} == {"matmul", "softmax"}
    assert len({line["event_id"] for line in lines[1:]}) == len(lines) - 1
    # The same job once more: a second capture begins to count anew.
    again = tmp_path / "again.jsonl"
    tracer = record("-p", target.pid, "-o", again, "-d", "0.3", attached_to=target.pid, library=library)
    assert tracer.wait() == 0, tracer.report()
    numbers = [int(op["event_id"].rsplit("-", 1)[1]) for op in operations(verified(again))]
    assert min(numbers) <= 2
    target.signal(signal.SIGTERM)
    assert target.wait() == 0


def test_conf12_nested_operations_have_their_own_durations(job, record, tmp_path, verified):
    out = tmp_path / "run.jsonl"
    target = job(MARKED, "service")
    tracer = record("-p", target.pid, "-o", out, "-d", "0.5", attached_to=target.pid)
    assert tracer.wait() == 0, tracer.report()
    ops = operations(verified(out))
    # Ends come inner, outer, inner, outer; after whatever the attach cut in half.
    first = next(i for i, op in enumerate(ops) if op["op"] == "softmax")
    pairs = list(zip(ops[first::2], ops[first + 1::2]))
    assert len(pairs) > 50
    for nested, outer in pairs:
        assert (nested["op"], outer["op"]) == ("softmax", "matmul")
        assert outer["start_ns"] <= nested["start_ns"]
        assert (nested["start_ns"] + nested["duration_ns"] <= outer["start_ns"] + outer["duration_ns"])


def test_raw_capture_replays_to_the_same_bytes(job, record, tickmark, tmp_path, verified):
    out, raw, replay = tmp_path / "run.jsonl", tmp_path / "run.tmk", tmp_path / "replay.jsonl"
    target = job(MARKED, "service")
    tracer = record("-p", target.pid, "-o", out, "--raw", raw, attached_to=target.pid)
    time.sleep(0.5)
    assert tracer.stop() == 0, tracer.report()
    tickmark("convert", raw, "-o", replay, status=0)
    assert replay.read_bytes() == out.read_bytes()
    assert verified(out)[-1]["capture"]["status"] == "stopped"


def test_conf09_killed_tracer_leaves_whole_lines_and_no_trace(job, record, tmp_path, semaphores):
    out = tmp_path / "run.jsonl"
    target = job(MARKED, "service")
    tracer = record("-p", target.pid, "-o", out, attached_to=target.pid)
    time.sleep(1)
    tracer.signal(signal.SIGKILL)
    tracer.wait()
    end = time.monotonic() + 10
    while semaphores(target.pid) != (0, 0):
        assert time.monotonic() < end, "the semaphores stayed up"
        time.sleep(0.05)
    text = out.read_bytes()
    assert text.endswith(b"\n")
    lines = [json.loads(line) for line in text.splitlines()]
    assert len(operations(lines)) > 10 and not any("capture" in line for line in lines)
    target.signal(signal.SIGTERM)
    assert target.wait() == 0, "the job did not go on to its end"


def test_conf15_killed_job_leaves_its_operations_unfinished(job, record, tmp_path, verified):
    out = tmp_path / "run.jsonl"
    target = job(MARKED, "hang")
    tracer = record("-p", target.pid, "-o", out, attached_to=target.pid)
    target.wait_for("hanging")
    time.sleep(0.1)
    target.signal(signal.SIGKILL)
    assert tracer.wait() == 0, tracer.report()
    lines = verified(out)
    unfinished = [line for line in lines if "unfinished" in line]
    assert [(line["op"], line["unfinished"]["reason"]) for line in unfinished] == [
        ("softmax", "target_gone"), ("matmul", "target_gone")]
    assert not operations(lines)
    assert all("duration_ns" not in line for line in unfinished)
    capture = lines[-1]["capture"]
    assert capture["status"] == "target_gone" and capture["unfinished"] == 2 and balanced(capture)


def test_exec_ends_what_the_old_image_had_open(job, record, tmp_path, verified):
    target = job(MARKED, "reexec")
    tracer = record("-p", target.pid, "-o", f"{tmp_path}/", attached_to=target.pid)
    assert target.wait() == 0
    assert tracer.wait() == 0, tracer.report()
    by_entrypoint = {}
    for path in tmp_path.iterdir():
        lines = verified(path)
        by_entrypoint[lines[0]["entrypoint"]] = lines
    assert set(by_entrypoint) == {"First", "Second"}
    assert [line["unfinished"]["reason"] for line in by_entrypoint["First"] if "unfinished" in line] == [
        "exec"]
    assert len(operations(by_entrypoint["Second"])) == 1


@pytest.mark.parametrize("strict", [False, True])
def test_conf08_session_in_which_nothing_happened(strict, job, record, tmp_path, verified):
    out = tmp_path / "run.jsonl"
    target = job(MARKED, "idle")
    tracer = record("-p", target.pid, "-o", out, "-d", "0.3", *(["--strict"] if strict else []))
    assert tracer.wait() == 0, tracer.report()
    lines = verified(out)
    assert lines[0]["entrypoint"] == "Model::forward" and lines[0]["phase"] == "infer"
    assert len(lines) == (1 if strict else 2)


def test_conf30_strict_writes_base_fields_only(job, record, tmp_path, verified):
    out = tmp_path / "run.jsonl"
    target = job(MARKED, "service")
    tracer = record("-p", target.pid, "-o", out, "-d", "0.3", "--strict", attached_to=target.pid)
    assert tracer.wait() == 0, tracer.report()
    for line in verified(out)[1:]:
        assert set(line) <= {"kind", "event_id", "op", "static_id", "inputs", "output", "step",
                             "duration_ns"}


def test_conf21_two_processes_never_share_a_file(job, record, tmp_path, verified):
    targets = [job(MARKED, "service"), job(MARKED + "-shared", "service")]
    tracer = record("-p", f"{targets[0].pid},{targets[1].pid}", "-d", "0.7", "-o", tmp_path,
                    attached_to=targets[0].pid)
    assert tracer.wait() == 0, tracer.report()
    files = sorted(tmp_path.iterdir())
    assert len(files) == 2
    pids = []
    for path in files:
        ops = operations(verified(path))
        pids.append({op["pid"] for op in ops})
        assert ops[0]["event_id"].endswith(("-1", "-2"))
    assert sorted(map(sorted, pids)) == sorted([t.pid] for t in targets)


def test_output_on_stdout_and_talk_on_stderr(job, record, tmp_path, verified):
    target = job(MARKED, "service")
    tracer = record("-p", target.pid, "-d", "0.3", "-o", "-", attached_to=target.pid)
    assert tracer.wait() == 0, tracer.report()
    out = tmp_path / "run.jsonl"
    out.write_text(tracer.out)
    assert operations(verified(out))
    assert "matmul" in tracer.err


def test_summary_counts_what_the_file_holds(job, record, tmp_path, verified):
    out = tmp_path / "run.jsonl"
    target = job(MARKED, "service")
    tracer = record("-p", target.pid, "-d", "0.5", "-o", out, attached_to=target.pid)
    assert tracer.wait() == 0, tracer.report()
    ops = operations(verified(out))
    for name in ("matmul", "softmax"):
        row = next(line for line in tracer.out.splitlines() if line.split()[:1] == [name])
        assert row.split()[1].replace(",", "") == str(sum(op["op"] == name for op in ops))
    assert "\033" not in tracer.out + tracer.err, "no terminal, so no escapes"


def test_conf31_overflow_is_counted_and_pairs_stay_right(job, record, tmp_path, tickmark, jsonl):
    """A tracer that is stopped cannot read: the rings overflow, and the books still balance."""
    out = tmp_path / "run.jsonl"
    target = job("bench/target", stdin=subprocess.PIPE)
    tracer = record("-p", target.pid, "-o", out, attached_to=target.pid)
    tracer.signal(signal.SIGSTOP)
    target.send("pairs 400000\n")
    target.wait_for("pairs", timeout=60)
    tracer.signal(signal.SIGCONT)
    time.sleep(0.5)
    target.send("pairs 1000\n")
    target.wait_for("pairs 1000")
    target.process.stdin.close()
    assert target.wait() == 0
    assert tracer.wait() == 3, tracer.report()
    tickmark("check", out, status=0)
    lines = jsonl(out)
    capture = lines[-1]["capture"]
    assert capture["lost"]["ring_full"] > 0 and balanced(capture)
    assert capture["hits"]["op_begin"] == 401000
    ops = operations(lines)
    assert len(ops) + capture["unfinished"] == capture["delivered"]["op_begin"]
    # The pairs are made one after another on one thread: a wrong pair would overlap its neighbours.
    for before, after in zip(ops, ops[1:]):
        assert before["start_ns"] + before["duration_ns"] <= after["start_ns"]
    assert "lost" in tracer.out + tracer.err and "late" not in tracer.out


def test_works_without_kernel_btf(job, build, tmp_path, tickmark):
    """The programs use no CO-RE, so a kernel without BTF is no obstacle."""
    target = job(MARKED, "service")
    out = tmp_path / "run.jsonl"
    command = f"mount -t tmpfs none /sys/kernel/btf && exec {build}/tickmark record -p {target.pid} " \
              f"-d 0.3 -o {out}"
    done = subprocess.run(["unshare", "-m", "sh", "-c", command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
    tickmark("check", out, status=0)


def test_other_tools_see_the_same_markers(job, build, record, tmp_path, tracefs, verified):
    """bpftrace attaches to the first nop of a marker while tickmark sits on another."""
    if not shutil.which("bpftrace"):
        pytest.skip("bpftrace is not installed (make bench installs it)")
    target = job(MARKED, "service")
    path = build / MARKED
    listed = subprocess.run(["bpftrace", "-l", f"usdt:{path}:*"], stdout=subprocess.PIPE, text=True,
                            check=True).stdout
    for marker in ("op_begin", "op_end", "edge", "session_open", "session_finish"):
        assert f"tickmark:{marker}" in listed
    out = tmp_path / "run.jsonl"
    tracer = record("-p", target.pid, "-o", out, "-d", "6", attached_to=target.pid)
    script = f"usdt:{path}:tickmark:op_begin {{ @n = count(); }} interval:s:2 {{ exit(); }}"
    done = subprocess.run(["bpftrace", "-p", str(target.pid), "-e", script], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"@n: (\d+)", done.stdout).group(1)) > 100
    assert tracer.wait() == 0, tracer.report()
    assert balanced(verified(out)[-1]["capture"])
    assert target.alive()


def test_conf21_two_copies_of_the_library_in_one_process(job, build, record, tmp_path, verified):
    target = job("tests/live/copies", build / "libtickmark.so.0")
    tracer = record("-p", target.pid, "-o", f"{tmp_path}/", attached_to=target.pid)
    assert target.wait() == 0
    assert tracer.wait() == 0, tracer.report()
    found = {}
    for path in tmp_path.iterdir():
        lines = verified(path)
        found[lines[0]["entrypoint"]] = {op["op"] for op in operations(lines)}
        assert len(operations(lines)) == 100
    assert found == {"Linked": {"linked"}, "Loaded": {"loaded"}}
