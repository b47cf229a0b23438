/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm.h - the shared memory of one worker process: written by the shim, read by its agent.
 *
 * One 0600 file, reserved in full before the first touch, mapped by both, descriptor closed. All
 * fields are naturally aligned; what both sides touch is accessed with __atomic builtins. The
 * reader trusts nothing: indexes, lengths and string ids are checked before use.
 *
 * A task's slot goes FREE -> CLAIMED -> RUNNING -> DONE -> FREE. Its word in `slot_word` holds the
 * state in the low 8 bits and a count of references (pool work not yet finished) above. Only the
 * shim moves a slot up to DONE; only the agent frees it, by compare-and-swap from (DONE, 0 refs),
 * once the record is acknowledged or on disk. So an agent's death loses nothing: the next agent
 * finds the slots still DONE and sends them again; readers already have the attempt.
 *
 * Numbers of a task = its slot + every live thread block whose `owner` is that slot. A thread adds
 * to its own block without atomics and folds the block into the slot when its work segment ends.
 */
#ifndef CREMA_CONTRACT_SHM_H
#define CREMA_CONTRACT_SHM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fnv.h"
#include "ids.h"
#include "shm_large.h"
#include "shm_stacks.h"

#define CREMA_SHM_MAGIC 0x314d454d41455243ull /* "CREAMEM1" */
#define CREMA_SHM_ABI 1u
#define CREMA_SHM_BYTES (4u << 20) /* the maximum cost for the worker */
#define CREMA_SHM_THREADS 512u
#define CREMA_SHM_FILES 1024u
#define CREMA_SHM_FILES_REST                                                                       \
	64u /* before the last of them: for a span, what is of no single file */
#define CREMA_SHM_OPENED 512u
#define CREMA_SHM_EXTENTS 4096u
#define CREMA_SHM_CODEC_ROWS 256u
#define CREMA_SHM_FILESYSTEMS 32u
#define CREMA_SHM_SERVERS 64u
#define CREMA_SHM_SECTIONS 384u
#define CREMA_SHM_SECTIONS_BY_DATASET 256u /* the first of them: of tasks with a dataset */
#define CREMA_SHM_SECTIONS_OTHER 8u	   /* the last of them: what did not fit, by span */
#define CREMA_SHM_GAUGES 96u
#define CREMA_SHM_COLUMNS 640u
#define CREMA_SHM_COLUMNS_OTHER 8u  /* the last of them: what did not fit, by span */
#define CREMA_SHM_COLUMN_ROWS 8192u /* made in a worker's lifetime: a limit for readers */
#define CREMA_SHM_SECTION_NAMES                                                                    \
	2048u				 /* rows made in a worker's lifetime: limits the strings   \
					  * they take */
#define CREMA_SHM_SECTION_DATASETS 4096u /* and for datasets: a limit for readers */
#define CREMA_SHM_TASK_SECTIONS 512u	 /* of all tasks whose slots are in use */
#define CREMA_TASK_SECTIONS 16u		 /* of one task */
#define CREMA_SHM_STRINGS (384u << 10)
#define CREMA_SHM_STRING_INDEX 8192u
#define CREMA_SHM_TEXTS (CREMA_SHM_STRING_INDEX / 8 * 7) /* so that a search ends soon */
/* Texts of which a worker may have any number (names of files, columns, errors) stop here. The rest
 * is for spans, prefixes, functions, datasets and notes. */
#define CREMA_SHM_STRINGS_BULK (256u << 10)
#define CREMA_SHM_TEXTS_BULK (CREMA_SHM_STRING_INDEX / 8 * 6)
#define CREMA_SHM_PROBE (64u << 10)
#define CREMA_SHM_NOTES 16u
#define CREMA_SHM_POLL_RINGS 4
#define CREMA_KEY_BYTES 96u
#define CREMA_EXTENTS_ENDED 6u

enum crema_slot_state {
	CREMA_SLOT_FREE = 0,
	CREMA_SLOT_CLAIMED = 1,
	CREMA_SLOT_RUNNING = 2,
	CREMA_SLOT_DONE = 3,
};
#define CREMA_SLOT_STATE(w) ((w)&0xffu)
#define CREMA_SLOT_REFS(w) ((w) >> 8)
#define CREMA_SLOT_REF 0x100u

enum crema_task_status { CREMA_STATUS_RUNNING = 0, CREMA_STATUS_OK = 1, CREMA_STATUS_ERRED = 2 };

/* Bits of crema_task.known: values that are not always present. */
#define CREMA_KNOWN_EVENTS (1u << 0)
#define CREMA_KNOWN_BYTESREAD (1u << 1)
#define CREMA_KNOWN_PROCESSTIME (1u << 2)
#define CREMA_KNOWN_ENTRIES (1u << 3)
#define CREMA_KNOWN_RSS_START (1u << 4)
#define CREMA_KNOWN_RSS_STOP (1u << 5)
#define CREMA_KNOWN_RSS_PEAK (1u << 6) /* the window has a new high-water mark */
#define CREMA_KNOWN_CONSUMES (1u << 7)

struct crema_counters {
	uint64_t time[CREMA_TIMES];
	uint64_t count[CREMA_COUNTS];
};

/* A task attempt. Strings are ids into the arena, 0 = unknown. */
struct crema_task {
	uint64_t attempt;
	uint64_t thread_sequence;
	uint32_t tid;
	uint32_t status;	/* enum crema_task_status, valid when DONE */
	uint32_t version;	/* grows with every fold after DONE */
	uint32_t flags;		/* CREMA_TASK_* */
	uint32_t known;		/* CREMA_KNOWN_* */
	uint32_t fs_mask;	/* bit i: read or mapped a file of filesystem i */
	uint32_t time_unknown;	/* bit i: time[i] could not be measured, own or pool threads' */
	uint32_t key_bytes;	/* length of the whole key */
	uint64_t count_unknown; /* bit i: count[i] could not be measured */
	uint64_t key_hash;
	uint64_t consumes; /* the smallest key hash of what it depends on; 0: nothing */
	uint64_t start_boot_ns, start_mono_ns, stop_boot_ns, stop_mono_ns;
	uint64_t rss_start_bytes, rss_stop_bytes, rss_peak_bytes;
	int64_t entrystart, entrystop, events;
	uint64_t coffea_bytesread;
	double coffea_processtime;
	uint32_t prefix, span, function, worker_address, worker_name;
	uint32_t dataset, filename, treename, columns;
	uint32_t error_type, error_text, error_cause; /* of the exception that it raised */
	uint16_t sections;	   /* index + 1 of its first in task_section[]; 0: none */
	uint16_t sections_refused; /* ends of sections that found no room there */
	uint32_t tree_reads;	   /* calls of uproot's read_tree, with CREMA_TASK_TREE_READ */
	uint32_t unblocked; /* 1: a thread without a block worked for it, so no time and no count is
			       known */
	uint32_t pad;
	char key[CREMA_KEY_BYTES]; /* NUL-terminated, cut at 95 bytes */
	/* Waits of its pool threads, to find what a lock wait of its own thread really waited for.
	 * By enum crema_overlap; see shim/count/overlap.h. */
	uint64_t overlap_active[3], overlap_union_ns[3], overlap_waited_ns[2];
	uint64_t pool_time[CREMA_TIMES];
	struct crema_counters own; /* time: own thread; count: own and pool */
};

/* overlap_active: how many (above these bits) and since when at least one is (ns). */
#define CREMA_OVERLAP_SINCE_BITS 48
enum crema_overlap {
	CREMA_OVERLAP_STORAGE,
	CREMA_OVERLAP_NETWORK,
	CREMA_OVERLAP_REQUEST,
	CREMA_OVERLAPS
};

/* 1 while other threads answer a request of the task (shim/count/request.h): its lock waits are
 * waits for the network. */
static inline int crema_request_under_way(const struct crema_task *t)
{
	return __atomic_load_n(&t->overlap_active[CREMA_OVERLAP_REQUEST], __ATOMIC_RELAXED) >>
		       CREMA_OVERLAP_SINCE_BITS !=
	       0;
}

#define CREMA_BASE_UNKNOWN UINT64_MAX /* of base_runqueue_ns: it could not be read */

/* One thread of the process. `seg` counts the current work segment and is folded at its end. */
struct crema_thread {
	uint32_t state; /* 0 free, 1 live */
	uint32_t tid;
	uint32_t owner;	  /* slot index + 1, 0 = no task */
	uint32_t is_pool; /* 1: works for a task that runs in another thread */
	uint32_t folding; /* 1 while the segment moves into the slot: a kill here leaves it inexact
			   */
	uint32_t about;	  /* string id: the URL that a library requests; 0: none */
	uint64_t call;	  /* calls.h: the intercepted call that it is in */
	uint64_t call_start;			/* ticks at its start; see shim/count/call.h */
	uint64_t python;			/* address of its PyThreadState; 0: unknown */
	uint64_t base_cpu_ns, base_runqueue_ns; /* clocks at the start of the segment */
	uint64_t base_inblock, base_oublock;	/* 512-byte blocks at the start of the segment */
	uint64_t base_nvcsw, base_nivcsw;	/* context switches at the start of the segment */
	uint64_t base_majflt;
	uint64_t base_tick; /* ticks at the start of the segment */
	uint64_t armed_cpu_ns, armed_inblock,
		armed_oublock;			       /* when the shim first saw the thread */
	uint64_t now_cpu_ns, now_inblock, now_oublock; /* whole thread, by the last snapshot */
	/* Not yet added to file[file_row - 1]: a reader adds them to the row. 0 = none pending. */
	uint32_t file_row, extents_ended; /* how many of extent_ended_* are in use */
	uint32_t file_opened;		  /* index + 1 into opened[] of the same; 0: none */
	uint64_t file_read_calls, file_read_bytes;
	uint64_t extent_offset, extent_bytes; /* the current extent of that file; 0 bytes: none */
	/* Extents of that file that have ended and are not in the ring yet. */
	uint64_t extent_ended_offset[CREMA_EXTENTS_ENDED];
	uint32_t extent_ended_bytes[CREMA_EXTENTS_ENDED];
	uint64_t byte_left[CREMA_LINES_BYTES]; /* until the next sample; see
						  shim/count/byte_sample.h */
	uint64_t byte_gap[CREMA_LINES_BYTES];  /* what that sample stands for; 0: nothing */
	uint32_t submitter; /* the stack that handed it its work (byte_sample.h); 0: unknown */
	uint32_t pad;
	struct crema_counters seg;
};

/* Exact sums; each thread adds with atomics when it folds. */
struct crema_totals {
	struct crema_counters tasks;
	uint64_t tasks_pool_time[CREMA_TIMES];
	struct crema_counters unattributed;
	union {
		struct {
#define TOTALS_NUMBER(name, ...) uint64_t name;
#include "rows.def"
		};
		uint64_t number[CREMA_TOTALS_NUMBERS];
	};
	uint64_t codecs_refused;
	uint64_t tasks_unblocked; /* 1: the sums of tasks lack what threads without a block did */
	uint64_t count_unknown;	  /* bit i: count[i] lacks what could not be measured */
	uint64_t exited_cpu_ns, exited_inblock, exited_oublock; /* threads that have ended */
	/* The part of the unattributed network_read_bytes that was later attributed to tasks and is
	 * in their numbers. A reader subtracts it from the unattributed. */
	uint64_t claimed_network_read_bytes;
};

struct crema_file {
	uint32_t state; /* 0 free, 1 being made, 2 ready */
	uint32_t path;	/* string id; 0 with kind other: "what did not fit in this table" */
	uint32_t span;
	uint32_t filesystem; /* index */
	uint32_t kind;	     /* enum crema_file_kind */
	uint32_t name;	     /* string id: the reader's name for it, if known */
	uint64_t dev, ino;
	union {
		struct {
#define FILE_NUMBER(name, ...) uint64_t name;
#include "rows.def"
		};
		uint64_t number[CREMA_FILE_NUMBERS];
	};
	uint64_t mtime_ns; /* of the last look, as size_bytes */
	uint32_t was_read; /* 1: by a call; read_calls may still be in a thread */
	uint32_t changed;  /* how often it changed after it was read: reads may be of other bytes */
};
/* A line of code. */
struct crema_line {
	uint32_t file, function, line; /* file, function: string ids */
};
/* What was read and written through the descriptors that one line of the user's own code opened. */
struct crema_opened {
	uint32_t state;	   /* 0 free, 1 being made, 2 ready */
	uint32_t file_row; /* index + 1 into file[] */
	struct crema_line line;
	uint32_t pad;
	union {
		struct {
#define FILE_OPENED(name, ...) uint64_t name;
#include "rows.def"
		};
		uint64_t number[CREMA_OPENED_NUMBERS];
	};
};
enum crema_file_kind {
	CREMA_FILE_DATA = 0,
	CREMA_FILE_IMPORT = 1,
	CREMA_FILE_OTHER = 2,
	CREMA_FILE_REMOTE = 3, /* known by its URL only: no read calls */
};

/* Bytes of a data file that were read in one extent, or a basket that was used. The agent zeroes
 * the row after it has read the other members. What finds no room is left out, never
 * overwritten. */
struct crema_extent {
	uint64_t offset;
	uint32_t bytes;
	uint32_t row; /* index + 1 into file[], and the bit CREMA_EXTENT_BASKET; 0: nothing yet */
};
#define CREMA_EXTENT_BASKET (1u << 31)
#define CREMA_EXTENT_BYTES (1u << 30) /* an extent that reaches this ends */

struct crema_codec_row {
	uint32_t state; /* 0 free, 1 being made, 2 ready */
	uint32_t codec; /* enum crema_codec_id */
	uint32_t span;
	uint32_t time_unknown; /* 1: unknown for some calls, so cpu_ns and wall_ns are too small */
	union {
		struct {
#define CODEC_NUMBER(name, ...) uint64_t name;
#include "rows.def"
		};
		uint64_t number[CREMA_CODEC_NUMBERS];
	};
};

/* Requests to one server under one span. A latency of bucket i was below 2^(10 + i) ns and, for i >
 * 0, at or above half of that; the last bucket has no upper end. */
#define CREMA_LATENCY_BUCKETS 32u
struct crema_server {
	uint32_t state;	  /* 0 free, 1 being made, 2 ready */
	uint32_t scheme;  /* string ids: "http", "root" ... */
	uint32_t address; /* "host:port"; 0: what did not fit in this table */
	uint32_t span;
	union {
		struct {
#define SERVER_NUMBER(name, ...) uint64_t name;
#include "rows.def"
		};
		uint64_t number[CREMA_SERVER_NUMBERS];
	};
	uint64_t latency[CREMA_LATENCY_BUCKETS];
};

static inline uint32_t crema_latency_bucket(uint64_t ns)
{
	uint32_t bits = ns >> 10 ? 64u - (uint32_t)__builtin_clzll(ns >> 10) : 0;

	return bits < CREMA_LATENCY_BUCKETS ? bits : CREMA_LATENCY_BUCKETS - 1;
}

/* How often a section took how long. Four buckets per octave, so a bucket's middle is within 9.1 %
 * of all values in it: [0] below 1024 ns, [i] from 1024 * 2^((i - 1) / 4) ns, the last from 2^42 ns
 * (73 min) without an end. */
#define CREMA_WALL_BUCKETS 130u
static inline uint32_t crema_wall_bucket(uint64_t ns)
{
	uint32_t octave, top;

	if (ns < 1024 || ns >> 42)
		return ns < 1024 ? 0 : CREMA_WALL_BUCKETS - 1;
	octave = 63u - (uint32_t)__builtin_clzll(ns);
	top = (uint32_t)(ns << (63 - octave) >> 32); /* 2^31 and on: 2^31.25, 2^31.5, 2^31.75 */
	return 1 + 4 * (octave - 10) + (top >= 2553802834u) + (top >= 3037000500u) +
	       (top >= 3611622603u);
}

/*
 * A section that tasks' own code has named (shim/count/section.h): sums over all that have ended
 * under one path of names, span, prefix and dataset. Inclusive: inner sections are in here too. One
 * writer at a time (the GIL's holder); seq is odd while it writes. A row can be given to another
 * path if it is not open, and if the agent has put its seq into safe_seq because its numbers are
 * acknowledged or on disk.
 */
struct crema_section {
	uint64_t seq, safe_seq;
	uint64_t number; /* number of this row in the worker's lifetime */
	uint32_t state;	 /* 0 free, 2 ready */
	uint32_t path;	 /* string id of "outer/inner"; 0: what did not fit in this table */
	uint32_t span, prefix;
	uint32_t dataset; /* of the task's chunk; 0: unknown */
	uint32_t flags;	  /* CREMA_SECTION_* */
	uint32_t unsure;  /* 1: pool threads' work could not be followed */
	uint32_t pad;
	uint64_t hash; /* of the path */
	union {
		struct {
#define SECTION_NUMBER(name, ...) uint64_t name;
#include "rows.def"
		};
		uint64_t counted[CREMA_SECTION_NUMBERS];
	};
	uint32_t wall_bucket[CREMA_WALL_BUCKETS]; /* by crema_wall_bucket() */
	uint32_t time_unknown, fs_mask;		  /* as crema_task's, of any of its tasks */
	uint64_t count_unknown;
	uint64_t pool_time[CREMA_TIMES];
	struct crema_counters own; /* time: the thread that opened it; count: with pool threads */
};
#define CREMA_SECTION_POOL                                                                         \
	(1u << 0) /* opened by a thread that worked for the task: own numbers only */
#define CREMA_SECTION_FOUND                                                                        \
	(1u << 1) /* not measured here: found in what the task returned; wall only */
#define CREMA_SECTION_MEMORY (1u << 2) /* of a gauge: resident memory around a section */
#define CREMA_SECTION_BYTES                                                                        \
	(1u << 3) /* of a gauge: bytes that a section requested, counted elsewhere */
#define CREMA_SECTION_BEYOND                                                                       \
	(1u << 4) /* of all datasets that found no row; the row's dataset is                       \
		   * 0 */

/* The same for a single task, by path: shim/count/section_task.h. */
struct crema_task_section {
	uint64_t wall_ns;
	uint32_t path; /* string id, whose low two bits are free, and CREMA_TASK_SECTION_* */
	uint32_t calls;
	uint32_t attempt;     /* the task's, cut */
	uint16_t owner, next; /* slot index + 1; index + 1 of the task's next one */
};
#define CREMA_TASK_SECTION_POOL 1u
#define CREMA_TASK_SECTION_FOUND 2u

/*
 * A column as tasks of one span and dataset read it (shim/count/column.h). One writer at a time
 * (the GIL's holder); seq, safe_seq and number are as in crema_section.
 */
#define CREMA_COLUMN_LINES 4u
struct crema_column {
	uint64_t seq, safe_seq, number;
	uint32_t state; /* 0 free, 2 ready */
	uint32_t open;	/* current reads of it */
	uint32_t column, tree, dataset, span;
	uint32_t flags;			/* CREMA_COLUMN_* */
	uint32_t time_unknown, fs_mask; /* as crema_task's, of any of its tasks */
	uint32_t lines; /* how many requested it: those beyond line[] are only counted */
	struct crema_line line[CREMA_COLUMN_LINES];
	uint64_t count_unknown;
	union {
		struct {
#define COLUMN_NUMBER(name, ...) uint64_t name;
#include "rows.def"
		};
		uint64_t counted[CREMA_COLUMN_NUMBERS];
	};
};
#define CREMA_COLUMN_TOGETHER (1u << 0) /* of several with one request */
#define CREMA_COLUMN_BEYOND (1u << 1)	/* of those that found no row */
#define CREMA_COLUMN_KIND 3u		/* these bits identify it */
#define CREMA_COLUMN_UNSURE                                                                        \
	(1u << 2)		       /* read by a pool thread: its times and counts are unknown  \
					*/
#define CREMA_COLUMN_UNASKED (1u << 3) /* uproot does not report its requests to the file */
#define CREMA_COLUMN_UNCOUNTED (1u << 4) /* too many tasks at once: how many read it is unknown */

/* Values that tasks' own code has recorded. */
#define GAUGE_uint uint64_t
#define GAUGE_real double
struct crema_stat {
#define GAUGE_NUMBER(name, type, ...) GAUGE_##type name;
#include "rows.def"
};
struct crema_gauge {
	uint64_t seq, safe_seq, number; /* as in crema_section, all to hash */
	uint32_t state, path, span, prefix, flags;
	uint32_t open; /* begun and neither ended nor broken */
	uint64_t hash;
	uint64_t broken;
	struct crema_stat stat[CREMA_GAUGE_STATS]; /* by crema_gauge_part */
};

/* What of that kind was not measured. */
struct crema_unmeasured {
	uint64_t outside; /* no task of this thread was known: asynchronous code, other threads */
	uint64_t refused; /* nested too deep, path too long, name empty or no text */
	uint64_t values;  /* not a finite number, or a new name when the table of gauges was full */
	uint64_t columns; /* reads of columns: too many at once, or for no known task */
};

struct crema_filesystem {
	uint32_t state; /* 0 free, 2 ready */
	uint32_t pad;
	uint64_t dev;
	int64_t f_type; /* statfs f_type */
	uint32_t path;	/* string id of one file on it */
	uint32_t pad2;
};

/* Process numbers at one instant, all taken together by the shim (seq odd while writing). */
struct crema_snapshot {
	uint32_t seq;
	uint32_t flags; /* bit 0: io of every thread could be read; bit 1: one ended unseen */
	uint64_t boot_ns, mono_ns, tsc;
	uint64_t process_cpu_ns, process_inblock, process_oublock; /* since armed */
	uint64_t seen_cpu_ns, seen_inblock, seen_oublock; /* known threads, live and ended */
	uint64_t in_flight;				  /* tasks running at that instant */
	/* Children that have ended and were waited for (RUSAGE_CHILDREN), with their children. */
	uint64_t children_cpu_ns, children_inblock, children_oublock;
};

/* JSON text from the worker probe (seq odd while writing). */
struct crema_probe_text {
	uint32_t seq;
	uint32_t bytes;
	uint64_t boot_ns;
	char text[CREMA_SHM_PROBE - 16];
};

/* Space of everything but tasks: tables, and a bound for other data. */
#define CREMA_SHM_OTHERS                                                                           \
	(CREMA_SHM_THREADS * sizeof(struct crema_thread) +                                         \
	 CREMA_SHM_FILES * sizeof(struct crema_file) +                                             \
	 CREMA_SHM_OPENED * sizeof(struct crema_opened) +                                          \
	 CREMA_SHM_EXTENTS * sizeof(struct crema_extent) +                                         \
	 CREMA_SHM_STACKS * sizeof(struct crema_stack) +                                           \
	 CREMA_SHM_BYTE_STACKS * (sizeof(struct crema_byte_stack) + sizeof(uint64_t)) +            \
	 CREMA_LARGE_SPANS * sizeof(struct crema_large_span) +                                     \
	 CREMA_LARGE_ROWS * (sizeof(struct crema_large_row) + sizeof(struct crema_large_told)) +   \
	 CREMA_SHM_CODEC_ROWS * sizeof(struct crema_codec_row) +                                   \
	 CREMA_SHM_SERVERS * sizeof(struct crema_server) +                                         \
	 CREMA_SHM_SECTIONS * sizeof(struct crema_section) +                                       \
	 CREMA_SHM_TASK_SECTIONS * sizeof(struct crema_task_section) +                             \
	 CREMA_SHM_GAUGES * sizeof(struct crema_gauge) +                                           \
	 CREMA_SHM_COLUMNS * sizeof(struct crema_column) +                                         \
	 CREMA_SHM_FILESYSTEMS * sizeof(struct crema_filesystem) +                                 \
	 CREMA_SHM_STRING_INDEX * sizeof(uint32_t) + CREMA_SHM_STRINGS +                           \
	 2 * sizeof(struct crema_probe_text) + sizeof(struct crema_totals) + 1024)
/* Tasks get the rest: a new counter takes 40 of 2,600 slots, and nothing needs tuning. */
#define CREMA_SHM_TASKS                                                                            \
	((uint32_t)((CREMA_SHM_BYTES - CREMA_SHM_OTHERS) /                                         \
		    (sizeof(struct crema_task) + sizeof(uint32_t))))

struct crema_shm {
	uint64_t magic;
	uint32_t abi, header_bytes;
	uint64_t total_bytes;
	uint64_t tables; /* crema_shm_tables() of the shim */
	uint32_t task_bytes, thread_bytes, file_bytes, tasks, threads, files;
	uint8_t worker[16];
	uint32_t pid, uid;
	uint64_t start_ticks; /* /proc/PID/stat field 22 */
	uint64_t armed_tsc, armed_mono_ns, armed_boot_ns, armed_real_ns;
	uint64_t tsc_mult; /* ns = tsc * mult >> 32; 0: clock_gettime is used */
	uint64_t python_runtime, python_runtime_bytes; /* address of _PyRuntime; 0: unknown */
	uint64_t python_types[3]; /* addresses of PyCode_Type, PyUnicode_Type, PyBytes_Type */
	uint32_t python_version;  /* 0x030b0700 is 3.11.7; 0: unknown */
	uint32_t goodbye;	  /* 1: exit handlers ran; 2: _exit was called */
	int32_t exit_status;
	uint32_t agent_ready; /* pid of the agent in its own view, 0 = none yet */
	uint32_t agent_starts;
	uint64_t agent_heartbeat_boot_ns;
	uint32_t next_thread;
	uint64_t next_attempt;
	uint64_t agent_stream_seq; /* agent's own: records of its stream so far */
	uint64_t agent_dropped;	   /* agent's own: records that all agents have dropped so far */
	uint32_t unseen_io;	   /* enum crema_unseen_io (unseen_io.h): what was found */
	uint32_t io_uring_polls[CREMA_SHM_POLL_RINGS]; /* descriptors + 1 of rings without I/O */
	uint32_t notes; /* how many of note[] are used: string ids of reasons */
	uint32_t note[CREMA_SHM_NOTES];
	uint32_t strings_used; /* bytes of the arena in use */
	uint32_t texts;	       /* how many are in the index */
	uint32_t string_index[CREMA_SHM_STRING_INDEX];
	uint64_t extents_head; /* extents that the shim has put into the ring so far */
	uint64_t extents_tail; /* ... and that the agent has taken */
	struct crema_extent extent[CREMA_SHM_EXTENTS];
	struct crema_totals totals;
	struct crema_snapshot snapshot;
	struct crema_blocked blocked;
	struct crema_stack stack[CREMA_SHM_STACKS];
	uint32_t byte_samples; /* written by the agent: 1 if it takes samples by the byte */
	uint64_t byte_stack_hash[CREMA_SHM_BYTE_STACKS]; /* of the rows; 0: none */
	struct crema_byte_stack byte_stack[CREMA_SHM_BYTE_STACKS];
	uint64_t large_seq;    /* see shm_large.h */
	uint64_t large_frames; /* address of struct
				  crema_py_frame[CREMA_LARGE_ROWS][CREMA_BYTE_DEPTH] */
	uint64_t large_bytes;  /* allocations of this size and more are recorded; 0: none */
	struct crema_large_span large_span[CREMA_LARGE_SPANS];
	struct crema_large_row large[CREMA_LARGE_ROWS];
	struct crema_large_told large_told[CREMA_LARGE_ROWS];
	struct crema_filesystem filesystem[CREMA_SHM_FILESYSTEMS];
	struct crema_codec_row codec[CREMA_SHM_CODEC_ROWS];
	struct crema_server server[CREMA_SHM_SERVERS]; /* the last: what did not fit */
	struct crema_section section[CREMA_SHM_SECTIONS];
	struct crema_task_section task_section[CREMA_SHM_TASK_SECTIONS];
	struct crema_gauge gauge[CREMA_SHM_GAUGES];
	struct crema_column column[CREMA_SHM_COLUMNS];
	uint64_t column_rows; /* made so far: the next one's number */
	/* Made so far: the next one's number; and those with a dataset. */
	uint64_t section_rows, section_dataset_rows;
	struct crema_unmeasured unmeasured;
	struct crema_probe_text facts; /* written again when a Dask Worker joins in this process */
	struct crema_probe_text probe; /* written again and again */
	uint32_t slot_word[CREMA_SHM_TASKS];
	struct crema_file file[CREMA_SHM_FILES];
	struct crema_opened opened[CREMA_SHM_OPENED];
	struct crema_thread thread[CREMA_SHM_THREADS];
	/* A string is a u32 length, its bytes and a NUL, 4-aligned; its id is the offset, never 0.
	 */
	char strings[CREMA_SHM_STRINGS];
	struct crema_task task[CREMA_SHM_TASKS];
};

/* A hash of the names that index the arrays in here, in their order. Two builds with different
 * tables may have structs of the same size, and one would use the other's counters as its own. */
static inline uint64_t crema_shm_tables(void)
{
	static const char *const names[] = {
#define TIME(id, ...) "time " #id,
#define COUNT(id, unit, ...) "count " #id " " #unit,
#include "counters.def"
#undef TIME
#undef COUNT
#define CODEC(id, module, path, codec, direction, input, into)                                     \
	"codec " #id " " codec " " #direction,
#include "codecs.def"
#undef CODEC
#define FILE_NUMBER(name, ...) "file " #name,
#define FILE_OPENED(name, ...) "opened " #name,
#define CODEC_NUMBER(name, ...) "codec row " #name,
#define SERVER_NUMBER(name, ...) "server " #name,
#define SECTION_NUMBER(name, ...) "section " #name,
#define COLUMN_NUMBER(name, ...) "column " #name,
#define GAUGE_NUMBER(name, ...) "gauge " #name,
#define GAUGE_PART(name, ...) "gauge part " #name,
#define TOTALS_NUMBER(name, ...) "totals " #name,
#define LINES_BYTES(name, ...) "lines bytes " #name,
#define LINES_LARGE(name, ...) "lines large " #name,
#include "rows.def"
#define HOOK(family, ret, name, ...) "call " #name,
#include "hooks.def"
#undef HOOK
	};
	uint64_t hash = CREMA_HASH_BEGIN;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		hash = crema_hash_more(hash, names[i], strlen(names[i]) + 1);
	return hash;
}

/* 1 if this build made it; nothing else in it can be trusted before this check. */
static inline int crema_shm_same_build(const struct crema_shm *m)
{
	return __atomic_load_n(&m->magic, __ATOMIC_ACQUIRE) == CREMA_SHM_MAGIC &&
	       m->abi == CREMA_SHM_ABI && m->total_bytes == sizeof(*m) &&
	       m->tables == crema_shm_tables();
}

_Static_assert(CREMA_COUNTS <= 64 && CREMA_TIMES <= 32, "unknown masks hold every counter");
_Static_assert(sizeof(struct crema_shm) <= CREMA_SHM_BYTES, "CREMA_SHM_OTHERS has every table");
_Static_assert(CREMA_SHM_TASKS >= 2000, "room for tasks that wait for the agent");

#endif
