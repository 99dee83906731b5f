/* hosts_text.c - see hosts.h. A hosts file as text: whose lines are whose, and which names it has.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "mesh/names/hosts.h"

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
struct names {
    struct piece *items; /* owns; they borrow the file */
    size_t n;
    size_t cap;
    bool failed;
};

static void names_deinit(struct names *names)
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

static void add_name(struct names *names, const struct piece *name)
{
    if (names->n == names->cap) {
        size_t cap = names->cap ? 2 * names->cap : 64;
        struct piece *items = reallocarray(names->items, cap, sizeof(*items));

        if (!items) {
            names->failed = true;
            return;
        }
        names->items = items;
        names->cap = cap;
    }
    names->items[names->n++] = *name;
}

static void collect_names(struct names *ret, const char *text, size_t len)
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

static bool has_name(const struct names *names, const struct piece *name)
{
    return names->n > 0 &&
           bsearch(name, names->items, names->n, sizeof(*names->items), compare_names) != NULL;
}

bool hosts_mark_taken(
    struct hosts_extra *extras, size_t n_extras, const char *file, size_t len, const char *owner)
{
    _cleanup_(names_deinit) struct names names = {.n = 0};
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
static void add_line(struct str *out, struct piece line, const struct names *others)
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
    struct str *out, const char *owner, const char *block, const struct names *others)
{
    const char *end = block + strlen(block);

    str_addf(out, BEGIN "%s\n", owner);
    while (block < end) {
        struct piece line = line_at(block, end, &block);

        add_line(out, line, others);
    }
    str_addf(out, END "%s\n", owner);
}

void hosts_replace(
    struct str *out, const char *old, size_t len, const char *owner, const char *block)
{
    _cleanup_(names_deinit) struct names names = {.n = 0};
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
