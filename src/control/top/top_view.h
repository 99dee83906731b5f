/*
 * top_view.h - what of the rows a person looks at: the pane, the row that is selected, the order,
 * the filter; and the keys that change it.
 *
 * A row stays selected by its name while rows come, go and change places. When it is gone, the one
 * in its place is selected.
 *
 * Pure: bytes and a model in, a view out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "top/top_model.h"

#define TOP_FILTER_MAX 64

/** Of one pane. */
struct top_place {
    char key[TOP_KEY_MAX]; /* of the row that is selected; "": the first one */
    size_t index;          /* where it was, among those that are shown */
    unsigned sort;         /* 0: in the order of the model; else by column @sort - 1 */
};

struct top_view {
    unsigned n_columns; /* of the terminal */
    unsigned n_lines;
    bool has_colours;
    enum top_pane pane;
    struct top_place places[TOP_PANE_N];
    char filter[TOP_FILTER_MAX]; /* only rows with that in them; "": all */
    bool is_typing;              /* it is being typed */
    bool is_help;
    bool is_detail;  /* all about the selected row */
    size_t scrolled; /* lines of that, or of the help, that are above the first one */
};

/** A key that is no character. */
enum top_key {
    TOP_KEY_NONE = 0,
    TOP_KEY_TAB = 9,
    TOP_KEY_ENTER = 10,
    TOP_KEY_ESCAPE = 27,
    TOP_KEY_ERASE = 127,
    TOP_KEY_UP = 256,
    TOP_KEY_DOWN,
    TOP_KEY_LEFT,
    TOP_KEY_RIGHT,
    TOP_KEY_PAGE_UP,
    TOP_KEY_PAGE_DOWN,
    TOP_KEY_HOME,
    TOP_KEY_END,
    TOP_KEY_BACK_TAB,
};

/** Bytes of a terminal that are no key yet (ECMA-48 5.4; the sequences of xterm). */
struct top_keys {
    char bytes[16];
    unsigned n;
};

/** top_keys_take() - a byte has come. Return: the key that it ends, a character or enum top_key;
 * TOP_KEY_NONE: it ends none. */
int top_keys_take(struct top_keys *k, char byte);

/** top_keys_pause() - no byte has come for some time: an escape that stands alone is a key. */
int top_keys_pause(struct top_keys *k);

/** What is to be done about a key beside drawing anew. */
enum top_action {
    TOP_ACTION_NONE,
    TOP_ACTION_QUIT,
    TOP_ACTION_ASK, /* ask again at once */
};

/** top_view_key() - a key was hit. */
enum top_action top_view_key(struct top_view *v, const struct top_model *m, int key);

/**
 * top_view_rows() - which rows of a pane are shown, in their order
 * @ret_n:	how many
 *
 * Return: gives their indices; NULL: there are none, or no memory.
 */
size_t *top_view_rows(
    const struct top_view *v, const struct top_model *m, enum top_pane pane, size_t *ret_n);

/** top_view_selected() - where among the @n rows of @shown the selected one is; 0 if @n is 0. */
size_t top_view_selected(const struct top_view *v, const struct top_model *m, enum top_pane pane,
    const size_t *shown, size_t n);

/** top_view_follow() - the model is another one: the selected row is where it is now. */
void top_view_follow(struct top_view *v, const struct top_model *m);
