/* lock_check.c - see lock_check.h. */
#include "mesh/lock/lock_check.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "mesh/lock/lock_fields.h"
#include "mesh/object/rule.h"

/* ---- time ----------------------------------------------------------------------------------- */

/* A clock that is behind: what operators have signed shows that their time has come. */
static uint64_t time_now(const struct lock_chain *c, const struct lock_facts *facts)
{
    return facts->now > c->made_at ? facts->now : c->made_at;
}

/* May anything of the chain be believed now? */
static int check_time(const struct lock_chain *c, const struct lock_facts *facts, struct err *e)
{
    const struct lock_state *s = &c->state;
    uint64_t now = time_now(c, facts);
    uint64_t over_for;
    int r = lock_chain_check_usable(c, e);

    if (r < 0 || now <= s->valid_until)
        return r;
    over_for = now - s->valid_until;
    if (over_for > s->settings.trust_for)
        return err_set(e, -EINVAL,
            "the lock of \"%s\" has expired %llu s ago, and nobody is believed for longer than %u "
            "s "
            "after that",
            c->network, (unsigned long long)over_for, s->settings.trust_for);
    if (!facts->is_known)
        return err_set(e, -EINVAL,
            "the lock of \"%s\" has expired %llu s ago: nothing new is believed until an operator "
            "renews it",
            c->network, (unsigned long long)over_for);
    return 0;
}

/* ---- words ---------------------------------------------------------------------------------- */

/* @said is not what is @signed_as: in which field? */
static int refuse_field(const char *kind, const char *name, const struct lock_field *fields,
    const void *said, const void *signed_as, struct err *e)
{
    struct str a = STR_NULL;
    struct str b = STR_NULL;
    const struct lock_field *field = lock_field_differing(fields, said, signed_as, &a, &b);
    int r;

    if (field)
        r = err_set(e, -EINVAL, "%s \"%s\": its \"%s\" is %.100s, and %.100s is signed", kind, name,
            field->name, str_text(&a), str_text(&b));
    else
        r = err_set(e, -EINVAL, "%s \"%s\" differs from what is signed", kind, name);
    str_deinit(&a);
    str_deinit(&b);
    return r;
}

/* ---- keys of nodes -------------------------------------------------------------------------- */

/* Is one of the keys that follow @signed_key revoked? */
static int check_revoked(const struct lock_state *s, const struct x25519_public *signed_key,
    const struct lock_facts *facts, const char *name, struct err *e)
{
    size_t i = 0;

    while (
        i < facts->n_statements && !x25519_public_equal(&facts->statements[i].old_key, signed_key))
        i++;
    for (; i < facts->n_statements; i++)
        if (lock_state_is_revoked(s, &facts->statements[i].new_key))
            return err_set(
                e, -EINVAL, "node \"%s\": a key on the way to its own was revoked", name);
    return 0;
}

/* For how long are keys good that follow the signed one? */
static int check_age(const struct lock_chain *c, const struct lock_node *signed_as,
    const struct lock_facts *facts, struct err *e)
{
    const struct lock_settings *settings = &c->state.settings;
    uint64_t limit = 2 * (uint64_t)settings->key_rotation;
    uint64_t now = time_now(c, facts);

    if (limit == 0)
        return 0;
    if (facts->is_known)
        limit += settings->trust_for;
    if (now <= signed_as->signed_at || now - signed_as->signed_at <= limit)
        return 0;
    return err_set(e, -EINVAL,
        "node \"%s\": its key was signed %llu s ago, and keys that follow it are good for %llu s",
        signed_as->node.meta.name, (unsigned long long)(now - signed_as->signed_at),
        (unsigned long long)limit);
}

/* The node says another key than the signed one: do statements lead to it? */
static int check_key(const struct lock_chain *c, const struct node *node,
    const struct lock_node *signed_as, const struct lock_facts *facts, struct err *e)
{
    const struct lock_state *s = &c->state;
    const struct x25519_public *first = &signed_as->node.key;
    const char *name = node->meta.name;
    struct key_subject subject = {.kind = signed_as->node.hub ? KEY_KIND_HUB : KEY_KIND_NODE,
        .network = c->network,
        .name = name};
    struct x25519_public last;

    if (facts->n_statements == 0)
        return refuse_field("node", name, lock_node_fields, node, &signed_as->node, e);
    if (key_chain_verify(first, facts->statements, facts->n_statements, &subject, &last, e) < 0)
        return err_prefix(e, "node \"%s\": its key is not the one that is signed", name);
    if (!x25519_public_equal(&last, &node->key))
        return err_set(e, -EINVAL,
            "node \"%s\": statements lead from its signed key to another one than its own", name);
    if (lock_state_node_of(s, &node->key) || lock_state_is_revoked(s, &node->key))
        return err_set(e, -EINVAL, "node \"%s\": its key is another node's, or was", name);
    if (check_revoked(s, first, facts, name, e) < 0)
        return -EINVAL;
    return check_age(c, signed_as, facts, e);
}

/* A hub says another TLS key than the signed one: has its own key signed that? */
static int check_pin(const struct lock_chain *c, const struct node *node,
    const struct lock_node *signed_as, const struct lock_facts *facts, struct err *e)
{
    const struct key_statement *tls = facts->tls;
    const char *name = node->meta.name;

    if (!tls || !node->hub->has_tls_pin)
        return err_set(e, -EINVAL,
            "node \"%s\": its TLS key is not the one that is signed, and its key has signed none",
            name);
    if (tls->kind != KEY_KIND_TLS || strcmp(tls->network, c->network) != 0 ||
        strcmp(tls->subject, name) != 0 || !x25519_public_equal(&tls->old_key, &node->key) ||
        memcmp(tls->pin.b, node->hub->tls_pin.b, sizeof(tls->pin.b)) != 0)
        return err_set(e, -EINVAL,
            "node \"%s\": its TLS key is not signed, and what its key has signed is another one",
            name);
    if (key_statement_verify(tls, e) < 0)
        return err_prefix(e, "node \"%s\": its TLS key is not signed", name);
    return check_age(c, signed_as, facts, e);
}

static bool is_same_pin(const struct node_hub *a, const struct node_hub *b)
{
    return a->has_tls_pin == b->has_tls_pin &&
           (!a->has_tls_pin || memcmp(a->tls_pin.b, b->tls_pin.b, sizeof(a->tls_pin.b)) == 0);
}

/* Is the node what is signed, but for the keys of which check_key() and check_pin() have said that
 * they are as good? */
static int check_rest(const struct node *node, const struct lock_node *signed_as, struct err *e)
{
    struct lock_body said = {.kind = LOCK_NODE, .node = *node};
    struct lock_body held = {.kind = LOCK_NODE, .node = signed_as->node};
    struct node_hub hub;

    said.node.key = held.node.key;
    if (node->hub && signed_as->node.hub) {
        hub = *node->hub;
        hub.has_tls_pin = signed_as->node.hub->has_tls_pin;
        hub.tls_pin = signed_as->node.hub->tls_pin;
        said.node.hub = &hub;
    }
    if (lock_body_equal(&said, &held))
        return 0;
    return refuse_field("node", node->meta.name, lock_node_fields, &said.node, &held.node, e);
}

int lock_check_node(const struct lock_chain *c, const struct node *node,
    const struct lock_facts *facts, struct err *e)
{
    const struct lock_node *signed_as = lock_state_node(&c->state, node->meta.name);
    int r = check_time(c, facts, e);

    if (r < 0)
        return r;
    if (!signed_as)
        return err_set(e, -EINVAL, "node \"%s\": %s", node->meta.name,
            lock_state_is_revoked(&c->state, &node->key)
                ? "its key is that of a node whose removal is signed"
                : "nobody has signed it");
    if (!x25519_public_equal(&node->key, &signed_as->node.key))
        r = check_key(c, node, signed_as, facts, e);
    if (r == 0 && node->hub && signed_as->node.hub && !is_same_pin(node->hub, signed_as->node.hub))
        r = check_pin(c, node, signed_as, facts, e);
    return r == 0 ? check_rest(node, signed_as, e) : r;
}

/* ---- the other kinds ------------------------------------------------------------------------ */

int lock_check_edge(const struct lock_chain *c, const struct mesh_edge *edge,
    const struct lock_facts *facts, struct err *e)
{
    const struct mesh_edge *signed_as = lock_state_edge(&c->state, edge->nodes[0], edge->nodes[1]);
    struct lock_body said = {.kind = LOCK_EDGE, .edge = *edge};
    struct lock_body held = {.kind = LOCK_EDGE};
    int r = check_time(c, facts, e);

    if (r < 0)
        return r;
    if (said.edge.path != EDGE_PATH_OFF)
        said.edge.path = EDGE_PATH_AUTO;
    if (signed_as) {
        held.edge = *signed_as;
    } else {
        memcpy(held.edge.nodes, edge->nodes, sizeof(held.edge.nodes));
        held.edge.meta = edge->meta;
    }
    if (lock_body_equal(&said, &held))
        return 0;
    return refuse_field("edge", edge->meta.name, lock_edge_fields, &said.edge, &held.edge, e);
}

int lock_check_rule(const struct lock_chain *c, const struct object *rule,
    const struct lock_facts *facts, struct err *e)
{
    const struct object *signed_as = lock_state_rule(&c->state, rule->meta.name);
    struct lock_body said = {.kind = LOCK_RULE, .rule = *rule};
    struct lock_body held = {.kind = LOCK_RULE};
    int r = check_time(c, facts, e);

    if (r < 0)
        return r;
    if (rule_of(rule)->job[0] != '\0')
        return err_set(e, -EINVAL, "rule \"%s\" is of the job \"%s\", and signed by nobody",
            rule->meta.name, rule_of(rule)->job);
    if (!signed_as)
        return err_set(e, -EINVAL, "rule \"%s\" is signed by nobody", rule->meta.name);
    held.rule = *signed_as;
    if (lock_body_equal(&said, &held))
        return 0;
    return refuse_field("rule", rule->meta.name, lock_rule_fields, rule, signed_as, e);
}

static int check_block(const struct network *n, const struct ip_prefix *said,
    const struct ip_prefix *signed_as, struct err *e)
{
    char text[IP_PREFIX_TEXT_MAX];
    char held[IP_PREFIX_TEXT_MAX];

    if (ip_prefix_equal(said, signed_as))
        return 0;
    return err_set(e, -EINVAL, "network \"%s\": its block is %s, and %s is signed", n->meta.name,
        ip_prefix_format(said, text), ip_prefix_format(signed_as, held));
}

int lock_check_network(const struct lock_chain *c, const struct network *network,
    const struct lock_facts *facts, struct err *e)
{
    const struct lock_state *s = &c->state;
    struct lock_body said = {.kind = LOCK_SETTINGS, .settings = s->settings};
    struct lock_body held = {.kind = LOCK_SETTINGS, .settings = s->settings};
    int r = check_time(c, facts, e);

    if (r == 0 && strcmp(network->meta.name, c->network) != 0)
        r = err_set(e, -EINVAL, "network \"%s\" is not \"%s\", whose lock this is",
            network->meta.name, c->network);
    if (r == 0)
        r = check_block(network, &network->cidr4, &s->cidr4, e);
    if (r == 0)
        r = check_block(network, &network->cidr6, &s->cidr6, e);
    if (r < 0)
        return r;
    said.settings.topology = network->topology;
    said.settings.cipher = network->cipher;
    said.settings.isolation = network->isolation;
    said.settings.key_rotation = network->key_rotation;
    if (lock_body_equal(&said, &held))
        return 0;
    return refuse_field(
        "network", network->meta.name, lock_settings_fields, &said.settings, &held.settings, e);
}

int lock_check_object(const struct lock_chain *c, const struct object *o,
    const struct lock_facts *facts, struct err *e)
{
    if (o->kind == &network_kind)
        return lock_check_network(c, &o->network, facts, e);
    if (o->kind == &node_kind)
        return lock_check_node(c, &o->node, facts, e);
    if (o->kind == &mesh_edge_kind)
        return lock_check_edge(c, &o->edge, facts, e);
    if (o->kind == &rule_kind)
        return lock_check_rule(c, o, facts, e);
    return 0;
}

/* ---- removals ------------------------------------------------------------------------------- */

/* Is there something signed of the edge of that name? */
static bool has_edge(const struct lock_state *s, const char *name)
{
    char first[NAME_MAX_LEN + 1];
    const char *dashes = strstr(name, "--");
    size_t len = dashes ? (size_t)(dashes - name) : 0;

    if (!dashes || len >= sizeof(first))
        return false;
    memcpy(first, name, len);
    first[len] = '\0';
    return lock_state_edge(s, first, dashes + 2) != NULL;
}

int lock_check_gone(
    const struct lock_chain *c, const struct object_kind *kind, const char *name, struct err *e)
{
    const struct lock_state *s = &c->state;
    const struct lock_node *node = kind == &node_kind ? lock_state_node(s, name) : NULL;
    bool is_signed = (node && !node->node.ephemeral) ||
                     (kind == &mesh_edge_kind && has_edge(s, name)) ||
                     (kind == &rule_kind && lock_state_rule(s, name));

    if (!is_signed)
        return 0;
    return err_set(e, -EINVAL, "%s \"%s\" is said to be removed, and nobody has signed that",
        kind->name, name);
}
