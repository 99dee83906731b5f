/*
 * failing_store.h - a store of any back end that does not do some of its jobs, for tests.
 *
 * One store at a time. Such a job is answered, in its turn, with FAILING_STORE_R and
 * FAILING_STORE_WORDS.
 */
#pragma once

#include <errno.h>

#include "store/store_backend.h"

#define FAILING_STORE_R     (-ENOSPC)
#define FAILING_STORE_WORDS "no space left"

/** failing_store_begin() - from now on jobs of that kind fail, and of that kind only. */
void failing_store_begin(struct store *s, enum store_job_kind kind);

/** failing_store_spare() - so many of them are done yet, before they begin to fail. */
void failing_store_spare(unsigned n);

/** failing_store_end() - none fails any more. */
void failing_store_end(struct store *s);

/** failing_store_set_full() - does so much wait in @s that it accepts nothing, with -EAGAIN? */
void failing_store_set_full(struct store *s, bool is_full);
