/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_agent_turns.c - when the agent does what: its turns with clocks that the test sets, a worker
 * that is a child of this test, and no collector.
 */
#include "tests/unit/values.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <sys/mman.h>

#include "agent/agent.h"
#include "common/procfs.h"
#include "common/clock.h"
#include "common/framefile.h"
#include "wire.h"

struct turns {
	struct agent agent;
	struct fake seen; /* its outbox is the agent's */
	struct crema_shm *shm;
	uint64_t mono, boot;
	char dir[64], path[128], spool[128], collector[160];
	int child;
};

static struct crema_shm *make_shm(const char *path, int pid)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	struct crema_shm *m;

	assert_true(fd >= 0 && ftruncate(fd, sizeof(*m)) == 0);
	m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(m != MAP_FAILED);
	close(fd);
	m->magic = CREMA_SHM_MAGIC;
	m->abi = CREMA_SHM_ABI;
	m->tables = crema_shm_tables();
	m->total_bytes = sizeof(*m);
	m->header_bytes = offsetof(struct crema_shm, task);
	m->task_bytes = sizeof(m->task[0]);
	m->thread_bytes = sizeof(m->thread[0]);
	m->file_bytes = sizeof(m->file[0]);
	m->tasks = COUNT_OF(m->task);
	m->threads = COUNT_OF(m->thread);
	m->files = COUNT_OF(m->file);
	m->pid = (uint32_t)pid;
	m->strings_used = 8;
	return m;
}

static int sleeper(void)
{
	int pid = fork();

	if (pid == 0) {
		alarm(120);
		for (;;)
			pause();
	}
	return pid;
}

static int begin(void **state)
{
	struct turns *s = calloc(1, sizeof(*s));

	prctl(PR_SET_NAME, CREMA_AGENT_NAME);
	assert_non_null(s);
	snprintf(s->dir, sizeof(s->dir), "/tmp/crema-test-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	snprintf(s->path, sizeof(s->path), "%s/crema-%032d", s->dir, 1);
	snprintf(s->spool, sizeof(s->spool), "%s/spool", s->dir);
	assert_int_equal(mkdir(s->spool, 0700), 0);
	s->child = sleeper();
	s->shm = make_shm(s->path, s->child);
	s->mono = clock_mono_ns();
	s->boot = clock_boot_ns();
	agent_stopping = 0;
	*state = s;
	return 0;
}

static void attach(struct turns *s, const char *collector)
{
	const struct agent_options o = {s->path, collector, s->spool, s->child, 0};
	uint64_t mono = clock_mono_ns(), real = clock_real_ns(), boot = clock_boot_ns();

	assert_int_equal(agent_init(&s->agent, &o), 0);
	assert_in_range(s->agent.began_ns, mono, clock_mono_ns());
	assert_in_range(s->agent.outbox.stream, real, clock_real_ns());
	assert_in_range(s->shm->agent_heartbeat_boot_ns, boot, clock_boot_ns());
	s->agent.began_ns = s->mono;
}

static void end_worker(struct turns *s)
{
	if (s->child)
		kill(s->child, SIGKILL);
	if (s->child)
		waitpid(s->child, NULL, 0);
	s->child = 0;
}

static int end(void **state)
{
	struct turns *s = *state;
	char command[128];

	forget(&s->seen);
	end_worker(s);
	agent_release(&s->agent);
	munmap(s->shm, sizeof(*s->shm));
	snprintf(command, sizeof(command), "rm -rf %s", s->dir);
	free(s);
	return system(command);
}

static bool turn(struct turns *s, uint64_t ns)
{
	s->mono += ns;
	s->boot += ns;
	return agent_turn(&s->agent, s->mono, s->boot);
}

/* The collector was connected until now: nothing is spooled. */
static bool near_turn(struct turns *s, uint64_t ns)
{
	s->agent.ready_ns = s->mono + ns;
	return turn(s, ns);
}

/* The number of messages of this type in memory. */
static unsigned int waiting(struct turns *s, unsigned int type)
{
	s->seen.out = s->agent.outbox;
	look(&s->seen);
	return s->seen.types[type];
}

static void put_facts(struct turns *s, const char *text)
{
	struct crema_probe_text *p = &s->shm->facts;

	p->seq += 2;
	p->bytes = (uint32_t)strlen(text);
	memcpy(p->text, text, p->bytes);
	p->boot_ns = s->boot;
}

#define NOBODY "127.0.0.1:9" /* the discard port, if anything listens */

static void test_each_second(void **state)
{
	static const unsigned int types[] = {CREMA_MSG_SAMPLE, CREMA_MSG_TOTALS, CREMA_MSG_HOST},
				  once[] = {CREMA_MSG_SERVER,	  CREMA_MSG_CODEC,
					    CREMA_MSG_FILE,	  CREMA_MSG_SECTION,
					    CREMA_MSG_TASK_START, CREMA_MSG_STACK,
					    CREMA_MSG_DOING};
	struct turns *s = *state;
	uint64_t before = 0, began = clock_boot_ns(), read = 0;

	s->shm->server[0].state = s->shm->codec[0].state = 2;
	s->shm->server[0].requests = s->shm->codec[0].calls = 4;
	s->shm->section[0].state = s->shm->file[0].state = 2;
	s->shm->file[0].read_bytes = 5;
	s->shm->stack[9].state = 2;
	s->shm->slot_word[3] = CREMA_SLOT_RUNNING + CREMA_SLOT_REF;
	s->shm->task[3].attempt = s->shm->task[3].start_boot_ns = 1;
	s->shm->thread[0] = (struct crema_thread){.state = 1, .owner = 4, .tid = 1};
	/* Of the agents with the same collector, one sends the host's numbers. */
	snprintf(s->collector, sizeof(s->collector), "127.%u.%u.1:9", getpid() >> 8 & 255,
		 getpid() & 255);
	attach(s, s->collector);
	for (int i = 0; i < 9; i++) { /* at 0 s, 1 s and 2 s */
		before = s->agent.outbox.next_seq;
		assert_true(near_turn(s, i ? AGENT_POLL_NS : 0));
	}
	for (size_t i = 0; i < COUNT_OF(types); i++)
		assert_int_equal(waiting(s, types[i]), 3);
	for (size_t i = 0; i < COUNT_OF(once); i++)
		assert_int_equal(waiting(s, once[i]), 1);
	/* when they were read, not when the turn began */
	assert_true(object_u64(get(message(&s->seen, CREMA_MSG_TOTALS, 2), "boot_ns"), &read));
	assert_true(began < read && read <= clock_boot_ns());
	assert_number(message(&s->seen, CREMA_MSG_SAMPLE, 0), "boot_ns", s->boot - 2 * SECOND);
	assert_int_equal(s->shm->agent_heartbeat_boot_ns, s->boot);
	assert_int_equal(s->shm->agent_ready, getpid());
	assert_int_equal(s->shm->agent_stream_seq, before);
}

/* The first hello waits for the facts, but not forever; new facts are sent again. */
static void test_hello(void **state)
{
	struct turns *s = *state;
	size_t bytes;

	attach(s, NOBODY);
	turn(s, 0);
	assert_false(s->agent.hello_sent);
	turn(s, AGENT_FACTS_NS - 1);
	assert_false(s->agent.hello_sent);
	turn(s, 1);
	assert_true(s->agent.hello_sent);
	bytes = s->agent.hello.len;
	turn(s, SECOND);
	assert_int_equal(s->agent.hello.len, bytes);
	put_facts(s, "{\"memory_limit_bytes\": 4321}");
	turn(s, SECOND);
	assert_true(s->agent.hello.len > bytes);
	assert_int_equal(s->agent.ending.limit_bytes, 4321);
	s->agent.uplink.resend_hello = false; /* as if it was sent */
	turn(s, SECOND);
	assert_false(s->agent.uplink.resend_hello);
}

static void test_hello_with_facts(void **state)
{
	struct turns *s = *state;

	put_facts(s, "{}");
	attach(s, NOBODY);
	turn(s, 0);
	assert_true(s->agent.hello_sent);
}

static unsigned int files_in(const char *dir)
{
	char **names;
	int n = framefile_list(dir, &names);

	free(names);
	return n > 0 ? (unsigned int)n : 0;
}

static bool tells_that_it_waits(void)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	return !strcmp(name, CREMA_AGENT_WAITS);
}

/* The worker's end: its last totals and a goodbye, written to disk at once if there is no
 * collector; then half a minute to wait for one. */
static void test_the_end(void **state)
{
	struct turns *s = *state;

	put_facts(s, "{}");
	attach(s, NOBODY);
	turn(s, 0);
	s->shm->task[3].attempt = 1;
	s->shm->task[3].start_mono_ns = s->mono - 5;
	s->shm->slot_word[3] = CREMA_SLOT_RUNNING + CREMA_SLOT_REF;
	s->shm->stack[9].state = 2;
	end_worker(s);
	assert_true(near_turn(s, SECOND / 4));
	assert_int_equal(waiting(s, CREMA_MSG_STACK), 1);
	assert_int_equal(waiting(s, CREMA_MSG_GOODBYE), 1);
	assert_number(message(&s->seen, CREMA_MSG_GOODBYE, 0), "tasks_in_flight", 1);
	assert_number(message(&s->seen, CREMA_MSG_GOODBYE, 0), "boot_ns", s->boot);
	assert_int_equal(waiting(s, CREMA_MSG_TOTALS), 2);
	assert_number(message(&s->seen, CREMA_MSG_TOTALS, 1), "boot_ns", s->boot);
	assert_int_equal(waiting(s, CREMA_MSG_TASK_END), 1);
	assert_int_equal(s->seen.n, 1);
	assert_int_equal(s->seen.r[0].wall_ns, SECOND / 4 + 5); /* it was seen alive before */
	assert_int_equal(s->seen.r[0].stop_boot_ns, s->boot);
	assert_int_equal(files_in(s->spool), 0);
	assert_false(tells_that_it_waits());
	assert_true(turn(s, 1));
	assert_int_equal(files_in(s->spool), 1);
	assert_true(tells_that_it_waits());
	assert_true(turn(s, AGENT_LINGER_NS - 2));
	assert_false(turn(s, 1));
	assert_int_equal(files_in(s->spool), 1);
}

/* It tells that it only waits when all is in a file, and it has looked for a collector since the
 * worker's end and never reached one. */
static void test_what_its_name_tells(void **state)
{
	struct turns *s = *state;
	struct uplink *link = &s->agent.uplink;
	int ends[2], file;
	char first;

	put_facts(s, "{}");
	attach(s, NOBODY);
	turn(s, 0);
	end_worker(s);
	assert_true(near_turn(s, SECOND / 4));
	first = s->agent.outbox.dir[0];
	s->agent.outbox.dir[0] = '\0';
	assert_true(turn(s, 1));
	assert_false(tells_that_it_waits());
	s->agent.outbox.dir[0] = first;
	s->agent.was_ready = true;
	assert_true(turn(s, 1));
	assert_int_equal(files_in(s->spool), 1);
	assert_false(tells_that_it_waits());
	s->agent.was_ready = false;
	link->retry_ns = UINT64_MAX;
	link->since_ns = s->agent.finished_ns - 1;
	assert_true(turn(s, 1));
	assert_false(tells_that_it_waits());
	link->since_ns = s->agent.finished_ns;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	link->stream.fd = ends[0];
	link->state = UPLINK_CHALLENGED; /* connected, but it does not answer */
	assert_true(turn(s, 1));
	assert_false(tells_that_it_waits());
	close(ends[0]);
	close(ends[1]);
	link->stream.fd = -1;
	link->state = UPLINK_OFF;
	s->agent.outbox.file_dirty = true;
	assert_int_equal(pipe(ends), 0); /* which cannot be synced */
	file = s->agent.outbox.file.fd;
	s->agent.outbox.file.fd = ends[1];
	assert_true(turn(s, 1));
	assert_false(tells_that_it_waits());
	s->agent.outbox.file.fd = file;
	close(ends[0]);
	close(ends[1]);
	assert_true(turn(s, 1));
	assert_true(tells_that_it_waits());
	link->state = UPLINK_READY;
	turn(s, 1);
	assert_false(tells_that_it_waits());
}

/* What does not fit into a full spool is counted in the last totals, including the last records. */
static void test_the_end_of_a_full_spool(void **state)
{
	struct turns *s = *state;

	put_facts(s, "{}");
	attach(s, NOBODY);
	turn(s, 0);
	turn(s, AGENT_AWAY_NS + 1);
	assert_int_equal(files_in(s->spool), 1);
	assert_int_equal(s->agent.outbox.dropped, 0);
	s->agent.outbox.spool_max = 1;
	s->shm->task[3].attempt = 1;
	s->shm->slot_word[3] = CREMA_SLOT_RUNNING + CREMA_SLOT_REF;
	near_turn(s, 1);
	assert_int_equal(waiting(s, CREMA_MSG_TASK_START), 1);
	end_worker(s);
	near_turn(s, 1);
	assert_int_equal(s->agent.outbox.dropped, 1);
	assert_int_equal(waiting(s, CREMA_MSG_TOTALS), 1);
	assert_number(message(&s->seen, CREMA_MSG_TOTALS, 0), "records_refused", 1);
}

/* Facts and file systems that arrive at the very end are in a hello. */
static void test_the_last_hello(void **state)
{
	struct turns *s = *state;
	size_t bytes;

	put_facts(s, "{}");
	attach(s, NOBODY);
	turn(s, 0);
	bytes = s->agent.hello.len;
	s->boot++;
	put_facts(s, "{\"more\": \"than before\"}");
	end_worker(s);
	turn(s, 1);
	assert_true(s->agent.hello.len > bytes);
}

/* After a stop signal: ten seconds for the worker's end, and ten to send what remains. */
static void test_stopping(void **state)
{
	struct turns *s = *state;

	put_facts(s, "{}");
	attach(s, NOBODY);
	assert_true(turn(s, 0));
	agent_stopping = 1;
	assert_true(turn(s, SECOND));
	assert_true(turn(s, AGENT_STOP_NS - 1));
	end_worker(s);
	assert_true(turn(s, 0)); /* the worker's end extends the time */
	assert_true(turn(s, AGENT_STOP_NS - 1));
	assert_false(turn(s, 1));
}

static void test_stopping_beside_a_worker(void **state)
{
	struct turns *s = *state;

	attach(s, NOBODY);
	agent_stopping = 1;
	assert_true(turn(s, 0));
	assert_true(turn(s, AGENT_STOP_NS - 1));
	assert_false(turn(s, 1));
}

/* When it leaves, everything is on disk, however new: the next agent can continue. */
static void test_leaving(void **state)
{
	struct turns *s = *state;

	put_facts(s, "{}");
	attach(s, NOBODY);
	assert_true(near_turn(s, 0));
	assert_true(waiting(s, CREMA_MSG_TOTALS) > 0);
	assert_int_equal(files_in(s->spool), 0);
	s->agent.leave_ns = s->mono + 1;
	assert_false(near_turn(s, 1));
	assert_int_equal(files_in(s->spool), 1);
	assert_null(s->agent.outbox.head);
}

/* A turn serves both connections: the agent's at once, that of an old spool once the former is
 * ready. */
static void test_connections(void **state)
{
	struct turns *s = *state;

	put_facts(s, "{}");
	attach(s, NOBODY);
	turn(s, 0);
	assert_true(s->agent.uplink.since_ns == s->mono);
	assert_int_equal(s->agent.takeover.look_ns, 0);
	s->agent.uplink.state = UPLINK_READY;
	s->agent.uplink.stream.fd = -1;
	turn(s, SECOND);
	assert_int_equal(s->agent.takeover.look_ns, s->mono + 10 * SECOND);
}

/* Disconnected for a second: waiting frames are spooled, as old frames are. */
static void test_spooling(void **state)
{
	struct turns *s = *state;

	put_facts(s, "{}");
	attach(s, NOBODY);
	turn(s, 0);
	turn(s, AGENT_AWAY_NS);
	assert_int_equal(files_in(s->spool), 0);
	assert_true(waiting(s, CREMA_MSG_TOTALS) > 0);
	turn(s, 1);
	assert_int_equal(files_in(s->spool), 1);
	assert_int_equal(waiting(s, CREMA_MSG_TOTALS), 0);
}

/* Files instead of a collector: everything is written at once, and there is nothing to wait for at
 * the end. */
static void test_files_instead(void **state)
{
	struct turns *s = *state;

	put_facts(s, "{}");
	snprintf(s->collector, sizeof(s->collector), "dir:%s", s->spool);
	attach(s, s->collector);
	assert_true(turn(s, 0));
	assert_int_equal(files_in(s->spool), 1);
	assert_int_equal(waiting(s, CREMA_MSG_TOTALS), 0);
	end_worker(s);
	assert_false(turn(s, SECOND));
}

/* Another agent writes its pid into the memory: this one exits. */
static void test_another_agent(void **state)
{
	struct turns *s = *state;
	static struct agent other;
	const struct agent_options o = {s->path, NOBODY, s->spool, s->child, 0};
	int pid = sleeper();

	attach(s, NOBODY);
	assert_true(turn(s, 0));
	s->shm->agent_ready = (uint32_t)getppid();
	s->shm->agent_heartbeat_boot_ns = 77;
	assert_false(turn(s, SECOND));
	assert_int_equal(s->shm->agent_heartbeat_boot_ns, 77);
	/* A live one is not disturbed; one that has ended, or sent no heartbeat for three seconds,
	 * is dead. */
	for (int lives = 1; lives >= 0; lives--) {
		s->shm->agent_ready = (uint32_t)pid;
		s->shm->agent_heartbeat_boot_ns = clock_boot_ns();
		assert_int_equal(agent_init(&other, &o), lives ? -EALREADY : 0);
		agent_release(&other);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	s->shm->agent_ready = (uint32_t)getppid();
	s->shm->agent_heartbeat_boot_ns = clock_boot_ns() - AGENT_FRESH_NS;
	s->shm->agent_dropped = 12;
	assert_int_equal(agent_init(&other, &o), 0);
	assert_int_equal(other.outbox.dropped, 12);
	assert_int_equal(s->shm->agent_ready, getpid());
	agent_release(&other);
}

/* A measured clock is sent once. */
static void test_clocks(void **state)
{
	struct turns *s = *state;
	const msgpack_object *m;

	attach(s, NOBODY);
	s->agent.uplink.has_result = true;
	s->agent.uplink.result = (struct uplink_clock){1111, 22222, -333333, 4444444};
	turn(s, 0);
	turn(s, 1);
	assert_int_equal(waiting(s, CREMA_MSG_CLOCKS), 1);
	m = message(&s->seen, CREMA_MSG_CLOCKS, 0);
	assert_number(m, "boot_ns", 1111);
	assert_number(m, "real_ns", 22222);
	assert_number(m, "error_ns", 4444444);
	assert_int_equal(get_i64(m, "offset_ns", 0), -333333);
}

/* As the shim starts it (shim/start/agent.c). */
static void test_arguments(void **state)
{
	char line[] = "crema-agent --shm /dev/shm/crema-1 --pid 4711 --spool /a/dir "
		      "--start-ticks 81985529216 --collector host:12 --other x";
	char *words[13];
	struct agent_options o;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(words); i++)
		words[i] = strtok(i ? NULL : line, " ");
	assert_int_equal(agent_parse(&o, 11, words), 0);
	assert_string_equal(o.shm, "/dev/shm/crema-1");
	assert_int_equal(o.pid, 4711);
	assert_string_equal(o.spool, "/a/dir");
	assert_int_equal(o.start_ticks, 81985529216);
	assert_string_equal(o.collector, "host:12");
	assert_int_equal(agent_parse(&o, 13, words), -EINVAL); /* unknown option */
	assert_int_equal(agent_parse(&o, 10, words), -EINVAL); /* a value is missing */
	assert_int_equal(agent_parse(&o, 3, words), -EINVAL);  /* the process is missing */
	assert_int_equal(agent_parse(&o, 5, words), 0);
	assert_null(o.spool);
}

/* CREMA_SPOOL_BYTES; invalid values are ignored. */
static void test_spool_bound(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {{"12345", 12345},
		     {"3k", 3 << 10},
		     {"5M", 5 << 20},
		     {"2G", UINT64_C(2) << 30},
		     {"0", 0},
		     {"5x", OUTBOX_SPOOL_BYTES},
		     {"5kk", OUTBOX_SPOOL_BYTES},
		     {"-1", OUTBOX_SPOOL_BYTES},
		     {"9999999999999999", OUTBOX_SPOOL_BYTES},
		     {"1048576G", UINT64_C(1) << 50},
		     {"1048577G", OUTBOX_SPOOL_BYTES},
		     {"", OUTBOX_SPOOL_BYTES}};
	struct turns *s = *state;

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		setenv("CREMA_SPOOL_BYTES", cases[i].text, 1);
		attach(s, NOBODY);
		assert_int_equal(s->agent.outbox.spool_max, cases[i].bytes);
		agent_release(&s->agent);
	}
	unsetenv("CREMA_SPOOL_BYTES");
	attach(s, NOBODY);
}

/* Memory of a killed worker: the agent searches for it when it starts, and every minute. */
static void test_sweeping(void **state)
{
	struct turns *s = *state;
	struct crema_shm *left;
	char path[128];

	attach(s, NOBODY);
	snprintf(path, sizeof(path), "%s/crema-%032d", s->dir, 2);
	for (int i = 0; i < 3; i++) {
		if (access(path, F_OK)) {
			left = make_shm(path, s->child);
			left->start_ticks = 1; /* the pid belonged to another process before */
			munmap(left, sizeof(*left));
		}
		near_turn(s, i == 1 ? 59 * SECOND : SECOND);
		assert_int_equal(access(path, F_OK), i == 1 ? 0 : -1);
	}
}

/* The folder is writable for others: it is not used for a spool, nor for files of another name. */
static void test_no_spool(void **state)
{
	struct turns *s = *state;

	assert_int_equal(chmod(s->spool, 0777), 0);
	attach(s, NOBODY);
	assert_string_equal(s->agent.spool, "");
	assert_false(s->agent.has_takeover);
	assert_int_equal(chmod(s->spool, 0700), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		T(test_each_second),
		T(test_hello),
		T(test_hello_with_facts),
		T(test_the_end),
		T(test_what_its_name_tells),
		T(test_the_end_of_a_full_spool),
		T(test_the_last_hello),
		T(test_stopping),
		T(test_stopping_beside_a_worker),
		T(test_leaving),
		T(test_connections),
		T(test_spooling),
		T(test_files_instead),
		T(test_another_agent),
		T(test_clocks),
		cmocka_unit_test(test_arguments),
		T(test_spool_bound),
		T(test_no_spool),
		T(test_sweeping),
	};

	setenv("CREMA_TOKEN_FILE", "/nonexistent/token", 1);
	return cmocka_run_group_tests_name("agent turns", tests, NULL, NULL);
}
