/*
 * sorted.h - arrays that are kept in order: where an item is or belongs, and room for it there.
 *
 * For arrays that are walked more often than they grow: an insertion moves what is behind it.
 *
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/** Compares an item of the array with what is looked for, as strcmp() does. */
typedef int (*sorted_compare_fn)(const void *item, const void *wanted);

/**
 * sorted_place() - the index of the item, or that at which it belongs
 * @items:	@n items of @size bytes, in the order of @compare
 * @wanted:	handed to @compare
 */
size_t sorted_place(const void *items, size_t n, size_t size, sorted_compare_fn compare,
    const void *wanted, bool *ret_found);

/**
 * sorted_open() - make room for one more item at @at
 * @items:	@n items of @size bytes, of which *@cap fit; taken, unless there is no memory
 * @cap:	grows with the array
 *
 * Return: the array, in which the caller writes item @at and counts it; NULL: no memory, and
 * @items is as it was.
 */
void *sorted_open(void *items, size_t n, size_t size, size_t at, size_t *cap);
