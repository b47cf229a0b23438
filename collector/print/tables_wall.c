/* SPDX-License-Identifier: BSD-3-Clause */
/* tables_wall.c - the wall time of the client, part by part. */
#include <math.h>

#include "collector/emit/emit_text.h"
#include "collector/print/print.h"

static void put_part(struct grid *g, const struct wall *w, const char *words, struct value v)
{
	static const char bar[] = "####################";
	double share = value_number(v, NULL) / w->seconds * 100;

	grid_text(g, words);
	grid_value(g, v, AS_SECONDS);
	if (v.type == VALUE_NULL)
		grid_text(g, "");
	else
		grid_printf(g, "%.1f %%", share);
	grid_printf(g, "%.*s", (int)lround(fmin(fmax(share, 0), 100) / 5), bar);
}

/* The rest is always printed. */
void report_table_wall(const struct report *r, struct sink *s, bool colour)
{
	const struct wall *w = r->wall;
	struct grid g;
	size_t i;

	if (!w)
		return;
	table_section(s, colour, "Wall time of the client");
	grid_init(&g, s, colour);
	grid_columns(&g, "<", ">", ">of all", "<", NULL);
	for (i = 0; i < WALL_PARTS; i++) {
		if (w->part[i].type == VALUE_NULL || w->part[i].v.d > 0)
			put_part(&g, w, wall_parts[i].words, w->part[i]);
	}
	put_part(&g, w, "rest", value_real(w->rest));
	put_part(&g, w, "all", value_real(w->seconds));
	grid_print(&g);
	if (!w->ended)
		text_paragraph(
			s, "  ",
			"the client was killed or still runs: what followed is not recorded");
	if (*w->unseen)
		text_paragraph(s, "  ", "unknown parts are in the rest: %s", w->unseen);
}
