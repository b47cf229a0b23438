/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * metrics_hosts.h - groups a run's workers by shared host and shared network.
 *
 * facts_build() groups them once, in time linear in the workers. A group lists all workers of the
 * model that share the place with one of the run: any worker's agent may have sent a host's
 * samples. Groups are in the order of the run's workers, members in the model's. The workers belong
 * to the model.
 */
#ifndef CREMA_COLLECTOR_METRICS_METRICS_HOSTS_H
#define CREMA_COLLECTOR_METRICS_METRICS_HOSTS_H

#include "collector/metrics/metrics.h"

enum sharing {
	SHARE_HOST, /* one boot id, regardless of the names of its containers */
	SHARE_NET,  /* one network namespace of it: containers have separate interfaces */
	SHARINGS
};

struct host {
	const struct worker *first; /* of the run */
	const struct worker **v;    /* of the model */
	size_t n, cap;
};

struct hosts {
	struct {
		struct host *v;
		size_t n, cap;
		struct table table;
	} by[SHARINGS];
};

/* NULL: no memory. */
struct hosts *hosts_build(const struct run *run);
void hosts_free(struct hosts *hosts);

#endif
