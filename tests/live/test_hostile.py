# SPDX-License-Identifier: BSD-2-Clause
"""A target whose every byte may be a lie: it cannot hurt the tracer, its file, or the terminal."""
import json

TERMINAL = [chr(c) for c in range(0x20) if chr(c) not in "\t\n"] + ["\x7f"] + [chr(c) for c in range(0x80, 0xa0)]


def test_conf20_lies_stay_in_their_strings(job, record, tickmark, tmp_path, verified):
    out, raw = tmp_path / "run.jsonl", tmp_path / "run.tmk"
    target = job("tests/live/hostile")
    tracer = record("-p", target.pid, "-o", out, "--raw", raw, attached_to=target.pid)
    assert target.wait() == 0
    assert tracer.wait() in (0, 3), tracer.report()
    files = sorted(tmp_path.glob("run*.jsonl"))
    assert out in files
    for path in files:
        verified(path)

    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    capture = lines[-1]["capture"]
    assert sum(capture["hits"].values()) == (sum(capture["delivered"].values()) +
                                             sum(capture["lost"].values()))
    # 13 honest pairs a round; what was never begun, begun twice or ended twice is counted, not paired.
    ops = [line for line in lines if line["kind"] == "operation" and "duration_ns" in line]
    assert len(ops) == 50 * 13
    assert sum(line["kind"] == "edge_timing" for line in lines) == 50 * 13
    unpaired = capture["unpaired"]
    assert unpaired["end_without_begin"] + unpaired["repeated_end"] == 2 * 50
    assert unpaired["begin_reused"] >= 50
    names = {op["op"] for op in ops}
    assert "?" in names and any("\x1b[2J" in name for name in names)

    # On the screen nothing but text, whatever it was in the file.
    for text in (tracer.out, tracer.err):
        assert not any(c in text for c in TERMINAL), repr(text)
    replay = tmp_path / "replay.jsonl"
    tickmark("convert", raw, "-o", replay)
    assert replay.read_bytes() == out.read_bytes()


def test_list_shows_a_liar_harmlessly(job, tickmark):
    target = job("tests/live/hostile")
    done = tickmark("list", "-p", target.pid, status=0)
    assert "hostile" in done.stdout and not any(c in done.stdout + done.stderr for c in TERMINAL)
