/*
 * sanitizer.h - is this a build with a sanitizer?
 *
 * Its runtime makes system calls of its own, maps terabytes, and does not know libraries that were
 * not built with it.
 */
#pragma once

#include <stdbool.h>

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
