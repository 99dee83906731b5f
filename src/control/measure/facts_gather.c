/* facts_gather.c - facts_gather() of facts.h. It runs no program and changes nothing. */
#include <ctype.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/version.h"
#include "measure/facts.h"
#include "measure/names.h"
#include "measure/result.h"
#include "net/address/sockaddr.h"
#include "os/clock.h"
#include "os/statefile.h"

#define SMALL_FILE_MAX 65536
#define RESOLVE_TIME   (1 * NSEC_PER_SEC)

static void copy(char *ret, size_t cap, const char *text)
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

static bool begins_with(const char *path, const char *word)
{
    _cleanup_(freep) char *text = NULL;

    return statefile_read(path, SMALL_FILE_MAX, &text, NULL, NULL) == 0 &&
           strncmp(text, word, strlen(word)) == 0;
}

static bool has_entries(const char *path)
{
    DIR *dir = opendir(path);
    bool found = false;

    if (!dir)
        return false;
    for (struct dirent *d = readdir(dir); d && !found; d = readdir(dir))
        found = d->d_name[0] != '.';
    (void)closedir(dir);
    return found;
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
        copy(itf->name, sizeof(itf->name), i->ifa_name);
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
            copy(path, sizeof(path), "/etc/nccl.conf");
        else
            (void)snprintf(path, sizeof(path), "%s/.nccl.conf", home ? home : "");
        if (statefile_read(path, SMALL_FILE_MAX, &text, NULL, NULL) != 0)
            continue;
        find_setting(text, "NCCL_SOCKET_IFNAME", f->nccl_ifname, sizeof(f->nccl_ifname));
        find_setting(text, "NCCL_SOCKET_FAMILY", f->nccl_family, sizeof(f->nccl_family));
    }
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
    DIR *dir = opendir("/proc");
    char own_net[64] = "";
    uint64_t n = 0;

    if (!dir || readlink("/proc/self/ns/net", own_net, sizeof(own_net) - 1) <= 0) {
        if (dir)
            (void)closedir(dir);
        return 0;
    }
    for (struct dirent *d = readdir(dir); d; d = readdir(dir))
        n += d->d_name[0] >= '1' && d->d_name[0] <= '9' && is_job(d->d_name, own_net);
    (void)closedir(dir);
    return n;
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* RFC 5681, section 4.1, which a machine may have turned off. */
bool facts_tcp_restarts(const char *congestion)
{
    return !result_is_bbr(congestion) &&
           !begins_with("/proc/sys/net/ipv4/tcp_slow_start_after_idle", "0");
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

    *ret = (struct facts){.address = *address};
    copy(ret->interface, sizeof(ret->interface), interface);
    copy(ret->versions.weft, sizeof(ret->versions.weft), version_text);
    if (uname(&kernel) == 0)
        copy(ret->versions.kernel, sizeof(ret->versions.kernel), kernel.release);
    software_find(&ret->versions);
    facts_gather_limits(ret);
    ret->has_rdma = has_entries("/sys/class/infiniband");
    ret->tcp_receive_max = read_third("/proc/sys/net/ipv4/tcp_rmem");
    ret->tcp_send_max = read_third("/proc/sys/net/ipv4/tcp_wmem");
    ret->tcp_restarts = machine_restarts();
    gather_interfaces(ret);
    gather_host_address(ret);
    gather_nccl_conf(ret);
    ret->jobs = count_jobs();
}
