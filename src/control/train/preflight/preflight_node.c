/* preflight_node.c - judges one member: clock, interfaces, names, limits and versions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "train/names/ifname.h"
#include "train/preflight/preflight_internal.h"

/* ---- clock --------------------------------------------------------------------------------- */

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/*
 * Returns by how many microseconds the member's clock is ahead of the others': the median over the
 * pairs in which it measured. *@ret_error is the largest error of these measurements, also in
 * microseconds.
 */
static int64_t clock_ahead(const struct preflight_input *in, size_t node, uint32_t *ret_error)
{
    int64_t *ahead = calloc(in->n_nodes + 1, sizeof(*ahead));
    int64_t median = 0;
    size_t n = 0;

    *ret_error = 0;
    for (size_t i = 0; ahead && i < in->n_pairs && n < in->n_nodes; i++) {
        const struct preflight_pair *p = &in->pairs[i];
        unsigned way = p->a == node ? 0 : 1;

        if ((p->a != node && p->b != node) || !p->has_idle[way] || p->idle[way].back == 0)
            continue;
        ahead[n++] = -p->idle[way].clock_us;
        if (p->idle[way].clock_error_us > *ret_error)
            *ret_error = p->idle[way].clock_error_us;
    }
    if (n > 0) {
        qsort(ahead, n, sizeof(*ahead), compare_i64);
        median = ahead[n / 2];
    }
    free(ahead);
    return median;
}

static void judge_clock(struct preflight_report *r, const struct preflight_input *in, size_t node)
{
    uint32_t error;
    int64_t ahead = clock_ahead(in, node, &error);
    int64_t off = llabs(ahead) - (int64_t)error;
    struct preflight_finding *f;

    if (off < PREFLIGHT_CLOCK_WARN_US)
        return;
    f = preflight__find(r, PREFLIGHT_CLOCK,
        off >= PREFLIGHT_CLOCK_NO_US ? PREFLIGHT_NO : PREFLIGHT_WARN, node, PREFLIGHT_NOBODY);
    preflight__say(f, "the clock of %s is %.1f s %s the others'%s", in->nodes[node].name,
        (double)llabs(ahead) / 1e6, ahead > 0 ? "ahead of" : "behind",
        off >= PREFLIGHT_CLOCK_NO_US ? "; torchrun's rendezvous takes a node for dead whose "
                                       "heartbeat looks old"
                                     : "");
    preflight__fix(f, "let it follow a time server: systemctl enable --now systemd-timesyncd, or "
                      "chronyc makestep");
}

/* ---- interfaces ---------------------------------------------------------------------------- */

static bool is_set(const char *value)
{
    return value && value[0] != '\0';
}

static void judge_nccl(struct preflight_report *r, const struct preflight_input *in, size_t node)
{
    const struct facts *facts = &in->nodes[node].facts;
    const struct preflight_environment *env = &in->env;
    char own[IFNAMSIZ + 1];
    const char *list = env->nccl_ifname;
    const char *source = "NCCL_SOCKET_IFNAME is";
    struct ifname_choice choice;
    struct preflight_finding *f;
    char names[128];

    (void)snprintf(own, sizeof(own), "=%s", facts->interface);
    if (!is_set(list) && !env->plain) {
        list = own;
    } else if (!is_set(list)) {
        list = facts->nccl_ifname;
        source = is_set(list) ? "nccl.conf says" : "NCCL_SOCKET_IFNAME is";
    }
    choice =
        ifname_nccl(facts, list, is_set(env->nccl_family) ? env->nccl_family : facts->nccl_family);
    if (ifname_is_only(&choice, facts->interface))
        return;
    f = preflight__find(r, PREFLIGHT_NCCL_INTERFACE, PREFLIGHT_NO, node, PREFLIGHT_NOBODY);
    preflight__say(f, "on %s NCCL would take %s and not only %s (%s \"%.60s\")",
        in->nodes[node].name, ifname_format(&choice, names), facts->interface, source,
        is_set(list) ? list : "");
    preflight__fix(
        f, "NCCL_SOCKET_IFNAME==%s, which weft run sets where it is not set", facts->interface);
}

static void judge_gloo(struct preflight_report *r, const struct preflight_input *in, size_t node)
{
    const struct facts *facts = &in->nodes[node].facts;
    const char *list = in->env.gloo_ifname;
    struct ifname_choice choice;
    struct preflight_finding *f;
    char names[128];

    if (!is_set(list) && !in->env.plain)
        list = facts->interface;
    choice = ifname_gloo(facts, list);
    if (ifname_is_only(&choice, facts->interface))
        return;
    f = preflight__find(r, PREFLIGHT_GLOO_INTERFACE, PREFLIGHT_NO, node, PREFLIGHT_NOBODY);
    if (is_set(list))
        preflight__say(f,
            "on %s Gloo would take %s and not %s (GLOO_SOCKET_IFNAME is \"%.60s\", "
            "and Gloo takes plain whole names)",
            in->nodes[node].name, ifname_format(&choice, names), facts->interface, list);
    else
        preflight__say(f,
            "on %s Gloo would take %s and not %s: that is where the machine's own "
            "name leads",
            in->nodes[node].name, ifname_format(&choice, names), facts->interface);
    preflight__fix(
        f, "GLOO_SOCKET_IFNAME=%s, which weft run sets where it is not set", facts->interface);
}

/* ---- limits and names ---------------------------------------------------------------------- */

static void judge_limits(struct preflight_report *r, const struct preflight_input *in, size_t node)
{
    const struct facts *facts = &in->nodes[node].facts;
    uint64_t need = PREFLIGHT_FILES_BASE + PREFLIGHT_FILES_EACH * (uint64_t)in->n_nodes;
    struct preflight_finding *f;

    if (facts->nofile_hard < need) {
        f = preflight__find(r, PREFLIGHT_FILES, PREFLIGHT_NO, node, PREFLIGHT_NOBODY);
        preflight__say(f,
            "on %s a program may have %llu files open, and %llu are needed with %zu "
            "members",
            in->nodes[node].name, (unsigned long long)facts->nofile_hard, (unsigned long long)need,
            in->n_nodes);
        preflight__fix(f, "raise the hard limit: LimitNOFILE=1048576 in the service's unit, or "
                          "\"* hard nofile 1048576\" in /etc/security/limits.conf, and start anew");
    }
    if (facts->has_rdma && facts->memlock_hard < FACTS_UNLIMITED) {
        f = preflight__find(r, PREFLIGHT_MEMLOCK, PREFLIGHT_WARN, node, PREFLIGHT_NOBODY);
        preflight__say(f,
            "on %s a program may lock %llu bytes of memory, and its RDMA device needs "
            "all that it registers",
            in->nodes[node].name, (unsigned long long)facts->memlock_hard);
        preflight__fix(f, "LimitMEMLOCK=infinity in the service's unit, docker run --ulimit "
                          "memlock=-1, or limits.conf");
    }
}

static void judge_names(struct preflight_report *r, const struct preflight_input *in, size_t node)
{
    const struct preflight_node *n = &in->nodes[node];
    struct preflight_finding *f;

    if (n->names_wrong[0] != '\0') {
        f = preflight__find(r, PREFLIGHT_NAMES, PREFLIGHT_WARN, node, PREFLIGHT_NOBODY);
        preflight__say(f, "on %s %s, which is not its overlay address", n->name, n->names_wrong);
        preflight__fix(f, "remove the older entry from /etc/hosts or the name server, or name "
                          "members by their overlay addresses");
    } else if (n->names_missing > 0) {
        f = preflight__find(r, PREFLIGHT_NAMES, PREFLIGHT_NOTE, node, PREFLIGHT_NOBODY);
        preflight__say(f, "on %s %u of the members' names lead nowhere; weft run uses addresses",
            n->name, n->names_missing);
    }
}

/*
 * torchrun of torch 1.x always has rank 0 announce its host name. Later versions announce the
 * address that weft run sets, and the host name only where weft run is not used.
 */
static void judge_host_name(
    struct preflight_report *r, const struct preflight_input *in, size_t node)
{
    const struct preflight_node *n = &in->nodes[node];
    const char *torch = n->facts.versions.torch;
    struct preflight_finding *f;

    if (n->host_name_wrong[0] == '\0' || torch[0] == '\0' || !in->env.keeps_host_name ||
        (strncmp(torch, "1.", 2) != 0 && !in->env.plain))
        return;
    f = preflight__find(r, PREFLIGHT_HOST_NAME, PREFLIGHT_NO, node, PREFLIGHT_NOBODY);
    preflight__say(f,
        "torch %.20s has rank 0 announce its host name, and that of %s, \"%.64s\", %s", torch,
        n->name, n->facts.hostname, n->host_name_wrong);
    preflight__fix(f,
        "run the job as root with weft run, which has it announce the node's name; "
        "or call the machine as its node (hostname %s); or use torch 2",
        n->name);
}

/* Where this machine has no way to a member, nothing is known of the agent there. */
static void judge_absent(struct preflight_report *r, const struct preflight_input *in, size_t node)
{
    const struct preflight_node *n = &in->nodes[node];
    struct preflight_finding *f =
        preflight__find(r, PREFLIGHT_ABSENT, PREFLIGHT_NO, node, PREFLIGHT_NOBODY);
    bool is_hub_away = in->hub_away && in->hub_away[0] != '\0';

    if (n->no_path[0] != '\0')
        preflight__say(f, "%s cannot be asked: no way leads to it: %s", n->name, n->no_path);
    else
        preflight__say(f, "%s cannot be asked: %s", n->name, n->why);
    if (n->no_path[0] != '\0' && is_hub_away)
        preflight__fix(f,
            "see first that the hub %s runs and is reached from here (weft status), since it does "
            "not answer this node; or leave %s out with --nodes",
            in->hub_away, n->name);
    else if (n->no_path[0] != '\0')
        preflight__fix(f,
            "look at weft status here, and there, where its agent may be down; or leave it out "
            "with --nodes");
    else if (n->is_stock)
        preflight__fix(f, "leave it out of --nodes: it is a stock WireGuard, without an agent");
    else
        preflight__fix(f, "start its agent (systemctl start weft-agent; weft agent "
                          "--background), look at weft "
                          "status there, or leave it out with --nodes");
}

void preflight__judge_node(
    struct preflight_report *r, const struct preflight_input *in, size_t node)
{
    const struct preflight_node *n = &in->nodes[node];

    if (!n->present) {
        judge_absent(r, in, node);
        return;
    }
    judge_clock(r, in, node);
    judge_nccl(r, in, node);
    judge_gloo(r, in, node);
    judge_names(r, in, node);
    judge_host_name(r, in, node);
    judge_limits(r, in, node);
}

/* ---- versions ------------------------------------------------------------------------------ */

/* Which versions are compared, and how bad a difference is. */
static const struct {
    const char *what; /* the software, for the text of the finding */
    size_t offset;    /* of the version in struct facts_versions, bytes */
    unsigned parts; /* how many numbers of a version such as 2.8.0 must agree; 0: the whole text */
    enum preflight_level level;
    const char *why; /* why it should be the same everywhere; "" where there is no advice */
} compared[] = {
    {"NCCL", offsetof(struct facts_versions, nccl), 3, PREFLIGHT_NO,
        "NCCL refuses to talk to another version of itself"},
    {"torch", offsetof(struct facts_versions, torch), 2, PREFLIGHT_WARN,
        "rendezvous and collectives are only tested between equals"},
    {"python", offsetof(struct facts_versions, python), 2, PREFLIGHT_WARN,
        "pickled objects and checkpoints may not load"},
    {"weft", offsetof(struct facts_versions, weft), 0, PREFLIGHT_WARN, "upgrade the older ones"},
    {"kernel", offsetof(struct facts_versions, kernel), 0, PREFLIGHT_NOTE, ""},
};

/* The length in bytes of the first @parts numbers of a version: that of "2.8" in "2.8.0+cu128" for
 * two. With @parts 0 it is that of the whole text. */
static size_t part_length(const char *version, unsigned parts)
{
    size_t len = 0;

    if (parts == 0)
        return strlen(version);
    for (unsigned i = 0; i < parts; i++) {
        len += strspn(version + len, "0123456789");
        if (i + 1 < parts && version[len] == '.')
            len++;
    }
    return len;
}

static bool versions_agree(const char *a, const char *b, unsigned parts)
{
    size_t len = part_length(a, parts);

    return len == part_length(b, parts) && strncmp(a, b, len) == 0;
}

static const char *version_of(const struct preflight_node *n, size_t offset)
{
    return (const char *)&n->facts.versions + offset;
}

/* Finds a member with the most common version; the first one if several versions are equally
 * common, PREFLIGHT_NOBODY if no member has told a version. */
static size_t find_usual(const struct preflight_input *in, size_t offset, unsigned parts)
{
    size_t best = PREFLIGHT_NOBODY;
    size_t best_n = 0;

    for (size_t i = 0; i < in->n_nodes; i++) {
        size_t n = 0;

        if (!in->nodes[i].present || version_of(&in->nodes[i], offset)[0] == '\0')
            continue;
        for (size_t k = 0; k < in->n_nodes; k++)
            n += in->nodes[k].present && versions_agree(version_of(&in->nodes[i], offset),
                                             version_of(&in->nodes[k], offset), parts);
        if (n > best_n) {
            best = i;
            best_n = n;
        }
    }
    return best;
}

void preflight__judge_versions(struct preflight_report *r, const struct preflight_input *in)
{
    for (size_t c = 0; c < sizeof(compared) / sizeof(*compared); c++) {
        size_t usual = find_usual(in, compared[c].offset, compared[c].parts);

        for (size_t i = 0; i < in->n_nodes && usual != PREFLIGHT_NOBODY; i++) {
            const char *have = version_of(&in->nodes[i], compared[c].offset);
            const char *want = version_of(&in->nodes[usual], compared[c].offset);
            struct preflight_finding *f;

            if (!in->nodes[i].present || versions_agree(have, want, compared[c].parts))
                continue;
            /* If none was found, it may still be installed in a virtual environment, where the
             * member does not look. That is why this is only a note. */
            f = preflight__find(r, PREFLIGHT_VERSIONS, have[0] ? compared[c].level : PREFLIGHT_NOTE,
                i, PREFLIGHT_NOBODY);
            preflight__say(f, "%s has %s %s, and %s has %s", in->nodes[i].name, compared[c].what,
                have[0] ? have : "(none found)", in->nodes[usual].name, want);
            if (f->level > PREFLIGHT_NOTE)
                preflight__fix(
                    f, "install the same %s everywhere: %s", compared[c].what, compared[c].why);
        }
    }
}
