/*
 * manifest.h - objects from a file that a person wrote, in YAML or JSON.
 *
 * JSON is read as the YAML that it is. Plain scalars become numbers, booleans
 * and null by YAML's core schema; anything in quotes stays text.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

struct err;

/**
 * manifest_read() - all documents of a file
 * @path:	"-" for standard input
 * @ret:	gives a reference: an array of objects
 *
 * A document {"items": [...]}, as `weft get KIND` prints, stands for the objects in it. Empty
 * documents are passed over. An object as kubectl takes it, with `apiVersion: weft.dev/v1alpha1`
 * and the network in its name ("default.n1--n2"), becomes one as the hub takes it: without what is
 * only Kubernetes' own. The two nodes of a MeshEdge may stand in either order.
 *
 * Aliases are refused: nobody needs them here, and a few lines of them can
 * stand for gigabytes. Tags are not looked at.
 *
 * Return: 0 or negative errno with words that name the file and the line.
 */
int manifest_read(json_t **ret, const char *path, struct err *e);

/** manifest_parse() - the same from memory; @name stands for the file in the words. */
int manifest_parse(json_t **ret, const char *text, size_t len, const char *name, struct err *e);
