/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wire.h - the frame: the one unit of the TCP stream, of spool files and of the journal.
 *
 * A frame is this 56-byte little-endian header and `stored_bytes` of payload. The payload is one
 * msgpack value, zlib-compressed if CREMA_FRAME_ZLIB is set. `crc` is zlib's crc32 over the header
 * with crc = 0, followed by the stored payload. A file is a FILE_HEADER frame and then frames as
 * they came; the same reader reads all of them.
 *
 * Identity: `worker` is a random 128-bit id of one process start. `stream` is one agent's lifetime
 * (its start, CLOCK_REALTIME ns). Records of a stream are numbered from 0; `first_seq` is the first
 * one in the frame, `count` how many there are. A receiver drops records that it already has.
 *
 * Handshake (protocol 2): collector CHALLENGE; agent AUTH with its nonce; collector PROOF that it
 * has the token; agent PROOF, HELLO; collector WELCOME or REFUSE; then DATA and CLOCK one way, ACK
 * and CLOCK the other. After the collector's PROOF every frame is sent in a separate sealed record
 * (common/seal.h), under keys made from the token and both nonces (common/auth.h). The agent's
 * proof is that this record opens. Without a token (`crema collect --insecure`) nonce and mac are
 * nil, the agent sends no PROOF and frames are sent as they are. A collector that has verdicts on
 * file systems sends CALIBRATION before its first WELCOME, and again when they change: each
 * replaces the one before. Older agents skip it; a WELCOME without one, as an older collector's,
 * means that there are none. Protocol 1: AUTH carries mac = HMAC-SHA256(token, collector nonce +
 * agent nonce + worker id), HELLO follows at once, there is no PROOF and nothing is sealed. Tokens,
 * environment and arguments are never sent.
 *
 * HELLO's map: {"facts": {...}, "task_fields": [names...]}. facts (all optional, nil = unknown):
 * host, boot_id, net_namespace (its inode), pid, start_ticks, agent_pid, agent_version, shim_abi,
 * cpu_model, cores, memory_bytes, kernel, python, redacted (task keys and file names are keyed
 * hashes), boot_ns + real_ns (one clock pair), filesystems [{path, type, storage:
 * "exact"|"calibrated"|"none"|"unknown", calibration: its result or nil}], stack: JSON text of
 * probe.py's facts() {python, distributed, dask, coffea, uproot, worker_address, worker_name,
 * nthreads, memory_limit_bytes, local_directory}.
 *
 * SAMPLE, HOST, TOTALS, FILE, CODEC, SERVER, SECTION and GAUGE maps: contract/rows.def, in
 * docs/wire.md as tables. MODULE map: id (of path and build id), path, build_id (hex or nil). STACK
 * map: number (from 0 over the worker's lifetime), attempt, tid, end_boot_ns, wait (time name),
 * waited_ns, on ("file"|"socket"|"other"|nil), file, peer, prefix, span, "frames": [module id,
 * offset in its file, ...] innermost first; module id 0: in no file, the offset is the address;
 * lines_table and lines_row: the table and number of the row of LINES that has its Python frames,
 * sent before it; holder_row, of that table, holder_samples, holder_of: the row that held the
 * interpreter lock, or the mutex, in holder_samples of the holder_of samples during the wait;
 * absent: unknown. GOODBYE map: boot_ns, how ("exit"|"killed"|"gone"), evidence [text], cause (text
 * or nil), tasks_in_flight.
 */
#ifndef CREMA_CONTRACT_WIRE_H
#define CREMA_CONTRACT_WIRE_H

#include <stdint.h>

#define CREMA_WIRE_MAGIC 0x464d5243u /* "CRMF" in memory */
#define CREMA_WIRE_VERSION 1u	     /* of frames, in each header, on disk too */
#define CREMA_WIRE_OLDEST 1u
#define CREMA_FILE_FORMAT 1u

/* An agent's own name (comm), and while its worker has ended, all its records are in a file and it
 * has never reached a collector: `crema run` does not wait for it. */
#define CREMA_AGENT_NAME "crema-agent"
#define CREMA_AGENT_WAITS "crema-agent-end"

#define CREMA_PROTOCOL 2u	 /* of connections: their messages and protection */
#define CREMA_PROTOCOL_OLDEST 1u /* a collector accepts it only by option */

#define CREMA_FRAME_ZLIB 1u		    /* flag: payload is zlib data */
#define CREMA_FRAME_STORED_MAX (1u << 20)   /* reject more stored bytes */
#define CREMA_FRAME_RAW_MAX (4u << 20)	    /* do not inflate to more */
#define CREMA_DOING_BYTES (320u << 10)	    /* a DOING message has less */
#define CREMA_CALIBRATION_BYTES (32u << 10) /* CALIBRATION's text has at most that */
#define CREMA_WORKER_ID_BYTES 16u
#define CREMA_DEFAULT_PORT 8990
#define CREMA_DEFAULT_HTTP 8991

struct crema_frame_header {
	uint32_t magic;
	uint8_t version;
	uint8_t type; /* enum crema_frame_type */
	uint16_t flags;
	uint8_t worker[CREMA_WORKER_ID_BYTES];
	uint64_t stream;
	uint64_t first_seq;
	uint32_t count;
	uint32_t raw_bytes;
	uint32_t stored_bytes;
	uint32_t crc;
};

_Static_assert(sizeof(struct crema_frame_header) == 56, "frame header is 56 bytes");

#endif
