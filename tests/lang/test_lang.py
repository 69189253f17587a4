# SPDX-License-Identifier: BSD-2-Clause
"""Users of libtickmark in C, C++ and Rust, linked in every way: each runs, writes the same events, and
shows its markers to whoever reads ELF notes. lang.mk builds the programs.
"""
import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = Path(os.environ.get("TMK_BUILD", ROOT / "build")).resolve()
WAYS = ["shared", "archive", "nopie-shared", "nopie-archive", "debug-shared", "gc", "static", "static-pie"]
HAS_LIBRARY_INSIDE = ["archive", "nopie-archive", "gc", "static", "static-pie"]
COMPILERS = [c for c in ("gcc", "clang") if shutil.which(c)]
CXX = {"gcc": "g++", "clang": "clang++"}
PEDANTIC = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{ROOT}/include"]

EVENTS = [  # event id, op, static id, inputs, output, step
    ("train-op-0-1", "add", "operation:train:M::f:1", [str(n) for n in range(1, 17)], "out", 0),
    ("train-edge-0-2", "tensor:a", "operation:b", 0),
    ("train-op-1-3", "matmul", "operation:train:M::f:2", [], None, 1),
    ("train-op-1-4", "matmul", "operation:train:M::f:2", ["r1", "r2"], "é", 1),
    ("train-op-1-5", "relu", "operation:train:M::f:3", ["x"], None, 1),
]

WINDOWS = [  # name, status, stream that the program named, flush; in the order in which they ended
    ("guarded", "abandoned", None, False),
    ("outer", "closed", 3, True),
    ("unwound", "abandoned", None, False),
]

# Name, arguments: the x86-64 and arm64 registers of a C call.
MARKERS = {"session_open": 2, "session_finish": 2, "op_begin": 6, "op_end": 5, "edge": 6, "window_start": 6,
           "window_end": 6, "window_resolve": 6}
if os.uname().machine == "x86_64":
    REGISTERS = ["%rdi", "%rsi", "%rdx", "%rcx", "%r8", "%r9"]
    BODY = bytes.fromhex("90" "0f1f440000" "662e0f1f840000000000" "c3")
else:
    REGISTERS = [f"x{n}" for n in range(6)]
    BODY = bytes.fromhex("1f2003d5" * 3 + "c0035fd6")


def built(name):
    path = BUILD / "tests" / "lang" / name
    if path.exists():
        return path
    if name.startswith("rust"):
        pytest.skip("no rustc here, or a sanitizer in the library")
    if "-fsanitize" in os.environ.get("SAN", "") or BUILD.name.endswith("-asan"):
        pytest.skip("not built with a sanitizer")
    return pytest.fail(f"{path}: not built; run make test-programs", pytrace=False)


def run(*command, **kwargs):
    return subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, timeout=120, **kwargs)


def output(*command):
    done = run(*command)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def events_of(path):
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert lines[0]["kind"] == "meta" and lines[0]["entrypoint"] == "M::f"
    assert lines[-1]["capture"]["unpaired"]["repeated_end"] + \
        lines[-1]["capture"]["unpaired"]["end_without_begin"] == 1
    events = []
    windows = [(line["op"], line["window"]["status"], line["stream"] if line.get("named") else None,
                line["window"].get("flush", False)) for line in lines[1:-1] if "window" in line]
    assert windows == WINDOWS
    for line in lines[1:-1]:
        if "window" in line:
            continue
        if line["kind"] == "edge_timing":
            assert line["duration_ns"] == 7
            events.append((line["event_id"], line["from_static_id"], line["to_static_id"], line["step"]))
        else:
            assert line["duration_ns"] >= 0
            events.append((line["event_id"], line["op"], line["static_id"], line["inputs"],
                           line.get("output"), line["step"]))
    return events


def assert_works(*command, path):
    assert output(*command, path) == "ok\n"
    assert events_of(path) == EVENTS


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("language", ["c", "cxx"])
def test_user_linked_in_every_way(language, way, tmp_path):
    assert_works(built(f"{language}-{way}"), path=tmp_path / "out.jsonl")


@pytest.mark.parametrize("way", ["shared", "archive"])
def test_rust_user(way, tmp_path):
    assert_works(built(f"rust-{way}"), path=tmp_path / "out.jsonl")


@pytest.mark.parametrize("way", ["shared", "archive"])
def test_user_in_a_plugin(way, tmp_path):
    assert_works(built("plugin_host"), built(f"plugin-{way}.so"), path=tmp_path / "out.jsonl")


# --- compilers


@pytest.mark.parametrize("optimise", ["-O0", "-O2", "-Os"])
@pytest.mark.parametrize("standard", ["c11", "gnu11", "c17", "gnu2x"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_c_header_is_clean(compiler, standard, optimise, tmp_path):
    output(compiler, f"-std={standard}", optimise, *PEDANTIC, "-c", HERE / "user.c", "-o", tmp_path / "o")


@pytest.mark.parametrize("optimise", ["-O0", "-O2"])
@pytest.mark.parametrize("standard", ["c++17", "gnu++17", "c++20"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_cxx_header_is_clean(compiler, standard, optimise, tmp_path):
    output(CXX[compiler], f"-std={standard}", optimise, *PEDANTIC, "-c", HERE / "user.cc", "-o",
           tmp_path / "o")


@pytest.mark.parametrize("extra", [["-masm=intel"], ["-flto"], ["-fvisibility=hidden"],
                                   ["-DTMK_NO_INLINE"], ["-fcf-protection=full"]])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_flags_of_users(compiler, extra, tmp_path):
    if extra[0] in ("-masm=intel", "-fcf-protection=full") and os.uname().machine != "x86_64":
        pytest.skip("an option of x86-64")
    if BUILD.name.endswith("-asan"):
        pytest.skip("the library needs its sanitizer's flags")
    program = tmp_path / "user"
    done = run(compiler, "-std=c11", "-O2", *extra, *PEDANTIC, HERE / "user.c", "-o", program,
               BUILD / "libtickmark.a", "-lpthread")
    if extra == ["-flto"] and "LLVMgold" in done.stderr:
        pytest.skip(f"{compiler} has no plugin for the linker here")
    assert done.returncode == 0, done.stderr
    assert_works(program, path=tmp_path / "out.jsonl")


LONG = "x" * 1025
REFUSED = {
    "a NUL in the static id": r'TMK_SITE(s, "a\0b", "op");',
    "a NUL in an input": r'TMK_SITE(s, "a", "op", "x", "y\0");',
    "a string too long": f'TMK_SITE(s, "{LONG}", "op");',
    "an input too long": f'TMK_SITE(s, "a", "op", "{LONG}");',
    "too long together": 'TMK_SITE(s, "a", "op", ' + ", ".join(['"' + "x" * 1000 + '"'] * 4) + ");",
    "too many inputs": 'TMK_SITE(s, "a", "op", ' + ", ".join(['"x"'] * 17) + ");",
    "no operation": 'TMK_SITE(s, "a");',
    "not a literal": 'static const char a[] = "a"; TMK_SITE(s, a, "op");',
    "no semicolon": 'TMK_SITE(s, "a", "op") int i;',
}
ACCEPTED = {
    "the longest string": f'TMK_SITE(s, "{LONG[1:]}", "op");',
    "the longest site": 'TMK_SITE(s, "a", "op", ' + ", ".join(['"' + "x" * 1000 + '"'] * 3 + ['"' + "x" * 991 + '"'])
                        + ");",
    "sixteen inputs": 'TMK_SITE(s, "a", "op", ' + ", ".join(['"x"'] * 16) + ");",
    "octal digits after a string's end": 'TMK_SITE(s, "1", "2", "3");',
}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("suffix", ["c", "cc"])
def test_sites_that_must_not_compile(compiler, suffix, tmp_path):
    command = [compiler if suffix == "c" else CXX[compiler], "-std=c11" if suffix == "c" else "-std=c++17",
               *PEDANTIC, "-fsyntax-only"]
    source = tmp_path / f"site.{suffix}"

    def compiles(text):
        source.write_text(f"#include <tickmark/tickmark.h>\n{text}\nint main(void) {{ return 0; }}\n")
        return run(*command, source)
    for what, text in ACCEPTED.items():
        done = compiles(text)
        assert done.returncode == 0, f"{what}: {done.stderr}"
    for what, text in REFUSED.items():
        assert compiles(text).returncode != 0, what
    assert "TMK_STRING_MAX or has a NUL inside" in compiles(REFUSED["a NUL in an input"]).stderr
    assert "TMK_STRINGS_MAX" in compiles(REFUSED["too long together"]).stderr


# --- what the object files show


def notes_of(path):
    """{(provider, name): (location, base, semaphore, arguments)} of a file's .note.stapsdt notes."""
    text = output("readelf", "-n", "-W", path)
    pattern = (r"Provider: (\S+)\s+Name: (\S+)\s+Location: (0x[0-9a-f]+), Base: (0x[0-9a-f]+), "
               r"Semaphore: (0x[0-9a-f]+)\s+Arguments: ?([^\n]*)")
    return {(m[0], m[1]): (int(m[2], 16), int(m[3], 16), int(m[4], 16), m[5].strip())
            for m in re.findall(pattern, text)}


def bytes_at(path, address, size):
    """From the file, by its program headers."""
    data = path.read_bytes()
    offset, = struct.unpack_from("<Q", data, 32)
    entry_size, n = struct.unpack_from("<HH", data, 54)
    for i in range(n):
        kind, _, at, vaddr, _, filesz = struct.unpack_from("<IIQQQQ", data, offset + i * entry_size)
        if kind == 1 and vaddr <= address < vaddr + filesz:
            return data[at + address - vaddr:][:size]
    raise AssertionError(f"{path}: nothing in the file at {address:#x}")


def sections_of(path):
    return {m[0]: int(m[1], 16) for m in
            re.findall(r"\] (\S+)\s+\w+\s+([0-9a-f]{16}) ", output("readelf", "-S", "-W", path))}


def objects_with_markers():
    return ["libtickmark.so"] + [f"tests/lang/c-{way}" for way in HAS_LIBRARY_INSIDE]


@pytest.mark.parametrize("name", objects_with_markers())
def test_notes_and_bodies(name):
    path = BUILD / name if name.startswith("lib") else built(Path(name).name)
    notes = {k[1]: v for k, v in notes_of(path).items() if k[0] == "tickmark"}
    assert sorted(notes) == sorted(MARKERS)
    base = sections_of(path)[".stapsdt.base"]
    semaphore = notes["op_begin"][2]
    for marker, n_args in MARKERS.items():
        location, its_base, its_semaphore, arguments = notes[marker]
        assert arguments == " ".join(f"8@{r}" for r in REGISTERS[:n_args])
        assert its_base == base and its_semaphore == semaphore
        assert bytes_at(path, location, len(BODY)) == BODY
        # No nop crosses a cache line: the kernel patches them while others run.
        assert location // 64 == (location + len(BODY) - 1) // 64
    # In the file, for its offset; writable, at the start of the switch, and all zero.
    assert bytes_at(path, semaphore, 8) == bytes(8)
    assert bytes_at(path, semaphore + 8, 8) == b"KTSGERMK"
    relro = re.search(r"GNU_RELRO\s+0x\S+ 0x(\S+) 0x\S+ 0x\S+ 0x(\S+)", output("readelf", "-l", "-W", path))
    if relro:
        start, size = int(relro[1], 16), int(relro[2], 16)
        assert not start <= semaphore < start + size
    stack = re.search(r"GNU_STACK.* (\w+)\s+0x", output("readelf", "-l", "-W", path))
    assert stack and "E" not in stack[1]


def test_programs_with_the_shared_library_have_no_markers_of_their_own():
    for way in ("shared", "nopie-shared", "debug-shared"):
        assert not notes_of(built(f"c-{way}"))
        relocations = output("readelf", "-r", "-W", built(f"c-{way}"))
        assert "COPY" not in "".join(line for line in relocations.splitlines() if "tmk_" in line)


def test_plain_reference_to_the_switch_does_not_link(tmp_path):
    """It would make the linker copy the object, and the program would watch the copy."""
    source = tmp_path / "plain.c"
    source.write_text("#include <tickmark/tickmark.h>\nextern struct tmk_switch tmk_switch;\n"
                      "int main(void) { return tmk_switch.direct; }\n")
    done = run("gcc", f"-I{ROOT}/include", "-fno-pie", "-no-pie", source, "-o", tmp_path / "plain", f"-L{BUILD}",
               "-ltickmark", "-Wl,--unresolved-symbols=ignore-in-shared-libs")
    assert done.returncode != 0 and "protected" in done.stderr, done.stderr


def test_only_the_interface_is_exported():
    headers = "".join(h.read_text(encoding="utf-8") for h in sorted((ROOT / "include/tickmark").glob("*.h")))
    declared = set(re.findall(r"^TMK_API(?:_THROWS)? [^;]*?\b(tmk_\w+)\(", headers, re.M))
    exported = {line.split()[-1] for line in
                output("nm", "-D", "--defined-only", BUILD / "libtickmark.so").splitlines()}
    assert exported == declared | {"tmk_switch"}
    # And an archive has no global name that could clash with a program's own. Weak ones are shared with
    # others on purpose: a linker keeps one of them, whose it finds first, for all.
    text = output("nm", "-g", "--defined-only", BUILD / "libtickmark.a")
    symbols = [line.split() for line in text.splitlines() if len(line.split()) == 3]
    assert {name for _, kind, name in symbols if kind not in "VW"} == exported
    assert {name for _, kind, name in symbols if kind in "VW"} <= {"_.stapsdt.base", "DW.ref.__gcc_personality_v0"}


def test_no_shared_section_hides_its_name():
    """A COMDAT group whose name is local is kept by a linker for others, who then do not find it."""
    text = output("readelf", "-s", "-W", BUILD / "libtickmark.a")
    bindings = {f[7]: f[4] for f in (line.split() for line in text.splitlines()) if len(f) == 8}
    groups = re.findall(r"^COMDAT group section \[ *\d+\] `\.group' \[(\S+)\]",
                        output("readelf", "-g", "-W", BUILD / "libtickmark.a"), re.M)
    assert groups
    for name in groups:
        # The group of a section's own name is known by a symbol inside of it.
        symbol = {".stapsdt.base": "_.stapsdt.base"}.get(name, name)
        assert bindings[symbol] == "WEAK", (name, bindings.get(symbol))


def test_beside_the_probes_of_others(tmp_path):
    if BUILD.name.endswith("-asan"):
        pytest.skip("the library needs its sanitizer's flags")
    neighbour = tmp_path / "neighbour.o"
    output("gcc", "-c", HERE / "sdt_neighbour.c", "-o", neighbour)
    for order in (["{n}", "{u}", "{a}"], ["{u}", "{a}", "{n}"]):
        for extra in ([], ["-static"], ["-Wl,--gc-sections"]):
            program = tmp_path / "program"
            output("gcc", "-std=c11", "-O2", f"-I{ROOT}/include", *extra,
                   *[a.format(n=neighbour, u=HERE / "user.c", a=BUILD / "libtickmark.a") for a in order],
                   "-o", program, "-lpthread")
            base = sections_of(program)[".stapsdt.base"]
            notes = notes_of(program)
            assert ("neighbour", "probe") in notes and ("tickmark", "op_end") in notes
            assert {note[1] for note in notes.values()} == {base}
            assert_works(program, path=tmp_path / "out.jsonl")


# --- what other tools see


@pytest.mark.parametrize("way", ["shared", "archive", "gc", "static"])
def test_bpftrace_lists_the_markers(way):
    if not shutil.which("bpftrace") or os.geteuid() != 0:
        pytest.skip("needs bpftrace, and root")
    path = BUILD / "libtickmark.so.0" if way == "shared" else built(f"c-{way}")
    listed = output("bpftrace", "-l", f"usdt:{path}:*").split()
    assert sorted(line.rsplit(":", 2)[1:] for line in listed) == sorted(["tickmark", m] for m in MARKERS)


@pytest.mark.parametrize("way", ["shared", "archive", "gc", "static"])
def test_perf_lists_the_markers(way, tmp_path):
    if not shutil.which("perf"):
        pytest.skip("needs perf")
    path = BUILD / "libtickmark.so.0" if way == "shared" else built(f"c-{way}")
    output("perf", "--buildid-dir", tmp_path, "buildid-cache", "--add", path)
    listed = re.findall(r"sdt_tickmark:(\w+)", output("perf", "--buildid-dir", tmp_path, "list", "sdt"))
    assert sorted(set(listed)) == sorted(MARKERS)
