/*
 * top_frame.h - a frame of `weft top`: lines of text for a terminal of some size.
 *
 *	network default, hub hub-1          5 up, 1 down   1 critical, 2 warning   12.3 MB/s
 *	[n:NODES 6]   p:PAIRS 15   J:JOBS 1   f:FINDINGS 3
 *	  what is to be said of the hub, if it does not answer
 *	  the pane that is looked at: a head, rows, and what is to be said of the selected one
 *	  where there is room, the findings, or all other panes
 *	keys, or the filter that is typed
 *
 * No line is longer than the terminal is wide, and there are as many lines as it has.
 *
 * Pure: a model and a view in, text out.
 */
#pragma once

#include "top/top_model.h"
#include "top/top_view.h"

struct str;

/** The least size for which there is a frame; in a smaller terminal a sentence says so. */
#define TOP_FRAME_COLUMNS_MIN 40
#define TOP_FRAME_LINES_MIN   8

/**
 * top_frame_format() - appends the lines, with a newline between two
 * @said:	a sentence about who is asked, plain ASCII; "": nothing is to be said
 */
void top_frame_format(
    struct str *out, const struct top_model *m, const struct top_view *v, const char *said);

/** top_frame_format_all() - appends all rows of all panes, and what is to be said of each, as wide
 * and as long as they are: what is printed where there is no terminal. */
void top_frame_format_all(struct str *out, const struct top_model *m, const char *said);
