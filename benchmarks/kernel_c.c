/* Local mini-batch SGD of a linear model in C, vectorised by hand: the yardstick of kernels/sgd.py.
 *
 * The same draws, the same order of rows and the same steps as the kernel's, on rows that were padded beforehand to a
 * multiple of 32 bytes, with a column of ones for the bias. Vectors of 32 bytes (GCC's vector extensions), four rows at
 * once, multiply-adds fused; up to four vectors a row, weights and gradient stay in registers. Written once, for
 * double and float: the file includes itself.
 */
#ifndef REAL
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
enum { LEAST_SQUARES = 0, HINGE = 3 };

INLINE uint64_t mix64(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

INLINE void swap(uint32_t *order, size_t i, size_t j) {
    uint32_t kept = order[i];
    order[i] = order[j];
    order[j] = kept;
}

/* Fisher-Yates from the last row down; a word's low half serves one draw, its high half the next. */
static uint64_t shuffle(uint32_t *order, size_t rows, uint64_t word) {
    for (size_t i = rows - 1; i >= 1 && i < rows; i -= 2) {
        word += 0x9E3779B97F4A7C15ULL;
        uint64_t bits = mix64(word);
        swap(order, i, (size_t)(((bits & 0xFFFFFFFFULL) * (i + 1)) >> 32));
        if (i >= 2)
            swap(order, i - 1, (size_t)(((bits >> 32) * i) >> 32));
    }
    return word;
}

#define JOIN(a, b) a##b
#define NAMED(a, b) JOIN(a, b)
#define NAME(name) NAMED(name, SUFFIX)
#define VECTOR NAME(vector)
#define GROUP NAME(group)
#define LANES (32 / sizeof(REAL))

typedef double vector_double __attribute__((vector_size(32)));
typedef double group_double __attribute__((vector_size(32)));
typedef int64_t lanes_double __attribute__((vector_size(32)));
typedef float vector_float __attribute__((vector_size(32)));
typedef float group_float __attribute__((vector_size(16)));
typedef int32_t lanes_float __attribute__((vector_size(16)));

INLINE group_double folded_double(vector_double v) { return v; }
INLINE group_float folded_float(vector_float v) {
    return __builtin_shufflevector(v, v, 0, 1, 2, 3) + __builtin_shufflevector(v, v, 4, 5, 6, 7);
}

#define REAL double
#define SUFFIX _double
#include "kernel_c.c"
#undef REAL
#undef SUFFIX
#define REAL float
#define SUFFIX _float
#include "kernel_c.c"

#else

INLINE VECTOR NAME(spread)(REAL number) { return number - (VECTOR){0}; }

INLINE GROUP NAME(slopes)(int loss, GROUP margins, GROUP targets) {
    if (loss == LEAST_SQUARES)
        return margins - targets;
    return (GROUP)((NAME(lanes))(-targets) & (targets * margins < 1));
}

/* One batch: the sum of the gradients of `size` rows into `gradient`. `blocks` is a constant where it is small. */
INLINE void NAME(add_rows)(const VECTOR *restrict x, const REAL *restrict y, const uint32_t *restrict rows, size_t size,
                           size_t blocks, const VECTOR *restrict w, VECTOR *restrict gradient, int loss) {
    size_t i = 0;
    for (; i + 4 <= size; i += 4) {
        const VECTOR *a = x + rows[i] * blocks, *b = x + rows[i + 1] * blocks;
        const VECTOR *c = x + rows[i + 2] * blocks, *d = x + rows[i + 3] * blocks;
        VECTOR ma = w[0] * a[0], mb = w[0] * b[0], mc = w[0] * c[0], md = w[0] * d[0];
        for (size_t k = 1; k < blocks; k++) {
            ma += w[k] * a[k];
            mb += w[k] * b[k];
            mc += w[k] * c[k];
            md += w[k] * d[k];
        }
        GROUP fa = NAME(folded)(ma), fb = NAME(folded)(mb), fc = NAME(folded)(mc), fd = NAME(folded)(md);
        GROUP ab = __builtin_shufflevector(fa, fb, 0, 4, 2, 6) + __builtin_shufflevector(fa, fb, 1, 5, 3, 7);
        GROUP cd = __builtin_shufflevector(fc, fd, 0, 4, 2, 6) + __builtin_shufflevector(fc, fd, 1, 5, 3, 7);
        GROUP m = __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
        GROUP targets = {y[rows[i]], y[rows[i + 1]], y[rows[i + 2]], y[rows[i + 3]]};
        GROUP s = NAME(slopes)(loss, m, targets);
        VECTOR sa = NAME(spread)(s[0]), sb = NAME(spread)(s[1]), sc = NAME(spread)(s[2]), sd = NAME(spread)(s[3]);
        for (size_t k = 0; k < blocks; k++)
            gradient[k] = gradient[k] + sa * a[k] + sb * b[k] + sc * c[k] + sd * d[k];
    }
    for (; i < size; i++) {
        const VECTOR *a = x + rows[i] * blocks;
        VECTOR ma = w[0] * a[0];
        for (size_t k = 1; k < blocks; k++)
            ma += w[k] * a[k];
        GROUP f = NAME(folded)(ma);
        GROUP m = (f[0] + f[1]) + (f[2] + f[3]) - (GROUP){0};
        VECTOR s = NAME(spread)(NAME(slopes)(loss, m, y[rows[i]] - (GROUP){0})[0]);
        for (size_t k = 0; k < blocks; k++)
            gradient[k] += s * a[k];
    }
}

INLINE void NAME(descend)(const VECTOR *restrict x, const REAL *restrict y, size_t rows, size_t blocks, VECTOR *restrict w,
                          VECTOR *restrict gradient, uint32_t *restrict order, uint64_t key, size_t epochs, size_t batch,
                          double learning_rate, double decay, int loss) {
    for (size_t epoch = 0; epoch < epochs; epoch++) {
        key = shuffle(order, rows, key);
        double step = learning_rate / pow((double)(epoch + 1), decay);
        for (size_t first = 0; first < rows; first += batch) {
            size_t size = rows - first < batch ? rows - first : batch;
            for (size_t k = 0; k < blocks; k++)
                gradient[k] = (VECTOR){0};
            NAME(add_rows)(x, y, order + first, size, blocks, w, gradient, loss);
            VECTOR scale = NAME(spread)((REAL)(step / (double)size));
            for (size_t k = 0; k < blocks; k++)
                w[k] -= scale * gradient[k];
        }
    }
}

#define WITH_BLOCKS(NUMBER, LOSS) \
    if (blocks == NUMBER && loss == LOSS) { \
        VECTOR near[NUMBER], slope[NUMBER]; \
        memcpy(near, w, sizeof near); \
        NAME(descend)(x, y, rows, NUMBER, near, slope, order, key, epochs, batch, learning_rate, decay, LOSS); \
        memcpy(w, near, sizeof near); \
    } else

static void NAME(train_one)(const VECTOR *x, const REAL *y, size_t rows, size_t blocks, VECTOR *w, VECTOR *gradient,
                            uint32_t *order, uint64_t key, size_t epochs, size_t batch, double learning_rate,
                            double decay, int loss) {
    for (size_t i = 0; i < rows; i++)
        order[i] = (uint32_t)i;
    WITH_BLOCKS(1, LEAST_SQUARES) WITH_BLOCKS(2, LEAST_SQUARES) WITH_BLOCKS(3, LEAST_SQUARES)
    WITH_BLOCKS(4, LEAST_SQUARES) WITH_BLOCKS(1, HINGE) WITH_BLOCKS(2, HINGE) WITH_BLOCKS(3, HINGE)
    WITH_BLOCKS(4, HINGE) if (loss == LEAST_SQUARES)
        NAME(descend)(x, y, rows, blocks, w, gradient, order, key, epochs, batch, learning_rate, decay, LEAST_SQUARES);
    else
        NAME(descend)(x, y, rows, blocks, w, gradient, order, key, epochs, batch, learning_rate, decay, HINGE);
}

/* All clients, one after another. w holds `blocks` vectors for each and is trained in place; x, w and gradient are
 * aligned to 32 bytes; gradient and order are scratch. */
void NAME(train)(const VECTOR *x, const REAL *y, const int64_t *offsets, size_t clients, size_t blocks, VECTOR *w,
                 VECTOR *gradient, uint32_t *order, const uint64_t *keys, size_t epochs, size_t batch,
                 double learning_rate, double decay, int loss) {
    for (size_t client = 0; client < clients; client++) {
        size_t first = (size_t)offsets[client], rows = (size_t)offsets[client + 1] - first;
        NAME(train_one)(x + first * blocks, y + first, rows, blocks, w + client * blocks, gradient, order, keys[client],
                        epochs, batch, learning_rate, decay, loss);
    }
}

#undef WITH_BLOCKS
#endif
