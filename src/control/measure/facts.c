/* facts.c - see facts.h. It runs no program and changes nothing. */
#include "measure/facts.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/err.h"
#include "base/version.h"
#include "measure/result.h"
#include "measure/table.h"
#include "mesh/object/fields.h"
#include "net/address/sockaddr.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/worker.h"

/* ---- names ----------------------------------------------------------------------------------- */

/** One name. */
struct name_job {
    struct list link;
    struct order_name name;
    struct ip_addr address;
};

/** The names of one question; released when both the caller and the thread have left. */
struct name_jobs {
    size_t n;
    struct name_job items[];
};

static struct ip_addr resolve_name(const char *name)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    struct endpoint ep = {0};
    union sockaddr_inet sa;

    if (getaddrinfo(name, NULL, &hints, &list) != 0)
        return ep.addr;
    if (list && list->ai_family == AF_INET) {
        memcpy(&sa.v4, list->ai_addr, sizeof(sa.v4));
        (void)sockaddr_to_endpoint(&sa, &ep);
    }
    freeaddrinfo(list);
    return ep.addr;
}

static void resolve_names(struct worker *w, void *ctx)
{
    struct name_jobs *jobs = ctx;

    for (size_t i = 0; i < jobs->n && !worker_is_ending(w); i++) {
        struct name_job *job = &jobs->items[i];

        job->address = resolve_name(job->name.name);
        worker_finish(w, &job->link);
    }
}

int names_resolve(
    const struct order_name *names, size_t n, nsec_t deadline, struct names_answer *ret)
{
    struct name_jobs *jobs = n > 0 ? calloc(1, sizeof(*jobs) + n * sizeof(*jobs->items)) : NULL;
    struct worker_config config = {
        .name = "names", .loop = resolve_names, .release = free, .ctx = jobs};
    struct worker *w = NULL;
    int r;

    if (n == 0)
        return 0;
    if (!jobs)
        return -ENOMEM;
    for (jobs->n = 0; jobs->n < n; jobs->n++)
        jobs->items[jobs->n].name = names[jobs->n];
    r = worker_start(&w, &config);
    if (r < 0) {
        free(jobs);
        return r;
    }
    memset(ret, 0, n * sizeof(*ret));
    while (n > 0 && worker_wait_done(w, deadline)) {
        struct name_job *job = container_of(worker_collect(w), struct name_job, link);

        ret[job - jobs->items] = (struct names_answer){.address = job->address, .known = true};
        n--;
    }
    (void)worker_leave(w);
    return 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static const struct row versions_rows[] = {
    {ROW(TEXT, "weft", struct facts_versions, weft)},
    {ROW(TEXT, "kernel", struct facts_versions, kernel)},
    {ROW(TEXT, "python", struct facts_versions, python)},
    {ROW(TEXT, "torch", struct facts_versions, torch)},
    {ROW(TEXT, "nccl", struct facts_versions, nccl)},
    {.type = ROW_END},
};

static const struct row interface_rows[] = {
    {ROW(TEXT, "name", struct facts_interface, name)},
    {ROW(ADDRESS, "address", struct facts_interface, address)},
    {ROW(BOOL, "running", struct facts_interface, running)},
    {.type = ROW_END},
};

static const struct row facts_rows[] = {
    {ROW(OBJECT, "versions", struct facts, versions), .rows = versions_rows},
    {ROW(PAIR, "nofile", struct facts, nofile_soft)},
    {ROW(U64, "memlock", struct facts, memlock_hard), .max = INT64_MAX},
    {ROW(BOOL, "rdma", struct facts, has_rdma)},
    {ROW(PAIR, "tcpBuffers", struct facts, tcp_receive_max)},
    {ROW(BOOL, "tcpRestarts", struct facts, tcp_restarts), .is_optional = true},
    {ROW(BOOL, "countsLoss", struct facts, counts_loss), .is_optional = true},
    {ROW(BOOL, "countsBursts", struct facts, counts_bursts), .is_optional = true},
    {ROW(TEXT, "interface", struct facts, interface)},
    {ROW(ADDRESS, "address", struct facts, address)},
    {ROW(ADDRESS, "hostAddress", struct facts, host_address)},
    {ROW(TEXT, "hostname", struct facts, hostname), .is_optional = true},
    {ROW(TEXT, "ncclIfname", struct facts, nccl_ifname)},
    {ROW(TEXT, "ncclFamily", struct facts, nccl_family)},
    {ROW(U64, "traffic", struct facts, traffic), .max = INT64_MAX},
    {ROW(U64, "jobs", struct facts, jobs), .max = UINT32_MAX},
    {.type = ROW_END},
};

_Static_assert(
    offsetof(struct facts, nofile_hard) == offsetof(struct facts, nofile_soft) + 8 &&
        offsetof(struct facts, tcp_send_max) == offsetof(struct facts, tcp_receive_max) + 8,
    "a pair is two members that follow each other");

json_t *facts_encode(const struct facts *f)
{
    json_t *json = table_encode(json_object(), facts_rows, 0, f);

    fields_set(&json, "interfaces",
        table_encode_list(
            interface_rows, f->interfaces, f->n_interfaces, sizeof(f->interfaces[0])));
    return json;
}

int facts_decode(struct facts *ret, const json_t *json, struct err *e)
{
    struct fields f = fields_make(json, "the facts", e);
    struct facts facts = {.tcp_restarts = true};
    const json_t *list;

    table_decode(&f, facts_rows, 0, &facts);
    list = fields_array(&f, "interfaces", FIELDS_REQUIRED, 0, FACTS_INTERFACES_MAX);
    table_decode_list(
        &f, list, "an interface", interface_rows, facts.interfaces, sizeof(facts.interfaces[0]));
    facts.n_interfaces = json_array_size(list);
    return fields_give(&f, ret, &facts, sizeof(facts));
}

/* ---- installed software ---------------------------------------------------------------------- */

/* Versions of python, torch and NCCL are found by file names alone. None of these files is run or
 * opened, because anybody may have written what is in a site-packages folder. The first place where
 * something is found is used. */

/* Folders of Python packages: the distribution's, pip's, conda's, and those in NVIDIA's and
 * PyTorch's containers. */
static const char *const package_dirs[] = {
    "/opt/conda/lib/python3.*/site-packages",
    "/opt/venv/lib/python3.*/site-packages",
    "/usr/local/lib/python3.*/site-packages",
    "/usr/local/lib/python3.*/dist-packages",
    "/usr/lib/python3/dist-packages",
};

static const char *const library_dirs[] = {
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/local/lib",
    "/usr/local/cuda/lib64",
    "/usr/lib64",
};

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* Takes the first path that matches @pattern and whose file name begins with @prefix. Copies to
 * @ret what follows @prefix in that name, up to one of the characters in @ends. */
static bool find_version(
    const char *pattern, const char *prefix, const char *ends, char ret[static FACTS_VERSION_MAX])
{
    glob_t found;
    bool done = false;

    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0)
        return false;
    for (size_t i = 0; i < found.gl_pathc && !done; i++) {
        const char *base = strrchr(found.gl_pathv[i], '/');
        size_t skip = strlen(prefix);

        if (!base || strncmp(base + 1, prefix, skip) != 0)
            continue;
        base += 1 + skip;
        (void)snprintf(ret, FACTS_VERSION_MAX, "%.*s", (int)strcspn(base, ends), base);
        done = ret[0] != '\0';
    }
    globfree(&found);
    return done;
}

static bool find_package(
    const char *glob_name, const char *prefix, char ret[static FACTS_VERSION_MAX])
{
    char pattern[256];

    for (size_t i = 0; i < COUNT(package_dirs); i++) {
        (void)snprintf(pattern, sizeof(pattern), "%s/%s", package_dirs[i], glob_name);
        /* Such names are "torch-2.8.0+cu128.dist-info" and "torch-1.13.1.egg-info". */
        if (find_version(pattern, prefix, "-", ret)) {
            char *end = strstr(ret, ".dist");

            end = end ? end : strstr(ret, ".egg");
            if (end)
                *end = '\0';
            return true;
        }
    }
    return false;
}

static void find_python(char ret[static FACTS_VERSION_MAX])
{
    static const char *const links[] = {
        "/opt/conda/bin/python3", "/usr/local/bin/python3", "/usr/bin/python3"};
    char target[256] = "";

    for (size_t i = 0; i < COUNT(links); i++) {
        ssize_t n = readlink(links[i], target, sizeof(target) - 1);
        const char *name;

        if (n <= 0)
            continue;
        target[n] = '\0';
        name = strstr(target, "python");
        if (name && name[strlen("python")] != '\0') {
            (void)snprintf(ret, FACTS_VERSION_MAX, "%.60s", name + strlen("python"));
            return;
        }
    }
}

static void find_nccl(char ret[static FACTS_VERSION_MAX])
{
    char pattern[256];

    /* A torch that was installed with an NCCL package loads that NCCL. */
    if (find_package("nvidia_nccl_cu1[0-9]-*-info", "nvidia_nccl_cu12-", ret) ||
        find_package("nvidia_nccl_cu1[0-9]-*-info", "nvidia_nccl_cu13-", ret))
        return;
    for (size_t i = 0; i < COUNT(library_dirs); i++) {
        (void)snprintf(pattern, sizeof(pattern), "%s/libnccl.so.2.*", library_dirs[i]);
        if (find_version(pattern, "libnccl.so.", "", ret))
            return;
    }
}

/* ---- this machine ---------------------------------------------------------------------------- */

#define SMALL_FILE_MAX 65536
#define RESOLVE_TIME   (1 * NSEC_PER_SEC)

static void copy_text(char *ret, size_t cap, const char *text)
{
    (void)snprintf(ret, cap, "%.*s", (int)cap - 1, text);
}

/* ---- limits -------------------------------------------------------------------------------- */

static uint64_t limit_value(rlim_t v)
{
    return v == RLIM_INFINITY || v > FACTS_UNLIMITED ? FACTS_UNLIMITED : (uint64_t)v;
}

void facts_gather_limits(struct facts *f)
{
    struct rlimit files = {0};
    struct rlimit locked = {0};

    (void)getrlimit(RLIMIT_NOFILE, &files);
    (void)getrlimit(RLIMIT_MEMLOCK, &locked);
    f->nofile_soft = limit_value(files.rlim_cur);
    f->nofile_hard = limit_value(files.rlim_max);
    f->memlock_hard = limit_value(locked.rlim_max);
}

/* Reads the third number in a file below /proc/sys; 0 when there is none. */
static uint64_t read_third(const char *path)
{
    _cleanup_(freep) char *text = NULL;
    char *p;
    uint64_t v = 0;

    if (statefile_read(path, SMALL_FILE_MAX, &text, NULL, NULL) != 0)
        return 0;
    p = text;
    for (unsigned i = 0; i < 3; i++)
        v = strtoull(p, &p, 10);
    return v > FACTS_UNLIMITED ? FACTS_UNLIMITED : v;
}

/* ---- interfaces and names ------------------------------------------------------------------ */

static void gather_interfaces(struct facts *f)
{
    struct ifaddrs *all;

    if (getifaddrs(&all) < 0)
        return;
    for (struct ifaddrs *i = all; i && f->n_interfaces < FACTS_INTERFACES_MAX; i = i->ifa_next) {
        struct facts_interface *itf = &f->interfaces[f->n_interfaces];
        union sockaddr_inet sa = {0};
        struct endpoint ep;

        if (!i->ifa_addr)
            continue;
        if (i->ifa_addr->sa_family == AF_INET)
            memcpy(&sa.v4, i->ifa_addr, sizeof(sa.v4));
        else if (i->ifa_addr->sa_family == AF_INET6)
            memcpy(&sa.v6, i->ifa_addr, sizeof(sa.v6));
        if (!sockaddr_to_endpoint(&sa, &ep))
            continue;
        copy_text(itf->name, sizeof(itf->name), i->ifa_name);
        itf->address = ep.addr;
        itf->running = (i->ifa_flags & IFF_RUNNING) != 0;
        f->n_interfaces++;
    }
    freeifaddrs(all);
}

/* Finds the address on which Gloo would listen: the first one to which the machine's own name
 * resolves. */
static void gather_host_address(struct facts *f)
{
    struct order_name own = {.name = ""};
    struct names_answer answer = {0};

    (void)gethostname(f->hostname, sizeof(f->hostname) - 1);
    for (char *p = f->hostname; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    if (gethostname(own.name, sizeof(own.name) - 1) == 0 &&
        names_resolve(&own, 1, clock_now() + RESOLVE_TIME, &answer) == 0 && answer.known)
        f->host_address = answer.address;
}

/* ---- NCCL's configuration file ------------------------------------------------------------- */

/* Copies the value of "NAME=value" in @text to @ret. If there are several, the last one counts, as
 * it does for NCCL. */
static void find_setting(const char *text, const char *name, char *ret, size_t cap)
{
    size_t len = strlen(name);

    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        while (*line == '\n' || *line == ' ')
            line++;
        if (strncmp(line, name, len) == 0 && line[len] == '=')
            (void)snprintf(ret, cap, "%.*s", (int)strcspn(line + len + 1, "\r\n"), line + len + 1);
    }
}

static void gather_nccl_conf(struct facts *f)
{
    const char *home = getenv("HOME");
    char path[512];

    for (unsigned i = 0; i < 2; i++) {
        _cleanup_(freep) char *text = NULL;

        if (i == 0)
            copy_text(path, sizeof(path), "/etc/nccl.conf");
        else
            (void)snprintf(path, sizeof(path), "%s/.nccl.conf", home ? home : "");
        if (statefile_read(path, SMALL_FILE_MAX, &text, NULL, NULL) != 0)
            continue;
        find_setting(text, "NCCL_SOCKET_IFNAME", f->nccl_ifname, sizeof(f->nccl_ifname));
        find_setting(text, "NCCL_SOCKET_FAMILY", f->nccl_family, sizeof(f->nccl_family));
    }
}

/* ---- traffic ------------------------------------------------------------------------------- */

#define TRAFFIC_TIME_MS 300 /* for how long the traffic of other programs is counted */

static uint64_t read_counter(const char *interface, const char *name)
{
    _cleanup_(freep) char *text = NULL;
    char path[128];

    (void)snprintf(path, sizeof(path), "/sys/class/net/%s/statistics/%s", interface, name);
    if (statefile_read(path, 64, &text, NULL, NULL) != 0)
        return 0;
    return strtoull(text, NULL, 10);
}

static uint64_t read_bytes(const char *interface)
{
    return read_counter(interface, "rx_bytes") + read_counter(interface, "tx_bytes");
}

/* ---- jobs ---------------------------------------------------------------------------------- */

/* Is the process @pid a `weft run` in the same network namespace as this process? */
static bool is_job(const char *pid, const char *own_net)
{
    _cleanup_(freep) char *line = NULL;
    char path[64];
    char net[64] = "";
    const char *base;
    size_t len = 0;
    size_t first;

    (void)snprintf(path, sizeof(path), "/proc/%.20s/cmdline", pid);
    if (statefile_read(path, SMALL_FILE_MAX, &line, &len, NULL) != 0)
        return false;
    first = strlen(line) + 1;
    base = strrchr(line, '/') ? strrchr(line, '/') + 1 : line;
    if (strcmp(base, "weft") != 0 || first >= len || strcmp(line + first, "run") != 0)
        return false;
    (void)snprintf(path, sizeof(path), "/proc/%.20s/ns/net", pid);
    return readlink(path, net, sizeof(net) - 1) > 0 && strcmp(net, own_net) == 0;
}

static uint64_t count_jobs(void)
{
    _cleanup_(closedirp) DIR *dir = opendir("/proc");
    const struct dirent *entry;
    char own_net[64] = "";
    uint64_t n = 0;

    if (readlink("/proc/self/ns/net", own_net, sizeof(own_net) - 1) <= 0)
        return 0;
    while (dir && (entry = readdir(dir)))
        n += entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && is_job(entry->d_name, own_net);
    return n;
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* RFC 5681, section 4.1, which a machine may have turned off. */
bool facts_tcp_restarts(const char *congestion)
{
    _cleanup_(freep) char *after_idle = NULL;

    return !result_is_bbr(congestion) &&
           (statefile_read("/proc/sys/net/ipv4/tcp_slow_start_after_idle", SMALL_FILE_MAX,
                &after_idle, NULL, NULL) != 0 ||
               after_idle[0] != '0');
}

/* The congestion control of connections whose route names no other one. */
static bool machine_restarts(void)
{
    _cleanup_(freep) char *name = NULL;

    return statefile_read("/proc/sys/net/ipv4/tcp_congestion_control", SMALL_FILE_MAX, &name, NULL,
               NULL) != 0 ||
           facts_tcp_restarts(name);
}

void facts_gather(struct facts *ret, const char *interface, const struct ip_addr *address)
{
    struct utsname kernel;
    uint64_t before;
    nsec_t start;

    *ret = (struct facts){.counts_loss = true, .counts_bursts = true, .address = *address};
    copy_text(ret->interface, sizeof(ret->interface), interface);
    copy_text(ret->versions.weft, sizeof(ret->versions.weft), version_text);
    if (uname(&kernel) == 0)
        copy_text(ret->versions.kernel, sizeof(ret->versions.kernel), kernel.release);
    find_python(ret->versions.python);
    (void)find_package("torch-*-info", "torch-", ret->versions.torch);
    find_nccl(ret->versions.nccl);
    facts_gather_limits(ret);
    ret->has_rdma = dir_has_entries("/sys/class/infiniband");
    ret->tcp_receive_max = read_third("/proc/sys/net/ipv4/tcp_rmem");
    ret->tcp_send_max = read_third("/proc/sys/net/ipv4/tcp_wmem");
    ret->tcp_restarts = machine_restarts();
    gather_interfaces(ret);
    gather_host_address(ret);
    gather_nccl_conf(ret);
    ret->jobs = count_jobs();
    /* Nothing is being measured yet, so all traffic is that of other programs. */
    before = read_bytes(interface);
    start = clock_now();
    (void)poll(NULL, 0, TRAFFIC_TIME_MS);
    ret->traffic =
        (uint64_t)((double)(read_bytes(interface) - before) * 8e9 / (double)(clock_now() - start));
}
