/* SPDX-License-Identifier: BSD-3-Clause */
/* http_metrics_parts.h - what the files of /metrics share; nobody else includes it. */
#ifndef CREMA_COLLECTOR_WEB_HTTP_METRICS_PARTS_H
#define CREMA_COLLECTOR_WEB_HTTP_METRICS_PARTS_H

#include "collector/emit/emit.h"
#include "collector/web/http_metrics.h"

void metric_head(struct sink *s, const char *name, const char *type, const char *help);
/* A label's value, escaped. */
void metric_label(struct sink *s, const char *text);
/* "1.500000000\n" */
void metric_seconds(struct sink *s, uint64_t ns);
/* A metric with one series and no labels. */
void metric_uint(struct sink *s, const char *name, const char *type, const char *help,
		 uint64_t value);

/* http_metrics_state.c */
void metrics_cluster(struct sink *s, const struct live_cluster *c);
void metrics_doing(struct sink *s, enum live_doing doing, const struct live_cluster *c,
		   double longest_call);
void metrics_progress(struct sink *s, const struct live_progress *p);
void metrics_collector(struct sink *s, const struct http_metrics *from);

#endif
