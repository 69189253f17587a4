# SPDX-License-Identifier: BSD-2-Clause
"""make install, as a packager and then a user of the library meet it; make uninstall leaves nothing."""
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = r"""
#include <stdio.h>
#include <tickmark/tickmark.h>

TMK_SITE(site, "operation:infer:Model::forward:0", "matmul", "x");

int main(int argc, char **argv)
{
	struct tmk_config config = tmk_config_infer("Model::forward");
	struct tmk_session *s;

	if (argc < 2 || tmk_session_open(&s, argv[1], &config))
		return 1;
	tmk_op_end(s, tmk_op_begin(s, &site), "y");
	return tmk_session_finish(s) ? 1 : 0;
}
"""


def make(build, *args):
    # Not a part of the make that runs the tests: neither its flags nor its job server.
    env = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(["make", "-C", ROOT, f"B={build}", *args], env=env, text=True, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout


def files_below(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir())


@pytest.fixture(scope="module")
def installed(build, sanitized, tmp_path_factory):
    if sanitized:
        pytest.skip("nobody installs a sanitizer build")
    stage = tmp_path_factory.mktemp("stage")
    make(build, "install", f"DESTDIR={stage}", "PREFIX=/opt/tick mark")
    return stage, build


def test_what_is_installed(installed):
    stage, _ = installed
    prefix = stage / "opt/tick mark"
    headers = sorted(p.name for p in (ROOT / "include/tickmark").glob("*.h*"))
    assert files_below(stage) == sorted(f"opt/tick mark/{name}" for name in [
        "bin/tickmark", *(f"include/tickmark/{h}" for h in headers), "lib/libtickmark.a",
        "lib/libtickmark.so", "lib/libtickmark.so.0", "lib/pkgconfig/tickmark.pc"])
    assert os.readlink(prefix / "lib/libtickmark.so") == "libtickmark.so.0"
    assert os.access(prefix / "bin/tickmark", os.X_OK)
    pc = (prefix / "lib/pkgconfig/tickmark.pc").read_text()
    assert "@" not in pc and str(stage) not in pc


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_a_program_builds_against_it_and_runs(build, tickmark, sanitized, tmp_path, static):
    if sanitized:
        pytest.skip("nobody installs a sanitizer build")
    prefix = tmp_path / "prefix"
    make(build, "install", f"PREFIX={prefix}", "DESTDIR=/")
    env = dict(os.environ, PKG_CONFIG_PATH=str(prefix / "lib/pkgconfig"))
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "tickmark"], env=env, text=True,
                           stdout=subprocess.PIPE, check=True).stdout.split()
    if static:
        flags = [str(prefix / "lib/libtickmark.a") if f == "-ltickmark" else f for f in flags]
        (prefix / "lib/libtickmark.so").unlink()
    source = tmp_path / "program.c"
    source.write_text(PROGRAM)
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-o", tmp_path / "program", source, *flags],
                   check=True, timeout=60)
    trace = tmp_path / "trace.jsonl"
    subprocess.run([tmp_path / "program", trace], check=True, timeout=60,
                   env=dict(os.environ, LD_LIBRARY_PATH=str(prefix / "lib")))
    tickmark("check", trace, status=0)


def test_uninstall_leaves_nothing(installed):
    stage, build = installed
    make(build, "uninstall", f"DESTDIR={stage}", "PREFIX=/opt/tick mark")
    assert files_below(stage) == []
