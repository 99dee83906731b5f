/*
 * version.h - which build this is.
 */
#pragma once

#include <stdbool.h>

/* Which Weft this is: what `weft --version`, the hub and every node say. */

/**
 * version_text - the version, such as "0.1.0" or "0.1.0+12.g0123456789"; at most 31 bytes.
 *
 * The programs link what tools/version said when they were built, which meson.build puts into
 * cmd/'s template. What else links the library, the tests, gets the "0.0.0" of version.c: so a
 * new commit compiles one file and links two programs, and no test depends on the commit.
 */
extern const char version_text[];

/*
 * Is this a build with a sanitizer?
 *
 * Its runtime makes system calls of its own, maps terabytes, and does not know libraries that were
 * not built with it.
 */

/** HAS_SANITIZER - true with the address, thread or memory sanitizer of gcc or clang. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define HAS_SANITIZER true
#endif
#endif
#ifndef HAS_SANITIZER
#define HAS_SANITIZER false
#endif
