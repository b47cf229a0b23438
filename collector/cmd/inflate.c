/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inflate.c - checksums and payloads by libdeflate, if the collector is built with it: zlib took
 * half of the time for a task's record. It accepts what zlib accepts, and also a stream with a
 * wrong window size.
 */
#include "common/inflate.h"

#ifdef CREMA_LIBDEFLATE
#include <errno.h>
#include <libdeflate.h>

/* Some 10 kB for each thread that reads frames, kept: there are two at most. */
static _Thread_local struct libdeflate_decompressor *decompressor;

uint32_t inflate_crc(uint32_t crc, const void *p, size_t n)
{
	return libdeflate_crc32(crc, p, n);
}

int inflate_exactly(const void *p, size_t n, void *raw, size_t raw_bytes)
{
	size_t used = 0, made = 0;

	if (!decompressor)
		decompressor = libdeflate_alloc_decompressor();
	if (!decompressor)
		return -ENOMEM;
	if (libdeflate_zlib_decompress_ex(decompressor, p, n, raw, raw_bytes, &used, &made) !=
	    LIBDEFLATE_SUCCESS)
		return -EBADMSG;
	return used == n && made == raw_bytes ? 0 : -EBADMSG;
}
#endif
