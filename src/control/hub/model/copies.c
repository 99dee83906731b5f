/* copies.c - see copies.h. */
#include "copies.h"

#include <stdio.h>
#include <string.h>

/* "weft leave" is no way: it removes the node, of which the original lives. */
#define WAY_OUT                                                                                    \
    "\"weft agent --take-down\", remove /var/lib/weft/node, then \"weft join\" with a token; not " \
    "\"weft leave\", which removes the node itself"

/* Room for a machine's name and address. */
#define MACHINE_TEXT_MAX (REQUEST_WORD_MAX + 8 + ENDPOINT_TEXT_MAX)

enum origin { ORIGIN_UNKNOWN, ORIGIN_COPY, ORIGIN_OWN };

/* ---- facts ---------------------------------------------------------------------------------- */

static void drop(struct copies *c, unsigned i)
{
    memmove(&c->runs[i], &c->runs[i + 1], (c->n - i - 1) * sizeof(*c->runs));
    c->n--;
}

void copies_forget(struct copies *c, int64_t wall_s)
{
    for (unsigned i = c->n; i-- > 0;) {
        /* The clock was set back. */
        if (c->runs[i].heard_at > wall_s)
            c->runs[i].heard_at = wall_s;
        if (wall_s - c->runs[i].heard_at >= COPIES_FORGET_S)
            drop(c, i);
    }
    if (c->n == 1)
        c->runs[0].came_back = false;
}

void copies_hear(struct copies *c, const struct report *report, int64_t wall_s)
{
    struct copies_run r = {.run = report->run};
    json_auto_t *items = NULL;
    const char *at;
    unsigned i = 0;

    if (report->run == 0)
        return;
    copies_forget(c, wall_s);
    while (i < c->n && c->runs[i].run != report->run)
        i++;
    if (i < c->n) {
        r = c->runs[i];
        r.came_back |= i > 0;
        drop(c, i);
    } else if (c->n == COPIES_RUNS_MAX) {
        /* Runs that came back stay: else whoever makes up runs had copies begin and end as often as
         * he reports, and what tells of them grew as fast. */
        i = c->n - 1;
        while (i > 0 && c->runs[i].came_back)
            i--;
        drop(c, c->runs[i].came_back ? c->n - 1 : i);
    }
    r.heard_at = wall_s;
    if (report->has_node) {
        r.machine = report->machine;
        items = report->candidates ? json_loads(report->candidates, 0, NULL) : NULL;
        at = json_string_value(json_object_get(json_array_get(items, 0), "endpoint"));
        (void)snprintf(r.at, sizeof(r.at), "%s", at ? at : "");
    }
    memmove(&c->runs[1], &c->runs[0], c->n * sizeof(*c->runs));
    c->runs[0] = r;
    c->n++;
}

/* ---- the verdict ---------------------------------------------------------------------------- */

bool copies_are_there(const struct copies *c)
{
    unsigned n = 0;

    for (unsigned i = 0; i < c->n; i++)
        n += c->runs[i].came_back;
    return n >= 2;
}

static bool is_elsewhere(const struct copies_run *r)
{
    return r->machine.has_origin && !r->machine.is_origin;
}

/* The only one that does not find itself elsewhere is the original, and the others are copies. */
static enum origin origin_of(const struct copies *c, const struct copies_run *r)
{
    unsigned n_here = 0;

    for (unsigned i = 0; i < c->n; i++)
        n_here += c->runs[i].came_back && !is_elsewhere(&c->runs[i]);
    if (n_here != 1 || !r->came_back)
        return ORIGIN_UNKNOWN;
    return is_elsewhere(r) ? ORIGIN_COPY : ORIGIN_OWN;
}

/* ---- words ---------------------------------------------------------------------------------- */

static const char *name_machine(const struct copies_run *r, char ret[static MACHINE_TEXT_MAX])
{
    (void)snprintf(ret, MACHINE_TEXT_MAX, "%s%s%s",
        r->machine.host[0] != '\0' ? r->machine.host : "a machine without a name",
        r->at[0] != '\0' ? " at " : "", r->at);
    return ret;
}

/* The one that was heard last of those that came back, and is not @self. */
static const struct copies_run *find_other(const struct copies *c, const struct copies_run *self)
{
    for (unsigned i = 0; i < c->n; i++)
        if (c->runs[i].came_back && &c->runs[i] != self)
            return &c->runs[i];
    return NULL;
}

json_t *copies_answer(const struct copies *c, uint64_t run)
{
    const struct copies_run *self = NULL;
    const struct copies_run *other;
    char machine[MACHINE_TEXT_MAX];
    char text[COPIES_TEXT_MAX];
    enum origin origin;

    for (unsigned i = 0; i < c->n; i++)
        if (c->runs[i].run == run)
            self = &c->runs[i];
    other = self ? find_other(c, self) : NULL;
    if (!other || !copies_are_there(c))
        return NULL;
    origin = origin_of(c, self);
    (void)snprintf(text, sizeof(text), "another machine (%s) uses this node's key as well, %s: %s",
        name_machine(other, machine),
        origin == ORIGIN_COPY  ? "and this machine is the copy; here"
        : origin == ORIGIN_OWN ? "and that one is the copy; there"
                               : "and it is not known which is the copy; on that one",
        WAY_OUT);
    return json_pack("{s:s, s:b}", "why", text, "isCopy", (int)(origin == ORIGIN_COPY));
}

void copies_explain(const struct copies *c, char ret[static COPIES_TEXT_MAX])
{
    char names[2][MACHINE_TEXT_MAX];
    const struct copies_run *a = find_other(c, NULL);
    const struct copies_run *b = NULL;

    ret[0] = '\0';
    if (!a)
        return;
    for (unsigned i = 0; i < c->n && !b; i++)
        if (c->runs[i].came_back && &c->runs[i] != a &&
            (origin_of(c, a) != ORIGIN_COPY || origin_of(c, &c->runs[i]) == ORIGIN_OWN))
            b = &c->runs[i];
    if (!b)
        return;
    if (origin_of(c, a) == ORIGIN_UNKNOWN)
        (void)snprintf(ret, COPIES_TEXT_MAX,
            "two machines are this node, %s and %s, and it is not known which is the copy; on that "
            "one: %s",
            name_machine(a, names[0]), name_machine(b, names[1]), WAY_OUT);
    else
        (void)snprintf(ret, COPIES_TEXT_MAX,
            "two machines are this node, and %s is a copy of %s; on the copy: %s",
            name_machine(origin_of(c, a) == ORIGIN_COPY ? a : b, names[0]),
            name_machine(origin_of(c, a) == ORIGIN_COPY ? b : a, names[1]), WAY_OUT);
}

json_t *copies_encode(const struct copies *c, int64_t wall_s)
{
    json_t *machines = copies_are_there(c) ? json_array() : NULL;
    char why[COPIES_TEXT_MAX];

    if (!machines)
        return NULL;
    for (unsigned i = 0; i < c->n; i++) {
        const struct copies_run *r = &c->runs[i];
        enum origin origin = origin_of(c, r);

        if (r->came_back)
            (void)json_array_append_new(machines,
                json_pack("{s:s, s:s, s:I, s:o*}", "host", r->machine.host, "address", r->at,
                    "heardSecondsAgo",
                    (json_int_t)(wall_s > r->heard_at ? wall_s - r->heard_at : 0), "isCopy",
                    origin == ORIGIN_UNKNOWN ? NULL : json_boolean(origin == ORIGIN_COPY)));
    }
    copies_explain(c, why);
    return json_pack("{s:s, s:o}", "why", why, "machines", machines);
}
