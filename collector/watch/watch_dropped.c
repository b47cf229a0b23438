/* SPDX-License-Identifier: BSD-3-Clause */
/* watch_dropped.c - reads what remains of dropped runs (model/dropped.h). */
#include <sys/stat.h>

#include "collector/model/dropped.h"
#include "collector/watch/watch_parts.h"
#include "common/dirs.h"

/* [[stream, [from, to, ...]], ...] */
static uint64_t take_streams(struct watch *w, const uint8_t *worker, const msgpack_object *list)
{
	const msgpack_object *pair, *edges;
	uint64_t stream, from, to, fresh = 0;

	for (uint32_t i = 0; list && list->type == MSGPACK_OBJECT_ARRAY && i < list->via.array.size;
	     i++) {
		pair = &list->via.array.ptr[i];
		if (pair->type != MSGPACK_OBJECT_ARRAY || pair->via.array.size < 2 ||
		    !object_u64(&pair->via.array.ptr[0], &stream))
			continue;
		edges = &pair->via.array.ptr[1];
		for (uint32_t k = 0;
		     edges->type == MSGPACK_OBJECT_ARRAY && k + 1 < edges->via.array.size; k += 2) {
			if (object_u64(&edges->via.array.ptr[k], &from) &&
			    object_u64(&edges->via.array.ptr[k + 1], &to))
				fresh += watch_add(w, worker, stream, from, to);
		}
	}
	return fresh;
}

static void take_carry(struct watch *w, struct watch_journal *j, const struct frame *frame)
{
	struct unpack map;
	uint64_t fresh;

	if (watch_open(w, j, frame, &map))
		return;
	fresh = take_streams(w, frame->head.worker, get(&map.root, "streams"));
	if (j->read)
		j->missed += fresh;
	unpack_release(&map);
}

static void take_frame(struct watch *w, struct watch_journal *j, const struct frame *frame)
{
	const struct crema_frame_header *head = &frame->head;

	if (head->type == CREMA_FRAME_DROPPED_RUN && !j->read)
		j->runs_dropped++;
	if (head->type == CREMA_FRAME_CARRY)
		take_carry(w, j, frame);
	/* first_seq: the worker continues; others ended in dropped runs (dropped.h) */
	if (head->type == CREMA_FRAME_CARRIED && head->first_seq &&
	    !live_full(w->live, head->worker))
		watch_feed_carried(w, j, frame);
}

void watch_dropped(struct watch *w, struct watch_journal *j)
{
	struct framefile_reader reader;
	struct frame frame;
	char path[PATH_MAX];
	struct stat st;

	if (dirs_join(path, sizeof(path), j->tail.folder, DROPPED_FILE) || stat(path, &st) ||
	    (st.st_ino == j->dropped_file && st.st_mtim.tv_sec == j->dropped_time.tv_sec &&
	     st.st_mtim.tv_nsec == j->dropped_time.tv_nsec) ||
	    framefile_open(&reader, path))
		return;
	j->dropped_file = st.st_ino;
	j->dropped_time = st.st_mtim;
	if (!j->read)
		j->runs_dropped = 0;
	while (framefile_next(&reader, &frame) > 0)
		take_frame(w, j, &frame);
	framefile_reader_close(&reader);
}
