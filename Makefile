# SPDX-License-Identifier: BSD-3-Clause
# crema - `make help` lists the targets.

CC ?= gcc
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
PYTHON ?= python3

# A build prints a short line for each file; V=1 shows the commands.
V ?= 0
Q = $(if $(filter 1,$(V)),,@)
say = @$(if $(filter 1,$(V)),:,printf '  %-4s %s\n' $(1) $@)

WARN = -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla \
       -Wwrite-strings -Wformat=2 -Wundef -fno-common
WERROR ?=
OPT ?= -O2 -g
SAN ?=
COMMON_FLAGS = -std=gnu11 $(OPT) $(WARN) $(WERROR) $(SAN) -Icontract -MMD -MP
# -Wno-pedantic: function pointers are looked up as data, as every loader does.
# The shim: no stack protector or fortify (they bind newer symbols), no inline bodies from libc's
# headers (getline has one, and is wrapped), initial-exec TLS (no
# __tls_get_addr in a wrapper), no vectors (they load, add and store two counters at once; a single
# instruction cannot lose what a signal handler counts), and never _FILE_OFFSET_BITS=64 (it
# renames what is interposed).
SHIM_FLAGS = $(COMMON_FLAGS) -fPIC -fvisibility=hidden -ftls-model=initial-exec \
             -fno-stack-protector -U_FORTIFY_SOURCE -D__NO_INLINE__=1 -fno-plt -Wno-pedantic \
             -fno-tree-vectorize -fno-tree-slp-vectorize \
             -I. -I$(BUILD)/gen
PROG_FLAGS = $(COMMON_FLAGS) -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I. -I$(BUILD)/gen

# 0: without liburing; the journal is then written with pwrite.
CREMA_URING ?= 1
ifeq ($(CREMA_URING),1)
PROG_FLAGS += -DCREMA_URING
URING_LIBS = -luring
endif

# The collector inflates with libdeflate if it is installed (LIBDEFLATE= for without), otherwise with zlib.
LIBDEFLATE := $(shell pkg-config --exists libdeflate 2>/dev/null && echo -ldeflate)
ifneq ($(LIBDEFLATE),)
PROG_FLAGS += -DCREMA_LIBDEFLATE
endif

# `crema follow` writes to NATS if its client library is installed (NATS= for without).
NATS := $(shell pkg-config --exists libnats 2>/dev/null && echo -lnats)
ifneq ($(NATS),)
PROG_FLAGS += -DCREMA_NATS
endif

COMMON_LIBS ?= -lmsgpackc -lelf -lz -lssl -lcrypto -lyaml -lm
COLLECTOR_LIBS ?= $(COMMON_LIBS) $(LIBDEFLATE) $(NATS) -lmicrohttpd -ljansson -lsqlite3 -lcurl -lncurses -ltinfo $(URING_LIBS) -lm

SHIM_SRC = $(wildcard shim/*/*.c)
COMMON_SRC = $(wildcard common/*.c)
AGENT_SRC = $(wildcard agent/*.c)
COLLECTOR_SRC = $(wildcard collector/*/*.c)
SHIM_OBJ = $(SHIM_SRC:%.c=$(BUILD)/%.o)
COMMON_OBJ = $(COMMON_SRC:%.c=$(BUILD)/%.o)
AGENT_OBJ = $(AGENT_SRC:%.c=$(BUILD)/%.o)
COLLECTOR_OBJ = $(COLLECTOR_SRC:%.c=$(BUILD)/%.o)
# main.o of each program contains only main(), so that tests link the rest.
LIB_OBJ = $(COMMON_OBJ) $(filter-out %/main.o,$(AGENT_OBJ) $(COLLECTOR_OBJ))
LIB = $(BUILD)/libtested.a
UNIT_SRC = $(wildcard tests/unit/test_*.c)
UNIT_BIN = $(UNIT_SRC:%.c=$(BUILD)/%)

all: $(BUILD)/libcrema.so $(BUILD)/crema-agent $(BUILD)/crema man completion ## the library and both programs

include shim/shim.mk
include collector/page/page.mk
include tests/tests.mk
include tests/fuzz/fuzz.mk
include docs/docs.mk

define compile
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(PROG_FLAGS) -c $< -o $@
endef
$(BUILD)/common/%.o: common/%.c
	$(compile)
$(BUILD)/collector/export/measurement.o: python/crema/write_folder.py
$(BUILD)/agent/%.o: agent/%.c
	$(compile)
$(BUILD)/collector/%.o: collector/%.c
	$(compile)

$(BUILD)/crema-agent: $(AGENT_OBJ) $(COMMON_OBJ)
	$(call say,LD)
	$(Q)$(CC) $(SAN) $(OPT) -o $@ $^ $(COMMON_LIBS)
$(BUILD)/crema: $(COLLECTOR_OBJ) $(COMMON_OBJ)
	$(call say,LD)
	$(Q)$(CC) $(SAN) $(OPT) -o $@ $^ $(COLLECTOR_LIBS)
$(LIB): $(LIB_OBJ)
	$(call say,AR)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

check: all check-abi check-docs ## what a change must keep: symbols, includes, sizes, documents
	scripts/check-tree
	scripts/circles --rooms $(BUILD)/shim $(BUILD)/collector

install: all ## install under DESTDIR PREFIX
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/lib/crema" "$(DESTDIR)$(PREFIX)/libexec/crema"
	install -m 755 $(BUILD)/crema "$(DESTDIR)$(PREFIX)/bin/crema"
	install -m 755 $(BUILD)/libcrema.so "$(DESTDIR)$(PREFIX)/lib/crema/libcrema.so"
	install -m 755 $(BUILD)/crema-agent "$(DESTDIR)$(PREFIX)/libexec/crema/crema-agent"
	install -d "$(DESTDIR)$(PREFIX)/share/man/man1"
	install -m 644 $(BUILD)/man/*.1 "$(DESTDIR)$(PREFIX)/share/man/man1/"
	install -D -m 644 $(BUILD)/completion/crema "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/crema"
	install -D -m 644 $(BUILD)/completion/_crema "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_crema"
	install -D -m 644 $(BUILD)/completion/crema.fish "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/crema.fish"

package: ## a .deb, and a wheel for nodes with glibc 2.17 and newer, into build/package
	scripts/package

pictures: all ## docs/img/*.png from real runs; check them before you commit them
	.venv/bin/python scripts/make_pictures.py

clean: ## remove everything built
	rm -rf build

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: all check install package pictures clean help
# Only folders with objects are searched: the rest of build/ can have 100,000 files (interpreters, environments, copies of the tree).
-include $(shell find $(BUILD)/agent $(BUILD)/collector $(BUILD)/common $(BUILD)/docs $(BUILD)/shim $(BUILD)/tests -name '*.d' -type f 2>/dev/null)
