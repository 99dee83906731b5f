/* translate.c - see translate.h. */
#include "train/names/translate.h"

#include <errno.h>
#include <jansson.h>

#include "agent/agent_ask.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "mesh/snapshot/snapshot.h"
#include "net/netlink/nft.h"

#define ASK_TIMEOUT_MS 5000

int translate_read(struct addrmap *ret, const char *socket_path, struct err *e)
{
    _cleanup_(snapshot_deinit) struct snapshot s = SNAPSHOT_NULL;
    json_t *json = NULL;
    int r = agent_ask(socket_path, "GET", "/v1/snapshot", ASK_TIMEOUT_MS, &json, e);

    if (r == 0)
        r = snapshot_decode(&s, json, NULL, e);
    json_decref(json);
    if (r == 0 && addrmap_make(ret, &s) < 0)
        r = err_set(e, -ENOMEM, "no memory for the map");
    return r;
}

int translate_apply(const struct addrmap *m, struct err *e)
{
    _cleanup_(str_deinit) struct str chain = STR_NULL;

    addrmap_add_chain(&chain, m);
    if (chain.failed)
        return err_set(e, -ENOMEM, "no memory for the map");
    return nft_replace_table(TRANSLATE_FAMILY, TRANSLATE_TABLE, str_text(&chain), e);
}

int translate_remove(struct err *e)
{
    return nft_remove_table(TRANSLATE_FAMILY, TRANSLATE_TABLE, e);
}
