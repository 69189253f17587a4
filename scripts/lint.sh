#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Checks the sources without building them: licence lines, C formatting and static analysis, shell and
# Python. Runs every check, then fails if one did. Building with both compilers is make's part.
set -uo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.." || exit 1

jobs=$(nproc)
export BUILD=${1:-build} # holds the generated skeletons that sources include
failed=0

report() { # NAME STATUS [OUTPUT]
	if [ "$2" = 0 ]; then
		echo "lint: $1: ok"
	else
		[ -z "${3:-}" ] || printf '%s\n' "$3"
		echo "lint: $1: FAILED"
		failed=1
	fi
}

check() { # NAME COMMAND…
	local name=$1 out
	shift
	out=$("$@" 2>&1)
	report "$name" $? "$out"
}

if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
	list_files() { git ls-files -z --cached --others --exclude-standard; }
else
	list_files() { find . -name .git -prune -o -name 'build*' -prune -o -name target -prune -o -type f -printf '%P\0'; }
fi
files=()
while IFS= read -r -d '' file; do
	[ -f "$file" ] && files+=("$file")
done < <(list_files)

matching() { # GLOB…: the files that match one of them
	local file glob
	for file in "${files[@]}"; do
		for glob in "$@"; do
			# shellcheck disable=SC2053 # the right side is a pattern
			[[ $file == $glob ]] && printf '%s\n' "$file" && break
		done
	done
}

mapfile -t c_files < <(matching '*.c' '*.h')
mapfile -t bpf_files < <(matching '*.bpf.c')
mapfile -t tidy_files < <(matching 'user/*.c' 'examples/*.c' 'tests/*.c' | grep -v '\.bpf\.c$')
mapfile -t shell_files < <(grep -lE '^#!/bin/(ba)?sh' -- "${files[@]}")
mapfile -t python_files < <(matching '*.py')

# Text that is data (recorded, or somebody else's format) has no place for a licence line.
spdx() {
	local file bad=0
	for file in "${files[@]}"; do
		case $file in
		LICENSE | *.md | *.jsonl | *.json | *.txt | *.tmk | *.lock | *.gitignore | tests/data/*) continue ;;
		esac
		head -n 3 -- "$file" | grep -q 'SPDX-License-Identifier: ' && continue
		echo "$file: no SPDX line in its first three lines"
		bad=1
	done
	for file in "${bpf_files[@]}"; do
		head -n 3 -- "$file" | grep -q 'SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause' && continue
		echo "$file: a BPF program must be 'GPL-2.0-only OR BSD-2-Clause'"
		bad=1
	done
	return "$bad"
}

format() {
	clang-format --dry-run -Werror --style=file "${c_files[@]}"
}

tidy() {
	# shellcheck disable=SC2016 # expanded by the inner shell
	printf '%s\0' "${tidy_files[@]}" | xargs -0 -n 4 -P "$jobs" bash -c '
		clang-tidy --quiet --warnings-as-errors="*" "$@" -- -std=gnu11 -D_GNU_SOURCE \
			-DTMK_VERSION="\"lint\"" -Iinclude -Iuser -Itests -isystem "$BUILD" -isystem "$BUILD/bench" \
			2> >(grep -v "warnings* generated\|^Suppressed\|^Use -header" >&2)' -
}

# Suppressed: a sink that is handed over in out->self looks leaked; a struct copied whole into a member
# of a union looks overlapping; an array that a kernel fills looks uninitialized; a
# test may crash for want of memory.
check_cpp() {
	cppcheck --quiet --std=c11 --enable=warning,portability --inline-suppr --error-exitcode=1 \
		--suppress=missingIncludeSystem --suppress=unknownMacro --suppress=normalCheckLevelMaxBranches \
		--suppress='memleak:user/sink/*' --suppress='overlappingWriteUnion:tests/*' \
		--suppress='uninitvar:tests/*' --suppress='nullPointerOutOfMemory:tests/*' \
		--suppress='nullPointerOutOfResources:tests/*' \
		-D_GNU_SOURCE -D__x86_64__ -Iinclude -Iuser \
		-j "$jobs" "${tidy_files[@]}"
}

python() {
	local file bad=0
	for file in "${python_files[@]}"; do
		python3 -c 'import ast, sys; ast.parse(open(sys.argv[1], encoding="utf-8").read(), sys.argv[1])' "$file" || bad=1
	done
	return "$bad"
}

check "licence lines" spdx
check "clang-format" format
check "cppcheck" check_cpp
check "clang-tidy" tidy
# SC2317: functions that are only called by name look unreachable to it.
check "shellcheck" shellcheck -x -e SC2317 "${shell_files[@]}"
check "python" python
exit "$failed"
