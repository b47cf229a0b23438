/* SPDX-License-Identifier: BSD-3-Clause */
/* place.c - see place.h. */
#include "collector/follow/place.h"

#include <inttypes.h>
#include <stdio.h>

static int order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

int place_order(const struct place *a, const struct place *b)
{
	int by = order(a->segment_ns, b->segment_ns);

	by = by ? by : order(a->frame, b->frame);
	return by ? by : order(a->item, b->item);
}

char *place_text(char *out, const struct place *p)
{
	snprintf(out, PLACE_BYTES, "%" PRIu64 "/%" PRIu64 "/%" PRIu64, p->segment_ns, p->frame,
		 p->item);
	return out;
}

bool place_read(struct place *p, const char *text)
{
	int end = 0;

	return sscanf(text, "%20" SCNu64 "/%20" SCNu64 "/%20" SCNu64 "%n", &p->segment_ns,
		      &p->frame, &p->item, &end) == 3 &&
	       end && !text[end] && p->segment_ns;
}
