/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fnv.h - 64-bit FNV-1a, the basis of names on the wire and in shared memory: shim, agent and
 * collector must compute the same number.
 */
#ifndef CREMA_CONTRACT_FNV_H
#define CREMA_CONTRACT_FNV_H

#include <stddef.h>
#include <stdint.h>

#define CREMA_HASH_BEGIN UINT64_C(0xcbf29ce484222325)

/* Continues `hash` with these bytes. */
static inline uint64_t crema_hash_more(uint64_t hash, const void *bytes, size_t n)
{
	const unsigned char *at = (const unsigned char *)bytes;

	while (n--)
		hash = (hash ^ *at++) * UINT64_C(0x100000001b3);
	return hash;
}

#endif
