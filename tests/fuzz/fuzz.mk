# SPDX-License-Identifier: BSD-3-Clause
# Targets that accept any bytes: `make fuzz` searches (clang's libFuzzer), `make fuzz-replay` repeats what was found.
FUZZ_TARGETS = frame sealed http journal json messages mounts py_stack shm walk
FUZZ_SHARED = tests/fuzz/fuzz_frames.c tests/fuzz/fuzz_server.c tests/fuzz/report_all.c
FUZZ_SECONDS ?= 1800
FUZZ_FLAGS = $(PROG_FLAGS) -Wno-unused-parameter
REPLAY_BIN = $(FUZZ_TARGETS:%=$(BUILD)/tests/fuzz/replay_%)

$(BUILD)/tests/fuzz/%.o: tests/fuzz/%.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(FUZZ_FLAGS) -c $< -o $@
$(BUILD)/tests/fuzz/replay_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/tests/fuzz/replay.o $(FUZZ_SHARED:%.c=$(BUILD)/%.o) $(LIB)
	$(call say,LD)
	$(Q)$(CC) $(SAN) $(OPT) -o $@ $(filter %.o %.a,$^) $(COLLECTOR_LIBS)
$(BUILD)/tests/fuzz/fuzz_%: tests/fuzz/fuzz_%.c $(FUZZ_SHARED) tests/fuzz/fuzz.h $(LIB)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $< $(FUZZ_SHARED) $(LIB) $(COLLECTOR_LIBS)

fuzz-replay: $(REPLAY_BIN) ## the fuzz targets over their corpora, any compiler
	@set -e; for t in $(FUZZ_TARGETS); do $(BUILD)/tests/fuzz/replay_$$t tests/fuzz/corpus/$$t; done

fuzz: ## each fuzz target for FUZZ_SECONDS (1800), two at a time; needs clang
	$(MAKE) BUILD=build/fuzz CC=clang OPT="-O1 -g" \
	  SAN="$(SANITIZE) -fsanitize=fuzzer-no-link" $(FUZZ_TARGETS:%=build/fuzz/tests/fuzz/fuzz_%)
	@mkdir -p $(FUZZ_TARGETS:%=build/fuzz/found/%)
	@printf '%s\n' $(FUZZ_TARGETS) | xargs -P 2 -I@ sh -c 'cd build/fuzz && tests/fuzz/fuzz_@ \
	  -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=1024 -max_len=65536 -close_fd_mask=3 \
	  -artifact_prefix=found/crash-@- -print_final_stats=1 found/@ ../../tests/fuzz/corpus/@ > found/@.log 2>&1; \
	  echo "@: status $$?, $$(grep -E "number_of_executed_units" found/@.log), $$(grep -oE "cov: [0-9]+" found/@.log | tail -1)"'

.PHONY: fuzz fuzz-replay
