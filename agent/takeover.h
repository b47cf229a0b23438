/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * takeover.h - sends the spool files that dead agents of this user left behind.
 *
 * A file whose lock is free has no writer any more. It is sent over a separate connection, under
 * the identity in its hello, and unlinked when all of it is acknowledged. One file at a time; files
 * without a hello or without a complete frame are left alone. One thread.
 */
#ifndef CREMA_AGENT_TAKEOVER_H
#define CREMA_AGENT_TAKEOVER_H

#include <limits.h>

#include "agent/uplink.h"
#include "common/framefile.h"

#define TAKEOVER_LOOK_NS 10000000000u
#define TAKEOVER_GIVE_UP_NS 60000000000u

struct takeover {
	char dir[PATH_MAX];
	struct net_address address;
	struct uplink_security *security;
	char path[PATH_MAX]; /* of the file in work; "" = none */
	int fd;		     /* holds its lock */
	struct framefile_reader reader;
	bool reading;
	uint8_t worker[CREMA_WORKER_ID_BYTES];
	uint64_t stream, end_seq, sent_seq;
	struct buf hello;
	struct uplink_source source;
	struct uplink uplink;
	bool linked;
	uint64_t look_ns, began_ns;
	uint64_t after; /* creation time (in the name) of the last file that was tried */
};

void takeover_init(struct takeover *t, const char *dir, const struct net_address *address,
		   struct uplink_security *security);
void takeover_release(struct takeover *t);
/* Continues, or searches for a file if `idle` (the agent's own connection is up). */
void takeover_run(struct takeover *t, bool idle, uint64_t now);
int takeover_fd(const struct takeover *t);
short takeover_events(const struct takeover *t);

#endif
