/*
 * fuzz_text.h - what a fuzz target was given, as text.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/**
 * fuzz_text() - a copy of @data with a zero behind it
 *
 * The copy has exactly this size, so that a sanitizer sees what reads beyond it. It may have other
 * zeroes inside. Ends the program where there is no memory.
 *
 * Return: to be freed.
 */
char *fuzz_text(const uint8_t *data, size_t len);
