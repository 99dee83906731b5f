/*
 * kube_tidy.c - removing Records that the journal of a store in Kubernetes does not need any more:
 * old entries, the state before, and what hubs have left that died; see kubernetes_internal.h.
 *
 * Which entries and which state these are, kube_log.c notes when it has raised the floor.
 */
#include <stdlib.h>
#include <string.h>

#include "backends/kubernetes/kubernetes_internal.h"
#include "base/err.h"
#include "os/clock.h"

/* Records that one step removes, and how long it waits for an answer. */
#define TIDY_MAX 8
#define TIDY_NS  (2 * NSEC_PER_SEC)

/* Remove an entry; its parts are removed first. */
static int remove_entry(struct kubernetes *q, uint64_t seq, nsec_t until, struct err *e)
{
    struct kube_record record = KUBE_RECORD_NULL;
    char name[KUBE_RECORD_NAME_MAX];
    const char *writer;
    json_int_t n;
    json_t *json;
    int r = kube_client_read(&q->client, kube_entry_name(name, seq), until, &record, e);

    if (r != 0)
        return r == KUBE_E_ABSENT ? 0 : r;
    json = json_loads(record.data, 0, NULL);
    kube_record_deinit(&record);
    writer = json_string_value(json_object_get(json, "by"));
    n = json_integer_value(json_object_get(json, "parts"));
    for (json_int_t i = 0; writer && strlen(writer) < KUBE_WRITER_MAX && r == 0 && i < n; i++)
        r = kube_client_remove(&q->client, kube_part_name(name, writer, (uint64_t)i), until, e);
    json_decref(json);
    return r == 0 ? kube_client_remove(&q->client, kube_entry_name(name, seq), until, e) : r;
}

/* Remove some leftovers. When one page of names has no more of them, the next one is read. */
static void clear_some(struct kubernetes *q, nsec_t until)
{
    struct err e = ERR_NULL;
    json_t *names = NULL;
    char *next = NULL;
    unsigned n = 0;
    json_t *one;
    size_t i;
    int r = kube_client_names(&q->client, q->clear_from, until, &names, &next, &e);

    json_array_foreach(names, i, one) {
        const char *name = json_string_value(one);

        if (r == 0 && n < TIDY_MAX && name && kube_is_leftover(name, &q->floor)) {
            r = kube_client_remove(&q->client, name, until, &e);
            n++;
        }
    }
    json_decref(names);
    if (r == 0 && n == TIDY_MAX) {
        free(next);
        return;
    }
    free(q->clear_from);
    q->clear_from = next;
    /* After a failure it is begun again with the next state. */
    q->is_clearing = r == 0 && next;
}

bool kube_tidy__step(struct kubernetes *q)
{
    nsec_t until = clock_now() + TIDY_NS;
    char name[KUBE_RECORD_NAME_MAX];
    struct err e = ERR_NULL;
    int r = 0;

    for (unsigned n = 0; r == 0 && n < TIDY_MAX && q->old_state.parts > 0; n++) {
        (void)kube_state_name(name, q->old_state.next, q->old_state.parts - 1);
        r = kube_client_remove(&q->client, name, until, &e);
        q->old_state.parts--;
    }
    for (unsigned n = 0; r == 0 && n < TIDY_MAX && q->trim_next < q->trim_end; n++) {
        r = remove_entry(q, q->trim_next, until, &e);
        q->trim_next++;
    }
    if (r == 0 && q->is_clearing && q->old_state.parts == 0 && q->trim_next >= q->trim_end)
        clear_some(q, until);
    return q->old_state.parts > 0 || q->trim_next < q->trim_end || q->is_clearing;
}
