/*
 * store_watch.h - who is told of changes: the part of store_watch() that store_dispatch() calls.
 *
 * Theory of operation. A watch that begins with the next change is told as changes come. One that
 * begins in the past first has the back end read the changes that it missed (a CHANGES job). That
 * job waits in the same queue as the commits. So the watch is told each change once: those before
 * the answer by the job, and those after it as they come.
 *
 * Threads: the owner's loop only.
 */
#pragma once

#include "store/store_backend.h"

/** store_watch__tell() - @item has changed: tell all watches that have its prefix. */
void store_watch__tell(struct store *s, const struct store_item *item);

/** store_watch__catch_up() - the CHANGES job of a watch is done: tell the watch. */
void store_watch__catch_up(struct store_job *job);

/** store_watch__free_closed() - free the watches that were closed during store_dispatch(). */
void store_watch__free_closed(struct store *s);
