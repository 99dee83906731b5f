/*
 * overlay_memory.c - where the nodes were, for a hub that starts again.
 *
 * Nodes come to the hub, and a node whose hub has restarted does not notice for
 * a while: its sessions are void, but nothing tells it. So the hub remembers
 * the addresses and asks each node there for a handshake (see greet() in
 * overlay.c). A node that has moved meanwhile comes by itself, as ever.
 *
 *     {"default": {"PUBLIC KEY": "203.0.113.5:51820", ...}, ...}
 *
 * An address in the file is a hint: nothing is relayed there before a handshake
 * has shown that the node is there. The loop's, all of it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "os/log.h"
#include "hub/overlay_internal.h"
#include "os/statefile.h"

#define FILE_NAME  "addresses.json"
#define FILE_MAX   (64u << 20)
#define SAVE_EVERY (2 * NSEC_PER_SEC)

void overlay__memory_open(struct overlay *o, const char *state_dir)
{
    _cleanup_(freep) char *path = NULL;
    _cleanup_(freep) char *text = NULL;
    struct err e = ERR_NULL;
    json_error_t why;
    int r;

    if (asprintf(&path, "%s/" FILE_NAME, state_dir) < 0) {
        path = NULL;
        return;
    }
    r = statefile_read(path, FILE_MAX, &text, NULL, &e);
    if (r < 0) {
        log_warning("%s; nodes come back by themselves, more slowly", err_text(&e));
        return;
    }
    if (r == 0) {
        o->memory = json_loads(text, JSON_REJECT_DUPLICATES, &why);
        if (!json_is_object(o->memory)) {
            log_warning("%s, line %d: %s; it is left as it is, and nodes come back by themselves, "
                        "more slowly",
                path, why.line, o->memory ? "not an object" : why.text);
            return;
        }
    }
    o->memory_path = TAKE_PTR(path);
}

void overlay__memory_close(struct overlay *o)
{
    json_decref(o->memory);
    o->memory = NULL;
    free(o->memory_path);
    o->memory_path = NULL;
}

static const char *network_name(const struct overlay_network *net)
{
    return net->hub->spec.meta.name;
}

bool overlay__memory_find(const struct overlay_node *node, struct endpoint *ret)
{
    const struct overlay_network *net = node->network;
    const json_t *known = json_object_get(net->overlay->memory, network_name(net));
    char key[X25519_BASE64_MAX];
    const char *text;

    text = json_string_value(json_object_get(known, x25519_public_format(&node->key, key)));
    return text && endpoint_parse(ret, text, NULL) == 0;
}

/* Of a stream, which has another one after the next start. */
static bool is_loopback(const struct endpoint *ep)
{
    return ip_addr_is_v4(&ep->addr) && ep->addr.b[12] == 127;
}

/* What is known now; or, while it has not been heard yet, what was known before. */
static bool find_address(struct overlay_node *node, struct endpoint *ret)
{
    struct overlay *o = node->network->overlay;

    (void)pthread_mutex_lock(&o->lock);
    *ret = node->path.remote;
    (void)pthread_mutex_unlock(&o->lock);
    return !endpoint_is_none(ret) || overlay__memory_find(node, ret);
}

static json_t *encode_network(struct overlay_network *net)
{
    json_t *all = json_object();
    struct hub_node *each = NULL;

    while ((each = hub_next_node(net->hub, each))) {
        struct overlay_node *node = each->plug;
        char key[X25519_BASE64_MAX];
        char text[ENDPOINT_TEXT_MAX];
        struct endpoint ep;

        if (node && find_address(node, &ep) && !is_loopback(&ep))
            (void)json_object_set_new(all, x25519_public_format(&node->key, key),
                json_string(endpoint_format(&ep, text)));
    }
    return all;
}

void overlay__memory_save(struct overlay *o, nsec_t now)
{
    struct overlay_network *net;
    struct err e = ERR_NULL;
    json_t *all;
    char *text;

    if (!o->memory_path || now < o->memory_due || !atomic_exchange(&o->has_news, false))
        return;
    o->memory_due = now + SAVE_EVERY;
    all = json_object();
    list_foreach(net, &o->networks, siblings)
        (void)json_object_set_new(all, network_name(net), encode_network(net));
    text = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    /* The next news bring the next attempt. */
    if (!text || statefile_replace(o->memory_path, text, strlen(text), 0600, &e) < 0)
        log_limited(&o->memory_limit, now, LOG_LEVEL_WARNING, "%s",
            text ? err_text(&e) : "no memory to remember addresses");
    free(text);
}
