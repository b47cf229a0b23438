# SPDX-License-Identifier: BSD-3-Clause
# Tests: unit programs link everything but the main()s, and are compiled separately, so that ccache helps; the shim's are in shim/shim.mk.
TEST_LIBS ?= -lcmocka
$(BUILD)/tests/unit/%.o: tests/unit/%.c
	$(compile)
$(BUILD)/tests/unit/test_%: $(BUILD)/tests/unit/test_%.o $(LIB)
	$(call say,LD)
	$(Q)$(CC) $(SAN) $(OPT) -o $@ $(filter %.o %.a,$^) $(COLLECTOR_LIBS) $(TEST_LIBS)

$(BUILD)/tests/unit/test_no_memory: TEST_LIBS += -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc
$(BUILD)/tests/unit/test_http: TEST_LIBS += -Wl,--wrap=deflate

# Journals of simulated runs, of any size.
$(BUILD)/tests/bench/bench_live: tests/bench/bench_live.c $(LIB)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(PROG_FLAGS) -o $@ $< $(LIB) $(COLLECTOR_LIBS)

$(BUILD)/tests/bench/%.o: tests/bench/%.c
	$(compile)

CHUNK_OBJ = $(BUILD)/tests/bench/chunk.o
$(BUILD)/tests/bench/make_journal: $(BUILD)/tests/bench/make_journal.o $(CHUNK_OBJ) $(LIB)
	$(call say,LD)
	$(Q)$(CC) $(SAN) $(OPT) -o $@ $^ $(COLLECTOR_LIBS)

# Thousands of simulated workers, with a real collector.
SWARM_OBJ = $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/bench/swarm/*.c))
$(BUILD)/tests/bench/swarm/swarm: $(SWARM_OBJ) $(CHUNK_OBJ) $(LIB)
	$(call say,LD)
	$(Q)$(CC) $(SAN) $(OPT) -o $@ $^ $(COLLECTOR_LIBS)

unit-programs: $(UNIT_BIN)
test-programs: unit-programs $(SHIM_TEST_BIN) ## the programs of unit and shim tests, not run

unit-test: $(UNIT_BIN) ## cmocka unit tests
	@tests/run-programs 1 . $(UNIT_BIN)

test: unit-test shim-test fuzz-replay ## unit and shim tests, no Python

# Each flavour has its own build folder. In CI the compilers leave the cores to the tests that run beside them.
NPROC := $(shell nproc 2>/dev/null || echo 1)
SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
ASAN_FLAVOUR = BUILD=build/asan OPT="-O1 -g1" SAN="$(SANITIZE)"
TSAN_FLAVOUR = BUILD=build/tsan OPT="-O1 -g1" SAN="-fsanitize=thread"
asan-test: ## unit and shim tests with ASan and UBSan
	nice $(MAKE) -j$(NPROC) $(ASAN_FLAVOUR) test-programs $(REPLAY_BIN:$(BUILD)/%=build/asan/%)
	ASAN_OPTIONS=detect_leaks=1:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1 \
	  $(MAKE) $(ASAN_FLAVOUR) test

# Not the shim's: it defines the same functions that the sanitizer interposes. Only programs with threads, locks or handlers of signals:
# TSan finds nothing in the others.
tsan-test: unit-programs ## unit tests with threads, locks or signals, with TSan, if the machine allows it
	@mkdir -p build/tsan && printf 'int main(void) { return 0; }\n' | $(CC) -fsanitize=thread -xc - -o build/tsan/probe
	@threaded=$$(for each in $(UNIT_BIN:$(BUILD)/%=%); do ! nm -D $(BUILD)/$$each | grep -Eq ' U (pthread_(create|mutex_lock)|sigaction|signal)(@|$$)' || echo build/tsan/$$each; done); \
	  [ -n "$$threaded" ] || { echo "tsan-test: no program is found"; exit 1; }; \
	  if build/tsan/probe; then nice $(MAKE) -j$(NPROC) $(TSAN_FLAVOUR) $$threaded && tests/run-programs 1 . $$threaded; \
	  else echo "tsan-test: TSan cannot run on this machine"; fi

# clang's warnings come from its front end, so its test programs are not linked; some of gcc's come only from its optimizer.
werror: ## everything with warnings as errors, gcc and clang
	$(MAKE) -j$(NPROC) CC=gcc WERROR=-Werror everything
	$(MAKE) -j$(NPROC) BUILD=build/clang CC=clang OPT=-O0 WERROR=-Werror compiled

compiled: all $(UNIT_BIN:%=%.o) $(REPLAY_BIN) $(SHIM_TEST_BIN:%=%.o) $(BUILD)/tests/shim/harness.o $(BUILD)/tests/bench/bench_shim \
  $(BUILD)/tests/bench/make_journal $(BUILD)/tests/bench/bench_live $(BUILD)/tests/bench/swarm/swarm
everything: compiled $(UNIT_BIN) $(SHIM_TEST_BIN)

bench: all $(BUILD)/tests/bench/bench_shim $(BUILD)/tests/bench/make_journal $(BUILD)/tests/bench/swarm/swarm ## what crema costs, as ratios next to the budgets
	BUILD=$(BUILD) $(PYTHON) tests/bench/bench.py

bench-journal: all $(BUILD)/tests/bench/swarm/swarm ## the journal by io_uring and by pwrite, also with a disk that stalls
	BUILD=$(BUILD) $(PYTHON) tests/bench/bench_journal.py

bench-swarm: all $(BUILD)/tests/bench/swarm/swarm ## thousands of simulated workers with a real collector
	BUILD=$(BUILD) $(PYTHON) tests/bench/bench_swarm.py

ACCURACY = $(CURDIR)/$(BUILD)/accuracy
# one per line: test_NAME.py contains cells
ACCURACY_TESTS = \
  blocked \
  calibrate \
  codec_cases \
  columns \
  demo_numbers \
  http \
  http_clients \
  executors \
  pythons \
  versions \
  identity \
  libraries \
  parquet \
  file_bytes \
  preloads \
  rntuple \
  sources \
  spill \
  storage \
  ways_to_read \
  threads \
  throttled \
  xrootd
ACCURACY_PYTEST = .venv/bin/python -m pytest -q -o cache_dir=$(ACCURACY)/cache \
  $(ACCURACY_TESTS:%=tests/integration/test_%.py)
accuracy: all $(BUILD)/tests/shim/test_time ## every number against its truth; writes docs/accuracy.md
	@[ -x .venv/bin/python ] || { echo "scripts/demo makes the .venv and data/ that this needs"; exit 1; }
	@rm -rf $(ACCURACY) && mkdir -p $(ACCURACY)
	@status=1; \
	for try in 1 2 3; do \
	  rm -f $(ACCURACY)/time.json; \
	  (cd $(BUILD) && CREMA_ACCURACY_TIME=$(ACCURACY)/time.json tests/shim/test_time) && { status=0; break; }; \
	done; \
	CREMA_ALL_CELLS=1 CREMA_ACCURACY_OUT=$(ACCURACY)/cells.json $(ACCURACY_PYTEST) -n 2 --dist loadfile || \
	CREMA_ALL_CELLS=1 CREMA_ACCURACY_OUT=$(ACCURACY)/again.json $(ACCURACY_PYTEST) --last-failed || status=1; \
	.venv/bin/python tests/truth/render_accuracy.py --cells $(ACCURACY)/cells.json $(ACCURACY)/again.json --time $(ACCURACY)/time.json \
	  --output docs/accuracy.md || status=1; \
	exit $$status

compare-roastcoffea: all ## one run under roastcoffea and crema; writes docs/compare-roastcoffea.md
	CREMA_FURTHER_CELLS=1 CREMA_COMPARE_OUT=$(CURDIR)/$(BUILD)/compare-roastcoffea.json .venv/bin/python -m pytest -q tests/integration/test_roastcoffea.py
	.venv/bin/python tests/truth/render_roastcoffea.py --found $(BUILD)/compare-roastcoffea.json --output docs/compare-roastcoffea.md

compare-suites: all ## tests of CPython (and distributed) with the preload and without; an hour
	scripts/compare-suites

.PHONY: compare-roastcoffea compare-suites unit-programs test-programs unit-test test asan-test tsan-test werror compiled everything bench bench-journal bench-swarm accuracy
