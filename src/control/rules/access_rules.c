/* access_rules.c - see access_rules.h. */
#include "rules/access_rules.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers.h"
#include "base/text.h"
#include "engine/engine.h"
#include "engine/engine_access.h"
#include "mesh/snapshot/snapshot.h"
#include "net/netlink/nft.h"
#include "os/log.h"
#include "rules/access_lines.h"
#include "rules/access_scope.h"
#include "rules/access_table.h"

#define ACCESS_TABLE "weft_access"

bool access_rules_are_wanted(const struct snapshot *s)
{
    return !access_scope_is_open(s) || job_ports_is_any(s);
}

bool access_rules_are_enforced(const struct access_rules *ar)
{
    return ar->fault.code == 0 && (ar->lacks.code == 0 || ar->own.is_in);
}

void access_rules_forget(struct access_rules *ar)
{
    kept_table_forget(&ar->table);
    ar->own.is_in = false;
}

void access_rules_deinit(struct access_rules *ar)
{
    access_rules_forget(ar);
    free(ar->own.lines);
    ar->own = (struct access_own){.lines = NULL};
    access_counts_deinit(&ar->counts);
    job_ports_deinit(&ar->jobs);
}

/* ---- what the packet filter has counted ----------------------------------------------------- */

/* "pass_ssh": what a rule has let in; "refused". */
static void take_counter(void *ctx, const char *name, uint64_t packets)
{
    static const char head[] = "pass_";
    struct access_counts *c = ctx;

    if (strcmp(name, "refused") == 0)
        access_counts_take_refused(c, packets);
    else if (strncmp(name, head, sizeof(head) - 1) == 0)
        access_counts_take_passed(c, name + sizeof(head) - 1, packets);
}

/* Those of rules alone. */
static void take_rule(void *ctx, const char *name, uint64_t packets)
{
    if (strcmp(name, "refused") != 0)
        take_counter(ctx, name, packets);
}

/* What somebody else has flushed has counted nothing. */
static void read_table(
    struct access_rules *ar, const char *interface, const struct snapshot *s, nsec_t now)
{
    static const char *const sets[] = {
        "set ports_4", "set ports_6", "set others_4", "set others_6"};
    json_auto_t *list = NULL;
    char table[KEPT_TABLE_MAX];

    ar->read_at = now;
    kept_table_name(ACCESS_TABLE, interface, table);
    if (!ar->table.body || ar->lacks.code != 0)
        return;
    access_counts_begin(&ar->counts);
    if (nft_each_counter(KEPT_TABLE_FAMILY, table, take_counter, &ar->counts, NULL) == 0 &&
        nft_list(KEPT_TABLE_FAMILY, table, sets, sizeof(sets) / sizeof(*sets), &list, NULL) == 0)
        access_counts_take_sets(&ar->counts, list, s, now);
    access_counts_end(&ar->counts);
}

/* What rules have let in that are about to be removed; all else in the table stays. */
static void read_rules(struct access_rules *ar, const char *interface)
{
    char table[KEPT_TABLE_MAX];

    kept_table_name(ACCESS_TABLE, interface, table);
    access_counts_begin(&ar->counts);
    (void)nft_each_counter(KEPT_TABLE_FAMILY, table, take_rule, &ar->counts, NULL);
    access_counts_end(&ar->counts);
}

/* ---- the data plane's own filter ------------------------------------------------------------ */

/* Reads what it has counted. One that was started anew has no rules, or another's. */
static void read_own(
    struct access_rules *ar, struct engine *engine, const struct snapshot *s, nsec_t now)
{
    struct engine_access a = {.is_on = false};

    ar->read_at = now;
    if (!ar->own.is_in || !engine || engine_get_access(engine, &a, NULL) != 0)
        return;
    ar->own.is_in = a.is_on && a.tag == ar->own.tag;
    if (ar->own.is_in) {
        access_counts_begin(&ar->counts);
        access_counts_take_refused(&ar->counts, a.refused);
        for (size_t i = 0; i < a.n_rules; i++)
            access_counts_take_passed(&ar->counts, a.rules[i].name, a.rules[i].passed);
        for (size_t i = 0; i < a.n_kinds; i++) {
            const struct engine_access_kind *k = &a.kinds[i];
            const struct access_kind like = {
                .from = k->from, .to = k->to, .protocol = k->protocol, .port = k->port};

            access_counts_take_kind(&ar->counts, &like, k->packets, s, now);
        }
        access_counts_end(&ar->counts);
    } else {
        access_counts_restart(&ar->counts);
    }
    engine_access_deinit(&a);
}

/* What it is to go by is @lines, which are taken. What goes with a rule is read before. */
static void keep_lines(struct access_rules *ar, struct engine *engine, char *lines,
    const struct snapshot *s, nsec_t now)
{
    struct access_own *own = &ar->own;

    if (own->is_in)
        read_own(ar, engine, s, now);
    free(own->lines);
    own->lines = lines;
    own->tag = hash_bytes(0, lines, strlen(lines));
    own->is_in = false;
}

/* Has the engine go by the rules; @why: what the packet filter says. */
static void put_own(struct access_rules *ar, struct engine *engine, const struct snapshot *s,
    const struct err *why, nsec_t now)
{
    _cleanup_(str_deinit) struct str lines = STR_NULL;
    struct access_own *own = &ar->own;
    struct err e = ERR_NULL;
    int r;

    access_lines_format(&lines, s, &ar->jobs, now);
    if (lines.failed) {
        ar->fault = *why;
        return;
    }
    if (!own->lines || strcmp(own->lines, str_text(&lines)) != 0)
        keep_lines(ar, engine, str_take(&lines, NULL), s, now);
    if (!engine || own->is_in)
        return;
    r = engine_set_access(engine, own->lines, own->tag, &e);
    own->is_in = r == 0;
    if (r == 0 && !own->is_logged)
        log_info("the data plane itself enforces the network's rules, since %s", err_text(why));
    own->is_logged = own->is_logged || r == 0;
    if (r == 0)
        ar->fault = (struct err)ERR_NULL;
    else
        (void)err_set(&ar->fault, why->code, "%s, and %s", err_text(why), err_text(&e));
}

/* It lets all pass. */
static void end_own(struct access_rules *ar, struct engine *engine)
{
    if (!ar->own.lines)
        return;
    if (ar->own.is_in && engine)
        (void)engine_set_access(engine, NULL, 0, NULL);
    free(ar->own.lines);
    ar->own = (struct access_own){.lines = NULL};
    access_counts_restart(&ar->counts);
}

void access_rules_tell(const struct access_rules *ar, struct engine *engine)
{
    struct engine_access a = {.is_on = false};

    if (ar->own.lines)
        (void)engine_set_access(engine, ar->own.lines, ar->own.tag, NULL);
    else if (engine_get_access(engine, &a, NULL) == 0 && a.is_on)
        (void)engine_set_access(engine, NULL, 0, NULL);
    engine_access_deinit(&a);
}

/* ---- both ----------------------------------------------------------------------------------- */

void access_rules_count(struct access_rules *ar, const char *interface, struct engine *engine,
    const struct snapshot *s, nsec_t now)
{
    if (now - ar->read_at < ACCESS_READ_EACH)
        return;
    if (ar->lacks.code == 0) {
        read_table(ar, interface, s, now);
    } else if (ar->own.is_in) {
        read_own(ar, engine, s, now);
        if (!ar->own.is_in)
            put_own(ar, engine, s, &ar->lacks, now);
    }
}

/* Has the packet filter go by them, or by none; why it does not is kept. */
static void put_table(struct access_rules *ar, const char *interface, const struct snapshot *s,
    bool is_wanted, nsec_t now)
{
    _cleanup_(str_deinit) struct str body = STR_NULL;
    enum kept_table_loss loss = KEPT_TABLE_LOSES_NONE;
    struct err e = ERR_NULL;
    int r;

    if (is_wanted) {
        access_table_format(&body, interface, s, &ar->jobs, now);
        loss = kept_table_loses(&ar->table, ACCESS_TABLE, interface, &body, now);
    }
    if (loss == KEPT_TABLE_LOSES_ALL)
        read_table(ar, interface, s, now);
    else if (loss == KEPT_TABLE_LOSES_SOME)
        read_rules(ar, interface);
    r = kept_table_put(&ar->table, ACCESS_TABLE, interface, is_wanted ? &body : NULL, now, &e);
    if (r <= 0)
        ar->lacks = r < 0 && is_wanted ? e : (struct err)ERR_NULL;
    if (r <= 0 && !ar->own.is_in)
        access_counts_restart(&ar->counts);
}

void access_rules_apply(struct access_rules *ar, const char *interface, struct engine *engine,
    const struct snapshot *s, nsec_t now)
{
    bool is_wanted = access_rules_are_wanted(s);
    bool had_fault = ar->fault.code != 0;

    job_ports_tick(&ar->jobs, s, now);
    put_table(ar, interface, s, is_wanted, now);
    if (ar->lacks.code == 0) {
        end_own(ar, engine);
        ar->fault = (struct err)ERR_NULL;
        return;
    }
    put_own(ar, engine, s, &ar->lacks, now);
    if (ar->fault.code != 0 && !had_fault)
        log_warning(
            "the network's rules are not enforced on this machine: %s", err_text(&ar->fault));
}

void access_rules_remove(const char *interface)
{
    (void)kept_table_replace(ACCESS_TABLE, interface, NULL, NULL);
}
