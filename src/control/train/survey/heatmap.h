/*
 * heatmap.h - the matrix of a benchmark as a picture (SVG). Pure.
 */
#pragma once

struct bench;
struct str;

/**
 * heatmap_draw() - append an SVG document
 *
 * It has a square for each direction, from the member of its row to that of its column. The
 * darker a square, the faster the direction, on a logarithmic scale between the slowest and the
 * fastest. A direction that is slower than expected has a red frame; one that was not measured is
 * empty.
 */
void heatmap_draw(const struct bench *b, struct str *out);
