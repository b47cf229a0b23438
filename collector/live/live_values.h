/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live_values.h - the numbers of a TOTALS message in one row, and the rates made from them.
 *
 * Order: own times, pool times, counts of tasks, counts of no task, amounts, plain counts.
 */
#ifndef COLLECTOR_LIVE_VALUES_H
#define COLLECTOR_LIVE_VALUES_H

#include "ids.h"

/* AMOUNT(part, key): [part][key] of TOTALS; PLAIN(key) */
#define LIVE_AMOUNT_TABLE                                                                          \
	AMOUNT(process, cpu_ns)                                                                    \
	AMOUNT(process, storage_read_bytes)                                                        \
	AMOUNT(process, storage_write_bytes)                                                       \
	AMOUNT(seen, cpu_ns)                                                                       \
	AMOUNT(seen, storage_read_bytes)                                                           \
	AMOUNT(seen, storage_write_bytes)                                                          \
	AMOUNT(children, cpu_ns)                                                                   \
	AMOUNT(children, storage_read_bytes)                                                       \
	AMOUNT(children, storage_write_bytes)
#define LIVE_PLAIN_TABLE                                                                           \
	PLAIN(tasks_started)                                                                       \
	PLAIN(tasks_done)                                                                          \
	PLAIN(tasks_refused)                                                                       \
	PLAIN(records_refused)                                                                     \
	PLAIN(strings_refused)                                                                     \
	PLAIN(files_refused)                                                                       \
	PLAIN(threads_refused)                                                                     \
	PLAIN(shared_network_read_bytes)                                                           \
	PLAIN(shared_network_write_bytes)

enum live_value {
	LIVE_OWN = 0,
	LIVE_POOL = LIVE_OWN + CREMA_TIMES,
	LIVE_TASK = LIVE_POOL + CREMA_TIMES,
	LIVE_REST = LIVE_TASK + CREMA_COUNTS,
	LIVE_AMOUNT = LIVE_REST + CREMA_COUNTS,
	LIVE_AMOUNT_END_ = LIVE_AMOUNT - 1,
#define AMOUNT(part, key) LIVE_##part##_##key,
	LIVE_AMOUNT_TABLE
#undef AMOUNT
		LIVE_PLAIN,
	LIVE_PLAIN_END_ = LIVE_PLAIN - 1,
#define PLAIN(key) LIVE_##key,
	LIVE_PLAIN_TABLE
#undef PLAIN
		LIVE_VALUES
};

/* LAYER(id, what it is for people): bytes, of tasks and of no task together */
#define LIVE_LAYER_TABLE                                                                           \
	LAYER(read, "returned by read calls")                                                      \
	LAYER(mapped, "mapped")                                                                    \
	LAYER(storage_read, "from storage")                                                        \
	LAYER(storage_write, "to storage")                                                         \
	LAYER(network_read, "from the network")                                                    \
	LAYER(network_write, "to the network")                                                     \
	LAYER(comm_read, "from Dask")                                                              \
	LAYER(comm_write, "to Dask")                                                               \
	LAYER(decompress_in, "into codecs")                                                        \
	LAYER(decompress_out, "out of codecs")                                                     \
	LAYER(write, "given to write calls")

enum live_layer {
#define LAYER(id, help) LIVE_LAYER_##id,
	LIVE_LAYER_TABLE
#undef LAYER
		LIVE_LAYERS
};

/* Per second: bytes by layer, seconds by class, CPU seconds, tasks, events. */
enum live_rate {
	LIVE_RATE_LAYER = 0,
	LIVE_RATE_CLASS = LIVE_LAYERS,
	LIVE_RATE_CPU = LIVE_RATE_CLASS + CREMA_TIMES,
	LIVE_RATE_TASKS,
	LIVE_RATE_EVENTS,
	LIVE_RATES
};

#endif
