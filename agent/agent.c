/* SPDX-License-Identifier: BSD-3-Clause */
/* agent.c - the agent's rounds: what is done when (agent.h). */
#include "agent/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "agent/sweep.h"
#include "common/clock.h"
#include "common/dirs.h"
#include "common/log.h"
#include "common/procfs.h"
#include "ticks.h"
#include "wire.h"

volatile int agent_stopping;

/* A line about the worker into agent.log. */
static void write_log(const struct agent *a, const char *text, const char *more)
{
	char path[PATH_MAX];
	int fd;

	if (!a->spool[0] || dirs_make_own(a->spool) ||
	    dirs_join(path, sizeof(path), a->spool, "agent.log"))
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0)
		return;
	/* Bounded, whatever happens outside. */
	if (lseek(fd, 0, SEEK_END) < 64 << 10) {
		log_to(fd);
		log_line("worker %d: %s%s", a->options.pid, text, more);
		log_to(2);
	}
	close(fd);
}

/* One line per reason why nothing arrives. */
static void log_trouble(struct agent *a)
{
	char kept[PATH_MAX + 32];

	if (!a->has_link || !a->uplink.trouble[0] || !strcmp(a->logged, a->uplink.trouble))
		return;
	memcpy(a->logged, a->uplink.trouble, sizeof(a->logged));
	snprintf(kept, sizeof(kept), "; records are kept in '%s'", a->spool);
	write_log(a, a->uplink.trouble, kept);
}

/* The collector's verdicts may decide file systems again, and with them tasks and rows. */
static bool look_at_filesystems(struct agent *a)
{
	bool news;

	a->drain.hold = a->has_link && !a->has_verdicts;
	if (a->uplink.has_calibration) {
		a->uplink.has_calibration = false;
		a->has_verdicts = true;
		fskinds_ship(&a->kinds, &a->uplink.calibration, a->uplink.calibration_error);
	}
	news = fskinds_poll(&a->kinds, &a->view, a->ended ? getpid() : a->options.pid);
	if (a->kinds.moved) {
		a->drain.again |= a->kinds.moved;
		a->kinds.moved = 0;
		rows_forget(&a->rows);
	}
	if (a->kinds.trouble[0])
		write_log(a, a->kinds.trouble, "");
	a->kinds.trouble[0] = '\0';
	return news;
}

/* Sends HELLO at the start, and again when the facts or a new file system have arrived. */
static void say_hello(struct agent *a, uint64_t now)
{
	bool news = look_at_filesystems(a);
	const struct crema_probe_text *facts = &a->view.shm->facts;
	uint64_t boot_ns;

	if (__atomic_load_n(&facts->boot_ns, __ATOMIC_RELAXED) != a->hello_facts_ns &&
	    view_probe(facts, &a->stack, &boot_ns)) {
		a->hello_facts_ns = boot_ns;
		ending_facts(&a->ending, &a->stack);
		news = true;
	}
	if (!a->hello_sent && !a->hello_facts_ns && !a->ended && now - a->began_ns < AGENT_FACTS_NS)
		return;
	if (a->hello_sent && !news)
		return;
	buf_clear(&a->hello);
	if (hello_frame(&a->hello, &a->view, &a->kinds, &a->stack, a->outbox.stream))
		return;
	outbox_hello(&a->outbox, a->hello.data, a->hello.len);
	a->hello_sent = true;
	if (a->has_link)
		uplink_new_hello(&a->uplink);
}

static void send_clocks(struct agent *a)
{
	const struct uplink_clock *c = &a->uplink.result;
	msgpack_packer *pk;

	if (!a->has_link || !a->uplink.has_result)
		return;
	a->uplink.has_result = false;
	pk = outbox_begin_map(&a->outbox, OUTBOX_RECORD, CREMA_MSG_CLOCKS);
	pack_kv_u64(pk, "boot_ns", c->boot_ns);
	pack_kv_u64(pk, "real_ns", c->real_ns);
	pack_kv_i64(pk, "offset_ns", c->offset_ns);
	pack_kv_u64(pk, "error_ns", c->error_ns);
	outbox_end_map(&a->outbox, OUTBOX_RECORD);
}

static void sweep(struct agent *a, uint64_t mono_ns, uint64_t boot_ns)
{
	if (a->sweep_ns && mono_ns - a->sweep_ns < SWEEP_EVERY_NS)
		return;
	a->sweep_ns = mono_ns;
	sweep_shm(a->options.shm, boot_ns);
}

/* Rows are sent when they change; dropped ones are sent once there is room again. */
static void tell_again(struct agent *a)
{
	if (a->told_dropped == a->outbox.dropped || a->outbox.file.fd >= 0 ||
	    (a->has_link && !uplink_is_ready(&a->uplink)))
		return;
	a->told_dropped = a->outbox.dropped;
	rows_forget(&a->rows);
	pylines_forget(&a->lines);
}

static void each_second(struct agent *a, uint64_t mono_ns, uint64_t boot_ns)
{
	if (a->second_ns && mono_ns - a->second_ns < AGENT_SECOND_NS)
		return;
	a->second_ns = mono_ns;
	outbox_sync(&a->outbox);
	if (a->ended)
		return;
	ending_look(&a->ending);
	fskinds_recheck(&a->kinds, &a->view, a->options.pid);
	tell_again(a);
	sampler_worker(&a->sampler, a->drain.running, a->drain.unknown.count, mono_ns, boot_ns);
	sampler_host(&a->sampler, mono_ns, boot_ns);
	doing_look(&a->doing, crema_ticks(), clock_boot_ns());
	rows_files(&a->rows, false);
	rows_codecs(&a->rows, false);
	rows_servers(&a->rows, false);
	rows_sections(&a->rows, false);
	rows_columns(&a->rows, a->drain.running > 0, false);
	rows_dask(&a->rows);
	/* A rate by time needs the time of this reading: syncing the spool above may have taken ms.
	 */
	rows_totals(&a->rows, &a->drain.unknown, false, clock_boot_ns());
	sweep(a, mono_ns, boot_ns);
}

static bool worker_ended(const struct agent *a)
{
	return procfs_ended(a->options.pid, a->options.start_ticks);
}

/* The worker's end: sends everything once more, exactly, then goodbye. */
static void finish(struct agent *a, uint64_t mono_ns, uint64_t boot_ns)
{
	unsigned int in_flight;

	a->ended = true;
	a->finished_ns = mono_ns;
	a->leave_ns = mono_ns + AGENT_LINGER_NS;
	a->uplink.retry_ns = 0; /* whatever the last attempt was */
	/* If we saw it alive, it lived until now; otherwise another agent left the last time it was
	 * seen. */
	if (a->drain.last_mono) {
		a->drain.last_mono = mono_ns;
		a->drain.last_boot = boot_ns;
	}
	say_hello(a, mono_ns);
	/* Counts what a full spool drops before the last totals report how much that was. */
	outbox_flush(&a->outbox);
	if (a->outbox.file.fd >= 0)
		outbox_spill(&a->outbox);
	a->outbox.is_last = true;
	in_flight = drain_end(&a->drain);
	stacks_poll(&a->stacks, mono_ns);
	pylines_bytes(&a->lines);
	pylines_large(&a->lines);
	pylines_send(&a->lines, true, mono_ns, boot_ns);
	rows_forget(&a->rows);
	rows_files(&a->rows, true);
	rows_codecs(&a->rows, true);
	rows_servers(&a->rows, true);
	rows_sections(&a->rows, true);
	rows_columns(&a->rows, false, true);
	rows_dask(&a->rows);
	rows_totals(&a->rows, &a->drain.unknown, true, boot_ns);
	ending_goodbye(&a->ending, &a->view, &a->outbox, a->sampler.rss, in_flight, boot_ns);
	outbox_flush(&a->outbox);
}

static void beat(struct agent *a, uint64_t boot_ns)
{
	struct crema_shm *m = a->view.shm;

	if (__atomic_load_n(&m->agent_ready, __ATOMIC_ACQUIRE) != (uint32_t)getpid()) {
		a->adopted = true;
		return;
	}
	__atomic_store_n(&m->agent_heartbeat_boot_ns, boot_ns, __ATOMIC_RELEASE);
	__atomic_store_n(&m->agent_stream_seq, a->outbox.next_seq, __ATOMIC_RELEASE);
	__atomic_store_n(&m->agent_dropped, a->outbox.dropped, __ATOMIC_RELEASE);
}

/* True if it finished in an earlier round: the last records could have reached the collector. A
 * command that waits for the worker's end, as `crema run` does, then finds them on disk. */
static bool was_finished(const struct agent *a, uint64_t mono_ns)
{
	return a->finished_ns && mono_ns > a->finished_ns;
}

/* Its name tells `crema run` when all is kept, and there never was a collector: the last attempt to
 * find one was after the worker's end. */
static void keep_all(struct agent *a, uint64_t mono_ns)
{
	if (outbox_spill(&a->outbox) || !was_finished(a, mono_ns) || !a->has_link || a->was_ready ||
	    uplink_fd(&a->uplink) >= 0 || a->uplink.since_ns < a->finished_ns)
		return;
	outbox_sync(&a->outbox);
	if (!a->outbox.file_dirty)
		prctl(PR_SET_NAME, CREMA_AGENT_WAITS);
}

static void send_all(struct agent *a, uint64_t mono_ns)
{
	bool away = !a->has_link || !uplink_is_ready(&a->uplink);

	if (!away || !a->ready_ns)
		a->ready_ns = mono_ns;
	if (!away && !a->was_ready) {
		a->was_ready = true;
		prctl(PR_SET_NAME, CREMA_AGENT_NAME);
	}
	if (a->has_link && a->hello_sent) {
		uplink_run(&a->uplink, mono_ns);
		log_trouble(a);
	}
	if (a->has_takeover)
		takeover_run(&a->takeover, !away, mono_ns);
	if (!a->hello_sent)
		return;
	if (a->outbox.is_destination || !a->has_link || a->adopted ||
	    (away && (was_finished(a, mono_ns) || mono_ns - a->ready_ns > AGENT_AWAY_NS)) ||
	    a->outbox.memory > OUTBOX_MEMORY || outbox_age(&a->outbox, mono_ns) > AGENT_SLOW_NS)
		keep_all(a, mono_ns);
}

/* Time to exit: all records are safe, nothing will take them, or the wait was long enough. */
static bool is_over(struct agent *a, uint64_t mono_ns)
{
	uint64_t stop_ns = mono_ns + AGENT_STOP_NS;

	if (a->adopted)
		return true;
	if (agent_stopping && (!a->leave_ns || a->leave_ns > stop_ns))
		a->leave_ns = stop_ns;
	if (!a->leave_ns || mono_ns >= a->leave_ns)
		return a->leave_ns != 0;
	return a->finished_ns &&
	       (outbox_is_empty(&a->outbox) || !(a->has_link || a->outbox.is_destination));
}

bool agent_turn(struct agent *a, uint64_t mono_ns, uint64_t boot_ns)
{
	if (!a->finished_ns && (a->ended || worker_ended(a))) {
		finish(a, mono_ns, boot_ns);
	} else if (!a->ended) {
		beat(a, boot_ns);
		say_hello(a, mono_ns);
		if (!a->adopted) {
			descriptors_look(&a->descriptors, &a->view, a->options.pid);
			drain_poll(&a->drain, sampler_rss(&a->sampler), mono_ns, boot_ns);
			stacks_poll(&a->stacks, mono_ns);
			pylines_look(&a->lines, mono_ns);
			pylines_send(&a->lines, false, mono_ns, boot_ns);
			extents_take(&a->rows.extents, &a->view, false);
			each_second(a, mono_ns, boot_ns);
		}
	}
	send_clocks(a);
	outbox_flush(&a->outbox);
	send_all(a, mono_ns);
	if (!is_over(a, mono_ns))
		return true;
	/* Everything is on disk then: the next agent can continue. */
	outbox_spill(&a->outbox);
	outbox_sync(&a->outbox);
	return false;
}
