/* self.c - see self.h. */
#include "health/self.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "health/node.h"
#include "mesh/object/fields.h"

/* A hub that has been silent for its longest silence and so much more is not reached. */
#define HUB_PATIENCE_S 13
/* An agent that has just started has not heard its hub yet, nor has one that was just lost. */
#define HUB_GRACE_S 10
/* Of two that fell silent at the same time either may have been heard so much later. */
#define HEARD_MARGIN_S 5
/* Peers that somebody else has added are worth a warning for so long. */
#define FOREIGN_FOR_S 600
/* So many names that are left out are named, and the others counted. */
#define NAMES_SHOWN 2
/* Least inner packets that IPv6 can do with (RFC 8200 section 5). */
#define PATH_MTU_LEAST 1280

/* What is being looked at, and by which facts. */
struct look {
    struct findings *found;
    const struct self_facts *facts;
    bool is_broken;   /* what is wrong with this machine keeps it from having any session */
    bool is_cut;      /* its line is: neither the hub nor any peer answers */
    bool is_hub_lost; /* the hub is not reached */
    bool is_hub_late; /* or it may be: it is silent for longer than it should be */
};

static bool is_said(const char *text)
{
    return text && text[0] != '\0';
}

/* "3 min" */
static const char *format_span(int64_t s, char buf[static 32])
{
    if (s < 120)
        (void)snprintf(buf, 32, "%lld s", (long long)s);
    else if (s < 120 * 60)
        (void)snprintf(buf, 32, "%lld min", (long long)(s / 60));
    else
        (void)snprintf(buf, 32, "%lld h", (long long)(s / 3600));
    return buf;
}

#define ADD(look, code, subject, ...)                                                              \
    findings_add((look)->found, FINDING_##code, subject, (look)->facts->at, __VA_ARGS__)

/* ---- this machine --------------------------------------------------------------------------- */

static void find_interface(struct look *l)
{
    const struct self_facts *facts = l->facts;

    if (!is_said(facts->fault))
        return;
    if (facts->n_failed > 0)
        (void)ADD(l, APPLY_FAILED, facts->name,
            "the interface is not as it should be, and nobody is reached until it is; it was tried "
            "%u time%s: %s",
            facts->n_failed, facts->n_failed == 1 ? "" : "s", facts->fault);
    else
        (void)ADD(l, APPLY_FAILED, facts->name,
            "the interface is not as it should be, and nobody is reached until it is: %s",
            facts->fault);
}

static void find_apart(struct look *l)
{
    const char *device = l->facts->apart_at;
    struct finding *found;

    if (!is_said(device))
        return;
    found = ADD(l, ARRIVE_APART, l->facts->name,
        "datagrams of one flow arrive at %s one by one, and its rx-udp-gro-forwarding is off",
        device);
    finding_set_fix(found,
        "weft tune --apply, or ethtool -K %s rx-udp-gro-forwarding on; weft tune says whether it "
        "helps.",
        device);
}

static void find_machine(struct look *l)
{
    const struct self_facts *facts = l->facts;
    const char *name = facts->name;

    find_interface(l);
    if (is_said(facts->copied))
        (void)ADD(l, NODE_COPIED, name, "%s", facts->copied);
    if (is_said(facts->lockout))
        (void)ADD(l, CLOCK_BACK, name, "%s", facts->lockout);
    else if (is_said(facts->clock_off))
        (void)ADD(l, CLOCK_OFF, name, "%s", facts->clock_off);
    if (is_said(facts->drained))
        (void)ADD(l, NODE_DRAINED, name, "this node is drained: %s", facts->drained);
    if (is_said(facts->rates))
        (void)ADD(l, RATES_UNKEPT, name, "rates are not kept: %s", facts->rates);
    if (is_said(facts->rules))
        (void)ADD(
            l, RULES_UNENFORCED, name, "the network's rules are not enforced: %s", facts->rules);
    if (is_said(facts->offloads))
        (void)ADD(l, OFFLOAD_OFF, name, "%s", facts->offloads);
    find_apart(l);
    if (facts->foreign_age_s >= 0 && facts->foreign_age_s < FOREIGN_FOR_S)
        (void)ADD(l, FOREIGN_PEERS, name,
            "peers that somebody else had added to the interface and that were removed: %llu, the "
            "last %lld s ago with the public key %s",
            (unsigned long long)facts->n_foreign, (long long)facts->foreign_age_s,
            facts->foreign ? facts->foreign : "?");
    /* What "auto" measures is shorter than what the NAT was seen to forget after. */
    if (facts->is_fixed && facts->is_natted &&
        node_is_forgotten(facts->nat_forgets_s, facts->keepalive_s))
        (void)ADD(l, KEEPALIVE_SLOW, name,
            "the NAT of this machine forgets a silent UDP mapping after about %lld s, and the "
            "network's keepalive is %lld s: then nobody reaches it until it speaks",
            (long long)facts->nat_forgets_s, (long long)facts->keepalive_s);
}

static void find_names(struct look *l)
{
    const struct self_facts *facts = l->facts;
    char text[FINDING_TEXT_MAX];
    size_t len = 0;

    if (is_said(facts->names_unwritten))
        (void)ADD(l, NAMES_UNWRITTEN, facts->name,
            "the nodes' names are not written to the hosts file, which is tried again and again: "
            "%s",
            facts->names_unwritten);
    if (is_said(facts->names_unanswered))
        (void)ADD(l, NAMES_UNANSWERED, facts->name, "the nodes' names are not answered by DNS: %s",
            facts->names_unanswered);
    /* One finding of all of them: they have one subject. */
    for (size_t i = 0; i < facts->n_names && i < NAMES_SHOWN && len < sizeof(text); i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len,
            "%sthe name \"%s\" of node %s is left out of the hosts file: %s", len > 0 ? "; " : "",
            facts->names[i].name, facts->names[i].node, facts->names[i].why);
    if (facts->n_names > NAMES_SHOWN)
        (void)ADD(l, NAME_LEFT_OUT, facts->name, "%.400s; and %zu more", text,
            facts->n_names - NAMES_SHOWN);
    else if (len > 0)
        (void)ADD(l, NAME_LEFT_OUT, facts->name, "%s", text);
}

static void find_subnets(struct look *l)
{
    const struct self_facts *facts = l->facts;
    char text[FINDING_TEXT_MAX];
    size_t len = 0;

    for (size_t i = 0; i < facts->n_subnets && len < sizeof(text); i++)
        if (is_said(facts->subnets[i].why))
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s: %s",
                len > 0 ? "; nor to " : "this node is not yet the way to ", facts->subnets[i].route,
                facts->subnets[i].why);
    if (len > 0)
        (void)ADD(l, SUBNET_UNREADY, facts->name, "%s", text);
}

static void find_cluster(struct look *l)
{
    const struct self_facts *facts = l->facts;

    if (is_said(facts->cluster))
        (void)ADD(l, CLUSTER_UNHEARD, facts->name,
            "the cluster's API does not answer for %lld s, known peers stay, and no change of the "
            "network is heard of: %s",
            (long long)facts->cluster_s, facts->cluster);
    /* Whom nobody answers nobody takes anything from either. */
    else if (is_said(facts->edges_unwritten))
        (void)ADD(l, EDGES_UNWRITTEN, facts->name,
            "this node's parts of edges are not written to the cluster, for %lld s: %s",
            (long long)facts->edges_unwritten_s, facts->edges_unwritten);
}

/* ---- hubs ----------------------------------------------------------------------------------- */

static bool is_hub_lost(const struct self_facts *facts)
{
    const struct self_hub *hub = &facts->hub;

    if (!hub->name || facts->running_s < HUB_GRACE_S)
        return false;
    if (hub->silent_s < 0)
        return !hub->is_heard;
    return (!hub->is_heard && hub->silent_s >= HUB_GRACE_S) ||
           hub->silent_s >= hub->quiet_s + HUB_PATIENCE_S;
}

/* Was it heard after the hub was heard last? */
static bool is_heard_since(const struct self_session *session, const struct self_hub *hub)
{
    int64_t most = hub->silent_s < 0 ? HUB_PATIENCE_S : hub->silent_s - HEARD_MARGIN_S;

    return session->heard_s >= 0 && session->heard_s < most;
}

/* Nobody answers: not the hub, and of the peers that should, none. */
static bool is_line_cut(const struct self_facts *facts)
{
    bool is_any_silent = false;

    if (facts->hub.is_refused)
        return false;
    for (size_t i = 0; i < facts->n_peers; i++) {
        const struct self_peer *peer = &facts->peers[i];

        if (is_heard_since(&peer->session, &facts->hub))
            return false;
        /* What goes through the hub that is lost says nothing of this machine's line, unless it
         * went directly before. */
        is_any_silent |=
            peer->session.silent_s > 0 && (peer->path == SELF_PATH_DIRECT || peer->fell_back_s > 0);
    }
    return is_any_silent;
}

static void find_hub_lost(struct look *l)
{
    const struct self_hub *hub = &l->facts->hub;
    char span[32];

    if (hub->tls_fails)
        (void)ADD(l, HUB_UNREACHED, "hub", "%s at %s: UDP to it fails, and so does TLS: %s",
            hub->name, hub->at, hub->tls_fails);
    else if (!hub->has_session)
        (void)ADD(l, HUB_UNREACHED, "hub",
            "no handshake with %s comes about at %s: it is down, or UDP to it is blocked",
            hub->name, hub->at);
    else if (hub->silent_s < 0)
        (void)ADD(l, HUB_UNREACHED, "hub", "%s at %s does not answer, though its WireGuard does",
            hub->name, hub->at);
    else
        (void)ADD(l, HUB_UNREACHED, "hub", "%s at %s has not been heard for %s", hub->name, hub->at,
            format_span(hub->silent_s, span));
}

static void find_hub(struct look *l)
{
    const struct self_facts *facts = l->facts;
    const struct self_hub *hub = &facts->hub;

    if (l->is_cut)
        (void)ADD(l, LINE_CUT, facts->name,
            "neither the hub nor any of the peers that were reached directly answers, so this "
            "machine is cut off");
    else if (l->is_hub_lost && !(l->is_broken && !hub->has_session))
        find_hub_lost(l);
    if (!hub->name)
        return;
    if (is_said(hub->by_tls) && !l->is_hub_lost && !l->is_cut && hub->is_one_way)
        (void)ADD(l, UDP_ONE_WAY, facts->name, "%s", hub->by_tls);
    else if (is_said(hub->by_tls) && !l->is_hub_lost && !l->is_cut)
        (void)ADD(l, UDP_BLOCKED, facts->name, "%s", hub->by_tls);
    if (is_said(hub->refused))
        (void)ADD(l, EVENTS_REFUSED, "hub",
            "its events are refused, what was known before them stays, and its administrator has "
            "to look into it: %s",
            hub->refused);
    if (hub->store_behind_s > 0 && !l->is_hub_lost)
        (void)ADD(l, HUB_STORE_BEHIND, "hub",
            "its store has not said for %lld s what has changed; what was changed elsewhere since "
            "then is not known here",
            (long long)hub->store_behind_s);
}

static void find_other_hubs(struct look *l)
{
    const struct self_facts *facts = l->facts;

    for (size_t i = 0; i < facts->n_others && !l->is_broken && !l->is_cut; i++)
        if (is_said(facts->others[i].why) && facts->running_s >= HUB_GRACE_S)
            (void)ADD(l, HUB_AWAY, facts->others[i].name, "%s", facts->others[i].why);
}

/* ---- who peers are -------------------------------------------------------------------------- */

static void find_trust(struct look *l, const struct self_trust *trust)
{
    struct finding *found = NULL;
    char pair[FINDING_SUBJECT_MAX];
    char span[32];
    char left[32];

    (void)finding_name_pair(pair, l->facts->name, trust->name);
    (void)format_span(trust->for_s, span);
    if (trust->code == FINDING_TRUST_REFUSED)
        found = ADD(l, TRUST_REFUSED, pair,
            "the hub has said for %s that %s has another %s (public key %s), and is not believed: "
            "the one that is known here answers",
            span, trust->name, trust->change, trust->key);
    else if (trust->code == FINDING_TRUST_WAITS && trust->left_s > 0)
        found = ADD(l, TRUST_WAITS, pair,
            "the hub has said for %s that %s has another %s (public key %s); it is believed in %s "
            "if what is known here stays silent",
            span, trust->name, trust->change, trust->key, format_span(trust->left_s, left));
    else if (trust->code == FINDING_TRUST_WAITS)
        found = ADD(l, TRUST_WAITS, pair,
            "the hub has said for %s that %s has another %s (public key %s); the network has "
            "trustPolicy: ask, so it waits for weft trust",
            span, trust->name, trust->change, trust->key);
    else if (trust->code == FINDING_TRUST_CHANGED)
        found = ADD(l, TRUST_CHANGED, pair,
            "%s has had another %s for %s (public key %s), which nobody has signed: what was known "
            "here before had been silent",
            trust->name, trust->change, span, trust->key);
    else
        (void)ADD(l, TRUST_HUB, pair, "%s has been a hub for %s (public key %s)", trust->name, span,
            trust->key);
    finding_set_fix(found, "%s: weft trust %s.",
        trust->code == FINDING_TRUST_REFUSED
            ? "Look into the hub; if that peer has really got another key"
            : "Compare the key with weft status there; if it is right",
        trust->name);
}

/* Of whom it is known why nothing comes. */
static bool is_awaited(const struct look *l, const char *name)
{
    for (size_t i = 0; i < l->facts->n_trust; i++)
        if (l->facts->trust[i].code == FINDING_TRUST_WAITS &&
            strcmp(l->facts->trust[i].name, name) == 0)
            return true;
    return false;
}

/* ---- pairs ---------------------------------------------------------------------------------- */

static void find_silence(struct look *l, const struct self_peer *peer, const char *pair)
{
    const struct self_session *session = &peer->session;
    int64_t age = session->handshake_age_s;
    struct finding *found;
    char span[32];
    char sent[32];

    (void)format_span(session->silent_s, sent);
    if (age >= SELF_HANDSHAKE_DEAD_S)
        found = ADD(l, HANDSHAKE_STALE, pair,
            "the last handshake with %s is %s old, and what was sent for %s has had no answer",
            peer->name, format_span(age, span), sent);
    else if (age < 0 && session->silent_s >= SELF_HANDSHAKE_DEAD_S)
        found = ADD(l, HANDSHAKE_STALE, pair,
            "there was never a handshake with %s, and what was sent for %s has had no answer",
            peer->name, sent);
    else
        found = ADD(l, PEER_SILENT, pair,
            "%s does not answer: what was sent to it, %s%s%s, for %s has had no answer", peer->name,
            peer->kind, is_said(peer->relay) ? " via " : "",
            is_said(peer->relay) ? peer->relay : "", sent);
    finding_set_fix(found, "Is the machine of %s up, and on the network? If so, weft status on it.",
        peer->name);
}

static void find_path(struct look *l, const struct self_peer *peer, const char *pair)
{
    const char *name = l->facts->name;
    struct finding *found = NULL;
    char span[32];

    if (peer->is_key_refused) {
        (void)ADD(
            l, PAIR_KEY_REFUSED, pair, "%s does not reach %s: %s", name, peer->name, peer->why);
        return;
    }
    if (peer->path == SELF_PATH_NONE && peer->since_s >= SELF_PATH_GRACE_S)
        found = ADD(l, PAIR_NO_PATH, pair, "%s does not reach %s: %s", name, peer->name, peer->why);
    else if (peer->is_alarm && peer->fell_back_s == 0)
        found = ADD(l, PAIR_NOT_DIRECT, pair,
            "no direct path to %s, though only direct paths are wanted: %s", peer->name, peer->why);
    else if (peer->fell_back_s >= SELF_PATH_GRACE_S)
        found = ADD(l, PAIR_FELL_BACK, pair, "%s was reached directly, and is not any more: %s",
            peer->name, peer->why);
    finding_set_fix(found, "weft paths %s says what was tried.", peer->name);
    if (peer->path == SELF_PATH_DIRECT && peer->mtu != 0 && peer->mtu < PATH_MTU_LEAST &&
        peer->since_s >= SELF_PATH_GRACE_S)
        (void)ADD(l, PATH_SHORT, pair,
            "the direct path to %s carries packets of %u bytes at most, and IPv6 needs %d",
            peer->name, (unsigned)peer->mtu, PATH_MTU_LEAST);
    if (peer->path == SELF_PATH_DIRECT && peer->longer_s > 0)
        (void)ADD(l, PAIR_RTT, pair,
            "each round trip between %s and %s has taken %.1f ms or more for %s, and in the last "
            "hour %.1f ms were usual",
            name, peer->name, peer->longer_ms, format_span(peer->longer_s, span), peer->usual_ms);
}

static void find_peer(struct look *l, const struct self_peer *peer)
{
    const struct self_session *session = &peer->session;
    char pair[FINDING_SUBJECT_MAX];

    (void)finding_name_pair(pair, l->facts->name, peer->name);
    if (peer->is_off || peer->awaits_hub || is_awaited(l, peer->name) ||
        (l->is_hub_lost && peer->path == SELF_PATH_BY_HUB))
        return;
    /* It may be this machine's line, as will be known soon. */
    if (session->silent_s > 0 && l->is_hub_late && !l->is_hub_lost &&
        !findings_has(l->found, pair, FINDING_CRITICAL))
        return;
    if (session->silent_s > 0) {
        find_silence(l, peer, pair);
        return;
    }
    if (session->handshake_age_s > SELF_HANDSHAKE_LATE_S &&
        session->renewal_due_s >= SELF_RENEWAL_LATE_S)
        (void)ADD(l, HANDSHAKE_LATE, pair,
            "the last handshake with %s is %lld s old, and traffic that should have renewed it has "
            "gone on for %lld s",
            peer->name, (long long)session->handshake_age_s, (long long)session->renewal_due_s);
    find_path(l, peer, pair);
}

/* ---- all of it ------------------------------------------------------------------------------ */

void self_find(
    struct findings *f, const struct self_facts *facts, finding_changed_fn changed, void *arg)
{
    struct look l = {.found = f, .facts = facts};

    findings_look(f, NULL);
    l.is_broken = is_said(facts->fault) || is_said(facts->lockout);
    l.is_hub_lost = is_hub_lost(facts);
    l.is_hub_late = facts->hub.name && facts->hub.silent_s >= facts->hub.quiet_s;
    l.is_cut = !l.is_broken && (l.is_hub_lost || !facts->hub.name) && is_line_cut(facts);
    find_machine(&l);
    find_names(&l);
    find_subnets(&l);
    if (facts->machine)
        machine_find(facts->machine, facts->name, f, facts->at);
    if (facts->gpus)
        gpu_find(facts->gpus, facts->name, f, facts->at);
    find_cluster(&l);
    find_hub(&l);
    find_other_hubs(&l);
    for (size_t i = 0; i < facts->n_trust; i++)
        find_trust(&l, &facts->trust[i]);
    for (size_t i = 0; i < facts->n_peers && !l.is_cut && !l.is_broken; i++)
        find_peer(&l, &facts->peers[i]);
    findings_done(f, NULL, changed, arg);
}

/* ---- what the hub is told ------------------------------------------------------------------- */

/* What the hub finds by itself, of reports and probes. Of a pair it sees all but how its sessions
 * and packets fare at the ends. */
static bool is_for_hub(enum finding_code code)
{
    switch (code) {
    case FINDING_NODE_DOWN:
    case FINDING_NODE_AGENT_SILENT:
    case FINDING_NODE_NEVER_APPLIED:
    case FINDING_NODE_COPIED:
    case FINDING_APPLY_FAILED:
    case FINDING_PROBE_SILENT:
    case FINDING_AGENT_UNREACHED:
    case FINDING_HUB_AWAY:
    case FINDING_KEEPALIVE_SLOW:
    case FINDING_HEALTH_FAILED:
    case FINDING_NODE_DRAINED:
        return false;
    case FINDING_PEER_SILENT:
    case FINDING_HANDSHAKE_LATE:
    case FINDING_HANDSHAKE_STALE:
    case FINDING_PATH_SHORT:
    case FINDING_TRUST_REFUSED:
    case FINDING_TRUST_WAITS:
    case FINDING_TRUST_CHANGED:
    case FINDING_PAIR_RTT:
        return true;
    default:
        return finding_kinds[code].subject == FINDING_OF_NODE;
    }
}

/* The other node of a pair with the node @name; "": @subject is that node; NULL: neither. */
static const char *peer_in(
    const char *subject, const char *name, char buf[static FINDING_SUBJECT_MAX])
{
    const char *middle = strstr(subject, "--");
    size_t len = strlen(name);

    if (strcmp(subject, name) == 0)
        return "";
    if (!middle)
        return NULL;
    if (strcmp(middle + 2, name) == 0) {
        (void)snprintf(buf, FINDING_SUBJECT_MAX, "%.*s", (int)(middle - subject), subject);
        return buf;
    }
    return strncmp(subject, name, len) == 0 && subject + len == middle ? middle + 2 : NULL;
}

json_t *self_encode(const struct findings *f, const char *name, int64_t at)
{
    _cleanup_(freep) const struct finding **sorted = findings_sorted(f);
    json_t *list = sorted ? json_array() : NULL;

    for (size_t i = 0; list && i < f->n && json_array_size(list) < SELF_SAID_MAX; i++) {
        const struct finding *item = sorted[i];
        char buf[FINDING_SUBJECT_MAX];
        const char *peer = is_for_hub(item->code) ? peer_in(item->subject, name, buf) : NULL;

        if (peer)
            fields_append(
                &list, json_pack("{s:s, s:s*, s:I, s:s, s:s}", "code",
                           finding_kinds[item->code].code, "peer", peer[0] != '\0' ? peer : NULL,
                           "forSeconds", (json_int_t)(at > item->since ? at - item->since : 0),
                           "text", item->text, "fix", item->fix));
    }
    return list;
}

static int decode_said(struct findings *ret, const json_t *json, int64_t at, struct err *e)
{
    struct fields f = fields_make(json, "a finding", e);
    const char *code = fields_string(&f, "code", FIELDS_REQUIRED, 1, FINDING_CODE_TEXT_MAX);
    const char *text = fields_string(&f, "text", FIELDS_REQUIRED, 1, FINDING_TEXT_MAX - 1);
    const char *fix = fields_string(&f, "fix", FIELDS_OPTIONAL, 0, FINDING_FIX_MAX - 1);
    char peer[NAME_MAX_LEN + 1] = "";
    uint64_t for_s = 0;

    fields_name(&f, "peer", FIELDS_OPTIONAL, peer);
    fields_u64(&f, "forSeconds", FIELDS_OPTIONAL, 0, UINT32_MAX, &for_s);
    if (fields_end(&f) != 0)
        return fields_end(&f);
    for (unsigned k = 0; k < FINDING_CODE_N; k++) {
        bool is_pair = finding_kinds[k].subject == FINDING_OF_PAIR;
        struct finding *found;

        if (strcmp(finding_kinds[k].code, code) != 0 || !is_for_hub(k) ||
            is_pair != (peer[0] != '\0'))
            continue;
        found = findings_add(ret, (enum finding_code)k, peer, at - (int64_t)for_s, "%s", text);
        if (!found)
            return err_set(e, -ENOMEM, "no memory for what a node finds");
        if (fix && fix[0] != '\0')
            finding_set_fix(found, "%s", fix);
    }
    return 0;
}

int self_decode(struct findings *ret, const json_t *list, int64_t at, struct err *e)
{
    struct findings found = {.n = 0};
    int r = 0;

    if (json_array_size(list) > SELF_SAID_MAX)
        return err_set(e, -EINVAL, "a report has %zu findings, and %d are allowed",
            json_array_size(list), SELF_SAID_MAX);
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
        r = decode_said(&found, json_array_get(list, i), at, e);
    if (r != 0) {
        findings_deinit(&found);
        return r;
    }
    findings_done(&found, NULL, NULL, NULL);
    *ret = found;
    return 0;
}
