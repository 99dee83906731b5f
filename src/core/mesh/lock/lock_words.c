/* lock_words.c - see lock_words.h. */
#include "mesh/lock/lock_words.h"

#include <string.h>

#include "base/text.h"
#include "mesh/lock/lock_fields.h"
#include "mesh/lock/lock_state.h"

/* What is new has only those fields in words in which there is something. */
static void add_all(const struct lock_field *fields, const void *object, struct str *out)
{
    for (; fields->name; fields++) {
        struct str text = STR_NULL;
        const char *said;

        fields->format(object, &text);
        said = str_text(&text);
        if (strcmp(said, "none") != 0 && strcmp(said, "no") != 0 && strcmp(said, "0") != 0)
            str_addf(out, "  %s: %s\n", fields->name, said);
        str_deinit(&text);
    }
}

/* @before: NULL: the object is new. */
static void add_fields(
    const struct lock_field *fields, const void *object, const void *before, struct str *out)
{
    unsigned n = 0;

    if (!before) {
        add_all(fields, object, out);
        return;
    }
    while (fields) {
        struct str text = STR_NULL;
        struct str was = STR_NULL;

        fields = lock_field_differing(fields, object, before, &text, &was);
        if (fields) {
            str_addf(out, "  %s: %s (was %s)\n", fields->name, str_text(&text), str_text(&was));
            fields++;
            n++;
        }
        str_deinit(&text);
        str_deinit(&was);
    }
    if (n == 0)
        str_add(out, "  all as before\n");
}

static void add_time(const char *before, uint64_t at, const char *after, struct str *out)
{
    str_add(out, before);
    lock_time_format(at, out);
    str_add(out, after);
}

static void add_genesis(const struct lock_genesis *g, struct str *out)
{
    char text[IP_PREFIX_TEXT_MAX];

    str_add(out, "the lock begins\n");
    str_addf(out, "  IPv4 block: %s\n", ip_prefix_format(&g->cidr4, text));
    str_addf(out, "  IPv6 block: %s\n", ip_prefix_format(&g->cidr6, text));
    add_all(lock_settings_fields, &g->settings, out);
    add_all(lock_signers_fields, &g->signers, out);
    add_time("  expires: ", g->valid_until, "\n", out);
}

static void add_node(const struct node *node, const struct lock_state *before, struct str *out)
{
    const struct lock_node *was = before ? lock_state_node(before, node->meta.name) : NULL;

    str_addf(out, "the node \"%s\" %s\n", node->meta.name, was ? "changes" : "is accepted");
    add_fields(lock_node_fields, node, was ? &was->node : NULL, out);
}

static void add_keys(const struct lock_keys *keys, const struct lock_state *before, struct str *out)
{
    char key[X25519_BASE64_MAX];
    char old[X25519_BASE64_MAX];

    str_addf(out, "%u nodes have these keys\n", keys->n);
    for (unsigned i = 0; i < keys->n; i++) {
        const struct lock_key *k = &keys->items[i];
        const struct lock_node *was = before ? lock_state_node(before, k->name) : NULL;

        str_addf(out, "  %s: %s", k->name, x25519_public_format(&k->key, key));
        if (was && !x25519_public_equal(&was->node.key, &k->key))
            str_addf(out, " (was %s)", x25519_public_format(&was->node.key, old));
        str_add(out, "\n");
    }
}

static void add_edge(const struct mesh_edge *edge, const struct lock_state *before, struct str *out)
{
    const struct mesh_edge *was =
        before ? lock_state_edge(before, edge->nodes[0], edge->nodes[1]) : NULL;

    str_addf(out, "the edge \"%s\" is held to this\n", edge->meta.name);
    add_fields(lock_edge_fields, edge, was, out);
}

static void add_rule(const struct object *rule, const struct lock_state *before, struct str *out)
{
    const struct object *was = before ? lock_state_rule(before, rule->meta.name) : NULL;

    str_addf(out, "the rule \"%s\" %s\n", rule->meta.name, was ? "changes" : "holds");
    add_fields(lock_rule_fields, rule, was, out);
}

static void add_hubs(const struct lock_hubs *hubs, struct str *out)
{
    str_add(out, "hubs follow each other in this order\n");
    for (unsigned i = 0; i < hubs->n; i++)
        str_addf(out, "  %u: %s\n", i + 1, hubs->names[i]);
}

static void add_tombstone(const struct lock_tombstone *t, struct str *out)
{
    char key[X25519_BASE64_MAX];

    str_addf(out,
        "the node \"%s\" is removed, and its keys are never accepted again\n  key: %s\n"
        "  tombstone: %llu\n",
        t->name, x25519_public_format(&t->key, key), (unsigned long long)t->counter);
}

static void add_join(const struct lock_join *join, struct str *out)
{
    char key[ED25519_BASE64_MAX];

    str_addf(out, "the node \"%s\" comes in by the token %s\n", join->node.meta.name,
        ed25519_public_format(&join->token, key));
    add_all(lock_node_fields, &join->node, out);
}

static void add_body(const struct lock_body *b, const struct lock_state *before, struct str *out)
{
    char key[ED25519_BASE64_MAX];

    switch (b->kind) {
    case LOCK_GENESIS:
        add_genesis(&b->genesis, out);
        break;
    case LOCK_SIGNERS:
        str_add(out, "these sign from now on\n");
        add_fields(lock_signers_fields, &b->signers, before ? &before->signers : NULL, out);
        break;
    case LOCK_RECOVER:
        str_add(out, "by a code of recovery, these sign from now on\n");
        add_fields(lock_signers_fields, &b->recover.signers, before ? &before->signers : NULL, out);
        break;
    case LOCK_SETTINGS:
        str_add(out, "the network is held to this\n");
        add_fields(lock_settings_fields, &b->settings, before ? &before->settings : NULL, out);
        break;
    case LOCK_RENEW:
        add_time("the lock is good for longer\n  expires: ", b->renew.valid_until, "\n", out);
        str_addf(out, "  version: %llu\n", (unsigned long long)b->renew.version);
        break;
    case LOCK_NODE:
        add_node(&b->node, before, out);
        break;
    case LOCK_KEYS:
        add_keys(&b->keys, before, out);
        break;
    case LOCK_HUBS:
        add_hubs(&b->hubs, out);
        break;
    case LOCK_EDGE:
        add_edge(&b->edge, before, out);
        break;
    case LOCK_RULE:
        add_rule(&b->rule, before, out);
        break;
    case LOCK_RULE_END:
        str_addf(out, "the rule \"%s\" is removed\n", b->rule_end);
        break;
    case LOCK_TOMBSTONE:
        add_tombstone(&b->tombstone, out);
        break;
    case LOCK_TOKEN:
        str_addf(out, "the token %s lets nodes in\n", ed25519_public_format(&b->token.key, key));
        add_all(lock_token_fields, &b->token, out);
        break;
    case LOCK_TOKEN_END:
        str_addf(out, "the token %s lets nobody in any more\n",
            ed25519_public_format(&b->token_end, key));
        break;
    case LOCK_JOIN:
        add_join(&b->join, out);
        break;
    }
}

/* Who has signed it, by name where that is known. */
static void add_signatures(
    const struct lock_entry *entry, const struct lock_state *before, struct str *out)
{
    const struct lock_signers *signers = entry->body.kind == LOCK_GENESIS
                                             ? &entry->body.genesis.signers
                                             : (before ? &before->signers : NULL);
    char key[ED25519_BASE64_MAX];

    for (unsigned i = 0; i < entry->n_signatures; i++) {
        const struct ed25519_public *by = &entry->signatures[i].key;
        const char *name = NULL;

        for (unsigned k = 0; signers && k < signers->n; k++)
            if (ed25519_public_compare(&signers->items[k].key, by) == 0)
                name = signers->items[k].name;
        str_addf(out, "  signed by: %s\n", name ? name : ed25519_public_format(by, key));
    }
}

void lock_words(const struct lock_entry *entry, const struct lock_state *before, struct str *out)
{
    str_addf(out, "entry %llu of the lock of network \"%s\", made ", (unsigned long long)entry->seq,
        entry->network);
    add_time("", entry->made_at, ": ", out);
    add_body(&entry->body, before, out);
    add_signatures(entry, before, out);
}
