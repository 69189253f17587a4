# SPDX-License-Identifier: BSD-2-Clause
"""tests/run.py: that what it adds up is what the runners said, above all when one of them died."""
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).resolve().parent.parent / "run.py"
spec = importlib.util.spec_from_file_location("tickmark_run", RUN)
run = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run)

WHOLE = """\
[==========] Running 3 test(s).
[ RUN      ] first
text without an end[       OK ] first
[ RUN      ] second
[  FAILED  ] second
[ RUN      ] third
[  SKIPPED ] third
[==========] 3 test(s) run.
[  PASSED  ] 1 test(s).
[  FAILED  ] 1 test(s), listed below:
[  FAILED  ] second
[==========] Running 1 test(s).
[ RUN      ] fourth
[       OK ] fourth
[==========] 1 test(s) run.
"""
NAMED = WHOLE.replace("=] ", "=] tests: ")  # as cmocka 1.1.7 has it
DIED = """\
[==========] Running 5 test(s).
[ RUN      ] first
[       OK ] first
[ RUN      ] second
"""


@pytest.mark.parametrize("text, passed, failed, skipped", [
    (WHOLE, 2, 1, 1), (NAMED, 2, 1, 1), (DIED, 1, 4, 0), ("", 0, 0, 0)],
    ids=["whole", "named", "died", "nothing"])
def test_cmocka_report(text, passed, failed, skipped):
    tally = run.cmocka_tally(text)
    assert (tally.passed, tally.failed, tally.skipped) == (passed, failed, skipped)


def unit_layer(folder, **scripts):
    (folder / "tests").mkdir()
    for name, body in scripts.items():
        path = folder / "tests" / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    return subprocess.run([sys.executable, RUN, "--build", folder, "unit"], text=True, timeout=60,
                          stdout=subprocess.PIPE, check=False)


def test_a_crash_without_a_report_fails(tmp_path):
    done = unit_layer(tmp_path, test_a="kill -SEGV $$", test_b="cat <<'E'\n" + WHOLE.replace("[  FAILED  ]", "[  SKIPPED ]") + "E")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "2 passed, 1 failed, 2 skipped"


def test_an_exit_status_alone_fails(tmp_path):
    """As with a leak, which the sanitizer finds after the last test."""
    done = unit_layer(tmp_path, test_a="echo '[==========] Running 1 test(s).'; echo '[       OK ] a'; exit 23")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"


def test_a_report_that_nobody_can_read_fails(tmp_path):
    done = unit_layer(tmp_path, test_a="echo all is well")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"


def test_nothing_run_fails(tmp_path):
    done = unit_layer(tmp_path)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "0 passed, 0 failed, 0 skipped"
