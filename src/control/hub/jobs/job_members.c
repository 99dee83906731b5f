/* job_members.c - see job_members.h. */
#include "hub/jobs/job_members.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void job_members_deinit(struct job_members *m)
{
    json_decref(m->names);
    json_decref(m->commands);
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

/* What job_members_presence() adds up. */
struct presence {
    json_int_t n_present;
    json_int_t n_ended;
    nsec_t silent_for; /* the longest of those that are there */
    json_t *lost;      /* owns; names */
};

static void count_commands(struct presence *p, const char *member, json_t *commands, nsec_t now)
{
    bool is_lost = false;
    const char *name;
    json_t *command;

    json_object_foreach(commands, name, command) {
        if (json_is_true(json_object_get(command, "ended"))) {
            p->n_ended++;
        } else if (now > json_integer_value(json_object_get(command, "due"))) {
            is_lost = true;
        } else {
            p->n_present++;
            p->silent_for = nsec_max(
                p->silent_for, now - json_integer_value(json_object_get(command, "heard")));
        }
    }
    if (json_object_size(commands) == 0)
        p->n_present++;
    if (is_lost)
        (void)json_array_append_new(p->lost, json_string(member));
}

json_t *job_members_presence(const struct job_members *m, nsec_t now)
{
    struct presence p = {.lost = json_array()};
    const char *name;
    json_t *value;

    json_object_foreach(m->names, name, value)
        count_commands(&p, name, json_object_get(m->commands, name), now);
    return json_pack("{s:I, s:I, s:o, s:f}", "present", p.n_present, "ended", p.n_ended, "lost",
        p.lost, "silentSeconds", (double)p.silent_for / NSEC_PER_SEC);
}
