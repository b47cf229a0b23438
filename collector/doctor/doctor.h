/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doctor.h - the checks of `crema doctor`, and the list of their results.
 *
 * A check adds lines. Each is ok, a warning (numbers will be missing), bad (nothing or wrong values
 * are measured), or unknown (could not be checked), with advice unless it is ok. Checks change
 * nothing: no file, no record in a journal; only a calibration stores its verdict. One thread.
 *
 *	doctor.c		the list, as text and JSON
 *	machine.c		kernel, shared memory, limits, clocks of this machine
 *	process.c, layer.c	one process of /proc; which ancestor lost LD_PRELOAD
 *	workers.c		Dask's workers here: whether they are measured, by which agent
 *	calibrate.c, ways.c	file systems: whether their storage charges are right
 *	ask.c, check_collector.c	a collector, as an agent connects to it; its page
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
	const char *collector; /* given address; NULL: that of the workers here */
	const char *page, *token_file;
	const char *dir;		    /* the data directory; NULL: this user's */
	size_t stuck;			    /* number of lines about it */
	int only;			    /* pid of the only worker to check; 0: all */
	struct doctor_target {		    /* where agents here send to, each once */
		char *address, *token_file; /* token_file "": this user's default */
		char *spool;		    /* where they store unsent records; "": unknown */
	} * target;
	size_t targets;
	size_t workers;
	bool all_users; /* false: only this user's workers */
	size_t others;	/* workers of other users, not checked */
};

void doctor_release(struct doctor *d);
/* Adds a line of text; doctor_advise() follows with the advice. */
__attribute__((format(printf, 4, 5))) void doctor_say(struct doctor *d, enum doctor_level level,
						      const char *about, const char *format, ...);
/* Sets the advice for the last line. */
__attribute__((format(printf, 2, 3))) void doctor_advise(struct doctor *d, const char *format, ...);
/* Adds an address that an agent sends to, with its token file, and the folder for unsent
 * records. */
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
