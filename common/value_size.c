/* SPDX-License-Identifier: BSD-3-Clause */
/* value_size.c - the sizes of plain msgpack values by their first byte. */
#include "common/value_size.h"

#define X8(n) n, n, n, n, n, n, n, n
#define X32(n) X8(n), X8(n), X8(n), X8(n)
#define UP8(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7

const uint8_t value_size[256] = {
	X32(1), X32(1), X32(1),	 X32(1),	       /* 00 to 7f: small numbers */
	X32(0),					       /* 80 to 9f: maps and arrays */
	UP8(1), UP8(9), UP8(17), UP8(25),	       /* a0 to bf: short texts */
	1,	0,	1,	 1,	  0, 0, 0, 0,  /* c0: nil, -, false, true, bin, ext */
	0,	0,	5,	 9,	  2, 3, 5, 9,  /* c8: ext, float, uint */
	2,	3,	5,	 9,	  3, 4, 6, 10, /* d0: int, fixed ext */
	18,	0,	0,	 0,	  0, 0, 0, 0,  /* d8: fixed ext, str, array, map */
	X32(1),					       /* e0 to ff: small negative numbers */
};
