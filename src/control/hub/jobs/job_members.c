/* job_members.c - see job_members.h. */
#include "hub/jobs/job_members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "mesh/object/fields.h"
#include "rendezvous/shared/rdzv_record.h"

/* Most commands of one member that are kept; those beyond are not counted. */
#define JOB_MEMBERS_COMMANDS_MAX 16

/* Members of a run that is broken come to the next one within this time, or are not waited for. */
#define JOB_MEMBERS_EXPECTED_FOR (20 * NSEC_PER_SEC)

/* A member that has said nothing of its commands has its place for so long: a test of the network
 * before the start takes minutes. `weft env` never says anything. */
#define JOB_MEMBERS_SILENT_FOR (600 * NSEC_PER_SEC)

/* For so long a place is kept for a member that was there in the run before, or before the hub was
 * started. */
#define JOB_MEMBERS_KEPT_FOR (60 * NSEC_PER_SEC)

/* Of the members whose commands are lost, and of those whose have ended, at most so many are named
 * in an answer. */
#define JOB_MEMBERS_NAMED_MAX 8

/* Members that are there, of which so many at most are named where all jobs are listed. */
#define JOB_MEMBERS_LISTED_MAX 64

void job_members_deinit(struct job_members *m)
{
    json_decref(m->names);
    json_decref(m->commands);
    json_decref(m->awaited);
    json_decref(m->expected);
    json_decref(m->arrived);
    json_decref(m->isolated);
    json_decref(m->kept);
    json_decref(m->without);
    json_decref(m->count.lost);
    json_decref(m->count.ended_on);
    *m = (struct job_members){.names = NULL};
}

void job_members_begin(struct job_members *m)
{
    job_members_deinit(m);
    m->is_whole = true;
}

void job_members_add(struct job_members *m, const char *name)
{
    if (!m->names)
        m->names = json_object();
    if (!json_object_get(m->names, name)) {
        (void)json_object_set_new(m->names, name, json_true());
        m->is_noted = false;
    }
    (void)json_object_del(m->expected, name);
    (void)json_object_del(m->kept, name);
}

bool job_members_may_be(const struct job_members *m, const char *name)
{
    return !m->is_whole || json_object_get(m->names, name);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The keys, sorted, and a NULL; free(). NULL: no memory. */
static const char **sorted_keys(json_t *object)
{
    const char **keys = calloc(json_object_size(object) + 1, sizeof(*keys));
    const char *key;
    json_t *value;
    size_t n = 0;

    if (!keys)
        return NULL;
    json_object_foreach(object, key, value)
        keys[n++] = key;
    qsort(keys, n, sizeof(*keys), compare);
    return keys;
}

/* The keys, sorted; gives a reference. */
static json_t *sorted_list(json_t *object)
{
    _cleanup_(freep) const char **names = sorted_keys(object);
    json_t *list = names ? json_array() : NULL;

    for (size_t i = 0; names && names[i]; i++)
        fields_append(&list, json_string(names[i]));
    return list;
}

json_t *job_members_list(const struct job_members *m)
{
    return sorted_list(m->names);
}

void job_members_isolate(struct job_members *m, const char *name)
{
    if (!m->isolated)
        m->isolated = json_object();
    (void)json_object_set_new(m->isolated, name, json_true());
}

json_t *job_members_isolated(const struct job_members *m)
{
    return sorted_list(m->isolated);
}

void job_members_set_nccl(struct job_members *m, const char *name, json_t *said)
{
    bool is_new = !json_is_object(json_object_get(m->names, name));

    if (is_new && m->n_nccl == JOB_MEMBERS_NCCL_MAX) {
        json_decref(said);
        return;
    }
    if (!m->names)
        m->names = json_object();
    if (json_object_set_new(m->names, name, said) == 0)
        m->n_nccl += is_new;
}

json_t *job_members_nccl(const struct job_members *m)
{
    _cleanup_(freep) const char **names = m->n_nccl > 0 ? sorted_keys(m->names) : NULL;
    json_t *list = names ? json_array() : NULL;

    for (size_t i = 0; list && names[i]; i++) {
        json_t *said = json_object_get(m->names, names[i]);
        json_t *one = json_is_object(said) ? json_copy(said) : NULL;

        if (one && (json_object_set_new(one, "node", json_string(names[i])) < 0 ||
                       json_array_append(list, one) < 0))
            list = (json_decref(list), NULL);
        json_decref(one);
    }
    return list;
}

void job_members_set_nnodes(struct job_members *m, const char *name, const char *nnodes)
{
    if (strcmp(m->nnodes, nnodes) == 0)
        return;
    (void)snprintf(m->nnodes, sizeof(m->nnodes), "%s", nnodes);
    (void)snprintf(m->nnodes_by, sizeof(m->nnodes_by), "%s", name);
}

/* ---- whose commands are there --------------------------------------------------------------- */

void job_members_hear(
    struct job_members *m, const char *name, const struct job_word *word, nsec_t now)
{
    nsec_t due = now + 3 * word->every_seconds * NSEC_PER_SEC + JOB_MEMBERS_GRACE;
    json_t *commands;

    if (!m->commands)
        m->commands = json_object();
    if (!json_object_get(m->commands, name))
        (void)json_object_set_new(m->commands, name, json_object());
    commands = json_object_get(m->commands, name);
    job_members_add(m, name);
    if (!json_object_get(commands, word->command) &&
        json_object_size(commands) >= JOB_MEMBERS_COMMANDS_MAX)
        return;
    (void)json_object_set_new(commands, word->command,
        json_pack("{s:I, s:I, s:b}", "heard", (json_int_t)now, "due", (json_int_t)due, "ended",
            (int)word->ended));
}

/* How the commands of one member are. */
struct tally {
    json_int_t n_present;
    json_int_t n_ended;
    nsec_t silent_for;
    bool is_lost;
};

static struct tally tally_of(json_t *commands, nsec_t now)
{
    struct tally t = {.n_present = json_object_size(commands) == 0};
    const char *name;
    json_t *command;

    json_object_foreach(commands, name, command) {
        if (json_is_true(json_object_get(command, "ended"))) {
            t.n_ended++;
        } else if (now > json_integer_value(json_object_get(command, "due"))) {
            t.is_lost = true;
        } else {
            t.n_present++;
            t.silent_for =
                nsec_max(t.silent_for, now - json_integer_value(json_object_get(command, "heard")));
        }
    }
    return t;
}

/* Is another member than @name on its way here from the run before? */
static bool expects_others(const struct job_members *m, const char *name, nsec_t now)
{
    size_t n = json_object_size(m->expected);

    return now < m->expected_until && n > (json_object_get(m->expected, name) ? 1 : 0);
}

bool job_members_are_gone(const struct job_members *m, nsec_t now)
{
    bool is_any_lost = false;
    const char *name;
    json_t *commands;

    if (expects_others(m, "", now))
        return false;
    json_object_foreach(m->commands, name, commands) {
        struct tally t = tally_of(commands, now);

        if (json_object_size(commands) > 0 && t.n_present > 0)
            return false;
        is_any_lost |= t.is_lost;
    }
    return is_any_lost;
}

bool job_members_has_others(const struct job_members *m, const char *name, nsec_t now)
{
    const char *other;
    json_t *commands;

    if (expects_others(m, name, now))
        return true;
    json_object_foreach(m->commands, other, commands)
        if (strcmp(other, name) != 0 && json_object_size(commands) > 0 &&
            tally_of(commands, now).n_present > 0)
            return true;
    return false;
}

json_t *job_members_present(const struct job_members *m, nsec_t now)
{
    _cleanup_(freep) const char **names = sorted_keys(m->names);
    json_t *list = names ? json_array() : NULL;

    for (size_t i = 0; names[i] && json_array_size(list) < JOB_MEMBERS_LISTED_MAX; i++)
        if (tally_of(json_object_get(m->commands, names[i]), now).n_present > 0)
            fields_append(&list, json_string(names[i]));
    return list;
}

static void add_name(json_t *names, const char *name)
{
    if (json_array_size(names) < JOB_MEMBERS_NAMED_MAX)
        (void)json_array_append_new(names, json_string(name));
}

static void count_all(struct job_members *m, nsec_t now)
{
    struct job_members_count c = {.lost = json_array(), .ended_on = json_array(), .at = now};
    const char *name;
    json_t *value;

    json_object_foreach(m->names, name, value) {
        struct tally t = tally_of(json_object_get(m->commands, name), now);

        c.n_present += t.n_present;
        c.n_ended += t.n_ended;
        c.silent_for = nsec_max(c.silent_for, t.silent_for);
        c.n_lost += t.is_lost;
        if (t.is_lost)
            add_name(c.lost, name);
        if (t.n_ended > 0)
            add_name(c.ended_on, name);
    }
    json_decref(m->count.lost);
    json_decref(m->count.ended_on);
    m->count = c;
}

/* The names of the lost for @asker, who has to be told of its own; gives a reference. */
static json_t *lost_for(const struct job_members *m, const char *asker, nsec_t now)
{
    json_t *lost = json_copy(m->count.lost);

    if (json_array_size(lost) < JOB_MEMBERS_NAMED_MAX || fields_list_has(lost, asker) ||
        !tally_of(json_object_get(m->commands, asker), now).is_lost)
        return lost;
    (void)json_array_set_new(lost, JOB_MEMBERS_NAMED_MAX - 1, json_string(asker));
    return lost;
}

/* ---- who has ended --------------------------------------------------------------------------- */

bool job_members_hear_late(struct job_members *m, const char *name, const char *run,
    const struct job_word *word, nsec_t now)
{
    if (!word->ended || strcmp(run, m->before) != 0 || now >= m->kept_until ||
        !json_object_get(m->kept, name))
        return false;
    job_members_hear(m, name, word, now);
    return true;
}

/* Were the member's @commands heard last before those came that are there now? */
static bool are_of_earlier(const struct job_members *m, json_t *commands)
{
    const char *key;
    json_t *command;

    json_object_foreach(commands, key, command)
        if (json_integer_value(json_object_get(command, "heard")) >= m->gathered_at)
            return false;
    return true;
}

bool job_members_is_back(const struct job_members *m, const char *name, nsec_t now)
{
    json_t *commands = json_object_get(m->commands, name);

    return json_object_size(commands) > 0 &&
           (tally_of(commands, now).n_present > 0 || are_of_earlier(m, commands));
}

const char *job_members_ended_on(const struct job_members *m, nsec_t now)
{
    const char *name;
    json_t *commands;

    json_object_foreach(m->commands, name, commands) {
        struct tally t = tally_of(commands, now);

        if (t.n_ended > 0 && t.n_present == 0 && !t.is_lost && !are_of_earlier(m, commands))
            return name;
    }
    return NULL;
}

/* ---- places --------------------------------------------------------------------------------- */

/* A member's place in a run. */
struct place {
    bool is_held;
    bool is_ended;     /* its command has ended, and no other one of it is there */
    nsec_t silent_for; /* it was not heard; 0: it is not late */
    nsec_t until;      /* it is free, if nothing more is heard */
};

static struct place place_of(const struct job_members *m, const char *name, nsec_t now)
{
    nsec_t arrived_at = json_integer_value(json_object_get(m->arrived, name));
    nsec_t heard_at = 0;
    nsec_t ended_at = 0;
    struct place p = {.is_held = false};
    const char *key;
    json_t *command;

    if (now < m->kept_until && json_object_get(m->kept, name))
        return (struct place){.is_held = true,
            .silent_for = now - (m->kept_until - JOB_MEMBERS_KEPT_FOR),
            .until = m->kept_until};
    json_object_foreach(json_object_get(m->commands, name), key, command) {
        nsec_t at = json_integer_value(json_object_get(command, "heard"));

        if (json_is_true(json_object_get(command, "ended"))) {
            ended_at = nsec_max(ended_at, at);
            continue;
        }
        heard_at = nsec_max(heard_at, at);
        p.until = nsec_max(p.until, json_integer_value(json_object_get(command, "due")));
    }
    if (p.until > 0) {
        p.is_held = now <= p.until;
        /* Half of the time after which it is lost has passed. */
        p.silent_for = 2 * (now - heard_at) > p.until - heard_at ? now - heard_at : 0;
    } else if (arrived_at > ended_at) {
        p.until = arrived_at + JOB_MEMBERS_SILENT_FOR;
        p.is_held = now < p.until;
        p.silent_for = now - arrived_at > JOB_MEMBERS_EXPECTED_FOR ? now - arrived_at : 0;
    } else if (ended_at > 0) {
        p.is_held = ended_at >= m->gathered_at;
        p.is_ended = true;
    }
    return p;
}

/* Has anybody a place but those whose command has ended? */
static bool is_any_there(const struct job_members *m, nsec_t now)
{
    json_t *const all[] = {m->names, m->kept};
    const char *name;
    json_t *value;

    for (unsigned i = 0; i < 2; i++)
        json_object_foreach(all[i], name, value) {
            struct place p = place_of(m, name, now);

            if (p.is_held && !p.is_ended)
                return true;
        }
    return false;
}

void job_members_come(struct job_members *m, const char *name, nsec_t now)
{
    if (!is_any_there(m, now))
        m->gathered_at = now;
    job_members_add(m, name);
    if (!m->arrived)
        m->arrived = json_object();
    (void)json_object_set_new(m->arrived, name, json_integer(now));
}

/* Of all that have come or keep a place, by name, true; gives a reference, NULL: no memory. */
static json_t *all_names(const struct job_members *m)
{
    json_t *all = json_object();
    const char *name;
    json_t *value;

    json_object_foreach(m->names, name, value)
        (void)json_object_set_new(all, name, json_true());
    json_object_foreach(m->kept, name, value)
        (void)json_object_set_new(all, name, json_true());
    return all;
}

static void name_place(
    struct str *out, unsigned n, const char *name, const struct place *p, nsec_t now)
{
    if (n >= JOB_MEMBERS_NAMED_MAX) {
        str_add(out, n == JOB_MEMBERS_NAMED_MAX ? ", ..." : "");
        return;
    }
    str_addf(out, "%s%s", n > 0 ? ", " : "", name);
    if (p->silent_for > 0)
        str_addf(out, " (not heard for %lld s: if it is lost, its place is free in %lld s)",
            (long long)(p->silent_for / NSEC_PER_SEC),
            (long long)((p->until - now) / NSEC_PER_SEC + 1));
}

/* Members that have come or keep a place; many of a large job come, and each of them asks. */
static size_t count_known(const struct job_members *m)
{
    return json_object_size(m->names) + json_object_size(m->kept);
}

bool job_members_is_full(const struct job_members *m, const char *name, unsigned n_nodes,
    nsec_t now, struct str *ret_names)
{
    json_auto_t *all = count_known(m) < n_nodes ? NULL : all_names(m);
    _cleanup_(freep) const char **names = all ? sorted_keys(all) : NULL;
    _cleanup_(str_deinit) struct str text = STR_NULL;
    bool has_present = false;
    unsigned n = 0;

    for (size_t i = 0; names && names[i]; i++) {
        struct place p = place_of(m, names[i], now);

        if (!p.is_held || strcmp(names[i], name) == 0)
            continue;
        has_present |= !p.is_ended;
        name_place(&text, n++, names[i], &p, now);
    }
    if (n < n_nodes || !has_present)
        return false;
    str_add(ret_names, str_text(&text));
    return true;
}

bool job_members_names(const struct job_members *m, nsec_t now, char *ret, size_t cap)
{
    json_auto_t *all = NULL;
    _cleanup_(freep) const char **names = NULL;
    _cleanup_(str_deinit) struct str text = STR_NULL;
    uint64_t wanted;
    unsigned n = 0;

    if (m->is_noted || parse_u64(&wanted, m->nnodes, 1, UINT32_MAX, "nnodes", NULL) != 0 ||
        count_known(m) < wanted)
        return false;
    all = all_names(m);
    names = all ? sorted_keys(all) : NULL;
    for (size_t i = 0; names && names[i]; i++)
        if (place_of(m, names[i], now).is_held)
            str_addf(&text, "%s%s", n++ > 0 ? " " : "", names[i]);
    if (n < wanted)
        return false;
    if (snprintf(ret, cap, "%s", str_text(&text)) >= (int)cap)
        ret[0] = '\0';
    return true;
}

void job_members_keep(struct job_members *m, const char *names, nsec_t now)
{
    char name[NAME_MAX_LEN + 1];

    m->kept_until = now + JOB_MEMBERS_KEPT_FOR;
    if (!m->kept)
        m->kept = json_object();
    while ((names = rdzv_members_next(names, name)))
        (void)json_object_set_new(m->kept, name, json_true());
}

void job_members_keep_none(struct job_members *m)
{
    json_decref(m->kept);
    m->kept = NULL;
}

/* ---- who was lost, and what has become of the job without it --------------------------------- */

/* The members of which a command is lost, and those that were awaited and have not come; gives a
 * reference. NULL: none, or no memory. */
static json_t *missing(const struct job_members *m, nsec_t now)
{
    json_t *found = json_object();
    const char *name;
    json_t *value;

    json_object_foreach(m->names, name, value)
        if (tally_of(json_object_get(m->commands, name), now).is_lost)
            (void)json_object_set_new(found, name, json_true());
    json_object_foreach(m->awaited, name, value)
        if (!json_object_get(m->names, name))
            (void)json_object_set_new(found, name, json_true());
    return json_object_size(found) > 0 ? found : (json_decref(found), NULL);
}

/* The members of which a command is there; gives a reference. NULL: none, or no memory. */
static json_t *present(const struct job_members *m, nsec_t now)
{
    json_t *found = json_object();
    const char *name;
    json_t *commands;

    json_object_foreach(m->commands, name, commands)
        if (json_object_size(commands) > 0 && tally_of(commands, now).n_present > 0)
            (void)json_object_set_new(found, name, json_true());
    return json_object_size(found) > 0 ? found : (json_decref(found), NULL);
}

/* Has nobody come but members that were awaited? */
static bool only_awaited_came(const struct job_members *m)
{
    const char *name;
    json_t *value;

    json_object_foreach(m->names, name, value)
        if (!json_object_get(m->awaited, name))
            return false;
    return true;
}

void job_members_begin_next(struct job_members *m, const char *before, nsec_t now)
{
    struct job_members next = {.is_whole = true};

    (void)snprintf(next.before, sizeof(next.before), "%s", before);
    count_all(m, now);
    next.awaited = missing(m, now);
    next.expected = present(m, now);
    next.expected_until = now + JOB_MEMBERS_EXPECTED_FOR;
    next.kept = json_copy(next.expected);
    next.kept_until = now + JOB_MEMBERS_KEPT_FOR;
    if (now < m->kept_until && next.kept)
        (void)json_object_update(next.kept, m->kept);
    else if (now < m->kept_until)
        next.kept = json_copy(m->kept);
    /* Else the run is broken, and those that are there wait in the next one. */
    if (m->count.n_present == 0) {
        if (next.awaited && m->count.n_ended > 0) {
            next.without = json_pack("{s:s, s:I, s:O}", "run", before, "ended", m->count.n_ended,
                "endedOn", m->count.ended_on);
        } else if (m->without && only_awaited_came(m)) {
            json_decref(next.awaited);
            next.awaited = json_incref(m->awaited);
            next.without = json_incref(m->without);
        }
    }
    job_members_deinit(m);
    *m = next;
}

/* What @asker missed; gives a reference, NULL: nothing. The commands have been counted. */
static json_t *ended_without(const struct job_members *m, const char *asker, nsec_t now)
{
    struct tally own = tally_of(json_object_get(m->commands, asker), now);

    if (!json_object_get(m->awaited, asker) || own.n_ended > 0)
        return NULL;
    if (m->without)
        return only_awaited_came(m) ? json_incref(m->without) : NULL;
    if (m->count.n_ended == 0 || m->count.n_lost > 0 || m->count.n_present > own.n_present)
        return NULL;
    return json_pack("{s:I, s:O}", "ended", m->count.n_ended, "endedOn", m->count.ended_on);
}

json_t *job_members_presence(struct job_members *m, const char *asker, nsec_t now)
{
    const struct job_members_count *c = &m->count;

    if (!c->lost || json_object_size(m->names) <= JOB_MEMBERS_FEW ||
        now - c->at >= JOB_MEMBERS_COUNT_EACH)
        count_all(m, now);
    return json_pack("{s:I, s:I, s:O, s:o, s:I, s:f, s:o*}", "present", c->n_present, "ended",
        c->n_ended, "endedOn", c->ended_on, "lost", lost_for(m, asker, now), "lostNodes", c->n_lost,
        "silentSeconds", (double)(c->silent_for + now - c->at) / NSEC_PER_SEC, "endedWithout",
        ended_without(m, asker, now));
}
