/*
 * sqlite.h - the embedded store: one SQLite file, and a thread that waits for the disk.
 *
 * Write-ahead log, synchronous=FULL: what was committed survives the process and the machine.
 *
 * Theory of operation. The thread does the jobs in the order in which they came. While it waits for
 * the disk, more jobs are queued. Commits that wait together go into one transaction, which is
 * written and synced once for all of them, and they are answered when that is done. So one writer
 * gets one commit with each sync of the disk, and many writers get many commits with each.
 */
#pragma once

#include "base/clock.h"

struct err;
struct store;

/**
 * sqlite_open() - the store in a file; waits for the disk
 * @ret:	gives it; store_free()
 * @where:	the path; a new file is made where there is none
 * @now:	monotonic time, from which the leases found inside count
 *
 * Return: 0; or negative errno with words: -EINVAL without a path, -EUCLEAN when the file is not
 * sound or not ours, -EBUSY when another process has it.
 */
int sqlite_open(struct store **ret, const char *where, nsec_t now, struct err *e);
