/* runs.c - see runs.h. */
#include "hub/watch/runs.h"

#include <stdio.h>
#include <stdlib.h>

#include "api/content/body.h"
#include "base/err.h"
#include "hub/record/record.h"
#include "os/log.h"
#include "store/store.h"

/* What is not understood is as good as none. */
static int take_list(void *ctx, const struct store_item *item)
{
    json_t **list = ctx;

    *list = json_loads(item->value, 0, NULL);
    return 0;
}

void runs_begin(struct runs *r, struct store *store, const char *name, uint64_t boot, nsec_t now)
{
    struct err e = ERR_NULL;
    char key[RECORD_KEY_MAX];
    struct store_op op = {
        .kind = STORE_OP_PUT, .key = key, .expect = STORE_EXPECT_ANY, .is_unwatched = true};
    char *value;

    runs_deinit(r);
    (void)snprintf(key, sizeof(key), "runs/%s", name);
    (void)store_now_get(store, key, take_list, &r->list, &e);
    if (!json_is_array(r->list)) {
        runs_deinit(r);
        r->list = json_array();
    }
    (void)json_array_append_new(
        r->list, json_pack("[I, I]", (json_int_t)boot, (json_int_t)store_revision(store)));
    while (json_array_size(r->list) > RUNS_MAX)
        (void)json_array_remove(r->list, 0);
    value = r->list ? body_format(r->list) : NULL;
    op.value = value;
    if (!value || store_commit(store, &op, 1, now, NULL, NULL, &e) != 0)
        log_info("after the next start all watches begin with a snapshot");
    free(value);
}

void runs_deinit(struct runs *r)
{
    json_decref(r->list);
    r->list = NULL;
}

bool runs_hold(const struct runs *r, uint64_t boot, uint64_t revision)
{
    bool is_found = false;
    const json_t *one;
    size_t i;

    json_array_foreach(r->list, i, one) {
        json_int_t its_boot;
        json_int_t from;

        if (json_unpack((json_t *)one, "[I, I]", &its_boot, &from) != 0)
            continue;
        if (is_found)
            return from >= 0 && revision <= (uint64_t)from;
        is_found = (uint64_t)its_boot == boot;
    }
    return is_found;
}
