/* SPDX-License-Identifier: BSD-3-Clause */
/* inflate.c - checksums and payloads with zlib. */
#include "common/inflate.h"

#include <errno.h>
#include <string.h>
#include <zlib.h>

__attribute__((weak)) uint32_t inflate_crc(uint32_t crc, const void *p, size_t n)
{
	return (uint32_t)crc32_z(crc, p, n);
}

__attribute__((weak)) int inflate_exactly(const void *p, size_t n, void *raw, size_t raw_bytes)
{
	z_stream z;
	int rc;

	memset(&z, 0, sizeof(z));
	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	z.next_in = (Bytef *)(uintptr_t)p;
	z.avail_in = (uInt)n;
	z.next_out = raw;
	/* One byte more, to detect a payload that is too long. */
	z.avail_out = (uInt)raw_bytes + 1;
	rc = inflate(&z, Z_FINISH);
	inflateEnd(&z);
	return rc == Z_STREAM_END && z.total_out == raw_bytes && !z.avail_in ? 0 : -EBADMSG;
}
