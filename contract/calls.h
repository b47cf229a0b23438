/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calls.h - the call that a thread is in, as one word of shared memory.
 *
 * Which function of hooks.def, and its object: a descriptor, a lock's address, a process, the
 * address of a path, of a host's name or of poll()'s list. Both in 64 bits, so a reader never sees
 * one without the other; 0: in none of them.
 */
#ifndef CREMA_CONTRACT_CALLS_H
#define CREMA_CONTRACT_CALLS_H

#include <stdint.h>

enum crema_call {
	CREMA_CALL_none,
#define HOOK(family, ret, name, ...) CREMA_CALL_##name,
#include "hooks.def"
#undef HOOK
	CREMA_CALLS
};

#define CREMA_CALL_OBJECT_BITS 48

static inline uint64_t crema_call_word(enum crema_call call, uint64_t object)
{
	return (uint64_t)call << CREMA_CALL_OBJECT_BITS |
	       (object & ((UINT64_C(1) << CREMA_CALL_OBJECT_BITS) - 1));
}

static inline uint32_t crema_call_of(uint64_t word)
{
	return (uint32_t)(word >> CREMA_CALL_OBJECT_BITS);
}

static inline uint64_t crema_call_object(uint64_t word)
{
	return word & ((UINT64_C(1) << CREMA_CALL_OBJECT_BITS) - 1);
}

/* Reads a thread's block at one moment; false: no call, or it changed at each read. */
static inline int crema_call_read(const uint64_t *call, const uint64_t *call_start, uint64_t *word,
				  uint64_t *start)
{
	for (int tries = 0; tries < 3; tries++) {
		*word = __atomic_load_n(call, __ATOMIC_ACQUIRE);
		*start = __atomic_load_n(call_start, __ATOMIC_ACQUIRE);
		if (__atomic_load_n(call, __ATOMIC_ACQUIRE) == *word &&
		    __atomic_load_n(call_start, __ATOMIC_ACQUIRE) == *start)
			return *word != 0;
	}
	return 0;
}

#endif
