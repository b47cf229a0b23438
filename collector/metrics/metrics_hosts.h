/* SPDX-License-Identifier: BSD-3-Clause */
/* metrics_hosts.h - which workers share a host or its network (metrics_hosts.c,
 * metrics_hosts_io.c). */
#ifndef CREMA_COLLECTOR_METRICS_HOSTS_H
#define CREMA_COLLECTOR_METRICS_HOSTS_H

#include "collector/metrics/metrics.h"

typedef bool (*same_fn)(const struct worker *a, const struct worker *b);

/* A host is one boot id, whatever its containers are called. */
bool same_host(const struct worker *a, const struct worker *b);
/* The same network namespace of it: containers have interfaces of their own. */
bool same_net(const struct worker *a, const struct worker *b);
/* No worker of the run before this one is the same. */
bool is_first_of(const struct run *r, size_t at, same_fn same);

#endif
