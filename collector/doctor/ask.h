/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ask.h - talks to a collector as an agent does, up to its clock, and leaves no record there: a
 * worker exists for a collector only from its HELLO on, which is never sent.
 */
#ifndef CREMA_COLLECTOR_DOCTOR_ASK_H
#define CREMA_COLLECTOR_DOCTOR_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/net.h"

struct ask {
	bool connected, tls, challenged, had_token, accepted;
	bool unproved;		 /* it could not prove that it has our token */
	uint64_t oldest, newest; /* versions of the protocol it speaks */
	int64_t offset_ns;	 /* its clock less ours */
	uint64_t error_ns;	 /* of that: half of the way there and back */
	char why[512];		 /* where it ended */
};

/* 0: accepted, with its clock; else -errno with `why`. It takes at most ten seconds. */
int ask_collector(struct ask *a, const struct net_address *address, const char *token_file);

#endif
