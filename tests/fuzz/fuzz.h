/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz.h - common parts of the targets.
 *
 * Each fuzz_NAME.c holds one target: the function below, which must survive any bytes. With clang
 * `make fuzz` lets libFuzzer search for bytes that it does not survive; `make fuzz-replay`, part of
 * `make test`, passes it the files of corpus/NAME with any compiler (replay.c).
 */
#ifndef CREMA_TESTS_FUZZ_H
#define CREMA_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Frames with wrong checksums are useless as input: anything that looks like a frame gets the right
 * one. For use as LLVMFuzzerCustomMutator() of a target that reads frames. */
size_t fuzz_mutate_frames(uint8_t *data, size_t n, size_t most, unsigned int seed);

/* From libFuzzer. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t n, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t n, size_t most, unsigned int seed);

#endif
