# SPDX-License-Identifier: BSD-3-Clause
# Tests: unit programs link everything but the main()s; the shim's are in shim/shim.mk.
$(BUILD)/tests/unit/test_%: tests/unit/test_%.c $(LIB_OBJ)
	@mkdir -p $(@D)
	$(CC) $(PROG_FLAGS) $(UNIT_FLAGS) -o $@ $< $(LIB_OBJ) $(COLLECTOR_LIBS) -lcmocka

unit-test: $(UNIT_BIN) ## cmocka unit tests
	@set -e; for t in $(UNIT_BIN); do "$$t"; done

test: unit-test shim-test ## unit and shim tests, no Python

# Flavours have a build folder each.
SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
asan-test: ## unit and shim tests with ASan and UBSan
	ASAN_OPTIONS=detect_leaks=1:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1 \
	  $(MAKE) BUILD=build/asan OPT="-O1 -g" SAN="$(SANITIZE)" test

werror: ## everything with warnings as errors, gcc and clang
	$(MAKE) BUILD=build/gcc CC=gcc WERROR=-Werror everything
	$(MAKE) BUILD=build/clang CC=clang WERROR=-Werror everything

everything: all $(UNIT_BIN) $(SHIM_TEST_BIN) $(BUILD)/tests/bench/bench_shim

bench: all $(BUILD)/tests/bench/bench_shim ## what crema costs, as ratios beside the budgets
	$(BUILD)/tests/bench/bench_shim
	@if [ -x .venv/bin/python ]; then .venv/bin/python tests/bench/bench_job.py; else \
	  echo "the real job is left out: scripts/demo makes the .venv that it needs"; fi

.PHONY: unit-test test asan-test werror everything bench
