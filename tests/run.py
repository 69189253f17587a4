#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the test layers and adds them up; building is make's.

    tests/run.py --build DIR [unit] [replay] [live]

unit: every DIR/tests/test_* (cmocka). replay: pytest in every folder below tests/ but live. live:
pytest in tests/live. The last line is "N passed, N failed, N skipped"; the exit status is 1 where a
test failed, could not be run to its end, or where nothing was run at all.
"""
import argparse
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

TESTS = Path(__file__).resolve().parent
UNIT_SECONDS = 300
PYTEST_SECONDS = 1500


class Tally:
    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed, self.failed, self.skipped = passed, failed, skipped

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def ran(self):
        return self.passed + self.failed + self.skipped

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


# cmocka 1.1.7 puts the group's name before both.
GROUP_BEGIN = re.compile(r"\[={10}\] (?:\S.*: )?Running (\d+) test\(s\)\.")
GROUP_END = re.compile(r"\[={10}\] (?:\S.*: )?\d+ test\(s\) run\.")


def cmocka_tally(text):
    """From cmocka's own report; a test that was announced but has no result has failed."""
    tally = Tally()
    announced = sum(int(n) for n in GROUP_BEGIN.findall(text))
    # The lists of names that follow a group's end repeat its results: look inside the groups only.
    for group in GROUP_BEGIN.sub("\0", text).split("\0")[1:]:
        group = GROUP_END.split(group)[0]
        tally.passed += len(re.findall(r"\[ +OK \] ", group))
        tally.failed += len(re.findall(r"\[  (?:FAILED|ERROR)   ?\] \w", group))
        tally.skipped += len(re.findall(r"\[  SKIPPED \] ", group))
    tally.failed += max(0, announced - tally.ran())
    return tally


def run_unit(build):
    total = Tally()
    binaries = sorted(p for p in (build / "tests").glob("test_*") if p.suffix == "")
    for binary in binaries:
        try:
            done = subprocess.run([binary], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=UNIT_SECONDS, check=False)
            status, out, err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired as late:
            status, out, err = f"none after {UNIT_SECONDS} s", late.stdout or b"", late.stderr or b""
        out, err = out.decode(errors="replace"), err.decode(errors="replace")
        tally = cmocka_tally(out)
        if tally.failed == 0 and (status != 0 or tally.ran() == 0):
            tally.failed += 1  # e.g. a leak, found after the last test; or no report that we can read
        print(f"unit    {binary.name:28} {tally}", flush=True)
        if tally.failed:
            print(f"{out}{err}{binary}: exit status {status}", flush=True)
        total.add(tally)
    return total


def junit_tally(path):
    root = ElementTree.parse(path).getroot()
    tally = Tally()
    for suite in root.iter("testsuite"):
        count = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
        bad = count["failures"] + count["errors"]
        tally.add(Tally(max(0, count["tests"] - bad - count["skipped"]), bad, count["skipped"]))
    return tally


def run_pytest(layer, build, folders):
    folders = [f for f in folders if any(f.glob("test_*.py"))]
    if not folders:
        return Tally()
    report = build / f"{layer}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-ra", "-c", TESTS / "pytest.ini",
               f"--junitxml={report}", *folders]
    env = dict(os.environ, TMK_BUILD=str(build), PYTHONDONTWRITEBYTECODE="1")
    print(f"{layer:7} pytest {' '.join(str(f.relative_to(TESTS.parent)) for f in folders)}", flush=True)
    try:
        status = subprocess.run(command, stdin=subprocess.DEVNULL, env=env, cwd=TESTS.parent,
                                timeout=PYTEST_SECONDS, check=False).returncode
    except subprocess.TimeoutExpired:
        status = f"none after {PYTEST_SECONDS} s"
    try:
        tally = junit_tally(report)
    except (OSError, ElementTree.ParseError):
        tally = Tally()
    if status not in (0, 5) and tally.failed == 0:
        print(f"{layer}: pytest ended with status {status} and no failed test in {report}", flush=True)
        tally.failed += 1
    return tally


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=Path(os.environ.get("TMK_BUILD", "build")))
    parser.add_argument("layers", nargs="*", metavar="layer", help="unit, replay, live; default: all")
    args = parser.parse_args()
    build = args.build.resolve()
    live = TESTS / "live"
    layers = {
        "unit": lambda: run_unit(build),
        "replay": lambda: run_pytest("replay", build, sorted(
            d for d in TESTS.iterdir() if d.is_dir() and d not in (live, TESTS / "unit"))),
        "live": lambda: run_pytest("live", build, [live]),
    }
    for layer in args.layers:
        if layer not in layers:
            parser.error(f"no layer '{layer}'; there are {', '.join(layers)}")

    total = Tally()
    for layer in args.layers or layers:
        total.add(layers[layer]())
    print(total, flush=True)
    return 1 if total.failed or total.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
