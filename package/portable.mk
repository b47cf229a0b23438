# SPDX-License-Identifier: BSD-3-Clause
# Builds the programs for old nodes with the same rules, and with the compiler and the static libraries that
# package/build-libs has put into LIBS. Include it before the Makefile:
#     make -f package/portable.mk -f Makefile LIBS=build/package/x86_64 portable
BUILD = $(LIBS)/crema
CC = $(LIBS)/bin/cc
CREMA_URING = 0
override LIBDEFLATE =
override NATS =
OPT = -O2 -isystem $(LIBS)/include
TEST_LIBS = -L$(LIBS)/lib -lcmocka -lm -lrt -lpthread
# -S: code that the compiler links in has debug information that contains its own folder.
COMMON_LIBS = -Wl,-S -L$(LIBS)/lib -lmsgpackc -lelf -lssl -lcrypto -lz -lyaml -lm -lpthread -ldl
COLLECTOR_LIBS = -Wl,-S -L$(LIBS)/lib -lmsgpackc -lmicrohttpd -lcurl -lssl -lcrypto -lyaml -ljansson -lelf -lz \
                 -lsqlite3 -lncurses -ltinfo -lm -lpthread -ldl -lrt

$(BUILD)/common/%.o $(BUILD)/agent/%.o $(BUILD)/collector/%.o: OPT += -include package/compat.h

$(BUILD)/tests/shim/%: private CC = $(LIBS)/bin/cc-debian

portable: $(BUILD)/libcrema.so $(BUILD)/crema-agent $(BUILD)/crema check-abi

.PHONY: portable
