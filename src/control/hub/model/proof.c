/* proof.c - see proof.h. */
#include "proof.h"

#include "api/content/route.h"
#include "hub/model/model.h"

const struct member_proof_key *proof_key(const struct model_node *node, nsec_t now)
{
    struct proof_state *st = node->proof;
    const struct x25519_public *public = &node->spec.key;

    if (st->has_key && x25519_public_equal(&st->of, public))
        return &st->key;
    /* Without a key of the hub anybody could make the proof. */
    if (!node->net->has_key || !member_proof_key_make(&st->key, &node->net->secret, public, public))
        return NULL;
    st->of = *public;
    /* Nothing up to @now is taken any more. */
    if (!st->has_key)
        st->window = (struct seq_window){.highest = (uint64_t)now, .seen = UINT64_MAX};
    st->has_key = true;
    return &st->key;
}

/* The key of @node's other key; NULL: it has none, or no private key can belong to it. */
static const struct member_proof_key *other_key(const struct model_node *node)
{
    struct proof_state *st = node->proof;
    const struct x25519_public *public = &node->by_key[1].key;

    if (x25519_public_is_none(public) || !node->net->has_key)
        return NULL;
    if (!x25519_public_equal(&st->other_of, public) &&
        !member_proof_key_make(&st->other, &node->net->secret, public, public))
        return NULL;
    st->other_of = *public;
    return &st->other;
}

/* The challenge: what the next proof has to be made for. It is no secret. */
static void refuse(struct response *rs, const struct model_node *node)
{
    response_refuse(rs, 401,
        "the request does not prove that it comes from node \"%s\" itself: on its machine \"weft\" "
        "asks through the agent's socket",
        node->spec.meta.name);
    if (rs->body && node->proof->has_key) {
        (void)json_object_set_new(
            rs->body, "boot", json_integer((json_int_t)node->net->model->boot));
        (void)json_object_set_new(
            rs->body, "after", json_integer((json_int_t)node->proof->window.highest));
    }
}

static bool is_made(const struct member_proof *proof, const struct member_proof_key *key,
    const struct model_node *node, const struct member_proof_request *what)
{
    const struct member_proof_key *other;

    if (member_proof_verify(proof, key, what))
        return true;
    other = other_key(node);
    return other && member_proof_verify(proof, other, what);
}

bool proof_take(const struct model_node *node, const struct request *rq, struct response *rs)
{
    struct member_proof_request what = {
        .method = rq->method, .path = rq->path, .body = rq->bytes, .body_len = rq->n_bytes};
    const struct member_proof_key *key = proof_key(node, rq->now);
    struct member_proof proof;

    if (key && rq->authorization && member_proof_parse(&proof, rq->authorization) &&
        proof.boot == node->net->model->boot && is_made(&proof, key, node, &what) &&
        seq_window_take(&node->proof->window, proof.sequence))
        return true;
    refuse(rs, node);
    return false;
}
