#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures tickmark beside its peers, prints a table and writes BUILD/bench.json.

    bench.py [--build DIR] [PART…]        parts: detached direct window assemble loss convert session
                                          memory

Whatever is compared alternates within one run, and each figure is the median of its repeats: times on
a shared machine drift, ratios hardly. A target is pinned to one CPU; its tracer may use the others.
The exit status is 1 where a bound was missed, or a part could not be measured.
"""
import argparse
import json
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path


TARGET_CPU = 0
MARKERS = 8                         # that the library has: probes of ours on a target
DIRECT_ROUNDS, WINDOW_ROUNDS = 7, 5
BURSTS, BURST_PAIRS = 10, 20000     # a burst fits the rings, so what is timed is never a lost hit
LOSS_RATE, LOSS_SECONDS = 200_000, 30
MEMORY_RATE, MEMORY_SECONDS = 100_000, 40
FILE_OPS, FILE_ROUNDS = 1_000_000, 5
ATTACH_SECONDS = 30


class Failed(Exception):
    """A part could not be measured; the text says why."""


def rust_session(build):
    """The Rust peer, or None where there is no cargo to build it."""
    if not shutil.which("cargo"):
        return None
    program = build / "bench/rust/release/rust_session"
    if not program.exists():
        raise Failed(f"{program}: not built; run scripts/bench/setup-peers.sh")
    return program


class Table:
    """The rows as they come: on the screen at the end, flat in bench.json."""

    def __init__(self):
        self.values, self.rows = {}, []

    def put(self, **figures):
        self.values.update(figures)

    def row(self, what, must, measured, good):
        self.rows.append((what, must, measured, "ok" if good else "MISSED"))

    def skip(self, what, must, why):
        self.rows.append((what, must, f"skipped: {why}", "-"))

    def fail(self, what, why):
        self.rows.append((what, "", str(why), "FAILED"))

    def good(self):
        return all(row[3] in ("ok", "-") for row in self.rows)

    def show(self):
        rows = [("what", "must be", "measured", "")] + self.rows
        wide = [max(len(row[i]) for row in rows) for i in range(3)]
        print()
        for row in rows:
            print("  ".join(cell.ljust(wide[i]) for i, cell in enumerate(row[:3])), row[3], sep="  ")


class Target:
    """tests/bench/target: makes operations on demand and times them itself."""

    def __init__(self, build):
        self.path = build / "bench/target"
        self.process = subprocess.Popen([self.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, bufsize=1)
        os.sched_setaffinity(self.process.pid, {TARGET_CPU})
        if self.process.stdout.readline().strip() != "ready":
            raise Failed(f"{self.path}: did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    @property
    def pid(self):
        return self.process.pid

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        answer = self.process.stdout.readline().split()
        if not answer or answer[0] != command.split()[0]:
            raise Failed(f"{self.path}: no answer to '{command}'")
        return [int(number) for number in answer[1:]]

    def wait_listeners(self, want, tracer=None):
        """Until `want` probes hold the semaphore up (0: none), and they are in place."""
        end = time.monotonic() + ATTACH_SECONDS
        while True:
            count = self.ask("listening")[0]
            if count == want:
                break
            if time.monotonic() > end or (tracer and tracer.poll() is not None):
                raise Failed(f"{count} of {want} probes after {ATTACH_SECONDS} s")
            time.sleep(0.05)
        time.sleep(0.3)  # the kernel raises the semaphore before it installs the probe

    def bursts(self, *what):
        """Nanoseconds a pair of each of `what`: the best of some bursts (whatever else runs here only adds
        to one), which alternate, with pauses in which a tracer can read."""
        costs = {name: [] for name in what}
        for name in what:
            self.ask(f"{name} {BURST_PAIRS // 4}")
        for _ in range(BURSTS):
            for name in what:
                time.sleep(0.05)
                pairs, ns = self.ask(f"{name} {BURST_PAIRS}")
                costs[name].append(ns / pairs)
        return [min(costs[name]) for name in what]


PAIRS_A_ROUND = BURST_PAIRS // 4 + BURSTS * BURST_PAIRS


class Tracer:
    """Somebody attached to a target; leaves by `stop`."""

    def __init__(self, target, command, probes, log, leave):
        self.target, self.log, self.leave = target, log, leave
        with open(log, "wb") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out,
                                            stderr=subprocess.STDOUT)
        try:
            target.wait_listeners(probes, self.process)
        except Failed as why:
            self.kill()
            raise Failed(f"{Path(command[0]).name}: {why}: {self.said()}") from None

    def said(self):
        return " ".join(self.log.read_text(errors="replace").split())[-300:]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.leave == "eof":
            self.process.stdin.close()
        else:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Failed(f"{self.process.args[0]}: does not end") from None
        return self.process.returncode


def tickmark_attach(build, target, out, *options):
    command = [build / "tickmark", "record", "-p", str(target.pid), "-o", out, *options]
    return Tracer(target, command, MARKERS, build / "bench/tickmark.log", "sigint")


def empty_attach(build, target):
    command = [build / "bench/empty_uprobe", str(target.pid)]
    return Tracer(target, command, 2, build / "bench/empty.log", "eof")


def bpftrace_attach(build, target):
    probe = f"usdt:{target.path}:tickmark"
    script = (f"{probe}:op_begin {{ @s[arg0, arg3] = nsecs; }} "
              f"{probe}:op_end /@s[arg0, arg2]/ {{ @h = hist(nsecs - @s[arg0, arg2]); "
              f"delete(@s[arg0, arg2]); }}")
    command = ["bpftrace", "-p", str(target.pid), "-e", script]
    return Tracer(target, command, 2, build / "bench/bpftrace.log", "sigint")


def capture_record(path):
    """The closing capture record of a runtime/3 file."""
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - 65536))
        last = file.read().splitlines()[-1]
    return json.loads(last)["capture"]


def lost_in(capture):
    return sum(capture.get("lost", {}).values())


def operations_in(path):
    with open(path, "rb") as file:
        return sum(1 for line in file if b'"kind":"operation"' in line and b'"duration_ns":' in line)


def bpftrace_count(log):
    """How many durations its histogram holds."""
    return sum(int(n) for n in re.findall(r"^[\[(].*?[)\]]\s+(\d+) \|", log.read_text(), re.M))


# --- the parts

def part_detached(build, table):
    out = subprocess.run([build / "bench/pair"], stdout=subprocess.PIPE, text=True, check=True,
                         preexec_fn=lambda: os.sched_setaffinity(0, {TARGET_CPU})).stdout
    rounds = [[float(x) for x in line.split()] for line in out.splitlines()]
    empty, pair, window = (statistics.median(r[i] for r in rounds) for i in range(3))
    table.put(detached_pair_ns=round(pair, 3), detached_window_ns=round(window, 3),
              empty_loop_ns=round(empty, 3))
    table.row("begin+end, nobody attached, over an empty loop", "<= 0.5 ns more",
              f"{pair:.2f} - {empty:.2f} = {pair - empty:.2f} ns", pair - empty <= 0.5)
    table.row("a window's start+end, nobody attached, over it", "<= 0.5 ns more",
              f"{window:.2f} - {empty:.2f} = {window - empty:.2f} ns", window - empty <= 0.5)


def direct_round(build, target, who):
    out = build / "bench/run.jsonl"
    if who == "tickmark":
        tracer = tickmark_attach(build, target, out)
    elif who == "empty":
        tracer = empty_attach(build, target)
    else:
        tracer = bpftrace_attach(build, target)
    try:
        cost, = target.bursts("pairs")
    finally:
        status = tracer.stop()
    target.wait_listeners(0)
    if who == "tickmark":
        capture = capture_record(out)
        if status or lost_in(capture) or operations_in(out) != PAIRS_A_ROUND:
            raise Failed(f"tickmark: status {status}, {operations_in(out)} of {PAIRS_A_ROUND} operations")
        out.unlink()
    elif who == "bpftrace" and bpftrace_count(tracer.log) != PAIRS_A_ROUND:
        raise Failed(f"bpftrace timed {bpftrace_count(tracer.log)} of {PAIRS_A_ROUND} operations")
    return cost


def part_direct(build, table):
    who = ["tickmark", "empty"] + (["bpftrace"] if shutil.which("bpftrace") else [])
    costs = {name: [] for name in who}
    with Target(build) as target:
        for turn in range(DIRECT_ROUNDS):
            for i in range(len(who)):
                name = who[(turn + i) % len(who)]
                costs[name].append(direct_round(build, target, name))
    ours, empty = (statistics.median(costs[name]) for name in ("tickmark", "empty"))
    table.put(direct_pair_ns=round(ours, 1), empty_uprobe_pair_ns=round(empty, 1))
    table.row("direct begin+end, over a pair of empty uprobes", "<= 1.40",
              f"{ours:.0f} / {empty:.0f} ns = {ours / empty:.2f}", ours / empty <= 1.4)
    what = "direct begin+end, over bpftrace timing the same markers"
    if "bpftrace" not in who:
        table.skip(what, "<= 0.55", "no bpftrace")
        return
    peer = statistics.median(costs["bpftrace"])
    table.put(bpftrace_pair_ns=round(peer, 1))
    table.row(what, "<= 0.55", f"{ours:.0f} / {peer:.0f} ns = {ours / peer:.2f}", ours / peer <= 0.55)


def part_window(build, table):
    out, costs = build / "bench/run.jsonl", []
    for _ in range(WINDOW_ROUNDS):
        with Target(build) as target:
            tracer = tickmark_attach(build, target, out)
            costs.append(target.bursts("pairs", "windows"))
            status = tracer.stop()
        capture = capture_record(out)
        if status or lost_in(capture) or capture["windows"]["closed"] != PAIRS_A_ROUND:
            raise Failed(f"tickmark: status {status}, windows {capture['windows']} of {PAIRS_A_ROUND}")
        out.unlink()
    pair, window = (statistics.median(c[i] for c in costs) for i in range(2))
    table.put(window_pair_ns=round(window, 1), window_beside_pair_ns=round(pair, 1))
    table.row("a window's start+end, over an operation's begin+end", "<= 1.20",
              f"{window:.0f} / {pair:.0f} ns = {window / pair:.2f}", window / pair <= 1.2)


# Windows, operations in each, streams, windows open at a time.
ASSEMBLE = {"all": (1_000_000, 10, 1, 1), "streams": (200_000, 10, 10_000, 1), "open": (200_000, 10, 1, 10_000),
            "both": (200_000, 10, 10_000, 10_000)}


def part_assemble(build, table):
    rates = {name: [] for name in ASSEMBLE}
    for _ in range(FILE_ROUNDS):
        for name, numbers in ASSEMBLE.items():
            ops, ns = (int(x) for x in timed([build / "bench/assemble", *map(str, numbers)])[1].split())
            rates[name].append(ops / ns * 1e9)
    rate = {name: statistics.median(values) for name, values in rates.items()}
    table.put(window_assemble_ops_per_s=round(rate["all"]))
    table.row("assembling 1 M windows of 10 operations, on one core", ">= 2 M/s",
              f"{rate['all'] / 1e6:.1f} M operations/s", rate["all"] >= 2e6)
    for name, what in (("streams", "10,000 streams"), ("open", "10,000 windows open"),
                       ("both", "10,000 windows open on as many streams")):
        cost = rate["all"] / rate[name]
        table.put(**{f"window_assemble_{name}_cost": round(cost, 3)})
        # The same work an operation; what is beside that is that less of it lies in the caches.
        table.row(f"an operation's cost with {what}, over one", "<= 1.50", f"{cost:.2f}", cost <= 1.5)


def part_loss(build, table):
    out = build / "bench/loss.jsonl"
    with Target(build) as target:
        tracer = tickmark_attach(build, target, out)
        ops, ns = target.ask(f"paced {LOSS_RATE} {LOSS_SECONDS}")
        tracer.stop()
    rate = ops / (ns / 1e9)
    lost, written = lost_in(capture_record(out)), operations_in(out)
    out.unlink()
    table.put(direct_loss_200k=lost, direct_loss_200k_ops_per_s=round(rate))
    measured = f"{lost} lost of {ops} at {rate:.0f}/s, {written} written"
    table.row(f"loss at {LOSS_RATE} operations/s for {LOSS_SECONDS} s", "0", measured,
              lost == 0 and written == ops and rate >= 0.98 * LOSS_RATE)


def raw_capture(build):
    """A raw capture of FILE_OPS operations."""
    raw, out = build / "bench/convert.tmk", build / "bench/convert.jsonl"
    with Target(build) as target:
        tracer = tickmark_attach(build, target, out, "--raw", raw)
        for _ in range(FILE_OPS // BURST_PAIRS):
            target.ask(f"pairs {BURST_PAIRS}")
            time.sleep(0.02)
        status = tracer.stop()
    if status or operations_in(out) != FILE_OPS:
        raise Failed(f"the raw capture is not whole: {tracer.said()}")
    out.unlink()
    return raw


def timed(command):
    """Wall seconds and stdout of a command on one CPU."""
    start = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False,
                          preexec_fn=lambda: os.sched_setaffinity(0, {TARGET_CPU}))
    seconds = time.monotonic() - start
    if done.returncode:
        raise Failed(f"{Path(command[0]).name}: status {done.returncode}: {done.stderr.strip()[-200:]}")
    return seconds, done.stdout


def session_round(program, out):
    """Nanoseconds a pair, as the program itself measured them."""
    out.unlink(missing_ok=True)
    ops, ns = (int(x) for x in timed([program, out, str(FILE_OPS)])[1].split()[-2:])
    if ops != FILE_OPS or operations_in(out) != FILE_OPS:
        raise Failed(f"{program}: {operations_in(out)} of {FILE_OPS} operations")
    out.unlink()
    return ns / ops


def part_convert(build, table):
    raw, out = raw_capture(build), build / "bench/convert.jsonl"
    rust, ours, peer = rust_session(build), [], []
    for _ in range(FILE_ROUNDS):
        out.unlink(missing_ok=True)
        ours.append(FILE_OPS / timed([build / "tickmark", "convert", raw, "-o", out])[0])
        if operations_in(out) != FILE_OPS:
            raise Failed(f"convert wrote {operations_in(out)} of {FILE_OPS} operations")
        if rust:
            peer.append(1e9 / session_round(rust, build / "bench/rust.jsonl"))
    raw.unlink()
    out.unlink()
    rate = statistics.median(ours)
    table.put(convert_ops_per_s=round(rate))
    what = "convert, operations/s on one core, over the Rust session"
    if not rust:
        table.skip(what, ">= 5.0", "no cargo")
        return
    rust_rate = statistics.median(peer)
    table.put(rust_session_ops_per_s=round(rust_rate))
    table.row(what, ">= 5.0", f"{rate / 1e6:.2f} / {rust_rate / 1e6:.2f} M/s = {rate / rust_rate:.1f}",
              rate / rust_rate >= 5)


def part_session(build, table):
    rust, ours, peer = rust_session(build), [], []
    for _ in range(FILE_ROUNDS):
        ours.append(session_round(build / "bench/session", build / "bench/session.jsonl"))
        if rust:
            peer.append(session_round(rust, build / "bench/rust.jsonl"))
    cost = statistics.median(ours)
    table.put(session_pair_ns=round(cost, 1))
    what = "in-process begin+end to a file, the Rust session over it"
    if not rust:
        table.skip(what, ">= 4.0", "no cargo")
        return
    rust_cost = statistics.median(peer)
    table.put(rust_session_pair_ns=round(rust_cost, 1))
    table.row(what, ">= 4.0", f"{rust_cost:.0f} / {cost:.0f} ns = {rust_cost / cost:.1f}",
              rust_cost / cost >= 4)


def resident_mb(pid):
    """(all resident memory, what of it is mapped rings and other BPF maps), MB."""
    total = maps = 0
    inside = False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            inside = "bpf-map" in line
        elif line.startswith("Rss:"):
            total += int(line.split()[1])
            maps += int(line.split()[1]) if inside else 0
    return total / 1024, maps / 1024


def part_memory(build, table):
    out = build / "bench/memory.jsonl"
    with Target(build) as target:
        tracer = tickmark_attach(build, target, out)
        target.ask(f"paced {MEMORY_RATE} 5")
        early, rings = resident_mb(tracer.process.pid)
        target.ask(f"paced {MEMORY_RATE} {MEMORY_SECONDS - 5}")
        late, late_rings = resident_mb(tracer.process.pid)
        status = tracer.stop()
    out.unlink()
    if status:
        raise Failed(f"tickmark: status {status}: {tracer.said()}")
    early, late = early - rings, late - late_rings
    table.put(rss_early_mb=round(early, 2), rss_late_mb=round(late, 2), rss_rings_mb=round(late_rings, 2))
    table.row(f"tracer's memory at {MEMORY_RATE} operations/s, 5 s and {MEMORY_SECONDS} s, without rings",
              "flat, <= 64 MB", f"{early:.1f}, {late:.1f} MB (rings {late_rings:.0f})",
              late <= 64 and late <= early * 1.05 + 0.5)


PARTS = {"detached": part_detached, "direct": part_direct, "window": part_window,
         "assemble": part_assemble, "loss": part_loss, "convert": part_convert, "session": part_session, "memory": part_memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS) + "; default: all")
    args = parser.parse_args()
    for part in args.parts:
        if part not in PARTS:
            parser.error(f"no part '{part}'; there are {', '.join(PARTS)}")
    if os.geteuid() != 0:
        sys.exit("bench: attaching needs root: run it with sudo")
    build = args.build.resolve()
    table = Table()
    table.put(cpus=os.cpu_count(), kernel=platform.release())
    start = time.monotonic()
    for name in args.parts or PARTS:
        print(f"bench: {name}", file=sys.stderr, flush=True)
        try:
            PARTS[name](build, table)
        except (Failed, OSError, ValueError, LookupError, subprocess.CalledProcessError) as why:
            table.fail(name, why)
    table.put(seconds=round(time.monotonic() - start))
    (build / "bench.json").write_text(json.dumps(table.values, indent=2) + "\n")
    table.show()
    print(f"\n{table.values['seconds']} s; figures in {args.build}/bench.json")
    return 0 if table.good() else 1


if __name__ == "__main__":
    sys.exit(main())
