/* SPDX-License-Identifier: BSD-3-Clause */
/* findings_cases_state.h - cases of runs that hang, or that ended before their tasks did. */
#ifndef FINDINGS_CASES_STATE_H
#define FINDINGS_CASES_STATE_H

/* A task of 3 s, then one that has been running for 30 s. */
static bool case_stalled(struct fixture *fx, int side)
{
	int median = side == BELOW_SECOND ? 3001 : 3000, last = 33000;

	if (side == UNKNOWN)
		return false;
	fx_hello(fx, 1, "{}");
	fx_simple(fx, 1, 1, "a", "span", 0, 3000 - median, 3000, "ok");
	fx_simple(fx, 1, 2, "b", "span", 0, 3000, -1, "running");
	fx_map(fx, 1, CREMA_MSG_SAMPLE, "boot_ns", AT(side == BELOW ? last - 1 : last), NULL);
	return true;
}

static bool case_interrupted(struct fixture *fx, int side)
{
	return attempts(fx, side, "killed", NULL);
}

#endif
