/* thread.c - see thread.h. */
#include "os/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"

/* A TLS handshake inside libcurl uses 140 KiB (OpenSSL 3.0), a resolver's modules what they like,
 * and ThreadSanitizer 800 KiB for itself. Untouched pages cost nothing but address space, which
 * a container's limit may count: the default is 8 MiB. */
#define THREAD_STACK (1536 * 1024)

/* ---- gates ---- */

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

/* ---- processors ---- */

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

/* ---- SCHED_BATCH ---- */

/* The policy is looked at again after so many turns. */
#define LOOK_EVERY 16

/* Least average time between two turns under the policy. Packets that come faster would pile up
 * while the thread waits. */
#define TURN_MIN NSEC_PER_MSEC

/* Greatest average wait for a processor: a longer one means that other threads compute there. */
#define WAIT_MAX (200 * NSEC_PER_USEC)

/* Turns without the policy after a trial that failed: at the least, which is doubled each time, so
 * that trials cost a machine that is always busy nothing, and at the most. */
#define REST_MIN 1024
#define REST_MAX 65536

/* "on the processor, waited, times run": Documentation/scheduler/sched-stats.rst. */
static bool read_wait(struct sched_batch *b)
{
    char text[96], *rest = text;
    ssize_t n = pread(b->fd, text, sizeof(text) - 1, 0);
    const char *waited, *n_runs;

    if (n <= 0)
        return false;
    text[n] = '\0';
    (void)strsep(&rest, " ");
    waited = strsep(&rest, " ");
    n_runs = strsep(&rest, "\n");
    return waited && n_runs && parse_u64(&b->waited, waited, 0, UINT64_MAX, "wait", NULL) == 0 &&
           parse_u64(&b->n_runs, n_runs, 0, UINT64_MAX, "runs", NULL) == 0;
}

/* Since the last look, was the thread given a processor in time? */
static bool is_served(struct sched_batch *b)
{
    uint64_t waited = b->waited, n_runs = b->n_runs;

    if (!read_wait(b))
        return false;
    return b->waited - waited <= (b->n_runs - n_runs) * (uint64_t)WAIT_MAX;
}

static void set(struct sched_batch *b, bool on)
{
    struct sched_param none = {0};

    /* For the calling thread, which needs no right to change between the two. */
    if (sched_setscheduler(0, on ? SCHED_BATCH : SCHED_OTHER, &none) == 0)
        b->is_on = on;
}

void sched_batch_begin(struct sched_batch *b)
{
    b->next_rest = REST_MIN;
    b->is_rare = true;
    b->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

void sched_batch_end(struct sched_batch *b)
{
    if (b->is_on)
        set(b, false);
    if (b->fd >= 0)
        (void)close(b->fd);
    b->fd = -1;
}

/* A trial is over. */
static void assess(struct sched_batch *b, bool is_good)
{
    b->rest = is_good ? 0 : b->next_rest;
    if (is_good)
        b->next_rest = REST_MIN;
    else if (b->next_rest < REST_MAX)
        b->next_rest *= 2;
}

void sched_batch_turn(struct sched_batch *b, bool may, nsec_t now)
{
    bool is_look = ++b->turn == LOOK_EVERY;

    if (b->rest > 0)
        b->rest--;
    if (is_look) {
        b->is_rare = now - b->looked >= LOOK_EVERY * TURN_MIN;
        b->looked = now;
        b->turn = 0;
        if (b->is_on && b->is_rare)
            assess(b, is_served(b));
    }
    may = may && b->is_rare && b->rest == 0 && b->fd >= 0;
    if (may == b->is_on || (may && !read_wait(b)))
        return;
    set(b, may);
    atomic_fetch_add_explicit(&b->n_begun, b->is_on, memory_order_relaxed);
}

/* ---- waking ---- */

int wakeup_open(void)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    return fd < 0 ? -errno : fd;
}

void wakeup_signal(int fd)
{
    uint64_t one = 1;

    /* Fails only when the counter is at its end, and then it is readable anyway. */
    (void)!write(fd, &one, sizeof(one));
}

bool wakeup_clear(int fd)
{
    uint64_t ignored;

    return read(fd, &ignored, sizeof(ignored)) > 0;
}
