/* SPDX-License-Identifier: BSD-3-Clause */
/* setup.c - the agent's command line, attaching, and what it opens (agent.h). */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/agent.h"
#include "common/clock.h"
#include "common/dirs.h"
#include "common/log.h"
#include "common/procfs.h"

#define SPOOL_BYTES_MOST (UINT64_C(1) << 50)

int agent_parse(struct agent_options *o, int argc, char **argv)
{
	memset(o, 0, sizeof(*o));
	for (int i = 1; i + 1 < argc; i += 2) {
		const char *v = argv[i + 1];

		if (strcmp(argv[i], "--shm") == 0)
			o->shm = v;
		else if (strcmp(argv[i], "--pid") == 0)
			o->pid = (int)strtol(v, NULL, 10);
		else if (strcmp(argv[i], "--start-ticks") == 0)
			o->start_ticks = strtoull(v, NULL, 10);
		else if (strcmp(argv[i], "--collector") == 0)
			o->collector = v;
		else if (strcmp(argv[i], "--spool") == 0)
			o->spool = v;
		else
			return -EINVAL;
	}
	return o->shm && o->pid > 0 && argc % 2 == 1 ? 0 : -EINVAL;
}

static int spool_dir(struct agent *a)
{
	char state[PATH_MAX];
	int rc;

	if (a->options.spool) {
		if (strlen(a->options.spool) >= sizeof(a->spool))
			return -ENAMETOOLONG;
		memcpy(a->spool, a->options.spool, strlen(a->options.spool) + 1);
		return 0;
	}
	rc = dirs_state(state, sizeof(state), NULL);
	return rc ? rc : dirs_join(a->spool, sizeof(a->spool), state, "spool");
}

/* False if another user can write there: that data would be sent as ours. */
static bool spool_is_ours(const struct agent *a)
{
	char line[PATH_MAX + 128];

	if (dirs_check_own(a->spool) != -EPERM)
		return true;
	log_line("agent of worker %d: no spool: %s", a->options.pid,
		 dirs_explain(line, sizeof(line), -EPERM, a->spool));
	return false;
}

/* `crema run` reads here which records belong to its command (collector/cmd/run_line.h). */
static void name_worker(const struct agent_options *o)
{
	const char *path = getenv("CREMA_RUN_FILE");
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC) : -1;
	char line[64];
	int n = snprintf(line, sizeof(line), "%d %llu\n", o->pid,
			 (unsigned long long)o->start_ticks);

	if (fd < 0)
		return;
	if (write(fd, line, (size_t)n) != n)
		log_line("agent of worker %d: cannot write to '%s'", o->pid, path);
	close(fd);
}

/* The pidfd refers to the intended process if its start time was right before and after. */
static int open_worker(struct agent *a)
{
	struct procfs_stat st;
	int pid = a->options.pid;

	a->pidfd = -1;
	if (procfs_ended(pid, a->options.start_ticks)) {
		a->ended = true;
		return 0;
	}
	if (procfs_stat(pid, 0, &st) == 0 && !a->options.start_ticks)
		a->options.start_ticks = st.start_ticks;
	a->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (a->pidfd >= 0 && procfs_ended(pid, a->options.start_ticks)) {
		close(a->pidfd);
		a->pidfd = -1;
		a->ended = true;
	}
	return 0;
}

static bool other_agent_lives(const struct crema_shm *m)
{
	uint64_t beat = __atomic_load_n(&m->agent_heartbeat_boot_ns, __ATOMIC_ACQUIRE);
	uint32_t pid = __atomic_load_n(&m->agent_ready, __ATOMIC_ACQUIRE);
	uint64_t now = clock_boot_ns();

	return pid && pid != (uint32_t)getpid() && now >= beat && now - beat < AGENT_FRESH_NS &&
	       (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

static int next_record(void *arg, const unsigned char **p, size_t *bytes)
{
	return outbox_next(arg, p, bytes);
}

static void rewind_records(void *arg, uint64_t seq)
{
	outbox_rewind(arg, seq);
}

static void records_acked(void *arg, uint64_t seq)
{
	outbox_acked(arg, seq);
}

/* CREMA_SPOOL_BYTES, with k, M or G; anything else is ignored. */
static void take_spool_bound(struct outbox *o)
{
	static const char units[] = "kMG";
	const char *text = getenv("CREMA_SPOOL_BYTES"), *unit;
	uint64_t bytes;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return;
	bytes = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if ((*end && (!unit || end[1])) || bytes > SPOOL_BYTES_MOST)
		return;
	for (long steps = unit ? unit - units + 1 : 0; steps > 0 && bytes <= SPOOL_BYTES_MOST;
	     steps--)
		bytes <<= 10;
	if (bytes <= SPOOL_BYTES_MOST)
		o->spool_max = bytes;
}

static void open_outbox(struct agent *a)
{
	const struct crema_shm *m = a->view.shm;
	struct net_address address;
	uint64_t stream = clock_real_ns();
	bool ok = a->options.collector && *a->options.collector &&
		  net_parse(&address, a->options.collector, CREMA_DEFAULT_PORT) == 0;

	if (ok && address.kind == NET_DIR) {
		outbox_init(&a->outbox, m->worker, stream, address.path, true);
		return;
	}
	outbox_init(&a->outbox, m->worker, stream, a->spool, false);
	take_spool_bound(&a->outbox);
	if (!ok)
		return;
	a->source = (struct uplink_source){&a->outbox,	     a->outbox.worker, stream,
					   &a->outbox.hello, next_record,      rewind_records,
					   records_acked};
	tls_settings_from_environment(&a->security.settings, "worker", a->security.why,
				      sizeof(a->security.why));
	uplink_init(&a->uplink, &address, &a->source, &a->security);
	a->has_link = true;
	if (a->spool[0]) {
		takeover_init(&a->takeover, a->spool, &address, &a->security);
		a->has_takeover = true;
	}
}

int agent_init(struct agent *a, const struct agent_options *o)
{
	int rc;

	memset(a, 0, sizeof(*a));
	a->options = *o;
	a->view.fd = -1;
	a->pidfd = -1;
	a->outbox.file.fd = -1;
	a->outbox.reader.fd = -1;
	a->sampler.lock_fd = -1;
	if (spool_dir(a) || !spool_is_ours(a))
		a->spool[0] = '\0';
	rc = view_open(&a->view, o->shm, (uint32_t)o->pid, o->start_ticks);
	if (rc)
		return rc;
	if (other_agent_lives(a->view.shm))
		return -EALREADY;
	rc = redact_init(&a->redact);
	if (rc)
		return rc;
	a->view.redact = &a->redact;
	open_worker(a);
	name_worker(&a->options);
	__atomic_store_n(&a->view.shm->agent_heartbeat_boot_ns, clock_boot_ns(), __ATOMIC_RELEASE);
	__atomic_store_n(&a->view.shm->agent_ready, (uint32_t)getpid(), __ATOMIC_RELEASE);
	view_repair(&a->view);
	open_outbox(a);
	a->outbox.dropped = __atomic_load_n(&a->view.shm->agent_dropped, __ATOMIC_ACQUIRE);
	rows_init(&a->rows, &a->view, &a->outbox, &a->kinds);
	stacks_init(&a->stacks, &a->view, &a->outbox, &a->lines, o->pid);
	sampler_init(&a->sampler, &a->view, &a->outbox, o->pid, o->collector);
	a->rows.note = a->sampler.heap.note;
	pylines_init(&a->lines, &a->view, &a->outbox, o->pid);
	ending_init(&a->ending, o->pid);
	a->began_ns = clock_mono_ns();
	rc = doing_init(&a->doing, &a->view, &a->outbox, o->pid);
	if (rc)
		return rc;
	return drain_init(&a->drain, &a->view, &a->outbox, &a->kinds, o->pid);
}

void agent_release(struct agent *a)
{
	bool remove = a->ended && !a->adopted;

	if (a->has_link)
		uplink_release(&a->uplink);
	if (a->has_takeover)
		takeover_release(&a->takeover);
	tls_context_free(a->security.context);
	outbox_release(&a->outbox);
	drain_release(&a->drain);
	fskinds_release(&a->kinds);
	rows_release(&a->rows);
	stacks_release(&a->stacks);
	pylines_release(&a->lines);
	doing_release(&a->doing);
	sampler_release(&a->sampler);
	buf_release(&a->stack);
	buf_release(&a->hello);
	if (a->pidfd >= 0)
		close(a->pidfd);
	view_close(&a->view, remove);
}
