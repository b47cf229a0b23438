/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * runs_plain.h - runs of coffea without Dask: grouped by the reports of the processes alone.
 *
 * The span of such a chunk is "coffea-HASH.N": the processor, and how often its process has
 * restarted it. A run is the chunks of one HASH. Another run of the same HASH begins with a chunk
 *  - that had succeeded in the current run, while nothing was running,
 *  - whose file's metadata was fetched after the first chunk had begun: coffea does that first,
 *  - or after PLAIN_IDLE_SECONDS without any chunk.
 * A fetch of metadata ("coffea-metadata.N") belongs to the run of the next chunk of its (dataset,
 * file). Fetches that no chunk follows form separate runs, by gaps in time.
 *
 * Two analyses with the same processor and files at the same time are one run.
 */
#ifndef CREMA_COLLECTOR_RUNS_RUNS_PLAIN_H
#define CREMA_COLLECTOR_RUNS_RUNS_PLAIN_H

#include "collector/runs/runs.h"

#define PLAIN_IDLE_SECONDS 600.0

/* True if it ran without Dask. */
bool attempt_is_plain(const struct attempt *a);

/* Part of runs_build(): adds the runs of such attempts; attempts are sorted by begin. */
int runs_group_plain(struct runs *runs, struct model *m);

#endif
