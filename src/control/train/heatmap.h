/*
 * heatmap.h - the matrix of a benchmark as a picture (SVG). Pure.
 */
#pragma once

struct bench;
struct str;

/**
 * heatmap_draw() - append an SVG document
 *
 * A square for each direction, from its row to its column; the darker, the
 * faster, on a logarithmic scale between the slowest and the fastest. One that
 * is slower than expected has a red frame; one that was not measured is empty.
 */
void heatmap_draw(const struct bench *b, struct str *out);
