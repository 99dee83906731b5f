/* gpu_sampler.c - see gpu_sampler.h. */
#include "fabric/gpu_sampler.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/text.h"
#include "fabric/nvml.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/sandbox.h"

#define PATH_LEN (PATH_MAX / 8)
#define TEXT_MAX 65536

/* Two seconds; and 45 where programs use the GPUs. */
static const struct gpu_pace usual_pace = {.turn_ms = 200, .turns = 10, .turns_used = 215};

/* GPUs that are asked for: those that do not answer are passed over. */
#define ASKED_MAX 256

/* Events that are taken in one turn, and records of the kernel's log: more come next. */
#define EVENTS_MAX  64
#define RECORDS_MAX 100000

/* A line says nothing of its use in less time, ms. */
#define USE_MIN_MS 1000

/* ---- lines ---------------------------------------------------------------------------------- */

#define NET   "/sys/class/net"
#define VERBS "/sys/class/infiniband"
#define PCI   "/sys/bus/pci/devices"

/* The number in a file; false: there is none, or it is below 0. */
static bool read_number(const struct tree *t, uint64_t *ret, const char *dir, const char *file)
{
    char path[PATH_LEN];
    char text[64];

    if (snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path) ||
        !tree_read(t, path, text, sizeof(text)) || !isdigit((unsigned char)text[0]))
        return false;
    *ret = strtoull(text, NULL, 10);
    return true;
}

/* The kernel says -1 where a machine has no NUMA nodes. */
static void read_numa(const struct tree *t, const char *dir, bool *ret_has, uint32_t *ret)
{
    uint64_t node;

    *ret_has = read_number(t, &node, dir, "numa_node") && node <= 1023;
    *ret = *ret_has ? (uint32_t)node : 0;
}

static void read_nic(struct gpu_line_count *ret, const struct tree *t, const char *name)
{
    char dir[PATH_LEN];
    uint64_t mbit = 0;

    *ret = (struct gpu_line_count){.rate = 0};
    (void)snprintf(ret->line.name, sizeof(ret->line.name), "%s", name);
    (void)snprintf(dir, sizeof(dir), NET "/%s/device", name);
    read_numa(t, dir, &ret->line.has_numa, &ret->line.numa);
    (void)snprintf(dir, sizeof(dir), NET "/%s", name);
    if (read_number(t, &mbit, dir, "speed") && mbit <= UINT32_MAX)
        ret->rate = mbit * 125000;
    (void)read_number(t, &ret->sent, dir, "statistics/tx_bytes");
    (void)read_number(t, &ret->received, dir, "statistics/rx_bytes");
}

/* The kernel's tables of routes, and which of their columns is what. Source: proc(5). */
static const struct route_table {
    const char *path;
    unsigned to;
    unsigned mask; /* or the length of the prefix */
    unsigned metric;
    unsigned name;
    int base; /* of the metric's digits */
} route_tables[] = {{"/proc/net/route", 1, 7, 6, 0, 10}, {"/proc/net/ipv6_route", 0, 1, 5, 9, 16}};

/* The word @n of a line, from 0; false: there are not so many, or it is too long. */
static bool read_word(const char *line, unsigned n, char ret[static TREE_NAME_MAX])
{
    size_t len;

    for (;;) {
        line += strspn(line, " \t");
        len = strcspn(line, " \t\n");
        if (len == 0 || n == 0)
            break;
        line += len;
        n--;
    }
    if (len == 0 || len >= TREE_NAME_MAX)
        return false;
    memcpy(ret, line, len);
    ret[len] = '\0';
    return true;
}

static bool is_zero(const char *line, unsigned column)
{
    char word[TREE_NAME_MAX];

    return read_word(line, column, word) && strspn(word, "0") == strlen(word);
}

/* The interface of the default route with the least metric; not the loopback, which refuses. */
static bool find_default(const struct tree *t, const struct route_table *table, char *text,
    char ret[static TREE_NAME_MAX])
{
    unsigned long least = ULONG_MAX;
    const char *line = tree_read(t, table->path, text, TEXT_MAX) ? text : NULL;

    for (; line; line = strchr(line, '\n')) {
        char name[TREE_NAME_MAX];
        char word[TREE_NAME_MAX];
        unsigned long metric;

        line += *line == '\n';
        if (!is_zero(line, table->to) || !is_zero(line, table->mask) ||
            !read_word(line, table->metric, word) || !read_word(line, table->name, name) ||
            strcmp(name, "lo") == 0)
            continue;
        metric = strtoul(word, NULL, table->base);
        if (metric < least) {
            least = metric;
            memcpy(ret, name, sizeof(name));
        }
    }
    return least != ULONG_MAX;
}

/* The interfaces below @name that have a device, as of a bond or a VLAN; none: itself. @deep: how
 * many of such may lie on each other. */
static unsigned add_nics(
    struct gpu_line_count *ret, unsigned n, const struct tree *t, const char *name, unsigned deep)
{
    char below[GPU_LINES_MAX][TREE_NAME_MAX];
    char path[PATH_LEN];
    unsigned first = n;
    size_t n_below;

    (void)snprintf(path, sizeof(path), NET "/%s/device", name);
    if (n == GPU_LINES_MAX)
        return n;
    if (tree_has(t, path) || deep == 0) {
        read_nic(&ret[n], t, name);
        return n + 1;
    }
    (void)snprintf(path, sizeof(path), NET "/%s", name);
    n_below = tree_list(t, path, below, GPU_LINES_MAX);
    for (size_t i = 0; i < n_below; i++)
        if (strncmp(below[i], "lower_", 6) == 0)
            n = add_nics(ret, n, t, below[i] + 6, deep - 1);
    if (n == first)
        read_nic(&ret[n++], t, name);
    return n;
}

static bool read_port(
    struct gpu_line_count *ret, const struct tree *t, const char *device, const char *port)
{
    char dir[PATH_LEN];
    char path[PATH_LEN];
    char text[64];
    uint64_t gbit = 0;
    bool has_words;

    *ret = (struct gpu_line_count){.line = {.is_fabric = true}};
    if (snprintf(dir, sizeof(dir), VERBS "/%s/ports/%s", device, port) >= (int)sizeof(dir) ||
        snprintf(path, sizeof(path), "%s/state", dir) >= (int)sizeof(path) ||
        !tree_read(t, path, text, sizeof(text)) || !strstr(text, "ACTIVE") ||
        snprintf(ret->line.name, sizeof(ret->line.name), "%s/%s", device, port) >=
            (int)sizeof(ret->line.name))
        return false;
    /* "400 Gb/sec (4X NDR)" */
    if (read_number(t, &gbit, dir, "rate") && gbit <= UINT32_MAX)
        ret->rate = gbit * 125000000;
    /* InfiniBand counts words of four bytes, and EFA bytes. */
    has_words = read_number(t, &ret->sent, dir, "counters/port_xmit_data") &&
                read_number(t, &ret->received, dir, "counters/port_rcv_data");
    if (has_words) {
        ret->sent *= 4;
        ret->received *= 4;
    } else if (!read_number(t, &ret->sent, dir, "hw_counters/tx_bytes") ||
               !read_number(t, &ret->received, dir, "hw_counters/rx_bytes")) {
        ret->rate = 0;
    }
    (void)snprintf(dir, sizeof(dir), VERBS "/%s/device", device);
    read_numa(t, dir, &ret->line.has_numa, &ret->line.numa);
    return true;
}

unsigned gpu_lines_read(const struct tree *t, struct gpu_line_count ret[static GPU_LINES_MAX])
{
    char devices[GPU_LINES_MAX][TREE_NAME_MAX];
    size_t n_devices = tree_list(t, VERBS, devices, GPU_LINES_MAX);
    char *text = malloc(TEXT_MAX);
    char name[TREE_NAME_MAX];
    unsigned n = 0;

    for (unsigned i = 0; text && n == 0 && i < sizeof(route_tables) / sizeof(*route_tables); i++)
        if (find_default(t, &route_tables[i], text, name))
            n = add_nics(ret, 0, t, name, 2);
    free(text);
    for (size_t i = 0; i < n_devices; i++) {
        char ports[4][TREE_NAME_MAX];
        char dir[PATH_LEN];
        size_t n_ports;

        (void)snprintf(dir, sizeof(dir), VERBS "/%s/ports", devices[i]);
        n_ports = tree_list(t, dir, ports, 4);
        for (size_t k = 0; k < n_ports && n < GPU_LINES_MAX; k++)
            n += read_port(&ret[n], t, devices[i], ports[k]);
    }
    return n;
}

static uint64_t grown(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

void gpu_lines_compare(struct gpu_sample *ret, const struct gpu_line_count *before,
    unsigned n_before, const struct gpu_line_count *now, unsigned n_now, uint32_t ms)
{
    for (unsigned i = 0; i < n_now; i++) {
        struct gpu_line *line = &ret->lines[ret->n_lines++];
        unsigned k = 0;
        double share;

        *line = now[i].line;
        while (k < n_before && strcmp(before[k].line.name, line->name) != 0)
            k++;
        if (k == n_before || now[i].rate == 0 || ms < USE_MIN_MS)
            continue;
        share = (double)(grown(before[k].sent, now[i].sent));
        if (grown(before[k].received, now[i].received) > grown(before[k].sent, now[i].sent))
            share = (double)grown(before[k].received, now[i].received);
        share = share * 1000 / ms / (double)now[i].rate;
        line->has_use = true;
        line->use = share < 1 ? (uint32_t)(share * 100) : 100;
    }
}

/* ---- faults --------------------------------------------------------------------------------- */

static void format_bus(char ret[static GPU_BUS_MAX], const struct nvml_pci *pci)
{
    (void)snprintf(
        ret, GPU_BUS_MAX, "%04x:%02x:%02x.0", pci->domain, pci->bus & 0xff, pci->device & 0xff);
}

/* Of a GPU that is not listed nothing is noted: that it is gone says more. */
static void note_xid(struct gpu_sample *s, const char *bus, uint32_t xid)
{
    for (unsigned i = 0; i < s->n_gpus; i++) {
        struct gpu *g = &s->gpus[i];

        if (strcmp(g->bus, bus) == 0 && g->n_xids < GPU_XIDS_MAX)
            g->xids[g->n_xids++] = xid;
    }
}

void gpu_kmsg_read(struct gpu_sample *ret, int fd, uint64_t since_us)
{
    char record[8192];

    for (unsigned i = 0; i < RECORDS_MAX; i++) {
        ssize_t n = read(fd, record, sizeof(record));
        char bus[GPU_BUS_MAX];
        uint32_t xid;
        uint64_t us;

        /* Records were written over before they were read. */
        if (n < 0 && errno == EPIPE)
            continue;
        if (n <= 0)
            return;
        if (gpu_xid_parse(record, (size_t)n, bus, &xid, &us) && us >= since_us)
            note_xid(ret, bus, xid);
    }
}

/* ---- GPUs ----------------------------------------------------------------------------------- */

/* What a sample is made of meanwhile. */
struct sampling {
    const struct nvml *nvml;
    struct gpu_sample *sample;
    void *devices[GPU_MAX];
    uint64_t sums[GPU_MAX];  /* of their use, % ... */
    uint32_t looks[GPU_MAX]; /* ... at so many looks */
    void *events;            /* NULL: none are heard */
    bool had_event;
};

/* Notes what a call about a GPU says of it. Return: it has answered. */
static bool answers(struct gpu *g, int r)
{
    g->is_lost |= r == NVML_GPU_LOST;
    return r == NVML_OK;
}

static bool take_gpu(struct sampling *s, unsigned index, const struct tree *t)
{
    const struct nvml *nvml = s->nvml;
    struct gpu *g = &s->sample->gpus[s->sample->n_gpus];
    struct nvml_pci pci = {.domain = 0};
    char name[96 + 1] = "";
    char dir[PATH_LEN];
    void *device;

    *g = (struct gpu){.is_lost = false};
    /* Of one that is lost the driver may not even say where it was: then it is missing. */
    if (nvml->device(index, &device) != NVML_OK || !answers(g, nvml->pci(device, &pci)))
        return false;
    format_bus(g->bus, &pci);
    if (nvml->name && answers(g, nvml->name(device, name, sizeof(name) - 1)))
        (void)snprintf(g->name, sizeof(g->name), "%.*s", (int)sizeof(g->name) - 1, name);
    text_make_plain(g->name, '?');
    (void)snprintf(dir, sizeof(dir), PCI "/%s", g->bus);
    read_numa(t, dir, &g->has_numa, &g->numa);
    s->devices[s->sample->n_gpus++] = device;
    return true;
}

/* Registers for faults; none are heard where one GPU has no such events. */
static void begin_events(struct sampling *s)
{
    const struct nvml *nvml = s->nvml;

    if (!nvml->events_new || !nvml->events_add || !nvml->events_wait || !nvml->events_free ||
        nvml->events_new(&s->events) != NVML_OK) {
        s->events = NULL;
        return;
    }
    for (unsigned i = 0; s->events && i < s->sample->n_gpus; i++)
        if (!s->sample->gpus[i].is_lost &&
            nvml->events_add(s->devices[i], NVML_XID, s->events) != NVML_OK) {
            (void)nvml->events_free(s->events);
            s->events = NULL;
        }
}

/* Waits for a turn, and takes the faults that come in it. */
static void wait_turn(struct sampling *s, unsigned ms)
{
    unsigned wait_ms = ms;

    if (!s->events) {
        (void)poll(NULL, 0, (int)ms);
        return;
    }
    for (unsigned i = 0; i < EVENTS_MAX; i++) {
        struct nvml_event event = {.type = 0};
        struct nvml_pci pci = {.domain = 0};
        char bus[GPU_BUS_MAX];
        int r = s->nvml->events_wait(s->events, &event, wait_ms);

        if (r != NVML_OK) {
            /* What fails at once is no wait. */
            if (r != NVML_TIMED_OUT)
                (void)poll(NULL, 0, (int)wait_ms);
            return;
        }
        wait_ms = 0;
        if (event.type != NVML_XID || s->nvml->pci(event.device, &pci) != NVML_OK)
            continue;
        format_bus(bus, &pci);
        note_xid(s->sample, bus, (uint32_t)(event.data <= 99999 ? event.data : 99999));
        s->had_event = true;
    }
}

static void look_at_use(struct sampling *s)
{
    for (unsigned i = 0; s->nvml->use && i < s->sample->n_gpus; i++) {
        struct gpu *g = &s->sample->gpus[i];
        struct nvml_use use = {.gpu = 0};

        if (g->is_lost || !answers(g, s->nvml->use(s->devices[i], &use)))
            continue;
        s->sums[i] += use.gpu < 100 ? use.gpu : 100;
        s->looks[i]++;
        g->has_use = true;
        g->use = (uint32_t)(s->sums[i] / s->looks[i]);
    }
}

static void look_at_memory(struct sampling *s)
{
    for (unsigned i = 0; i < s->sample->n_gpus; i++) {
        struct gpu *g = &s->sample->gpus[i];
        struct nvml_memory memory = {.total = 0};
        unsigned long long ecc = 0;

        if (!g->is_lost && s->nvml->memory && answers(g, s->nvml->memory(s->devices[i], &memory))) {
            g->memory = memory.total < INT64_MAX ? memory.total : INT64_MAX;
            g->memory_used = memory.used < g->memory ? memory.used : g->memory;
        }
        if (!g->is_lost && s->nvml->ecc &&
            answers(g, s->nvml->ecc(s->devices[i], NVML_UNCORRECTED, NVML_VOLATILE, &ecc))) {
            g->has_ecc = true;
            g->ecc = ecc < INT64_MAX ? ecc : INT64_MAX;
        }
    }
}

static unsigned count_lost(const struct gpu_sample *s)
{
    unsigned n = 0;

    for (unsigned i = 0; i < s->n_gpus; i++)
        n += s->gpus[i].is_lost;
    return n;
}

static bool is_any_used(const struct gpu_sample *s)
{
    for (unsigned i = 0; i < s->n_gpus; i++)
        if (gpu_is_used(&s->gpus[i]))
            return true;
    return false;
}

/* Return: the driver answers, and its GPUs are listed. */
static bool begin(struct sampling *s, const struct tree *t)
{
    struct gpu_sample *sample = s->sample;
    unsigned n = 0;
    int r = s->nvml->init();

    if (r == NVML_OK)
        r = s->nvml->count(&n);
    if (r != NVML_OK) {
        sample->driver = r == NVML_MISMATCH                             ? GPU_DRIVER_MISMATCH
                         : r == NVML_NOT_LOADED || r == NVML_NO_LIBRARY ? GPU_DRIVER_ABSENT
                                                                        : GPU_DRIVER_FAILED;
        (void)nvml_explain(r, sample->why, sizeof(sample->why));
        return false;
    }
    sample->driver = GPU_DRIVER_OK;
    if (s->nvml->driver_version(sample->version, sizeof(sample->version) - 1) != NVML_OK)
        sample->version[0] = '\0';
    text_make_plain(sample->version, '?');
    for (unsigned i = 0; i < n && i < ASKED_MAX && sample->n_gpus < GPU_MAX; i++)
        (void)take_gpu(s, i, t);
    return true;
}

void gpu_sample_take(struct gpu_sample *ret, const struct nvml *nvml, const struct tree *t,
    const struct gpu_pace *pace, uint64_t since_us, bool (*turn)(void *ctx), void *ctx)
{
    struct sampling s = {.nvml = nvml, .sample = ret};
    struct gpu_line_count before[GPU_LINES_MAX];
    struct gpu_line_count now[GPU_LINES_MAX];
    unsigned n_before = gpu_lines_read(t, before);
    nsec_t begun_at = clock_now();
    unsigned n_turns = pace->turns;
    unsigned n_lost;
    _cleanup_(closep) int kmsg = -1;

    *ret = (struct gpu_sample){.driver = GPU_DRIVER_ABSENT};
    if (!begin(&s, t))
        return;
    begin_events(&s);
    look_at_memory(&s);
    n_lost = count_lost(ret);
    for (unsigned i = 0; i < n_turns && turn(ctx); i++) {
        wait_turn(&s, pace->turn_ms);
        look_at_use(&s);
        /* What is new is told at once. */
        if (i + 1 >= pace->turns && (s.had_event || count_lost(ret) > n_lost))
            break;
        if (i + 1 == pace->turns && s.events && is_any_used(ret))
            n_turns += pace->turns_used;
    }
    look_at_memory(&s);
    ret->ms = (uint32_t)nsec_min((clock_now() - begun_at) / NSEC_PER_MSEC, GPU_SAMPLE_MS_MAX);
    gpu_lines_compare(ret, before, n_before, now, gpu_lines_read(t, now), ret->ms);
    if (s.events) {
        (void)nvml->events_free(s.events);
        return;
    }
    kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (kmsg >= 0)
        gpu_kmsg_read(ret, kmsg, since_us);
}

/* ---- the process ---------------------------------------------------------------------------- */

static bool send_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        text += n;
        len -= (size_t)n;
    }
    return true;
}

static bool say_turn(void *ctx)
{
    const int *fd = ctx;

    return send_all(*fd, "\n", 1);
}

/* The driver's library is not ours: it gets no capability, and none of the node's files. */
static int narrow(struct err *e)
{
    static const struct sandbox_path paths[] = {
        {"/usr", SANDBOX_READ},
        {"/bin", SANDBOX_READ},
        {"/lib", SANDBOX_READ | SANDBOX_EXEC},
        {"/lib64", SANDBOX_READ | SANDBOX_EXEC},
        {"/usr/lib", SANDBOX_READ | SANDBOX_EXEC},
        {"/usr/lib64", SANDBOX_READ | SANDBOX_EXEC},
        {"/opt", SANDBOX_READ},
        {"/etc", SANDBOX_READ},
        {"/run", SANDBOX_READ},
        {"/proc", SANDBOX_READ},
        {"/sys", SANDBOX_READ},
        {"/dev", SANDBOX_READ | SANDBOX_WRITE},
    };
    const struct sandbox s = {.kind = SANDBOX_GPUS,
        .uid = geteuid(),
        .gid = getegid(),
        .paths = paths,
        .n_paths = sizeof(paths) / sizeof(*paths)};

    return sandbox_enter(&s, NULL, e);
}

int gpu_sampler_run(int fd, uint64_t since_us, struct err *e)
{
    static struct gpu_sample sample;
    const struct tree here = {.root = ""};
    struct nvml nvml = NVML_NULL;
    json_t *json;
    char *text;
    bool is_sent;
    int r = narrow(e);

    if (r != 0)
        return r;
    if (nvml_open(&nvml))
        gpu_sample_take(&sample, &nvml, &here, &usual_pace, since_us, say_turn, &fd);
    else
        (void)snprintf(sample.why, sizeof(sample.why), "there is no library of it");
    json = gpu_sample_encode(&sample);
    text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    is_sent = text && send_all(fd, text, strlen(text)) && send_all(fd, "\n", 1);
    free(text);
    json_decref(json);
    /* A driver that hangs does so here at the worst: the sample is said already. */
    if (nvml.library && sample.driver == GPU_DRIVER_OK)
        (void)nvml.shutdown();
    nvml_close(&nvml);
    return is_sent ? 0 : err_set(e, -ESRCH, "the agent has ended");
}
