/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coffea_report.h - the report that coffea's Runner returned, saved by the user as JSON.
 *
 * Accepted: the report object, or a list that holds it ([output, report]). It is compared with the
 * workers' sums: entries, chunks, bytesread and columns must be equal, processtime to a relative
 * 1e-9 (coffea adds floating-point numbers in another order).
 */
#ifndef CREMA_COLLECTOR_REPORT_COFFEA_REPORT_H
#define CREMA_COLLECTOR_REPORT_COFFEA_REPORT_H

#include "collector/metrics/metrics.h"

#define COFFEA_FIELDS 5
#define COFFEA_LINE_BYTES 1024

struct coffea_field {
	const char *name;   /* in coffea's report */
	const char *metric; /* ours */
	struct value theirs, ours;
	enum { COFFEA_AGREES, COFFEA_DISAGREES, COFFEA_UNKNOWN } verdict;
};

struct coffea_report {
	bool read; /* it was JSON */
	struct coffea_field field[COFFEA_FIELDS];
	char line[COFFEA_LINE_BYTES]; /* what is wrong with the file; "": nothing */
};

/* 0, or -errno (-EBADMSG: not JSON, or no report in it) with the line set. */
int coffea_report_read(struct coffea_report *c, const char *path);
/* The same from memory; `name` is for messages. */
int coffea_report_parse(struct coffea_report *c, const char *text, size_t n, const char *name);
void coffea_report_compare(struct coffea_report *c, const struct facts *f);
const char *coffea_verdict(const struct coffea_field *f);

#endif
