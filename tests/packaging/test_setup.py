# SPDX-License-Identifier: BSD-2-Clause
"""scripts/setup.sh: the apt source it derives for backports, and what it says where it cannot help."""
import os
import subprocess
from pathlib import Path

import pytest

SETUP = Path(__file__).resolve().parent.parent.parent / "scripts/setup.sh"

ONE_LINE = """\
# deb http://commented.example/debian bookworm main
deb-src http://mirror.example/debian bookworm main
deb http://mirror.example/debian bookworm-updates main
deb [ arch=amd64,arm64 signed-by=/usr/share/keyrings/k.gpg ] http://mirror.example/debian bookworm main contrib
"""
DEB822 = """\
Types: deb
URIs: http://security.example/debian-security
Suites: bookworm-security
Components: main

# the archive
Types: deb deb-src
URIs: mirror+file:///etc/apt/mirrors/debian.list
Suites: bookworm
 bookworm-updates
Components: main contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
"""


def derive(path, suite="bookworm"):
    done = subprocess.run(["bash", "-c", '. "$1"; derive_source "$2" "$3" "$3-backports"', "-", SETUP, path, suite],
                          stdout=subprocess.PIPE, text=True, check=True, timeout=20)
    return done.stdout


def test_from_a_one_line_source(tmp_path):
    path = tmp_path / "sources.list"
    path.write_text(ONE_LINE)
    assert derive(path).splitlines() == [
        "Types: deb", "URIs: http://mirror.example/debian", "Suites: bookworm-backports", "Components: main",
        "Architectures: amd64 arm64", "signed-by: /usr/share/keyrings/k.gpg"]
    assert derive(path, "trixie") == ""


def test_from_a_deb822_source(tmp_path):
    path = tmp_path / "debian.sources"
    path.write_text(DEB822)
    assert derive(path).splitlines() == [
        "Types: deb", "URIs: mirror+file:///etc/apt/mirrors/debian.list", "Signed-By:",
        " -----BEGIN PGP PUBLIC KEY BLOCK-----", " .", " abc", "Suites: bookworm-backports", "Components: main"]
    path.write_text("Enabled: no\n" + DEB822.split("\n\n")[1].removeprefix("# the archive\n"))
    assert derive(path) == ""


def run_with_path(folder, *args):
    return subprocess.run(["bash", SETUP, *args], env={"PATH": str(folder)}, text=True, timeout=20,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, cwd=folder)


@pytest.fixture
def bare_path(tmp_path):
    """A PATH with a shell's own needs, and neither apt nor compilers."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("bash", "dirname", "tr"):
        os.symlink(f"/usr/bin/{tool}", folder / tool)
    return folder


def test_not_debian_names_what_is_missing(bare_path):
    done = run_with_path(bare_path, "build")
    assert done.returncode == 1 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("setup: not a Debian system: install by hand: gcc ")
    assert "clang" in done.stderr and "libbpf-dev" in done.stderr


def test_unknown_mode(bare_path):
    done = run_with_path(bare_path, "frobnicate")
    assert done.returncode == 1 and "unknown mode 'frobnicate'" in done.stderr


@pytest.mark.skipif(os.path.exists("/usr/bin/apt-get") is False, reason="not a Debian system")
def test_without_root_it_says_so(bare_path):
    """dpkg-query that knows no package, and an id that is not root's."""
    for name, script in (("dpkg-query", "exit 1"), ("apt-get", "exit 9"), ("id", "echo 1000")):
        (bare_path / name).write_text(f"#!/bin/bash\n{script}\n")
        (bare_path / name).chmod(0o755)
    done = run_with_path(bare_path, "build")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "this is not root" in done.stderr and "gcc" in done.stderr
