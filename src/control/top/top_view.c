/* top_view.c - see top_view.h. */
#include "top_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- bytes to keys --------------------------------------------------------------------------- */

/* What follows the escape. */
static const struct {
    const char *bytes;
    int key;
} sequences[] = {
    {"[A", TOP_KEY_UP},
    {"[B", TOP_KEY_DOWN},
    {"[C", TOP_KEY_RIGHT},
    {"[D", TOP_KEY_LEFT},
    {"[H", TOP_KEY_HOME},
    {"[F", TOP_KEY_END},
    {"[Z", TOP_KEY_BACK_TAB},
    {"[1~", TOP_KEY_HOME},
    {"[4~", TOP_KEY_END},
    {"[5~", TOP_KEY_PAGE_UP},
    {"[6~", TOP_KEY_PAGE_DOWN},
    {"[7~", TOP_KEY_HOME},
    {"[8~", TOP_KEY_END},
    {"OA", TOP_KEY_UP},
    {"OB", TOP_KEY_DOWN},
    {"OC", TOP_KEY_RIGHT},
    {"OD", TOP_KEY_LEFT},
    {"OH", TOP_KEY_HOME},
    {"OF", TOP_KEY_END},
};

static int find_sequence(const struct top_keys *k)
{
    for (size_t i = 0; i < sizeof(sequences) / sizeof(*sequences); i++)
        if (strlen(sequences[i].bytes) == k->n - 1 &&
            strncmp(sequences[i].bytes, k->bytes + 1, k->n - 1) == 0)
            return sequences[i].key;
    return TOP_KEY_NONE;
}

/* Does the byte end a sequence? One that begins with "[" ends with a byte from '@' on. */
static bool is_end(const struct top_keys *k)
{
    char last = k->bytes[k->n - 1];

    return k->n >= 3 ? k->bytes[1] != '[' || (last >= '@' && last <= '~')
                     : last != '[' && last != 'O';
}

int top_keys_take(struct top_keys *k, char byte)
{
    int key = byte == '\r' ? TOP_KEY_ENTER : byte == '\b' ? TOP_KEY_ERASE : (unsigned char)byte;

    if (k->n == 0 && byte != TOP_KEY_ESCAPE)
        return key;
    /* A second escape begins anew. */
    if (byte == TOP_KEY_ESCAPE)
        k->n = 0;
    k->bytes[k->n++] = byte;
    if (k->n == 1)
        return TOP_KEY_NONE;
    if (!is_end(k) && k->n < sizeof(k->bytes))
        return TOP_KEY_NONE;
    key = find_sequence(k);
    k->n = 0;
    return key;
}

int top_keys_pause(struct top_keys *k)
{
    int key = k->n == 1 ? TOP_KEY_ESCAPE : TOP_KEY_NONE;

    k->n = 0;
    return key;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool has_text(const char *text, const char *wanted)
{
    for (; *text; text++) {
        size_t i = 0;

        while (wanted[i] && lower(text[i]) == lower(wanted[i]))
            i++;
        if (!wanted[i])
            return true;
    }
    return wanted[0] == '\0';
}

static bool is_shown(const struct top_view *v, const struct top_row *row, enum top_pane pane)
{
    if (v->filter[0] == '\0')
        return true;
    for (unsigned i = 0; i < top_panes[pane].n_columns; i++)
        if (has_text(row->cells[i], v->filter))
            return true;
    return false;
}

/* What rows are sorted by. */
struct order {
    const struct top_rows *rows;
    unsigned column;
    bool is_number;
};

/* What is not known comes last; what is equal stays in the order of the model. */
static int compare(const void *left, const void *right, void *ctx)
{
    const struct order *o = ctx;
    size_t a = *(const size_t *)left;
    size_t b = *(const size_t *)right;
    const struct top_row *x = &o->rows->items[a];
    const struct top_row *y = &o->rows->items[b];
    double n = x->numbers[o->column];
    double m = y->numbers[o->column];
    int order = a < b ? -1 : a > b;

    if (!o->is_number) {
        int text = strcmp(x->cells[o->column], y->cells[o->column]);

        return text != 0 ? text : order;
    }
    if (isnan(n) || isnan(m))
        return isnan(n) && isnan(m) ? order : isnan(n) ? 1 : -1;
    return n > m ? -1 : n < m ? 1 : order;
}

size_t *top_view_rows(
    const struct top_view *v, const struct top_model *m, enum top_pane pane, size_t *ret_n)
{
    const struct top_rows *rows = &m->panes[pane];
    unsigned sort = v->places[pane].sort;
    size_t *shown = rows->n > 0 ? malloc(rows->n * sizeof(*shown)) : NULL;
    size_t n = 0;

    for (size_t i = 0; shown && i < rows->n; i++)
        if (is_shown(v, &rows->items[i], pane))
            shown[n++] = i;
    if (n > 1 && sort > 0) {
        struct order order = {.rows = rows,
            .column = sort - 1,
            .is_number = top_panes[pane].columns[sort - 1].is_number};

        qsort_r(shown, n, sizeof(*shown), compare, &order);
    }
    *ret_n = n;
    return shown;
}

size_t top_view_selected(const struct top_view *v, const struct top_model *m, enum top_pane pane,
    const size_t *shown, size_t n)
{
    const struct top_place *place = &v->places[pane];

    if (place->key[0] == '\0' || n == 0)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(m->panes[pane].items[shown[i]].key, place->key) == 0)
            return i;
    return place->index < n ? place->index : n - 1;
}

/* Select the row that is number @index among those that are shown, or the last one. */
static void select_row(
    struct top_view *v, const struct top_model *m, const size_t *shown, size_t n, size_t index)
{
    struct top_place *place = &v->places[v->pane];

    if (n == 0)
        return;
    place->index = index < n ? index : n - 1;
    (void)snprintf(
        place->key, sizeof(place->key), "%s", m->panes[v->pane].items[shown[place->index]].key);
}

void top_view_follow(struct top_view *v, const struct top_model *m)
{
    for (unsigned pane = 0; pane < TOP_PANE_N; pane++) {
        size_t n;
        size_t *shown = top_view_rows(v, m, (enum top_pane)pane, &n);

        if (n > 0 && v->places[pane].key[0] != '\0')
            v->places[pane].index = top_view_selected(v, m, (enum top_pane)pane, shown, n);
        free(shown);
    }
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* Lines by which a page moves. */
static size_t page_of(const struct top_view *v)
{
    return v->n_lines > 12 ? v->n_lines - 10 : 2;
}

/* Where a key leads that moves from @index of @n; @index itself: it is none of these. */
static size_t moved(const struct top_view *v, int key, size_t index, size_t n)
{
    size_t page = page_of(v);

    switch (key) {
    case TOP_KEY_UP:
    case 'k':
        return index > 0 ? index - 1 : 0;
    case TOP_KEY_DOWN:
    case 'j':
        return index + 1;
    case TOP_KEY_PAGE_UP:
        return index > page ? index - page : 0;
    case TOP_KEY_PAGE_DOWN:
        return index + page;
    case TOP_KEY_HOME:
    case 'g':
        return 0;
    case TOP_KEY_END:
    case 'G':
        return n > 0 ? n - 1 : 0;
    default:
        return index;
    }
}

static void move(struct top_view *v, const struct top_model *m, int key)
{
    size_t n;
    size_t *shown = top_view_rows(v, m, v->pane, &n);
    size_t from = top_view_selected(v, m, v->pane, shown, n);
    size_t to = moved(v, key, from, n);

    if (to != from)
        select_row(v, m, shown, n, to);
    free(shown);
}

static void open_pane(struct top_view *v, unsigned pane)
{
    v->pane = (enum top_pane)(pane % TOP_PANE_N);
}

/* The pane whose key, or number, it is; TOP_PANE_N: none. */
static unsigned pane_of(int key)
{
    unsigned pane = 0;

    while (pane < TOP_PANE_N && top_panes[pane].key != key && (int)('1' + pane) != key)
        pane++;
    return pane;
}

static void type_filter(struct top_view *v, int key)
{
    size_t len = strlen(v->filter);

    if (key == TOP_KEY_ENTER) {
        v->is_typing = false;
    } else if (key == TOP_KEY_ESCAPE) {
        v->is_typing = false;
        v->filter[0] = '\0';
    } else if (key == TOP_KEY_ERASE) {
        v->filter[len > 0 ? len - 1 : 0] = '\0';
    } else if (key >= ' ' && key < TOP_KEY_ERASE && len + 1 < sizeof(v->filter)) {
        v->filter[len] = (char)key;
        v->filter[len + 1] = '\0';
    }
}

/* While all about a row, or the help, is shown. */
static void key_in_text(struct top_view *v, int key)
{
    if (key == TOP_KEY_ENTER || key == TOP_KEY_ESCAPE || key == 'q' || key == '?' ||
        key == TOP_KEY_LEFT) {
        v->is_help = v->is_detail = false;
        v->scrolled = 0;
        return;
    }
    /* The frame knows how many lines there are, and shows the last ones at least. */
    v->scrolled = moved(v, key, v->scrolled, 1);
    if (v->scrolled > 1000)
        v->scrolled = 1000;
}

enum top_action top_view_key(struct top_view *v, const struct top_model *m, int key)
{
    struct top_place *place = &v->places[v->pane];

    if (v->is_typing) {
        type_filter(v, key);
        return TOP_ACTION_NONE;
    }
    if (v->is_help || v->is_detail) {
        key_in_text(v, key);
        return TOP_ACTION_NONE;
    }
    switch (key) {
    case 'q':
        return TOP_ACTION_QUIT;
    case 'r':
    case ' ':
        return TOP_ACTION_ASK;
    case '?':
    case 'h':
        v->is_help = true;
        break;
    case '/':
        v->is_typing = true;
        break;
    case TOP_KEY_ESCAPE:
        v->filter[0] = '\0';
        break;
    case 's':
        place->sort = (place->sort + 1) % (top_panes[v->pane].n_columns + 1);
        break;
    case TOP_KEY_ENTER:
    case TOP_KEY_RIGHT:
        v->is_detail = m->panes[v->pane].n > 0;
        break;
    case TOP_KEY_TAB:
        open_pane(v, v->pane + 1u);
        break;
    case TOP_KEY_BACK_TAB:
        open_pane(v, v->pane + TOP_PANE_N - 1u);
        break;
    default:
        if (pane_of(key) < TOP_PANE_N)
            open_pane(v, pane_of(key));
        else
            move(v, m, key);
    }
    return TOP_ACTION_NONE;
}
