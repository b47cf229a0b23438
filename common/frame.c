/* SPDX-License-Identifier: BSD-3-Clause */
/* frame.c - frames of contract/wire.h: bytes <-> header and payload. */
#include "common/frame.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/inflate.h"

struct crema_frame_header frame_head(uint8_t type, const uint8_t *worker, uint64_t stream)
{
	struct crema_frame_header h;

	memset(&h, 0, sizeof(h));
	h.type = type;
	h.stream = stream;
	if (worker)
		memcpy(h.worker, worker, sizeof(h.worker));
	return h;
}

static void swap_head(struct crema_frame_header *h)
{
	h->magic = htole32(h->magic);
	h->flags = htole16(h->flags);
	h->stream = htole64(h->stream);
	h->first_seq = htole64(h->first_seq);
	h->count = htole32(h->count);
	h->raw_bytes = htole32(h->raw_bytes);
	h->stored_bytes = htole32(h->stored_bytes);
	h->crc = htole32(h->crc);
}

/* Over the header as it is in memory, with crc 0, and the stored bytes. */
static uint32_t frame_crc(const void *wire_head, const void *stored, size_t stored_bytes)
{
	struct crema_frame_header h;
	uint32_t crc;

	memcpy(&h, wire_head, sizeof(h));
	h.crc = 0;
	crc = inflate_crc(0, &h, sizeof(h));
	return stored_bytes ? inflate_crc(crc, stored, stored_bytes) : crc;
}

/*
 * Compresses raw into the space after the header; returns the stored size, or 0 if it did not help.
 * The small window and memory level keep an agent's footprint at 40 KiB instead of 260.
 */
static size_t deflate_into(unsigned char *dst, size_t room, const void *raw, size_t raw_bytes)
{
	z_stream z;
	size_t out = 0;

	memset(&z, 0, sizeof(z));
	if (deflateInit2(&z, 1, Z_DEFLATED, 13, 5, Z_DEFAULT_STRATEGY) != Z_OK)
		return 0;
	z.next_in = (Bytef *)(uintptr_t)raw;
	z.avail_in = (uInt)raw_bytes;
	z.next_out = dst;
	z.avail_out = (uInt)room;
	if (deflate(&z, Z_FINISH) == Z_STREAM_END)
		out = room - z.avail_out;
	deflateEnd(&z);
	return out;
}

static int encode(struct buf *out, const struct crema_frame_header *head, const void *raw,
		  size_t raw_bytes, bool deflated)
{
	struct crema_frame_header h = *head;
	unsigned char *at;
	size_t stored = 0;

	if (raw_bytes > CREMA_FRAME_RAW_MAX)
		return -EMSGSIZE;
	if (buf_reserve(out, sizeof(h) + raw_bytes))
		return out->error;
	at = out->data + out->len;
	h.magic = CREMA_WIRE_MAGIC;
	if (!h.version)
		h.version = CREMA_WIRE_VERSION;
	h.flags = 0;
	if (deflated && raw_bytes >= FRAME_ZLIB_FROM)
		stored = deflate_into(at + sizeof(h), raw_bytes - raw_bytes / 16, raw, raw_bytes);
	if (stored) {
		h.flags = CREMA_FRAME_ZLIB;
	} else {
		stored = raw_bytes;
		if (stored)
			memcpy(at + sizeof(h), raw, stored);
	}
	if (stored > CREMA_FRAME_STORED_MAX)
		return -EMSGSIZE;
	h.raw_bytes = (uint32_t)raw_bytes;
	h.stored_bytes = (uint32_t)stored;
	h.crc = 0;
	swap_head(&h);
	h.crc = htole32(frame_crc(&h, at + sizeof(h), stored));
	memcpy(at, &h, sizeof(h));
	out->len += sizeof(h) + stored;
	return 0;
}

int frame_encode(struct buf *out, const struct crema_frame_header *head, const void *raw,
		 size_t raw_bytes)
{
	return encode(out, head, raw, raw_bytes, true);
}

int frame_encode_stored(struct buf *out, const struct crema_frame_header *head, const void *raw,
			size_t raw_bytes)
{
	return encode(out, head, raw, raw_bytes, false);
}

int frame_encode_buf(struct buf *out, const struct crema_frame_header *head, struct buf *raw)
{
	int rc = raw->error ? raw->error : frame_encode(out, head, raw->data, raw->len);

	buf_release(raw);
	return rc;
}

ssize_t frame_decode(struct frame *f, const void *p, size_t n)
{
	static const unsigned char magic[4] = {'C', 'R', 'M', 'F'};
	struct crema_frame_header h;
	const unsigned char *bytes = p;

	if (n && memcmp(bytes, magic, n < 4 ? n : 4) != 0)
		return -EBADMSG;
	if (n < sizeof(h))
		return -EAGAIN;
	memcpy(&h, bytes, sizeof(h));
	swap_head(&h);
	if (h.stored_bytes > CREMA_FRAME_STORED_MAX || h.raw_bytes > CREMA_FRAME_RAW_MAX)
		return -EBADMSG;
	if (!(h.flags & CREMA_FRAME_ZLIB) && h.raw_bytes != h.stored_bytes)
		return -EBADMSG;
	if (n - sizeof(h) < h.stored_bytes)
		return -EAGAIN;
	if (frame_crc(bytes, bytes + sizeof(h), h.stored_bytes) != h.crc)
		return -EBADMSG;
	if (h.version < CREMA_WIRE_OLDEST || h.version > CREMA_WIRE_VERSION)
		return -EPROTONOSUPPORT;
	f->head = h;
	f->stored = bytes + sizeof(h);
	return (ssize_t)(sizeof(h) + h.stored_bytes);
}

int frame_payload(const struct frame *f, struct buf *scratch, const unsigned char **raw)
{
	int rc;

	if (!(f->head.flags & CREMA_FRAME_ZLIB)) {
		*raw = f->stored;
		return 0;
	}
	if (f->head.raw_bytes > CREMA_FRAME_RAW_MAX)
		return -EBADMSG;
	buf_clear(scratch);
	/* One byte more, for inflate_exactly(). */
	if (buf_reserve(scratch, (size_t)f->head.raw_bytes + 1))
		return scratch->error;
	rc = inflate_exactly(f->stored, f->head.stored_bytes, scratch->data, f->head.raw_bytes);
	if (rc)
		return rc;
	scratch->len = f->head.raw_bytes;
	*raw = scratch->data;
	return 0;
}

void frame_digits(char *out, const void *bytes, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	const uint8_t *p = bytes;

	for (size_t i = 0; i < n; i++) {
		out[2 * i] = digits[p[i] >> 4];
		out[2 * i + 1] = digits[p[i] & 15];
	}
}

char *frame_hex(char *out, const uint8_t *worker)
{
	frame_digits(out, worker, CREMA_WORKER_ID_BYTES);
	out[2 * CREMA_WORKER_ID_BYTES] = '\0';
	return out;
}
