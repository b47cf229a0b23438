/* SPDX-License-Identifier: BSD-3-Clause */
/* test_agent_proc.c - how the agent reads the kernel's files: fixed texts, known numbers. */
#include "tests/unit/values.h"

#include "tests/unit/fake_proc.h"

#include <sys/time.h>
#include <sys/resource.h>
#include <time.h>

#include "common/procfs.h"
#include "agent/sampler.h"

#define STAT(state, flags, threads, start)                                                         \
	"7 (a) b (R 9) " state " 41 1 2 3 4 " flags " 5 6 7 8 9 10 11 12 13 14 " threads           \
	" 15 " start " 16 17\n"

static int real_proc(void **state)
{
	(void)state;
	fake_proc = NULL;
	return 0;
}

static void test_stat(void **state)
{
	const struct fake_file files[] = {
		{"/proc/7/stat", STAT("S", "4194304", "20", "987654321")},
		{"/proc/8/stat", STAT("Z", "4194308", "1", "987654321")},
		{"/proc/9/stat", STAT("Z", "4194308", "2", "987654321")},
		{"/proc/10/stat", "10 (cut"},
		{"/proc/11/stat", "11 (cut) R 1 2"},
		{"/proc/7/task/9/stat",
		 "9 (a) worker) D 41 7 7 0 -1 64 0 0 0 0 0 0 0 0 20 0 20 0 5 0"},
		{"/proc/12/stat", STAT("X", "4194308", "1", "5")},
		{NULL, NULL},
	};
	struct procfs_stat st;

	(void)state;
	fake_proc = files;
	assert_int_equal(procfs_stat(7, 0, &st), 0);
	assert_int_equal(st.state, 'S');
	assert_int_equal(st.ppid, 41);
	assert_int_equal(st.threads, 20);
	assert_int_equal(st.start_ticks, 987654321);
	assert_false(st.exiting);
	assert_int_equal(procfs_stat(7, 9, &st), 0);
	assert_int_equal(st.state, 'D');
	assert_int_equal(procfs_stat(7, 10, &st), -ENOENT);
	assert_int_equal(procfs_stat(8, 0, &st), 0);
	assert_true(st.exiting);
	assert_int_equal(procfs_stat(10, 0, &st), -EPROTO);
	assert_int_equal(procfs_stat(11, 0, &st), -EPROTO);
	assert_int_equal(procfs_stat(13, 0, &st), -ENOENT);
	assert_false(procfs_ended(7, 0));
	assert_false(procfs_ended(7, 987654321));
	assert_true(procfs_ended(7, 987654320));
	assert_true(procfs_ended(8, 987654321));
	assert_false(procfs_ended(9, 987654321)); /* other threads are alive */
	assert_false(procfs_ended(11, 1));	  /* unknown */
	assert_true(procfs_ended(12, 5));
	assert_true(procfs_ended(13, 0));
}

static void test_numbers(void **state)
{
	static const char text[] =
		"a b: 1\nread: 77 kB\nrea: 5\nnone: x\n  big: 9\nmax 18446744073709551615";
	const struct fake_file files[] = {
		{"/proc/7/statm", "100 37 3 1 0 5 0\n"},
		{"/proc/8/statm", "100 0 3 1 0 5 0\n"},
		{"/proc/7/io", "rchar: 1\nread_bytes: 4096\nwrite_bytes: 12288\n"},
		{"/proc/7/task/70/io", "read_bytes: 111\nwrite_bytes: 222\n"},
		{"/proc/8/io", "read_bytes: 4096\n"},
		{"/proc/7/task/70/schedstat", "123456 789 12\n"},
		{"/proc/7/task/71/schedstat", "123456\n"},
		{NULL, NULL},
	};
	uint64_t v = 3, w = 4, page = (uint64_t)sysconf(_SC_PAGESIZE);

	(void)state;
	assert_true(procfs_number(text, "read: ", &v) && v == 77);
	assert_true(procfs_number(text, "rea: ", &v) && v == 5);
	assert_true(procfs_number(text, "max ", &v) && v == UINT64_MAX);
	v = 3;
	assert_false(procfs_number(text, "none: ", &v));
	assert_false(procfs_number(text, "big: ", &v)); /* not at the beginning of its line */
	assert_int_equal(v, 3);
	fake_proc = files;
	assert_true(procfs_rss(7, &v) && v == 37 * page);
	assert_false(procfs_rss(8, &v) || procfs_rss(9, &v));
	assert_true(procfs_io(7, 0, &v, &w) && v == 4096 && w == 12288);
	assert_true(procfs_io(7, 70, &v, &w) && v == 111 && w == 222);
	assert_false(procfs_io(8, 0, &v, &w) || procfs_io(9, 0, &v, &w));
	assert_true(v == 111 && w == 222);
	assert_true(procfs_schedstat(7, 70, &v, &w) && v == 123456 && w == 789);
	assert_false(procfs_schedstat(7, 71, &v, &w) || procfs_schedstat(7, 72, &v, &w));
}

static void test_slurp(void **state)
{
	const struct fake_file files[] = {{"/proc/7/x", "0123456789"}, {NULL, NULL}};
	char text[32];

	(void)state;
	fake_proc = files;
	memset(text, 'x', sizeof(text));
	assert_int_equal(procfs_slurp(text, sizeof(text), "/proc/%d/x", 7), 10);
	assert_string_equal(text, "0123456789");
	assert_int_equal(procfs_slurp(text, 5, "/proc/%d/x", 7), 4);
	assert_string_equal(text, "0123");
	assert_int_equal(procfs_slurp(text, 5, "/proc/%d/x", 8), -ENOENT);
}

static void test_oom_kills(void **state)
{
	static const char v1[] = "5:cpu,cpuacct:/jobs\n4:memory:/jobs/7\n0::/unified\n";
	const struct fake_file files[] = {
		{"/proc/7/cgroup", v1},
		{"/sys/fs/cgroup/memory/jobs/7/memory.oom_control", "under_oom 0\noom_kill 3\n"},
		{"/proc/8/cgroup", "0::/a/b\n"},
		{"/sys/fs/cgroup/a/b/memory.events", "oom 4\noom_kill 12\n"},
		{"/proc/9/cgroup", "3:cpu,memory:/named/outside\n"},
		{"/sys/fs/cgroup/memory/memory.oom_control", "oom_kill 0\n"},
		{"/proc/10/cgroup", "0::/nothing/there\n"},
		{"/proc/11/cgroup", "0::/no/end"},
		{NULL, NULL},
	};
	static const struct {
		int pid;
		const char *file;
		uint64_t kills;
	} due[] = {
		{7, "/sys/fs/cgroup/memory/jobs/7/memory.oom_control", 3},
		{8, "/sys/fs/cgroup/a/b/memory.events", 12},
		{9, "/sys/fs/cgroup/memory/memory.oom_control", 0},
	};
	char file[PATH_MAX];
	uint64_t kills;

	(void)state;
	fake_proc = files;
	for (size_t i = 0; i < COUNT_OF(due); i++) {
		kills = 99;
		assert_true(procfs_oom_file(due[i].pid, file, sizeof(file)));
		assert_string_equal(file, due[i].file);
		assert_true(procfs_oom_kills(file, &kills) && kills == due[i].kills);
	}
	for (int pid = 10; pid <= 12; pid++)
		assert_false(procfs_oom_file(pid, file, sizeof(file)));
	assert_false(procfs_oom_file(8, file, 10));
}

static uint64_t process_cpu_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return ((uint64_t)u.ru_utime.tv_sec + (uint64_t)u.ru_stime.tv_sec) * SECOND +
	       ((uint64_t)u.ru_utime.tv_usec + (uint64_t)u.ru_stime.tv_usec) * 1000;
}

/* getrusage's sum is truncated to microseconds twice. */
#define CUT_NS 2000u

static void test_cpu(void **state)
{
	uint64_t before = process_cpu_ns(), between = 0, after;

	(void)state;
	assert_true(procfs_cpu(getpid(), &between));
	after = process_cpu_ns();
	assert_in_range(between, before, after + CUT_NS);
	assert_false(procfs_cpu((1 << 22) + 1, &between)); /* not a pid */
}

static double number(const msgpack_object *map, const char *name)
{
	double v = -1;

	assert_true(object_f64(get(map, name), &v));
	return v;
}

static const msgpack_object *worker_sample(struct fake *f, struct sampler *s, uint64_t unknown)
{
	ack_all(f);
	sampler_worker(s, 17, unknown, f->now, f->now + 5);
	look(f);
	assert_int_equal(f->types[CREMA_MSG_SAMPLE], 1);
	assert_true(f->out.head->light);
	return message(f, CREMA_MSG_SAMPLE, 0);
}

static void test_sample(void **state)
{
	char paths[3][64];
	const struct fake_file files[] = {
		{paths[0], "Name:\tx\nVmHWM:\t 8000 kB\nRssAnon:\t 555 kB\nRssFile:\t 66 "
			   "kB\nRssShmem:\t 7 kB\nThreads:\t23\n"},
		{paths[1], "read_bytes: 4096\nwrite_bytes: 12288\n"},
		{paths[2], "100 37 3 1 0 5 0\n"},
		{NULL, NULL},
	};
	struct fake *f = *state;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), cpu[2], step = 10 * SECOND;
	const msgpack_object *m;
	struct sampler s;
	double percent;

	snprintf(paths[0], 64, "/proc/%d/status", getpid());
	snprintf(paths[1], 64, "/proc/%d/io", getpid());
	snprintf(paths[2], 64, "/proc/%d/statm", getpid());
	fake_proc = files;
	f->shm->totals.tasks_done = 41;
	fill(&f->shm->totals.tasks, sizeof(f->shm->totals.tasks), 1);
	fill(&f->shm->totals.unattributed, sizeof(f->shm->totals.unattributed), 2);
	sampler_init(&s, &f->view, &f->out, getpid(), NULL);
	cpu[0] = process_cpu_ns();
	m = worker_sample(f, &s, 0);
	assert_in_range((uint64_t)(number(m, "cpu_seconds") * 1e9 + .5), cpu[0],
			process_cpu_ns() + CUT_NS);
	assert_nil(m, "cpu_percent");
	assert_nil(m, "rss_bytes");
	assert_number(m, "boot_ns", f->now + 5);
	assert_number(m, "rss_anon_bytes", 555 * 1024);
	assert_number(m, "rss_file_bytes", 66 * 1024);
	assert_number(m, "rss_shmem_bytes", 7 * 1024);
	assert_nil(m, "heap_bytes"); /* maps is not among these files */
	assert_nil(m, "heap_returnable_bytes");
	assert_number(m, "hwm_bytes", 8000 * 1024);
	assert_number(m, "threads", 23);
	assert_number(m, "io_read_bytes", 4096);
	assert_number(m, "io_write_bytes", 12288);
	assert_number(m, "tasks_running", 17);
	assert_number(m, "tasks_done", 41);
	/* A second one: CPU time of ten seconds that did not pass. */
	assert_int_equal(sampler_rss(&s), 37 * page);
	cpu[0] = process_cpu_ns();
	while (process_cpu_ns() < cpu[0] + SECOND / 20)
		;
	f->now += step;
	m = worker_sample(f, &s, 0);
	cpu[1] = process_cpu_ns();
	percent = number(m, "cpu_percent");
	assert_true(percent >= 100. * SECOND / 20 / (double)step);
	assert_true(percent <= 100. * (double)(cpu[1] - cpu[0] + SECOND / 50) / (double)step);
	assert_number(m, "rss_bytes", 37 * page);
	fake_proc = files + 1;
	assert_nil(worker_sample(f, &s, 0), "hwm_bytes");
	fake_proc = files + 2;
	assert_nil(worker_sample(f, &s, 0), "io_read_bytes");
}

static void test_sampled_counts(void **state)
{
	static const char *const names[] = {
#define TIME(id, ...)
#define COUNT(id, unit, ...) #id,
#include "counters.def"
#undef TIME
#undef COUNT
	};
	struct fake *f = *state;
	struct crema_totals *t = &f->shm->totals;
	const msgpack_object *m;
	struct sampler s;

	fill(&t->tasks, sizeof(t->tasks), 1);
	fill(&t->unattributed, sizeof(t->unattributed), 2);
	t->count_unknown = CREMA_COUNT_BIT(mapped_bytes);
	sampler_init(&s, &f->view, &f->out, getpid(), NULL);
	m = worker_sample(f, &s,
			  CREMA_COUNT_BIT(write_bytes) | CREMA_COUNT_BIT(network_read_bytes));
	for (int i = 0; i < CREMA_COUNTS; i++) {
		if (i == CREMA_C_mapped_bytes || i == CREMA_C_write_bytes)
			assert_nil(m, names[i]);
		else
			assert_number(m, names[i], t->tasks.count[i] + t->unattributed.count[i]);
	}
	t->count_unknown = 0;
	t->claimed_network_read_bytes = UINT64_MAX;
	assert_nil(worker_sample(f, &s, 0), "network_read_bytes");
	t->claimed_network_read_bytes = 0;
	t->threads_refused = 1;
	assert_nil(worker_sample(f, &s, 0), "read_bytes");
}

static void test_resident_memory(void **state)
{
	struct fake_file files[] = {{"/proc/7/statm", "9 5 1"}, {NULL, NULL}};
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct fake *f = *state;
	struct sampler s;

	sampler_init(&s, &f->view, &f->out, 7, NULL);
	fake_proc = files;
	assert_int_equal(sampler_rss(&s), 5 * page);
	files[0].text = "9 8 1";
	assert_int_equal(sampler_rss(&s), 8 * page);
	files[0].text = "9 6 1";
	assert_int_equal(sampler_rss(&s), 6 * page);
	assert_int_equal(s.rss, 6 * page);
	assert_int_equal(s.rss_max, 8 * page);
	files[0].text = "";
	assert_int_equal(sampler_rss(&s), 0);
	assert_int_equal(s.rss, 6 * page); /* the last known value */
}

static struct fake_file host_files[] = {
	{"/proc/stat", "cpu  100 20 3000 40000 500000 6 7 8 9 10\ncpu0 1 1 1 1 1 1 1 1\n"},
	{"/proc/meminfo", "MemTotal:     2000 kB\nMemFree: 3 kB\nMemAvailable:  700 kB\n"},
	{"/proc/loadavg", "1.25 2.00 3.00 1/100 42\n"},
	{"/proc/net/dev", "Inter-|   Receive  | Transmit\n face |bytes\n"
			  "    lo: 9999 1 1 1 1 1 1 1 9999 1 1 1 1 1 1 1\n"
			  "  eth0: 1000 1 2 3 4 5 6 7 30000 1 2 3 4 5 6 7\n"
			  "docker0:  77 1 2 3 4 5 6 7 88 1 2 3 4 5 6 7\n"
			  "  eth1:  200 1 2 3 4 5 6 7 5000 1 2 3 4 5 6 7\n"},
	{"/proc/diskstats", "8 0 sda 1 2 30 4 5 6 700 8 9 10 11\n"
			    "8 1 sda1 1 2 30 4 5 6 700 8 9 10 11\n"
			    "253 0 dm-0 1 2 30 4 5 6 700 8 9 10 11\n"
			    "7 0 loop0 1 2 30 4 5 6 700 8 9 10 11\n"
			    "9 0 md0 1 2 30 4 5 6 700 8 9 10 11\n"
			    "1 0 ram0 1 2 30 4 5 6 700 8 9 10 11\n"
			    "259 0 nvme0n1 1 2 5000 4 5 6 60000 8 9 10 11\n"},
	{"/proc/self/mountstats", "device srv:/d mounted on /d with fstype nfs4 statvers=1.1\n"
				  "\tbytes:\t31000 0 5 0 12100 0 0 0\n"},
	{"/proc/self/mountinfo", "31 21 0:51 / /d rw - nfs4 srv:/d rw,vers=4.2\n"},
	{"/sys/block/sda", ""},
	{"/sys/block/dm-0", ""},
	{"/sys/block/loop0", ""},
	{"/sys/block/md0", ""},
	{"/sys/block/ram0", ""},
	{"/sys/block/nvme0n1", ""},
	{"/sys/class/net/eth0/device", ""},
	{"/sys/class/net/eth1/device", ""},
	{NULL, NULL},
};

static const msgpack_object *host_sample(struct fake *f, struct sampler *s)
{
	ack_all(f);
	sampler_host(s, f->now, f->now + 5);
	look(f);
	return message(f, CREMA_MSG_HOST, 0);
}

static void test_host(void **state)
{
	struct fake *f = *state;
	const msgpack_object *m;
	struct sampler s;

	sampler_init(&s, &f->view, &f->out, getpid(), "a.host:1");
	fake_proc = host_files;
	m = host_sample(f, &s);
	assert_number(m, "boot_ns", f->now + 5);
	assert_nil(m, "cpu_percent");
	assert_true(number(m, "stolen_seconds") == 8. / (double)sysconf(_SC_CLK_TCK));
	assert_number(m, "memory_total_bytes", 2000 * 1024);
	assert_number(m, "memory_available_bytes", 700 * 1024);
	assert_true(number(m, "load1") == 1.25);
	assert_number(m, "net_read_bytes", 1200);
	assert_number(m, "net_write_bytes", 35000);
	assert_number(m, "disk_read_bytes", 5030 * 512);
	assert_number(m, "disk_write_bytes", 60700 * 512);
	assert_number(m, "nfs_read_bytes", 31005);
	assert_number(m, "nfs_server_read_bytes", 12100);
	assert_true(number(m, "nfs_set") > 0);
	assert_number(m, "lustre_read_bytes", 0); /* not mounted */
	assert_number(m, "lustre_set", 0);
	/* 1 + 2 + 3 + 6 + 7 + 8 busy, 40 + 33 idle or waiting: 27 of 100 */
	host_files[0].text = "cpu  101 22 3003 40040 500033 12 14 16 9 10\n";
	assert_true(number(host_sample(f, &s), "cpu_percent") == 27);
	assert_nil(host_sample(f, &s), "cpu_percent"); /* no time has passed */
	host_files[0].text = "cpu  1 2 3\n";
	m = host_sample(f, &s);
	assert_nil(m, "cpu_percent");
	assert_nil(m, "stolen_seconds");
	sampler_release(&s);
}

/* Without hardware, as in a container: all interfaces except loopback. Missing files. */
static void test_host_of_a_container(void **state)
{
	static const struct fake_file bare[] = {
		{"/proc/net/dev", "    lo: 9999 1 1 1 1 1 1 1 9999 1 1 1 1 1 1 1\n"
				  "  eth0: 1000 1 2 3 4 5 6 7 30000 1 2 3 4 5 6 7\n"
				  "  eth9:  500 1 2 3 4 5 6 7 600 1 2 3 4 5 6 7\n"},
		{NULL, NULL},
	};
	static const char *const unknown[] = {"cpu_percent",
					      "stolen_seconds",
					      "memory_total_bytes",
					      "memory_available_bytes",
					      "load1",
					      "disk_read_bytes",
					      "disk_write_bytes",
					      "nfs_set",
					      "nfs_read_bytes",
					      "nfs_server_read_bytes",
					      "lustre_set",
					      "lustre_read_bytes"};
	struct fake *f = *state;
	const msgpack_object *m;
	struct sampler s;

	sampler_init(&s, &f->view, &f->out, getpid(), "a.host:1");
	fake_proc = bare;
	m = host_sample(f, &s);
	assert_number(m, "net_read_bytes", 1500);
	assert_number(m, "net_write_bytes", 30600);
	for (size_t i = 0; i < COUNT_OF(unknown); i++)
		assert_nil(m, unknown[i]);
	fake_proc = bare + 1;
	m = host_sample(f, &s);
	assert_nil(m, "net_read_bytes");
	assert_nil(m, "net_write_bytes");
	sampler_release(&s);
}

/* Nothing stolen so far: on a virtual machine the hypervisor may not report it. */
static void test_stolen_time(void **state)
{
	static const struct {
		const char *ticks, *cpuinfo;
		bool known;
	} cases[] = {
		{"cpu 1 1 1 1 1 1 1 0\n", "x: 1\nflags\t: fpu hypervisor sse\n", false},
		{"cpu 1 1 1 1 1 1 1 0\n", "x: 1\nflags\t: fpu sse\nbugs: hypervisor\n", true},
		{"cpu 1 1 1 1 1 1 1 0\n", "x: 1\n", false},
		{"cpu 1 1 1 1 1 1 1 9\n", "x: 1\nflags\t: fpu hypervisor sse\n", true},
	};
	struct fake_file files[] = {{"/proc/stat", ""}, {"/proc/cpuinfo", ""}, {NULL, NULL}};
	struct fake *f = *state;
	struct sampler s;

	sampler_init(&s, &f->view, &f->out, getpid(), "a.host:1");
	fake_proc = files;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		files[0].text = cases[i].ticks;
		files[1].text = cases[i].cpuinfo;
		assert_int_equal(!is_nil(get(host_sample(f, &s), "stolen_seconds")),
				 cases[i].known);
	}
	sampler_release(&s);
}

/* One agent per collector sends; another one takes over after five seconds. */
static void test_one_host_sampler(void **state)
{
	struct fake *f = *state;
	struct sampler first, second, elsewhere;

	sampler_init(&first, &f->view, &f->out, getpid(), "a.host:1");
	sampler_init(&second, &f->view, &f->out, getpid(), "a.host:1");
	sampler_init(&elsewhere, &f->view, &f->out, getpid(), "b.host:1");
	fake_proc = host_files;
	assert_non_null(host_sample(f, &first));
	assert_null(host_sample(f, &second));
	assert_non_null(host_sample(f, &elsewhere));
	sampler_release(&first);
	f->now += 5 * SECOND - 1;
	assert_null(host_sample(f, &second));
	f->now += 1;
	assert_non_null(host_sample(f, &second));
	assert_null(host_sample(f, &first));
	sampler_release(&second);
	sampler_release(&elsewhere);
}

static int proc_teardown(void **state)
{
	real_proc(state);
	return teardown(state);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, proc_teardown)
#define P(name) cmocka_unit_test_teardown(name, real_proc)
	const struct CMUnitTest tests[] = {
		P(test_stat),
		P(test_numbers),
		P(test_slurp),
		P(test_oom_kills),
		P(test_cpu),
		T(test_sample),
		T(test_sampled_counts),
		T(test_resident_memory),
		T(test_host),
		T(test_host_of_a_container),
		T(test_stolen_time),
		T(test_one_host_sampler),
	};

	return cmocka_run_group_tests_name("agent proc", tests, NULL, NULL);
}
