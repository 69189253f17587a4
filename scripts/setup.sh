#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Installs the Debian packages that a part of the project needs and leaves everything else alone.
# Silent and quick when they are there; never asks a question; apt's own talk goes to a log file.
#
#	scripts/setup.sh build | test | asan | lint | interop | bench
#
# On Debian 12 libbpf and bpftool are too old; they come from its backports, whose address is taken
# from the machine's own apt sources. On other systems it only checks, and names what is missing.
set -euo pipefail
export LC_ALL=C

cd "$(dirname "$0")/.."
readonly LOG=${TMK_SETUP_LOG:-build/setup.log}
readonly MIN_LIBBPF=1.4.5 MIN_BPFTOOL=7.5
readonly BACKPORTS=/etc/apt/sources.list.d/tickmark-backports.sources

readonly BUILD="gcc g++ libc6-dev make pkg-config binutils clang libbpf-dev bpftool libelf-dev zlib1g-dev"
readonly TEST="$BUILD libcmocka-dev python3 python3-pytest"
readonly INTEROP="bpftrace linux-perf"

die() {
	echo "setup: $*" >&2
	exit 1
}

packages_of() {
	case $1 in
	build) echo "$BUILD" ;;
	test | asan) echo "$TEST" ;;
	lint) echo "$TEST clang-format clang-tidy cppcheck shellcheck" ;;
	interop) echo "$INTEROP" ;;
	bench) echo "$BUILD python3 $INTEROP" ;;
	*) return 1 ;;
	esac
}

# The lowest version of a package that will do, without Debian's epoch; empty: any.
minimum_of() {
	case $1 in
	libbpf-dev) echo "$MIN_LIBBPF" ;;
	bpftool) echo "$MIN_BPFTOOL" ;;
	esac
}

version_fits() { # PACKAGE VERSION
	local min
	min=$(minimum_of "$1")
	[ -z "$min" ] || dpkg --compare-versions "${2#*:}" ge "$min"
}

missing_packages() {
	local name status version
	declare -A have=()

	while read -r name status version; do
		[ "$status" = installed ] || continue
		have[${name%%:*}]=$version
	done < <(dpkg-query -W -f '${binary:Package} ${db:Status-Status} ${Version}\n' "$@" 2>/dev/null)
	for name in "$@"; do
		[ -n "${have[$name]:-}" ] && version_fits "$name" "${have[$name]}" || echo "$name"
	done
}

# Elsewhere than on Debian: by what the build runs, not by package names.
missing_tools() {
	local tool
	for tool in gcc g++ make pkg-config ld clang bpftool; do
		command -v "$tool" >/dev/null || [ -x "/usr/sbin/$tool" ] || echo "$tool"
	done
	command -v pkg-config >/dev/null || return 0
	pkg-config --atleast-version="$MIN_LIBBPF" libbpf || echo "libbpf>=$MIN_LIBBPF(headers)"
	pkg-config --exists libelf || echo "libelf(headers)"
	pkg-config --exists zlib || echo "zlib(headers)"
	case $1 in
	test | asan | lint)
		pkg-config --exists cmocka || echo "cmocka(headers)"
		python3 -c 'import pytest' 2>/dev/null || echo "python3 pytest"
		;;&
	lint)
		for tool in clang-format clang-tidy cppcheck shellcheck; do
			command -v "$tool" >/dev/null || echo "$tool"
		done
		;;
	interop | bench)
		for tool in python3 bpftrace perf; do
			command -v "$tool" >/dev/null || echo "$tool"
		done
		;;
	esac
}

# Every command that changes the system goes through here.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo -n "$@"
	fi
}

apt() {
	as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -y \
		-o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confdef \
		-o Dpkg::Options::=--force-confold "$@" >>"$LOG" 2>&1 </dev/null
}

candidate() {
	apt-cache policy "$1" | sed -n 's/^  Candidate: //p'
}

# The file whose entry gives the suite $1's own packages, and the name that entry calls the suite.
suite_entry() {
	# shellcheck disable=SC2016 # the $() are for apt
	apt-get indextargets --format '$(CODENAME)|$(COMPONENT)|$(RELEASE)|$(SOURCESENTRY)' \
		'Created-By: Packages' |
		awk -F'|' -v c="$1" '$1 == c && $2 == "main" { sub(/:[0-9]+$/, "", $4); print $3, $4; exit }'
}

# Rewrites the entry for suite $2 of apt source file $1 (either format) into one for suite $3.
derive_source() {
	case $1 in
	*.sources)
		awk -v from="$2" -v to="$3" '
			BEGIN { RS = ""; FS = "\n" }
			{
				keep = ""; field = ""; suites = ""; off = 0
				for (i = 1; i <= NF; i++) {
					if ($i ~ /^#/)
						continue
					if ($i !~ /^[ \t]/)
						field = tolower(substr($i, 1, index($i, ":") - 1))
					if (field == "suites")
						suites = suites " " $i " "
					else if (field == "enabled")
						off = ($i ~ /[Nn]o[ \t]*$/)
					else if (field != "types" && field != "components")
						keep = keep $i "\n"
				}
				gsub(/[ \t]+/, " ", suites)
				if (!off && index(suites " ", " " from " ")) {
					printf "Types: deb\n%sSuites: %s\nComponents: main\n", keep, to
					exit
				}
			}' "$1"
		;;
	*)
		awk -v from="$2" -v to="$3" '
			/^[ \t]*deb[ \t]/ {
				options = ""
				if (match($0, /\[[^]]*\]/)) {
					options = substr($0, RSTART + 1, RLENGTH - 2)
					$0 = substr($0, 1, RSTART - 1) substr($0, RSTART + RLENGTH)
				}
				if ($3 != from)
					next
				printf "Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n", $2, to
				n = split(options, o, " ")
				for (i = 1; i <= n; i++) {
					eq = index(o[i], "=")
					name = substr(o[i], 1, eq - 1)
					value = substr(o[i], eq + 1)
					gsub(/,/, " ", value)
					if (name == "arch") name = "Architectures"
					if (name == "lang") name = "Languages"
					if (name == "target") name = "Targets"
					print name ": " value
				}
				exit
			}' "$1"
		;;
	esac
}

backports_configured() {
	# shellcheck disable=SC2016 # the $() are for apt
	apt-get indextargets --format '$(CODENAME)|$(RELEASE)' 'Created-By: Packages' |
		tr '|' '\n' | grep -qxF -- "$1"
}

configure_backports() { # SUITE-backports
	local codename=${1%-backports} name file tmp

	read -r name file < <(suite_entry "$codename") || true
	[ -n "${file:-}" ] || die "no apt source for Debian's '$codename' found: add $1 to /etc/apt/sources.list.d by hand and run this again"
	tmp=$(mktemp)
	{
		echo "# Made by tickmark's scripts/setup.sh from $file: only libbpf and bpftool come from here."
		derive_source "$file" "$name" "$1"
	} >"$tmp"
	if ! grep -q '^URIs: *[^ ]' "$tmp"; then
		rm -f "$tmp"
		die "$file: could not read its entry for $name: add $1 to /etc/apt/sources.list.d by hand and run this again"
	fi
	as_root install -m 0644 "$tmp" "$BACKPORTS" || die "$BACKPORTS: cannot be written"
	rm -f "$tmp"
	apt update || true
}

install_packages() {
	local suite name args=() old=()
	# shellcheck disable=SC1091
	suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")-backports

	apt update || true # a broken third source need not matter: the installation will tell
	for name in "$@"; do
		version_fits "$name" "$(candidate "$name")" && args+=("$name") || old+=("$name")
	done
	if [ "${#old[@]}" -gt 0 ]; then
		backports_configured "$suite" || configure_backports "$suite"
		for name in "${old[@]}"; do
			args+=("$name/$suite")
			# Its dependency is on the very same version of the shared library.
			[ "$name" != libbpf-dev ] || args+=("libbpf1/$suite")
		done
	fi
	apt install --no-install-recommends "${args[@]}" ||
		die "apt-get could not install: ${args[*]}; see $LOG"
}

main() {
	local mode=${1:-build} packages missing
	packages=$(packages_of "$mode") || die "unknown mode '$mode'; one of build, test, asan, lint, interop, bench"

	if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
		missing=$(missing_tools "$mode" | tr '\n' ' ')
		[ -z "$missing" ] ||
			die "not a Debian system: install by hand: $missing(on Debian: $packages)"
		return 0
	fi

	# shellcheck disable=SC2086 # a list of words
	missing=$(missing_packages $packages | tr '\n' ' ')
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" != 0 ] && ! { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }; then
		die "packages are missing and this is not root: as root, run scripts/setup.sh $mode (it installs: $missing)"
	fi
	mkdir -p "$(dirname "$LOG")"
	echo "setup: installing ${missing}(log: $LOG)" >&2
	# shellcheck disable=SC2086
	install_packages $missing
	# shellcheck disable=SC2086
	missing=$(missing_packages $packages | tr '\n' ' ')
	[ -z "$missing" ] || die "still missing or too old after apt-get: $missing; see $LOG"
}

[ "${BASH_SOURCE[0]}" != "$0" ] || main "$@"
