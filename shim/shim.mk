# SPDX-License-Identifier: BSD-3-Clause
# libcrema.so: one library for every Python and for programs without one.

$(BUILD)/gen/probe_py.h: shim/python/probe.py shim/python/probe_scheduler.py shim/text_to_c.awk
	@mkdir -p $(@D)
	$(call say,GEN)
	$(Q)awk -v name=probe_source -f shim/text_to_c.awk $(filter %.py,$^) > $@

$(BUILD)/gen/client_py.h: python/crema/client.py shim/text_to_c.awk
	@mkdir -p $(@D)
	$(call say,GEN)
	$(Q)awk -v name=client_source -f shim/text_to_c.awk $< > $@

$(BUILD)/gen/stack_py.h: shim/python/stack.py shim/text_to_c.awk
	@mkdir -p $(@D)
	$(call say,GEN)
	$(Q)awk -v name=stack_source -f shim/text_to_c.awk $< > $@

# Exported: the interposed names, and nothing else. An anonymous version node: glibc ignores the
# interposers of a named one.
$(BUILD)/gen/exports.map: contract/hooks.def
	@mkdir -p $(@D)
	$(call say,GEN)
	$(Q){ echo '{ global:'; \
	  sed -n -e '/^HOOK(FIND,/d; s/^HOOK([A-Z]*, [^,]*, \([a-zA-Z0-9_]*\),.*/\1;/p' \
	    -e 's/^CALLBACK([^,]*, \([a-zA-Z0-9_]*\),.*/\1;/p' $<; \
	  echo 'local: *; };'; } > $@

$(BUILD)/shim/%.o: shim/%.c $(BUILD)/gen/probe_py.h $(BUILD)/gen/stack_py.h \
			$(BUILD)/gen/client_py.h
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(SHIM_FLAGS) -c $< -o $@

$(BUILD)/libcrema.so: $(SHIM_OBJ) $(BUILD)/gen/exports.map
	$(call say,LD)
	$(Q)$(CC) -shared $(SAN) -o $@ $(SHIM_OBJ) -Wl,--version-script=$(BUILD)/gen/exports.map \
	  -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--as-needed -Wl,-soname,libcrema.so

check-abi: $(BUILD)/libcrema.so ## no symbol newer than GLIBC_2.17, nothing needed but libc
	scripts/check-abi $(BUILD)/libcrema.so $(BUILD)/gen/exports.map

.PHONY: check-abi

# The shim's test programs contain the shim's objects: its wrappers take precedence over libc's.
SHIM_TEST_SRC = $(wildcard tests/shim/test_*.c)
SHIM_TEST_BIN = $(SHIM_TEST_SRC:%.c=$(BUILD)/%)
$(BUILD)/tests/shim/%.o: tests/shim/%.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(SHIM_FLAGS) -c $< -o $@
$(BUILD)/tests/shim/test_%: $(BUILD)/tests/shim/test_%.o $(BUILD)/tests/shim/harness.o $(SHIM_OBJ)
	$(call say,LD)
	$(Q)$(CC) $(SAN) -o $@ $(filter %.o,$^) -rdynamic $(TEST_LIBS) -lpthread -lm

shim-test: $(SHIM_TEST_BIN) ## C programs that hold the shim, by cmocka
	@tests/run-programs 3 $(BUILD) $(SHIM_TEST_BIN)
.PHONY: shim-test
.SECONDARY:

$(BUILD)/tests/bench/bench_shim: tests/bench/bench_shim.c $(SHIM_OBJ)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(SHIM_FLAGS) -o $@ $(filter %.c %.o,$^) -rdynamic -lpthread -lm
