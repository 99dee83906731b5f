/* doctor.c - see doctor.h. */
#include "agent/doctor.h"

#include <errno.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "agent/agent_ask.h"
#include "agent/hublink/hub_health.h"
#include "agent/reconcile/reconcile.h"
#include "agent/state/state.h"
#include "agent/status_text.h"
#include "api/client/client.h"
#include "base/err.h"
#include "base/text.h"
#include "health/finding.h"
#include "mesh/render/render.h"
#include "net/address/sockaddr.h"
#include "net/netlink/netlink.h"
#include "net/netlink/rtnl.h"
#include "net/socket/socket.h"
#include "os/clock.h"
#include "os/file.h"
#include "wire/stun.h"

#define ASK_MS 10000
/* A hub that is there answers within this time, also over a slow line. */
#define HUB_MS 3000
/* A request that is lost is repeated; each is waited for this long. */
#define STUN_TRIES 3
#define STUN_WAIT  (700 * NSEC_PER_MSEC)
/* Least space that a node needs to keep what it knows. */
#define DISK_LEAST (16ull << 20)
/* Two clocks that differ by more than this are not both right. */
#define CLOCK_OFF_S 10

/* What is looked at, and what was found on the spot. */
struct exam {
    const struct doctor_options *opt;
    struct doctor_report *report;
    struct findings found;
    int64_t at; /* s since 1970 */
};

#define ADD(x, code, subject, ...)                                                                 \
    findings_add(&(x)->found, FINDING_##code, subject, (x)->at, __VA_ARGS__)

/* This node's name, or what stands for it. */
static const char *self(const struct exam *x)
{
    return x->report->node[0] != '\0' ? x->report->node : DOCTOR_NODE_UNKNOWN;
}

void doctor_report_deinit(struct doctor_report *r)
{
    json_decref(r->status);
    json_decref(r->findings);
    *r = (struct doctor_report)DOCTOR_REPORT_NULL;
}

/* ---- lists of findings ---------------------------------------------------------------------- */

static const char *text_of(const json_t *finding, const char *field)
{
    const char *text = json_string_value(json_object_get(finding, field));

    return text ? text : "";
}

/* A severity of another version counts as a warning: it is worth looking at. */
static int severity_of(const json_t *finding)
{
    for (int i = 0; i < FINDING_SEVERITY_N; i++)
        if (strcmp(text_of(finding, "severity"), finding_severity_names[i]) == 0)
            return i;
    return FINDING_WARNING;
}

static bool has_finding(const json_t *list, const json_t *finding)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
        if (strcmp(text_of(item, "code"), text_of(finding, "code")) == 0 &&
            strcmp(text_of(item, "subject"), text_of(finding, "subject")) == 0)
            return true;
    return false;
}

/* Puts it behind those that are as grave. One that is there already, or is none, is passed over. */
static void put(json_t *list, json_t *finding)
{
    size_t place = 0;

    if (text_of(finding, "code")[0] == '\0' || has_finding(list, finding))
        return;
    while (place < json_array_size(list) &&
           severity_of(json_array_get(list, place)) >= severity_of(finding))
        place++;
    (void)json_array_insert(list, place, finding);
}

/* Is the same pair found at fault already, as gravely? Then the hub says the same in other words.
 */
static bool is_known(const json_t *list, const json_t *finding)
{
    const json_t *item;
    size_t i;

    json_array_foreach(list, i, item)
        if (strcmp(text_of(item, "about"), "pair") == 0 &&
            strcmp(text_of(item, "subject"), text_of(finding, "subject")) == 0 &&
            severity_of(item) >= severity_of(finding))
            return true;
    return false;
}

/* Is that subject this node, one of its pairs, or its part in a job? */
static bool is_about(const char *subject, const char *node)
{
    size_t len = strlen(node);
    const char *at = len > 0 ? strstr(subject, node) : NULL;

    for (; at; at = strstr(at + 1, node)) {
        bool begins = at == subject || at[-1] == '>' || at[-1] == '/' ||
                      (at - subject >= 2 && at[-1] == '-' && at[-2] == '-');
        bool ends = at[len] == '\0' || at[len] == '>' || (at[len] == '-' && at[len + 1] == '-');

        if (begins && ends)
            return true;
    }
    return false;
}

/* ---- the agent ------------------------------------------------------------------------------ */

static void take_name(char ret[static NAME_MAX_LEN + 1], const char *name)
{
    (void)snprintf(ret, NAME_MAX_LEN + 1, "%.*s", NAME_MAX_LEN, name ? name : "");
}

/* Return: an agent has answered. */
static bool ask_agent(struct exam *x, struct err *e)
{
    struct doctor_report *report = x->report;
    const json_t *self_of;
    json_t *item;
    size_t i;

    if (agent_ask(x->opt->socket, "GET", "/v1/status", ASK_MS, &report->status, e) != 0)
        return false;
    self_of = json_object_get(report->status, "self");
    take_name(report->node, json_string_value(json_object_get(self_of, "name")));
    take_name(report->network, json_string_value(json_object_get(self_of, "network")));
    json_array_foreach(json_object_get(report->status, "findings"), i, item)
        put(report->findings, item);
    return true;
}

/* ---- the machine, without an agent ---------------------------------------------------------- */

static void look_at_disk(struct exam *x)
{
    const char *dir = x->opt->state_dir;
    struct statvfs fs;
    unsigned long long left;

    if (statvfs(dir, &fs) != 0)
        return;
    left = (unsigned long long)fs.f_bavail * fs.f_frsize;
    if (left < DISK_LEAST)
        (void)ADD(x, STATE_DISK_FULL, self(x), "%llu KiB are free where %s is", left >> 10, dir);
    else if (fs.f_files > 0 && fs.f_favail == 0)
        (void)ADD(x, STATE_DISK_FULL, self(x), "no more files can be made where %s is", dir);
}

static void look_at_interface(struct exam *x, const struct state *st)
{
    struct netlink nl = NETLINK_NULL;
    struct x25519_public key;
    struct rtnl_link link;
    unsigned index;
    int r = netlink_open(&nl, NETLINK_ROUTE);

    if (r == 0)
        r = rtnl_find_link(&nl, st->interface, &link);
    if (r == RTNL_E_ABSENT)
        (void)ADD(x, INTERFACE_AWAY, self(x), "there is no interface %s", st->interface);
    else if (r == 0 && !link.up)
        (void)ADD(x, INTERFACE_AWAY, self(x), "the interface %s is down", st->interface);
    else if (r == 0 && x25519_derive_public(&st->secret, &key) &&
             !ownership_is_of_key(&nl, st->interface, &key, &index))
        (void)ADD(x, ENGINE_SILENT, self(x),
            "the interface %s is there, and no WireGuard with this node's key answers for it",
            st->interface);
    netlink_close(&nl);
}

/* ---- the hub, without an agent -------------------------------------------------------------- */

/* Sends one request and waits for its answer. */
static bool is_answered(int fd, const struct endpoint *to)
{
    uint8_t request[STUN_REQUEST_SIZE];
    struct rng rng = rng_kernel();
    struct stun_transaction id;
    struct stun_response response;
    union sockaddr_inet sa;
    socklen_t len = sockaddr_from_endpoint(&sa, to);
    nsec_t deadline = clock_now() + STUN_WAIT;
    uint8_t answer[512];

    rng_fill(&rng, &id, sizeof(id));
    stun_encode_request(&id, 0, request);
    if (sendto(fd, request, sizeof(request), 0, &sa.any, len) < 0)
        return false;
    while (socket_wait(fd, POLLIN, deadline) == 0) {
        ssize_t n = recv(fd, answer, sizeof(answer), MSG_DONTWAIT);

        if (n > 0 && stun_decode_response(&response, answer, (size_t)n) == 0 &&
            memcmp(&response.id, &id, sizeof(id)) == 0)
            return true;
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return false;
    }
    return false;
}

static bool reaches_by_udp(const struct endpoint *to)
{
    int family = ip_addr_is_v4(&to->addr) ? AF_INET : AF_INET6;
    _cleanup_(closep) int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    for (unsigned i = 0; fd >= 0 && i < STUN_TRIES; i++)
        if (is_answered(fd, to))
            return true;
    return false;
}

/* Any answer shows that the hub is there, also that its store refuses writes. */
static bool reaches_by_tls(
    struct exam *x, const struct state *st, const struct node_hub *hub, struct err *e)
{
    struct client_target target = {.access = CLIENT_ACCESS_HTTPS,
        .pin = hub->has_tls_pin ? hub->tls_pin : st->hub_api.pin,
        .proxy = st->hub_api.proxy[0] != '\0' ? st->hub_api.proxy : NULL};
    struct hub_api_list apis;

    hub_api_list_make(&apis, &st->hub_api, hub);
    for (unsigned i = 0; i < apis.n; i++) {
        struct client_answer answer = CLIENT_ANSWER_NULL;
        int64_t ahead = 0;
        int r;

        target.address = apis.items[i];
        r = client_call(&target, "GET", "/v1/health", NULL, HUB_MS, &answer, e);
        if (answer.date_s != 0)
            ahead = clock_wall() / NSEC_PER_SEC - answer.date_s;
        client_answer_deinit(&answer);
        if (ahead > CLOCK_OFF_S || ahead < -CLOCK_OFF_S)
            (void)ADD(x, CLOCK_OFF, self(x), "this machine's clock is %lld s %s the hub's",
                (long long)(ahead > 0 ? ahead : -ahead), ahead > 0 ? "ahead of" : "behind");
        if (r == 0 || r == CLIENT_E_REFUSED)
            return true;
    }
    return false;
}

static void look_at_hub(struct exam *x, const struct state *st, const struct node *node)
{
    const struct node_hub *hub = node->hub;
    const char *name = node->meta.name;
    struct err e = ERR_NULL;
    char at[ENDPOINT_TEXT_MAX];
    bool by_udp = false;
    bool by_tls;

    for (unsigned i = 0; i < hub->n_endpoints && !by_udp; i++)
        by_udp = reaches_by_udp(&hub->endpoints[i]);
    by_tls = reaches_by_tls(x, st, hub, &e);
    (void)endpoint_format(&hub->endpoints[0], at);
    if (!by_udp && !by_tls)
        (void)ADD(x, HUB_UNREACHED, "hub", "%s answers neither by UDP at %s nor in TLS: %s", name,
            at, err_text(&e));
    else if (!by_udp)
        (void)ADD(x, UDP_BLOCKED, self(x), "%s answers in TLS, and not by UDP at %s", name, at);
    else if (!by_tls)
        (void)ADD(x, TLS_BLOCKED, self(x), "%s answers by UDP at %s, and not in TLS: %s", name, at,
            err_text(&e));
}

static void look_at_state(struct exam *x)
{
    const char *dir = x->opt->state_dir;
    struct state st = STATE_NULL;
    struct snapshot latest;
    struct err e = ERR_NULL;
    const struct node *hub;
    bool is_latest;
    int r = state_read(&st, dir, &e);

    if (r == STATE_E_ABSENT) /* which is why no agent answers */
        return;
    if (r < 0) {
        (void)ADD(x, STATE_UNREADABLE, self(x), "%s", err_text(&e));
        return;
    }
    take_name(x->report->node, st.snapshot.self);
    take_name(x->report->network, st.snapshot.network.meta.name);
    is_latest = state_read_snapshot(&latest, dir, &e) == 0;
    hub = render_hub(is_latest ? &latest : &st.snapshot);
    look_at_interface(x, &st);
    if (hub && hub->hub && hub->hub->n_endpoints > 0)
        look_at_hub(x, &st, hub);
    if (is_latest)
        snapshot_deinit(&latest);
    state_deinit(&st);
}

/* ---- a hub on this machine ------------------------------------------------------------------ */

/* A hub of an older version has no such call, and one that refuses has its reasons. */
static void ask_hub(struct exam *x)
{
    struct client_target target = {.access = CLIENT_ACCESS_UNIX, .address = x->opt->hub_socket};
    struct client_answer answer = CLIENT_ANSWER_NULL;
    char path[64 + NAME_MAX_LEN];
    struct err e = ERR_NULL;
    json_t *item;
    size_t i;

    if (!x->opt->hub_socket || x->report->network[0] == '\0' ||
        access(x->opt->hub_socket, W_OK) != 0)
        return;
    (void)snprintf(path, sizeof(path), "/v1/networks/%s/findings", x->report->network);
    if (client_call(&target, "GET", path, NULL, HUB_MS, &answer, &e) == 0)
        json_array_foreach(json_object_get(answer.body, "findings"), i, item)
            if (is_about(text_of(item, "subject"), x->report->node) &&
                !is_known(x->report->findings, item))
                put(x->report->findings, item);
    client_answer_deinit(&answer);
}

/* ---- all of it ------------------------------------------------------------------------------ */

int doctor_examine(const struct doctor_options *opt, struct doctor_report *ret)
{
    struct exam x = {.opt = opt, .report = ret, .at = clock_wall() / NSEC_PER_SEC};
    struct err e = ERR_NULL;
    json_t *own;
    json_t *item;
    size_t i;

    *ret = (struct doctor_report){.findings = json_array()};
    if (!ret->findings)
        return -ENOMEM;
    if (!ask_agent(&x, &e)) {
        look_at_state(&x);
        (void)ADD(&x, AGENT_UNREACHED, self(&x), "%s", err_text(&e));
    }
    look_at_disk(&x);
    own = findings_encode(&x.found, x.at);
    json_array_foreach(json_object_get(own, "findings"), i, item)
        put(ret->findings, item);
    json_decref(own);
    findings_deinit(&x.found);
    ask_hub(&x);
    return 0;
}

int doctor_worst(const struct doctor_report *r)
{
    return json_array_size(r->findings) == 0 ? 0 : severity_of(json_array_get(r->findings, 0));
}

json_t *doctor_encode(const struct doctor_report *r)
{
    return json_pack("{s:o, s:o, s:b, s:s, s:O}", "node",
        r->node[0] != '\0' ? json_string(r->node) : json_null(), "network",
        r->network[0] != '\0' ? json_string(r->network) : json_null(), "agentAnswers",
        (int)(r->status != NULL), "worst",
        json_array_size(r->findings) == 0 ? "none" : finding_severity_names[doctor_worst(r)],
        "findings", r->findings);
}

void doctor_format(const struct doctor_report *r, struct str *out)
{
    size_t n = json_array_size(r->findings);

    if (r->node[0] != '\0')
        str_addf(out, "%s in the network %s: ", r->node, r->network);
    if (n == 0) {
        str_add(out, "nothing is found\n");
        return;
    }
    str_addf(out, "%zu finding%s\n\n", n, n == 1 ? "" : "s");
    status_text_format_findings(r->findings, n, out);
}
