# SPDX-License-Identifier: BSD-2-Clause
"""Raw captures, built byte by byte: a second implementation of the format in include/capture_abi.h.

    raw = Capture().process(1, 100, "job").session(1, "Model::forward", "train")
    raw.begin(1, token=1, site=0x10, step=0, time=1000)
    raw.end_capture(DETACHED, time=2000)
    path.write_bytes(raw.data())

Every method returns the capture, so that calls can be chained. Little-endian, as x86-64 and arm64 are.
"""
import struct

SESSION_OPEN, SESSION_FINISH, OP_BEGIN, OP_END, EDGE = 1, 2, 3, 4, 5
WINDOW_START, WINDOW_END, WINDOW_RESOLVE = 6, 7, 8
TOKEN_NAMED, WINDOW_NAMED = 1 << 63, 1 << 52
W_CLOSED, W_PENDING, W_ABANDONED, W_NOT_MEASURED, W_FAILED, W_LIMIT = 1, 2, 3, 4, 5, 6
HOW_FLUSH, HOW_DEVICE, HOW_ERROR_SHIFT = 1 << 8, 1 << 9, 16
DESCRIBE, EXEC, PROCESS, GONE, TIDE, END = 32, 33, 64, 65, 66, 67
D_SESSION, D_SITE, D_EDGE, D_NAME = 1, 2, 3, 4
HAS_ANALYSIS_ID, HAS_BUILD_ID = 1 << 8, 1 << 9
CUT_STATIC_ID, CUT_OP, CUT_INPUTS, CUT_NAME = 1, 2, 4, 8
COMPLETE, DETACHED, TARGET_GONE, STOPPED, FAILED = 1, 2, 3, 4, 5
MARKERS, CAUSES = 16, 4
RING_FULL, RECURSION, INVALID = 0, 1, 2
DESC_MAGIC = 0x4B4D5401

HEADER = struct.Struct("<8s4I2Q64s64s256s")
REC = struct.Struct("<HBBIIIQ")


def header(magic=b"TICKMARK", order=0x01020304, version=1, length=HEADER.size, mono=1000, real=5000,
           host=b"host", kernel=b"6.18", options=b"record"):
    return HEADER.pack(magic, order, version, length, 0, mono, real, host, kernel, options)


def text(s):
    return s if isinstance(s, bytes) else s.encode()


class Capture:
    def __init__(self, incarnation=1, tgid=100, tid=101, **fields):
        """`fields` are those of header(). The identity is what later records are of, cf. who()."""
        self.parts = [header(**fields)]
        self.who(incarnation, tgid, tid)
        self.hits = [0] * MARKERS

    def who(self, incarnation, tgid, tid):
        self.incarnation, self.tgid, self.tid = incarnation, tgid, tid
        return self

    def thread(self, tid):
        return self.who(self.incarnation, self.tgid, tid)

    def data(self):
        return b"".join(self.parts)

    def raw(self, data):
        self.parts.append(data)
        return self

    def record(self, kind, body=b"", time=0, anonymous=False):
        body += bytes(-len(body) % 8)
        ids = (0, 0, 0) if anonymous else (self.incarnation, self.tgid, self.tid)
        if kind < MARKERS:
            self.hits[kind] += 1
        return self.raw(REC.pack(REC.size + len(body), kind, 0, *ids, time) + body)

    def process(self, comm="job", ns_pid=None, exe="/bin/job"):
        ns_pid = self.tgid if ns_pid is None else ns_pid
        return self.record(PROCESS, struct.pack("<QII16s256s", 12345, ns_pid, 0, text(comm)[:16],
                                                text(exe)), 1)

    def describe(self, kind, obj, strings, session=1, flags=0, serial=0):
        strings = [text(s) + b"\0" for s in strings]
        blob = b"".join(strings)
        return self.record(DESCRIBE, struct.pack("<QQIHHIIQ", obj, session, DESC_MAGIC, kind, flags,
                                                 len(blob), len(strings), serial) + blob, 1)

    def session(self, session=1, entrypoint="Model::forward", phase="train", profile="release",
                features=(), analysis_id=None, build_id=None):
        strings, flags = [entrypoint, phase, profile], 0
        for value, flag in ((analysis_id, HAS_ANALYSIS_ID), (build_id, HAS_BUILD_ID)):
            if value is not None:
                strings.append(value)
                flags |= flag
        return self.describe(D_SESSION, 0x1000 + session, strings + list(features), session, flags,
                             serial=session)

    def site(self, obj, static_id, op, *inputs, flags=0):
        return self.describe(D_SITE, obj, [static_id, op, *inputs], flags=flags)

    def name(self, obj, name, flags=0):
        return self.describe(D_NAME, obj, [name], flags=flags)

    def edge_site(self, obj, src, dst):
        return self.describe(D_EDGE, obj, [src, dst])

    def open(self, session=1, time=0):
        return self.record(SESSION_OPEN, struct.pack("<Q", session), time)

    def finish(self, session=1, time=0):
        return self.record(SESSION_FINISH, struct.pack("<Q", session), time)

    def begin(self, session=1, *, token, site, step=0, time, stream=7):
        return self.record(OP_BEGIN, struct.pack("<5Q", session, site, token, step, stream), time)

    def end(self, session=1, *, token, output=0, step=0, time):
        return self.record(OP_END, struct.pack("<4Q", session, token, step, output), time)

    def edge(self, session=1, *, site, token=1, step=0, duration, time):
        return self.record(EDGE, struct.pack("<5Q", session, site, token, step, duration), time)

    def window_start(self, session=1, *, name, window, opened_on, step=0, time):
        return self.record(WINDOW_START, struct.pack("<5Q", session, name, window, opened_on, step), time)

    def window_end(self, session=1, *, name, window, opened_on, how=W_CLOSED, time):
        return self.record(WINDOW_END, struct.pack("<5Q", session, name, window, opened_on, how), time)

    def window_resolve(self, session=1, *, window, opened_on, duration=0, how=W_CLOSED, time):
        return self.record(WINDOW_RESOLVE, struct.pack("<5Q", session, window, opened_on, duration, how), time)

    def gone(self, time, known=False, status=0):
        return self.record(GONE, struct.pack("<II", known, status), time)

    def exec(self, time):
        return self.record(EXEC, b"", time)

    def tide(self, time, lost=0):
        return self.record(TIDE, struct.pack("<Q", lost), time, anonymous=True)

    def end_capture(self, status=COMPLETE, time=10**9, start=1000, hits=None, delivered=None, lost=None,
                    hit_cost=0, real=5000):
        """Without counters given, they are those of the records so far. `lost`: {(kind, cause): n}."""
        delivered = delivered or self.hits
        lost = lost or {}
        table = [lost.get((kind, cause), 0) for kind in range(MARKERS) for cause in range(CAUSES)]
        if hits is None:
            hits = [n + sum(table[CAUSES * k:CAUSES * (k + 1)]) for k, n in enumerate(delivered)]
        body = struct.pack("<IIQ", status, 0, start)
        body += struct.pack("<16Q16Q64Q", *hits, *delivered, *table)
        body += struct.pack("<6Q", 0, 0, real, time, real + time - start, hit_cost)
        return self.record(END, body, time, anonymous=True)


def simple(operations=3, **end):
    """A whole capture of one session with a few operations."""
    raw = Capture().process().session().site(0x10, "s:0", "matmul", "x", "y").name(0x20, "out").open(time=5)
    for n in range(1, operations + 1):
        raw.begin(token=n, site=0x10, step=n, time=n * 100)
        raw.end(token=n, output=0x20, step=n, time=n * 100 + 42)
    raw.finish(time=operations * 100 + 99).tide(operations * 100 + 99)
    return raw.end_capture(**end)


def profile_session():
    """The calls that tests/data/profile_session.jsonl was written by, as marks."""
    raw = Capture().process("rust").session(1, "Model::forward", "train", "release", ["cuda", 'a"b'],
                                            "analysis:test", "candle-graph/build/1:0123456789abcdef")
    raw.site(0x10, "operation:train:Model::forward:0", "matmul", "x",
             "y\x01\t\x7f\u2028\u00e9\U0001f600/\\\"")
    raw.site(0x20, "", "").name(0x30, "out").edge_site(0x40, "tensor:a", "operation:b")
    raw.open(time=900)
    raw.begin(token=1, site=0x10, step=0, time=1000)
    raw.edge(site=0x40, step=0, token=2, duration=2**64 - 1, time=2000)
    raw.begin(token=3, site=0x20, step=4, time=3000)
    raw.end(token=1, output=0x30, step=4, time=4000)
    raw.end(token=3, step=4, time=5000)
    return raw.finish(time=6000).tide(7000).end_capture(COMPLETE, time=8000)
