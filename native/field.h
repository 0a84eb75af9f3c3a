/* F = Z_p, p = 2^64 - 2^32 + 1, and K = F[t]/(t^2 - 7). Included by kernel.c.
 *
 * umpc/crypto/field.py says what each function computes, and is the reference. No instruction set is
 * needed, so every kind has this code. Elements are below p, and callers have checked all sizes. A
 * compiler without 128-bit integers refuses it: umpc is then built without the library, and computes
 * in numpy. */

typedef unsigned __int128 double_word;

#define FIELD_P 0xFFFFFFFF00000001ULL
#define FIELD_EPSILON 0xFFFFFFFFULL /* 2^64 mod p */
#define FIELD_GENERATOR 7
#define CHAINS 4 /* products of an inversion that are under way together */
#define FIXED static inline __attribute__((always_inline))

/* Without a branch: it would depend on a secret, and be mispredicted half of the time. */
FIXED uint64_t field_subtract(uint64_t a, uint64_t b)
{
    uint64_t wrapped = 0 - (uint64_t)(a < b);
    return a - b - (wrapped & FIELD_EPSILON);
}

FIXED uint64_t field_add(uint64_t a, uint64_t b)
{
    return field_subtract(a, FIELD_P - b);
}

/* 2^64 = 2^32 - 1 and 2^96 = -1 */
FIXED uint64_t field_reduced(double_word x)
{
    uint64_t low = (uint64_t)x, high = (uint64_t)(x >> 64);
    return field_add(field_subtract(low, high >> 32), (high & FIELD_EPSILON) * FIELD_EPSILON);
}

FIXED uint64_t field_product(uint64_t a, uint64_t b)
{
    return field_reduced((double_word)a * b);
}

static uint64_t field_power(uint64_t x, uint64_t exponent)
{
    uint64_t found = 1;
    for (; exponent; exponent >>= 1, x = field_product(x, x))
        if (exponent & 1)
            found = field_product(found, x);
    return found;
}

/* A sum of products of 128 bits, and how often it passed 2^128. */
typedef struct {
    double_word sum;
    uint64_t carries;
} product_sum;

FIXED void add_product(product_sum *to, uint64_t a, uint64_t b)
{
    double_word product = (double_word)a * b;
    to->sum += product;
    to->carries += to->sum < product;
}

/* 2^128 = -2^32 */
FIXED uint64_t sum_reduced(const product_sum *of)
{
    return field_subtract(field_reduced(of->sum), field_reduced((double_word)of->carries << 32));
}

int umpc_field_multiply(int kind, const void *a, const void *b, size_t count, void *to)
{
    const word64 *left = a, *right = b;
    word64 *out = to;
    if (kernel_of(kind) == NULL)
        return -1;
    for (size_t i = 0; i < count; i++)
        out[i] = field_product(left[i], right[i]);
    return 0;
}

int umpc_field_times(int kind, const void *a, const void *b, size_t count, void *to)
{
    const word64 *left = a, *right = b;
    word64 *out = to;
    if (kernel_of(kind) == NULL)
        return -1;
    for (size_t i = 0; i < 2 * count; i += 2) {
        product_sum cross = {0, 0};
        uint64_t squares = field_product(left[i + 1], right[i + 1]);
        add_product(&cross, left[i], right[i + 1]);
        add_product(&cross, left[i + 1], right[i]);
        out[i] = field_reduced((double_word)left[i] * right[i] +
                               (double_word)squares * FIELD_GENERATOR);
        out[i + 1] = sum_reduced(&cross);
    }
    return 0;
}

/* left, right: words of an element, 1 in F or 2 in K. In the loop they are constants. */
FIXED void inner_of_row(int left, int right, const word64 *a, const word64 *b, size_t count,
                        word64 *to)
{
    product_sum ones = {0, 0}, cross = {0, 0}, squares = {0, 0};
    for (size_t i = 0; i < count; i++, a += left, b += right) {
        add_product(&ones, a[0], b[0]);
        if (right == 2)
            add_product(&cross, a[0], b[1]);
        if (left == 2) {
            add_product(&cross, a[1], b[0]);
            add_product(&squares, a[1], b[1]);
        }
    }
    uint64_t more = field_product(sum_reduced(&squares), FIELD_GENERATOR);
    to[0] = field_add(sum_reduced(&ones), more);
    if (right == 2)
        to[1] = sum_reduced(&cross);
}

/* steps: words from a row to the next one; 0 where all rows have the same one. */
int umpc_field_inner(int kind, int left, int right, const void *a, size_t a_step, const void *b,
                     size_t b_step, size_t rows, size_t count, void *to)
{
    const word64 *one = a, *other = b;
    word64 *out = to;
    if (kernel_of(kind) == NULL)
        return -1;
    for (; rows; rows--, one += a_step, other += b_step, out += right) {
        if (left == 2)
            inner_of_row(2, 2, one, other, count, out);
        else if (right == 2)
            inner_of_row(1, 2, one, other, count, out);
        else
            inner_of_row(1, 1, one, other, count, out);
    }
    return 0;
}

/* Montgomery's simultaneous inversion, in chains that do not wait for each other. */
int umpc_field_inverse(int kind, const void *x, size_t count, void *to)
{
    const word64 *in = x;
    word64 *out = to;
    uint64_t products[CHAINS] = {1, 1, 1, 1};
    if (kernel_of(kind) == NULL)
        return -1;
    /* up: the product of all elements of the chain before this one */
    for (size_t i = 0; i < count; i++) {
        out[i] = products[i % CHAINS];
        products[i % CHAINS] = field_product(products[i % CHAINS], in[i]);
    }
    for (size_t chain = 0; chain < CHAINS; chain++)
        products[chain] = field_power(products[chain], FIELD_P - 2);
    /* down: products has the inverse of the product up to this one */
    for (size_t i = count; i-- > 0;) {
        out[i] = field_product(out[i], products[i % CHAINS]);
        products[i % CHAINS] = field_product(products[i % CHAINS], in[i]);
    }
    return 0;
}

/* The elements of a row, in the order of their numbers' bits from the last one on. */
FIXED void reorder(const word64 *x, size_t n, size_t width, word64 *to)
{
    size_t place = 0;
    for (size_t i = 0; i < n; i++) {
        size_t bit = n >> 1;
        for (size_t word = 0; word < width; word++)
            to[place * width + word] = x[i * width + word];
        for (; place & bit; bit >>= 1)
            place ^= bit;
        place |= bit;
    }
}

/* Cooley and Tukey's transform of radix 2, in place. */
FIXED void transform_row(const word64 *x, const word64 *roots, size_t n, size_t width, word64 *to)
{
    reorder(x, n, width, to);
    for (size_t done = 1; done < n; done *= 2)
        for (size_t start = 0; start < n; start += 2 * done)
            for (size_t k = 0; k < done; k++) {
                uint64_t root = roots[k * (n / 2 / done)];
                word64 *even = to + (start + k) * width, *odd = even + done * width;
                for (size_t word = 0; word < width; word++) {
                    uint64_t one = even[word], other = field_product(odd[word], root);
                    even[word] = field_add(one, other);
                    odd[word] = field_subtract(one, other);
                }
            }
}

int umpc_field_transform(int kind, const void *x, const void *roots, size_t rows, size_t n,
                         size_t width, void *to)
{
    const word64 *in = x;
    word64 *out = to;
    if (kernel_of(kind) == NULL)
        return -1;
    for (; rows; rows--, in += n * width, out += n * width) {
        if (width == 1)
            transform_row(in, roots, n, 1, out);
        else if (width == 2)
            transform_row(in, roots, n, 2, out);
        else
            transform_row(in, roots, n, width, out);
    }
    return 0;
}
