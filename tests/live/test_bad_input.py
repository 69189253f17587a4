# SPDX-License-Identifier: BSD-2-Clause
"""What tickmark record says when it cannot: one line that names the object, the reason and the remedy."""
import os
import shutil
import subprocess
import time

import pytest

MARKED = "tests/live/marked"


def complaint(done, status, *words):
    """The one line on stderr, which must hold every word."""
    assert done.returncode == status, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("tickmark")]
    assert len(lines) == 1 or status == 2, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr


@pytest.fixture
def nothing_written(tmp_path):
    """A folder that must still be empty at the end of the test."""
    folder = tmp_path / "out"
    folder.mkdir()
    yield folder
    assert list(folder.iterdir()) == []


def test_no_such_process(tickmark, nothing_written):
    complaint(tickmark("record", "-p", 4194000, "-o", nothing_written / "run.jsonl"), 1,
              "4194000", "no such process", "tickmark list")


def test_process_without_markers(tickmark, start, nothing_written):
    sleeper = start("sleep", 60)
    time.sleep(0.2)
    complaint(tickmark("record", "-p", sleeper.pid, "-o", nothing_written / "run.jsonl"), 1,
              str(sleeper.pid), "sleep", "no tickmark markers", "files it has mapped", "libtickmark")


def test_thread_instead_of_process(tickmark, job, nothing_written):
    target = job(MARKED, "idle")
    tids = [tid for tid in map(int, os.listdir(f"/proc/{target.pid}/task")) if tid != target.pid]
    complaint(tickmark("record", "-p", tids[0], "-o", nothing_written / "run.jsonl"), 1,
              str(tids[0]), "thread", f"-p {target.pid}")


def test_not_root(build, job, nothing_written):
    target = job(MARKED, "service")
    os.chmod(nothing_written, 0o777)
    tool = shutil.copy(build / "tickmark", "/tmp/tickmark-not-root")
    try:
        done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", tool, "record",
                               "-p", str(target.pid), "-o", nothing_written / "run.jsonl"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.unlink(tool)
    complaint(done, 1, "CAP_", "root")


def test_one_capability_missing_is_named(build, job, nothing_written):
    target = job(MARKED, "service")
    done = subprocess.run(["setpriv", "--bounding-set=-perfmon", "--inh-caps=-perfmon", build / "tickmark",
                           "record", "-p", str(target.pid), "-o", nothing_written / "run.jsonl"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    complaint(done, 1, "CAP_PERFMON")


@pytest.mark.parametrize("arguments, words", [
    ([], ["-p PID"]),
    (["-p"], ["requires an argument"]),
    (["-p", "x"], ["not a process id"]),
    (["-p", "0"], ["not a process id"]),
    (["-p", "1", "-d", "soon"], ["seconds"]),
    (["-p", "1", "--", "true"], ["-p PID", "COMMAND"]),
    (["-p", "1", "--no-such-option"], ["unrecognized option"]),
])
def test_wrong_usage(arguments, words, tickmark, tmp_path):
    complaint(tickmark("record", *arguments, cwd=tmp_path), 2, *words)
    assert list(tmp_path.iterdir()) == []


def test_command_that_does_not_exist(tickmark, nothing_written):
    complaint(tickmark("record", "-o", nothing_written / "run.jsonl", "--", "no-such-command"), 1,
              "no-such-command", "No such file", "PATH")


@pytest.mark.parametrize("option", ["-o", "--raw"])
def test_output_folder_that_does_not_exist(option, tickmark, job, tmp_path, semaphores):
    target = job(MARKED, "service")
    path = tmp_path / "missing" / "run"
    complaint(tickmark("record", "-p", target.pid, option, path, "-d", "0.2"), 1, str(path))
    assert semaphores(target.pid) == (0, 0)


def test_raw_output_that_is_a_folder(tickmark, job, tmp_path):
    target = job(MARKED, "service")
    complaint(tickmark("record", "-p", target.pid, "--raw", tmp_path, "-d", "0.2"), 1, str(tmp_path),
              "directory")


def test_output_that_cannot_be_written(build, job, tmp_path):
    target = job(MARKED, "service")
    done = subprocess.run(["unshare", "-m", "sh", "-c",
                           f"mount -t tmpfs -o ro none {tmp_path} && exec {build}/tickmark record "
                           f"-p {target.pid} -d 0.2 -o {tmp_path}/run.jsonl"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    complaint(done, 1, f"{tmp_path}/run.jsonl", "Read-only")


@pytest.mark.parametrize("option", ["-o", "--raw"])
def test_conf33_full_disk_is_sticky_and_leaves_whole_lines(option, build, job, tmp_path, tickmark):
    """A file system of 300 KiB: the first writes fit, a later one does not."""
    target = job(MARKED, "service")
    copy = tmp_path / "copy"
    script = (f"mkdir {tmp_path}/small && mount -t tmpfs -o size=300k none {tmp_path}/small && "
              f"{build}/tickmark record -q -p {target.pid} -d 20 {option} {tmp_path}/small/run; "
              f"status=$?; cp {tmp_path}/small/run {copy}; exit $status")
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    complaint(done, 1, "run", "No space left")
    data = copy.read_bytes()
    assert 0 < len(data) <= 300 * 1024
    if option == "-o":
        assert data.endswith(b"\n")
        tickmark("check", copy, status=0)
    else:
        tickmark("convert", "--partial", copy, "-o", tmp_path / "partial.jsonl")
        tickmark("check", tmp_path / "partial.jsonl", status=0)
    assert target.alive()


def test_conf33_disk_that_is_full_from_the_start(job, tickmark):
    target = job(MARKED, "service")
    complaint(tickmark("record", "-q", "-p", target.pid, "-d", "5", "-o", "/dev/full"), 1, "/dev/full",
              "No space left")


def test_unknown_command(tickmark):
    complaint(tickmark("rekord"), 2, "rekord", "--help")
