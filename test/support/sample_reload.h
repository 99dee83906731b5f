/*
 * sample_reload.h - what is stored loads, and what was damaged there stops nothing else.
 *
 * After random requests a hub is closed and opened again: the API shows the same. Then records in
 * its file are truncated, flipped or swapped: each is set aside and named, all the rest is as it
 * was, and the hub lives on with what lies there.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/** sample_reload_run() - once; @bytes decide. Ends the process when it is not so. */
void sample_reload_run(const uint8_t *bytes, size_t n);
