/* The limit of W3: local SGD of a perceptron 784-64-10 with ReLU and cross-entropy, and AFL's merge; one thread.
 *
 * Single precision, vectorised by hand: a row of 64 hidden units is HIDDEN / LANES vectors, so that a product with a
 * matrix is a sum of scaled rows held in registers. Vector extensions of GCC and Clang: AVX2, AVX-512 and NEON.
 * The model lies flat: first layer's rows by input, its biases, second layer's rows by class, its biases (padded).
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 784, HIDDEN = 64, CLASSES = 10, LANES = 16, PARTS = HIDDEN / LANES, BLOCK = 4, LONGEST_BATCH = 64 };
enum { BIAS = INPUTS * HIDDEN, SECOND = BIAS + HIDDEN, LAST = SECOND + CLASSES * HIDDEN, SIZE = LAST + LANES };
typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4)));

static const float *x;
static const int64_t *labels;
static long clients, rows, epochs, batch;
static float rate, *server, *latest, *trained;
static long *client_of;
static uint32_t *order;
static float hidden[LONGEST_BATCH][HIDDEN], errors[LONGEST_BATCH][CLASSES];

/* All arrays but the data; `model` is where the server starts. Returns 0, or 1 when memory ran out. */
int set_up(const float *x_, const int64_t *labels_, const float *model, long clients_, long rows_, long tickets,
           long epochs_, long batch_, double rate_) {
    x = x_, labels = labels_, clients = clients_, rows = rows_, epochs = epochs_, batch = batch_, rate = (float)rate_;
    server = calloc(SIZE, sizeof *server);
    latest = calloc(clients * SIZE, sizeof *latest);
    trained = calloc(tickets * SIZE, sizeof *trained);
    client_of = calloc(tickets, sizeof *client_of);
    order = calloc(rows, sizeof *order);
    if (!(server && latest && trained && client_of && order) || batch > LONGEST_BATCH)
        return 1;
    memcpy(server, model, LAST * sizeof *model + CLASSES * sizeof *model);
    for (long client = 0; client < clients; client++)
        memcpy(latest + client * SIZE, server, SIZE * sizeof *server);
    return 0;
}

void tear_down(void) {
    free(server), free(latest), free(trained), free(client_of), free(order);
}

const float *model(void) {
    return server;
}

static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

static uint64_t shuffle(uint64_t word) {
    for (long i = rows - 1; i >= 1; i--) {
        long j = (long)(((mix(word += 0x9E3779B97F4A7C15ULL) >> 32) * (uint64_t)(i + 1)) >> 32);
        uint32_t kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
    return word;
}

/* The first layer of BLOCK rows at once: each row of the matrix is read once for all of them. */
static void first_layer(const float *w, const float *const *z, float (*out)[HIDDEN]) {
    lanes sum[BLOCK][PARTS];
    for (int b = 0; b < BLOCK; b++)
        for (int p = 0; p < PARTS; p++)
            sum[b][p] = ((const lanes *)(w + BIAS))[p];
    for (int k = 0; k < INPUTS; k++) {
        const lanes *line = (const lanes *)(w + k * HIDDEN);
        for (int b = 0; b < BLOCK; b++)
            for (int p = 0; p < PARTS; p++)
                sum[b][p] += z[b][k] * line[p];
    }
    for (int b = 0; b < BLOCK; b++)
        for (int p = 0; p < PARTS; p++)
            ((lanes *)out[b])[p] = sum[b][p];
}

/* One row's ReLU, second layer and softmax; the error of each class is left in `error`. */
static void second_layer(const float *w, float *h, int64_t label, float *error) {
    float most = -INFINITY, total = 0;
    for (int j = 0; j < HIDDEN; j++)
        h[j] = h[j] > 0 ? h[j] : 0;
    for (int c = 0; c < CLASSES; c++) {
        lanes sum = {0};
        for (int p = 0; p < PARTS; p++)
            sum += ((const lanes *)h)[p] * ((const lanes *)(w + SECOND + c * HIDDEN))[p];
        error[c] = w[LAST + c];
        for (int lane = 0; lane < LANES; lane++)
            error[c] += sum[lane];
        most = error[c] > most ? error[c] : most;
    }
    for (int c = 0; c < CLASSES; c++)
        total += error[c] = expf(error[c] - most);
    for (int c = 0; c < CLASSES; c++)
        error[c] = error[c] / total - (c == label);
}

/* The second layer's step; each row of `hidden` becomes the gradient of the first layer's output. */
static void step_second(float *w, long size, float pace) {
    static float back[LONGEST_BATCH][HIDDEN];
    memset(back, 0, sizeof back);
    for (int c = 0; c < CLASSES; c++) {
        lanes *line = (lanes *)(w + SECOND + c * HIDDEN), sum[PARTS] = {0};
        float bias = 0;
        for (long i = 0; i < size; i++) {
            for (int p = 0; p < PARTS; p++) {
                sum[p] += errors[i][c] * ((lanes *)hidden[i])[p];
                ((lanes *)back[i])[p] += errors[i][c] * line[p];
            }
            bias += errors[i][c];
        }
        for (int p = 0; p < PARTS; p++)
            line[p] -= pace * sum[p];
        w[LAST + c] -= pace * bias;
    }
    for (long i = 0; i < size; i++)
        for (int j = 0; j < HIDDEN; j++)
            hidden[i][j] = hidden[i][j] > 0 ? back[i][j] : 0;
}

/* The first layer's step: BLOCK inputs at once, so that a gradient is read once for all of them. */
static void step_first(float *w, const float *const *z, long size, float pace) {
    lanes bias[PARTS] = {0};
    for (long i = 0; i < size; i++)
        for (int p = 0; p < PARTS; p++)
            bias[p] += ((lanes *)hidden[i])[p];
    for (int p = 0; p < PARTS; p++)
        ((lanes *)(w + BIAS))[p] -= pace * bias[p];
    for (int k = 0; k < INPUTS; k += BLOCK) {
        lanes sum[BLOCK][PARTS] = {0};
        for (long i = 0; i < size; i++)
            for (int b = 0; b < BLOCK; b++)
                for (int p = 0; p < PARTS; p++)
                    sum[b][p] += z[i][k + b] * ((lanes *)hidden[i])[p];
        for (int b = 0; b < BLOCK; b++)
            for (int p = 0; p < PARTS; p++)
                ((lanes *)(w + (k + b) * HIDDEN))[p] -= pace * sum[b][p];
    }
}

static void step(float *w, const float *x_of, const int64_t *labels_of, const uint32_t *chosen, long size) {
    const float *z[LONGEST_BATCH + BLOCK];
    for (long i = 0; i < size + BLOCK; i++)
        z[i] = x_of + INPUTS * (long)chosen[i < size ? i : 0];
    for (long i = 0; i < size; i += BLOCK) {
        float out[BLOCK][HIDDEN];
        first_layer(w, z + i, out);
        memcpy(hidden[i], out, (size - i < BLOCK ? size - i : BLOCK) * sizeof *out);
    }
    for (long i = 0; i < size; i++)
        second_layer(w, hidden[i], labels_of[chosen[i]], errors[i]);
    step_second(w, size, rate / (float)size);
    step_first(w, z, size, rate / (float)size);
}

/* Give a client the server's model of now; what it will have trained waits in the ticket. */
void start(long ticket, long client, uint64_t key) {
    float *w = trained + ticket * SIZE;
    memcpy(w, server, SIZE * sizeof *w);
    for (long i = 0; i < rows; i++)
        order[i] = (uint32_t)i;
    for (long epoch = 0; epoch < epochs; epoch++) {
        key = shuffle(key);
        for (long first = 0; first < rows; first += batch)
            step(w, x + client * rows * INPUTS, labels + client * rows, order + first,
                 rows - first < batch ? rows - first : batch);
    }
    client_of[ticket] = client;
}

/* The server's model is the mean of every client's latest; then the ticket goes to the next client. */
void arrive(long ticket, long next, uint64_t key) {
    float *old = latest + client_of[ticket] * SIZE, share = 1 / (float)clients;
    const float *now = trained + ticket * SIZE;
    for (long j = 0; j < SIZE; j++) {
        server[j] += share * (now[j] - old[j]);
        old[j] = now[j];
    }
    start(ticket, next, key);
}
