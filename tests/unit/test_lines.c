/* SPDX-License-Identifier: BSD-3-Clause */
/* test_lines.c - sampled stacks, from frames of a synthetic Python to the agent's tables and the
 * report's lines, with sums computed by hand. */
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/pylines.h"
#include "agent/pylines_class.h"
#include "agent/stacks.h"
#include "contract/calls.h"
#include "collector/report/report.h"
#include "collector/report/source.h"
#include "findings_fixture.h"
#include "report_fixture.h"

/* Python 3.12 in memory */

#define LOW UINT64_C(0x10000)
#define STATE (LOW + 0x100)
#define CFRAME (LOW + 0x300)
#define CODE_TYPE UINT64_C(0xc0de)
#define FRAME(i) (LOW + 0x1000 + 0x80 * (uint64_t)(i)) /* the outermost is 0 */
#define CODE(i) (LOW + 0x4000 + 0x200 * (uint64_t)(i))
#define MEMORY 0x8000
#define NS(s) ((uint64_t)((s)*1e9))

struct python {
	uint8_t byte[MEMORY];
	unsigned int walks;		   /* how often the thread's frame was read */
	void (*between)(struct python *p); /* called before the second and later walks */
};

static void put(struct python *p, uint64_t at, uint64_t v)
{
	memcpy(p->byte + (at - LOW), &v, sizeof(v));
}

static void put_frame(struct python *p, unsigned int i, unsigned int code)
{
	put(p, FRAME(i), CODE(code));
	put(p, FRAME(i) + 8, i ? FRAME(i - 1) : 0);
	put(p, FRAME(i) + 56, CODE(code) + 192 + 2 * i);
	put(p, CODE(code) + 8, CODE_TYPE);
	put(p, CODE(code) + 112, 0x1110000 + code); /* file */
	put(p, CODE(code) + 128, 0x2220000 + code); /* name */
}

static void set_top(struct python *p, unsigned int i)
{
	put(p, CFRAME, FRAME(i));
}

static size_t take(void *arg, uint64_t address, void *to, size_t bytes)
{
	struct python *p = arg;
	size_t n = address < LOW || address - LOW > MEMORY ? 0 : MEMORY - (address - LOW);

	if (address == CFRAME && ++p->walks > 1 && p->between)
		p->between(p);
	n = n < bytes ? n : bytes;
	memcpy(to, p->byte + (address - LOW), n);
	return n;
}

static struct py_process process(struct python *p)
{
	memset(p, 0, sizeof(*p));
	put(p, STATE + 56, CFRAME);
	put(p, STATE + 144, 77);
	for (unsigned int i = 0; i < 4; i++)
		put_frame(p, i, i);
	set_top(p, 3);
	return (struct py_process){
		.read = take, .arg = p, .version = 0x030c0100, .code_type = CODE_TYPE};
}

static void test_frames_that_stay(void **state)
{
	struct py_frame frame[PY_FRAMES], again[PY_FRAMES];
	static struct python p;
	struct py_process of = process(&p);
	size_t whole;

	(void)state;
	assert_int_equal(py_stack_sample(&of, STATE, 77, frame, &whole), 4);
	assert_int_equal(whole, 4);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(frame[i].frame, FRAME(3 - i));
		assert_int_equal(frame[i].code, CODE(3 - i));
	}
	/* Another thread has no stack here, and an object of another type is not code. */
	assert_int_equal(py_stack_sample(&of, STATE, 78, again, &whole), 0);
	assert_int_equal(py_stack_sample(&of, STATE, 77, again, &whole), 4);
	assert_int_equal(again[1].key, frame[1].key);
	put(&p, CODE(2) + 128, 0x3330000); /* another function at the same address */
	assert_int_equal(py_stack_sample(&of, STATE, 77, again, &whole), 4);
	assert_int_not_equal(again[1].key, frame[1].key);
	assert_int_equal(again[2].key, frame[2].key);
	put(&p, CODE(2) + 8, CODE_TYPE + 1);
	assert_int_equal(py_stack_sample(&of, STATE, 77, again, &whole), 0);
}

static void calls_another(struct python *p)
{
	put_frame(p, 2, 4 + p->walks);
	put_frame(p, 3, 3);
	set_top(p, p->walks & 1 ? 2 : 3);
}

static void everything_changes(struct python *p)
{
	for (unsigned int i = 0; i < 4; i++)
		put_frame(p, i, 4 + i + p->walks);
}

/* The innermost frames change: the frames below them are the stack. */
static void test_frames_that_change(void **state)
{
	struct py_frame frame[PY_FRAMES];
	static struct python p;
	struct py_process of = process(&p);
	size_t whole;

	(void)state;
	p.between = calls_another;
	assert_int_equal(py_stack_sample(&of, STATE, 77, frame, &whole), 2);
	assert_true(whole > 2);
	assert_int_equal(frame[0].frame, FRAME(1));
	assert_int_equal(frame[1].frame, FRAME(0));
	assert_int_equal(py_stack_walk(&of, STATE, 77, frame), 0);
	of = process(&p);
	p.between = everything_changes;
	assert_int_equal(py_stack_sample(&of, STATE, 77, frame, &whole), 0);
}

/* The innermost frame is a generator, suspended 2 of 3 times: then its frame leads to no other. */
static void resumes_a_generator(struct python *p)
{
	put_frame(p, 5, 5);
	if (p->walks % 3 != 1)
		put(p, FRAME(5) + 8, 0);
}

static void test_generators_that_are_suspended(void **state)
{
	struct py_frame frame[PY_FRAMES];
	static struct python p;
	struct py_process of = process(&p);
	size_t whole;

	(void)state;
	put_frame(&p, 4, 4);
	put_frame(&p, 5, 5);
	set_top(&p, 5);
	p.between = resumes_a_generator;
	assert_int_equal(py_stack_sample(&of, STATE, 77, frame, &whole), 6);
	assert_int_equal(whole, 6);
	assert_int_equal(frame[0].frame, FRAME(5));
	assert_int_equal(frame[5].frame, FRAME(0));
}

/* The lock's fields precede the condition variable that its waiters wait on. */
static void test_the_holder_of_the_lock(void **state)
{
	static struct python p;
	struct py_process of = process(&p);
	const uint64_t gil = LOW + 0x7000, cond = gil + 32, forced = gil + 120;
	struct py_gil told;

	(void)state;
	assert_false(py_gil_read(&of, cond, &told));
	put(&p, gil, 5000);
	put(&p, gil + 8, STATE);
	put(&p, gil + 16, UINT64_C(0xffffffff00000001)); /* the padding may hold anything */
	put(&p, gil + 24, 321);
	assert_true(py_gil_read(&of, cond, &told));
	assert_int_equal(told.holder, STATE);
	assert_int_equal(told.switches, 321);
	assert_true(py_gil_read(&of, forced, &told));
	assert_int_equal(told.holder, STATE);
	put(&p, gil + 16, UINT64_C(0xffffffff00000000)); /* released: this is the last holder */
	assert_false(py_gil_read(&of, cond, &told));
	put(&p, gil + 16, 1);
	put(&p, gil, 0);
	assert_false(py_gil_read(&of, cond, &told));
	assert_false(py_gil_read(&of, 16, &told));
}

/* Two threads of tasks wait while a third one holds the lock; then a thread without a task. */
struct held_case {
	struct crema_shm *shm;
	struct pylines lines;
	struct python python;
	struct pyline_row *row;
};

static struct held_case *held_case(bool of_a_task, bool switches)
{
	static struct view v;
	struct held_case *h = calloc(1, sizeof(*h));
	uint16_t place;

	h->shm = calloc(1, sizeof(*h->shm));
	v = (struct view){.shm = h->shm, .fd = -1};
	h->lines.view = &v;
	h->lines.process = process(&h->python);
	h->lines.table = calloc(1, sizeof(*h->lines.table));
	h->lines.look = 9;
	put(&h->python, LOW + 0x7000, 5000);
	put(&h->python, LOW + 0x7000 + 8, STATE);
	put(&h->python, LOW + 0x7000 + 16, 1);
	h->shm->thread[4].python = STATE;
	place = (uint16_t)pyline_table_place(h->lines.table, 1, "to_list", "/home/an.py", 88, true);
	h->row = pyline_table_row(h->lines.table,
				  &(struct pyline_row){.span = 1, .prefix = 2, .depth = 1}, &place);
	h->lines.thread[4].row = h->row;
	h->lines.thread[4].row_look = of_a_task ? 9 : 8;
	pylines_waits(&h->lines, &(struct pylines_waiter){.object = LOW + 0x7020,
							  .wait = CREMA_T_gil_wait,
							  .span = 5,
							  .ns = NS(1)});
	pylines_waits(&h->lines, &(struct pylines_waiter){.object = LOW + 0x7020,
							  .wait = CREMA_T_gil_wait,
							  .span = 5,
							  .ns = NS(2)});
	pylines_waits(&h->lines, &(struct pylines_waiter){.object = LOW + 0x6000,
							  .wait = CREMA_T_gil_wait,
							  .span = 5,
							  .ns = NS(4)}); /* no such lock */
	if (switches)
		put(&h->python, LOW + 0x7000 + 24, 1);
	pylines_blame(&h->lines);
	return h;
}

static void held_free(struct held_case *h)
{
	free(h->lines.table);
	free(h->shm);
	free(h);
}

static void test_who_holds_the_lock_is_blamed(void **state)
{
	struct held_case *h = held_case(true, false);

	(void)state;
	assert_int_equal(h->row->held_samples, 2);
	assert_int_equal(h->row->held_ns, NS(3));
	assert_true(h->row->changed);
	assert_int_equal(h->lines.table->rows, 1);
	held_free(h);
	h = held_case(true, true);
	assert_int_equal(h->row->held_samples, 0);
	held_free(h);
	/* It was not sampled: its stack is read, and counts as torn, as these frames have no
	 * names. */
	h = held_case(false, false);
	assert_int_equal(h->row->held_samples, 0);
	assert_int_equal(h->lines.table->rows, 2);
	assert_true(h->lines.table->row[1].outside);
	assert_int_equal(h->lines.table->row[1].span, 5);
	held_free(h);
}

/* A mutex at LOW + 0x6000 that thread 77, in block 4, owns while its task was sampled elsewhere. */
static struct held_case *mutex_case(uint32_t state, uint32_t lock, uint32_t owner, uint32_t then)
{
	struct held_case *h = held_case(true, false);
	const uint64_t first = (uint64_t)lock, second = owner;

	h->row->held_samples = 0;
	h->lines.waiters = 0;
	h->shm->thread[4].state = state;
	h->shm->thread[4].tid = 77;
	put(&h->python, LOW + 0x6000, first);
	put(&h->python, LOW + 0x6008, second);
	pylines_waits(&h->lines, &(struct pylines_waiter){.object = LOW + 0x6000,
							  .wait = CREMA_T_lock_wait,
							  .span = 5,
							  .thread = 3});
	put(&h->python, LOW + 0x6008, then);
	pylines_blame(&h->lines);
	return h;
}

/* Each sample of a wait for a mutex counts; the stack of a known owner is read after it was known,
 * as a thread of a task may have been sampled before it took the mutex. */
static void test_the_owner_of_a_mutex(void **state)
{
	static const struct {
		uint32_t state, lock, owner, then;
		uint64_t holder;
	} cases[] = {
		{1, 2, 77, 77, STATE}, {1, 2, 77, 78, STATE}, {1, 0, 77, 77, 0},
		{1, 2, 0, 0, 0},       {1, 2, 78, 78, 0},     {0, 2, 77, 77, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct held_case *h =
			mutex_case(cases[i].state, cases[i].lock, cases[i].owner, cases[i].then);

		assert_int_equal(h->lines.waiter[0].gil.holder, cases[i].holder);
		assert_int_equal(h->row->held_samples, 0);
		assert_int_equal(h->lines.thread[3].held_next, 1);
		assert_int_equal(h->lines.thread[3].held[0].wait, CREMA_T_lock_wait);
		assert_int_equal(h->lines.thread[3].held[0].row, 0); /* these have no names */
		assert_int_equal(h->lines.table->rows, cases[i].holder ? 2 : 1);
		held_free(h);
	}
}

/* Tables */

static void test_a_table_keeps_each_once(void **state)
{
	struct pyline_table *t = calloc(1, sizeof(*t));
	struct pyline_row like = {.span = 1, .prefix = 2, .depth = 2}, *row;
	uint16_t place[2];

	(void)state;
	assert_int_equal(pyline_table_known(t, 11), -1);
	assert_int_equal(pyline_table_place(t, 11, "f", "/a.py", 3, true), 0);
	assert_int_equal(pyline_table_place(t, 12, "f", "/a.py", 4, true), 1);
	assert_int_equal(pyline_table_place(t, 13, "f", "/a.py", 3, true), 0);
	assert_int_equal(pyline_table_known(t, 13), 0);
	assert_int_equal(pyline_table_known(t, 12), 1);
	assert_int_equal(t->place[0].file, t->place[1].file);
	place[0] = 1;
	place[1] = 0;
	row = pyline_table_row(t, &like, place);
	assert_ptr_equal(pyline_table_row(t, &like, place), row);
	like.pool = 1;
	assert_ptr_not_equal(pyline_table_row(t, &like, place), row);
	like.pool = 0;
	like.span = 9;
	assert_ptr_not_equal(pyline_table_row(t, &like, place), row);
	like.span = 1;
	place[0] = 0;
	assert_ptr_not_equal(pyline_table_row(t, &like, place), row);
	assert_int_equal(t->rows, 4);
	assert_false(t->full);
	free(t);
}

static void test_a_full_table_counts(void **state)
{
	struct pyline_table *t = calloc(1, sizeof(*t));
	struct pyline_row like = {.span = 1, .depth = 1}, *row;
	char name[16];
	int at = 0;

	(void)state;
	for (unsigned int i = 0; i < PYLINE_PLACES; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		assert_int_equal(pyline_table_place(t, i + 1, name, "/a.py", 1, false), (int)i);
	}
	assert_int_equal(pyline_table_place(t, 99999, "one more", "/a.py", 1, false), -1);
	assert_true(t->full);
	for (uint16_t i = 0; i < PYLINE_ROWS; i++) {
		row = pyline_table_row(t, &like, &i);
		assert_non_null(row);
		at += row->why == PYLINES_FULL;
		row->samples[0]++;
	}
	assert_int_equal(at, PYLINE_ROWS_SPARE);
	assert_int_equal(t->row[PYLINE_ROWS - PYLINE_ROWS_SPARE].samples[0], PYLINE_ROWS_SPARE);
	for (uint32_t i = 2; i < 2 * PYLINE_ROWS; i++) {
		like.span = i;
		row = pyline_table_row(t, &like, (const uint16_t[]){0});
		assert_true(!row || row->why == PYLINES_FULL);
	}
	assert_null(row);
	pyline_table_clear(t);
	assert_int_equal(pyline_table_known(t, 1), -1);
	assert_int_equal(pyline_table_place(t, 5, "f", "/a.py", 1, false), 0);
	assert_int_equal(pyline_table_row(t, &like, (const uint16_t[]){0})->why, PYLINES_WHOLE);
	free(t);
}

/* Classes */

static void test_waits_have_the_class_of_their_call(void **state)
{
	struct crema_shm *shm = calloc(1, sizeof(*shm));
	struct view v = {.shm = shm, .fd = -1};
	int file = open("/proc/self/exe", O_RDONLY), ends[2], pair[2];
	struct pollfd first = {.events = POLLIN};
	struct crema_task task = {0};

	(void)state;
	shm->python_runtime = 0x7000;
	shm->python_runtime_bytes = 0x100;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
#define IS(call, object, id)                                                                       \
	assert_int_equal(pylines_class(&v, getpid(), &task,                                        \
				       crema_call_word(CREMA_CALL_##call, (uint64_t)(object))),    \
			 id)
	IS(read, file, CREMA_T_storage_wait);
	IS(read, ends[0], CREMA_T_lock_wait);
	IS(read, pair[0], CREMA_T_network_wait);
	IS(read, 99999, PYLINE_OTHER);
	IS(recv, pair[0], CREMA_T_network_wait);
	IS(connect, pair[0], CREMA_T_network_wait);
	IS(fsync, file, CREMA_T_storage_wait);
	IS(open, 0x1234, CREMA_T_storage_wait);
	IS(pthread_cond_timedwait, 0x70ff, CREMA_T_gil_wait);
	IS(pthread_cond_timedwait, 0x7100, CREMA_T_lock_wait);
	IS(pthread_cond_timedwait, 0x6fff, CREMA_T_lock_wait);
	IS(sem_wait, 0x1000, CREMA_T_lock_wait);
	IS(pthread_mutex_lock, 0x1000, CREMA_T_lock_wait);
	IS(syscall, 0x1000, CREMA_T_lock_wait); /* of a futex */
	IS(waitpid, 1, CREMA_T_lock_wait);
	task.overlap_active[CREMA_OVERLAP_REQUEST] = UINT64_C(1) << CREMA_OVERLAP_SINCE_BITS;
	IS(syscall, 0x1000, CREMA_T_network_wait);
	IS(pthread_cond_timedwait, 0x7100, CREMA_T_network_wait);
	IS(pthread_cond_timedwait, 0x70ff, CREMA_T_gil_wait);
	IS(clock_nanosleep, 0, CREMA_T_sleep);
	task.overlap_active[CREMA_OVERLAP_REQUEST] = 12345; /* since when the last one was */
	IS(syscall, 0x1000, CREMA_T_lock_wait);
	IS(clock_nanosleep, 0, CREMA_T_sleep);
	IS(select, 0, CREMA_T_sleep);
	IS(select, 5, CREMA_T_network_wait);
	IS(epoll_wait, 5, CREMA_T_network_wait);
	first.fd = pair[0];
	IS(poll, (uintptr_t)&first, CREMA_T_network_wait);
	first.fd = ends[0];
	IS(poll, (uintptr_t)&first, CREMA_T_lock_wait);
	assert_int_equal(pylines_class(&v, getpid(), &task, 0), PYLINE_OTHER);
	for (int i = 0; i < 2; i++) {
		close(ends[i]);
		close(pair[i]);
	}
	close(file);
	free(shm);
}

/* From the agent's table to the report */

struct agent_side {
	struct crema_shm *shm;
	struct view view;
	struct outbox out;
	struct pylines lines;
	uint64_t now;
};

/* Of the fixture's first worker. */
static void agent_side_init(struct agent_side *a, const struct fixture *fx)
{
	memset(a, 0, sizeof(*a));
	a->shm = calloc(1, sizeof(*a->shm));
	a->shm->strings_used = 8;
	a->view = (struct view){.shm = a->shm, .fd = -1};
	a->now = 100 * PYLINES_SEND_NS;
	outbox_init(&a->out, fx->m.workers.v[0]->id, 5, NULL, false);
	pylines_init(&a->lines, &a->view, &a->out, 0);
	a->lines.table = calloc(1, sizeof(*a->lines.table));
	a->lines.state = "on";
}

static void agent_side_release(struct agent_side *a)
{
	pylines_release(&a->lines);
	outbox_release(&a->out);
	free(a->shm);
}

static uint32_t text(struct agent_side *a, const char *s)
{
	uint32_t n = (uint32_t)strlen(s), at = a->shm->strings_used;

	memcpy(a->shm->strings + at, &n, 4);
	memcpy(a->shm->strings + at + 4, s, n + 1);
	a->shm->strings_used += (4 + n + 1 + 3) & ~3u;
	return at;
}

/* A row whose stack has the user's `line`, with a library's frame inside. */
static struct pyline_row *row_of(struct agent_side *a, uint32_t span, uint32_t prefix,
				 uint32_t line)
{
	struct pyline_row like = {.span = span, .prefix = prefix, .depth = 2}, *row;
	uint16_t place[2];

	place[0] = (uint16_t)pyline_table_place(a->lines.table, 1000, "load", "/lib.py", 7, false);
	place[1] = (uint16_t)pyline_table_place(a->lines.table, line, "process", "/home/an.py",
						line, true);
	row = pyline_table_row(a->lines.table, &like, place);
	row->changed = true;
	a->lines.unsent = true;
	return row;
}

static unsigned int send_and_feed(struct agent_side *a, struct fixture *fx, int times)
{
	struct buf scratch = BUF_INIT;
	const unsigned char *raw;
	unsigned int records = 0;
	struct frame frame;

	a->now += PYLINES_SEND_NS;
	pylines_send(&a->lines, false, a->now, BOOT + a->now);
	outbox_flush(&a->out);
	for (struct outbox_frame *o = a->out.head; o; o = o->next) {
		assert_true(frame_decode(&frame, o->data, o->bytes) > 0);
		assert_int_equal(frame_payload(&frame, &scratch, &raw), 0);
		records += frame.head.count;
		for (int i = 0; i < times; i++)
			assert_int_equal(model_feed(&fx->m, &frame.head, raw, frame.head.raw_bytes),
					 0);
	}
	outbox_acked(&a->out, a->out.next_seq);
	buf_release(&scratch);
	return records;
}

static void test_rows_become_lines(void **state)
{
	struct fixture *fx = fx_new();
	struct agent_side a;
	struct pyline_row *row;
	const struct lines *l;
	struct report r;
	uint32_t span, prefix;
	double share;
	char name[192];

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_simple(fx, 1, 1, "k", "s", 0, 0, 10000, "ok");
	agent_side_init(&a, fx);
	span = text(&a, "s");
	prefix = text(&a, "task");
	row = row_of(&a, span, prefix, 42);
	row->samples[CREMA_T_cpu] = 30;
	row->ns[CREMA_T_cpu] = NS(3);
	row->clock_cpu_ns = NS(2);
	row->clock_runqueue_ns = NS(1);
	row->samples[CREMA_T_network_wait] = 20;
	row->ns[CREMA_T_network_wait] = NS(2);
	assert_int_equal(send_and_feed(&a, fx, 2), 1);
	/* Without changes nothing is sent. Then the first row grows, and rows with another line and
	 * with none appear. */
	assert_int_equal(send_and_feed(&a, fx, 1), 0);
	row->samples[CREMA_T_cpu] = 60;
	row->ns[CREMA_T_cpu] = NS(6);
	row = row_of(&a, span, prefix, 42);
	row->cut = 5;
	row = row_of(&a, span, prefix, 43);
	row->samples[PYLINE_OTHER] = 10;
	row->ns[PYLINE_OTHER] = NS(1);
	row = pyline_table_row(
		a.lines.table,
		&(struct pyline_row){.span = span, .prefix = prefix, .why = PYLINES_TORN}, NULL);
	row->samples[CREMA_T_cpu] = 10;
	row->ns[CREMA_T_cpu] = NS(1);
	row->changed = true;
	row = row_of(&a, text(&a, "another run"), prefix, 42);
	row->samples[CREMA_T_cpu] = 10;
	row->ns[CREMA_T_cpu] = NS(100);
	assert_int_equal(send_and_feed(&a, fx, 2), 2);
	fx_runs(fx);
	assert_int_equal(report_gather(&r, &fx->runs.v[0], fx_facts(fx, 0)), 0);
	l = &r.lines;
	assert_int_equal(fx->m.records_bad, 0);
	assert_int_equal(l->all.samples, 100);
	assert_float_equal(l->all.seconds, 10, 1e-9);
	assert_float_equal(l->all.class_s[CREMA_T_cpu], 7 * 2 / 3.0, 1e-9);
	assert_float_equal(l->all.class_s[CREMA_T_runqueue], 7 / 3.0, 1e-9);
	assert_float_equal(l->all.class_s[CREMA_T_network_wait], 2, 1e-9);
	assert_float_equal(l->all.class_s[LINE_TOLD_OTHER], 1, 1e-9);
	assert_int_equal(l->cut, 5);
	assert_int_equal(l->torn, 10);
	assert_int_equal(l->rows.n, 3);
	assert_string_equal(lines_name(l->rows.v[0]->place, name), "an.py:42 process");
	assert_int_equal(l->rows.v[0]->sum.samples, 80);
	assert_float_equal(lines_share(l, &l->rows.v[0]->sum), 0.8, 1e-9);
	assert_float_equal(lines_error(0.8, 100), 0.0784, 1e-9);
	assert_string_equal(lines_name(l->rows.v[1]->place, name), "an.py:43 process");
	assert_null(l->rows.v[2]->place);
	assert_ptr_equal(lines_hottest(l, CREMA_T_network_wait, 20, &share), l->rows.v[0]);
	assert_float_equal(share, 1, 1e-9);
	assert_null(lines_hottest(l, CREMA_T_network_wait, 21, &share));
	assert_null(lines_hottest(l, CREMA_T_sleep, 0, &share));
	assert_ptr_equal(lines_hottest(l, CREMA_T_cpu, 60, &share), l->rows.v[0]);
	assert_float_equal(share, 6 / 7.0, 1e-9);
	assert_int_equal(l->states, 1);
	assert_string_equal(l->state[0].state, "on");
	report_release(&r);
	agent_side_release(&a);
	fx_free(fx);
}

/* Workers by what their agents told of the lines; what has no room in the table is unknown. */
static void test_workers_by_state(void **state)
{
	static const char *const told[] = {"on", "a", "b", "a", "c", "d", "e", "f", NULL, "on"};
	enum { WORKERS = sizeof(told) / sizeof(told[0]) };
	struct fixture *fx = fx_new();
	struct report r;
	const struct lines *l = &r.lines;

	(void)state;
	for (int i = 0; i < WORKERS; i++) {
		fx_hello(fx, 1 + i, NULL);
		fx_simple(fx, 1 + i, 1, "k", "s", 0, 0, 10000, "ok");
		fx->m.workers.v[i]->lines.known = told[i] != NULL;
		fx->m.workers.v[i]->lines.state = told[i];
	}
	fx_runs(fx);
	assert_int_equal(report_gather(&r, &fx->runs.v[0], fx_facts(fx, 0)), 0);
	assert_int_equal(l->states, LINES_STATES);
	assert_string_equal(l->state[0].state, "on");
	assert_int_equal(l->state[0].workers, 2);
	assert_string_equal(l->state[1].state, "a");
	assert_int_equal(l->state[1].workers, 2);
	assert_string_equal(l->state[5].state, "e");
	assert_int_equal(l->state[5].workers, 1);
	assert_int_equal(l->unknown, 2);
	report_release(&r);
	fx_free(fx);
}

/* A function that calls itself: its line has the time of its stacks once, and so do its callers'
 * lines. */
static void test_recursion_counts_once(void **state)
{
	struct fixture *fx = fx_new();
	struct agent_side a;
	struct pyline_row *row, like = {.depth = 4};
	struct source source;
	struct report r;
	uint16_t place[4];

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_simple(fx, 1, 1, "k", "s", 0, 0, 10000, "ok");
	agent_side_init(&a, fx);
	like.span = text(&a, "s");
	like.prefix = text(&a, "task");
	row = row_of(&a, like.span, like.prefix, 50);
	row->samples[CREMA_T_sleep] = 10;
	row->ns[CREMA_T_sleep] = NS(1);
	for (int i = 0; i < 3; i++)
		place[i] = (uint16_t)pyline_table_place(a.lines.table, 42, "walk", "/home/an.py",
							42, true);
	place[3] =
		(uint16_t)pyline_table_place(a.lines.table, 50, "process", "/home/an.py", 50, true);
	row = pyline_table_row(a.lines.table, &like, place);
	row->samples[CREMA_T_sleep] = 30;
	row->ns[CREMA_T_sleep] = NS(3);
	row->changed = true;
	send_and_feed(&a, fx, 1);
	fx_runs(fx);
	assert_int_equal(report_gather(&r, &fx->runs.v[0], fx_facts(fx, 0)), 0);
	assert_int_equal(source_gather(&source, &r.lines, &r.read_lines, r.run), 0);
	assert_int_equal(source.files.n, 1);
	assert_float_equal(source.files.v[0].seconds, 4, 1e-9);
	assert_non_null(source.files.v[0].why);
	assert_int_equal(source.files.v[0].n, 2);
	assert_int_equal(source.files.v[0].v[0].line, 42);
	assert_float_equal(source.files.v[0].v[0].sum.seconds, 3, 1e-9);
	assert_int_equal(source.files.v[0].v[0].sum.samples, 30);
	assert_float_equal(source.files.v[0].v[1].sum.seconds, 4, 1e-9);
	source_release(&source);
	report_release(&r);
	agent_side_release(&a);
	fx_free(fx);
}

/* Waits are attributed to lines: of tasks, of pool threads, and of threads without a task. */
static void test_holders_become_lines(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record task = work(1, "a", 0, 10000);
	struct agent_side a;
	struct pyline_row *row, like = {.outside = true, .depth = 1};
	const struct lines *l;
	struct report r;
	struct found found;
	uint32_t span, prefix;
	uint16_t place;
	double share;

	(void)state;
	fx_hello(fx, 1, NULL);
	SET_OWN(&task, gil_wait, 5000);
	fx_task(fx, 1, &task);
	agent_side_init(&a, fx);
	span = text(&a, "span");
	prefix = text(&a, "a");
	row = row_of(&a, span, prefix, 42);
	row->samples[CREMA_T_gil_wait] = 100;
	row->ns[CREMA_T_gil_wait] = NS(5);
	row = row_of(&a, span, prefix, 88);
	row->samples[CREMA_T_cpu] = 100;
	row->ns[CREMA_T_cpu] = NS(5);
	row->held_samples = 60;
	row->held_ns = NS(3);
	row->pool = 1; /* as for a pool thread: its time is not the task's, but its line held the
			  lock */
	place = (uint16_t)pyline_table_place(a.lines.table, 7, "tick", "/x/distributed/core.py", 5,
					     false);
	like.span = span;
	row = pyline_table_row(a.lines.table, &like, &place);
	row->held_samples = 20;
	row->held_ns = NS(1);
	row->changed = true;
	send_and_feed(&a, fx, 2);
	fx_runs(fx);
	assert_int_equal(report_gather(&r, &fx->runs.v[0], fx_facts(fx, 0)), 0);
	l = &r.lines;
	assert_float_equal(l->held_s, 4, 1e-9);
	assert_float_equal(lines_unheld(l), 1, 1e-9);
	assert_float_equal(l->all.seconds, 5, 1e-9);
	assert_int_equal(lines_holder(l, 60, &share)->place->line, 88);
	assert_float_equal(lines_holder(l, 60, &share)->sum.seconds, 0, 1e-9);
	assert_float_equal(share, 0.75, 1e-9);
	assert_null(lines_holder(l, 61, &share));
	for (size_t i = 0; i < l->stacks.n; i++)
		assert_string_equal(line_thread_name(l->stacks.v[i]),
				    l->stacks.v[i]->sum.held_samples == 60   ? "pool"
				    : l->stacks.v[i]->sum.held_samples == 20 ? "outside"
									     : "own");
	report_release(&r);
	runs_release(&fx->runs);
	collect(fx, &found);
	assert_string_equal(finding_of(&found, "gil_wait")->sentence,
			    "tasks waited 50 % of their time (5.000 s) for the interpreter lock; "
			    "'an.py:88 process' held it for 75 % +- 9.5 % of that (60 samples)");
	found_free(&found);
	agent_side_release(&a);
	fx_free(fx);
}

/* Bytes: of all threads by line, without time for pool threads; most frames come first, whether
 * they have time or bytes. */
static void test_bytes_become_lines(void **state)
{
	enum { READ = CREMA_LINES_B_read, RECEIVED = CREMA_LINES_B_received };
	struct fixture *fx = fx_new();
	struct task_record task = work(1, "a", 0, 10000);
	const struct line_row *line = NULL;
	struct agent_side a;
	struct pyline_row *row;
	struct report r;
	uint32_t span, prefix;

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_task(fx, 1, &task);
	agent_side_init(&a, fx);
	span = text(&a, "span");
	prefix = text(&a, "a");
	row = row_of(&a, span, prefix, 42);
	row->samples[CREMA_T_cpu] = 90;
	row->ns[CREMA_T_cpu] = NS(9);
	row = row_of(&a, span, prefix, 50);
	row->samples[CREMA_T_cpu] = 10;
	row->ns[CREMA_T_cpu] = NS(1);
	row->byte_samples[READ] = 2;
	row->bytes[READ] = 100;
	row->byte_variance[READ] = 25;
	row = row_of(&a, span, prefix, 88);
	row->pool = 1;
	row->samples[CREMA_T_cpu] = 5;
	row->ns[CREMA_T_cpu] = NS(5);
	row->byte_samples[READ] = 9;
	row->bytes[READ] = 900;
	row->byte_variance[READ] = 100;
	row->byte_samples[RECEIVED] = 1;
	row->bytes[RECEIVED] = 7;
	send_and_feed(&a, fx, 2);
	row->byte_samples[READ] = 10; /* later messages have more */
	row->bytes[READ] = 950;
	row->changed = true;
	a.lines.unsent = true;
	send_and_feed(&a, fx, 2);
	fx_runs(fx);
	assert_int_equal(report_gather(&r, &fx->runs.v[0], fx_facts(fx, 0)), 0);
	assert_int_equal(r.lines.all.bytes[READ], 100);
	assert_int_equal(r.lines.pool.bytes[READ], 950);
	assert_int_equal(r.lines.pool.bytes[RECEIVED], 7);
	for (size_t i = 0; i < r.lines.rows.n; i++)
		if (r.lines.rows.v[i]->place->line == 88)
			line = r.lines.rows.v[i];
	assert_non_null(line);
	assert_int_equal(line->sum.bytes[READ], 950);
	assert_int_equal(line->sum.byte_samples[READ], 10);
	/* The exact upper limit of a Poisson number, 97.5 %, of which 10 were seen: 18.39. */
	assert_float_equal(line_bytes_error(&line->sum, CREMA_LINES_B_read), 8.39 * sqrt(10), 0.15);
	assert_float_equal(line->sum.seconds, 0, 1e-9);
	/* 9 of 10 s; 950 of 1050 bytes; 1 of 10 s */
	assert_int_equal(r.lines.stacks.v[0]->sum.bytes[READ], 950);
	assert_float_equal(r.lines.stacks.v[1]->sum.seconds, 9, 1e-9);
	assert_float_equal(r.lines.stacks.v[2]->sum.seconds, 1, 1e-9);
	report_release(&r);
	agent_side_release(&a);
	fx_free(fx);
}

/* The shim's rows: sums are taken once, a row that is idle is freed, and code that is another one
 * by now has no name. */
static void test_the_shims_bytes_are_taken(void **state)
{
	struct held_case *h = held_case(true, false);
	struct crema_byte_stack *s = &h->shm->byte_stack[3];
	struct pyline_row *row;

	(void)state;
	pylines_bytes(&h->lines);
	assert_int_equal(h->shm->byte_samples, 1);
	*s = (struct crema_byte_stack){.state = 2, .span = 5, .prefix = 6, .pool = 1, .depth = 1};
	s->frame[0] = (struct crema_py_frame){CODE(3), 8, 99};
	s->samples[CREMA_LINES_B_read] = 3;
	s->bytes[CREMA_LINES_B_read] = 3000;
	s->variance[CREMA_LINES_B_read] = 4;
	h->shm->byte_stack_hash[3] = 1;
	pylines_bytes(&h->lines);
	row = &h->lines.table->row[h->lines.table->rows - 1];
	assert_int_equal(row->byte_samples[CREMA_LINES_B_read], 3);
	assert_int_equal(row->bytes[CREMA_LINES_B_read], 3000);
	assert_float_equal(row->byte_variance[CREMA_LINES_B_read], 4.0 * 1024 * 1024, 1e-9);
	assert_int_equal(row->why, PYLINES_TORN);
	assert_int_equal(row->span, 5);
	assert_true(row->pool && row->changed && h->lines.unsent);
	assert_int_equal(s->bytes[CREMA_LINES_B_read], 0);
	s->users = 1;
	for (int i = 0; i < 300; i++)
		pylines_bytes(&h->lines);
	assert_int_equal(s->state, 3); /* a thread adds to it */
	s->users = 0;
	s->samples[CREMA_LINES_B_read] = 1;
	s->bytes[CREMA_LINES_B_read] = 10;
	for (int i = 0; i < 300; i++)
		pylines_bytes(&h->lines);
	assert_int_equal(s->state, 0);
	assert_int_equal(h->shm->byte_stack_hash[3], 0);
	assert_int_equal(row->bytes[CREMA_LINES_B_read], 3010);
	held_free(h);
}

/* A row of the shim with one long wait of each second of `seconds`, in code that is known. */
static struct crema_byte_stack *shims_wait(struct agent_side *a, uint32_t at, uint32_t span,
					   uint32_t line, uint64_t seconds)
{
	struct crema_byte_stack *s = &a->shm->byte_stack[at];
	struct py_frame frame;

	*s = (struct crema_byte_stack){.state = 2,
				       .span = span,
				       .prefix = text(a, "a"),
				       .depth = 1,
				       .wait = CREMA_T_lock_wait + 1,
				       .waits = seconds,
				       .waited_ns = NS(seconds)};
	s->frame[0] = (struct crema_py_frame){4096 * line, 8, 99};
	frame = py_stack_frame(&a->lines.process, &s->frame[0]);
	pyline_table_place(a->lines.table, frame.key, "fill", "/u/mine.py", line, true);
	a->shm->byte_stack_hash[at] = 700 + at;
	return s;
}

static void record_of(struct agent_side *a, uint32_t at, uint32_t span, uint64_t python)
{
	a->shm->stack[at] = (struct crema_stack){.state = 2,
						 .wait = CREMA_T_lock_wait,
						 .number = at,
						 .waited_ns = NS(1),
						 .prefix = text(a, "a"),
						 .span = span,
						 .python = python};
}

/* Long waits of the shim's rows: exact sums by line and stack, of all threads; what found no room
 * has no line. A record's row is sent before it, once. */
static void test_long_waits_have_lines(void **state)
{
	enum { LOCK = CREMA_T_lock_wait };
	struct fixture *fx = fx_new();
	struct task_record task = work(1, "a", 0, 10000);
	struct stacks stacks;
	struct agent_side a;
	struct report r;
	uint32_t span;

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_task(fx, 1, &task);
	agent_side_init(&a, fx);
	stacks_init(&stacks, &a.view, &a.out, &a.lines, 0);
	span = text(&a, "span");
	shims_wait(&a, 3, span, 42, 2);
	shims_wait(&a, 4, span, 50, 3)->pool = 1;
	a.shm->byte_stack[4].cut = 1;
	shims_wait(&a, 5, span, 60, 1)->full = 1;
	a.shm->byte_stack[5].depth = 0;
	record_of(&a, 0, span, 703);
	record_of(&a, 1, span, 703);
	record_of(&a, 2, span, 704);
	record_of(&a, 3, span, 799); /* of a row that is gone */
	record_of(&a, 4, span, 0);
	stacks_poll(&stacks, a.now);
	pylines_bytes(&a.lines);
	pylines_bytes(&a.lines);
	assert_int_equal(send_and_feed(&a, fx, 2), 5 + 2 + 1);
	shims_wait(&a, 3, span, 42, 4);
	pylines_bytes(&a.lines);
	send_and_feed(&a, fx, 2);
	fx_runs(fx);
	assert_int_equal(report_gather(&r, &fx->runs.v[0], fx_facts(fx, 0)), 0);
	assert_int_equal(r.lines.all.waits[LOCK], 2 + 4 + 1);
	assert_int_equal(r.lines.all.waited_ns[LOCK], NS(7));
	assert_int_equal(r.lines.all.waits[CREMA_T_sleep], 0);
	assert_int_equal(r.lines.pool.waited_ns[LOCK], NS(3));
	assert_int_equal(r.lines.stackless.waits, 1);
	assert_int_equal(r.lines.stackless.ns, NS(1));
	assert_int_equal(r.lines.rows.n, 3);
	for (size_t i = 0; i < 3; i++) {
		const struct line_row *row = r.lines.rows.v[i];
		uint64_t line = row->place ? row->place->line : 0;

		assert_int_equal(row->sum.waited_ns[LOCK], NS(line == 42 ? 6 : line ? 3 : 1));
		assert_float_equal(row->sum.seconds, 0, 1e-9);
	}
	assert_int_equal(r.blocking->rows.n, 3);
	assert_int_equal(r.blocking->rows.v[0]->waits.calls, 2);
	for (size_t i = 0; i < 3; i++) {
		const struct blocking_row *row = r.blocking->rows.v[i];

		assert_int_equal(row->python, row->line != NULL);
		assert_true(!row->line || row->line->line == (row->waits.calls == 2 ? 42 : 50));
		assert_int_equal(row->site->python_cut, row->line && row->line->line == 50);
	}
	report_release(&r);
	stacks_release(&stacks);
	agent_side_release(&a);
	fx_free(fx);
}

/* Samples of thread 55: which row held the lock; NULL: unknown. */
static void hold(struct agent_side *a, uint64_t boot_ns, const struct pyline_row *row)
{
	struct pylines_thread *t = &a->lines.thread[7];

	t->tid = 55;
	t->held[t->held_next++ % PYLINES_HELD] =
		(struct pylines_held){.boot_ns = boot_ns,
				      .wait = CREMA_T_gil_wait,
				      .table = (uint32_t)a->lines.table_id,
				      .row = row ? (uint32_t)(row - a->lines.table->row) + 1 : 0};
}

static struct pyline_row *held_by(struct agent_side *a, uint32_t tid, uint64_t from, uint64_t to,
				  uint32_t *samples, uint32_t *of)
{
	struct pylines_wait wait = {tid, CREMA_T_gil_wait, from, to};

	return pylines_held_by(&a->lines, &wait, samples, of);
}

static void hold_in_turn(struct agent_side *a, struct pyline_row *const row[2])
{
	static const int at[] = {0, 0, 0, 1, -1, 1, 0};

	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
		hold(a, NS(i + 1), at[i] < 0 ? NULL : row[at[i]]);
}

/* Of the samples during a wait, the row with most; of a call site, that of its longest wait. */
static void test_the_holder_during_a_wait(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record task = work(1, "a", 0, 10000);
	struct pyline_row *row[2];
	struct stacks stacks;
	struct agent_side a;
	struct report r;
	uint32_t span, samples, of;

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_task(fx, 1, &task);
	agent_side_init(&a, fx);
	stacks_init(&stacks, &a.view, &a.out, &a.lines, 0);
	span = text(&a, "span");
	for (uint32_t i = 0; i < 2; i++)
		row[i] = row_of(&a, span, text(&a, "a"), 42 + i);
	hold_in_turn(&a, row);
	assert_ptr_equal(held_by(&a, 55, NS(3), NS(7) - 1, &samples, &of), row[1]);
	assert_int_equal(samples, 2);
	assert_int_equal(of, 4);
	assert_ptr_equal(held_by(&a, 55, NS(1), NS(7), &samples, &of), row[0]);
	assert_int_equal(samples, 4);
	assert_int_equal(of, 7);
	assert_null(held_by(&a, 55, NS(5), NS(5), &samples, &of));
	assert_null(held_by(&a, 55, NS(8), NS(9), &samples, &of));
	assert_null(held_by(&a, 56, NS(1), NS(7), &samples, &of));
	assert_null(held_by(&a, 0, NS(1), NS(7), &samples, &of));
	assert_null(pylines_held_by(&a.lines,
				    &(struct pylines_wait){55, CREMA_T_lock_wait, NS(1), NS(7)},
				    &samples, &of));
	assert_int_equal(of, 0);
	for (uint32_t i = 0; i < 4; i++) {
		static const uint64_t ends[] = {3, 7, 2, 7}, waited[] = {2, 3, 1, 6};

		record_of(&a, i, span, 0);
		a.shm->stack[i].tid = 55;
		a.shm->stack[i].wait = i < 3 ? CREMA_T_gil_wait : CREMA_T_lock_wait;
		a.shm->stack[i].end_boot_ns = NS(ends[i]) - 1;
		a.shm->stack[i].waited_ns = NS(waited[i]);
	}
	stacks_poll(&stacks, a.now);
	send_and_feed(&a, fx, 2);
	fx_runs(fx);
	assert_int_equal(report_gather(&r, &fx->runs.v[0], fx_facts(fx, 0)), 0);
	assert_int_equal(r.blocking->rows.n, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct site_holder *h = &r.blocking->rows.v[i]->longest->holder;

		assert_int_equal(h->python == NULL,
				 r.blocking->rows.v[i]->wait == CREMA_T_lock_wait);
		assert_true(!h->python || lines_user_place(h->python, 0)->line == 43);
		assert_int_equal(h->samples, h->python ? 2 : 0);
		assert_int_equal(h->of, h->python ? 3 : 0);
	}
	a.lines.table_id++;
	assert_null(held_by(&a, 55, NS(1), NS(7), &samples, &of));
	report_release(&r);
	stacks_release(&stacks);
	agent_side_release(&a);
	fx_free(fx);
}

/* A row of the shim's: bytes that are live, and its share of that maximum. */
static void set_large(struct agent_side *a, uint32_t i, uint64_t allocated, int64_t live,
		      uint64_t share, uint64_t epoch)
{
	struct crema_large_row *r = &a->shm->large[i];

	r->number = i + 1;
	r->changes++;
	r->span = a->shm->large_span[0].span;
	r->pool = i; /* so that each has a row, without a stack */
	r->allocations++;
	r->allocated_bytes = allocated;
	r->live_bytes = live;
	r->kept_bytes = live / 2;
	r->share_bytes = share;
	r->share_epoch = epoch;
	a->shm->large_span[0].epoch = epoch;
	a->shm->large_seq += 2;
}

static void check_large(struct fixture *fx, const uint64_t want[CREMA_LINES_LARGE])
{
	struct line_sum all;
	struct report r;

	fx_runs(fx);
	assert_int_equal(report_gather(&r, &fx->runs.v[0], fx_facts(fx, 0)), 0);
	all = r.lines.all;
	line_sum_add(&all, &r.lines.pool);
	for (unsigned int i = 0; i < CREMA_LINES_LARGE; i++)
		assert_int_equal(line_large(&all, i).v.u, want[i]);
	report_release(&r);
	runs_release(&fx->runs);
}

/* Large allocations: what shrinks adds up over tables and agents; of a maximum only the newest one
 * counts, also if nothing follows of a row that was part of an older one. */
static void test_large_blocks_over_tables(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record task = work(1, "a", 0, 10000);
	struct agent_side a;

	(void)state;
	fx_hello(fx, 1, NULL);
	fx_task(fx, 1, &task);
	agent_side_init(&a, fx);
	a.shm->large_bytes = 1000;
	a.shm->large_span[0].span = text(&a, "span");
	set_large(&a, 0, 100, 60, 80, 1);
	set_large(&a, 1, 500, 500, 400, 1);
	pylines_large(&a.lines);
	send_and_feed(&a, fx, 2);
	check_large(fx, (uint64_t[]){2, 600, 560, 280, 480});
	a.lines.table->full = true; /* a new table begins */
	a.lines.unsent = true;
	send_and_feed(&a, fx, 2);
	set_large(&a, 0, 130, 20, 80, 1);
	pylines_large(&a.lines);
	send_and_feed(&a, fx, 2);
	check_large(fx, (uint64_t[]){3, 630, 520, 260, 480});
	a.shm->large[1].number = 0; /* given up: nothing more of it */
	set_large(&a, 0, 730, 620, 620, 2);
	pylines_large(&a.lines);
	send_and_feed(&a, fx, 2);
	check_large(fx, (uint64_t[]){4, 1230, 1120, 560, 620});
	agent_side_release(&a);
	fx_free(fx);
}

/* A full table is sent and cleared; its rows and those of the next table are different ones. */
static void test_a_full_table_begins_anew(void **state)
{
	struct fixture *fx = fx_new();
	struct agent_side a;
	struct pyline_row *row;
	uint64_t samples = 0;

	(void)state;
	fx_hello(fx, 1, NULL);
	agent_side_init(&a, fx);
	for (int i = 0; i < 2; i++) {
		row = row_of(&a, text(&a, "s"), text(&a, "task"), 42);
		row->samples[CREMA_T_cpu] = 30;
		a.lines.table->full = !i;
		send_and_feed(&a, fx, 2);
		assert_int_equal(a.lines.table->rows, i);
	}
	assert_int_equal(fx->m.lines.rows.n, 2);
	assert_ptr_equal(fx->m.lines.rows.v[0]->list, fx->m.lines.rows.v[1]->list);
	for (size_t i = 0; i < 2; i++)
		samples += fx->m.lines.rows.v[i]->n.samples[CREMA_T_cpu];
	assert_int_equal(samples, 60);
	agent_side_release(&a);
	fx_free(fx);
}

/* A finding names the line once enough samples support it. */
static void test_a_finding_names_the_line(void **state)
{
	static const uint32_t samples[] = {29, 30};
	struct fixture *fx;
	struct agent_side a;
	struct pyline_row *row;
	struct task_record r;
	struct found found;
	const char *said;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		fx = fx_new();
		fx_hello(fx, 1, NULL);
		r = work(1, "a", 0, 10000);
		SET_OWN(&r, sleep, 5000);
		fx_task(fx, 1, &r);
		agent_side_init(&a, fx);
		row = row_of(&a, text(&a, "span"), text(&a, "a"), 42);
		row->samples[CREMA_T_sleep] = samples[i];
		row->ns[CREMA_T_sleep] = NS(3);
		row->samples[CREMA_T_cpu] = 100; /* of another class: does not count in this one */
		row = row_of(&a, text(&a, "span"), text(&a, "a"), 43);
		row->samples[CREMA_T_sleep] = 60 - samples[i];
		row->ns[CREMA_T_sleep] = NS(1);
		send_and_feed(&a, fx, 1);
		collect(fx, &found);
		said = finding_of(&found, "sleeping")->sentence;
		if (i)
			assert_string_equal(said,
					    "tasks slept 50 % of their time (5.000 s); 75 % "
					    "+- 11 % of it at 'an.py:42 process' (30 samples)");
		else
			assert_string_equal(said, "tasks slept 50 % of their time (5.000 s)");
		found_free(&found);
		agent_side_release(&a);
		fx_free(fx);
	}
}

static const struct fx_place to_list[] = {
	{"ListOffsetArray._to_list", "/x/awkward/contents/listoffsetarray.py", 2122, false},
	{"Content.to_list", "/x/awkward/contents/content.py", 1203, false},
	{"P.objects", "/home/an.py", 14, true},
	{"P.process", "/home/an.py", 40, true}};
static const struct fx_place vectorized[] = {
	{"P.process.<locals>.<lambda>", "/home/an.py", 31, true},
	{"vectorize._vectorize_call", "/x/numpy/lib/_function_base_impl.py", 2510, false},
	{"P.process", "/home/an.py", 41, true}};
/* The same functions, but no line of the user's called them, or they are the user's own. */
static const struct fx_place own_to_list[] = {
	{"Content.to_list", "/home/awkward/contents/content.py", 3, true}};
static const struct fx_place nobodys[] = {
	{"Content.to_list", "/x/awkward/contents/content.py", 1203, false},
	{"run", "/x/dask.py", 1, false}};
static const struct fx_place loop[] = {{"P.process", "/home/an.py", 51, true}};
static const struct fx_place loop_next[] = {{"P.process", "/home/an.py", 52, true}};
static const struct fx_place under_loop[] = {{"f", "/x/lib.py", 1, false},
					     {"P.process", "/home/an.py", 53, true}};

static const struct fx_place importing[] = {
	{"_find_and_load", "<frozen importlib._bootstrap>", 1176, false},
	{"P.process", "/home/an.py", 60, true}};
static const struct fx_place reads_json[] = {
	{"scan_once", "/x/lib/python3/json/scanner.py", 1, false},
	{"load", "/x/lib/python3/json/__init__.py", 293, false},
	{"P.process", "/home/an.py", 70, true}};

/* The function that computes most, its caller, and whether that is a habit. */
static void test_where_tasks_compute(void **state)
{
	static const struct {
		struct {
			const struct fx_place *place;
			size_t depth;
			uint64_t cpu;
		} row[3];
		const char *sentence, *advice;
		enum finding_severity severity;
	} t[] = {
		{{{to_list, 4, 400}, {loop, 1, 600}},
		 "40 % +- 3.0 % of the sampled CPU of tasks (4.000 s) was in ak.to_list, called at "
		 "'an.py:14 P.objects'",
		 "Stay with arrays",
		 FINDING_WARNING},
		{{{vectorized, 3, 700}, {nobodys, 2, 300}},
		 "70 % +- 2.8 % of the sampled CPU of tasks (7.000 s) was in np.vectorize, called "
		 "at "
		 "'an.py:41 P.process'",
		 "np.vectorize calls Python",
		 FINDING_WARNING},
		{{{loop, 1, 200}, {loop_next, 1, 210}, {under_loop, 2, 220}},
		 "65 % +- 3.7 % of the sampled CPU of tasks (4.100 s) was in the lines of 'an.py "
		 "P.process' itself, most of it in line 52",
		 "If these lines loop",
		 FINDING_NOTE},
		{{{own_to_list, 1, 500}, {nobodys, 2, 500}},
		 "50 % +- 3.1 % of the sampled CPU of tasks (5.000 s) was at 'content.py:3 "
		 "Content.to_list'",
		 "Begin with this line",
		 FINDING_NOTE},
		{{{importing, 2, 800}, {loop, 1, 200}},
		 "80 % +- 2.5 % of the sampled CPU of tasks (8.000 s) was in importing modules, "
		 "called at 'an.py:60 P.process'",
		 "Import at the top",
		 FINDING_WARNING},
		/* each worker imports once: the line that grows with the job is named */
		{{{importing, 2, 600}, {vectorized, 3, 400}},
		 "40 % +- 3.0 % of the sampled CPU of tasks (4.000 s) was in np.vectorize, called "
		 "at "
		 "'an.py:41 P.process'",
		 "np.vectorize calls Python",
		 FINDING_WARNING},
		{{{nobodys, 2, 1000}}, NULL, NULL, FINDING_NOTE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct fixture *fx = fx_new();
		struct task_record r = work(1, "a", 0, 20000);
		const struct finding *f;
		struct found found;

		fx_hello(fx, 1, NULL);
		SET_OWN(&r, cpu, 10000);
		fx_task(fx, 1, &r);
		for (size_t k = 0; k < 3 && t[i].row[k].depth; k++)
			fx_samples(fx, 1, k, true, t[i].row[k].cpu, t[i].row[k].depth,
				   t[i].row[k].place);
		collect(fx, &found);
		f = finding_of(&found, "hot_line");
		assert_int_equal(f != NULL, t[i].sentence != NULL);
		if (f) {
			assert_string_equal(f->sentence, t[i].sentence);
			assert_int_equal(f->severity, t[i].severity);
			assert_memory_equal(f->advice, t[i].advice, strlen(t[i].advice));
		}
		found_free(&found);
		fx_free(fx);
	}
}

/* 2 s of CPU and 6 s in the run queue because of other processes: users cannot change the latter,
 * so the line comes first although it costs less. */
static void test_what_others_cost_comes_last(void **state)
{
	struct fixture *fx = fx_new();
	struct task_record r = work(1, "a", 0, 8000);
	struct found found;

	(void)state;
	hello_of_host(fx, 1, 2);
	SET_OWN(&r, cpu, 2000);
	SET_OWN(&r, runqueue, 6000);
	fx_task(fx, 1, &r);
	fx_samples(fx, 1, 0, true, 120, 1, loop);
	fx_samples(fx, 1, 1, true, 80, 2, under_loop);
	collect(fx, &found);
	assert_int_equal(found.list.n, 2);
	assert_string_equal(found.list.v[0].id, "hot_line");
	assert_string_equal(found.list.v[1].id, "run_queue");
	assert_int_equal(found.list.v[1].severity, FINDING_NOTE);
	assert_true(found.list.v[1].cost_s > found.list.v[0].cost_s);
	found_free(&found);
	fx_free(fx);
}

static const struct fx_place temporary_files[] = {
	{"save", "/x/numpy/lib/_npyio_impl.py", 590, false},
	{"P.process", "/home/an.py", 80, true},
	{"load", "/x/numpy/lib/npyio.py", 460, false},
	{"P.process", "/home/an.py", 81, true}};

/* Reads that bypass coffea cost the CPU of the code that loads the file: 6 of 10 s that take 20
 * s. */
static void loading_costs(const struct fx_place *one, const struct fx_place *other, uint32_t depth)
{
	struct fixture *fx = fx_new();
	struct task_record r = chunk(1, "a", 0, 20000, "/data/a.root", 0, 1000);
	const struct finding *f;
	struct found found;

	fx_hello(fx, 1, "{}");
	SET_OWN(&r, cpu, 10000);
	SET_COUNT(&r, read_bytes, 15000000);
	TASK_SET(&r, coffea_bytesread, 5000000);
	fx_task(fx, 1, &r);
	fx_samples(fx, 1, 0, true, 350, depth, one);
	fx_samples(fx, 1, 1, true, 250, depth, other);
	fx_samples(fx, 1, 2, true, 400, 1, loop);
	collect(fx, &found);
	f = finding_of(&found, "not_by_coffea");
	assert_non_null(f);
	assert_float_equal(f->cost_s, 6, 1e-9);
	assert_true(f->cost_is_least);
	found_free(&found);
	fx_free(fx);
}

static void test_loading_costs(void **state)
{
	(void)state;
	loading_costs(reads_json, reads_json, 3);
	loading_costs(temporary_files, temporary_files + 2, 2);
}

/* The collector's time has no line; half of the CPU at one line is spent where objects are
 * created. */
static void test_where_garbage_is_made(void **state)
{
	(void)state;
	for (int less = 0; less < 2; less++) {
		struct fixture *fx = fx_new();
		struct task_record r = work(1, "a", 0, 11000);
		const struct finding *f;
		struct found found;

		fx_hello(fx, 1, "{}");
		SET_OWN(&r, cpu, 10000);
		fx_task(fx, 1, &r);
		fx_dask(fx, 1, 500, "{\"nthreads\": 1, \"digests\": [], \"gc_seconds\": 5}");
		fx_samples(fx, 1, 0, true, less ? 490 : 510, 3, reads_json);
		fx_samples(fx, 1, 1, true, less ? 510 : 490, 1, less ? nobodys : loop);
		collect(fx, &found);
		f = finding_of(&found, "gc_pauses");
		assert_non_null(f);
		assert_int_equal(strstr(f->sentence, "of the sampled CPU was at 'an.py:70") != NULL,
				 !less);
		found_free(&found);
		fx_free(fx);
	}
}

/* A chunk that computes 100 us per event, half of it, or less, in a habit. */
static void test_python_heavy_names_a_habit(void **state)
{
	static const char named[] = "of it in ak.to_list, called at 'an.py:14 P.objects'";

	(void)state;
	for (int less = 0; less < 2; less++) {
		struct fixture *fx = fx_new();
		struct task_record r = chunk(1, "a", 0, 11000, "/data/a.root", 0, 100000);
		const struct finding *f;
		struct found found;

		fx_hello(fx, 1, "{}");
		SET_OWN(&r, cpu, 10000);
		fx_task(fx, 1, &r);
		fx_samples(fx, 1, 0, true, less ? 490 : 500, 3, to_list);
		fx_samples(fx, 1, 1, true, less ? 510 : 500, 1, loop);
		collect(fx, &found);
		f = finding_of(&found, "python_heavy");
		assert_non_null(f);
		assert_int_equal(strstr(f->sentence, named) != NULL, !less);
		assert_int_equal(strncmp(f->advice, "Stay with arrays", 16) == 0, !less);
		found_free(&found);
		fx_free(fx);
	}
}

/* A message with one row of one frame. place: its number, outside the list if that is not 0. */
static void message(struct fixture *fx, uint64_t number, uint64_t place, bool whole)
{
	struct buf b = BUF_INIT;
	msgpack_packer pk;

	fx_begin(&pk, &b, CREMA_MSG_LINES, 3);
	pack_kv_u64(&pk, "table", 1);
	pack_text(&pk, "places");
	pack_array(&pk, whole ? 4 : 3);
	pack_text(&pk, "f");
	pack_text(&pk, "/a.py");
	pack_u64(&pk, 1);
	if (whole)
		pack_bool(&pk, true);
	pack_text(&pk, "rows");
	pack_array(&pk, 1);
	pack_map(&pk, 3);
	pack_kv_u64(&pk, "number", number);
	pack_text(&pk, "pool");
	pack_bool(&pk, false);
	pack_text(&pk, "frames");
	pack_array(&pk, 1);
	pack_u64(&pk, place);
	fx_end(fx, 1, &b);
}

static void test_bad_messages_and_too_many_rows(void **state)
{
	struct fixture *fx = fx_new();

	(void)state;
	message(fx, 0, 1, true);
	message(fx, 0, 0, false);
	assert_int_equal(fx->m.records_bad, 2);
	assert_int_equal(fx->m.lines.rows.n, 0);
	for (uint64_t i = 0; i < MODEL_LINES + 2; i++)
		message(fx, i, 0, true);
	assert_int_equal(fx->m.records_bad, 2);
	assert_int_equal(fx->m.lines.rows.n, MODEL_LINES);
	assert_true(fx->m.workers.v[0]->lines.cut);
	fx_free(fx);
}

/* The first sample opens files and reads names; later ones do not. */
static void test_the_first_look_is_one_of_eight(void **state)
{
	const uint64_t interval = 1000000000u / PYLINES_HZ;
	const uint64_t share = (uint64_t)((double)interval * PYLINES_SHARE);
	struct fixture *fx = fx_new();
	struct agent_side a;

	(void)state;
	fx_hello(fx, 1, NULL);
	agent_side_init(&a, fx);
	a.lines.pid = getpid();
	a.shm->thread[0].tid = (uint32_t)getpid();
	a.shm->thread[0].owner = 1;
	a.shm->thread[0].state = 1;
	a.shm->slot_word[0] = CREMA_SLOT_RUNNING;
	pylines_look(&a.lines, a.now);
	assert_int_equal(a.lines.look, 1);
	assert_int_equal(a.lines.cost_ns, (7 * share + a.lines.cpu_ns) / 8);
	a.lines.cost_ns = 1000000000; /* samples that take a second are half a second apart */
	pylines_look(&a.lines, a.now + a.lines.next_ns);
	assert_int_equal(a.lines.look, 2);
	assert_int_equal(a.lines.interval_ns, 500000000);
	agent_side_release(&a);
	fx_free(fx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames_that_stay),
		cmocka_unit_test(test_frames_that_change),
		cmocka_unit_test(test_generators_that_are_suspended),
		cmocka_unit_test(test_the_holder_of_the_lock),
		cmocka_unit_test(test_who_holds_the_lock_is_blamed),
		cmocka_unit_test(test_the_owner_of_a_mutex),
		cmocka_unit_test(test_recursion_counts_once),
		cmocka_unit_test(test_holders_become_lines),
		cmocka_unit_test(test_bytes_become_lines),
		cmocka_unit_test(test_the_shims_bytes_are_taken),
		cmocka_unit_test(test_large_blocks_over_tables),
		cmocka_unit_test(test_long_waits_have_lines),
		cmocka_unit_test(test_the_holder_during_a_wait),
		cmocka_unit_test(test_a_table_keeps_each_once),
		cmocka_unit_test(test_a_full_table_counts),
		cmocka_unit_test(test_waits_have_the_class_of_their_call),
		cmocka_unit_test(test_rows_become_lines),
		cmocka_unit_test(test_workers_by_state),
		cmocka_unit_test(test_a_full_table_begins_anew),
		cmocka_unit_test(test_a_finding_names_the_line),
		cmocka_unit_test(test_where_tasks_compute),
		cmocka_unit_test(test_what_others_cost_comes_last),
		cmocka_unit_test(test_loading_costs),
		cmocka_unit_test(test_where_garbage_is_made),
		cmocka_unit_test(test_python_heavy_names_a_habit),
		cmocka_unit_test(test_bad_messages_and_too_many_rows),
		cmocka_unit_test(test_the_first_look_is_one_of_eight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
