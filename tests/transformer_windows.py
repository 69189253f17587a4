# SPDX-License-Identifier: BSD-2-Clause
"""The example's windows in a runtime/3 file, against what the program itself measured and counted.

Used for the file that a session writes by itself and for one that a tracer wrote.
"""
from collections import Counter, defaultdict

DEVICE_STREAM = 100
OUTER = {"train": "train_step", "infer": "token"}


def windows_of(lines):
    return [line for line in lines if "window" in line]


def by_name(windows):
    names = defaultdict(list)
    for window in windows:
        names[window["op"]].append(window)
    return names


def own_windows(clock, phase):
    """({id: what the program saw of it}, {id: what its device measured}) of one phase."""
    mine = [w for w in clock["windows"] if w["phase"] == phase]
    seen = {w["id"]: w for w in mine if "name" in w}
    ticks = {w["id"]: w["ticks"] for w in mine if "ticks" in w}
    assert len(seen) + len(ticks) == len(mine), "an id occurs twice"
    return seen, ticks


def check_against_own_clock(lines, clock, phase):
    """Every window is there once, and says what the program's own clock, counts and device say."""
    seen, ticks = own_windows(clock, phase)
    windows = {line["window"]["id"]: line for line in windows_of(lines)}
    assert len(windows) == len(windows_of(lines)) and set(windows) == set(seen)
    assert len(windows) > 0
    for number, line in windows.items():
        own, window = seen[number], line["window"]
        assert line["op"] == own["name"]
        assert (window["status"], window.get("reason")) == \
            (own["how"], "program" if own["how"] == "abandoned" else None), line
        if line.get("named"):
            assert line["stream"] == window["opened_on"] == own["opened_on"]
        assert "incomplete" not in window, line
        assert own["start_ns"][0] <= window["start_ns"] <= own["start_ns"][1], line
        assert own["end_ns"][0] <= window["end_ns"] <= own["end_ns"][1], line
        assert own["operations"][0] <= window["operations"] <= own["operations"][1], (line, own)
        assert window["idle_ns"] <= window["end_ns"] - window["start_ns"]
        check_duration(window, ticks.get(number))
    return windows


def check_duration(window, ticks):
    if window["status"] == "abandoned":
        assert "duration_ns" not in window and not ticks
    elif ticks:
        start, end, per_second = ticks
        assert window["method"] == "device" and per_second == 12_000_000
        assert window["duration_ns"] == (end - start) * 10**9 // per_second
        assert window["duration_ns"] >= 20_000, "a copy takes the device this long"
    else:
        assert window["method"] == "system"
        assert window["duration_ns"] == window["end_ns"] - window["start_ns"]


def check_streams(lines, phase, workers):
    """What belongs together is a window on the stream of whoever runs it, and of every worker."""
    names = by_name(windows_of(lines))
    numbers = set(range(1, workers + 1))

    def streams(name):
        return Counter(w["stream"] for w in names[name] if w.get("named"))

    assert not streams(OUTER[phase])
    assert len({w["stream"] for w in names[OUTER[phase]]}) == 1
    assert set(streams("share")) == set(streams("layer")) == numbers
    assert set(streams("share").values()) == {len(names[OUTER[phase]])}
    assert len(names["layer"]) == sum(streams("layer").values()) * (workers + 1) // workers
    assert "piece" not in names or set(streams("piece")) <= numbers


def check_nesting(lines, phase, layers):
    """Every layer lies in its step or token, and every step or token has all its layers."""
    windows = {line["window"]["id"]: line for line in windows_of(lines)}
    found = Counter()
    for line in windows.values():
        if line["op"] in (OUTER[phase], "share"):
            found.setdefault(line["window"]["id"], 0)
        if line["op"] != "layer":
            continue
        outer = outermost(windows, line)
        assert outer["op"] == ("share" if line.get("named") else OUTER[phase])
        assert outer["step"] == line["step"]
        found[outer["window"]["id"]] += 1
        if not line.get("named"):  # the workers have pieces in between
            assert line["window"]["depth"] == 1 and line["window"]["overlaps"] == 0
    assert found and set(found.values()) == {layers}


def outermost(windows, line):
    """The last parent, after each on the way was found to hold the one inside."""
    while "parent" in line["window"]:
        inner, line = line, windows[line["window"]["parent"]]
        assert (line["stream"], line.get("named")) == (inner["stream"], inner.get("named"))
        assert line["window"]["start_ns"] <= inner["window"]["start_ns"]
        assert inner["window"]["end_ns"] <= line["window"]["end_ns"]
        assert line["window"]["depth"] < inner["window"]["depth"]
    assert line["window"]["depth"] == 0
    return line


def check_counts(lines):
    """A window's count is that of the operations in the same file that ended while it was open."""
    ends = defaultdict(list)
    for op in lines:
        if op["kind"] == "operation" and "duration_ns" in op:
            ends[op["stream"], op.get("named", False)].append(op["start_ns"] + op["duration_ns"])
    some = 0
    for line in windows_of(lines):
        window = line["window"]
        times = ends[line["stream"], line.get("named", False)]
        inside = sum(window["start_ns"] < end < window["end_ns"] for end in times)
        at_the_ends = sum(end in (window["start_ns"], window["end_ns"]) for end in times)
        assert inside <= window["operations"] <= inside + at_the_ends, line
        some += inside
    assert some > 0


def check_prompts(lines, prompts, cancelled):
    """A prompt is closed by a worker; a cancelled one leaves a token that never came."""
    names = by_name(windows_of(lines))
    workers = {op["tid"] for op in lines if op["kind"] == "operation" and op.get("named") and
               op["stream"] != DEVICE_STREAM and "duration_ns" in op}
    assert len(names["prompt"]) == prompts
    for line in names["prompt"]:
        assert line["end_tid"] in workers and line["tid"] not in workers
        assert not line.get("named") and line["window"]["status"] == "closed"
    for name in ("token", "share", "logits"):
        steps = {w["step"] for w in names[name] if w["window"]["status"] == "abandoned"}
        assert len(steps) == cancelled, name
    for name in ("prompt", "layer"):
        assert not any(w["window"]["status"] == "abandoned" for w in names[name]), name


def check_device(lines):
    """The device's windows hold their copy, and their durations come late, the newest first."""
    device = by_name(windows_of(lines))["logits"]
    for line in device:
        assert (line["stream"], line["named"]) == (DEVICE_STREAM, True)
        assert line["window"]["method"] == "device" and line["window"]["operations"] == 1, line
        assert line["window"]["flush"] == (line["window"]["status"] == "closed")
    # Lines are written when it is all known: after every fourth token the durations of the four before,
    # for its own last stamp comes to the device with the next copy.
    steps = [line["step"] for line in device if line["window"]["status"] == "closed"]
    batches = defaultdict(list)
    for step in steps:
        batches[step // 4].append(step)
    assert all(batch == sorted(batch, reverse=True) for batch in batches.values()), steps
    assert any(len(batch) > 1 for batch in batches.values())
