/* tellers.c - see tellers.h. */
#include "test/support/tellers.h"

#include "base/err.h"
#include "hub/traffic/traffic_book.h"

struct sample_hub tellers_hub;

struct model_network *tellers_network(void)
{
    return sample_hub_network(&tellers_hub);
}

struct model_node *tellers_node(const char *name)
{
    return sample_hub_node(&tellers_hub, name);
}

/* Nodes that are added by their keys are stock WireGuards, which never tell anything. */
static void give_agents(void)
{
    struct model_network *net = tellers_network();

    for (size_t i = 0; net && i < net->nodes.n; i++)
        model_node_at(net, i)->spec.stock = false;
}

int tellers_enter(void **state)
{
    tellers_hub = (struct sample_hub){.now = NSEC_PER_SEC};
    sample_hub_make_dir(&tellers_hub, true);
    sample_hub_open(&tellers_hub);
    sample_hub_add_node(&tellers_hub, "a");
    sample_hub_add_node(&tellers_hub, "b");
    give_agents();
    return 0;
}

int tellers_leave(void **state)
{
    sample_hub_close(&tellers_hub);
    sample_hub_remove_dir(&tellers_hub);
    return 0;
}

void tellers_restart(void)
{
    sample_hub_close(&tellers_hub);
    sample_hub_open(&tellers_hub);
    give_agents();
}

void tellers_tell(const char *who, int32_t today, const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    struct err e = ERR_NULL;
    struct traffic t;

    if (!json || traffic_decode(&t, json, "test", &e) != 0)
        sample_hub_fail("%s cannot tell %s: %s", who, text, err_text(&e));
    traffic_book_take(&tellers_hub.hub->traffic, tellers_node(who), &t, tellers_hub.now,
        (int64_t)today * 86400 + 43200);
    traffic_deinit(&t);
    json_decref(json);
}
