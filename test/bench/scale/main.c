/*
 * main.c - thousands of fake nodes in one process, to load a hub as a fleet of agents does.
 *
 *     bench-scale TOKEN HUB-PID INTERFACE NODES LATE IDLE-SECONDS CHANGES
 *
 * NODES machines join, JOINERS at a time, as fast as the hub takes them in: each makes a key,
 * enrols by TLS, begins its WireGuard session, asks the hub through it, and reports where it is.
 * From then on each reports every minute that nothing has changed: a hub takes one that does not
 * for silent. Then each watches. For IDLE-SECONDS nothing else happens but what keeps them there:
 * heartbeats, the kernel's probes of each watch, new keys every two minutes. Then one node after
 * another reports a new endpoint, CHANGES times, which is timed from the request to the watch that
 * is told last. Then all watches break off, and go on at once where they were. At the end LATE
 * machines more join while the others watch.
 *
 * Prints one line of JSON. What it reads of the hub's process is of that process alone.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/secret.h"
#include "fake.h"
#include "os/clock.h"
#include "tunnel.h"
#include "watches.h"

#define JOINERS     64
#define SLICE       500 /* joins over which a rate is taken */
#define PATIENCE    (600 * NSEC_PER_SEC)
#define CHANGES_MAX 10000
#define TOLD_WITHIN (60 * NSEC_PER_SEC)
#define SETTLE_S    15
#define REPORTERS   8
#define REPORT_EACH (60 * NSEC_PER_SEC) /* as PERIOD in node_report.c */
#define HUB_WIRE    "wire"              /* the hub's interface to the fleet, as scale.py has it */

/* All of it. */
struct fleet {
    struct fake_hub hub;
    struct tunnel *tunnel;
    struct watches *watches;
    struct fake *fakes; /* owns */
    uint32_t n;         /* of the present step: up to here */
    long hub_pid;
    _Atomic uint32_t next;
    _Atomic uint32_t n_done;
    _Atomic uint32_t n_repeated; /* requests that were refused or lost, and made once more */
    nsec_t *done_at;             /* owns; in the order in which they were done */
    uint32_t n_reporting;        /* nodes that report each minute */
    nsec_t reporting_since;
    _Atomic uint32_t next_reporter;
    _Atomic uint32_t n_reports;      /* of those that report each minute */
    _Atomic uint32_t n_reports_lost; /* which were refused or not answered */
};

/* ---- the hub's process ---------------------------------------------------------------------- */

/* Of /proc/PID/stat, the 14th and 15th field: user and kernel, in ticks. */
static double cpu_seconds(long pid)
{
    unsigned long ticks = 0;
    char path[64];
    char text[1024] = "";
    char *at;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    f = fopen(path, "re");
    /* The name of the program, the second field, may hold anything. */
    if (!f || !fgets(text, sizeof(text), f) || !(at = strrchr(text, ')')))
        fake_die("the hub has ended");
    (void)fclose(f);
    for (int field = 3; at && field <= 15; field++) {
        at = strchr(at + 1, ' ');
        if (at && field >= 14)
            ticks += strtoul(at + 1, NULL, 10);
    }
    return (double)ticks / (double)sysconf(_SC_CLK_TCK);
}

static double status_mib(long pid, const char *field)
{
    char path[64];
    char line[256];
    double kib = 0;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%ld/status", pid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, field, strlen(field)) == 0)
            kib = strtod(line + strlen(field) + 1, NULL);
    if (f)
        (void)fclose(f);
    return kib / 1024;
}

/* Bytes of all packets, beside the tunnels too. */
struct wire_bytes {
    unsigned long long received;
    unsigned long long sent;
};

/* Of /proc/PID/net/dev, the first and the ninth number behind the interface's name. */
static struct wire_bytes hub_wire_bytes(long pid)
{
    struct wire_bytes bytes = {0};
    char path[64];
    char line[512];
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%ld/net/dev", pid);
    f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        char *at = strchr(line, ':');

        if (!at || strncmp(line + strspn(line, " "), HUB_WIRE ":", strlen(HUB_WIRE) + 1) != 0)
            continue;
        bytes.received = strtoull(at + 1, &at, 10);
        for (int field = 2; field <= 8; field++)
            (void)strtoull(at, &at, 10);
        bytes.sent = strtoull(at, NULL, 10);
    }
    if (f)
        (void)fclose(f);
    if (bytes.received == 0)
        fake_die("the hub has no interface " HUB_WIRE);
    return bytes;
}

/* ---- in parallel ---------------------------------------------------------------------------- */

static void pause_ms(int ms)
{
    (void)poll(NULL, 0, ms);
}

/* What an agent does as well when it is refused, or not answered. */
static void try_again(struct fleet *all)
{
    atomic_fetch_add(&all->n_repeated, 1);
    pause_ms(200);
}

static void join_one(struct fleet *all, uint32_t number)
{
    struct fake *f = &all->fakes[number];
    struct ip_addr outer = tunnel_outer(number);
    char from[IP_ADDR_TEXT_MAX];
    char at[ENDPOINT_TEXT_MAX];
    int status;

    while ((status = fake_enrol(f, number, &all->hub)) != 200) {
        if (status >= 400 && status < 500 && status != 429)
            fake_die("the hub refuses a node");
        try_again(all);
    }
    tunnel_add(all->tunnel, number, &f->secret, &f->address);
    while (!fake_learn(f, &all->hub))
        try_again(all);
    (void)snprintf(at, sizeof(at), "%s:41641", ip_addr_format(&outer, from));
    while (!fake_report(f, &all->hub, at))
        try_again(all);
}

static void watch_one(struct fleet *all, uint32_t number)
{
    struct fake_known known = watches_known(all->watches, number);
    int fd;

    while ((fd = fake_watch(&all->fakes[number], &all->hub, &known)) < 0)
        try_again(all);
    watches_add(all->watches, number, fd);
}

/* A step that all nodes make, and its threads. */
struct step {
    struct fleet *all;
    void (*one)(struct fleet *all, uint32_t number);
};

static void *make_step(void *arg)
{
    struct step *step = arg;
    struct fleet *all = step->all;
    uint32_t number;

    while ((number = atomic_fetch_add(&all->next, 1)) < all->n) {
        step->one(all, number);
        all->done_at[atomic_fetch_add(&all->n_done, 1)] = clock_now();
    }
    return NULL;
}

/* By nodes @first to @end; returns the seconds. */
static double step_all(
    struct fleet *all, void (*one)(struct fleet *, uint32_t), uint32_t first, uint32_t end)
{
    struct step step = {.all = all, .one = one};
    nsec_t began = clock_now();
    pthread_t threads[JOINERS];

    all->next = first;
    all->n = end;
    all->n_done = 0;
    for (int i = 0; i < JOINERS; i++)
        if (pthread_create(&threads[i], NULL, make_step, &step) != 0)
            fake_die("no more threads");
    for (int i = 0; i < JOINERS; i++)
        (void)pthread_join(threads[i], NULL);
    return (double)(clock_now() - began) / (double)NSEC_PER_SEC;
}

/* Every REPORTERS-th node, each at its own moment of the minute, until the program ends. */
static void *keep_reporting(void *arg)
{
    struct fleet *all = arg;
    uint32_t first = atomic_fetch_add(&all->next_reporter, 1);

    for (nsec_t minute = all->reporting_since;; minute += REPORT_EACH) {
        for (uint32_t i = first; i < all->n_reporting; i += REPORTERS) {
            nsec_t due = minute + REPORT_EACH * i / all->n_reporting;
            nsec_t now = clock_now();

            if (now < due)
                pause_ms((int)((due - now) / NSEC_PER_MSEC));
            if (!fake_report(&all->fakes[i], &all->hub, NULL))
                atomic_fetch_add(&all->n_reports_lost, 1);
            atomic_fetch_add(&all->n_reports, 1);
        }
    }
    return NULL;
}

static void start_reporting(struct fleet *all, uint32_t n)
{
    pthread_t thread;

    all->n_reporting = n;
    all->reporting_since = clock_now();
    for (int i = 0; i < REPORTERS; i++)
        if (pthread_create(&thread, NULL, keep_reporting, all) != 0)
            fake_die("no more threads");
}

static int compare(const void *a, const void *b)
{
    const nsec_t *x = a;
    const nsec_t *y = b;

    return (*x > *y) - (*x < *y);
}

/* The rate over the slowest SLICE in a row of those that were done. */
static double slowest_rate(struct fleet *all, uint32_t n)
{
    nsec_t longest = 0;

    qsort(all->done_at, n, sizeof(*all->done_at), compare);
    if (n <= SLICE)
        return 0;
    for (uint32_t i = 0; i + SLICE < n; i++)
        longest = nsec_max(longest, all->done_at[i + SLICE] - all->done_at[i]);
    return SLICE * (double)NSEC_PER_SEC / (double)longest;
}

/* ---- the steps ------------------------------------------------------------------------------ */

static void say(const char *name, double value)
{
    (void)printf(", \"%s\": %.4g", name, value);
    (void)fflush(stdout);
}

static void join_all(struct fleet *all, uint32_t n)
{
    double cpu = cpu_seconds(all->hub_pid);
    double seconds = step_all(all, join_one, 0, n);

    (void)printf("{\"nodes\": %u", n);
    say("joinsEachSecond", n / seconds);
    say("joinsEachSecondSlowest500", slowest_rate(all, n));
    say("joinHubCpuMs", (cpu_seconds(all->hub_pid) - cpu) * 1000 / n);
    say("joinRepeated", all->n_repeated);
    say("joinedResidentMiB", status_mib(all->hub_pid, "VmRSS:"));
}

static void watch_all(struct fleet *all, uint32_t n)
{
    nsec_t began = clock_now();
    double cpu = cpu_seconds(all->hub_pid);
    uint32_t have;

    all->n_repeated = 0;
    (void)step_all(all, watch_one, 0, n);
    /* As an agent does: what the hub has closed is opened again. */
    while ((have = watches_wait_snapshots(all->watches, n, NSEC_PER_SEC)) < n &&
           clock_now() - began < PATIENCE)
        for (uint32_t number; watches_take_ended(all->watches, &number);)
            watch_one(all, number);
    say("snapshotsSeconds", (double)(clock_now() - began) / (double)NSEC_PER_SEC);
    say("snapshotsHubCpuSeconds", cpu_seconds(all->hub_pid) - cpu);
    say("snapshotsMissing", n - have);
    say("snapshotsMiB", (double)watches_bytes(all->watches) / (1 << 20));
    say("watchRepeated", all->n_repeated);
}

static void be_idle(struct fleet *all, unsigned seconds)
{
    struct wire_bytes bytes_before;
    struct wire_bytes bytes;
    struct tunnel_counts before;
    uint32_t n_reports;
    nsec_t began;
    double cpu;

    pause_ms(SETTLE_S * 1000);
    before = tunnel_counts(all->tunnel);
    n_reports = all->n_reports;
    bytes_before = hub_wire_bytes(all->hub_pid);
    began = clock_now();
    cpu = cpu_seconds(all->hub_pid);
    pause_ms((int)seconds * 1000);
    cpu = cpu_seconds(all->hub_pid) - cpu;
    bytes = hub_wire_bytes(all->hub_pid);
    say("residentMiB", status_mib(all->hub_pid, "VmRSS:"));
    say("idleCpuPercent", cpu * 100 / ((double)(clock_now() - began) / (double)NSEC_PER_SEC));
    say("idleReceivedMiB", (double)(bytes.received - bytes_before.received) / (1 << 20));
    say("idleSentMiB", (double)(bytes.sent - bytes_before.sent) / (1 << 20));
    say("idleReports", all->n_reports - n_reports);
    say("idleHandshakes", (double)(tunnel_counts(all->tunnel).handshakes - before.handshakes));
}

/* Node @number reports something new. When the last of @n has been told; 0: not all were. */
static nsec_t change(struct fleet *all, uint32_t number, uint32_t n, unsigned mark)
{
    char at[ENDPOINT_TEXT_MAX];
    nsec_t began;
    nsec_t reported;

    (void)snprintf(at, sizeof(at), "198.51.100.%u:%u", mark / 200 % 250 + 1, 20000 + mark);
    watches_expect(all->watches, at);
    began = clock_now();
    while (!fake_report(&all->fakes[number], &all->hub, at))
        try_again(all);
    return watches_wait_told(all->watches, n, TOLD_WITHIN, &reported) == n ? reported - began : 0;
}

static double ms(nsec_t t)
{
    return (double)t / (double)NSEC_PER_MSEC;
}

static void change_some(struct fleet *all, uint32_t n, unsigned n_changes)
{
    static nsec_t times[CHANGES_MAX];
    struct rng rng = rng_kernel();
    double cpu = cpu_seconds(all->hub_pid);
    unsigned n_reported = 0;

    for (unsigned i = 0; i < n_changes; i++) {
        nsec_t took = change(all, rng_u32(&rng) % n, n, i);

        if (took > 0)
            times[n_reported++] = took;
    }
    qsort(times, n_reported, sizeof(*times), compare);
    say("changesNotToldToAll", n_changes - n_reported);
    if (n_reported == 0)
        return;
    say("toldP50Ms", ms(times[n_reported / 2]));
    say("toldP99Ms", ms(times[n_reported * 99 / 100]));
    say("toldWorstMs", ms(times[n_reported - 1]));
    say("toldHubCpuMs", (cpu_seconds(all->hub_pid) - cpu) * 1000 / n_changes);
}

/* The network is cut, one node changes, and then all watches go on where they were: each says what
 * it knows, and is told of that change. */
static void resume_all(struct fleet *all, uint32_t n)
{
    static const char at[] = "203.0.113.9:9";
    uint64_t bytes = watches_bytes(all->watches);
    uint32_t lost = watches_lost(all->watches);
    uint32_t have;
    nsec_t began;
    nsec_t reported;
    double cpu;

    watches_cut(all->watches);
    while (!fake_report(&all->fakes[0], &all->hub, at))
        try_again(all);
    watches_expect(all->watches, at);
    all->n_repeated = 0;
    began = clock_now();
    cpu = cpu_seconds(all->hub_pid);
    (void)step_all(all, watch_one, 0, n);
    while ((have = watches_wait_told(all->watches, n, NSEC_PER_SEC, &reported)) < n &&
           clock_now() - began < PATIENCE)
        for (uint32_t number; watches_take_ended(all->watches, &number);)
            watch_one(all, number);
    say("resumedSeconds", (double)(reported - began) / (double)NSEC_PER_SEC);
    say("resumedHubCpuSeconds", cpu_seconds(all->hub_pid) - cpu);
    say("resumedNotTold", n - have);
    say("resumedMiB", (double)(watches_bytes(all->watches) - bytes) / (1 << 20));
    /* So many come at once that the hub turns some away, which come again. */
    say("resumedTurnedAway", watches_lost(all->watches) - lost);
}

/* Newcomers, while all others watch. */
static void join_late(struct fleet *all, uint32_t first, uint32_t n)
{
    double cpu = cpu_seconds(all->hub_pid);
    double seconds = step_all(all, join_one, first, first + n);

    say("lateJoinsEachSecond", n / seconds);
    say("lateJoinHubCpuMs", (cpu_seconds(all->hub_pid) - cpu) * 1000 / n);
}

static void say_end(struct fleet *all)
{
    struct tunnel_counts counts = tunnel_counts(all->tunnel);

    say("residentMostMiB", status_mib(all->hub_pid, "VmHWM:"));
    say("watchesLost", watches_lost(all->watches));
    say("reportsLost", all->n_reports_lost);
    say("handshakes", (double)counts.handshakes);
    say("cookies", (double)counts.cookies);
    say("initiationsAgain", (double)counts.again);
    say("initiationsOfHub", (double)counts.asked);
    say("messagesInvalid", (double)counts.invalid);
    (void)printf("}\n");
}

static uint32_t number_of(const char *text, uint64_t min, uint64_t max, const char *name)
{
    struct err e = ERR_NULL;
    uint64_t value;

    if (parse_u64(&value, text, min, max, name, &e) != 0)
        fake_die(err_text(&e));
    return (uint32_t)value;
}

int main(int argc, char **argv)
{
    static struct fleet all;
    struct rlimit files;
    uint32_t late;
    uint32_t n;

    if (argc != 8)
        fake_die("TOKEN HUB-PID INTERFACE NODES LATE IDLE-SECONDS CHANGES");
    n = number_of(argv[4], 1, TUNNEL_NODES_MAX, "NODES");
    late = number_of(argv[5], 0, TUNNEL_NODES_MAX - n, "LATE");
    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    fake_hub_init(&all.hub, argv[1]);
    all.hub_pid = number_of(argv[2], 1, INT32_MAX, "HUB-PID");
    all.fakes = calloc(n + late, sizeof(*all.fakes));
    all.done_at = calloc(n + late, sizeof(*all.done_at));
    all.watches = watches_start(n);
    all.tunnel = tunnel_start(argv[3], n + late, &all.hub.token.hub_key, &all.hub.udp);
    if (!all.fakes || !all.done_at)
        fake_die("no memory");
    join_all(&all, n);
    start_reporting(&all, n);
    watch_all(&all, n);
    be_idle(&all, number_of(argv[6], 1, 3600, "IDLE-SECONDS"));
    change_some(&all, n, number_of(argv[7], 1, CHANGES_MAX, "CHANGES"));
    resume_all(&all, n);
    if (late > 0)
        join_late(&all, n, late);
    say_end(&all);
    return 0;
}
