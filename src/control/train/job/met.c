/* met.c - see met.h. */
#include "train/job/met.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent_ask.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "measure/order.h"
#include "net/address/sockaddr.h"
#include "os/clock.h"
#include "os/descendants.h"
#include "train/job/island_lan.h"
#include "train/job/missing.h"
#include "train/job/rendezvous.h"
#include "train/job/run.h"

/* So long it is looked often: a script that trains alone has ended soon. */
#define YOUNG (60 * NSEC_PER_SEC)

#define LOOK_EACH        (250 * NSEC_PER_MSEC)
#define LOOK_EACH_LATER  (2 * NSEC_PER_SEC)
#define LIST_EACH        NSEC_PER_SEC
#define LIST_EACH_LATER  (10 * NSEC_PER_SEC)
#define JUDGE_EACH       (2 * NSEC_PER_SEC)
#define JUDGE_EACH_LATER (20 * NSEC_PER_SEC)

/* Whom it has not met is said after a minute, once two looks have shown that all have come: one may
 * have come just now. */
#define REPORT_FIRST (40 * NSEC_PER_SEC)
#define REPORT_EACH  (20 * NSEC_PER_SEC)
#define COMPLETE     2

/* Ports below belong to services of the machine, such as ssh. */
#define PORT_FIRST 1024

#define ASK_TIMEOUT_MS 3000

/* The kernel tells of a connection's end from a thread of its own, a little later. */
#define LAST_WORDS_MS 1000

/* ---- what is seen --------------------------------------------------------------------------- */

static bool is_local(const struct met *m, const struct ip_addr *address)
{
    for (unsigned i = 0; i < m->n_locals; i++)
        if (ip_addr_equal(&m->locals[i], address))
            return true;
    return false;
}

static bool is_store(const struct met *m, const struct endpoint *remote)
{
    return (m->stores[0].port != 0 && endpoint_equal(&m->stores[0], remote)) ||
           (m->stores[1].port != 0 && endpoint_equal(&m->stores[1], remote));
}

/* A port at which a job's processes may be: neither a service's nor that of Weft's measurements. */
static bool may_be_job(uint16_t port)
{
    return port >= PORT_FIRST && port != PROBE_PORT;
}

static void add_seen(struct met *m, const struct ip_addr *address)
{
    for (unsigned i = 0; i < m->n_seen; i++)
        if (ip_addr_equal(&m->seen[i], address))
            return;
    /* So many others on the overlay, none of which is of the job: it is not known any more. */
    if (m->n_seen == MET_SEEN_MAX) {
        m->tcp.has_missed = true;
        return;
    }
    m->seen[m->n_seen++] = *address;
    m->has_new = true;
}

/* A tcp_watch_fn. */
static void take(void *ctx, const struct tcp_watch_pair *pair)
{
    struct met *m = ctx;

    if (!is_local(m, &pair->local.addr) || is_local(m, &pair->remote.addr))
        return;
    if (is_store(m, &pair->remote)) {
        m->has_new |= !m->uses_store;
        m->uses_store = true;
    } else if (may_be_job(pair->local.port) && may_be_job(pair->remote.port)) {
        add_seen(m, &pair->remote.addr);
    }
}

bool met_starts_elsewhere(const char *name)
{
    static const char *const names[] = {"docker", "podman", "nerdctl", "ctr", "kubectl", "ssh",
        "rsh", "pdsh", "srun", "sbatch", "mpirun", "mpiexec"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* A descendants_fn. */
static bool look_at_process(void *ctx, int pid)
{
    struct met *m = ctx;
    char name[16];

    m->is_elsewhere |= met_starts_elsewhere(descendants_name(pid, name));
    m->used_torch = m->used_torch || descendants_maps(pid, "libtorch");
    return !m->is_elsewhere;
}

/* ---- who it was ----------------------------------------------------------------------------- */

static bool has_name(const json_t *names, const char *name)
{
    const json_t *item;
    size_t i;

    json_array_foreach(names, i, item)
        if (json_is_string(item) && strcmp(json_string_value(item), name) == 0)
            return true;
    return false;
}

static bool is_text_of(const json_t *text, const struct ip_addr *address)
{
    struct ip_addr parsed;

    return json_is_string(text) && ip_addr_parse(&parsed, json_string_value(text), NULL) == 0 &&
           ip_addr_equal(&parsed, address);
}

bool met_is_of_member(const struct ip_addr *address, const json_t *status, const json_t *members,
    const struct island_lan *island)
{
    const json_t *peer;
    size_t i;

    json_array_foreach(json_object_get(status, "peers"), i, peer) {
        const char *name = json_string_value(json_object_get(peer, "name"));

        if (name && (!members || has_name(members, name)) &&
            (is_text_of(json_object_get(peer, "address4"), address) ||
                is_text_of(json_object_get(peer, "address6"), address)))
            return true;
    }
    for (i = 0; island && i < island->n; i++)
        if (ip_addr_equal(&island->mates[i].lan, address) &&
            (!members || has_name(members, island->mates[i].name)))
            return true;
    return false;
}

static bool is_any_of_member(const struct met *m, const json_t *members)
{
    _cleanup_(island_lan_deinit) struct island_lan island = ISLAND_LAN_NULL;
    json_auto_t *status = NULL;

    if (m->n_seen == 0 ||
        agent_ask(m->run->socket_path, "GET", "/v1/status", ASK_TIMEOUT_MS, &status, NULL) != 0)
        return false;
    if (m->run->island_interface[0] != '\0')
        (void)island_lan_of_status(&island, status);
    for (unsigned i = 0; i < m->n_seen; i++)
        if (met_is_of_member(&m->seen[i], status, members, &island))
            return true;
    return false;
}

/* Asks the hub and the agent. @is_last: nothing more will be seen, and a hub that does not answer
 * is no reason to call the command alone. */
static void judge(struct met *m, bool is_last)
{
    json_auto_t *members = rendezvous_members(m->run->socket_path, m->run->job, m->run->meeting.id);

    m->has_new = false;
    if (!members && !is_last) {
        m->has_new = true;
        return;
    }
    m->has_met = (m->uses_store && (!members || json_array_size(members) > 1)) ||
                 is_any_of_member(m, members);
}

/* ---- the time ------------------------------------------------------------------------------- */

static void report(struct met *m, nsec_t now)
{
    _cleanup_(str_deinit) struct str others = STR_NULL;
    bool is_complete = missing_unmet(m->run, &others);

    m->n_complete = is_complete ? m->n_complete + 1 : 0;
    m->report_at = now + REPORT_EACH;
    if (m->n_complete < COMPLETE)
        return;
    m->report_at = NSEC_NEVER;
    (void)fprintf(stderr,
        "weft run: %s runs for %lld s now, and has exchanged nothing with another node of the job "
        "%s: %s\n",
        m->run->command.program, (long long)((now - m->begun_at) / NSEC_PER_SEC),
        m->run->meeting.id, str_text(&others));
}

/* What only the hub and the agent know. */
static void ask_if_due(struct met *m, nsec_t now)
{
    bool is_young = now - m->begun_at < YOUNG;

    /* Who uses the store alone may still be joined by others. */
    if (now >= m->judge_at && (m->has_new || m->uses_store || m->n_seen > 0)) {
        judge(m, false);
        m->judge_at = now + (is_young ? JUDGE_EACH : JUDGE_EACH_LATER);
    }
    if (!m->has_met && !m->is_elsewhere && now >= m->report_at)
        report(m, now);
}

void met_look(struct met *m)
{
    nsec_t now = clock_now();
    bool is_young = now - m->begun_at < YOUNG;

    if (now < m->look_at)
        return;
    tcp_watch_hear(&m->tcp, take, m);
    if (now >= m->list_at) {
        tcp_watch_list(&m->tcp, take, m);
        m->list_at = now + (is_young ? LIST_EACH : LIST_EACH_LATER);
    }
    descendants_walk(getpid(), look_at_process, m);
    ask_if_due(m, now);
    m->look_at = m->has_met || m->is_elsewhere
                     ? NSEC_NEVER
                     : clock_now() + (is_young ? LOOK_EACH : LOOK_EACH_LATER);
}

enum met_verdict met_end(struct met *m)
{
    nsec_t deadline = clock_now() + LAST_WORDS_MS * NSEC_PER_MSEC;

    if (!m->is_on || m->has_met || m->is_elsewhere)
        return MET_VERDICT_MET;
    tcp_watch_list(&m->tcp, take, m);
    m->has_new |= m->uses_store;
    for (;;) {
        struct pollfd news = {.fd = m->tcp.news_fd, .events = POLLIN};
        nsec_t left = deadline - clock_now();

        tcp_watch_hear(&m->tcp, take, m);
        if (m->has_new || left <= 0)
            judge(m, true);
        if (m->has_met || left <= 0)
            break;
        (void)poll(&news, 1, (int)(left / NSEC_PER_MSEC) + 1);
    }
    if (m->has_met || m->tcp.has_missed)
        return MET_VERDICT_MET;
    return m->used_torch ? MET_VERDICT_STRAYED : MET_VERDICT_ALONE;
}

/* ---- life ----------------------------------------------------------------------------------- */

static bool is_ours(const struct run *run, const char *interface)
{
    return strcmp(interface, run->node.interface) == 0 ||
           (run->island_interface[0] != '\0' && strcmp(interface, run->island_interface) == 0);
}

static void find_locals(struct met *m)
{
    struct ifaddrs *all = NULL;
    struct endpoint at;

    if (getifaddrs(&all) < 0)
        return;
    for (const struct ifaddrs *i = all; i && m->n_locals < MET_LOCALS_MAX; i = i->ifa_next)
        if (i->ifa_addr && is_ours(m->run, i->ifa_name) &&
            sockaddr_to_endpoint((const union sockaddr_inet *)i->ifa_addr, &at))
            m->locals[m->n_locals++] = at.addr;
    freeifaddrs(all);
}

void met_begin(struct met *m, const struct run *run)
{
    nsec_t now = clock_now();

    *m = (struct met){.run = run, .tcp = TCP_WATCH_NULL, .look_at = NSEC_NEVER};
    if (run->meeting.id[0] == '\0' || run->min_nodes < 2 || run->has_met)
        return;
    find_locals(m);
    (void)endpoint_parse(&m->stores[0], run->meeting.c10d, NULL);
    (void)endpoint_parse(&m->stores[1], run->meeting.etcd, NULL);
    m->is_on = m->n_locals > 0 && tcp_watch_open(&m->tcp) == 0;
    m->begun_at = now;
    m->report_at = now + REPORT_FIRST;
    m->look_at = m->is_on ? now + LOOK_EACH : NSEC_NEVER;
}

void met_deinit(struct met *m)
{
    tcp_watch_close(&m->tcp);
    m->is_on = false;
}
