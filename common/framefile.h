/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * framefile.h - files of frames: the collector's journal, an agent's spool, CREMA_COLLECTOR=dir:.
 *
 * Layout: a FILE_HEADER frame, then frames byte for byte as they came. Name: "<created
 * CLOCK_REALTIME ns, 20 digits>-<worker id in hex, or 'journal'>.crema": sorted by age.
 *
 * Writing: one writer per file. An append that cannot be written in full is removed again, so a
 * file only ends in half a frame when its writer died. flock() is up to the caller (fd). Reading:
 * streams with pread, also while the file grows. Bytes that are not a frame are skipped up to the
 * next offset where a complete frame with a valid crc starts; the stats count the skipped bytes.
 */
#ifndef CREMA_COMMON_FRAMEFILE_H
#define CREMA_COMMON_FRAMEFILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"
#include "common/frame.h"

#define FRAMEFILE_SUFFIX ".crema"
#define FRAMEFILE_NAME_BYTES 72
#define FRAMEFILE_HIDDEN ".new-" /* before the name of one that is not complete yet */

struct framefile {
	int fd;	       /* -1: closed */
	uint64_t size; /* bytes that are complete frames */
	char path[PATH_MAX];
};

struct framefile_stats {
	uint64_t frames;	  /* valid ones, FILE_HEADER not counted */
	uint64_t bytes;		  /* bytes read */
	uint64_t bytes_skipped;	  /* not part of a valid frame, including a torn tail */
	int64_t first_bad_offset; /* -1: none */
	uint64_t end;	/* offset after the latest frame that framefile_read() passed on */
	bool truncated; /* the file ends inside a frame (its writer died, or writes now) */
	bool no_header; /* does not begin with a FILE_HEADER of a format we know */
	bool newer;	/* of a later version: no frame of a file with a newer FILE_HEADER is
			 * returned, and no frame of a newer version */
};

struct framefile_reader {
	int fd;
	bool ended;
	uint64_t offset; /* of window.data[at] in the file */
	size_t at;
	struct buf window;
	struct framefile_stats stats;
};

/* worker NULL: "journal". out has FRAMEFILE_NAME_BYTES. Returns out. */
char *framefile_name(char *out, uint64_t created_ns, const uint8_t *worker);

/*
 * Creates DIR/NAME (O_EXCL, 0600) and writes its FILE_HEADER; kind is "journal" or "spool". 0 or
 * -errno (-EEXIST: use another created_ns). The directory must exist (dirs_make()).
 */
int framefile_create(struct framefile *f, const char *dir, const char *kind, uint64_t created_ns,
		     const uint8_t *worker);
/*
 * Writes a file of frames under a temporary name and renames it to DIR/NAME, replacing any. Not
 * synced. 0 or -errno, and then the existing file is unchanged.
 */
int framefile_replace(const char *dir, const char *name, const char *kind, uint64_t created_ns,
		      const struct buf *frames);
/* Appends complete frames in one write: 0 or -errno, and then the file is unchanged. */
int framefile_append(struct framefile *f, const void *frames, size_t bytes);
/* fdatasync: 0 or -errno. */
int framefile_sync(struct framefile *f);
void framefile_close(struct framefile *f);

/* Opens a regular file for reading: 0 or -errno. A zero-length file is fine (no frames, no_header).
 */
int framefile_open(struct framefile_reader *r, const char *path);
/* As framefile_open with a descriptor that the reader then owns. */
int framefile_open_fd(struct framefile_reader *r, int fd);
/*
 * The next valid frame in the file except FILE_HEADERs: 1, 0 = end so far, -errno. f->stored is
 * valid until the next call. Calling again after 0 continues where the file has grown. At a torn
 * tail `truncated` is set; only framefile_read() adds its bytes to bytes_skipped.
 */
int framefile_next(struct framefile_reader *r, struct frame *f);
/* The bytes of the frame that framefile_next returned, verbatim: pointer and size. */
const unsigned char *framefile_verbatim(const struct framefile_reader *r, const struct frame *f,
					size_t *bytes);
void framefile_reader_close(struct framefile_reader *r);

/*
 * Reads a whole file; visit() gets every valid frame with its inflated payload (valid during the
 * call). It returns 0 to continue; any other value stops the read and is returned. A frame that has
 * a good crc but does not inflate counts as skipped. stats may be NULL; they are up to date in
 * visit().
 */
int framefile_read(const char *path,
		   int (*visit)(void *arg, const struct crema_frame_header *head,
				const unsigned char *raw, size_t raw_bytes),
		   void *arg, struct framefile_stats *stats);

/*
 * The same for the part of a file between two offsets at which frames begin or end. -EBADMSG: it
 * does not consist of exactly `frames` valid frames; visit() may have been called.
 */
int framefile_read_part(const char *path, uint64_t from, uint64_t to, uint64_t frames,
			int (*visit)(void *arg, const struct crema_frame_header *head,
				     const unsigned char *raw, size_t raw_bytes),
			void *arg);

/*
 * Names of the *.crema files of a directory, oldest first. Returns their number or -errno;
 * *names is one allocation: free(*names).
 */
int framefile_list(const char *dir, char ***names);
/* CLOCK_REALTIME ns of a file of that name; 0: a name without a time (that of dropped runs). */
uint64_t framefile_created_ns(const char *name);
/* The sum of their sizes: 0 or -errno. */
int framefile_sizes(const char *dir, uint64_t *bytes);

#endif
