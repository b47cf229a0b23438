/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * destination.h - where followed records are sent, and which of them it already has.
 *
 *	"-" or "FILE", "tcp:HOST:PORT", "unix:PATH", "nats://HOST:PORT/STREAM", "tls://..." (NATS)
 *
 * At the start, the last record in the destination is determined, so that exactly the later ones
 * are sent, whenever the program or the machine stopped:
 *   file    from its last whole line; half a line after that is cut off. One program writes it at a
 *           time (flock).
 *   NATS    from the last message of the JetStream stream. The server only accepts a message after
 *           its predecessor (Nats-Expected-Last-Msg-Id), so none is missing or duplicated, and a
 *           second writer is refused. The record's id is the Nats-Msg-Id.
 *   socket  the receiver does not respond. What its kernel has acknowledged is noted in the folder
 *           "follow" of the data directory once a second: after a stop, lines of a second may be
 *           sent again, with the same id.
 *   "-", pipes and devices: unknown; each start begins at the journal's beginning.
 *
 * put() may hold lines back; settle() sends all and returns when the destination has them. After an
 * error call only close(); the next destination_open() determines what arrived. One thread.
 */
#ifndef CREMA_COLLECTOR_FOLLOW_DESTINATION_H
#define CREMA_COLLECTOR_FOLLOW_DESTINATION_H

#include <signal.h>

#include "collector/follow/place.h"
#include "collector/follow/record_line.h"
#include "common/buf.h"

#define DESTINATION_WHY 512

/* How it is reached. The strings must outlive the destination; NULL: as usual. */
struct destination_way {
	const char *name;	     /* as given */
	const char *login, *ca_file; /* files, for NATS */
};

struct destination {
	const struct destination_kind *kind;
	const char *name;
	struct destination_way way;
	const char *data_dir;		   /* of crema; must outlive this, too */
	const volatile sig_atomic_t *stop; /* not 0: a waiting write returns -EINTR */
	struct place last;		   /* last record in it; segment_ns 0: none */
	char last_id[RECORD_ID_BYTES];	   /* "": none, or unknown */
	char why[DESTINATION_WHY];	   /* after an error: one line, without the name */
	int fd;
	void *state;	  /* of the kind */
	struct buf out;	  /* lines to be written */
	struct place put; /* of the last line in it, or before */
};

/* Each returns 0 or -errno with `why` filled in. After -EBUSY, -EINVAL and -ENOTSUP a retry would
 * fail, too. */
struct destination_kind {
	int (*open)(struct destination *d);
	int (*settle)(struct destination *d);
	/* NULL: lines are held in d->out, and written once there are hold_bytes or more. */
	int (*put)(struct destination *d, const char *line, size_t n, const struct record *r);
	size_t hold_bytes;
	void (*close)(struct destination *d); /* NULL: there is only the descriptor */
};

extern const struct destination_kind destination_file, destination_socket, destination_nats;

int destination_open(struct destination *d, const struct destination_way *way, const char *data_dir,
		     const volatile sig_atomic_t *stop);
int destination_put(struct destination *d, const char *line, size_t n, const struct record *r);
int destination_settle(struct destination *d);
void destination_close(struct destination *d);

/* For kinds: fills `why` with the text, and ": " and the error unless it is 0; returns -errno. */
int destination_fail(struct destination *d, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* For kinds: takes `last` and `last_id` from the last line in the destination: 0 or
 * destination_fail(). */
int destination_take_line(struct destination *d, const char *line, size_t n);
/* For kinds: writes d->out to the descriptor, waiting if necessary: 0 or destination_fail(). */
int destination_write(struct destination *d);

#endif
