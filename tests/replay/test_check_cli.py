# SPDX-License-Identifier: BSD-2-Clause
"""`tickmark check` as a command: what it prints where, exit statuses, and input that is no file."""

import os
import subprocess
import time

META = b'{"kind":"meta","schema":"candle-graph/runtime/3","entrypoint":"E","profile":"release"}\n'
OP = b'{"kind":"operation","event_id":"%s","op":"m","duration_ns":%s}\n'
CAPTURE = b'{"kind":"operation","event_id":"c","op":"","capture":{"status":"complete"}}\n'
GOOD = META + OP % (b"a", b"1") + CAPTURE


def write(path, data):
    path.write_bytes(data)
    return path


def test_verdicts_go_to_stdout(tickmark, tmp_path):
    good = write(tmp_path / "good.jsonl", GOOD)
    bad = write(tmp_path / "bad.jsonl", META + OP % (b"a", b"1.0") + OP % (b"a", b"1"))
    done = tickmark("check", good, bad, status=1)
    assert done.stderr == ""
    assert done.stdout == (
        f"{good}: accepted: 1 operation, 0 edges\n"
        f"{bad}:2: duration_ns: 1.0 is not a whole number (u64) or null\n"
        f"{bad}:3: event_id: \"a\" is used a second time\n"
        f"{bad}: rejected: 2 violations\n")
    assert tickmark("check", good, status=0).stdout == f"{good}: accepted: 1 operation, 0 edges\n"


def test_quiet_leaves_the_exit_status(tickmark, tmp_path):
    good = write(tmp_path / "good.jsonl", GOOD)
    bad = write(tmp_path / "bad.jsonl", META)
    for file, status in ((good, 0), (bad, 1)):
        done = tickmark("check", "-q", file, status=status)
        assert (done.stdout, done.stderr) == ("", "")


def test_a_missing_capture_line_is_noted(tickmark, tmp_path):
    file = write(tmp_path / "f.jsonl", META + OP % (b"a", b"1"))
    assert "note: no closing capture line" in tickmark("check", file, status=0).stdout


def test_violations_are_capped(tickmark, tmp_path):
    file = write(tmp_path / "f.jsonl", META + b"1\n" * 100)
    lines = tickmark("check", file, status=1).stdout.splitlines()
    assert len(lines) == 21
    assert lines[-1] == f"{file}: rejected: 100 violations, the first 20 are shown"
    assert len(tickmark("check", "-n", "3", file, status=1).stdout.splitlines()) == 4


WINDOW = (b'{"kind":"operation","event_id":"w%d","op":"m","stream":7,"window":{"id":%d,"opened_on":7,'
          b'"start_ns":100,"end_ns":200,"duration_ns":%d,"method":"system","status":"closed",'
          b'"flush":false}}\n')
OURS = (b'{"kind":"operation","event_id":"c","op":"","capture":{"status":"complete","source":"traced",'
        b'"windows":{"closed":%d}}}\n')


def test_a_broken_window_rule_fails_the_check(tickmark, tmp_path):
    good = write(tmp_path / "good.jsonl", META + WINDOW % (1, 1, 100) + OURS % 1)
    assert tickmark("check", good, status=0).stdout == (
        f"{good}: accepted: 0 operations, 0 edges, 1 window\n")
    bad = write(tmp_path / "bad.jsonl", META + WINDOW % (1, 1, 99) + OURS % 2)
    assert tickmark("check", bad, status=1).stdout == (
        f"{bad}:2: window: duration: duration_ns 99 is not end_ns - start_ns, which is 100\n"
        f"{bad}:3: window: counts: the capture line has 2 closed, and the file has 1\n"
        f"{bad}: accepted: 0 operations, 0 edges, 1 window\n"
        f"{bad}: 2 window rules broken\n")
    assert tickmark("check", "-q", bad, status=1).stdout == ""


def test_both_verdicts_are_given_and_share_the_limit(tickmark, tmp_path):
    file = write(tmp_path / "f.jsonl", META + b"1\n" * 2 + WINDOW % (1, 1, 99) + OURS % 2)
    lines = tickmark("check", "-n", "3", file, status=1).stdout.splitlines()
    assert lines[2] == f"{file}:4: window: duration: duration_ns 99 is not end_ns - start_ns, which is 100"
    assert lines[3:] == [f"{file}: rejected: 2 violations",
                         f"{file}: 2 window rules broken, the first 1 is shown"]


def test_windows_of_others_are_not_judged(tickmark, tmp_path):
    file = write(tmp_path / "f.jsonl", META + WINDOW % (1, 1, 99) + CAPTURE)
    assert tickmark("check", file, status=0).stdout == f"{file}: accepted: 0 operations, 0 edges, 1 window\n"


def test_many_windows_take_no_square_of_time(tickmark, sanitized, tmp_path):
    n = 20000 if sanitized else 300000
    window = (b'{"kind":"operation","event_id":"w%d","op":"m","stream":7,"window":{"id":1,"opened_on":7,'
              b'"start_ns":%d,"end_ns":%d,"method":"system","status":"failed","flush":false,"depth":1,'
              b'"parent":1,"operations":1000000000}}\n')
    op = b'{"kind":"operation","event_id":"o%d","op":"m","start_ns":%d,"duration_ns":1,"stream":7}\n'
    file = write(tmp_path / "f.jsonl", META + b"".join(
        window % (i, i, 4 * n - i) + op % (i, i * 7919 % n) for i in range(n)) + OURS % 0)
    began = time.monotonic()
    done = tickmark("check", file, status=1)
    # Each count of operations, the parent of the outermost window, and the capture line's count.
    assert f"{n + 2} window rules broken" in done.stdout, done.stdout[-300:]
    assert time.monotonic() - began < 60


def test_stdin(tickmark, build, tmp_path):
    file = write(tmp_path / "f.jsonl", GOOD)
    with open(file) as stdin:
        assert tickmark("check", "-", stdin=stdin, status=0).stdout == (
            "stdin: accepted: 1 operation, 0 edges\n")
    piped = subprocess.run([build / "tickmark", "check", "-"], input=GOOD[:-2], stdout=subprocess.PIPE)
    assert piped.returncode == 1
    assert b"stdin:3: not JSON at byte" in piped.stdout


def test_usage(tickmark):
    for args in ((), ("-n", "x", "f"), ("--nonsense", "f")):
        done = tickmark("check", *args, status=2)
        assert done.stdout == "" and done.stderr
    done = tickmark("check", "--help", status=0)
    assert done.stdout.index("tickmark check run.jsonl") < done.stdout.index("--quiet")


def one_line_error(tickmark, path, reason):
    done = tickmark("check", path, status=1)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1 and reason in done.stderr, done.stderr
    assert done.stderr.startswith("tickmark: ")


def test_what_is_no_file(tickmark, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    one_line_error(tickmark, tmp_path / "none", "No such file")
    one_line_error(tickmark, tmp_path, "is a directory")
    one_line_error(tickmark, tmp_path / "fifo", "is not a regular file")
    one_line_error(tickmark, "/dev/null", "is not a regular file")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    one_line_error(tickmark, tmp_path / "loop", "symbolic links")


def test_files_without_a_size(tickmark):
    """/proc gives no size, and what is there is no trace."""
    assert "rejected" in tickmark("check", "/proc/self/status", status=1).stdout


def test_hostile_bytes_stay_off_the_terminal(tickmark, tmp_path):
    data = META + b'{"kind":"\x7f\xc2\x9b2J\xe2\x80\xae"}\n\x1b[2J\n\xff\n'
    done = tickmark("check", write(tmp_path / "a\x1b[31m.jsonl", data), status=1, text=False, errors=None)
    assert done.stdout.count(b"\n") == 4
    shown = done.stdout.replace(b"\n", b"").decode("utf-8")
    assert all(c.isprintable() for c in shown), shown


def test_a_full_disk_fails_the_check(tickmark, tmp_path):
    file = write(tmp_path / "good.jsonl", GOOD)
    with open("/dev/full", "w") as full:
        done = tickmark("check", file, stdout=full, status=1)
    assert "No space left on device" in done.stderr


def test_one_long_line_takes_linear_time(tickmark, sanitized, tmp_path):
    element = b'{"event_id":"%d","op":"matmul","inputs":["x","w"],"step":1,"duration_ns":1234}'
    operations = b",".join(element % i for i in range(300000))
    document = (b'{"schema":"candle-graph/runtime/3","run":{"entrypoint":"E","profile":"p"},'
                b'"operations":[' + operations + b"]}")
    began = time.monotonic()
    done = tickmark("check", write(tmp_path / "one.json", document), status=0)
    assert done.stdout.endswith("accepted: 300000 operations, 0 edges\n")
    many = tickmark("check", write(tmp_path / "many.json", document.replace(b",", b",\n")), status=0)
    assert many.stdout.endswith("accepted: 300000 operations, 0 edges\n")
    assert time.monotonic() - began < (300 if sanitized else 30)


def test_random_bytes_and_no_newline(tickmark, tmp_path):
    tickmark("check", write(tmp_path / "random", os.urandom(5_000_000)), status=1)
    tickmark("check", write(tmp_path / "zeros", bytes(5_000_000)), status=1)
    tickmark("check", write(tmp_path / "brackets", b'{"x":' + b"[" * 5_000_000), status=1)
    tickmark("check", write(tmp_path / "no-newline", GOOD[:-1]), status=0)


def test_a_file_that_shrinks_meanwhile(build, tmp_path):
    file = tmp_path / "f.jsonl"
    with open(file, "wb") as f:
        f.truncate(2 << 30)
    check = subprocess.Popen([build / "tickmark", "check", file], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    time.sleep(0.1)
    os.truncate(file, 0)
    out, err = check.communicate(timeout=60)
    assert check.returncode == 1
    # Found empty where the truncation came first, otherwise cut off in the middle.
    assert "could not be read to its end" in err or "is empty" in out
