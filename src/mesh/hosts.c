/* hosts.c - see hosts.h. */
#include "mesh/hosts.h"

#include <stdio.h>
#include <string.h>

#include "base/addr.h"
#include "base/str.h"
#include "mesh/snapshot.h"

#define BEGIN "# weft begin "
#define END   "# weft end "

const char *hosts_owner(const struct snapshot *s, char buf[static HOSTS_OWNER_MAX])
{
    (void)snprintf(buf, HOSTS_OWNER_MAX, "%.*s/%.*s", NAME_MAX_LEN, s->network.meta.name,
        NAME_MAX_LEN, s->self);
    return buf;
}

static void add_line(
    struct str *out, const struct ip_addr *addr, const char *node, const char *network)
{
    char text[IP_ADDR_TEXT_MAX];

    str_addf(
        out, "%s\t%s.%s." HOSTS_DOMAIN " %s\n", ip_addr_format(addr, text), node, network, node);
}

void hosts_add_block(struct str *out, const struct snapshot *s, bool with_v6)
{
    const char *network = s->network.meta.name;

    for (size_t i = 0; i < s->nodes.n; i++) {
        const struct node *node = &s->nodes.items[i]->node;

        add_line(out, &node->address4, node->meta.name, network);
        if (with_v6)
            add_line(out, &node->address6, node->meta.name, network);
    }
}

/* One line of a file, without its newline. */
struct line {
    const char *text;
    size_t len;
};

static bool is_marker(const struct line *l, const char *marker, const char *owner)
{
    size_t n = strlen(marker);

    return l->len == n + strlen(owner) && memcmp(l->text, marker, n) == 0 &&
           memcmp(l->text + n, owner, l->len - n) == 0;
}

/* Could it have come from hosts_add_block() for a node of that network? */
static bool is_ours(const struct line *l, const char *owner)
{
    char domain[NAME_MAX_LEN + sizeof("..") + sizeof(HOSTS_DOMAIN)];

    (void)snprintf(
        domain, sizeof(domain), ".%.*s." HOSTS_DOMAIN " ", (int)strcspn(owner, "/"), owner);
    return memchr(l->text, '\t', l->len) && memmem(l->text, l->len, domain, strlen(domain));
}

static void add_whole_block(struct str *out, const char *owner, const char *block)
{
    str_addf(out, BEGIN "%s\n%s" END "%s\n", owner, block, owner);
}

/* The line at @text, before @end; @ret_next: the one after it. */
static struct line line_at(const char *text, const char *end, const char **ret_next)
{
    const char *newline = memchr(text, '\n', (size_t)(end - text));

    *ret_next = newline ? newline + 1 : end;
    return (struct line){text, (size_t)((newline ? newline : end) - text)};
}

/* Does the block that has begun before @text have its last line? */
static bool is_closed(const char *text, const char *end, const char *owner)
{
    bool found = false;

    while (text < end && !found) {
        const char *next;
        struct line l = line_at(text, end, &next);

        if (is_marker(&l, BEGIN, owner))
            return false;
        found = is_marker(&l, END, owner);
        text = next;
    }
    return found;
}

/* After the block that has begun before @text; lines in it that somebody else has written stay. */
static const char *skip_block(struct str *out, const char *text, const char *end, const char *owner)
{
    bool closed = is_closed(text, end, owner);

    while (text < end) {
        const char *next;
        struct line l = line_at(text, end, &next);

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

void hosts_replace(
    struct str *out, const char *old, size_t len, const char *owner, const char *block)
{
    const char *end = old + len;
    const char *text = old;
    bool placed = block == NULL;

    while (text < end) {
        const char *next;
        struct line l = line_at(text, end, &next);

        if (is_marker(&l, BEGIN, owner)) {
            if (!placed)
                add_whole_block(out, owner, block);
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
    add_whole_block(out, owner, block);
}
