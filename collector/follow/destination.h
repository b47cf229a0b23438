/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * destination.h - where followed records go, and which of them it has.
 *
 *	"-" or "FILE", "tcp:HOST:PORT", "unix:PATH", "nats://HOST:PORT/STREAM"
 *
 * A destination says at the start which record it has last, so that exactly the ones behind it are
 * put there, whenever the program or the machine stopped:
 *   file    its last whole line says it; half a line behind that is cut off. One program writes it
 *           at a time (flock).
 *   NATS    the last message of the JetStream stream says it; the server takes a message only
 *           behind the one before (Nats-Expected-Last-Msg-Id), so none is missing or twice, and a
 *           second program that writes there is refused. Its id is the Nats-Msg-Id.
 *   socket  the receiver says nothing. What its kernel has acknowledged is noted in the folder
 *           "follow" of the data directory once a second: after a stop, lines of a second may come
 *           again, with the same id.
 *   "-", pipes and devices: nothing is known; each start begins at the journal's beginning.
 *
 * put() may keep lines back; settle() hands all on and returns when the destination has them. After
 * an error only close() may follow; the next destination_open() finds what is there. One thread.
 */
#ifndef CREMA_COLLECTOR_FOLLOW_DESTINATION_H
#define CREMA_COLLECTOR_FOLLOW_DESTINATION_H

#include <signal.h>

#include "collector/follow/place.h"
#include "collector/follow/record_line.h"
#include "common/buf.h"

#define DESTINATION_WHY 512

struct destination {
	const struct destination_kind *kind;
	const char *name;		   /* as it was given; outlives this */
	const char *data_dir;		   /* of crema; as above */
	const volatile sig_atomic_t *stop; /* not 0: a write that waits gives up with -EINTR */
	struct place last;		   /* that it has; segment_ns 0: none */
	char last_id[RECORD_ID_BYTES];	   /* "": none, or not known */
	char why[DESTINATION_WHY];	   /* after an error: one line, the name not in it */
	int fd;
	void *state;	  /* of the kind */
	struct buf out;	  /* lines to be written */
	struct place put; /* of the last line in there, or before */
};

/* Each returns 0 or -errno with `why` filled. After -EBUSY, -EINVAL and -ENOTSUP a second try would
 * fail, too. */
struct destination_kind {
	int (*open)(struct destination *d);
	int (*settle)(struct destination *d);
	/* NULL: lines are held in d->out, and written when they are hold_bytes or more. */
	int (*put)(struct destination *d, const char *line, size_t n, const struct record *r);
	size_t hold_bytes;
	void (*close)(struct destination *d); /* NULL: there is only the descriptor */
};

extern const struct destination_kind destination_file, destination_socket, destination_nats;

int destination_open(struct destination *d, const char *name, const char *data_dir,
		     const volatile sig_atomic_t *stop);
int destination_put(struct destination *d, const char *line, size_t n, const struct record *r);
int destination_settle(struct destination *d);
void destination_close(struct destination *d);

/* For kinds: fills `why` with the text, and ": " and what the error is unless it is 0; returns
 * -errno. */
int destination_fail(struct destination *d, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* For kinds: takes `last` and `last_id` from the last line that is there: 0 or destination_fail().
 */
int destination_take_line(struct destination *d, const char *line, size_t n);
/* For kinds: writes d->out to the descriptor, waiting where it must: 0 or destination_fail(). */
int destination_write(struct destination *d);

#endif
