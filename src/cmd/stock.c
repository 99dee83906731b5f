/* stock.c - see stock.h. */
#include "stock.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "mesh/render/render.h"

int stock_take(struct snapshot *ret, const json_t *json, struct err *e)
{
    struct snapshot_skips skips = SNAPSHOT_SKIPS_NULL;
    int r = snapshot_decode(ret, json, &skips, e);

    if (r != 0 || skips.n == 0)
        return r;
    *e = skips.first;
    return e->code;
}

static bool is_wanted(const struct snapshot *s, const struct stock_options *opt, const char *name)
{
    const struct node *node = snapshot_find_node(s, name);

    if (node->hub || strcmp(name, s->self) == 0)
        return true;
    for (size_t i = 0; i < opt->peers.n; i++)
        if (strcmp(opt->peers.items[i], name) == 0)
            return true;
    return false;
}

static int choose_peers(struct snapshot *s, const struct stock_options *opt, struct err *e)
{
    int r = 0;

    for (size_t i = 0; i < opt->peers.n; i++)
        if (!snapshot_find_node(s, opt->peers.items[i]))
            return err_set(e, -EINVAL, "network \"%s\" has no node \"%.70s\" that %s may talk to",
                s->network.meta.name, opt->peers.items[i], s->self);
    for (size_t i = s->nodes.n; r == 0 && opt->peers.n > 0 && i > 0; i--) {
        const char *name = s->nodes.items[i - 1]->node.meta.name;

        if (!is_wanted(s, opt, name))
            r = snapshot_delete(s, &node_kind, name, e);
    }
    return r;
}

char *stock_format(struct snapshot *s, const struct stock_options *opt,
    const struct x25519_secret *secret, bool is_compact, struct err *e)
{
    _cleanup_(wg_config_deinit) struct wg_config c = WG_CONFIG_NULL;
    const struct wg_quick_style style = {
        .key_file = opt->key_file, .secret = secret, .is_compact = is_compact};
    struct render_input in = {.snapshot = s, .listen_port = (uint16_t)opt->listen_port};
    char *text;

    if (choose_peers(s, opt, e) < 0 || render_config(&c, &in, e) < 0)
        return NULL;
    text = wg_quick_format(&c, s, &style, NULL);
    if (!text)
        (void)err_set(e, -ENOMEM, "no memory for the file of %s", s->self);
    return text;
}
