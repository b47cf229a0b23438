/* SPDX-License-Identifier: BSD-3-Clause */
/* loop_uring_buffers.c - the buffers that the kernel receives into, shared by all streams. */
#include <errno.h>
#include <sys/mman.h>

#include "collector/serve/loop_uring.h"

#define BUFFER_BYTES (16u << 10)
#define MEMORY_BYTES ((size_t)URING_BUFFERS * BUFFER_BYTES)
#define RING_BYTES (URING_BUFFERS * sizeof(struct io_uring_buf))

_Static_assert(BUFFER_BYTES <= LOOP_READ_MAX, "a piece is a buffer");
_Static_assert(MEMORY_BYTES <= LOOP_ROUND_MAX, "no more can come in one round");

static void *map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	/* A child that makes a report must neither share nor copy what the kernel writes to. */
	if (p != MAP_FAILED && madvise(p, bytes, MADV_DONTFORK)) {
		munmap(p, bytes);
		p = MAP_FAILED;
	}
	return p == MAP_FAILED ? NULL : p;
}

static void add(struct uring_buffers *buffers, uint16_t id, int at)
{
	io_uring_buf_ring_add(buffers->ring, buffers->memory + (size_t)id * BUFFER_BYTES,
			      BUFFER_BYTES, id, io_uring_buf_ring_mask(URING_BUFFERS), at);
}

int uring_buffers_open(struct uring_buffers *buffers, struct io_uring *ring)
{
	struct io_uring_buf_reg reg = {.ring_entries = URING_BUFFERS};
	unsigned int i;
	int err = -ENOMEM;

	buffers->ring = map(RING_BYTES);
	buffers->memory = map(MEMORY_BYTES);
	if (buffers->ring && buffers->memory) {
		reg.ring_addr = (uintptr_t)buffers->ring;
		err = io_uring_register_buf_ring(ring, &reg, 0);
	}
	if (err) {
		uring_buffers_close(buffers);
		return err;
	}
	io_uring_buf_ring_init(buffers->ring);
	for (i = 0; i < URING_BUFFERS; i++)
		add(buffers, (uint16_t)i, (int)i);
	io_uring_buf_ring_advance(buffers->ring, URING_BUFFERS);
	return 0;
}

void uring_buffers_close(struct uring_buffers *buffers)
{
	if (buffers->ring)
		munmap(buffers->ring, RING_BYTES);
	if (buffers->memory)
		munmap(buffers->memory, MEMORY_BYTES);
	buffers->ring = NULL;
	buffers->memory = NULL;
}

uint8_t *uring_buffer(struct uring_buffers *buffers, const struct io_uring_cqe *cqe)
{
	return buffers->memory + (size_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT) * BUFFER_BYTES;
}

void uring_buffer_back(struct uring_buffers *buffers, const struct io_uring_cqe *cqe)
{
	if (!(cqe->flags & IORING_CQE_F_BUFFER))
		return;
	add(buffers, (uint16_t)(cqe->flags >> IORING_CQE_BUFFER_SHIFT), 0);
	io_uring_buf_ring_advance(buffers->ring, 1);
}
