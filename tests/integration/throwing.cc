// SPDX-License-Identifier: BSD-3-Clause
// throwing.cc - throws, catches, and tells which library the unwinder came from.
#include <dlfcn.h>
#include <stdexcept>
#include <unwind.h>

__attribute__((noinline)) static void thrower(int i)
{
	if (i >= 0)
		throw std::runtime_error("thrown");
}

extern "C" int caught(int times)
{
	int n = 0;

	for (int i = 0; i < times; i++) {
		try {
			thrower(i);
		} catch (const std::exception &) {
			n++;
		}
	}
	return n;
}

extern "C" const char *unwinder()
{
	Dl_info info;

	return dladdr(reinterpret_cast<void *>(&_Unwind_RaiseException), &info) ? info.dli_fname : "";
}
