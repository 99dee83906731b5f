/* sandbox_internal.h - the parts of sandbox_enter(), and what their tests use. */
#pragma once

#include "os/sandbox.h"

/** The kernel has no Landlock. */
#define SANDBOX_E_NO_LANDLOCK 1

/** sandbox__files() - narrow the files. 0; SANDBOX_E_NO_LANDLOCK; or negative errno with words. */
int sandbox__files(const struct sandbox_path *paths, size_t n_paths, struct err *e);

/** sandbox__user() - user, group and capabilities. 0 or negative errno with words. */
int sandbox__user(const struct sandbox *s, uint64_t *ret_capabilities, struct err *e);

/** sandbox__calls() - the list of system calls, for all threads. 0 or negative with words. */
int sandbox__calls(enum sandbox_kind kind, bool *ret_holds, struct err *e);
