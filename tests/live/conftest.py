# SPDX-License-Identifier: BSD-2-Clause
"""Fixtures of the live layer: a marked program that runs, tickmark attached to it, nothing left over.

Live tests need root and a kernel with BPF and uprobes. Where that is missing they are skipped with
the reason, but not under CI=true: there it is a failure, since nothing would have been tested.
"""
import ctypes
import json
import os
import platform
import selectors
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from importer_tool import Importer  # noqa: E402

SYS_BPF = {"x86_64": 321, "aarch64": 280}
BPF_PROG_LOAD_BAD_ATTR = b"\xff" * 8
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)


def why_not_live():
    """What this machine lacks for live tests, or None."""
    if os.geteuid() != 0:
        return "not root: run as root (sudo make test)"
    # BPF_PROG_LOAD with an attribute that no kernel takes: EPERM says that BPF itself is refused.
    attr = ctypes.create_string_buffer(BPF_PROG_LOAD_BAD_ATTR, 128)
    libc.syscall(SYS_BPF[platform.machine()], 5, attr, 128)
    if ctypes.get_errno() in (1, 38):
        return f"bpf(2) is refused here: {os.strerror(ctypes.get_errno())}"
    if not Path("/sys/bus/event_source/devices/uprobe/type").exists():
        return "this kernel has no uprobe events (CONFIG_UPROBE_EVENTS), or /sys is not mounted"
    return None


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    mine = [item for item in items if here in Path(item.fspath).parents]
    reason = why_not_live() if mine else None
    if not reason:
        return
    if os.environ.get("CI") == "true":
        raise pytest.UsageError(f"live tests cannot run: {reason}")
    for item in mine:
        item.add_marker(pytest.mark.skip(reason=reason))


class Running:
    """A program in a process group of its own, with its output lines as they come.

    stdout and stderr are read together, so that neither can fill its pipe; `out` and `err` hold what
    came so far. It dies with the test, whatever the test does.
    """

    def __init__(self, command, **kwargs):
        def die_with_parent():
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

        self.command = [str(c) for c in command]
        self.process = subprocess.Popen(
            self.command, stdin=kwargs.pop("stdin", subprocess.DEVNULL), stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, start_new_session=True, preexec_fn=die_with_parent, **kwargs)
        self.pid = self.process.pid
        self._bytes = {"out": bytearray(), "err": bytearray()}
        self._selector = selectors.DefaultSelector()
        for name, pipe in (("out", self.process.stdout), ("err", self.process.stderr)):
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, name)

    def _pump(self, seconds):
        """Takes what has come, waiting up to `seconds` for something; False when both pipes ended."""
        if not self._selector.get_map():
            return False
        for key, _ in self._selector.select(seconds):
            data = key.fileobj.read(65536)
            if data:
                self._bytes[key.data] += data
            elif data == b"":
                self._selector.unregister(key.fileobj)
        return True

    @property
    def out(self):
        return self._bytes["out"].decode(errors="replace")

    @property
    def err(self):
        return self._bytes["err"].decode(errors="replace")

    def report(self):
        return f"{' '.join(self.command)}\n--- stdout\n{self.out}--- stderr\n{self.err}"

    def wait_for(self, text, timeout=20, stream="out"):
        """Waits for a whole line that contains `text`, and returns the first one."""
        end = time.monotonic() + timeout
        while True:
            text_so_far = self._bytes[stream].decode(errors="replace")
            for line in text_so_far.splitlines(keepends=True):
                if text in line and line.endswith("\n"):
                    return line.rstrip("\n")
            left = end - time.monotonic()
            if left <= 0 or not self._pump(min(left, 0.5)):
                pytest.fail(f"no line with {text!r} on std{stream}: {self.report()}", pytrace=False)

    def send(self, text):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def alive(self):
        return self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=30):
        """Waits for the end; returns the exit status (negative: killed by that signal)."""
        end = time.monotonic() + timeout
        while self.process.poll() is None:
            if time.monotonic() >= end:
                pytest.fail(f"still running after {timeout} s: {self.report()}", pytrace=False)
            if not self._pump(0.05):
                time.sleep(0.01)
        # A child that kept a pipe open must not keep us.
        while self._pump(0) and time.monotonic() < end and self._selector.select(0):
            pass
        return self.process.returncode

    def stop(self, timeout=30):
        """SIGINT, as from ^C, and wait()."""
        if self.alive():
            self.signal(signal.SIGINT)
        return self.wait(timeout)

    def close(self):
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self._selector.close()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass


@pytest.fixture
def start():
    """start(COMMAND…, **Popen arguments) → Running; killed with its children at the end of the test."""
    running = []

    def run(*command, **kwargs):
        running.append(Running(command, **kwargs))
        return running[-1]
    yield run
    for program in reversed(running):
        program.close()


@pytest.fixture
def job(start, build):
    """job(NAME, ARGS…, ready="ready") → Running: a program of the build that printed its ready line.

    NAME is a path inside the build folder, e.g. "tests/live/loop" or "tests/live/loop-shared".
    """
    def run(name, *args, ready="ready", **kwargs):
        program = start(build / name, *args, **kwargs)
        if ready:
            program.wait_for(ready)
        return program
    return run


def switch_words(pid, build_id_path=None):
    """The (direct, batch) semaphores of a running marked program, read from its memory."""
    path = build_id_path or f"/proc/{pid}/exe"
    address, is_pie = semaphore_of(path)
    base = 0
    if is_pie:
        real = os.path.realpath(path) if build_id_path else os.readlink(path)
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps:
            for line in maps:
                fields = line.split(maxsplit=5)
                if len(fields) == 6 and fields[5].strip() == real:
                    base = int(fields[0].split("-")[0], 16) - int(fields[2], 16)
                    break
            else:
                pytest.fail(f"{real} is not mapped by {pid}", pytrace=False)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(base + address)
        word = memory.read(4)
    return int.from_bytes(word[:2], "little"), int.from_bytes(word[2:], "little")


def semaphore_of(path):
    """(address of the semaphore of the op_begin marker, whether it is relative to the load base)."""
    notes = subprocess.run(["readelf", "-n", "-W", path], stdout=subprocess.PIPE, text=True,
                           check=True).stdout
    name = ""
    for line in notes.splitlines():
        line = line.strip()
        if line.startswith("Name: "):
            name = line[6:]
        elif line.startswith("Location: ") and name == "op_begin":
            header = subprocess.run(["readelf", "-h", path], stdout=subprocess.PIPE, text=True,
                                    check=True).stdout
            return int(line.rsplit("Semaphore: ", 1)[1], 16), "Type:                              DYN" in header
    return pytest.fail(f"{path}: no op_begin marker in its notes", pytrace=False)


@pytest.fixture
def semaphores():
    """semaphores(PID, LIBRARY=None) → (direct, batch), as the process itself sees them."""
    return switch_words


@pytest.fixture
def record(start, build, semaphores):
    """record(ARGS…, attached_to=PID, library=None) → Running: tickmark record, once it is attached.

    Attached means that the target's semaphore is up (with attached_to) and the tracer said so on stderr
    or has had a moment to install its probes; without attached_to it returns at once.
    """
    def run(*args, attached_to=None, library=None, timeout=20, **kwargs):
        tracer = start(build / "tickmark", "record", *args, **kwargs)
        if attached_to is not None:
            end = time.monotonic() + timeout
            while semaphores(attached_to, library)[0] == 0:
                if not tracer.alive() or time.monotonic() > end:
                    tracer._pump(0.2)
                    pytest.fail(f"not attached: {tracer.report()}", pytrace=False)
                tracer._pump(0.02)
            time.sleep(0.2)
        return tracer
    return run


@pytest.fixture(scope="session")
def tracefs():
    """/sys/kernel/tracing, mounted for the session if it was not: perf and bpftrace want it."""
    path = Path("/sys/kernel/tracing")
    mounted = False
    if not (path / "events").exists():
        done = subprocess.run(["mount", "-t", "tracefs", "tracefs", path], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"tracefs cannot be mounted: {done.stdout.strip()}")
        mounted = True
    yield path
    if mounted:
        subprocess.run(["umount", path], check=False)


def records(path, key=None):
    """The lines of a runtime/3 file that hold `key`, e.g. "capture"; whole lines only are read."""
    with open(path, "rb") as file:
        lines = [json.loads(line) for line in file if line.endswith(b"\n")]
    return [line for line in lines if key is None or key in line]


@pytest.fixture(scope="session")
def capture_of():
    """capture_of(PATH) → the closing capture record of a file, which must be its last line."""
    def read(path):
        lines = records(path)
        assert lines and "capture" in lines[-1], f"{path}: no capture record at the end"
        return lines[-1]["capture"]
    return read


@pytest.fixture(scope="session")
def real_importer():
    """candle-graph's own importer, or None where there is no cargo to build it with."""
    tool, why = Importer.find()
    if not tool and shutil.which("cargo"):
        pytest.fail(why, pytrace=False)
    if not tool:
        print(f"files are not shown to the real importer: {why}", file=sys.stderr)
    return tool


@pytest.fixture
def verified(tickmark, jsonl, real_importer):
    """verified(PATH) → its lines, after tickmark check and, with cargo, the real importer took it."""
    def run(path):
        tickmark("check", path, status=0)
        if real_importer:
            verdict, = real_importer.verdicts([path])
            assert verdict["accepted"], verdict
        return jsonl(path)
    return run
