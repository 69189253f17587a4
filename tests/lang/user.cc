// SPDX-License-Identifier: BSD-2-Clause
/*
 * A C++17 program that uses libtickmark as its header says: the same events as user.c makes, with
 * exceptions where that one returns early.
 */
#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <type_traits>

#include <tickmark/tickmark.h>

namespace
{

TMK_SITE(unused, "", "");
TMK_SITE(many, "operation:train:M::f:1", "add", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10",
	 "11", "12", "13", "14", "15", "16");
TMK_SITE(plain, "operation:train:M::f:2", "matmul");

static_assert(!std::is_copy_constructible_v<tickmark::op_scope>);
static_assert(!std::is_copy_assignable_v<tickmark::op_scope>);
static_assert(!std::is_copy_constructible_v<tickmark::window_guard>);
static_assert(!std::is_copy_constructible_v<tickmark::stream_scope>);
static_assert(sizeof(many) >= sizeof(tmk_desc) + 60);

void check(bool condition, const char *what)
{
	if (!condition)
		throw std::logic_error(what);
}

#define CHECK(condition) check(condition, #condition)

void throws(tmk_session *s)
{
	TMK_OP_SCOPE(s, &plain);

	throw std::runtime_error("on purpose");
}

template <typename Session> void in_template(Session *s)
{
	TMK_SITE(inner, "operation:train:M::f:3", "relu", "x");
	TMK_OP_SCOPE(s, &inner);
}

void events_make(tmk_session *s)
{
	const char *inputs[] = { "r1", "r2" };
	bool caught = false;
	uint64_t ns = 0;

	{
		tickmark::op_scope scope(s, &many);

		CHECK(scope.end("out") == 0);
		CHECK(scope.end("out") == 0); /* once is enough */
	}
	CHECK(tmk_op_end(s, tmk_op{ 1, 1 }, "out") == -ENOENT);
	CHECK(tmk_edge_record(s, "tensor:a", "operation:b", 7) == 0);
	tmk_session_set_step(s, 1);
	try {
		throws(s);
	} catch (const std::runtime_error &) {
		caught = true;
	}
	CHECK(caught);
	CHECK(tmk_op_end_timed(s, tmk_op_begin_inputs(s, &plain, inputs, 2), "\xc3\xa9", &ns) == 0);
	in_template(s);
}

struct payload {
	int number;
};

void *body_throws(void *)
{
	throw payload{ 7 };
}

int starts(void *device, uint64_t *handle)
{
	*handle = 5;
	return *static_cast<int *>(device) = 0;
}

void abandons(void *device, uint64_t handle)
{
	*static_cast<int *>(device) = static_cast<int>(handle);
}

/* Through frames of C, and with what was thrown intact; with a session's window and without. */
void unwinds(tmk_session *s)
{
	tmk_backend backend = {};
	tmk_profile profile = {};
	int device = 0, caught = 0;
	void *output = &device;

	backend.size = sizeof(backend);
	backend.start = starts;
	backend.abandon = abandons;
	profile.session = s;
	profile.name = "unwound";
	profile.backend = &backend;
	profile.device = &device;
	try {
		tmk_profile_with_tokens(&profile, body_throws, nullptr, &output, nullptr, nullptr);
	} catch (const payload &thrown) {
		caught = thrown.number;
	}
	CHECK(caught == 7 && device == 5 && !output);
}

void window_throws(tmk_session *s)
{
	tickmark::window_guard guard(s, "guarded");

	CHECK(guard.window().id != 0);
	throw std::runtime_error("on purpose");
}

void windows_make(tmk_session *s)
{
	const tmk_window_options options = { 1 };
	tmk_window w;
	bool caught = false;

	{
		tickmark::stream_scope stream(3);
		CHECK(tmk_window_start(s, "outer", &w) == 0 && w.id && w.opened_on == 3);
	}
	try {
		window_throws(s);
	} catch (const std::runtime_error &) {
		caught = true;
	}
	CHECK(caught);
	CHECK(tmk_window_end(s, w, &options) == 0);
	CHECK(tmk_window_end(s, w, nullptr) == -ENOENT);
	unwinds(s);
	unwinds(nullptr);
}

int run(const char *path)
{
	tmk_config config = tmk_config_train("M::f");
	int (*const enabled_in_library)() = tmk_enabled;
	tmk_session *s = nullptr;

	CHECK(tmk_enabled() == 0 && enabled_in_library() == 0);
	CHECK(tmk_session_open(&s, path, &config) == 0);
	CHECK(tmk_enabled() == 1 && enabled_in_library() == 1);
	events_make(s);
	windows_make(s);
	CHECK(tmk_session_finish(s) == 0);
	CHECK(tmk_enabled() == 0 && enabled_in_library() == 0);
	return 0;
}

} // namespace

int main(int argc, char **argv)
{
	try {
		CHECK(argc == 2);
		run(argv[1]);
	} catch (const std::logic_error &error) {
		std::fprintf(stderr, "user.cc: not so: %s\n", error.what());
		return 1;
	}
	std::puts("ok");
	return 0;
}
