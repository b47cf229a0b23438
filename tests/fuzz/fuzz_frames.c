/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_frames.c - restores the checksums of mutated frames. */
#include <string.h>
#include <zlib.h>

#include "tests/fuzz/fuzz.h"
#include "wire.h"

static void mend(uint8_t *p, size_t n)
{
	struct crema_frame_header h;

	memcpy(&h, p, sizeof(h));
	if (h.stored_bytes > n - sizeof(h))
		h.stored_bytes = (uint32_t)(n - sizeof(h));
	h.crc = 0;
	h.crc = (uint32_t)crc32(crc32(0, (const Bytef *)&h, sizeof(h)), p + sizeof(h),
				h.stored_bytes);
	memcpy(p, &h, sizeof(h));
}

size_t fuzz_mutate_frames(uint8_t *data, size_t n, size_t most, unsigned int seed)
{
	static const uint8_t magic[] = {'C', 'R', 'M', 'F'};
	size_t at;

	n = LLVMFuzzerMutate(data, n, most);
	/* One in eight stays unchanged: wrong checksums are input, too. */
	for (at = 0; seed % 8 && at + sizeof(struct crema_frame_header) <= n; at++)
		if (!memcmp(data + at, magic, sizeof(magic)))
			mend(data + at, n - at);
	return n;
}
