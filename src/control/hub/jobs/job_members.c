/* job_members.c - see job_members.h. */
#include "hub/jobs/job_members.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

void job_members_deinit(struct job_members *m)
{
    json_decref(m->names);
    json_decref(m->commands);
    json_decref(m->awaited);
    json_decref(m->expected);
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
    if (!json_object_get(m->names, name))
        (void)json_object_set_new(m->names, name, json_true());
    (void)json_object_del(m->expected, name);
}

bool job_members_may_be(const struct job_members *m, const char *name)
{
    return !m->is_whole || json_object_get(m->names, name);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names, sorted, and a NULL; free(). NULL: no memory. */
static const char **sorted_names(const struct job_members *m)
{
    const char **names = calloc(json_object_size(m->names) + 1, sizeof(*names));
    const char *name;
    json_t *value;
    size_t n = 0;

    if (!names)
        return NULL;
    json_object_foreach(m->names, name, value)
        names[n++] = name;
    qsort(names, n, sizeof(*names), compare);
    return names;
}

json_t *job_members_list(const struct job_members *m)
{
    _cleanup_(freep) const char **names = sorted_names(m);
    json_t *list = names ? json_array() : NULL;

    for (size_t i = 0; list && names[i]; i++)
        if (json_array_append_new(list, json_string(names[i])) < 0)
            list = (json_decref(list), NULL);
    return list;
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
    _cleanup_(freep) const char **names = m->n_nccl > 0 ? sorted_names(m) : NULL;
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

/* The commands of that member, by what they call themselves; NULL: no memory. */
static json_t *commands_of(struct job_members *m, const char *name)
{
    if (!m->commands)
        m->commands = json_object();
    if (!json_object_get(m->commands, name))
        (void)json_object_set_new(m->commands, name, json_object());
    return json_object_get(m->commands, name);
}

void job_members_hear(
    struct job_members *m, const char *name, const struct job_word *word, nsec_t now)
{
    json_t *commands = commands_of(m, name);
    nsec_t due = now + 3 * word->every_seconds * NSEC_PER_SEC + JOB_MEMBERS_GRACE;

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
    _cleanup_(freep) const char **names = sorted_names(m);
    json_t *list = names ? json_array() : NULL;

    for (size_t i = 0; list && names[i] && json_array_size(list) < JOB_MEMBERS_LISTED_MAX; i++)
        if (tally_of(json_object_get(m->commands, names[i]), now).n_present > 0 &&
            json_array_append_new(list, json_string(names[i])) < 0)
            list = (json_decref(list), NULL);
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

static bool has_name(const json_t *names, const char *name)
{
    const json_t *item;
    size_t i;

    json_array_foreach(names, i, item)
        if (strcmp(json_string_value(item), name) == 0)
            return true;
    return false;
}

/* The names of the lost for @asker, who has to be told of its own; gives a reference. */
static json_t *lost_for(const struct job_members *m, const char *asker, nsec_t now)
{
    json_t *lost = json_copy(m->count.lost);

    if (json_array_size(lost) < JOB_MEMBERS_NAMED_MAX || has_name(lost, asker) ||
        !tally_of(json_object_get(m->commands, asker), now).is_lost)
        return lost;
    (void)json_array_set_new(lost, JOB_MEMBERS_NAMED_MAX - 1, json_string(asker));
    return lost;
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

    count_all(m, now);
    next.awaited = missing(m, now);
    next.expected = present(m, now);
    next.expected_until = now + JOB_MEMBERS_EXPECTED_FOR;
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
