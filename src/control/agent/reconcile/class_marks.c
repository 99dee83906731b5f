/* class_marks.c - see class_marks.h. */
#include "agent/reconcile/class_marks.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/reconcile/mss_clamp.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "mesh/snapshot/snapshot.h"
#include "net/netlink/nft.h"
#include "os/log.h"

#define FAMILY    "inet"
#define TABLE_MAX (sizeof("weft_class_") + IFNAMSIZ)

static const char *table_name(const char *interface, char buf[static TABLE_MAX])
{
    (void)snprintf(buf, TABLE_MAX, "weft_class_%.*s", IFNAMSIZ - 1, interface);
    return buf;
}

void class_marks_deinit(struct class_marks *cm)
{
    free(cm->body);
    *cm = (struct class_marks)CLASS_MARKS_NULL;
}

/* "oifname "weft0" ip daddr { 10.42.0.1 } ip dscp cs0 ip dscp set cs6" */
static void add_rule(
    struct str *out, const struct snapshot *s, const char *interface, const char *family, bool v4)
{
    const char *separator = "";

    str_addf(out, "oifname \"%s\" %s daddr {", interface, family);
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *n = &s->nodes.items[i]->node;
        char text[IP_ADDR_TEXT_MAX];

        if (!n->hub)
            continue;
        str_addf(out, "%s %s", separator, ip_addr_format(v4 ? &n->address4 : &n->address6, text));
        separator = ",";
    }
    str_addf(out, " } %s dscp cs0 %s dscp set cs6\n", family, family);
}

void class_marks_format(const struct snapshot *s, const char *interface, struct str *out)
{
    str_add(out, "chain out {\ntype filter hook postrouting priority mangle;\n");
    add_rule(out, s, interface, "ip", true);
    add_rule(out, s, interface, "ip6", false);
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

static int put(const char *interface, const char *body, struct err *e)
{
    char table[TABLE_MAX];
    int r = mss_clamp_check_name(interface, e);

    return r < 0 ? r : nft_replace_table(FAMILY, table_name(interface, table), body, e);
}

void class_marks_apply(struct class_marks *cm, const char *interface, const struct snapshot *s,
    bool has_rates, nsec_t now)
{
    _cleanup_(str_deinit) struct str body = STR_NULL;
    struct err e = ERR_NULL;

    if (!has_rates) {
        forget_body(cm);
        if (!cm->is_removed)
            cm->is_removed = class_marks_remove(interface, NULL) == 0;
        return;
    }
    class_marks_format(s, interface, &body);
    if (body.failed || (cm->body && strcmp(cm->body, str_text(&body)) == 0 &&
                           now - cm->put_at < CLASS_MARKS_PERIOD))
        return;
    forget_body(cm);
    cm->body = strdup(str_text(&body));
    cm->put_at = now;
    cm->is_removed = false;
    if (put(interface, str_text(&body), &e) == 0 || cm->has_failed)
        return;
    cm->has_failed = true;
    log_info(
        "what other programs send to the hub has no mark that lets it go first: %s", err_text(&e));
}

int class_marks_remove(const char *interface, struct err *e)
{
    char table[TABLE_MAX];
    int r = mss_clamp_check_name(interface, e);

    return r < 0 ? r : nft_remove_table(FAMILY, table_name(interface, table), e);
}
