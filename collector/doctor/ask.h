/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ask.h - connects to a collector as an agent does, up to its clock, and leaves no record.
 *
 * A collector only registers a worker after its HELLO, which is never sent.
 */
#ifndef CREMA_COLLECTOR_DOCTOR_ASK_H
#define CREMA_COLLECTOR_DOCTOR_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "common/net.h"

struct ask {
	bool connected, tls, challenged, had_token, accepted;
	bool unproved;		 /* it could not prove that it has our token */
	uint64_t oldest, newest; /* versions of the protocol that it supports */
	int64_t offset_ns;	 /* its clock minus ours */
	uint64_t error_ns;	 /* error of that: half of the round trip */
	char why[512];		 /* where the exchange ended */
};

/* 0: accepted, with its clock; else -errno with `why`. It takes at most ten seconds. */
int ask_collector(struct ask *a, const struct net_address *address, const char *token_file);

#endif
