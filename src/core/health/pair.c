/* pair.c - see pair.h. */
#include "health/pair.h"

#include <inttypes.h>
#include <stdio.h>

#include "health/node.h"
#include "mesh/object/mesh_edge.h"
#include "path/path.h"

const char *const edge_state_names[] = {
    [EDGE_STATE_OFF] = "off",
    [EDGE_STATE_REFUSED] = "refused",
    [EDGE_STATE_FAILING] = "failing",
    [EDGE_STATE_UNAPPLIED] = "never-applied",
    [EDGE_STATE_SILENT] = "agent-silent",
    [EDGE_STATE_FELL] = "fell-back",
    [EDGE_STATE_UNREACHED] = "unreached",
    [EDGE_STATE_NONE] = "no-path",
    [EDGE_STATE_STREAM] = "stream",
    [EDGE_STATE_RELAY] = "relay",
    [EDGE_STATE_DIRECT] = "direct",
    [EDGE_STATE_LAN] = "lan",
    [EDGE_STATE_IDLE] = "idle",
};
_Static_assert(sizeof(edge_state_names) / sizeof(*edge_state_names) == EDGE_STATE_N, "a name each");

/* No end. */
#define NEITHER 2u

/* At which end each of these is seen, the first of both; NEITHER: at none. */
struct signs {
    unsigned refused;   /* another key is pinned than it has */
    unsigned failing;   /* its agent cannot apply the edge, or anything */
    unsigned unapplied; /* its agent has never applied anything */
    unsigned silent;    /* its agent is not heard */
    unsigned deaf;      /* what it sends by UDP does not arrive, and what the other sends does */
    unsigned fallen;    /* it has lost its direct path */
    unsigned unreached; /* its probe gets no answer through the tunnel */
    unsigned pathless;  /* it has no path */
    unsigned alarmed;   /* only direct paths are wanted, and for some time it has had none */
};

/* ---- what is seen at one end ----------------------------------------------------------------- */

static const char *error_of(const struct pair_end *end)
{
    return end->said && end->said->error ? end->said->error : end->error;
}

static bool is_failing(const struct pair_facts *f, unsigned i)
{
    return f->ends[i].has_agent && error_of(&f->ends[i]) != NULL;
}

static bool is_refused(const struct pair_facts *f, unsigned i)
{
    return f->spec && mesh_edge_refuses_key(f->spec, i, f->ends[i].key);
}

static bool is_unapplied(const struct pair_facts *f, unsigned i)
{
    const struct pair_end *end = &f->ends[i];

    return end->has_agent && !end->is_down &&
           (end->silent_for < 0 || (end->tells_applied && end->applied == 0));
}

static bool is_silent(const struct pair_facts *f, unsigned i)
{
    return f->ends[i].is_down ||
           (f->ends[i].has_agent && f->ends[i].silent_for >= EDGE_SILENT_AFTER);
}

/* Neither end gets its UDP answered. Only what this one sends does not arrive, so that is the way
 * that is cut. One probe alone cannot tell that from another end that does not answer. */
static bool is_deaf(const struct pair_facts *f, unsigned i)
{
    const struct edge_probed *own = f->ends[i].probed;
    const struct edge_probed *far = f->ends[1 - i].probed;

    return own && far && own->underlay == EDGE_REACH_SILENT && far->underlay == EDGE_REACH_SILENT &&
           own->is_heard && !far->is_heard;
}

static bool is_fallen(const struct pair_facts *f, unsigned i)
{
    const struct edge_said *said = f->ends[i].said;

    return said && said->fell_at != 0 && !said->is_relay_better &&
           mesh_edge_wants_direct(f->spec, f->wants_relay);
}

static bool is_unreached(const struct pair_facts *f, unsigned i)
{
    return f->ends[i].probed && f->ends[i].probed->tunnel == EDGE_REACH_SILENT;
}

static bool is_pathless(const struct pair_facts *f, unsigned i)
{
    return f->ends[i].said && f->ends[i].said->path == PATH_KIND_NONE;
}

static bool is_alarmed(const struct pair_facts *f, unsigned i)
{
    return f->ends[i].said && f->ends[i].said->is_alarm &&
           mesh_edge_wants_direct(f->spec, f->wants_relay);
}

typedef bool (*seen_fn)(const struct pair_facts *f, unsigned i);

static unsigned find(const struct pair_facts *f, seen_fn seen)
{
    return seen(f, 0) ? 0 : seen(f, 1) ? 1 : NEITHER;
}

static struct signs look(const struct pair_facts *f)
{
    return (struct signs){.refused = find(f, is_refused),
        .failing = find(f, is_failing),
        .unapplied = find(f, is_unapplied),
        .silent = find(f, is_silent),
        .deaf = find(f, is_deaf),
        .fallen = find(f, is_fallen),
        .unreached = find(f, is_unreached),
        .pathless = find(f, is_pathless),
        .alarmed = find(f, is_alarmed)};
}

/* ---- words ----------------------------------------------------------------------------------- */

static const char *name_of(const struct pair_facts *f, unsigned i)
{
    return f->ends[i].node;
}

static void say_refused(const struct pair_facts *f, unsigned i, char *ret)
{
    (void)snprintf(ret, EDGE_WHY_MAX,
        "another public key is pinned for %.63s than it has, so the two do not talk",
        name_of(f, i));
}

static void say_failing(const struct pair_facts *f, unsigned i, char *ret)
{
    (void)snprintf(ret, EDGE_WHY_MAX, "%.63s cannot apply it: %.*s", name_of(f, i), EDGE_ERROR_MAX,
        error_of(&f->ends[i]));
}

static void say_unapplied(const struct pair_facts *f, unsigned i, char *ret)
{
    (void)snprintf(ret, EDGE_WHY_MAX, "the agent of %.63s has never %s", name_of(f, i),
        f->ends[i].silent_for < 0 ? "been heard" : "applied a snapshot");
}

static void say_silent(const struct pair_facts *f, unsigned i, char *ret)
{
    if (f->ends[i].is_down)
        (void)snprintf(ret, EDGE_WHY_MAX,
            "%.63s is down, or cut off: its agent was last heard %" PRId64
            " s ago, and what it said is that old",
            name_of(f, i), f->ends[i].silent_for);
    else
        (void)snprintf(ret, EDGE_WHY_MAX,
            "the agent of %.63s has not been heard for %" PRId64 " s: what it said is that old",
            name_of(f, i), f->ends[i].silent_for);
}

static void say_deaf(const struct pair_facts *f, unsigned i, char *ret)
{
    bool is_dead = is_unreached(f, 0) || is_unreached(f, 1);

    (void)snprintf(ret, EDGE_WHY_MAX,
        "UDP from %.63s does not arrive at %.63s, while UDP from %.63s arrives at %.63s%s",
        name_of(f, i), name_of(f, 1 - i), name_of(f, 1 - i), name_of(f, i),
        is_dead ? ", and the tunnel is dead" : "");
}

static void say_fallen(const struct pair_facts *f, unsigned i, char *ret)
{
    uint8_t path = f->ends[i].said->path;

    (void)snprintf(ret, EDGE_WHY_MAX,
        "%.63s had a direct path to %.63s and has lost it: now it is %s", name_of(f, i),
        name_of(f, 1 - i), path < PATH_KIND_N ? path_kind_names[path] : "none");
}

static void say_unreached(const struct pair_facts *f, unsigned i, char *ret)
{
    static const char *const underlay[] = {"", ", but at its underlay endpoint it does",
        ", and by UDP at its underlay endpoint neither"};

    (void)snprintf(ret, EDGE_WHY_MAX, "%.63s does not answer %.63s through the tunnel%s",
        name_of(f, 1 - i), name_of(f, i), underlay[f->ends[i].probed->underlay]);
}

static void say_pathless(const struct pair_facts *f, unsigned i, char *ret)
{
    const char *why = f->ends[i].said->why;

    (void)snprintf(ret, EDGE_WHY_MAX, "%.63s has no path to %.63s%s%.*s", name_of(f, i),
        name_of(f, 1 - i), why ? ": " : "", EDGE_SAID_WHY_MAX, why ? why : "");
}

static void say_alarmed(const struct pair_facts *f, unsigned i, char *ret)
{
    (void)snprintf(ret, EDGE_WHY_MAX,
        "%.63s has no direct path to %.63s, though only direct paths are wanted", name_of(f, i),
        name_of(f, 1 - i));
}

/* ---- the state ------------------------------------------------------------------------------- */

/* By the path that one end says. */
static enum edge_state path_state_of(const struct pair_end *end)
{
    static const enum edge_state of[] = {
        [PATH_KIND_NONE] = EDGE_STATE_NONE,
        [PATH_KIND_LAN] = EDGE_STATE_LAN,
        [PATH_KIND_DIRECT] = EDGE_STATE_DIRECT,
        [PATH_KIND_RELAY] = EDGE_STATE_RELAY,
        [PATH_KIND_STREAM] = EDGE_STATE_STREAM,
        [PATH_KIND_N] = EDGE_STATE_IDLE,
    };

    return end->said ? of[end->said->path] : EDGE_STATE_IDLE;
}

/* The worse of what both ends say, and in its words why it is no better. */
static void set_path_state(const struct pair_facts *f, struct pair_verdict *ret)
{
    enum edge_state a = path_state_of(&f->ends[0]);
    enum edge_state b = path_state_of(&f->ends[1]);

    ret->state = a < b ? a : b;
    if (ret->state == EDGE_STATE_IDLE)
        (void)snprintf(ret->why, EDGE_WHY_MAX, "%s",
            f->ends[0].has_agent || f->ends[1].has_agent
                ? "the two have not spoken to each other yet"
                : "neither of the two has an agent that says how it is");
    for (unsigned i = 0; ret->why[0] == '\0' && i < 2; i++)
        if (path_state_of(&f->ends[i]) == ret->state && f->ends[i].said->why)
            (void)snprintf(ret->why, EDGE_WHY_MAX, "%.63s: %.*s", name_of(f, i), EDGE_SAID_WHY_MAX,
                f->ends[i].said->why);
}

typedef void (*say_fn)(const struct pair_facts *f, unsigned i, char *ret);

static void set_state(const struct pair_facts *f, const struct signs *s, struct pair_verdict *ret)
{
    const struct {
        enum edge_state state;
        unsigned at;
        say_fn say;
    } rows[] = {
        {EDGE_STATE_REFUSED, s->refused, say_refused},
        {EDGE_STATE_FAILING, s->failing, say_failing},
        {EDGE_STATE_UNAPPLIED, s->unapplied, say_unapplied},
        {EDGE_STATE_SILENT, s->silent, say_silent},
        {EDGE_STATE_FELL, s->fallen, say_fallen},
        {EDGE_STATE_UNREACHED, s->unreached, say_unreached},
        {EDGE_STATE_NONE, s->pathless, say_pathless},
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (rows[i].at != NEITHER) {
            ret->state = rows[i].state;
            rows[i].say(f, rows[i].at, ret->why);
            return;
        }
    set_path_state(f, ret);
}

/* The earlier of the times that are known. */
static int64_t earlier_of(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

int64_t pair_since(const struct pair_facts *f, enum edge_state state, int64_t at)
{
    int64_t since = 0;

    for (unsigned i = 0; i < 2; i++) {
        const struct pair_end *end = &f->ends[i];

        if (state == EDGE_STATE_SILENT && is_silent(f, i) && end->silent_for >= 0)
            since = earlier_of(since, at - end->silent_for);
        else if (state == EDGE_STATE_FELL && is_fallen(f, i))
            since = earlier_of(since, end->said->fell_at);
        else if (state == EDGE_STATE_UNREACHED && is_unreached(f, i))
            since = earlier_of(since, end->probed_at > 1 ? end->probed_at : 0);
        else if (state >= EDGE_STATE_NONE && state < EDGE_STATE_IDLE && path_state_of(end) == state)
            since = earlier_of(since, end->said->path_at);
    }
    return since;
}

/* ---- what is found --------------------------------------------------------------------------- */

/* Since when both probes say what they say, or the agent of end @i. */
static int64_t probes_since(const struct pair_facts *f)
{
    int64_t a = f->ends[0].probed ? f->ends[0].probed_at : 0;
    int64_t b = f->ends[1].probed ? f->ends[1].probed_at : 0;

    return a > b ? a : b;
}

/* A node whose packets to the hub find no way by UDP any more goes over to TLS. What its probe has
 * seen until then it says when it is over. */
static int64_t hub_missed_since(const struct pair_facts *f)
{
    int64_t since = probes_since(f);

    return since != 0 && !(f->ends[0].has_agent && f->ends[1].has_agent)
               ? since + PAIR_OTHER_WAY_WITHIN
               : since;
}

static int64_t said_since(const struct pair_facts *f, unsigned i)
{
    return f->ends[i].said_at;
}

/* Something is found at end @i. @since: it rests on what was seen then, and might follow from a
 * machine that went down at that time; 0: it does not. */
static void set_found(const struct pair_facts *f, enum finding_code code, unsigned i, say_fn say,
    int64_t since, struct pair_verdict *ret)
{
    ret->is_found = true;
    ret->code = code;
    ret->from = i;
    say(f, i, ret->text);
    for (unsigned k = 0; since != 0 && k < 2; k++)
        ret->waits |= f->ends[k].has_agent && f->ends[k].there_at < since;
}

static void set_finding(const struct pair_facts *f, const struct signs *s, struct pair_verdict *ret)
{
    bool is_used = mesh_edge_wants_direct(f->spec, f->wants_relay) || s->unreached != NEITHER;

    if (f->ends[0].is_down || f->ends[1].is_down)
        return;
    if (s->refused != NEITHER) {
        set_found(f, FINDING_PAIR_KEY_REFUSED, s->refused, say_refused, 0, ret);
    } else if (s->failing != NEITHER) {
        /* What fails for all edges of a node is found of the node. */
        if (f->ends[s->failing].said && f->ends[s->failing].said->error && s->silent == NEITHER)
            set_found(f, FINDING_PAIR_APPLY_FAILED, s->failing, say_failing, 0, ret);
    } else if (s->unapplied != NEITHER || f->ends[0].is_away || f->ends[1].is_away) {
        return;
    } else if (s->deaf != NEITHER && is_used) {
        set_found(f, FINDING_WAY_DEAF, s->deaf, say_deaf, probes_since(f), ret);
    } else if (s->pathless != NEITHER && s->silent == NEITHER) {
        /* Which is why probes get no answer, if they do not. */
        set_found(
            f, FINDING_PAIR_NO_PATH, s->pathless, say_pathless, said_since(f, s->pathless), ret);
    } else if (s->unreached != NEITHER) {
        set_found(f, FINDING_PAIR_UNREACHED, s->unreached, say_unreached, hub_missed_since(f), ret);
    } else if (s->silent != NEITHER) {
        /* What follows is what agents said, and that is old. */
        return;
    } else if (s->fallen != NEITHER) {
        set_found(f, FINDING_PAIR_FELL_BACK, s->fallen, say_fallen, said_since(f, s->fallen), ret);
    } else if (s->alarmed != NEITHER) {
        set_found(
            f, FINDING_PAIR_NOT_DIRECT, s->alarmed, say_alarmed, said_since(f, s->alarmed), ret);
    }
}

void pair_assess(const struct pair_facts *f, struct pair_verdict *ret)
{
    struct signs s = look(f);

    *ret = (struct pair_verdict){.state = EDGE_STATE_OFF};
    if (f->spec && f->spec->path == EDGE_PATH_OFF)
        return;
    set_state(f, &s, ret);
    set_finding(f, &s, ret);
}
