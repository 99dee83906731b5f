/* store_lag.c - see store_lag.h. */
#include "hub/store_lag.h"

#include <stdio.h>

#include "base/err.h"
#include "hub/model/model.h"
#include "hub/watch/reports.h"
#include "os/log.h"
#include "store/store.h"

static void tell(
    struct store_lag_teller *t, enum edge_event_kind kind, const char *text, int64_t at)
{
    const struct model *m = t->model;

    for (size_t i = 0; i < m->networks.n; i++)
        edge_events_add(&t->reports->events, &(struct edge_event){.kind = kind,
                                                 .at = at,
                                                 .network = model_network_at(m, i)->spec.meta.name,
                                                 .object = m->self[0] ? m->self : HUB_NAME_DEFAULT,
                                                 .text = text});
}

static void tell_refusal(struct store_lag_teller *t)
{
    struct store_refusal refusal = store_refusal(t->model->store);
    bool is_refusing = refusal.since != 0;

    if (is_refusing)
        reports_try_store(t->reports);
    if (is_refusing == t->is_refusing)
        return;
    t->is_refusing = is_refusing;
    if (is_refusing)
        log_warning("the store does not take what is to be written, and whoever wants a change is "
                    "refused: %s",
            err_text(refusal.why));
    else
        log_info("the store takes what is to be written again");
}

static void tell_lag(struct store_lag_teller *t, nsec_t now, int64_t wall_s)
{
    struct store_lag lag = store_lag(t->model->store, now);
    bool is_behind = lag.behind_for > STORE_LAG_MAX;
    char text[EDGE_EVENT_TEXT_MAX];

    if (is_behind == t->is_behind)
        return;
    t->is_behind = is_behind;
    if (is_behind) {
        (void)snprintf(text, sizeof(text),
            "the store has not said for %d s what has changed; nodes are told what was true before",
            (int)(lag.behind_for / NSEC_PER_SEC));
        tell(t, EDGE_EVENT_STORE_BEHIND, text, wall_s);
        log_warning("%s", text);
        return;
    }
    tell(t, EDGE_EVENT_STORE_AGAIN, "it is known again what has changed in the store", wall_s);
    log_info("it is known again what has changed in the store");
}

void store_lag_tick(struct store_lag_teller *t, nsec_t now, int64_t wall_s)
{
    tell_refusal(t);
    tell_lag(t, now, wall_s);
}
