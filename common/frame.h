/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * frame.h - frames of contract/wire.h: bytes <-> header and payload.
 *
 * Pure functions over memory: no I/O, no state, safe in any thread. The input of the decoder is
 * hostile; every length is checked against the caps of wire.h before anything is allocated.
 */
#ifndef CREMA_COMMON_FRAME_H
#define CREMA_COMMON_FRAME_H

#include <stdint.h>
#include <sys/types.h>

#include "common/buf.h"
#include "ids.h"
#include "wire.h"

#define FRAME_HEAD_BYTES sizeof(struct crema_frame_header)
#define FRAME_MAX_BYTES (FRAME_HEAD_BYTES + CREMA_FRAME_STORED_MAX)
#define FRAME_HEX_BYTES 33  /* worker id as text with its NUL */
#define FRAME_ZLIB_FROM 256 /* smaller payloads are never compressed */

/* One decoded frame: header in host byte order, payload = view of the stored bytes. */
struct frame {
	struct crema_frame_header head;
	const unsigned char *stored;
};

/* A header with type, worker (NULL: zeros) and stream set, the rest 0. */
struct crema_frame_header frame_head(uint8_t type, const uint8_t *worker, uint64_t stream);

/*
 * Appends one complete frame to out. From `head` type, worker, stream, first_seq and count are
 * taken (and version, if not 0); magic, flags, sizes and crc are computed. raw may be NULL when
 * raw_bytes is 0.
 *
 * 0, -EMSGSIZE (over a cap of wire.h; out is unchanged) or -ENOMEM.
 */
int frame_encode(struct buf *out, const struct crema_frame_header *head, const void *raw,
		 size_t raw_bytes);
/* The same without zlib, for callers that cannot afford the time. */
int frame_encode_stored(struct buf *out, const struct crema_frame_header *head, const void *raw,
			size_t raw_bytes);
/* frame_encode() of the packed contents of raw, which is released; returns its error, if it has
 * one. */
int frame_encode_buf(struct buf *out, const struct crema_frame_header *head, struct buf *raw);

/*
 * Decodes the frame at the start of [p, p+n). Returns the bytes it takes; -EAGAIN: more bytes are
 * needed; -EBADMSG: no valid frame starts here (magic, caps, crc); -EPROTONOSUPPORT: a frame of
 * this protocol but of a version outside CREMA_WIRE_OLDEST..CREMA_WIRE_VERSION. f->stored points
 * into p. f is written only on success.
 */
ssize_t frame_decode(struct frame *f, const void *p, size_t n);

/*
 * Returns the raw payload: a view of the stored bytes if they are not compressed, else inflated
 * into scratch (which is cleared first). *raw is valid as long as both. Size = f->head.raw_bytes.
 * 0, -EBADMSG (does not inflate to exactly raw_bytes) or -ENOMEM.
 */
int frame_payload(const struct frame *f, struct buf *scratch, const unsigned char **raw);

/* "0123..." of n bytes, without a NUL at its end. */
void frame_digits(char *out, const void *bytes, size_t n);
/* The same for 16 bytes; out has FRAME_HEX_BYTES. Returns out. */
char *frame_hex(char *out, const uint8_t *worker);

#endif
