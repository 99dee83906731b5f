/* top_frame.c - see top_frame.h. */
#include "top_frame.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Lines below the panes, and for what is said of who is asked. */
#define FOOT_LINES 1
#define SAID_LINES 2

/* Of a row's notes so many lines are shown below its pane, where there are so many lines in all. */
#define NOTE_LINES     4
#define NOTE_LINES_OF  12
#define LINE_MAX_BYTES 1024

/* From so many lines on all panes are shown. */
#define ALL_PANES_LINES 40

/* Of another pane, with its two heads, at most so many lines in a low terminal. */
#define OTHER_PANE_LINES 5

/* A name in the first column is cut to no less than this. */
#define NAME_COLUMNS_MIN 12

#define COLOUR_PLAIN    "\033[0m"
#define COLOUR_HEAD     "\033[1m"
#define COLOUR_SELECTED "\033[7m"
#define COLOUR_WARNING  "\033[33m"
#define COLOUR_CRITICAL "\033[31m"

/* The frame in the making. */
struct frame {
    struct str *out;
    const struct top_model *m;
    const struct top_view *v;
    unsigned n; /* lines that are written */
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* A line, cut to the terminal's width; @colour: NULL: as all text is. */
static void add_line(struct frame *f, const char *colour, const char *text)
{
    size_t len = least(strlen(text), f->v->n_columns);
    bool is_coloured = colour && f->v->has_colours;

    if (f->n >= f->v->n_lines)
        return;
    if (f->n++ > 0)
        str_add(f->out, "\n");
    while (!is_coloured && len > 0 && text[len - 1] == ' ')
        len--;
    if (is_coloured)
        str_add(f->out, colour);
    str_add_bytes(f->out, text, len);
    if (is_coloured)
        str_add(f->out, COLOUR_PLAIN);
}

/* ---- texts of several lines ------------------------------------------------------------------ */

/* The next line of @text, of at most @width columns; a long one is broken at a blank. Return: what
 * follows; NULL: nothing. */
static const char *next_line(const char *text, size_t width, const char **ret, size_t *ret_len)
{
    size_t all = strcspn(text, "\n");
    size_t len = all;

    if (len > width) {
        len = width;
        while (len > 0 && text[len] != ' ')
            len--;
        if (len == 0)
            len = width;
    }
    *ret = text;
    *ret_len = len;
    text += len;
    if (len < all)
        return text + strspn(text, " ");
    return *text == '\n' ? text + 1 : NULL;
}

static size_t count_lines(const char *text, size_t width)
{
    const char *line;
    size_t len;
    size_t n = 0;

    while (text && *text) {
        text = next_line(text, width, &line, &len);
        n++;
    }
    return n;
}

/* @most lines of @text, but for the first @skipped. */
static void add_text(struct frame *f, const char *text, size_t skipped, size_t most)
{
    size_t width = f->v->n_columns - 2;
    const char *line;
    size_t len;

    while (text && *text && most > 0) {
        char buf[LINE_MAX_BYTES];

        text = next_line(text, width, &line, &len);
        if (skipped > 0) {
            skipped--;
            continue;
        }
        (void)snprintf(buf, sizeof(buf), "  %.*s", (int)least(len, sizeof(buf) - 3), line);
        add_line(f, NULL, buf);
        most--;
    }
}

/* ---- a pane ---------------------------------------------------------------------------------- */

/* A pane, its rows that are shown, and how wide its columns are. */
struct pane {
    enum top_pane id;
    size_t *shown; /* owns; indices of rows */
    size_t n;
    size_t selected;
    size_t widths[TOP_COLUMNS_MAX]; /* 0: it has no place */
};

static size_t width_of(const struct top_model *m, const struct pane *p, unsigned column)
{
    size_t width = strlen(top_panes[p->id].columns[column].head) + 1;

    for (size_t i = 0; i < p->n; i++) {
        size_t len = strlen(m->panes[p->id].items[p->shown[i]].cells[column]);

        width = len > width ? len : width;
    }
    return width;
}

/* With a blank in front of each but the first. */
static size_t sum_of(const struct pane *p)
{
    size_t sum = 0;

    for (unsigned i = 0; i < TOP_COLUMNS_MAX; i++)
        sum += p->widths[i] + (p->widths[i] > 0);
    return sum;
}

/* Two columns are for the mark. Where there are too few, names are cut, and after that columns go
 * from the right, but for the first two. */
static void set_widths(struct pane *p, const struct top_model *m, size_t width)
{
    unsigned last = top_panes[p->id].n_columns - 1;
    size_t all = width - 2;
    size_t sum;

    for (unsigned i = 0; i < last; i++)
        p->widths[i] = width_of(m, p, i);
    sum = sum_of(p);
    if (sum > all && p->widths[0] > NAME_COLUMNS_MIN) {
        size_t excess = least(sum - all, p->widths[0] - NAME_COLUMNS_MIN);

        p->widths[0] -= excess;
    }
    for (unsigned i = last; i-- > 2 && sum_of(p) > all;)
        p->widths[i] = 0;
    sum = sum_of(p);
    if (sum + 8 < all)
        p->widths[last] = least(width_of(m, p, last), all - sum - 1);
}

static struct pane open_pane(
    const struct top_model *m, const struct top_view *v, enum top_pane id, size_t width)
{
    struct pane p = {.id = id};

    p.shown = top_view_rows(v, m, id, &p.n);
    p.selected = top_view_selected(v, m, id, p.shown, p.n);
    set_widths(&p, m, width);
    return p;
}

/* @text in a column of @width, or what of it fits. */
static void add_cell(struct str *line, const char *text, size_t width, bool is_right)
{
    size_t len = least(strlen(text), width);
    bool is_cut = text[len] != '\0';

    if (is_right)
        str_addf(line, "%*.*s", (int)width, (int)len, text);
    else if (is_cut)
        str_addf(line, "%.*s~", (int)(len > 0 ? len - 1 : 0), text);
    else
        str_addf(line, "%-*s", (int)width, text);
    str_add(line, " ");
}

static void add_head(struct frame *f, const struct pane *p)
{
    const struct top_pane_kind *kind = &top_panes[p->id];
    struct str line = STR_NULL;

    str_add(&line, "  ");
    for (unsigned i = 0; i < kind->n_columns; i++) {
        char head[32];

        (void)snprintf(head, sizeof(head), "%s%s", kind->columns[i].head,
            f->v->places[p->id].sort == i + 1 ? "*" : "");
        if (p->widths[i] > 0)
            add_cell(&line, head, p->widths[i], kind->columns[i].is_number);
    }
    add_line(f, COLOUR_HEAD, str_text(&line));
    str_deinit(&line);
}

static void add_row(struct frame *f, const struct pane *p, size_t index, bool is_active)
{
    static const char marks[] = {
        [TOP_MARK_NONE] = ' ', [TOP_MARK_WARNING] = '!', [TOP_MARK_CRITICAL] = '!'};
    static const char *const colours[] = {[TOP_MARK_NONE] = NULL,
        [TOP_MARK_WARNING] = COLOUR_WARNING,
        [TOP_MARK_CRITICAL] = COLOUR_CRITICAL};
    const struct top_row *row = &f->m->panes[p->id].items[p->shown[index]];
    bool is_selected = is_active && index == p->selected;
    struct str line = STR_NULL;

    str_addf(&line, "%c%c", is_selected ? '>' : ' ', marks[row->mark]);
    for (unsigned i = 0; i < top_panes[p->id].n_columns; i++)
        if (p->widths[i] > 0)
            add_cell(&line, row->cells[i], p->widths[i], top_panes[p->id].columns[i].is_number);
    add_line(f, is_selected ? COLOUR_SELECTED : colours[row->mark], str_text(&line));
    str_deinit(&line);
}

/* Why no row is shown. */
static const char *say_empty(const struct top_model *m, enum top_pane pane)
{
    if (m->is_silent)
        return "nothing is known now";
    if (m->panes[pane].n > 0)
        return "no row has the filter's text";
    return m->is_unknown[pane] ? "nothing is said of these" : top_panes[pane].empty;
}

/* A head and rows in @height lines; of the active pane those about the selected one. */
static void add_pane(struct frame *f, const struct pane *p, size_t height, bool is_active)
{
    size_t n_rows = height > 1 ? height - 1 : 0;
    size_t from = 0;

    if (height == 0)
        return;
    add_head(f, p);
    if (p->n == 0 && n_rows > 0) {
        char text[80];

        (void)snprintf(text, sizeof(text), "  %s", say_empty(f->m, p->id));
        add_line(f, NULL, text);
        return;
    }
    if (is_active && p->n > n_rows && p->selected >= n_rows / 2)
        from = least(p->selected - n_rows / 2, p->n - n_rows);
    for (size_t i = from; i < least(p->n, from + n_rows); i++)
        add_row(f, p, i, is_active);
}

/* ---- all that is on the screen --------------------------------------------------------------- */

/* Behind what is there, two blanks apart. */
__attribute__((format(printf, 2, 3))) static void add_part(struct str *line, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    str_addf(line, "%s%s", line->len > 0 ? "   " : "", text);
}

/* "5 up, 1 down   1 critical, 2 warning   12.3 MB/s" */
static void add_summary(struct str *line, const struct top_model *m)
{
    char rate[TOP_CELL_MAX];
    size_t n = 0;

    if (m->is_silent)
        return;
    add_part(line, "%zu up, %zu down", m->n_up, m->n_down);
    for (unsigned i = FINDING_SEVERITY_N; i-- > 0;)
        if (m->severities[i] > 0) {
            str_addf(line, "%s%zu %s", n++ > 0 ? ", " : "   ", m->severities[i],
                finding_severity_names[i]);
        }
    if (n == 0 && !m->is_unknown[TOP_FINDINGS])
        add_part(line, "no finding");
    if (!isnan(m->rate))
        add_part(line, "%s", top_format_rate(m->rate, rate));
    if (m->failed)
        add_part(line, "no memory for all");
}

static void add_top(struct frame *f, const char *said)
{
    struct str line = STR_NULL;

    str_add(&line, f->m->title ? f->m->title : "");
    add_summary(&line, f->m);
    add_line(f, COLOUR_HEAD, str_text(&line));
    str_deinit(&line);
    for (unsigned i = 0; i < TOP_PANE_N; i++) {
        bool is_active = i == f->v->pane;
        const struct top_pane_kind *kind = &top_panes[i];

        add_part(&line, "%s%c:%s %zu%s", is_active ? "[" : "", kind->key, kind->name,
            f->m->panes[i].n, is_active ? "]" : "");
    }
    if (f->m->n_left_out > 0)
        add_part(&line, "%zu pairs had no room", f->m->n_left_out);
    add_line(f, NULL, str_text(&line));
    str_deinit(&line);
    add_text(f, said, 0, SAID_LINES);
}

/* The last line, whatever is above it. */
static void add_foot(struct frame *f)
{
    const struct top_view *v = f->v;
    char text[160];

    while (f->n + FOOT_LINES < v->n_lines)
        add_line(f, NULL, "");
    if (v->is_typing)
        (void)snprintf(text, sizeof(text), "/%s_   enter: keep, esc: all rows", v->filter);
    else if (v->is_help || v->is_detail)
        (void)snprintf(text, sizeof(text), "esc: back   up, down: scroll");
    else if (v->filter[0] != '\0')
        (void)snprintf(text, sizeof(text),
            "only rows with \"%s\"   esc: all rows   ?: help   q: end", v->filter);
    else
        (void)snprintf(text, sizeof(text),
            "up, down  tab: pane  enter: all about it  s: sort  /: filter  ?: help  q: end");
    add_line(f, NULL, text);
}

static const char help[] =
    "q             end\n"
    "up, down      select a row; also k and j, page up and page down, g and G\n"
    "tab           the next pane; n: nodes, p: pairs, J: jobs, f: findings\n"
    "enter         all about the selected row; esc leads back\n"
    "s             sort by the next column, which has a star then\n"
    "/             show only rows with a text; esc shows all again\n"
    "r             ask again now\n"
    "\n"
    "Rates are bytes a second of WireGuard's messages. A hub knows them from what\n"
    "nodes tell it each minute, or each quarter of one where a job runs, so it may\n"
    "take two minutes until they are there. An agent's are of the last moment.\n"
    "\n"
    "LOSS> is the share of what A sends that does not arrive at B, and LOSS< of\n"
    "what B sends; RATE> and RATE< likewise. RTT is that of the probes, or the\n"
    "agent's own. USUAL is what a job moves in the middle of its last hour. \"-\" is\n"
    "what is not known now: what is dead has no figure.\n";

/* Each column of the selected row, and all that is to be said of it. */
static void add_detail(struct frame *f, const struct pane *p)
{
    const struct top_pane_kind *kind = &top_panes[p->id];
    struct str text = STR_NULL;
    const struct top_row *row;
    size_t most = f->v->n_lines - FOOT_LINES - f->n;
    size_t n_lines;

    if (p->n == 0)
        return;
    row = &f->m->panes[p->id].items[p->shown[p->selected]];
    for (unsigned i = 0; i < kind->n_columns; i++)
        str_addf(&text, "%-12s %s\n", kind->columns[i].head, row->cells[i]);
    str_addf(&text, "\n%s", row->note);
    n_lines = count_lines(str_text(&text), f->v->n_columns - 2);
    add_text(f, str_text(&text), least(f->v->scrolled, n_lines > most ? n_lines - most : 0), most);
    str_deinit(&text);
}

static void add_help(struct frame *f)
{
    size_t most = f->v->n_lines - FOOT_LINES - f->n;
    size_t n_lines = count_lines(help, f->v->n_columns - 2);

    add_text(f, help, least(f->v->scrolled, n_lines > most ? n_lines - most : 0), most);
}

/* A title, a head and rows of a pane that is not looked at. */
static void add_other(struct frame *f, enum top_pane id, size_t height)
{
    struct pane p = open_pane(f->m, f->v, id, f->v->n_columns);

    add_line(f, NULL, "");
    add_pane(f, &p, least(height - 1, 1 + p.n), false);
    free(p.shown);
}

/* How many lines the panes that are not looked at want. */
static size_t wanted_by_others(const struct frame *f, size_t heights[static TOP_PANE_N])
{
    bool is_high = f->v->n_lines >= ALL_PANES_LINES;
    size_t sum = 0;

    for (unsigned i = 0; i < TOP_PANE_N; i++) {
        size_t n = f->m->panes[i].n;

        heights[i] = 0;
        if (i == f->v->pane || n == 0 || (!is_high && i != TOP_FINDINGS))
            continue;
        heights[i] = least(n + 2, is_high ? SIZE_MAX : OTHER_PANE_LINES);
        sum += heights[i];
    }
    return sum;
}

static void add_panes(struct frame *f)
{
    size_t left = f->v->n_lines - FOOT_LINES - f->n;
    struct pane p = open_pane(f->m, f->v, f->v->pane, f->v->n_columns);
    const char *note = p.n > 0 ? f->m->panes[p.id].items[p.shown[p.selected]].note : "";
    size_t n_notes =
        left >= NOTE_LINES_OF ? least(count_lines(note, f->v->n_columns - 2), NOTE_LINES) : 0;
    size_t heights[TOP_PANE_N];
    size_t others;
    size_t own;

    left -= n_notes;
    others = least(wanted_by_others(f, heights), left / 2);
    own = least(p.n > 0 ? p.n + 1 : 2, left - others);
    add_pane(f, &p, own, true);
    add_text(f, note, 0, n_notes);
    free(p.shown);
    left -= own;
    for (unsigned i = 0; i < TOP_PANE_N; i++) {
        size_t height = least(heights[i], left);

        /* A head alone says nothing. */
        if (height < 3)
            continue;
        add_other(f, (enum top_pane)i, height);
        left -= height;
    }
}

void top_frame_format(
    struct str *out, const struct top_model *m, const struct top_view *v, const char *said)
{
    struct frame f = {.out = out, .m = m, .v = v};

    if (v->n_columns < TOP_FRAME_COLUMNS_MIN || v->n_lines < TOP_FRAME_LINES_MIN) {
        add_line(&f, NULL, "the terminal is too small: 40x8");
        while (f.n < v->n_lines)
            add_line(&f, NULL, "");
        return;
    }
    add_top(&f, said);
    if (v->is_help) {
        add_help(&f);
    } else if (v->is_detail) {
        struct pane p = open_pane(m, v, v->pane, v->n_columns);

        add_detail(&f, &p);
        free(p.shown);
    } else {
        add_panes(&f);
    }
    add_foot(&f);
}

void top_frame_format_all(struct str *out, const struct top_model *m, const char *said)
{
    struct str line = STR_NULL;

    str_add(&line, m->title ? m->title : "");
    add_summary(&line, m);
    str_addf(out, "%s\n%s%s", str_text(&line), said, said[0] != '\0' ? "\n" : "");
    str_deinit(&line);
    for (unsigned pane = 0; pane < TOP_PANE_N; pane++) {
        const struct top_pane_kind *kind = &top_panes[pane];
        struct table t = {.n_columns = kind->n_columns};

        str_addf(out, "\n%s\n", kind->name);
        for (unsigned i = 0; i < kind->n_columns; i++)
            table_add(&t, "%s", kind->columns[i].head);
        for (size_t k = 0; k < m->panes[pane].n; k++)
            for (unsigned i = 0; i < kind->n_columns; i++)
                table_add(&t, "%s", m->panes[pane].items[k].cells[i]);
        if (m->panes[pane].n > 0)
            table_format(&t, out);
        else
            str_addf(out, "%s\n", say_empty(m, (enum top_pane)pane));
        table_deinit(&t);
        for (size_t k = 0; pane == TOP_FINDINGS && k < m->panes[pane].n; k++)
            str_addf(out, "%s\n", m->panes[pane].items[k].note);
    }
    if (m->n_left_out > 0)
        str_addf(out, "\nand %zu pairs more, which had no room\n", m->n_left_out);
}
