/* node_copy.c - see node_copy.h. */
#include "agent/node_copy.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/state/state.h"
#include "base/text.h"
#include "os/log.h"
#include "os/machine.h"

/* Longest name of a machine that is told; the rest is cut. */
#define HOST_MAX 31

void node_copy_init(struct node_copy *nc, const struct state *st)
{
    char place[MACHINE_PLACE_MAX];
    struct machine_traits here;
    char host[HOST_MAX + 1] = "";

    *nc = (struct node_copy){.is_copy = false};
    machine_place(place);
    machine_traits_read(&here);
    /* A name that is too long may be left without its end. */
    if (gethostname(host, sizeof(host)) < 0)
        host[0] = '\0';
    host[HOST_MAX] = '\0';
    text_make_plain(host, '-');
    nc->machine = json_pack("{s:s, s:s, s:o*}", "place", place, "host", host, "joinedHere",
        st->has_machine ? json_boolean(machine_traits_agree(&here, &st->machine)) : NULL);
}

void node_copy_deinit(struct node_copy *nc)
{
    json_decref(nc->machine);
    nc->machine = NULL;
}

void node_copy_on_answer(struct node_copy *nc, const json_t *body)
{
    const json_t *copy = json_object_get(body, "copy");
    const char *why = json_string_value(json_object_get(copy, "why"));
    char text[NODE_COPY_TEXT_MAX] = "";

    (void)snprintf(text, sizeof(text), "%s", why ? why : "");
    text_make_plain(text, ' ');
    nc->is_copy = json_is_true(json_object_get(copy, "isCopy"));
    if (text[0] != '\0' && strcmp(text, nc->why) != 0)
        log_warning("%s", text);
    else if (text[0] == '\0' && nc->why[0] != '\0')
        log_info("no other machine uses this node's key any more");
    memcpy(nc->why, text, sizeof(text));
}
