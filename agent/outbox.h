/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * outbox.h - every record to be sent: batched, numbered, kept until it is safe.
 *
 * Records are written directly into one of two batches: those that must arrive (OUTBOX_RECORD) and
 * those that a later one replaces (OUTBOX_LIGHT: progress, samples). outbox_flush() makes frames of
 * them, numbered without gaps. Frames wait in memory; outbox_spill() moves them to a file, in
 * order. So the file always holds the older part and memory the newer one. Acknowledged frames are
 * dropped from memory, and the file is removed when all of it is acknowledged.
 *
 * With a destination directory (CREMA_COLLECTOR=dir:) the file is the destination: nothing is ever
 * sent. Without a usable directory, or with a full one, light frames are dropped first and counted:
 * they may use only the first half of the file's limit. A worker's last records, its totals among
 * them, may exceed the limit, so the sums are exact whatever was dropped.
 *
 * A record is "safe" when it is acknowledged or written to a file. One thread.
 */
#ifndef CREMA_AGENT_OUTBOX_H
#define CREMA_AGENT_OUTBOX_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/framefile.h"
#include "common/pack.h"

#define OUTBOX_FRAME_RAW (32u << 10)	/* a batch that is larger becomes a frame at once */
#define OUTBOX_MEMORY (512u << 10)	/* more than that in memory: spill */
#define OUTBOX_MEMORY_MAX (1u << 20)	/* and without a file: drop */
#define OUTBOX_SPOOL_BYTES (512u << 20) /* of the file: only last records may exceed it */

enum outbox_class { OUTBOX_RECORD, OUTBOX_LIGHT, OUTBOX_CLASSES };

struct outbox_frame {
	struct outbox_frame *next;
	uint64_t first_seq;
	uint64_t tickets; /* records of class OUTBOX_RECORD up to the end of this frame */
	uint64_t born_ns; /* CLOCK_MONOTONIC */
	uint32_t count;
	bool light;
	size_t bytes;
	unsigned char data[];
};

struct outbox {
	uint8_t worker[CREMA_WORKER_ID_BYTES];
	uint64_t stream;
	uint64_t next_seq;
	bool is_destination;
	bool is_last;	    /* the worker has ended: what follows are its last records */
	char dir[PATH_MAX]; /* "" = none */
	size_t memory_max;
	uint64_t spool_max;

	struct batch {
		struct buf body;
		msgpack_packer pk;
		size_t map; /* of the current message */
		uint32_t count;
	} batch[OUTBOX_CLASSES];
	struct buf scratch;
	uint64_t tickets, tickets_safe;
	uint64_t dropped; /* records */
	/* Given up here, but sent on the present connection: they may still arrive. */
	struct outbox_doubt {
		struct outbox_doubt *next;
		uint64_t end_seq;
		uint32_t count;
	} * doubt, **doubt_end;

	struct outbox_frame *head, *tail;
	size_t memory;

	struct buf hello; /* frame; at the head of the file */
	struct framefile file;
	int file_error;	       /* of the last attempt to write, 0 = fine */
	uint64_t file_end_seq; /* the file holds records below this */
	bool file_dirty;       /* written since the last sync */
	bool reading;
	struct framefile_reader reader;
	uint64_t sent_seq, acked_seq; /* of the present connection; ever */
};

/* dir "" or NULL: memory only. destination: the frames are to end up in `dir`. */
void outbox_init(struct outbox *o, const uint8_t *worker, uint64_t stream, const char *dir,
		 bool destination);
void outbox_release(struct outbox *o); /* files stay */

/* Starts a message: write exactly one msgpack value (the message array) with the packer. */
msgpack_packer *outbox_begin(struct outbox *o, enum outbox_class class);
/* Ends the message. Returns the record's ticket (of the latest one for OUTBOX_LIGHT). */
uint64_t outbox_end(struct outbox *o, enum outbox_class class);
/* The same for [type, map]: write the map's pairs in between. */
msgpack_packer *outbox_begin_map(struct outbox *o, enum outbox_class class, unsigned int type);
uint64_t outbox_end_map(struct outbox *o, enum outbox_class class);
/* Is the record with this ticket acknowledged or on disk? */
bool outbox_is_safe(const struct outbox *o, uint64_t ticket);

/* Makes frames of the batches. */
void outbox_flush(struct outbox *o);
/* Moves all frames in memory to the file. 0 or -errno (they stay, or were dropped if too many). */
int outbox_spill(struct outbox *o);
/* Syncs the file if it was written to. */
void outbox_sync(struct outbox *o);
/* The hello frame (bytes are copied); also appended to the file if one is open. */
int outbox_hello(struct outbox *o, const void *frame, size_t bytes);

/* A new connection: the other side needs records from seq on. */
void outbox_rewind(struct outbox *o, uint64_t seq);
/* Next frame to send: 1, 0 = none, -errno. Bytes are valid until the next call of any kind. */
int outbox_next(struct outbox *o, const unsigned char **p, size_t *bytes);
/* All records below seq are journaled. */
void outbox_acked(struct outbox *o, uint64_t seq);
/* True if nothing is left to send or to be acknowledged (destination: all is in the file). */
bool outbox_is_empty(const struct outbox *o);
/* Age of the oldest frame in memory, ns; 0: none. */
uint64_t outbox_age(const struct outbox *o, uint64_t now_mono);

#endif
