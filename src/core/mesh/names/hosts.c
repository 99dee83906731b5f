/* hosts.c - see hosts.h: the text of a hosts file, the names in it, and which of them may be. */
#include "mesh/names/hosts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/addr.h"
#include "base/containers.h"
#include "base/err.h"
#include "base/text.h"
#include "mesh/render/render.h"
#include "mesh/snapshot/snapshot.h"

/* Networks with more nodes have qualified names only: each extra costs the resolver a question. */
#define HOSTS_EXTRAS_MAX 2048

#define BEGIN "# weft begin "
#define END   "# weft end "

#define WHITE " \t\r\v\f"

/* Some bytes of a text: a line without its newline, or a word. */
struct piece {
    const char *text;
    size_t len;
};

/* ---- lines ---------------------------------------------------------------------------------- */

/* The line at @text, before @end; @ret_next: the one after it. */
static struct piece line_at(const char *text, const char *end, const char **ret_next)
{
    const char *newline = memchr(text, '\n', (size_t)(end - text));

    *ret_next = newline ? newline + 1 : end;
    return (struct piece){text, (size_t)((newline ? newline : end) - text)};
}

static bool is_marker(const struct piece *l, const char *marker, const struct piece *owner)
{
    size_t n = strlen(marker);

    return l->len == n + owner->len && memcmp(l->text, marker, n) == 0 &&
           memcmp(l->text + n, owner->text, owner->len) == 0;
}

/* The first word of @rest, of length 0 when there is none. @rest becomes what follows the word. */
static struct piece next_word(struct piece *rest)
{
    struct piece word;

    while (rest->len > 0 && memchr(WHITE, rest->text[0], sizeof(WHITE) - 1)) {
        rest->text++;
        rest->len--;
    }
    word = (struct piece){rest->text, 0};
    while (word.len < rest->len && !memchr(WHITE, word.text[word.len], sizeof(WHITE) - 1))
        word.len++;
    rest->text += word.len;
    rest->len -= word.len;
    return word;
}

/* Could it have come from hosts_add_block() for a node of that network? */
static bool is_ours(const struct piece *l, const struct piece *owner)
{
    const char *slash = memchr(owner->text, '/', owner->len);
    const size_t network_len = slash ? (size_t)(slash - owner->text) : owner->len;
    const size_t domain_len = strlen(HOSTS_DOMAIN);
    const char *tab = memchr(l->text, '\t', l->len);
    struct piece rest = {tab, tab ? (size_t)(l->text + l->len - tab) : 0};
    struct piece name = tab ? next_word(&rest) : (struct piece){NULL, 0};
    const char *end;

    /* NODE.NETWORK.weft, with a node of at least one character. */
    if (name.len < 1 + 1 + network_len + 1 + domain_len)
        return false;
    end = name.text + name.len;
    return memcmp(end - domain_len, HOSTS_DOMAIN, domain_len) == 0 &&
           end[-(ptrdiff_t)domain_len - 1] == '.' &&
           memcmp(end - domain_len - 1 - network_len, owner->text, network_len) == 0 &&
           end[-(ptrdiff_t)(domain_len + 1 + network_len) - 1] == '.';
}

/* Does the block that has begun before @text have its last line? */
static bool is_closed(const char *text, const char *end, const struct piece *owner)
{
    bool found = false;

    while (text < end && !found) {
        const char *next;
        struct piece l = line_at(text, end, &next);

        if (is_marker(&l, BEGIN, owner))
            return false;
        found = is_marker(&l, END, owner);
        text = next;
    }
    return found;
}

/* After the block that has begun before @text; lines in it that somebody else has written stay. */
static const char *skip_block(
    struct str *out, const char *text, const char *end, const struct piece *owner)
{
    bool closed = is_closed(text, end, owner);

    while (text < end) {
        const char *next;
        struct piece l = line_at(text, end, &next);

        if (is_marker(&l, END, owner))
            return next;
        if (!is_ours(&l, owner)) {
            if (!closed)
                break;
            str_add_bytes(out, text, (size_t)(next - text));
        }
        text = next;
    }
    return text;
}

/* @block: with its first and last line, or NULL for none. */
static void replace_one(struct str *out, const char *old, size_t len, const struct piece *owner,
    const struct str *block)
{
    const char *end = old + len;
    const char *text = old;
    bool placed = block == NULL;

    while (text < end) {
        const char *next;
        struct piece l = line_at(text, end, &next);

        if (is_marker(&l, BEGIN, owner)) {
            if (!placed)
                str_add_bytes(out, str_text(block), block->len);
            placed = true;
            text = skip_block(out, next, end, owner);
            continue;
        }
        str_add_bytes(out, text, (size_t)(next - text));
        text = next;
    }
    if (placed)
        return;
    if (len > 0 && old[len - 1] != '\n')
        str_add(out, "\n");
    str_add_bytes(out, str_text(block), block->len);
}

/* Appends the file without the block that an older version wrote for the owner NETWORK/NODE. */
static void remove_older(struct str *out, const char *old, size_t len, const char *owner)
{
    struct piece older = {owner, strlen(owner)};
    const char *node = strchr(owner, '/');
    const char *hub = node ? strchr(node + 1, '/') : NULL;

    if (hub)
        older.len = (size_t)(hub - owner);
    if (hub)
        replace_one(out, old, len, &older, NULL);
    else
        str_add_bytes(out, old, len);
}

/* ---- names ---------------------------------------------------------------------------------- */

/* All names of a file, sorted, as a resolver compares them: without regard to case. */
struct name_set {
    struct piece *items; /* owns; they borrow the file */
    size_t n;
    size_t cap;
    bool failed;
};

static void name_set_deinit(struct name_set *names)
{
    free(names->items);
}

static int compare_names(const void *a, const void *b)
{
    const struct piece *x = a;
    const struct piece *y = b;
    int r = strncasecmp(x->text, y->text, x->len < y->len ? x->len : y->len);

    return r != 0 ? r : (x->len > y->len) - (x->len < y->len);
}

static void add_name(struct name_set *names, const struct piece *name)
{
    struct piece *items =
        sorted_open(names->items, names->n, sizeof(*items), names->n, &names->cap);

    names->failed |= !items;
    if (!items)
        return;
    names->items = items;
    items[names->n++] = *name;
}

static void collect_names(struct name_set *ret, const char *text, size_t len)
{
    const char *end = text + len;

    while (text < end && !ret->failed) {
        struct piece rest = line_at(text, end, &text);
        const char *comment = memchr(rest.text, '#', rest.len);
        struct piece word;

        if (comment)
            rest.len = (size_t)(comment - rest.text);
        (void)next_word(&rest); /* the address */
        for (word = next_word(&rest); word.len > 0; word = next_word(&rest))
            add_name(ret, &word);
    }
    if (ret->n > 0)
        qsort(ret->items, ret->n, sizeof(*ret->items), compare_names);
}

static bool has_name(const struct name_set *names, const struct piece *name)
{
    return names->n > 0 &&
           bsearch(name, names->items, names->n, sizeof(*names->items), compare_names) != NULL;
}

bool hosts_mark_taken(
    struct hosts_extra *extras, size_t n_extras, const char *file, size_t len, const char *owner)
{
    _cleanup_(name_set_deinit) struct name_set names = {.n = 0};
    _cleanup_(str_deinit) struct str now = STR_NULL;
    _cleanup_(str_deinit) struct str rest = STR_NULL;
    const struct piece whole = {owner, strlen(owner)};

    remove_older(&now, file, len, owner);
    replace_one(&rest, str_text(&now), now.len, &whole, NULL);
    collect_names(&names, str_text(&rest), rest.len);
    if (now.failed || rest.failed || names.failed)
        return false;
    for (size_t i = 0; i < n_extras; i++)
        if (has_name(&names, &(struct piece){extras[i].name, strlen(extras[i].name)}) &&
            extras[i].verdict != HOSTS_RESERVED && extras[i].verdict != HOSTS_CLAIMED)
            extras[i].verdict = HOSTS_IN_FILE;
    return true;
}

/* ---- putting it in -------------------------------------------------------------------------- */

/* One line of a block: the address and the qualified name, and those extras that nobody else has.
 */
static void add_line_without(struct str *out, struct piece line, const struct name_set *others)
{
    const char *start = line.text;
    struct piece word;

    (void)next_word(&line);
    (void)next_word(&line);
    str_add_bytes(out, start, (size_t)(line.text - start));
    for (word = next_word(&line); word.len > 0; word = next_word(&line)) {
        if (has_name(others, &word))
            continue;
        str_add(out, " ");
        str_add_bytes(out, word.text, word.len);
    }
    str_add(out, "\n");
}

/* @block with its first and last line, and what @others leave of it. */
static void make_block(
    struct str *out, const char *owner, const char *block, const struct name_set *others)
{
    const char *end = block + strlen(block);

    str_addf(out, BEGIN "%s\n", owner);
    while (block < end) {
        struct piece line = line_at(block, end, &block);

        add_line_without(out, line, others);
    }
    str_addf(out, END "%s\n", owner);
}

void hosts_replace(
    struct str *out, const char *old, size_t len, const char *owner, const char *block)
{
    _cleanup_(name_set_deinit) struct name_set names = {.n = 0};
    _cleanup_(str_deinit) struct str now = STR_NULL;
    _cleanup_(str_deinit) struct str rest = STR_NULL;
    _cleanup_(str_deinit) struct str made = STR_NULL;
    const struct piece whole = {owner, strlen(owner)};

    remove_older(&now, old, len, owner);
    if (block) {
        replace_one(&rest, str_text(&now), now.len, &whole, NULL);
        collect_names(&names, str_text(&rest), rest.len);
        make_block(&made, owner, block, &names);
    }
    replace_one(out, str_text(&now), now.len, &whole, block ? &made : NULL);
    out->failed |= now.failed || rest.failed || made.failed || names.failed;
}

/* ---- the owner ---- */

/* Bytes of the hub's key in an owner: enough to tell the hubs of one machine apart. */
#define HUB_ID_LEN 4

const char *hosts_owner(const struct snapshot *s, char buf[static HOSTS_OWNER_MAX])
{
    const struct node *hub = render_hub(s);
    char id[2 * HUB_ID_LEN + 1] = "";

    if (hub)
        hex_encode(hub->key.b, HUB_ID_LEN, id);
    (void)snprintf(buf, HOSTS_OWNER_MAX, "%.*s/%.*s/%s", NAME_MAX_LEN, s->network.meta.name,
        NAME_MAX_LEN, s->self, id);
    return buf;
}

/* ---- extras --------------------------------------------------------------------------------- */

static int compare_hostnames(const void *a, const void *b)
{
    return strcmp((*(struct hosts_extra *const *)a)->name, (*(struct hosts_extra *const *)b)->name);
}

/* A host name that two nodes claim is nobody's. */
static void mark_claimed(struct hosts_extra *extras, size_t n)
{
    _cleanup_(freep) struct hosts_extra **sorted = calloc(n + 1, sizeof(struct hosts_extra *));
    size_t m = 0;

    for (size_t i = 0; i < n; i++) {
        /* Without memory to compare them, no host name is given. */
        if (extras[i].is_hostname && sorted)
            sorted[m++] = &extras[i];
        else if (extras[i].is_hostname)
            extras[i].verdict = HOSTS_CLAIMED;
    }
    if (m > 0)
        qsort(sorted, m, sizeof(struct hosts_extra *), compare_hostnames);
    for (size_t i = 1; i < m; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            sorted[i - 1]->verdict = sorted[i]->verdict = HOSTS_CLAIMED;
}

struct hosts_extra *hosts_list_extras(const struct snapshot *s, size_t *ret_n)
{
    struct hosts_extra *extras;
    size_t n = 0;

    *ret_n = 0;
    if (s->nodes.n > HOSTS_EXTRAS_MAX)
        return NULL;
    extras = calloc(2 * s->nodes.n + 1, sizeof(*extras));
    if (!extras)
        return NULL;
    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        bool is_hub = node->hub && strcmp(node->meta.name, "hub") == 0;

        extras[n++] = (struct hosts_extra){.name = node->meta.name,
            .node = i,
            .verdict = reserved_is(node->meta.name) && !is_hub ? HOSTS_RESERVED : HOSTS_KEPT};
        if (node->hostname && strcmp(node->hostname, node->meta.name) != 0)
            extras[n++] = (struct hosts_extra){.name = node->hostname,
                .node = i,
                .is_hostname = true,
                .verdict = reserved_is(node->hostname)             ? HOSTS_RESERVED
                           : snapshot_find_node(s, node->hostname) ? HOSTS_CLAIMED
                                                                   : HOSTS_KEPT};
    }
    mark_claimed(extras, n);
    *ret_n = n;
    return extras;
}

const char *hosts_describe(const struct hosts_extra *x, char buf[static 128])
{
    static const char *const words[HOSTS_VERDICT_N] = {
        [HOSTS_RESERVED] = "the name is reserved",
        [HOSTS_CLAIMED] = "it is the name of another node or of its machine, too",
        [HOSTS_IN_FILE] = "another line of the hosts file has it",
        [HOSTS_ELSEWHERE] = "this machine's name server knows it",
        [HOSTS_PENDING] = "this machine's resolver is being asked whether it knows it",
    };
    char text[IP_ADDR_TEXT_MAX];

    if (x->verdict == HOSTS_ELSEWHERE && !ip_addr_is_none(&x->elsewhere))
        (void)snprintf(buf, 128, "this machine's resolver leads it to %s",
            ip_addr_format(&x->elsewhere, text));
    else
        (void)snprintf(buf, 128, "%s", words[x->verdict] ? words[x->verdict] : "");
    return buf;
}

/* ---- the block ------------------------------------------------------------------------------ */

/* The hub that serves the rendezvous where there are several hubs; NULL: not said, or a node has
 * the name. */
static const struct node *find_rendezvous(const struct snapshot *s)
{
    const struct node *owner = NULL;

    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;

        if (strcmp(node->meta.name, HOSTS_RENDEZVOUS) == 0)
            return NULL;
        if (node->hub && node->hub->rendezvous_epoch != 0 &&
            (!owner || node->hub->rendezvous_epoch > owner->hub->rendezvous_epoch))
            owner = node;
    }
    return owner;
}

/* @extras: of this node only. @meets: it serves the rendezvous. */
static void add_line(struct str *out, const struct ip_addr *addr, const struct node *node,
    const char *network, const struct hosts_extra *extras, size_t n_extras, bool meets)
{
    char text[IP_ADDR_TEXT_MAX];

    str_addf(out, "%s\t%s.%s." HOSTS_DOMAIN, ip_addr_format(addr, text), node->meta.name, network);
    for (size_t i = 0; i < n_extras; i++)
        if (extras[i].verdict == HOSTS_KEPT)
            str_addf(out, " %s", extras[i].name);
    if (meets)
        str_addf(out, " " HOSTS_RENDEZVOUS ".%s." HOSTS_DOMAIN, network);
    str_add(out, "\n");
}

void hosts_add_block(struct str *out, const struct snapshot *s, const struct hosts_extra *extras,
    size_t n_extras, bool with_v6)
{
    const char *network = s->network.meta.name;
    const struct node *rendezvous = find_rendezvous(s);
    size_t at = 0;

    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;
        size_t first = at;

        while (at < n_extras && extras[at].node == i)
            at++;
        add_line(
            out, &node->address4, node, network, &extras[first], at - first, node == rendezvous);
        if (with_v6)
            add_line(out, &node->address6, node, network, &extras[first], at - first,
                node == rendezvous);
    }
}

/* ---- what may be put in ---- */

#define LINE_LEN_MAX 1024

static const char name_letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

int hosts_check_owner(const struct hosts_rules *rules, const char *owner, struct err *e)
{
    char begin[sizeof(rules->network) + sizeof(rules->node) + 3];
    size_t len;

    (void)snprintf(begin, sizeof(begin), "%s/%s/", rules->network, rules->node);
    len = strlen(begin);
    if (strncmp(owner, begin, len) == 0 && strlen(owner) < HOSTS_OWNER_MAX &&
        owner[len + strspn(owner + len, "0123456789abcdef")] == '\0')
        return 0;
    return err_set(e, -EINVAL, "\"%.100s\" is not the owner of lines of this node", owner);
}

/*
 * A node's name, qualified or bare. Neither it nor the name of a machine has a dot of its own, so
 * no name of the Internet is one. The hub alone may have the reserved name "hub": see
 * hosts_list_extras().
 */
static bool is_name(const struct hosts_rules *rules, const char *name)
{
    size_t len = strspn(name, name_letters);
    size_t network_len = strlen(rules->network);
    const char *domain = name + len;

    if (len == 0 || len > NAME_MAX_LEN || name[0] == '-')
        return false;
    if (domain[0] == '\0')
        return strcmp(name, "hub") == 0 || !reserved_is(name);
    /* The network's own domain, which nobody else uses. */
    return domain[0] == '.' && strncmp(domain + 1, rules->network, network_len) == 0 &&
           strcmp(domain + 1 + network_len, "." HOSTS_DOMAIN) == 0;
}

/* @line: one line without its end, to be cut into words. */
static int check_line(const struct hosts_rules *rules, char *line, struct err *e)
{
    char *rest = NULL;
    const char *word = strtok_r(line, " \t", &rest);
    struct ip_addr address;
    unsigned n = 0;

    if (!word || ip_addr_parse(&address, word, NULL) < 0 ||
        (!ip_prefix_has(&rules->cidr4, &address) && !ip_prefix_has(&rules->cidr6, &address)))
        return err_set(e, -EINVAL, "\"%.60s\" is no address of the network", word ? word : "");
    for (word = strtok_r(NULL, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest), n++)
        if (!is_name(rules, word))
            return err_set(e, -EINVAL, "\"%.60s\" is no name for a node", word);
    return n > 0 ? 0 : err_set(e, -EINVAL, "an address has no name");
}

int hosts_check_block(const struct hosts_rules *rules, const char *block, size_t len, struct err *e)
{
    char line[LINE_LEN_MAX];
    unsigned number = 0;

    for (size_t off = 0, n; off < len; off += n + 1) {
        const char *end = memchr(block + off, '\n', len - off);

        number++;
        n = end ? (size_t)(end - block) - off : 0;
        if (!end || n >= sizeof(line) || memchr(block + off, '\0', n))
            return err_set(e, -EINVAL, "line %u is not a line of text", number);
        memcpy(line, block + off, n);
        line[n] = '\0';
        if (check_line(rules, line, e) < 0)
            return err_prefix(e, "line %u", number);
    }
    return 0;
}

/* ---- reserved names ---- */

/* In byte order, for bsearch(3). */
static const char *const reserved_names[] = {"alertmanager", "alt", "api", "apt", "arpa",
    "artifactory", "auth", "broadcasthost", "ceph", "clickhouse", "consul", "containerd", "corp",
    "dhcp", "dns", "docker", "elasticsearch", "etcd", "example", "ftp", "gateway", "gerrit", "git",
    "gitea", "github", "gitlab", "grafana", "harbor", "home", "hub", "huggingface", "imap",
    "influxdb", "instance-data", "internal", "invalid", "ipa", "isatap", "jaeger", "jenkins",
    "jupyter", "kafka", "kdc", "kerberos", "keycloak", "krb5", "kubernetes", "lan", "ldap", "ldaps",
    "local", "localdomain", "localhost", "localhost4", "localhost6", "localnet", "loghost", "loki",
    "loopback", "mail", "mailhost", "mariadb", "memcached", "metadata", "minio", "mirror", "mlflow",
    "mongo", "mongodb", "mqtt", "mysql", "nats", "nexus", "nfs", "ns", "ntp", "onion", "opensearch",
    "otel", "pool", "pop3", "postgres", "postgresql", "prometheus", "proxy", "pushgateway", "pypi",
    "rabbitmq", "redis", "registry", "resolver", "router", "smtp", "squid", "ssh", "sso", "statsd",
    "syslog", "tempo", "tensorboard", "test", "time", "timehost", "tracker", "vault", "wandb",
    "weft", "wpad", "www", "zookeeper"};

static int compare(const void *name, const void *item)
{
    return strcmp(name, *(const char *const *)item);
}

/* Would inet_aton(3) take it for an address? It reads decimal, octal and hexadecimal numbers. */
static bool is_number(const char *name)
{
    bool is_hex = name[0] == '0' && name[1] == 'x';
    const char *digits = is_hex ? "0123456789abcdef" : "0123456789";

    return strspn(name + (is_hex ? 2 : 0), digits) == strlen(name) - (is_hex ? 2 : 0);
}

bool reserved_is(const char *name)
{
    return strncmp(name, "ip6-", 4) == 0 || is_number(name) ||
           bsearch(name, reserved_names, sizeof(reserved_names) / sizeof(*reserved_names),
               sizeof(*reserved_names), compare) != NULL;
}

size_t reserved_count(void)
{
    return sizeof(reserved_names) / sizeof(*reserved_names);
}

int reserved_check(const char *name, struct err *e)
{
    if (!reserved_is(name))
        return 0;
    return err_set(e, -EINVAL,
        "node name \"%s\" is reserved, because programs reach something else by it; \"%s-1\" may "
        "be had, for example",
        name, strncmp(name, "ip6-", 4) == 0 || is_number(name) ? "node" : name);
}
