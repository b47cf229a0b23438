/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * value_size.h - stepping over plain msgpack values without decoding them.
 */
#ifndef COMMON_VALUE_SIZE_H
#define COMMON_VALUE_SIZE_H

#include <stdint.h>

/* Bytes of a whole value whose first byte alone says so; 0: the length follows, a container, no
 * value. */
extern const uint8_t value_size[256];

#endif
