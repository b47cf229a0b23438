/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_journal.c - the bytes are a journal: reads it, groups it, and reports it in all forms. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/framefile.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/report_all.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct framefile_reader reader;
	struct buf scratch = BUF_INIT;
	const unsigned char *raw;
	struct frame f;
	struct model m;
	int fd = memfd_create("journal", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, n) != (ssize_t)n || framefile_open_fd(&reader, fd))
		abort();
	if (model_init(&m))
		abort();
	while (framefile_next(&reader, &f) > 0)
		if (!frame_payload(&f, &scratch, &raw))
			model_feed(&m, &f.head, raw, f.head.raw_bytes);
	report_all(&m);
	model_release(&m);
	buf_release(&scratch);
	framefile_reader_close(&reader);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned int seed)
{
	return fuzz_mutate_frames(data, n, most, seed);
}
