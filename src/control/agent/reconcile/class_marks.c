/* class_marks.c - see class_marks.h. */
#include "agent/reconcile/class_marks.h"

#include <stdlib.h>
#include <string.h>

#include "agent/reconcile/filter_table.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "measure/order.h"
#include "mesh/config/wg_config.h"
#include "mesh/snapshot/snapshot.h"
#include "net/socket/local_ports.h"
#include "os/log.h"

#define TABLE "weft_class"

void class_marks_deinit(struct class_marks *cm)
{
    free(cm->body);
    *cm = (struct class_marks)CLASS_MARKS_NULL;
}

/* "oifname "weft0" ip daddr { 10.42.0.1 } ip dscp cs0 ip dscp set cs6"; nothing without a hub. */
static void add_hubs(
    struct str *out, const struct snapshot *s, const char *interface, const char *family, bool v4)
{
    unsigned n_hubs = 0;

    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *n = &s->nodes.items[i]->node;
        char text[IP_ADDR_TEXT_MAX];

        if (!n->hub)
            continue;
        if (n_hubs++ == 0)
            str_addf(out, "oifname \"%s\" %s daddr {", interface, family);
        else
            str_add(out, ",");
        str_addf(out, " %s", ip_addr_format(v4 ? &n->address4 : &n->address6, text));
    }
    if (n_hubs > 0)
        str_addf(out, " } %s dscp cs0 %s dscp set cs6\n", family, family);
}

/* The measuring service, whose port is among those that the kernel chooses. These are rules of
 * their own: of "tcp sport != N tcp dport != N" in one rule nft 1.0.6, Debian 12's, makes one
 * comparison, which is true unless both ports are N. */
static void pass_over_measuring(struct str *out, const char *interface)
{
    str_addf(out, "oifname \"%s\" tcp sport %u return\n", interface, PROBE_PORT);
    str_addf(out, "oifname \"%s\" tcp dport %u return\n", interface, PROBE_PORT);
}

/* TCP from a port that the kernel has chosen to another one. */
static void add_collectives(
    struct str *out, const char *interface, const char *family, const struct local_ports *ports)
{
    str_addf(out, "oifname \"%s\" %s dscp cs0 tcp sport %u-%u tcp dport %u-%u %s dscp set af21\n",
        interface, family, ports->first, ports->last, ports->first, ports->last, family);
}

void class_marks_format(const struct snapshot *s, const char *interface,
    const struct local_ports *ports, struct str *out)
{
    str_add(out, "chain out {\ntype filter hook postrouting priority mangle;\n");
    add_hubs(out, s, interface, "ip", true);
    add_hubs(out, s, interface, "ip6", false);
    pass_over_measuring(out, interface);
    add_collectives(out, interface, "ip", ports);
    add_collectives(out, interface, "ip6", ports);
    str_add(out, "}");
}

static void forget_body(struct class_marks *cm)
{
    free(cm->body);
    cm->body = NULL;
}

void class_marks_forget(struct class_marks *cm)
{
    forget_body(cm);
    cm->is_removed = false;
}

void class_marks_apply(struct class_marks *cm, const char *interface, const struct snapshot *s,
    const struct wg_config *config, nsec_t now)
{
    _cleanup_(str_deinit) struct str body = STR_NULL;
    struct local_ports ports;
    struct err e = ERR_NULL;

    if (!wg_config_has_rates(config)) {
        forget_body(cm);
        if (!cm->is_removed)
            cm->is_removed = class_marks_remove(interface, NULL) == 0;
        return;
    }
    ports = local_ports_read();
    class_marks_format(s, interface, &ports, &body);
    if (body.failed || (cm->body && strcmp(cm->body, str_text(&body)) == 0 &&
                           now - cm->put_at < CLASS_MARKS_PERIOD))
        return;
    forget_body(cm);
    cm->body = strdup(str_text(&body));
    cm->put_at = now;
    cm->is_removed = false;
    if (filter_table_replace(TABLE, interface, str_text(&body), &e) == 0) {
        cm->has_failed = false;
        return;
    }
    if (!cm->has_failed)
        log_info("what other programs send to the hub, and what a job's processes send each other, "
                 "has no mark that lets it go first: %s",
            err_text(&e));
    cm->has_failed = true;
}

int class_marks_remove(const char *interface, struct err *e)
{
    return filter_table_remove(TABLE, interface, e);
}
