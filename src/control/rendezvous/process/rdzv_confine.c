/* rdzv_confine.c - see rdzv_confine.h. */
#include "rdzv_confine.h"

#include <errno.h>
#include <grp.h>
#include <jansson.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/rng.h"
#include "base/sanitizer.h"
#include "os/rng_kernel.h"
#include "os/sandbox.h"
#include "rendezvous/process/rdzv_process.h"

/* "nobody", and "nogroup", on every distribution. */
#define NOBODY 65534

/* The hub's own work, and the packets of all networks, go first. */
#define NICE 5

/* Values that are longer go back to the kernel when they are freed. */
#define MAP_FROM (64 << 10)

static int fail(const char *what, struct err *e)
{
    return err_set(e, -errno, "a rendezvous cannot %s: %s", what, strerror(errno));
}

static int limit_resources(struct err *e)
{
    static const struct {
        __rlimit_resource_t resource;
        rlim_t max;
    } limits[] = {
        {RLIMIT_DATA, RDZV_MEMORY_MAX},
        {RLIMIT_NOFILE, RDZV_FILES_MAX},
        {RLIMIT_NPROC, 0},
        {RLIMIT_MEMLOCK, 0},
    };

    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        struct rlimit now;

        /* A sanitizer maps more than that before anything is done. */
        if (HAS_SANITIZER && limits[i].resource == RLIMIT_DATA)
            continue;
        if (getrlimit(limits[i].resource, &now) < 0)
            return fail("learn its limits", e);
        if (now.rlim_max > limits[i].max)
            now.rlim_max = limits[i].max;
        now.rlim_cur = now.rlim_max;
        if (setrlimit(limits[i].resource, &now) < 0)
            return fail("limit itself", e);
    }
    (void)mallopt(M_MMAP_THRESHOLD, MAP_FROM);
    (void)mallopt(M_ARENA_MAX, 1);
    return 0;
}

/* Capabilities that nobody after us may have either; after the change of user it is too late. */
static void drop_bounding_set(void)
{
    /* Who may not make it smaller has no_new_privs, which does the same for us. */
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        (void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

static int become_nobody(struct err *e)
{
    if (geteuid() != 0)
        return 0;
    if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) < 0)
        return fail("become another user", e);
    return 0;
}

/* The C library and jansson read a file when they first need it; later there are none. */
static int prepare_libraries(struct err *e)
{
    struct rng rng = rng_kernel();

    tzset();
    json_object_seed((size_t)rng_u64(&rng) | 1);
    return limit_resources(e);
}

int rdzv_confine(struct err *e)
{
    struct sandbox sandbox = {.kind = SANDBOX_RENDEZVOUS, .uid = NOBODY, .gid = NOBODY};
    pid_t parent = getppid();
    int r = prepare_libraries(e);

    (void)setpriority(PRIO_PROCESS, 0, NICE);
    drop_bounding_set();
    if (r == 0)
        r = become_nobody(e);
    if (r != 0)
        return r;
    /* After the change of user, which would undo it. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        return fail("end with its hub", e);
    /* The hub may have ended before it could be told to us. */
    if (getppid() != parent)
        return err_set(e, -ESRCH, "the hub of a rendezvous has ended");
    return sandbox_enter(&sandbox, NULL, e);
}
