/* version.h - which Weft this is: what `weft --version`, the hub and every node say. */
#pragma once

/**
 * version_text - the version, such as "0.1.0" or "0.1.0+12.g0123456789"; at most 31 bytes.
 *
 * The programs link what tools/version said when they were built, which meson.build puts into
 * cmd/'s template. What else links the library, the tests, gets the "0.0.0" of version.c: so a
 * new commit compiles one file and links two programs, and no test depends on the commit.
 */
extern const char version_text[];
