/* sandbox.c - see sandbox.h. The order of the parts, and what holds for every process. */
#include "os/sandbox.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/err.h"
#include "base/sanitizer.h"
#include "os/sandbox_internal.h"

bool sandbox_kind_has_keys(enum sandbox_kind kind)
{
    return kind == SANDBOX_HUB || kind == SANDBOX_AGENT || kind == SANDBOX_WG;
}

/*
 * All of it, because secrets are not only where we put them: libraries copy them, and the compiler
 * leaves them on stacks. Pages are locked when they are first touched, so nothing grows by it. With
 * a limit this could make a later allocation fail, so then nothing is locked.
 */
static bool lock_memory(void)
{
    const struct rlimit no_limit = {RLIM_INFINITY, RLIM_INFINITY};
    struct rlimit limit;

    /* Only root may raise the limit; for others it stays as it is. */
    (void)setrlimit(RLIMIT_MEMLOCK, &no_limit);
    return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY &&
           mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0;
}

int sandbox_harden(struct err *e)
{
    const struct rlimit none = {0, 0};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return err_set(e, -errno, "new privileges cannot be renounced: %s", strerror(errno));
    if (setrlimit(RLIMIT_CORE, &none) < 0)
        return err_set(e, -errno, "core dumps cannot be turned off: %s", strerror(errno));
    /* The leak sanitizer traces its own process at the end. */
    if (!HAS_SANITIZER && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return err_set(e, -errno, "tracing cannot be turned off: %s", strerror(errno));
    return 0;
}

int sandbox_enter(const struct sandbox *s, struct sandbox_result *ret, struct err *e)
{
    struct sandbox_result result = {0};
    int r = sandbox_harden(e);

    if (r == 0 && sandbox_kind_has_keys(s->kind))
        result.is_locked = lock_memory();
    if (r == 0 && !s->all_files) {
        r = sandbox__files(s->paths, s->n_paths, e);
        result.has_landlock = r == 0;
        if (r == SANDBOX_E_NO_LANDLOCK)
            r = 0;
    }
    if (r == 0)
        r = sandbox__user(s, &result.capabilities, e);
    /* A change of user makes the process one that can be traced and dumped again. */
    if (r == 0)
        r = sandbox_harden(e);
    if (r == 0)
        r = sandbox__calls(s->kind, &result.has_calls, e);
    if (r == 0 && ret)
        *ret = result;
    return r;
}
