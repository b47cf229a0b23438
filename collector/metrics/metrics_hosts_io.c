/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics_hosts_io.c - bytes that all processes of the run's hosts moved on networks and disks
 * during the run: the counters of /proc/net/dev, /proc/diskstats and of network file systems
 * (common/mountstats.h) in the agents' host samples.
 *
 * Counters are per host (network: per namespace), so samples from all agents there form one series.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "collector/metrics/metrics_hosts.h"

#define RATE_SECONDS 0.2 /* a rate covers at least this time */

struct shots {
	const struct host_sample **v; /* sorted by time */
	size_t n, cap;
};

static const enum sharing sharing_of[CREMA_HOST_NUMBERS] = {
#define HOST_NUMBER(name, type, column, counts, help) SHARE_##counts,
#include "rows.def"
};

static int by_time(const void *pa, const void *pb)
{
	const struct host_sample *const *a = pa, *const *b = pb;

	return (*a)->time < (*b)->time ? -1 : (*a)->time > (*b)->time;
}

/* All of its samples with this counter, within the time of averages and next to it. */
static int shots_of(const struct run *r, const struct host *host, enum crema_host_number io,
		    struct shots *out)
{
	const struct host_sample **at, *h;
	size_t i, k, from = 0, n;

	*out = (struct shots){0};
	for (i = 0; i < host->n; i++) {
		for (k = 0; k < host->v[i]->hosts.n; k++) {
			h = &host->v[i]->hosts.v[k];
			if (isnan(h->time) || isnan(h->number[io]))
				continue;
			at = ARRAY_NEW(out);
			if (!at)
				return -ENOMEM;
			*at = h;
		}
	}
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_time);
	while (from + 1 < out->n && out->v[from + 1]->time <= r->from)
		from++;
	for (n = from; n < out->n && (n == from || out->v[n - 1]->time < r->to); n++)
		out->v[n - from] = out->v[n];
	out->n = n - from;
	return 0;
}

/* The number that must not change, because a change of it also changes the sum; `io`: none. */
static enum crema_host_number base_of(enum crema_host_number io)
{
	switch (io) {
	case CREMA_HOST_N_nfs_read_bytes:
	case CREMA_HOST_N_nfs_server_read_bytes:
		return CREMA_HOST_N_nfs_set;
	case CREMA_HOST_N_lustre_read_bytes:
	case CREMA_HOST_N_lustre_server_read_bytes:
		return CREMA_HOST_N_lustre_set;
	default:
		return io;
	}
}

/* Between the samples around the run; unknown if a counter has fallen (an interface is gone), or if
 * mounts were added or removed. */
static struct value bytes_on(const struct run *r, const struct host *host,
			     enum crema_host_number io)
{
	enum crema_host_number base = base_of(io);
	struct shots s;
	struct value v = value_null();
	bool falls = shots_of(r, host, io, &s) != 0;
	size_t i;

	for (i = 1; i < s.n; i++)
		falls = falls || s.v[i]->number[io] < s.v[i - 1]->number[io] ||
			(base != io && s.v[i]->number[base] != s.v[i - 1]->number[base]);
	if (s.n > 1 && !falls)
		v = value_uint((uint64_t)(s.v[s.n - 1]->number[io] - s.v[0]->number[io]));
	free(s.v);
	return v;
}

static struct value bytes(const struct facts *f, enum crema_host_number io)
{
	enum sharing by = sharing_of[io];
	struct value sum = value_null(), v;
	size_t i;

	for (i = 0; i < f->hosts->by[by].n; i++) {
		v = bytes_on(f->run, &f->hosts->by[by].v[i], io);
		sum = i ? value_plus(sum, v) : v;
	}
	return sum;
}

struct rates {
	enum crema_host_number io;
	double most;	/* bytes per second; NAN */
	struct json *j; /* NULL: only the highest */
};

/* From sample a to b; each point of a host's series has both directions. */
static void see_rate(struct rates *to, const struct host_sample *a, const struct host_sample *b)
{
	double seconds = b->time - a->time, in, out;
	char text[40];

	in = (b->number[to->io] - a->number[to->io]) / seconds;
	if (in >= 0)
		to->most = fmax(to->most, in);
	if (!to->j)
		return;
	out = (b->number[to->io + 1] - a->number[to->io + 1]) / seconds;
	emit_object(to->j, NULL);
	emit_value(to->j, "timestamp", value_text(iso_time(b->time, text, sizeof(text))));
	emit_value(to->j, "seconds", value_real(seconds));
	emit_value(to->j, "read_bytes_per_second", in >= 0 ? value_real(in) : value_null());
	emit_value(to->j, "write_bytes_per_second", out >= 0 ? value_real(out) : value_null());
	emit_end(to->j);
}

static void rates_of(const struct run *r, const struct host *host, struct rates *to)
{
	struct shots s;
	size_t i, last = 0;

	if (shots_of(r, host, to->io, &s) && to->j)
		to->j->sink->error = -ENOMEM;
	for (i = 1; i < s.n; i++) {
		if (s.v[i]->time - s.v[last]->time < RATE_SECONDS)
			continue;
		see_rate(to, s.v[last], s.v[i]);
		last = i;
	}
	free(s.v);
}

/* The highest rate between two samples of one host. */
static struct value peak(const struct facts *f, enum crema_host_number io)
{
	struct rates to = {.io = io, .most = (double)NAN};
	enum sharing by = sharing_of[io];
	size_t i;

	for (i = 0; i < f->hosts->by[by].n; i++)
		rates_of(f->run, &f->hosts->by[by].v[i], &to);
	return value_real(to.most / 1e6);
}

static void emit_io(const struct facts *f, enum crema_host_number io, const char *name,
		    struct json *j)
{
	struct rates to = {.io = io, .j = j};
	enum sharing by = sharing_of[io];
	size_t i;

	emit_array(j, name);
	for (i = 0; i < f->hosts->by[by].n; i++) {
		emit_object(j, NULL);
		emit_value(j, "host", value_text(f->hosts->by[by].v[i].first->host));
		emit_array(j, "points");
		rates_of(f->run, &f->hosts->by[by].v[i], &to);
		emit_end(j);
		emit_end(j);
	}
	emit_end(j);
}

#define BYTES(id, io)                                                                              \
	struct value metric_host_##id##_bytes(const struct facts *f)                               \
	{                                                                                          \
		return bytes(f, io);                                                               \
	}
#define IO(id, io)                                                                                 \
	BYTES(id, io)                                                                              \
	struct value metric_host_##id##_peak_mbs(const struct facts *f)                            \
	{                                                                                          \
		return peak(f, io);                                                                \
	}

IO(net_read, CREMA_HOST_N_net_read_bytes)
IO(net_write, CREMA_HOST_N_net_write_bytes)
IO(disk_read, CREMA_HOST_N_disk_read_bytes)
IO(disk_write, CREMA_HOST_N_disk_write_bytes)
BYTES(nfs_read, CREMA_HOST_N_nfs_read_bytes)
BYTES(nfs_server_read, CREMA_HOST_N_nfs_server_read_bytes)
BYTES(lustre_read, CREMA_HOST_N_lustre_read_bytes)
BYTES(lustre_server_read, CREMA_HOST_N_lustre_server_read_bytes)

void metric_host_net_io(const struct facts *f, const char *name, struct json *j)
{
	emit_io(f, CREMA_HOST_N_net_read_bytes, name, j);
}

void metric_host_disk_io(const struct facts *f, const char *name, struct json *j)
{
	emit_io(f, CREMA_HOST_N_disk_read_bytes, name, j);
}
