/* audience.c - see audience.h. */
#include "test/support/audience.h"

#include <stdio.h>
#include <string.h>

struct sample_hub audience_hub;
const struct watch_known audience_nothing;

struct model_network *audience_network(void)
{
    return sample_hub_network(&audience_hub);
}

struct model_node *audience_node(const char *name)
{
    return sample_hub_node(&audience_hub, name);
}

void audience_add(const char *name)
{
    sample_hub_add_node(&audience_hub, name);
}

static void ask(const char *method, const char *path, const char *body, int expected)
{
    int status = sample_hub_ask(&audience_hub, API_ACCESS_ADMIN, NULL, method, path, body, NULL);

    if (status != expected)
        sample_hub_fail("%s %s is answered with %d", method, path, status);
}

void audience_remove(const char *name)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/v1/networks/default/nodes/%s", name);
    ask("DELETE", path, NULL, 204);
}

void audience_set_edge(const char *path)
{
    char body[256];

    (void)snprintf(body, sizeof(body),
        "{\"kind\":\"MeshEdge\",\"metadata\":{\"name\":\"a--b\"},"
        "\"spec\":{\"nodes\":[\"a\",\"b\"],\"path\":\"%s\"}}",
        path);
    ask("PUT", "/v1/networks/default/objects/MeshEdge/a--b", body, 200);
}

int audience_enter(void **state)
{
    audience_hub = (struct sample_hub){.now = NSEC_PER_SEC};
    sample_hub_make_dir(&audience_hub, false);
    sample_hub_open(&audience_hub);
    audience_add("a");
    audience_add("b");
    audience_add("c");
    return 0;
}

int audience_leave(void **state)
{
    sample_hub_close(&audience_hub);
    sample_hub_remove_dir(&audience_hub);
    return 0;
}

const char *audience_take(struct stream *s)
{
    static char text[1 << 16];
    size_t n;

    watch_turn(&audience_hub.hub->watcher, audience_hub.now);
    n = stream_take(s, text, sizeof(text) - 1, audience_hub.now);
    text[n] = '\0';
    if (s->n == 0)
        s->on_drained(s, audience_hub.now);
    return text;
}

unsigned audience_count(const char *text, const char *part)
{
    unsigned n = 0;

    for (const char *p = strstr(text, part); p; p = strstr(p + 1, part))
        n++;
    return n;
}

struct stream *audience_open(const char *name)
{
    struct stream *s = watch_open(&audience_hub.hub->watcher, audience_node(name),
        WATCH_HEARTBEAT_SLOW, &audience_nothing, audience_hub.now);
    const char *text;

    if (!s)
        sample_hub_fail("no memory for a watch");
    watch_turn(&audience_hub.hub->watcher, audience_hub.now);
    s->on_drained(s, audience_hub.now);
    text = audience_take(s);
    if (audience_count(text, "snapshot") != 1)
        sample_hub_fail("no snapshot: %.200s", text);
    return s;
}

void audience_end(struct stream *s)
{
    s->on_closed(s);
}
