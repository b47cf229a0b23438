/* SPDX-License-Identifier: BSD-3-Clause */
/* http_report.h - reports for the status page, by the code of `crema report`. */
#ifndef CREMA_COLLECTOR_WEB_HTTP_REPORT_H
#define CREMA_COLLECTOR_WEB_HTTP_REPORT_H

#include "collector/web/http.h"

/* run NULL: the last one. 0, or -errno with one line in out->out; -ENOENT: no such run. */
int http_report(const char *dir, const char *const *more, enum http_kind kind, const char *run,
		struct sink *out);

#endif
