/*
 * model.h - a language model and the GPUs that train it: operations, memory and bytes on the wire.
 *
 * Every formula names where it is from. Pure.
 */
#pragma once

#include <stdbool.h>

struct err;

/** What a weight is computed and sent in. */
enum model_dtype {
    MODEL_FP32,
    MODEL_BF16,
    MODEL_FP16,
    MODEL_DTYPE_N,
};

/** "fp32", "bf16" and "fp16". */
extern const char *const model_dtype_names[];

/** model_dtype_bytes() - bytes of one number. */
double model_dtype_bytes(enum model_dtype d);

/** A kind of GPU. */
struct model_gpu {
    const char *name;  /* as given on the command line, such as "h100" */
    double memory;     /* bytes */
    double flops;      /* dense bf16 operations a second with fp32 sums, by its data sheet */
    double link;       /* bytes per second to the other GPUs of its machine, one direction */
    const char *about; /* what it is */
};

/** model_gpu_find() - the row with that name; NULL: there is none. */
const struct model_gpu *model_gpu_find(const char *name);

/** model_gpu_names() - all names, as "a100, h100". */
const char *model_gpu_names(void);

/**
 * model_parse_weights() - a number of weights, from 1K to 1000T, as in "70B" or "7e9"
 * @what:	the name of the option, for the words
 *
 * Return: 0; -EINVAL with words.
 */
int model_parse_weights(double *ret, const char *text, const char *what, struct err *e);

/** The model and how it is trained. */
struct model {
    double params;    /* all weights */
    double active;    /* weights that one token meets; fewer than @params with experts */
    double layers;    /* transformer blocks */
    double hidden;    /* width */
    double seq;       /* tokens of a sequence */
    double batch;     /* sequences of a step, on all GPUs together */
    unsigned experts; /* of each layer; 0: dense */
    unsigned chosen;  /* experts that one token meets */
    enum model_dtype dtype;
};

/**
 * model_guess() - fill in what is 0
 *
 * Layers and width by params = 12 * layers * hidden^2 (Kaplan et al., "Scaling laws for neural
 * language models", arXiv:2001.08361, section 2.1) with hidden = 100 * layers, which is near to
 * published models; 4096 tokens a sequence; four million tokens a step (Touvron et al., "Llama 2",
 * arXiv:2307.09288, section 2.2), but at most 1/5000 of the weights; two experts a token.
 */
void model_guess(struct model *m);

/** How a model is cut over GPUs. All degrees are at least 1. */
struct model_cut {
    unsigned tensor;   /* GPUs that share each matrix; of one machine */
    unsigned pipeline; /* groups of layers, one after the other */
    unsigned sequence; /* parts of each sequence (context parallelism) */
    unsigned expert;   /* parts of the experts; it divides the data degree */
    unsigned data;     /* replicas of the smallest island */
    unsigned replicas; /* replicas of all islands together */
    bool sharded;      /* weights, gradients and optimizer are sharded over the replicas of an
                          island (FSDP, ZeRO stage 3); else the optimizer alone (stage 1) */
    bool recompute;    /* activations are computed again in the backward pass */
};

/** Where a GPU's memory goes, in bytes. */
struct model_memory {
    double states;      /* weights, gradients, optimizer */
    double activations; /* kept for the backward pass */
    double reserve;     /* CUDA context, NCCL's buffers, fragmentation */
    double total;
};

/**
 * model_memory() - memory of each GPU
 *
 * States: 16 bytes a weight with Adam in mixed precision (Rajbhandari et al., "ZeRO",
 * arXiv:1910.02054, sections 3.1 and 5), and while a layer is computed its weights as a whole.
 * Activations: 34 * seq * hidden bytes a layer and sequence, divided by the tensor degree, with an
 * attention that does not keep its scores; 2 * seq * hidden when all is computed again (Korthikanti
 * et al., "Reducing activation recomputation in large transformer models", arXiv:2205.05198,
 * sections 4 and 5, table 2). The first stage of a pipeline keeps them for all stages (4.2.3
 * there).
 */
struct model_memory model_memory(const struct model *m, const struct model_cut *c);

/**
 * model_flops() - operations of one step, all GPUs together
 *
 * Six for each weight and token, and 12 * layers * hidden * seq for each token's attention
 * (Chowdhery et al., "PaLM", arXiv:2204.02311, appendix B); a third more when the forward pass is
 * computed again.
 */
double model_flops(const struct model *m, const struct model_cut *c);

/** What each GPU waits for in a step inside an island, in seconds. */
struct model_waits {
    double tensor; /* four all-reduces a layer (Shoeybi et al., "Megatron-LM", arXiv:1909.08053,
                      section 3) */
    double bubble; /* (stages - 1) / microbatches of the work (Narayanan et al., "Efficient
                      large-scale language model training", arXiv:2104.04473, section 2.2.1) */
    double stages; /* activations to the next stage, and their gradients back (there, 3.2) */
    double data;   /* gradients: twice the weights, or three times when sharded (ZeRO, section 7) */
    double sequence; /* keys and values once around (Liu et al., "Ring attention",
                        arXiv:2310.01889, section 3) */
    double expert;   /* four exchanges of tokens a layer (Lepikhin et al., "GShard",
                        arXiv:2006.16668, section 3.3) */
};

/**
 * model_waits() - the waits inside an island
 * @gpu:	of all machines
 * @per_node:	GPUs of a machine
 * @fabric:	bytes per second between two machines of the island, one direction
 * @work:	seconds of a step's computing
 */
struct model_waits model_waits(const struct model *m, const struct model_cut *c,
    const struct model_gpu *gpu, unsigned per_node, double fabric, double work);
