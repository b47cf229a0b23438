/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * findings_cases.h - for each check a run exactly at its thresholds, one just below each of them,
 * and one in which its input is unknown.
 */
#ifndef FINDINGS_CASES_H
#define FINDINGS_CASES_H

#include "findings_fixture.h"

enum side { AT, BELOW, BELOW_SECOND, UNKNOWN };

struct findings_case {
	const char *id;
	/* false: this side does not exist */
	bool (*make)(struct fixture *fx, int side);
};

#include "findings_cases_time.h"
#include "findings_cases_bytes.h"
#include "findings_cases_columns.h"
#include "findings_cases_work.h"
#include "findings_cases_threads.h"
#include "findings_cases_state.h"

static const struct findings_case findings_cases[] = {
#define FINDING(id, severity, first, second, looks_at, when, advice) {#id, case_##id},
#include "findings.def"
};

static const size_t findings_case_count = sizeof(findings_cases) / sizeof(*findings_cases);

#endif
