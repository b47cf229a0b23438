/* SPDX-License-Identifier: BSD-3-Clause */
/* http_report.h - a report for the status page, by the code that `crema report` uses. */
#ifndef COLLECTOR_HTTP_REPORT_H
#define COLLECTOR_HTTP_REPORT_H

#include <stdbool.h>

#include "common/buf.h"

/* run NULL: the last one. 0, or -errno with one line in `out`; -ENOENT: no such run. */
int http_report(const char *dir, bool json, const char *run, struct buf *out);

#endif
