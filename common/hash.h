/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash.h - a hash for tables whose keys a peer may choose: without the table's random seed, no one
 * can choose keys that all collide.
 */
#ifndef CREMA_COMMON_HASH_H
#define CREMA_COMMON_HASH_H

#include <stdint.h>
#include <string.h>

#include "wire.h"

static inline uint64_t hash_mix(uint64_t a)
{
	a = (a ^ a >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return (a ^ a >> 32) * UINT64_C(0xd6e8feb86659fd93);
}

static inline uint64_t hash_worker(const uint8_t *id, const uint64_t seed[2])
{
	uint64_t a, b;

	memcpy(&a, id, 8);
	memcpy(&b, id + 8, 8);
	a = hash_mix(hash_mix(a ^ seed[0]) ^ b ^ seed[1]);
	return a ^ a >> 32;
}

_Static_assert(CREMA_WORKER_ID_BYTES == 16, "both halves are hashed");

#endif
