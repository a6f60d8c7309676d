/* Local mini-batch SGD for least squares in plain C: the yardstick of kernels/sgd.py.
 *
 * The same draws, the same order of rows and the same steps, written the way a C programmer would write them first.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static uint64_t mix64(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

static void swap(uint32_t *order, size_t i, size_t j) {
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

/* params holds the d weights, then the bias; it is trained in place. Returns 0, or 1 when memory ran out. */
int train(const double *restrict x, const double *restrict y, size_t rows, size_t d, double *restrict params,
          uint64_t key, size_t epochs, size_t batch, double learning_rate, double decay) {
    uint32_t *order = malloc(rows * sizeof *order);
    double *gradient = malloc((d + 1) * sizeof *gradient);
    if (!order || !gradient) {
        free(order);
        free(gradient);
        return 1;
    }
    for (size_t i = 0; i < rows; i++)
        order[i] = (uint32_t)i;
    for (size_t epoch = 0; epoch < epochs; epoch++) {
        key = shuffle(order, rows, key);
        double step = learning_rate / pow((double)(epoch + 1), decay);
        for (size_t first = 0; first < rows; first += batch) {
            size_t size = rows - first < batch ? rows - first : batch;
            for (size_t j = 0; j <= d; j++)
                gradient[j] = 0.0;
            for (size_t i = first; i < first + size; i++) {
                const double *restrict z = x + order[i] * d;
                double residual = params[d] - y[order[i]];
                for (size_t j = 0; j < d; j++)
                    residual += params[j] * z[j];
                for (size_t j = 0; j < d; j++)
                    gradient[j] += residual * z[j];
                gradient[d] += residual;
            }
            for (size_t j = 0; j <= d; j++)
                params[j] -= step / (double)size * gradient[j];
        }
    }
    free(order);
    free(gradient);
    return 0;
}
