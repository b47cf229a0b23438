/* SPDX-License-Identifier: BSD-3-Clause */
/* compare_page.c - two runs side by side as a page, with a flame graph of their difference. */
#include "collector/compare/compare.h"
#include "collector/page/page.h"
#include "version.h"

/* The same as on its own page. */
static void put_stacks(const struct compared *c, struct json *j)
{
	const struct report r = {.run = c->run, .facts = &c->facts, .lines = c->lines};

	emit_object(j, NULL);
	page_lines(&r, j);
	emit_end(j);
}

void compare_page(const struct comparison *c, struct sink *s)
{
	struct buf data = BUF_INIT;
	struct sink inner = {.out = &data};
	struct json j;

	emit_init(&j, &inner);
	emit_object(&j, NULL);
	emit_value(&j, "version", value_text(CREMA_VERSION));
	page_terms(&j);
	compare_json(c, &j, "compare");
	emit_array(&j, "runs");
	for (size_t i = 0; i < c->n; i++)
		put_stacks(&c->run[i], &j);
	emit_end(&j);
	emit_end(&j);
	if (sink_end(&inner))
		s->error = inner.error;
	else
		page_put(s, &data);
	buf_release(&data);
}
