/* SPDX-License-Identifier: BSD-3-Clause */
/* test_doing.c - DOING messages about threads of this process, in calls on known objects. */
#include "tests/unit/values.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "agent/doing.h"
#include "contract/calls.h"
#include "wire.h"

#define NS_PER_TICK 3u

struct here {
	struct fake *f;
	struct doing *doing;
	pthread_t other; /* waits in an unintercepted read of `ends` */
	uint32_t tid;
	int ends[2];
};

static void *wait_for_byte(void *arg)
{
	struct here *h = arg;
	char byte;

	__atomic_store_n(&h->tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	return syscall(SYS_read, h->ends[0], &byte, 1) == 1
		       ? h
		       : NULL; /* sanitizers have a read() of their own */
}

static void proc_of_other(const struct here *h, const char *name, char *to, size_t size)
{
	char path[64];
	FILE *f;

	*to = '\0';
	snprintf(path, sizeof(path), "/proc/self/task/%u/%s", h->tid, name);
	f = fopen(path, "r");
	if (f && !fgets(to, (int)size, f))
		*to = '\0';
	if (f)
		fclose(f);
	to[strcspn(to, "\n")] = '\0';
}

static int here_setup(void **state)
{
	struct here *h = calloc(1, sizeof(*h));
	void *f;

	if (!h || setup(&f) || pipe(h->ends))
		return -1;
	h->f = f;
	h->f->shm->tsc_mult = (uint64_t)NS_PER_TICK << 32;
	h->doing = calloc(1, sizeof(*h->doing));
	if (!h->doing || doing_init(h->doing, &h->f->view, &h->f->out, getpid()) ||
	    pthread_create(&h->other, NULL, wait_for_byte, h))
		return -1;
	*state = h;
	return 0;
}

static int here_teardown(void **state)
{
	struct here *h = *state;
	void *f = h->f;

	if (write(h->ends[1], "x", 1) != 1)
		return -1;
	pthread_join(h->other, NULL);
	doing_release(h->doing);
	free(h->doing);
	close(h->ends[0]);
	close(h->ends[1]);
	teardown(&f);
	free(h);
	return 0;
}

/* Waits until the other thread is in the kernel: 10 s at most. */
static void wait_for_other(struct here *h)
{
	char text[256];
	long number = -1;

	for (int i = 0; !__atomic_load_n(&h->tid, __ATOMIC_ACQUIRE) || number != SYS_read; i++) {
		assert_true(i < 10000);
		usleep(1000);
		if (!__atomic_load_n(&h->tid, __ATOMIC_ACQUIRE))
			continue;
		proc_of_other(h, "syscall", text, sizeof(text));
		number = *text == 'r' ? -1 : strtol(text, NULL, 10);
	}
}

/* A task in this slot, whose thread has been in a call since that tick. */
static struct crema_thread *in_call(struct here *h, uint32_t slot, uint32_t call, uint64_t object,
				    uint64_t since)
{
	struct crema_thread *t = &h->f->shm->thread[slot + 3];
	uint32_t tid = __atomic_load_n(&h->tid, __ATOMIC_ACQUIRE);

	start(h->f, slot, 70 + slot)->start_boot_ns = 100 * SECOND;
	*t = (struct crema_thread){.state = 1,
				   .tid = tid ? tid : (uint32_t)getpid(),
				   .owner = slot + 1,
				   .call = call ? crema_call_word(call, object) : 0,
				   .call_start = since};
	return t;
}

/* The message that is sent at that moment, or NULL. */
static const msgpack_object *look_at_all(struct here *h, uint64_t ticks, uint64_t boot_ns)
{
	ack_all(h->f);
	doing_look(h->doing, ticks, boot_ns);
	for (int i = 0; i < 5000 && h->doing->native.child; i++) {
		usleep(1000);
		native_turn(&h->doing->native, boot_ns);
	}
	look(h->f);
	return message(h->f, CREMA_MSG_DOING, 0);
}

static const msgpack_object *row_of(const msgpack_object *m, uint32_t i)
{
	const msgpack_object *rows = m ? get(m, "rows") : NULL;

	assert_non_null(rows);
	assert_true(i < rows->via.array.size);
	return &rows->via.array.ptr[i];
}

static void assert_text_or_nil(const msgpack_object *map, const char *name, const char *due)
{
	if (*due)
		assert_text(map, name, due);
	else
		assert_nil(map, name);
}

/* Each number of a row, and values that were never reported. */
static void test_a_row(void **state)
{
	struct here *h = *state;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const msgpack_object *m, *row;
	struct crema_thread *t;
	struct crema_task *task;
	char wchan[64];

	wait_for_other(h);
	t = in_call(h, 5, CREMA_CALL_read, (uint64_t)fd, 1000);
	t->is_pool = 1;
	task = &h->f->shm->task[5];
	task->prefix = text(h->f, "fill");
	task->span = text(h->f, "a-span");
	task->function = text(h->f, "process");
	task->dataset = text(h->f, "zmm");
	task->filename = text(h->f, "/data/a.root");
	task->entrystart = 4096;
	task->entrystop = 9001;
	task->known |= CREMA_KNOWN_ENTRIES;
	m = look_at_all(h, 501000, 200 * SECOND);
	assert_number(m, "boot_ns", 200 * SECOND);
	assert_number(m, "cut", 0);
	assert_int_equal(get(m, "rows")->via.array.size, 1);
	row = row_of(m, 0);
	assert_number(row, "attempt", 75);
	assert_text(row, "key", "the-key");
	assert_text(row, "prefix", "fill");
	assert_text(row, "span", "a-span");
	assert_text(row, "function", "process");
	assert_text(row, "dataset", "zmm");
	assert_text(row, "filename", "/data/a.root");
	assert_number(row, "entrystart", 4096);
	assert_number(row, "entrystop", 9001);
	assert_number(row, "start_boot_ns", 100 * SECOND);
	assert_number(row, "thread", h->tid);
	assert_true(get(row, "pool")->type == MSGPACK_OBJECT_BOOLEAN &&
		    get(row, "pool")->via.boolean);
	assert_text(row, "call", "read");
	assert_number(row, "call_boot_ns", 200 * SECOND - 1500000);
	assert_text(row, "kind", "file");
	assert_text(row, "object", "/dev/null");
	assert_number(row, "place_boot_ns", 200 * SECOND);
	assert_nil(row, "line");
	assert_int_equal(get(row, "stack")->via.array.size, 0);
	assert_text(row, "state", "S");
	proc_of_other(h, "wchan", wchan, sizeof(wchan));
	assert_text_or_nil(row, "wchan", strcmp(wchan, "0") ? wchan : "");
	/* Nothing about this one is known. */
	h->f->shm->thread[8].state = 0;
	in_call(h, 6, CREMA_CALL_nanosleep, 0, 1000);
	task = &h->f->shm->task[6];
	task->entrystart = task->entrystop = 3;
	task->key[0] = '\0';
	row = row_of(look_at_all(h, 501000, 201 * SECOND), 0);
	for (size_t i = 0; i < 10; i++)
		assert_nil(row, ((const char *[]){"key", "prefix", "span", "function", "dataset",
						  "filename", "entrystart", "entrystop", "kind",
						  "object"})[i]);
	assert_text(row, "call", "nanosleep");
	assert_false(get(row, "pool")->via.boolean);
	close(fd);
}

/* A call keeps the start that was first computed; the place may be older than the call. */
static void test_since_when(void **state)
{
	struct here *h = *state;
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), zero = open("/dev/zero", O_RDONLY);
	struct crema_thread *t = in_call(h, 2, CREMA_CALL_read, (uint64_t)null, 10000);
	/* ticks, s; the shim's values; when call and place began, in ns */
	const struct {
		uint64_t ticks, at, start;
		int fd;
		uint64_t attempt, call, place;
	} looks[] = {
		{20000, 200, 10000, null, 1, 200 * SECOND - 30000, 200 * SECOND},
		{90000, 201, 10000, null, 1, 200 * SECOND - 30000, 200 * SECOND},
		{91000, 202, 90500, null, 1, 202 * SECOND - 1500, 200 * SECOND},
		{92000, 203, 91000, zero, 1, 203 * SECOND - 3000, 203 * SECOND},
		{92500, 204, 91000, zero, 1, 203 * SECOND - 3000, 203 * SECOND},
		{92500, 205, 91000, zero, 2, 203 * SECOND - 3000, 205 * SECOND},
		{92500, 206, 92600, null, 2, 206 * SECOND, 206 * SECOND}, /* in the future */
		{UINT64_C(1) << 60, 207, 1, null, 2, 0, 206 * SECOND},
	};

	for (size_t i = 0; i < COUNT_OF(looks); i++) {
		const msgpack_object *row;

		h->f->shm->task[2].attempt = looks[i].attempt;
		t->call = crema_call_word(CREMA_CALL_read, (uint64_t)looks[i].fd);
		t->call_start = looks[i].start;
		h->doing->sent = 0; /* however little has changed */
		row = row_of(look_at_all(h, looks[i].ticks, looks[i].at * SECOND), 0);
		if (looks[i].call)
			assert_number(row, "call_boot_ns", looks[i].call);
		else
			assert_nil(row, "call_boot_ns");
		assert_number(row, "place_boot_ns", looks[i].place);
		assert_text(row, "object", looks[i].fd == null ? "/dev/null" : "/dev/zero");
	}
	close(null);
	close(zero);
}

/* Its second frame: the first is the C library's. */
static void assert_native(const msgpack_object *row, const char *second)
{
	const msgpack_object *native = get(row, "native");
	struct text frame;

	assert_int_equal(native->type, MSGPACK_OBJECT_ARRAY);
	assert_true(native->via.array.size > 2);
	assert_true(object_text(&native->via.array.ptr[1], &frame));
	assert_int_equal(frame.len, strlen(second));
	assert_memory_equal(frame.ptr, second, frame.len);
}

/* The kernel reports a call that the shim does not: since it was first seen. */
static void test_a_call_that_is_not_intercepted(void **state)
{
	struct here *h = *state;
	const msgpack_object *row;

	wait_for_other(h);
	in_call(h, 0, 0, 0, 500);
	for (uint64_t at = 300; at < 303; at++) {
		row = row_of(look_at_all(h, 1000, at * SECOND), 0);
		assert_text(row, "call", "read");
		assert_nil(row, "kind");
		assert_text(row, "object", "a pipe");
		assert_nil(row, "call_boot_ns");
		assert_number(row, "place_boot_ns", 300 * SECOND);
		if (at == 300) /* it may end at once */
			assert_nil(row, "native");
		else
			assert_native(row, "wait_for_byte test_doing");
		/* unchanged: not sent again within ten seconds */
		assert_null(look_at_all(h, 1000, at * SECOND));
		h->doing->sent = 0;
	}
	in_call(h, 0, CREMA_CALL_read, (uint64_t)h->ends[0], 400);
	row = row_of(look_at_all(h, 1000, 310 * SECOND), 0);
	assert_number(row, "call_boot_ns", 310 * SECOND - 1800);
	assert_nil(row, "native");
	assert_null(look_at_all(h, 1000, 310 * SECOND));
	assert_native(row_of(look_at_all(h, 1000, 310 * SECOND), 0), "wait_for_byte test_doing");
	/* of the same tick, but another call: there was none in between */
	h->f->shm->thread[3].call = 0;
	look_at_all(h, 1000, 311 * SECOND);
	in_call(h, 0, CREMA_CALL_read, (uint64_t)h->ends[0], 400);
	row = row_of(look_at_all(h, 2000, 312 * SECOND), 0);
	assert_number(row, "call_boot_ns", 312 * SECOND - 4800);
	/* a thread that cannot be inspected has no place */
	in_call(h, 0, 0, 0, 0)->tid = INT32_MAX;
	row = row_of(look_at_all(h, 2000, 313 * SECOND), 0);
	assert_nil(row, "call");
	assert_nil(row, "place_boot_ns");
}

/* Sent at once if it changed, otherwise every ten seconds; an empty list is sent once. */
static void test_when_it_is_sent(void **state)
{
	static const struct {
		uint64_t ms;
		bool runs, sent;
	} looks[] = {{100000, false, false}, {100500, true, false},
		     {100999, true, false},  {101000, true, true},
		     {101001, true, false},  {101002, true, true}, /* with native frames */
		     {102000, true, false},  {111001, true, false},
		     {111002, true, true},   {112000, true, false},
		     {121001, true, false},  {121002, true, true},
		     {121003, false, true},  {121004, false, false},
		     {135000, false, false}, {135001, true, true}};
	struct here *h = *state;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const msgpack_object *m;

	wait_for_other(h); /* the same state each time */
	in_call(h, 7, CREMA_CALL_read, (uint64_t)fd, 10);
	for (size_t i = 0; i < COUNT_OF(looks); i++) {
		h->f->shm->thread[10].state = looks[i].runs;
		m = look_at_all(h, 20, looks[i].ms * 1000000);
		if (looks[i].sent != (m != NULL))
			fail_msg("at %ju ms", (uintmax_t)looks[i].ms);
		if (m)
			assert_int_equal(get(m, "rows")->via.array.size, looks[i].runs);
	}
	close(fd);
}

/* Only threads of running tasks that began long enough ago. */
static void test_which_threads(void **state)
{
	struct here *h = *state;
	struct crema_shm *m = h->f->shm;

	in_call(h, 0, CREMA_CALL_nanosleep, 0, 1);
	assert_non_null(look_at_all(h, 9, 200 * SECOND));
#define NONE_WITH(what, was)                                                                       \
	do {                                                                                       \
		what;                                                                              \
		if (get(look_at_all(h, 9, 200 * SECOND), "rows")->via.array.size)                  \
			fail_msg("%s", #what);                                                     \
		was;                                                                               \
		assert_int_equal(get(look_at_all(h, 9, 200 * SECOND), "rows")->via.array.size, 1); \
	} while (0)
	NONE_WITH(m->thread[3].state = 0, m->thread[3].state = 1);
	NONE_WITH(m->thread[3].owner = 0, m->thread[3].owner = 1);
	NONE_WITH(m->thread[3].owner = 2, m->thread[3].owner = 1);
	NONE_WITH(m->thread[3].owner = CREMA_SHM_TASKS + 1, m->thread[3].owner = 1);
	NONE_WITH(m->slot_word[0] = CREMA_SLOT_DONE, m->slot_word[0] = CREMA_SLOT_RUNNING);
	NONE_WITH(m->task[0].start_boot_ns = 0, m->task[0].start_boot_ns = SECOND);
	NONE_WITH(m->task[0].start_boot_ns = 200 * SECOND - DOING_TASK_NS + 1,
		  m->task[0].start_boot_ns = 200 * SECOND - DOING_TASK_NS);
#undef NONE_WITH
}

/* If there are too many, those that began first, and how many are omitted. */
static void test_the_oldest_of_many(void **state)
{
	struct here *h = *state;
	const msgpack_object *m, *rows;
	uint64_t attempts = 0;

	for (uint32_t i = 0; i < DOING_ROWS + 8; i++) {
		in_call(h, i, CREMA_CALL_nanosleep, 0, 1);
		/* 7 and 40 have no common divisor: all starts differ, and are not sorted */
		h->f->shm->task[i].start_boot_ns = (1 + i * 7 % (DOING_ROWS + 8)) * SECOND;
		h->f->shm->task[i].attempt = 1 + i * 7 % (DOING_ROWS + 8);
	}
	m = look_at_all(h, 9, 200 * SECOND);
	assert_number(m, "cut", 8);
	rows = get(m, "rows");
	assert_int_equal(rows->via.array.size, DOING_ROWS);
	for (uint32_t i = 0; i < DOING_ROWS; i++) {
		uint64_t attempt = 0;

		object_u64(get(&rows->via.array.ptr[i], "attempt"), &attempt);
		assert_in_range(attempt, 1, DOING_ROWS);
		attempts |= UINT64_C(1) << attempt;
	}
	assert_int_equal(attempts, ((UINT64_C(1) << DOING_ROWS) - 1) << 1);
}

/* Names and frames as long as they can be: the collector must not refuse the message. */
static void test_the_longest_message(void **state)
{
	struct here *h = *state;
	static char longest[256];

	memset(longest, 'x', sizeof(longest) - 1);
	wait_for_other(h);
	for (uint32_t i = 0; i < DOING_ROWS; i++) {
		struct crema_task *t;
		struct doing_known *k;

		in_call(h, i, CREMA_CALL_read, (uint64_t)h->ends[0], 1);
		t = &h->f->shm->task[i];
		memset(t->key, 'k', sizeof(t->key));
		t->prefix = t->span = t->function = t->dataset = t->filename = text(h->f, longest);
		look_at_all(h, 9, (200 + i) * SECOND);
		k = h->doing->seen[i + 3].known;
		assert_non_null(k);
		memset(&k->on.text, 'o', sizeof(k->on.text) - 1);
		memset(k->stack.line, 'l', sizeof(k->stack.line) - 1);
		k->stack.place = k->tried = k->native.known = true;
		k->stack.frames = DOING_FRAMES;
		k->native.frames = NATIVE_FRAMES;
		for (size_t f = 0; f < DOING_FRAMES; f++)
			memset(k->stack.frame[f], 'f', DOING_FRAME_BYTES - 1);
		for (size_t f = 0; f < NATIVE_FRAMES; f++)
			memset(k->native.frame[f], 'n', NATIVE_FRAME_BYTES - 1);
	}
	h->doing->sent = 0;
	assert_non_null(look_at_all(h, 9, 300 * SECOND));
	assert_in_range(h->doing->scratch.len,
			DOING_ROWS * (DOING_FRAMES * DOING_FRAME_BYTES +
				      NATIVE_FRAMES * NATIVE_FRAME_BYTES),
			CREMA_DOING_BYTES - 4096);
}

/* A connection to a listener of this process, and the listener's address as text. */
static int connected(int family, int *own, char *text, size_t size)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
	void *address = family == AF_INET ? (void *)&four : &six;
	socklen_t n = family == AF_INET ? sizeof(four) : sizeof(six);
	int fd;

	*own = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*own < 0 || bind(*own, address, n) || listen(*own, 1) || getsockname(*own, address, &n))
		return -1;
	fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, address, n), 0);
	if (family == AF_INET)
		snprintf(text, size, "127.0.0.1:%u", ntohs(four.sin_port));
	else
		snprintf(text, size, "[::1]:%u", ntohs(six.sin6_port));
	return fd;
}

static void assert_object(struct here *h, uint32_t call, uint64_t object, const char *kind,
			  const char *due)
{
	static uint64_t start;
	const msgpack_object *row;

	in_call(h, 0, call, object, ++start); /* another call: it is inspected again */
	h->doing->sent = 0;
	row = row_of(look_at_all(h, start, 200 * SECOND), 0);
	assert_text_or_nil(row, "kind", kind);
	assert_text_or_nil(row, "object", due);
}

static void test_objects(void **state)
{
	static uint8_t runtime[64];
	struct here *h = *state;
	char four[64], six[64], text_due[64], name[64] = "";
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), own[2];
	int peer = connected(AF_INET, &own[0], four, sizeof(four));
	int peer6 = connected(AF_INET6, &own[1], six, sizeof(six));
	int lone = socket(AF_INET, SOCK_STREAM, 0);
	struct pollfd list[2] = {{.fd = peer}, {.fd = fd}}, none = {.fd = -1};
	const char *path = "/store/b.root";
	FILE *comm = fopen("/proc/self/comm", "r");

	assert_non_null(comm);
	assert_non_null(fgets(name, sizeof(name), comm));
	fclose(comm);
	name[strcspn(name, "\n")] = '\0';
	h->f->shm->python_runtime = (uint64_t)(uintptr_t)runtime;
	h->f->shm->python_runtime_bytes = sizeof(runtime);

	assert_object(h, CREMA_CALL_read, (uint64_t)fd, "file", "/dev/null");
	assert_object(h, CREMA_CALL_write, (uint64_t)h->ends[1], "", "a pipe");
	assert_object(h, CREMA_CALL_recv, (uint64_t)peer, "peer", four);
	if (peer6 >= 0)
		assert_object(h, CREMA_CALL_recv, (uint64_t)peer6, "peer", six);
	assert_object(h, CREMA_CALL_recv, (uint64_t)lone, "peer", "a socket without a TCP peer");
	assert_object(h, CREMA_CALL_read, 100000, "", "");
	assert_object(h, CREMA_CALL_poll, (uintptr_t)list, "peer", four);
	assert_object(h, CREMA_CALL_poll, (uintptr_t)&none, "", "");
	assert_object(h, CREMA_CALL_poll, 8, "", "");
	assert_object(h, CREMA_CALL_open, (uintptr_t)path, "file", path);
	assert_object(h, CREMA_CALL_open, 8, "", "");
	assert_object(h, CREMA_CALL_getaddrinfo, (uintptr_t) "db.example", "host", "db.example");
	assert_object(h, CREMA_CALL_getnameinfo, 0, "", "");
	snprintf(text_due, sizeof(text_due), "%d (%s)", (int)getpid(), name);
	assert_object(h, CREMA_CALL_waitpid, (uint64_t)getpid(), "process", text_due);
	assert_object(h, CREMA_CALL_waitpid, (uint32_t)-1, "process", "any child");
	assert_object(h, CREMA_CALL_sem_wait, 0xabc123, "lock", "0xabc123");
	assert_object(h, CREMA_CALL_sem_wait, (uintptr_t)(runtime + 63), "GIL", "");
	snprintf(text_due, sizeof(text_due), "%p", (void *)(runtime + 64));
	assert_object(h, CREMA_CALL_sem_wait, (uintptr_t)(runtime + 64), "lock", text_due);
	h->f->shm->python_runtime = 0;
	assert_object(h, CREMA_CALL_sem_wait, 0x10, "lock", "0x10");
	/* A library's URL is more useful than a descriptor. */
	in_call(h, 0, CREMA_CALL_read, (uint64_t)fd, 1000)->about = text(h->f, "root://s//a.root");
	assert_text(row_of(look_at_all(h, 2000, 200 * SECOND), 0), "object", "root://s//a.root");
	assert_text(row_of(look_at_all(h, 2000, 211 * SECOND), 0), "kind", "url");
	close(fd);
	close(peer);
	close(peer6);
	close(own[0]);
	close(own[1]);
	close(lone);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, here_setup, here_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_a_row),
		TEST(test_since_when),
		TEST(test_a_call_that_is_not_intercepted),
		TEST(test_when_it_is_sent),
		TEST(test_which_threads),
		TEST(test_the_oldest_of_many),
		TEST(test_the_longest_message),
		TEST(test_objects),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
