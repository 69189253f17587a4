# SPDX-License-Identifier: BSD-2-Clause
"""The real importer as a tool for the tests: builds the Rust program once and asks it.

    from importer_tool import importer            # a pytest fixture: skips, saying so, without cargo

    def test_something(importer, tmp_path):
        verdict, = importer.verdicts([tmp_path / "run.jsonl"])
        assert verdict["accepted"], verdict

Whatever is not a test uses Importer.find(). The program is built into build/importer, or
$TMK_IMPORTER_BUILD, whichever build is tested: the first time that takes a minute or two.
"""

import fcntl
import json
import os
import pathlib
import shutil
import subprocess

import pytest

TOP = pathlib.Path(__file__).resolve().parent.parent
SOURCE = TOP / "tests" / "importer"
TARGET = pathlib.Path(os.environ.get("TMK_IMPORTER_BUILD", TOP / "build" / "importer")).resolve()


class Importer:
    """candle-graph 0.3.0's own importer, as tests/importer/src/main.rs offers it."""

    def __init__(self, program):
        self.program = pathlib.Path(program)

    @classmethod
    def find(cls):
        """Builds the program if needed. Returns (importer, None), or (None, why there is none)."""
        cargo = shutil.which("cargo")
        if not cargo:
            return None, "no cargo here, so the real importer cannot be asked"
        TARGET.mkdir(parents=True, exist_ok=True)
        with open(TARGET / ".tickmark-lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            built = subprocess.run(
                [cargo, "build", "--release", "--locked", "--quiet"], check=False,
                cwd=SOURCE, env={**os.environ, "CARGO_TARGET_DIR": str(TARGET)},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if built.returncode:
            return None, f"tests/importer: cargo build failed:\n{built.stdout}"
        return cls(TARGET / "release" / "importer"), None

    def run(self, *args, **options):
        return subprocess.run([self.program, *map(str, args)], check=True, stdout=subprocess.PIPE,
                              **options).stdout

    def verdicts(self, files):
        """One dict a file, in order: "accepted", "error" or the counts."""
        out = self.run("verdict", *files)
        return [json.loads(line) for line in out.splitlines()]

    def dump(self, file):
        """The imported trace of an acceptable file: sorted and deduplicated as the importer does."""
        return json.loads(self.run("dump", file))

    def batch(self, texts):
        """For each text (bytes), whether it is accepted, and why not."""
        return batch_verdicts([self.program, "batch"], texts)

    def operations(self, source):
        """The static operations of the model source in a directory: [{"id", "name"}]."""
        return [json.loads(line) for line in self.run("operations", source).splitlines()]

    def profile(self, source, trace):
        """The `profile` query's answer for a trace merged into that model."""
        return json.loads(self.run("profile", source, trace))


def batch_verdicts(command, texts):
    """Feeds texts to a program that speaks the batch protocol; [(accepted, reason)]."""
    data = b"".join(b"%d\n%s" % (len(text), text) for text in texts)
    out = subprocess.run(command, input=data, check=True, stdout=subprocess.PIPE).stdout
    lines = out.split(b"\n")[:-1]
    assert len(lines) == len(texts), f"{command[0]}: {len(lines)} verdicts for {len(texts)} texts"
    return [(line[:1] == b"1", line[2:].decode(errors="replace")) for line in lines]


@pytest.fixture(scope="session")
def importer():
    tool, why = Importer.find()
    if not tool and shutil.which("cargo"):
        pytest.fail(why, pytrace=False)
    return tool or pytest.skip(why)
