/*
 * sample_mesh.h - networks made up for the tests of mesh/.
 *
 * A sample has the hub "hub", which is number 1, and nodes "n2", "n3", ...;
 * every key and address follows from the number.
 */
#pragma once

#include <stddef.h>

#include "mesh/object/object.h"
#include "mesh/snapshot/snapshot.h"

/** sample_key() - number @n's public key. */
struct x25519_public sample_key(unsigned n);

/** sample_node() - number @n: 1 is the hub. */
struct object sample_node(unsigned n);

/** sample_edge() - between two nodes that are no hubs. */
struct object sample_edge(unsigned a, unsigned b, enum edge_path path);

/** sample_snapshot() - @n nodes, as number @self sees them; revision 40. Fails the test on error.
 */
struct snapshot sample_snapshot(unsigned n, unsigned self);

/** Room for sample_sentence(). */
#define SAMPLE_SENTENCE_MAX 512

/** sample_sentence() - @text with object_kinds_text() in the place of "@kinds". Returns @buf. */
const char *sample_sentence(const char *text, char buf[static SAMPLE_SENTENCE_MAX]);

/** sample_put() - snapshot_put() that fails the test on error. */
void sample_put(struct snapshot *s, struct object o);
