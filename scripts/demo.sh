#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The demonstration behind `make demo`: an ordinary training job, already running, which answers prompts
# now and then, is traced from outside for ten seconds and goes on; then the recording (a file for the
# session that trains and one for the session that answers) is checked, and replayed without root.
#
#	scripts/demo.sh [BUILD]
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

readonly BUILD=${1:-build}
readonly OUT=$BUILD/demo
readonly SECONDS_TRACED=10
job=

say() {
	printf '\n%s\n' "$*" | fmt -w 100
}

die() {
	echo "demo: $*" >&2
	exit 1
}

stop_job() {
	[ -n "$job" ] || return 0
	kill "$job" 2>/dev/null || true
	wait "$job" 2>/dev/null || true
	job=
}
trap stop_job EXIT
trap 'exit 130' INT TERM

# The last "step N … loss X" that the job printed, as "N X".
progress() {
	sed -n 's/.*step *\([0-9][0-9]*\).*loss *\([0-9.][0-9.]*\).*/\1 \2/p' "$OUT/job.log" | tail -n 1
}

wait_past_step() { # N: until the job has printed a later step
	local end=$((SECONDS + 30)) step
	while [ "$SECONDS" -lt "$end" ]; do
		kill -0 "$job" 2>/dev/null || die "the job ended by itself; see $OUT/job.log"
		read -r step _ < <(progress) || step=
		[ -n "$step" ] && [ "$step" -gt "$1" ] && return 0
		sleep 0.2
	done
	die "the job printed no step after $1 within 30 s; see $OUT/job.log"
}

recorded() { # the lines of both files
	cat "$OUT/run.jsonl" "$OUT/run.2.jsonl"
}

windows() { # [PATTERN]: how many windows there are with it in their line
	recorded | grep '"window":{' | grep -c -- "${1:-}" || true
}

group() { # NAME: the members of one group of the capture line, e.g. lost, as "key value" lines
	tail -n 1 "$OUT/run.jsonl" | sed -n "s/.*\"$1\":{\([^}]*\)}.*/\1/p" | tr ',' '\n' |
		sed -n 's/"\([^"]*\)":\([0-9]*\)/\1 \2/p'
}

total() {
	group "$1" | awk '{ n += $2 } END { print n + 0 }'
}

[ "$(id -u)" = 0 ] || die "attaching to a process needs root: run it again as 'sudo make demo'"
mkdir -p "$OUT"
rm -f "$OUT"/*

say "1. An ordinary job: a small transformer that learns to write like the text it reads. Every few steps it" \
	"continues a prompt, and every third prompt is cancelled half way. Nobody watches it."
"$BUILD/transformer" --steps 1000000 --answer-every 5 --tokens 20 --cancel-every 3 \
	>"$OUT/answers.txt" 2>"$OUT/job.log" </dev/null &
job=$!
wait_past_step 1
read -r step_before loss_before < <(progress)
echo "   It runs as process $job, and is at step $step_before with a loss of $loss_before."

say "2. tickmark attaches to it from outside, for $SECONDS_TRACED seconds: tickmark record -p $job"
status=0
"$BUILD/tickmark" record -p "$job" -d "$SECONDS_TRACED" -o "$OUT/run.jsonl" --raw "$OUT/run.tmk" || status=$?
case $status in
0 | 3) ;;
*) die "tickmark record ended with status $status" ;;
esac
kill -0 "$job" 2>/dev/null || die "the job did not survive being traced; see $OUT/job.log"
read -r step_detached _ < <(progress)
wait_past_step "$step_detached"
read -r step_after loss_after < <(progress)
echo
echo "   tickmark is gone, and the job goes on: step $step_after, loss $loss_after."
stop_job

say "3. Would candle-graph's importer take the files? tickmark check $OUT/run.jsonl, and run.2.jsonl"
"$BUILD/tickmark" check "$OUT/run.jsonl"
"$BUILD/tickmark" check "$OUT/run.2.jsonl"

say "4. The same once more from the raw capture, without root or kernel: tickmark convert $OUT/run.tmk"
"$BUILD/tickmark" convert "$OUT/run.tmk" -q -o "$OUT/replay.jsonl"
cmp "$OUT/run.jsonl" "$OUT/replay.jsonl" || die "the replay differs from the live file"
cmp "$OUT/run.2.jsonl" "$OUT/replay.2.jsonl" || die "the replay differs from the live file"
echo "   They agree with the live files in every byte."

# Windows have a duration too, but not as a member of the line itself.
operations=$(recorded | grep -v '"window":{' | grep -c '^{"kind":"operation".*"duration_ns":' || true)
names=$(recorded | sed -n 's/^{"kind":"operation",.*"op":\("[^"]*"\),"static_id".*/\1/p' | sort -u | wc -l)
streams=$(recorded | sed -n 's/.*"stream":\([0-9]*\),.*"window":{.*/\1/p' | sort -u | wc -l)
hits=$(total hits) delivered=$(total delivered) lost=$(total lost)

say "What happened: the job was neither restarted nor changed. For $SECONDS_TRACED seconds every operation that it" \
	"began and ended was timed: $operations operations of $names kinds, and $(windows) windows on $streams streams" \
	"($(windows '"op":"train_step"') training steps, $(windows '"op":"token"') generated tokens," \
	"$(windows '"op":"layer"') layers, on the streams of all who work on them). $(windows '"method":"device"') were" \
	"measured by a device's own clock, $(windows '"status":"abandoned"') were given up with a cancelled prompt," \
	"$(windows '"op":"prompt".*"end_tid":') were closed by another thread than opened them. The kernel counted $hits marks," \
	"delivered $delivered and lost $lost. Before, the job stood at step $step_before with a loss of" \
	"$loss_before; afterwards at step $step_after with $loss_after. The job has been stopped now; nothing is left running."
echo
echo "   $OUT/run.jsonl     what candle-graph imports: the session that trains"
echo "   $OUT/run.2.jsonl   the session that answers"
echo "   $OUT/run.tmk       the raw capture"
echo "   $OUT/replay.jsonl  made from it, without root; so is replay.2.jsonl"
echo "   $OUT/job.log       what the job itself printed; its answers are in answers.txt"

for name in train_step token share layer piece prompt logits; do
	[ "$(windows "\"op\":\"$name\".*\"status\":\"closed\"")" -gt 0 ] || die "no window '$name' was measured"
done
[ "$(windows '"method":"device".*"status":"closed"')" -gt 0 ] || die "no window was measured by the device"
[ "$(windows '"status":"abandoned"')" -gt 0 ] || die "no window was abandoned, though prompts were cancelled"
[ "$hits" -eq "$((delivered + lost))" ] || die "marks do not add up: $hits hit, $delivered delivered, $lost lost"
[ "$lost" -eq 0 ] || die "$lost marks were lost (see the summary above); the file is whole otherwise"
