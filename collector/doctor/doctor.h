/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doctor.h - what `crema doctor` looks at, and the list of what it found.
 *
 * A look adds lines; each is ok, a warning (numbers will be missing), bad (nothing or wrong things
 * are measured), or unknown (could not be looked at), and says what to do unless it is ok. Looks
 * change nothing: no file, no record in a journal; only a calibration keeps its verdict. One
 *thread.
 *
 *	doctor.c		the list, as text and JSON
 *	machine.c		kernel, shared memory, limits, clocks of this machine
 *	process.c, layer.c	one process of /proc; who above it lost LD_PRELOAD
 *	workers.c		Dask's workers here: measured, by which agent, told to whom
 *	calibrate.c, ways.c	file systems: are their storage charges right?
 *	ask.c, collector.c	a collector, as an agent would talk to it; its page
 */
#ifndef CREMA_COLLECTOR_DOCTOR_DOCTOR_H
#define CREMA_COLLECTOR_DOCTOR_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"

enum doctor_level { DOCTOR_OK, DOCTOR_WARN, DOCTOR_BAD, DOCTOR_UNKNOWN };

struct doctor_line {
	enum doctor_level level;
	const char *about;   /* a fixed word: "shared memory" */
	char *text, *advice; /* advice NULL: nothing to do */
};

struct doctor {
	struct doctor_line *line;
	size_t n;
	int error;
	const char *library;   /* the preload library of this installation; NULL: none found */
	const char *collector; /* given address; NULL: what workers here have */
	const char *page, *token_file;
	size_t stuck;			    /* lines said of it */
	int only;			    /* pid of the one worker to look at; 0: all */
	struct doctor_target {		    /* where agents here send to, each once */
		char *address, *token_file; /* token_file "": the usual one of this user */
		char *spool;		    /* where they keep what they cannot send; "": unknown */
	} * target;
	size_t targets;
	size_t workers;
	bool all_users; /* else this user's workers only */
	size_t others;	/* workers of other users, not looked at */
};

void doctor_release(struct doctor *d);
/* A line of text; what follows it is the advice. */
__attribute__((format(printf, 4, 5))) void doctor_say(struct doctor *d, enum doctor_level level,
						      const char *about, const char *format, ...);
/* What to do about the last line. */
__attribute__((format(printf, 2, 3))) void doctor_advise(struct doctor *d, const char *format, ...);
/* Where somebody sends to, with the token of which file, and keeps what he cannot send. */
void doctor_target(struct doctor *d, const char *address, const char *token_file,
		   const char *spool);

void doctor_machine(struct doctor *d);
void doctor_installation(struct doctor *d, const char *exe);
void doctor_workers(struct doctor *d);
void doctor_collector(struct doctor *d);

size_t doctor_count(const struct doctor *d, enum doctor_level level);
/* Both append; 0 or -ENOMEM. */
int doctor_text(const struct doctor *d, struct buf *out);
int doctor_json(const struct doctor *d, struct buf *out);

#endif
