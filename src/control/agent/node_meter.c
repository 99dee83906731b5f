/* node_meter.c - see node_meter.h. */
#include "agent/node_meter.h"

#include "agent/state/state.h"
#include "base/err.h"

void node_meter_open(struct node_meter *nm, const char *dir, uint64_t id)
{
    struct err e = ERR_NULL;
    json_t *json = NULL;
    int r = state_read_traffic(&json, dir, &e);

    *nm = (struct node_meter){.dir = dir};
    if (r == 0)
        r = meter_decode(&nm->meter, json, "traffic.json", &e);
    json_decref(json);
    if (r == 0)
        return;
    if (r < 0) {
        nm->is_damaged = true;
        log_error("%s; it is left as it is, and what is counted is not kept until it is removed",
            err_text(&e));
    }
    /* 53 bits: more are not exact as a number in JSON. */
    meter_init(&nm->meter, id >> 11 | 1);
}

static void write_file(struct node_meter *nm, nsec_t now)
{
    struct err e = ERR_NULL;

    if (nm->is_damaged)
        return;
    if (state_write_traffic(meter_encode(&nm->meter), nm->dir, &e) != 0)
        log_limited(&nm->limit, now, LOG_LEVEL_WARNING,
            "what this node has moved is not kept, trying again: %s", err_text(&e));
}

static void settle(struct node_meter *nm, nsec_t now)
{
    nm->settled_at = now;
    if (meter_settle(&nm->meter))
        write_file(nm, now);
}

void node_meter_close(struct node_meter *nm, bool is_kept, nsec_t now)
{
    if (nm->meter.id != 0 && is_kept)
        settle(nm, now);
    meter_deinit(&nm->meter);
}

void node_meter_look(struct node_meter *nm, const struct meter_facts *facts, nsec_t now)
{
    if (meter_look(&nm->meter, facts) != 0)
        log_limited(&nm->limit, now, LOG_LEVEL_WARNING, "no memory to count what this node moves");
}

void node_meter_settle(struct node_meter *nm, nsec_t now)
{
    if (nm->is_urgent || nm->settled_at == 0 || now - nm->settled_at >= NODE_METER_EACH)
        settle(nm, now);
    nm->is_urgent = false;
}

bool node_meter_is_due(const struct node_meter *nm, nsec_t now)
{
    return nm->is_urgent || (nm->meter.n_jobs > 0 && now - nm->settled_at >= NODE_METER_JOB_EACH);
}
