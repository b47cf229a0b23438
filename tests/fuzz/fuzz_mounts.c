/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_mounts.c - the kernel's texts about mounts, and a calibration that anyone may have written,
 * as a file or as a message: mountinfo up to a NUL, then the other one. Valid verdicts are written
 * and found again. */
#include <stdlib.h>
#include <string.h>

#include "common/calibration.h"
#include "common/mountstats.h"
#include "common/pack.h"
#include "tests/fuzz/fuzz.h"

static void verdicts(const char *p, size_t n)
{
	struct text rest = {p, n};
	struct buf copy = BUF_INIT;
	struct verdict v, found;

	if (calibration_check(p, n))
		return;
	while (calibration_next(&rest, &v)) {
		found = v;
		if (calibration_put(&copy, &v) || calibration_check((char *)copy.data, copy.len) ||
		    !calibration_find(&copy, &found) || found.right != v.right)
			abort();
	}
	buf_release(&copy);
}

/* The same as a collector's message. */
static void shipped(const uint8_t *p, size_t n)
{
	struct buf text = BUF_INIT;
	struct unpack u;
	int rc;

	if (unpack_open(&u, p, n))
		return;
	rc = calibration_unpack(&text, &u.root);
	if ((rc && text.len) || (text.len && calibration_check((const char *)text.data, text.len)))
		abort();
	unpack_release(&u);
	buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	/* Copies of the exact size: a sanitizer then detects reads past their end. */
	const uint8_t *cut = n ? memchr(data, 0, n) : NULL;
	size_t a = cut ? (size_t)(cut - data) : n, b = cut ? n - a - 1 : n;
	char *first = malloc(a + 1), *second = malloc(b + 1);
	char options[MOUNT_OPTIONS];
	struct text mounts, stats;
	struct mount_bytes sum;
	struct mount m;
	uint64_t bytes;

	if (!first || !second)
		abort();
	first = memcpy(realloc(first, a ? a : 1), data, a);
	second = memcpy(realloc(second, b ? b : 1), cut ? cut + 1 : data, b);
	mounts = (struct text){first, a};
	stats = (struct text){second, b};
	mountstats_sum(stats, mounts, &sum);
	lustre_read_sum(stats, &bytes);
	while (mounts_next(&mounts, &m))
		mounts_options(&m, options);
	verdicts(second, b);
	shipped((const uint8_t *)second, b);
	free(first);
	free(second);
	return 0;
}
