# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures of every pytest layer: where the build is, running tickmark, reading what it wrote.

Whoever traces for real finds more in live/conftest.py.
"""
import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def build():
    """The build folder: TMK_BUILD, or build/ of this tree."""
    folder = Path(os.environ.get("TMK_BUILD", ROOT / "build")).resolve()
    if not (folder / "tickmark").exists():
        pytest.fail(f"{folder}/tickmark: not built; run make first", pytrace=False)
    return folder


@pytest.fixture(scope="session")
def tickmark(build):
    """tickmark(ARGS…, timeout=60, status=None, **kwargs) → CompletedProcess with text stdout, stderr.

    Without a terminal, without stdin. `status` is asserted where given.
    """
    def run(*args, timeout=60, status=None, **kwargs):
        kwargs = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
                  "text": True, "errors": "replace", **kwargs}
        done = subprocess.run([build / "tickmark", *map(str, args)], timeout=timeout, check=False,
                              **kwargs)
        if status is not None:
            assert done.returncode == status, (
                f"tickmark {' '.join(map(str, args))}: exit status {done.returncode}, not {status}\n"
                f"{done.stdout or ''}{done.stderr or ''}")
        return done
    return run


@pytest.fixture(scope="session")
def jsonl():
    """jsonl(PATH) → list of objects; fails for a line that is not whole, or not an object."""
    def read(path):
        data = Path(path).read_bytes()
        assert data == b"" or data.endswith(b"\n"), f"{path}: the last line is cut"
        lines = [json.loads(line) for line in data.splitlines()]
        assert all(isinstance(line, dict) for line in lines)
        return lines
    return read


@pytest.fixture(scope="session")
def sanitized(build):
    """Whether this is the build of `make asan`: some things are too slow there, or cannot be."""
    return build.name.endswith("-asan")
