/*
 * golden_object.h - an object of one kind, in a file: decoded and encoded it is the same text.
 */
#pragma once

struct object_kind;

/**
 * golden_object_check() - fail the test unless the object in a file is encoded as it stands there
 * @file:	below the root of the source: "test/golden/objects/Node.json"
 */
void golden_object_check(const struct object_kind *kind, const char *file);
