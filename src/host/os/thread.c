/* thread.c - see thread.h. */
#include "os/thread.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/err.h"

/* A TLS handshake inside libcurl uses 140 KiB (OpenSSL 3.0), a resolver's modules what they like,
 * and ThreadSanitizer 800 KiB for itself. Untouched pages cost nothing but address space, which
 * a container's limit may count: the default is 8 MiB. */
#define THREAD_STACK (1536 * 1024)

int gate_init(struct gate *g, unsigned n_readers)
{
    pthread_rwlockattr_t attr;

    *g = (struct gate){.n = n_readers};
    if (posix_memalign((void **)&g->parts, _Alignof(struct gate_part),
            (n_readers ? n_readers : 1) * sizeof(*g->parts)) != 0)
        return -ENOMEM;
    (void)pthread_rwlockattr_init(&attr);
    (void)pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    for (unsigned i = 0; i < n_readers; i++)
        (void)pthread_rwlock_init(&g->parts[i].lock, &attr);
    (void)pthread_rwlockattr_destroy(&attr);
    return 0;
}

void gate_deinit(struct gate *g)
{
    if (!g->parts)
        return;
    for (unsigned i = 0; i < g->n; i++)
        (void)pthread_rwlock_destroy(&g->parts[i].lock);
    free(g->parts);
    *g = (struct gate){0};
}

void gate_enter(struct gate *g, unsigned i)
{
    (void)pthread_rwlock_rdlock(&g->parts[i].lock);
}

void gate_leave(struct gate *g, unsigned i)
{
    (void)pthread_rwlock_unlock(&g->parts[i].lock);
}

void gate_close(struct gate *g)
{
    for (unsigned i = 0; i < g->n; i++)
        (void)pthread_rwlock_wrlock(&g->parts[i].lock);
}

void gate_open(struct gate *g)
{
    for (unsigned i = g->n; i-- > 0;)
        (void)pthread_rwlock_unlock(&g->parts[i].lock);
}

_Static_assert(CPULIST_MAX == CPU_SETSIZE, "room for each CPU of a set");

/* The list as one set, so that order and repetition in the text do not matter. */
static int parse_set(cpu_set_t *set, const char *text)
{
    const char *p = text;

    CPU_ZERO(set);
    for (;;) {
        char *end;
        unsigned long a, b;

        errno = 0;
        a = b = strtoul(p, &end, 10);
        if (errno != 0 || end == p || *p < '0' || *p > '9')
            return -EINVAL;
        if (*end == '-') {
            p = end + 1;
            b = strtoul(p, &end, 10);
            if (errno != 0 || end == p || *p < '0' || *p > '9')
                return -EINVAL;
        }
        if (a > b || b >= CPU_SETSIZE)
            return -EINVAL;
        for (unsigned long i = a; i <= b; i++)
            CPU_SET(i, set);
        if (*end == '\0')
            return 0;
        if (*end != ',')
            return -EINVAL;
        p = end + 1;
    }
}

static void list_from_set(struct cpulist *ret, const cpu_set_t *set)
{
    ret->n = 0;
    for (unsigned i = 0; i < CPULIST_MAX; i++)
        if (CPU_ISSET(i, set))
            ret->cpu[ret->n++] = (unsigned short)i;
}

int cpulist_parse(struct cpulist *ret, const char *text, struct err *e)
{
    cpu_set_t set;
    int r = parse_set(&set, text);

    if (r < 0)
        return err_set(e, r,
            "CPU list \"%.60s\" is not understood; it is numbers and ranges below %d, as in "
            "\"0,2-5\"",
            text, CPU_SETSIZE);
    list_from_set(ret, &set);
    return 0;
}

void cpulist_allowed(struct cpulist *ret)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) < 0) {
        CPU_ZERO(&set);
        CPU_SET(0, &set);
    }
    list_from_set(ret, &set);
}

const char *cpulist_format(const struct cpulist *l, char buf[static CPULIST_TEXT_MAX])
{
    size_t len = 0;

    buf[0] = '\0';
    for (unsigned i = 0, last; i < l->n; i = last + 1) {
        const char *comma = i > 0 ? "," : "";

        for (last = i; last + 1 < l->n && l->cpu[last + 1] == l->cpu[last] + 1; last++)
            ;
        if (len + sizeof("65535-65535,...") > CPULIST_TEXT_MAX) {
            (void)snprintf(buf + len, CPULIST_TEXT_MAX - len, ",...");
            break;
        }
        len += (size_t)snprintf(buf + len, CPULIST_TEXT_MAX - len, last > i ? "%s%u-%u" : "%s%u",
            comma, l->cpu[i], l->cpu[last]);
    }
    return buf;
}

int cpulist_confine(const struct cpulist *l, struct err *e)
{
    char text[CPULIST_TEXT_MAX];
    struct cpulist allowed;
    cpu_set_t have, set;

    cpulist_allowed(&allowed);
    CPU_ZERO(&have);
    CPU_ZERO(&set);
    for (unsigned i = 0; i < allowed.n; i++)
        CPU_SET(allowed.cpu[i], &have);
    for (unsigned i = 0; i < l->n; i++) {
        if (!CPU_ISSET(l->cpu[i], &have))
            return err_set(e, -EINVAL, "CPU %u cannot be used: this process may run on %s",
                l->cpu[i], cpulist_format(&allowed, text));
        CPU_SET(l->cpu[i], &set);
    }
    if (sched_setaffinity(0, sizeof(set), &set) < 0)
        return err_set(
            e, -errno, "cannot run on CPUs %s only: %s", cpulist_format(l, text), strerror(errno));
    return 0;
}

int thread_start(pthread_t *ret, const char *name, int cpu, void *(*fn)(void *), void *arg)
{
    char short_name[16];
    char own_name[16] = "";
    pthread_attr_t attr;
    sigset_t all, old;
    pthread_t t;
    int r;

    (void)pthread_attr_init(&attr);
    (void)pthread_attr_setstacksize(&attr, THREAD_STACK);
    if (cpu >= 0) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET((unsigned)cpu, &set);
        (void)pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
    }
    /* Inherited by the new thread: signals are for the thread that waits for them, but for the one
     * that a refused system call raises (os/sandbox.h). */
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGSYS);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    /* The name is inherited as well. Naming another thread means writing to /proc, which in a
     * process that cannot be traced only root may do. */
    (void)snprintf(short_name, sizeof(short_name), "%s", name);
    (void)prctl(PR_GET_NAME, own_name);
    (void)prctl(PR_SET_NAME, short_name);
    r = pthread_create(&t, &attr, fn, arg);
    (void)prctl(PR_SET_NAME, own_name);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    (void)pthread_attr_destroy(&attr);
    if (r != 0)
        return -r;
    *ret = t;
    return 0;
}

void thread_set_nice(int nice)
{
    /* On Linux it is a thread's, and 0 means the caller. */
    (void)setpriority(PRIO_PROCESS, 0, nice);
}
