# SPDX-License-Identifier: BSD-2-Clause
"""The example program from outside: it learns, answers, marks, ends when told, refuses what is wrong.

Needs neither root nor a tracer: traces come from the program's own session (--trace). What a tracer
sees of it is in live/test_transformer_traced.py.
"""
import json
import os
import re
import resource
import signal
import subprocess
import time
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import transformer_windows as tw  # noqa: E402

SMALL = ["--layers", "2", "--dim", "32", "--context", "32", "--batch", "4"]


@pytest.fixture(scope="module")
def transformer(build):
    """transformer(ARGS…, status=0, stdin="") → CompletedProcess of build/transformer."""
    def run(*args, status=0, stdin="", program="transformer", **kwargs):
        kwargs = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kwargs}
        done = subprocess.run([build / program, *map(str, args)], input=stdin, text=True,
                              errors="replace", timeout=300, check=False, **kwargs)
        assert done.returncode == status, f"{args}: status {done.returncode}\n{done.stderr}"
        return done
    return run


@pytest.fixture
def running(build):
    """running(ARGS…) → Popen of build/transformer, killed at the end of the test."""
    started = []

    def run(*args):
        started.append(subprocess.Popen([build / "transformer", *map(str, args)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, bufsize=1))
        return started[-1]
    yield run
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()


def losses(stderr):
    return {int(step): float(loss)
            for step, loss in re.findall(r"^step (\d+) loss ([0-9.]+)$", stderr, re.M)}


def sanitized(build):
    return "asan" in build.name


def test_loss_falls_with_the_defaults(transformer, build):
    if sanitized(build):
        pytest.skip("200 steps take the sanitizers many minutes; the other tests run the same code")
    done = transformer("--steps", 200, "--tokens", 40)
    curve = losses(done.stderr)
    assert curve[1] > 3.8, "it begins without knowing anything"
    assert curve[200] < 2.6
    smooth = [curve[step] for step in range(20, 201, 20)]
    assert all(later < earlier + 0.1 for earlier, later in zip(smooth, smooth[1:]))
    # Mostly letters by now, and no longer any byte as likely as the other.
    text = done.stdout.replace("You may ", "").replace("The licensee ", "")
    assert len(text) >= 80
    assert sum(c.isalpha() or c.isspace() for c in text) > 0.8 * len(text)


def test_same_seed_same_words_for_any_number_of_threads(transformer, tmp_path):
    def run(seed, threads, program="transformer"):
        return transformer(*SMALL, "--steps", 30, "--tokens", 60, "--seed", seed,
                           "--threads", threads, program=program)
    one = run(7, 1)
    for threads in (2, 5):
        again = run(7, threads)
        assert again.stdout == one.stdout
        assert again.stderr == one.stderr
    static = run(7, 2, program="transformer-static")
    assert (static.stdout, static.stderr) == (one.stdout, one.stderr)
    assert run(8, 2).stdout != one.stdout


def test_prompts_are_continued_in_order(transformer):
    done = transformer(*SMALL, "--steps", 5, "--tokens", 10, "--prompt", "one", "--prompt", "",
                       "--prompt", "caf\u00e9 \t")
    # The vocabulary of the text has no accent: that byte is printed, but the model never sees it.
    assert done.stdout.startswith("one")
    assert "\ncaf\u00e9 \t" in done.stdout
    assert len(done.stdout) >= len("onecaf\u00e9 \t") + 30


def test_serves_line_by_line(running):
    job = running(*SMALL, "--steps", 5, "--tokens", 20, "--serve")
    for prompt in ("The licensee", "", "a very long line " * 1000, "last"):
        job.stdin.write(prompt + "\n")
        job.stdin.flush()
        # The answer comes before the next question is asked, so it was flushed.
        answer = job.stdout.readline()
        assert answer.endswith("\n") and len(answer) == 21, repr(answer)
    job.stdin.write("without an end")
    job.stdin.close()
    assert len(job.stdout.readline()) == 21
    assert job.stdout.read() == ""
    assert job.wait(timeout=30) == 0


@pytest.fixture(scope="module")
def traced(transformer, tmp_path_factory):
    """The files of one run with --trace and --self-clock: (train, infer, clock)."""
    folder = tmp_path_factory.mktemp("traced")
    transformer("--steps", 6, "--tokens", 10, "--prompt", "You may ", "--threads", 3,
                "--trace", folder / "deep" / "run.x.jsonl", "--self-clock", folder / "clock.json")
    return (folder / "deep" / "run.x.jsonl", folder / "deep" / "run.x.infer.jsonl",
            json.loads((folder / "clock.json").read_text()))


def of_kind(lines, kind):
    """Those with a measured duration: the closing capture line is an operation without one."""
    return [line for line in lines if line["kind"] == kind and "duration_ns" in line]


def test_traces_are_importable(traced, tickmark, jsonl):
    for path, phase in zip(traced[:2], ("train", "infer")):
        tickmark("check", path, status=0)
        meta = jsonl(path)[0]
        assert (meta["kind"], meta["phase"], meta["entrypoint"]) == ("meta", phase, "Gpt::forward")


def test_marks_every_operation(traced, jsonl):
    operations = of_kind(jsonl(traced[0]), "operation")
    names = {op["op"] for op in operations}
    assert names >= {"load_batch", "embedding", "layer_norm", "matmul", "attention_scores", "softmax",
                     "attention_mix", "residual_add", "gelu", "cross_entropy", "matmul_backward",
                     "matmul_weight_grad", "layer_norm_backward", "adamw"}
    assert all(re.fullmatch(r"operation:train:(Text::batch|Gpt::forward|Gpt::backward|AdamW::step):\d+",
                            op["static_id"]) for op in operations)
    assert all(op["inputs"] and op["output"] for op in operations)
    # One static id is one place in the model: it has one name and one set of inputs.
    places = {(op["static_id"], op["op"], tuple(op["inputs"]), op["output"]) for op in operations}
    assert len(places) == len({op["static_id"] for op in operations}) > 100
    steps = Counter(op["step"] for op in operations)
    assert sorted(steps) == [1, 2, 3, 4, 5, 6]
    assert len(set(steps.values())) == 1 and steps[1] >= 300


def test_generation_marks_each_token(traced, jsonl):
    operations = of_kind(jsonl(traced[1]), "operation")
    assert Counter(op["op"] for op in operations)["encode"] == 1
    samples = [op for op in operations if op["op"] == "sample"]
    assert [op["step"] for op in samples] == list(range(1, 11))
    assert all(op["static_id"].startswith("operation:infer:") for op in operations)


def test_every_edge_joins_what_was_traced(traced, jsonl):
    for path in traced[:2]:
        lines = jsonl(path)
        ids = {op["static_id"] for op in of_kind(lines, "operation")}
        edges = of_kind(lines, "edge_timing")
        assert {edge["to_static_id"] for edge in edges} <= ids
        assert {edge["from_static_id"].replace("tensor:", "operation:", 1) for edge in edges} <= ids
        # Nothing is used before it is there, and no operation but the first lacks an edge.
        assert all(edge["duration_ns"] < 60 * 10**9 for edge in edges)
        assert len(ids - {edge["to_static_id"] for edge in edges}) == 1


def test_work_is_done_by_several_threads(traced, jsonl):
    operations = of_kind(jsonl(traced[0]), "operation")
    if "tid" not in operations[0]:
        pytest.skip("this trace does not say which thread did what")
    assert len({op["tid"] for op in operations}) == 4, "three workers, and the thread that trains"
    moved = {op["op"] for op in operations if op.get("end_tid", op["tid"]) != op["tid"]}
    assert moved == {"matmul_weight_grad", "layer_norm_weight_grad", "embedding_weight_grad"}


def test_durations_agree_with_the_programs_own_clock(traced, jsonl):
    for path, phase in zip(traced[:2], ("train", "infer")):
        counts, sums = Counter(), Counter()
        for op in of_kind(jsonl(path), "operation"):
            counts[op["op"]] += 1
            sums[op["op"]] += op["duration_ns"]
        clock = traced[2][phase]
        assert counts == {name: row["count"] for name, row in clock.items()}
        for name, row in clock.items():
            assert row["inner_ns"] <= sums[name] <= row["outer_ns"], name


@pytest.fixture(scope="module")
def windowed(transformer, tmp_path_factory, jsonl):
    """Lines of each phase, and the clock, of a run that also answers and cancels while it trains."""
    folder = tmp_path_factory.mktemp("windowed")
    transformer(*SMALL, "--steps", 6, "--tokens", 9, "--answer-every", 2, "--cancel-every", 2,
                "--threads", 3, "--prompt", "You may ", "--prompt", "It ",
                "--trace", folder / "run.jsonl", "--self-clock", folder / "clock.json")
    return {"train": jsonl(folder / "run.jsonl"), "infer": jsonl(folder / "run.infer.jsonl"),
            "clock": json.loads((folder / "clock.json").read_text()), "folder": folder}


@pytest.mark.parametrize("phase", ["train", "infer"])
def test_windows_agree_with_the_programs_own_clock_and_counts(windowed, phase):
    tw.check_against_own_clock(windowed[phase], windowed["clock"], phase)


@pytest.mark.parametrize("phase", ["train", "infer"])
def test_windows_count_the_operations_of_their_stream(windowed, phase):
    tw.check_counts(windowed[phase])


@pytest.mark.parametrize("phase, layers", [("train", 4), ("infer", 2)])
def test_layers_are_windows_inside_their_step_or_token_on_every_stream(windowed, phase, layers):
    tw.check_streams(windowed[phase], phase, workers=3)
    tw.check_nesting(windowed[phase], phase, layers)


def test_every_step_is_a_window_and_every_token(windowed):
    names = tw.by_name(tw.windows_of(windowed["train"]))
    assert [w["step"] for w in names["train_step"]] == [1, 2, 3, 4, 5, 6]
    # A batch and the queued gradients: 6 of each of 2 blocks, and 3 beside them.
    assert {w["window"]["operations"] for w in names["train_step"]} == {1 + 6 * 2 + 3}
    assert set(names) == {"train_step", "share", "layer", "piece"}
    names = tw.by_name(tw.windows_of(windowed["infer"]))
    assert set(names) == {"prompt", "token", "share", "layer", "logits"}
    # Five prompts, of which the second and fourth end with their fifth token, which is not drawn.
    assert len(names["token"]) == len(names["logits"]) == 3 * 9 + 2 * 5


def test_a_worker_closes_a_prompt_and_a_cancelled_one_abandons_its_token(windowed):
    tw.check_prompts(windowed["infer"], prompts=5, cancelled=2)


def test_the_device_measures_by_its_own_clock_and_answers_late(windowed):
    tw.check_device(windowed["infer"])


def test_windows_are_importable(windowed, tickmark):
    for name in ("run.jsonl", "run.infer.jsonl"):
        tickmark("check", windowed["folder"] / name, status=0)


def test_answers_while_it_trains_do_not_change_what_it_learns(transformer):
    alone = transformer(*SMALL, "--steps", 20, "--tokens", 0)
    done = transformer(*SMALL, "--steps", 20, "--tokens", 12, "--answer-every", 7)
    assert losses(done.stderr) == losses(alone.stderr)
    # Twice while it trains, and the two prompts at the end.
    assert done.stdout.count("You may ") + done.stdout.count("The licensee ") == 4


def test_a_cancelled_prompt_ends_half_way(transformer):
    prompts = [arg for _ in range(4) for arg in ("--prompt", "")]
    text = "0123456789" * 20  # no line ends in what it learns
    path = "/dev/stdin"
    done = transformer(*SMALL, "--text", path, "--steps", 2, "--tokens", 10, *prompts,
                       "--cancel-every", 3, stdin=text)
    assert [len(line) for line in done.stdout.splitlines()] == [10, 10, 5, 10]


def test_signal_while_it_trains_and_answers_leaves_whole_files(running, tickmark, tmp_path):
    job = running(*SMALL, "--steps", 100000, "--answer-every", 1, "--cancel-every", 2, "--tokens", 8,
                  "--trace", tmp_path / "run.jsonl")
    for _ in range(4):
        job.stdout.readline()
    job.send_signal(signal.SIGTERM)
    job.stdout.read()
    assert job.wait(timeout=60) == 0
    for name in ("run.jsonl", "run.infer.jsonl"):
        tickmark("check", tmp_path / name, status=0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_training_with_whole_files(running, tickmark, tmp_path, number):
    job = running("--steps", 100000, "--trace", tmp_path / "run.jsonl",
                  "--self-clock", tmp_path / "clock.json")
    assert "step 1 " in job.stderr.readline()
    job.send_signal(number)
    assert job.wait(timeout=60) == 0
    assert job.stdout.read() == ""
    tickmark("check", tmp_path / "run.jsonl", status=0)
    assert json.loads((tmp_path / "clock.json").read_text())["train"]["adamw"]["count"] > 0
    assert not (tmp_path / "run.infer.jsonl").exists()


def test_a_signal_ends_serving(running, tickmark, tmp_path):
    job = running(*SMALL, "--steps", 2, "--tokens", 5, "--serve", "--trace", tmp_path / "run")
    job.stdin.write("a\n")
    job.stdin.flush()
    job.stdout.readline()
    time.sleep(0.2)
    job.send_signal(signal.SIGTERM)
    assert job.wait(timeout=30) == 0
    tickmark("check", tmp_path / "run.infer", status=0)


def test_memory_stays_small(build):
    def limit():
        # Address space also counts what is only reserved: one heap and stack for each thread.
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    if sanitized(build):
        pytest.skip("the sanitizer reserves all addresses")
    process = subprocess.Popen([build / "transformer", "--steps", "20", "--tokens", "10"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               preexec_fn=limit)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert usage.ru_maxrss < 200 * 1024


@pytest.mark.parametrize("args, status, words", [
    (["--nonsense"], 2, "--nonsense"),
    (["-x"], 2, "-x"),
    (["--steps"], 2, "--steps"),
    (["--steps", "many"], 2, "many"),
    (["--steps", "-1"], 2, "-1"),
    (["--steps", "5x"], 2, "5x"),
    (["--threads", "0"], 2, "threads"),
    (["--threads", "65"], 2, "64"),
    (["--answer-every", "often"], 2, "often"),
    (["--cancel-every", "-1"], 2, "-1"),
    (["--seed", "18446744073709551616"], 2, "seed"),
    (["--serve=yes"], 2, "--serve=yes"),
    (["stray"], 2, "stray"),
    (["--dim", "30", "--heads", "4"], 2, "multiple"),
    (["--text", "/nonexistent/text"], 1, "/nonexistent/text"),
    (["--text", "/"], 1, "directory"),
    (["--text", "/dev/null"], 1, "empty"),
    (["--text", "/etc/hostname", "--context", "4000"], 1, "too few"),
    (["--dim", "4096", "--layers", "64"], 1, "MiB"),
    (["--batch", "4096", "--context", "4096"], 1, "MiB"),
    (["--self-clock", "/nonexistent/clock"], 1, "/nonexistent/clock"),
    (["--trace", "/proc/nonexistent/run.jsonl"], 1, "/proc/nonexistent"),
])
def test_wrong_usage_is_one_line(transformer, tmp_path, args, status, words):
    if args[0] == "--batch":
        long = tmp_path / "long"
        long.write_text("0123456789" * 1000)
        args = [*args, "--text", long]
    done = transformer("--steps", 1, *args, status=status)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("transformer: "), done.stderr
    assert words in done.stderr


def test_full_disk_and_closed_pipe_are_reported(transformer, build):
    with open("/dev/full", "wb") as full:
        done = transformer(*SMALL, "--steps", 1, "--tokens", 5, status=1, stdout=full)
    assert done.stderr.splitlines()[-1].startswith("transformer: stdout: ")
    read, write = os.pipe()
    os.close(read)
    done = transformer(*SMALL, "--steps", 1, "--tokens", 5, status=1, stdout=write)
    os.close(write)
    assert "stdout" in done.stderr.splitlines()[-1]


def test_help_shows_examples(transformer):
    done = transformer("--help")
    assert done.stdout.startswith("Usage: transformer") and done.stderr == ""
    assert done.stdout.index("Examples:") < done.stdout.index("--text FILE")


def test_binary_and_tiny_texts_train(transformer, tmp_path):
    every = tmp_path / "every"
    every.write_bytes(bytes(range(256)) * 8)
    transformer(*SMALL, "--text", every, "--steps", 3, "--tokens", 5)
    same = tmp_path / "same"
    same.write_text("a" * 40)
    done = transformer(*SMALL, "--text", same, "--steps", 3, "--tokens", 5, "--prompt", "a")
    assert done.stdout == "aaaaaa\n"
    assert losses(done.stderr)[1] == 0
