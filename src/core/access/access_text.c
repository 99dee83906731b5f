/* access_text.c - see access_set.h: the lines. */
#include "access/access_set_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* Longest word of a line between blanks and commas. */
#define WORD_MAX 80

#define PORT_N 65536

struct access_builder *access_builder_new(uint64_t seed)
{
    struct access_builder *b = calloc(1, sizeof(*b));

    if (b) {
        b->seed = seed;
        htab_init(&b->by_block, seed);
    }
    return b;
}

struct access_builder *access_builder_free(struct access_builder *b)
{
    if (!b)
        return NULL;
    for (size_t i = 0; i < b->blocks.n; i++)
        free(((struct access_block **)b->blocks.items)[i]);
    htab_deinit(&b->by_block);
    free(b->blocks.items);
    free(b->own.items);
    free(b->addresses.items);
    free(b->rules.items);
    free(b->services.items);
    free(b->pairs.items);
    free(b->doors.items);
    free(b->ranges.items);
    free(b->door_sets.items);
    free(b);
    return NULL;
}

void *access_array_add(struct access_array *a, size_t size)
{
    char *items = sorted_open(a->items, a->n, size, a->n, &a->cap);

    if (!items)
        return NULL;
    a->items = items;
    items += size * a->n++;
    memset(items, 0, size);
    return items;
}

/* Room for one more in an array that has bounds. */
static void *add(
    struct access_array *a, size_t size, size_t limit, const char *what, int *ret_r, struct err *e)
{
    void *item = NULL;

    *ret_r = 0;
    if (a->n >= limit)
        *ret_r = err_set(e, -E2BIG, "there are more than %zu %s", limit, what);
    else if (!(item = access_array_add(a, size)))
        *ret_r = err_set(e, -ENOMEM, "no memory for rules");
    return item;
}

/* ---- words ---------------------------------------------------------------------------------- */

/* Copies the text up to @end or the end, and moves behind it. False: it is empty, or too long. */
static bool next_word(const char **text, char end, char ret[static WORD_MAX])
{
    const char ends[] = {end, '\0'};
    size_t len = strcspn(*text, ends);

    if (len == 0 || len >= WORD_MAX)
        return false;
    memcpy(ret, *text, len);
    ret[len] = '\0';
    *text += len + ((*text)[len] == end && end != '\0');
    return true;
}

typedef int (*item_fn)(struct access_builder *b, const char *word, struct err *e);

/* "A,B,C", at least one. */
static int each_item(struct access_builder *b, const char *list, item_fn fn, struct err *e)
{
    char word[WORD_MAX];
    size_t len = strlen(list);
    int r = 0;

    if (len == 0 || list[len - 1] == ',')
        return err_set(e, -EINVAL, "\"%.40s\" is no list with commas between", list);
    while (r == 0 && *list != '\0')
        r = next_word(&list, ',', word)
                ? fn(b, word, e)
                : err_set(e, -EINVAL, "\"%.40s\" is no list with commas between", list);
    return r;
}

/* "22-80" or, where @may_be_one, "22". */
static int parse_range(struct access_range *ret, const char *text, bool may_be_one, struct err *e)
{
    const char *rest = text;
    char first[WORD_MAX];
    uint64_t from = 0;
    uint64_t to = 0;
    int r;

    if (!strchr(text, '-') && !may_be_one)
        return err_set(e, -EINVAL, "\"%.40s\" is no range of ports, \"22-80\"", text);
    if (!next_word(&rest, '-', first))
        return err_set(e, -EINVAL, "\"%.40s\" is no port", text);
    r = parse_u64(&from, first, 0, PORT_N - 1, "port", e);
    if (r == 0)
        r = parse_u64(&to, strchr(text, '-') ? rest : first, from, PORT_N - 1, "port", e);
    if (r == 0)
        *ret = (struct access_range){(uint16_t)from, (uint16_t)to};
    return r;
}

/* ---- addresses ------------------------------------------------------------------------------ */

static int add_own(struct access_builder *b, const char *word, struct err *e)
{
    struct ip_addr addr;
    struct ip_addr *item;
    int r = ip_addr_parse(&addr, word, e);

    if (r < 0 || !(item = add(&b->own, sizeof(*item), 16, "addresses of a node", &r, e)))
        return r;
    *item = addr;
    return 0;
}

static int add_address(struct access_builder *b, const char *word, struct err *e)
{
    struct access_address *item;
    struct ip_addr addr;
    int r = ip_addr_parse(&addr, word, e);

    if (r < 0 || !(item = add(&b->addresses, sizeof(*item), ACCESS_ADDRESSES_LIMIT,
                       "addresses in sets", &r, e)))
        return r;
    *item = (struct access_address){addr, b->n_sets - 1};
    return 0;
}

static int take_self(struct access_builder *b, const char *rest, struct err *e)
{
    return each_item(b, rest, add_own, e);
}

/* A set may be empty. */
static int take_set(struct access_builder *b, const char *rest, struct err *e)
{
    if (b->n_sets == ACCESS_SETS_LIMIT)
        return err_set(e, -E2BIG, "there are more than %d sets", ACCESS_SETS_LIMIT);
    b->n_sets++;
    return *rest == '\0' ? 0 : each_item(b, rest, add_address, e);
}

static int take_more(struct access_builder *b, const char *rest, struct err *e)
{
    if (b->n_sets == 0)
        return err_set(e, -EINVAL, "\"more\" stands before the first \"set\"");
    return each_item(b, rest, add_address, e);
}

static int take_refuse(struct access_builder *b, const char *rest, struct err *e)
{
    bool is_in = strcmp(rest, "in") == 0;

    if (!is_in && strcmp(rest, "out") != 0)
        return err_set(e, -EINVAL, "\"%.40s\" is neither \"in\" nor \"out\"", rest);
    b->refuses[is_in ? ACCESS_IN : ACCESS_OUT] = true;
    return 0;
}

/* ---- rules ---------------------------------------------------------------------------------- */

static int take_rule(struct access_builder *b, const char *rest, struct err *e)
{
    struct access_built_rule *rule;
    int r = *rest == '\0' ? 0 : parse_name(rest, "rule", e);

    if (r < 0 || !(rule = add(&b->rules, sizeof(*rule), ACCESS_RULES_LIMIT, "rules", &r, e)))
        return r;
    memcpy(rule->name, rest, strlen(rest));
    rule->first = (uint32_t)b->services.n;
    return 0;
}

static struct access_built_rule *last_rule(struct access_builder *b)
{
    return b->rules.n > 0 ? (struct access_built_rule *)b->rules.items + b->rules.n - 1 : NULL;
}

/* "any", "icmp", "tcp/22-22", "udp/1-2". */
static int add_service(struct access_builder *b, const char *word, struct err *e)
{
    struct access_built_rule *rule = last_rule(b);
    struct access_service s = {.protocol = 0};
    struct access_service *item;
    int r = 0;

    if (strcmp(word, "icmp") == 0) {
        s.protocol = IP_PROTO_ICMP;
    } else if (strncmp(word, "tcp/", 4) == 0 || strncmp(word, "udp/", 4) == 0) {
        s.protocol = word[0] == 't' ? IP_PROTO_TCP : IP_PROTO_UDP;
        r = parse_range(&s.ports, word + 4, false, e);
    } else if (strcmp(word, "any") != 0) {
        r = err_set(e, -EINVAL, "\"%.40s\" is none of any, icmp, tcp/22-80, udp/22-80", word);
    }
    if (r == 0 && rule->n == ACCESS_SERVICES_LIMIT)
        r = err_set(e, -E2BIG, "a rule allows more than %d services", ACCESS_SERVICES_LIMIT);
    if (r < 0 || !(item = add(&b->services, sizeof(s), SIZE_MAX, "services", &r, e)))
        return r;
    *item = s;
    rule->n++;
    return 0;
}

static int take_allow(struct access_builder *b, const char *rest, struct err *e)
{
    if (!last_rule(b))
        return err_set(e, -EINVAL, "\"allow\" stands before the first \"rule\"");
    return each_item(b, rest, add_service, e);
}

/* The number of a block, which is new or not. */
static int find_block(struct access_builder *b, const char *text, uint32_t *ret, struct err *e)
{
    struct access_block *block;
    struct access_block **item;
    struct ip_prefix prefix;
    uint64_t hash;
    int r = ip_prefix_parse(&prefix, text, e);

    if (r < 0)
        return r;
    prefix = ip_prefix_mask(&prefix);
    hash = hash_bytes(b->seed, &prefix.addr, sizeof(prefix.addr)) ^ prefix.len;
    for (struct htab_link *l = htab_first(&b->by_block, hash); l; l = htab_next(l, hash)) {
        block = container_of(l, struct access_block, link);
        if (ip_prefix_equal(&block->prefix, &prefix)) {
            *ret = block->number;
            return 0;
        }
    }
    block = calloc(1, sizeof(*block));
    if (!block || htab_add(&b->by_block, &block->link, hash) < 0) {
        free(block);
        return err_set(e, -ENOMEM, "no memory for rules");
    }
    block->prefix = prefix;
    block->number = (uint32_t)b->blocks.n;
    item = add(&b->blocks, sizeof(*item), ACCESS_BLOCKS_LIMIT, "blocks", &r, e);
    if (!item) {
        htab_remove(&b->by_block, &block->link);
        free(block);
        return r;
    }
    *item = block;
    *ret = block->number;
    return 0;
}

/* The number of a set that there is. */
static int parse_set(const struct access_builder *b, const char *text, uint32_t *ret, struct err *e)
{
    uint64_t number = 0;

    if (b->n_sets == 0)
        return err_set(e, -EINVAL, "set \"%.40s\" stands before the first \"set\"", text);
    if (parse_u64(&number, text, 0, b->n_sets - 1, "set", e) < 0)
        return -EINVAL;
    *ret = (uint32_t)number;
    return 0;
}

/* "set:1", "others:10.42.0.0/16", "10.9.0.0/24". */
static int parse_peer(struct access_builder *b, const char *text, uint32_t *ret, struct err *e)
{
    static const char set[] = "set:";
    static const char others[] = "others:";
    uint32_t number = 0;
    enum access_peer_kind kind = ACCESS_PEER_BLOCK;
    int r;

    if (strncmp(text, set, sizeof(set) - 1) == 0) {
        kind = ACCESS_PEER_SET;
        r = parse_set(b, text + sizeof(set) - 1, &number, e);
    } else if (strncmp(text, others, sizeof(others) - 1) == 0) {
        kind = ACCESS_PEER_OTHERS;
        r = find_block(b, text + sizeof(others) - 1, &number, e);
    } else {
        r = find_block(b, text, &number, e);
    }
    if (r == 0)
        *ret = ACCESS_PEER(kind, number);
    return r;
}

static int add_pair(struct access_builder *b, uint32_t scope, uint32_t peer, struct err *e)
{
    struct access_pair *pair;
    int r = 0;

    if (b->rules.n == 0)
        return err_set(e, -EINVAL, "\"in\" or \"out\" stands before the first \"rule\"");
    pair = add(&b->pairs, sizeof(*pair), ACCESS_PAIRS_LIMIT, "lines \"in\" and \"out\"", &r, e);
    if (pair)
        *pair = (struct access_pair){scope, peer, (uint32_t)b->rules.n - 1};
    return r;
}

static int take_in(struct access_builder *b, const char *rest, struct err *e)
{
    char word[WORD_MAX];
    uint32_t peer = 0;
    uint32_t block = 0;
    int r;

    if (!next_word(&rest, ' ', word) || *rest == '\0')
        return err_set(e, -EINVAL, "\"in\" names a peer and a block");
    r = parse_peer(b, word, &peer, e);
    if (r == 0)
        r = find_block(b, rest, &block, e);
    return r == 0 ? add_pair(b, block, peer, e) : r;
}

static int take_out(struct access_builder *b, const char *rest, struct err *e)
{
    uint32_t peer = 0;
    int r = parse_peer(b, rest, &peer, e);

    return r == 0 ? add_pair(b, ACCESS_SCOPE_OUT, peer, e) : r;
}

/* ---- ports that jobs close ------------------------------------------------------------------ */

static struct access_door *last_door(struct access_builder *b)
{
    return (struct access_door *)b->doors.items + b->doors.n - 1;
}

static int add_range(struct access_builder *b, const char *word, struct err *e)
{
    struct access_range *item;
    struct access_range range;
    int r = parse_range(&range, word, true, e);

    if (r < 0 || !(item = add(&b->ranges, sizeof(range), ACCESS_SEGMENTS_LIMIT,
                       "ports that are open or shut", &r, e)))
        return r;
    *item = range;
    last_door(b)->n_ranges++;
    return 0;
}

static int add_door_set(struct access_builder *b, const char *word, struct err *e)
{
    uint32_t *item;
    uint32_t set = 0;
    int r = parse_set(b, word, &set, e);

    if (r < 0 ||
        !(item = add(&b->door_sets, sizeof(set), ACCESS_SEGMENTS_LIMIT, "sets of \"shut\"", &r, e)))
        return r;
    *item = set;
    last_door(b)->n_sets++;
    return 0;
}

static int add_door(struct access_builder *b, bool is_open, struct err *e)
{
    struct access_door *door;
    int r = 0;

    door = add(&b->doors, sizeof(*door), ACCESS_SHUT_LIMIT, "lines \"open\" and \"shut\"", &r, e);
    if (door)
        *door = (struct access_door){.first_range = (uint32_t)b->ranges.n,
            .first_set = (uint32_t)b->door_sets.n,
            .is_open = is_open};
    return r;
}

static int take_open(struct access_builder *b, const char *rest, struct err *e)
{
    int r = add_door(b, true, e);

    return r == 0 ? each_item(b, rest, add_range, e) : r;
}

/* As long as a line may be. */
static int take_shut(struct access_builder *b, const char *rest, struct err *e)
{
    const char *sets = strchr(rest, ' ');
    char *ports = sets ? strndup(rest, (size_t)(sets - rest)) : NULL;
    int r;

    if (!sets)
        return err_set(e, -EINVAL, "\"shut\" names ports and sets");
    r = ports ? add_door(b, false, e) : err_set(e, -ENOMEM, "no memory for rules");
    if (r == 0)
        r = each_item(b, ports, add_range, e);
    if (r == 0)
        r = each_item(b, sets + 1, add_door_set, e);
    free(ports);
    return r;
}

/* ---- lines ---------------------------------------------------------------------------------- */

static const struct {
    const char *word;
    int (*take)(struct access_builder *b, const char *rest, struct err *e);
} kinds[] = {
    {"allow", take_allow},
    {"in", take_in},
    {"more", take_more},
    {"open", take_open},
    {"out", take_out},
    {"refuse", take_refuse},
    {"rule", take_rule},
    {"self", take_self},
    {"set", take_set},
    {"shut", take_shut},
};

int access_builder_line(struct access_builder *b, const char *line, struct err *e)
{
    size_t len = strcspn(line, " ");
    const char *rest = line[len] == ' ' ? line + len + 1 : line + len;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (strlen(kinds[i].word) == len && memcmp(kinds[i].word, line, len) == 0)
            return kinds[i].take(b, rest, e);
    return err_set(e, -EINVAL, "\"%.40s\" begins with none of the words of rules", line);
}
