/* SPDX-License-Identifier: BSD-3-Clause */
/* model_release.c - frees a model, or all of its attempts. */
#include "collector/model/model.h"

#include <stdlib.h>
#include <string.h>

#include "collector/model/dropped.h"
#include "collector/model/model_lines.h"
#include "collector/model/span_part.h"

static void worker_release(struct worker *w)
{
	size_t i;

	for (i = 0; i < w->streams.n; i++)
		free(w->streams.v[i].ranges.v);
	free(w->streams.v);
	free(w->stacks.ranges.v);
	free(w->spanned.ranges.v);
	free(w->taken_up.ranges.v);
	free(w->filesystems.v);
	free(w->clocks.v);
	free(w->samples.v);
	free(w->hosts.v);
	free(w->probes.v);
	free(w->outside.v);
	free(w->taken.v);
	free(w->doing.v);
	free(w->digests.v);
	free(w->notes.v);
	free(w->evidence.v);
	free(w->history.v);
}

void model_drop_attempts(struct model *m)
{
	free(m->attempts.v);
	m->attempts = (struct attempts){0};
	table_release(&m->attempt_table);
	m->recent_page = NULL;
	arena_release(&m->attempt_arena);
	arena_release(&m->page_arena);
	arena_release(&m->bytes);
}

void model_release(struct model *m)
{
	size_t i;

	for (i = 0; i < m->workers.n; i++)
		worker_release(m->workers.v[i]);
	free(m->workers.v);
	for (i = 0; i < m->files.n; i++) {
		ranges_release(&m->files.v[i]->read);
		ranges_release(&m->files.v[i]->baskets);
		opened_release(&m->files.v[i]->opened);
	}
	dropped_release(m);
	model_drop_attempts(m);
	free(m->segments.v);
	free(m->files.v);
	free(m->codecs.v);
	free(m->servers.v);
	free(m->sections.v);
	free(m->gauges.v);
	free(m->columns.v);
	table_release(&m->section_table);
	table_release(&m->gauge_table);
	table_release(&m->column_table);
	span_parts_release(m);
	free(m->sites.v);
	model_lines_release(&m->lines);
	free(m->torn.v);
	table_release(&m->worker_table);
	table_release(&m->shared_table);
	table_release(&m->file_table);
	table_release(&m->codec_table);
	table_release(&m->server_table);
	table_release(&m->module_table);
	table_release(&m->site_table);
	table_release(&m->names.table);
	arena_release(&m->arena);
	memset(m, 0, sizeof(*m));
}
