/* Half-gates and output elements, edge by edge: umpc/mpc/garbled/gates.py does it in numpy.
 *
 * EDGES_TOGETHER edges go through all gates, so that their labels stay in the cache. The comments
 * name the steps of half-gates (Zahur, Rosulek & Evans 2015). */

/* A run over a circuit: labels by place, and for each element one word of each edge. pads: those of
 * the garbler's label of color 0 or of the active label; others: of the label of color 1. numbers:
 * those of the edges, as the low words of tweaks. */
typedef struct {
    const circuit *circuit;
    const edges *edges;
    NAME(fixed_key) key;
    VEC delta;
    block *labels, numbers[EDGES_TOGETHER];
    uint64_t *pads, *others;
    size_t start, count;
} NAME(gates);

TARGET static inline block *NAME(label)(const NAME(gates) * run, int64_t place)
{
    return run->labels + place * EDGES_TOGETHER;
}

/* GbAnd for LANES edges times IN_FLIGHT / 4. */
TARGET static void NAME(garble_and)(const NAME(gates) * run, const gate_step *gate, block *first,
                                    block *second)
{
    const block *left = NAME(label)(run, gate->left), *right = NAME(label)(run, gate->right);
    block *out = NAME(label)(run, gate->out);
    uint64_t hash = 2 * (uint64_t)gate->number;
    const VEC j = PAIR(hash, hash), other_j = PAIR(hash + 1, hash + 1);
    for (size_t at = 0; at < run->count; at += IN_FLIGHT / 4 * LANES) {
        VEC x[IN_FLIGHT], tweaks[IN_FLIGHT], a[IN_FLIGHT / 4], b[IN_FLIGHT / 4];
        for (int i = 0; i < IN_FLIGHT / 4; i++) {
            /* labels of color 0 and 1 of both inputs; p_a and p_b are the colors of labels of 0 */
            a[i] = LOAD(left + at + i * LANES);
            b[i] = LOAD(right + at + i * LANES);
            x[4 * i] = XOR(a[i], AND(FIRST_BIT(a[i]), run->delta));
            x[4 * i + 1] = XOR(x[4 * i], run->delta);
            x[4 * i + 2] = XOR(b[i], AND(FIRST_BIT(b[i]), run->delta));
            x[4 * i + 3] = XOR(x[4 * i + 2], run->delta);
            VEC edge = LOAD(run->numbers + at + i * LANES);
            tweaks[4 * i] = tweaks[4 * i + 1] = XOR(edge, j);
            tweaks[4 * i + 2] = tweaks[4 * i + 3] = XOR(edge, other_j);
        }
        NAME(hash_twice)(&run->key, x, tweaks);
        for (int i = 0; i < IN_FLIGHT / 4; i++) {
            VEC p_b = AND(FIRST_BIT(b[i]), run->delta);
            /* First half gate: T_G = H(A0, j) ^ H(A1, j) ^ p_b D. */
            STORE(first + at + i * LANES, XOR(XOR(x[4 * i], x[4 * i + 1]), p_b));
            /* Second half gate: T_E = H(B0, j') ^ H(B1, j') ^ A0. */
            STORE(second + at + i * LANES, XOR(XOR(x[4 * i + 2], x[4 * i + 3]), a[i]));
            /* Combine the halves: C0 = H(A0, j) ^ H(B0, j') ^ p_a p_b D. */
            VEC both = AND(FIRST_BIT(a[i]), p_b);
            STORE(out + at + i * LANES, XOR(XOR(x[4 * i], x[4 * i + 2]), both));
        }
    }
}

/* Ev for LANES edges times IN_FLIGHT / 2. */
TARGET static void NAME(evaluate_and)(const NAME(gates) * run, const gate_step *gate,
                                      const block *first, const block *second)
{
    const block *left = NAME(label)(run, gate->left), *right = NAME(label)(run, gate->right);
    block *out = NAME(label)(run, gate->out);
    uint64_t hash = 2 * (uint64_t)gate->number;
    const VEC j = PAIR(hash, hash), other_j = PAIR(hash + 1, hash + 1);
    for (size_t at = 0; at < run->count; at += IN_FLIGHT / 2 * LANES) {
        VEC x[IN_FLIGHT], tweaks[IN_FLIGHT], a[IN_FLIGHT / 2], b[IN_FLIGHT / 2];
        for (int i = 0; i < IN_FLIGHT / 2; i++) {
            x[2 * i] = a[i] = LOAD(left + at + i * LANES);
            x[2 * i + 1] = b[i] = LOAD(right + at + i * LANES);
            VEC edge = LOAD(run->numbers + at + i * LANES);
            tweaks[2 * i] = XOR(edge, j);
            tweaks[2 * i + 1] = XOR(edge, other_j);
        }
        NAME(hash_twice)(&run->key, x, tweaks);
        for (int i = 0; i < IN_FLIGHT / 2; i++) {
            /* W_G = H(A, j) ^ s_a T_G, W_E = H(B, j') ^ s_b (T_E ^ A) */
            VEC table = LOAD(first + at + i * LANES), other = LOAD(second + at + i * LANES);
            VEC w_g = XOR(x[2 * i], AND(FIRST_BIT(a[i]), table));
            VEC w_e = XOR(x[2 * i + 1], AND(FIRST_BIT(b[i]), XOR(other, a[i])));
            STORE(out + at + i * LANES, XOR(w_g, w_e));
        }
    }
}

/* All gates of these edges. */
TARGET static void NAME(run_gates)(const NAME(gates) * run, int garbles)
{
    block halves[2][EDGES_TOGETHER] = {{{0, 0}}};
    size_t all = 16 * run->edges->count, size = 16 * run->count;
    for (size_t number = 0; number < run->circuit->gates_count; number++) {
        const gate_step *gate = run->circuit->gates + number;
        if (!gate->is_and) {
            /* Free XOR */
            const block *left = NAME(label)(run, gate->left);
            const block *right = NAME(label)(run, gate->right);
            block *out = NAME(label)(run, gate->out);
            for (size_t at = 0; at < run->count; at += LANES)
                STORE(out + at, XOR(LOAD(left + at), LOAD(right + at)));
            continue;
        }
        uint8_t *table = run->edges->tables + (size_t)gate->number * 2 * all + 16 * run->start;
        if (garbles) {
            NAME(garble_and)(run, gate, halves[0], halves[1]);
            memcpy(table, halves[0], size);
            memcpy(table + all, halves[1], size);
        } else {
            memcpy(halves[0], table, size);
            memcpy(halves[1], table + all, size);
            NAME(evaluate_and)(run, gate, halves[0], halves[1]);
        }
    }
}

/* The hashes of labels under one number, as the words of elements. */
TARGET static void NAME(pads)(const NAME(gates) * run, const block *labels, int turned,
                              uint64_t hash, const int64_t *numbers, size_t count, uint64_t *pads)
{
    block hashed[EDGES_TOGETHER];
    const VEC j = PAIR(hash, hash);
    for (size_t at = 0; at < run->count; at += IN_FLIGHT * LANES) {
        VEC x[IN_FLIGHT], tweaks[IN_FLIGHT];
        for (int i = 0; i < IN_FLIGHT; i++) {
            x[i] = LOAD(labels + at + i * LANES);
            if (turned) /* the garbler: to color 0, and for turned 2 to color 1 */
                x[i] = XOR(x[i], AND(FIRST_BIT(x[i]), run->delta));
            if (turned == 2)
                x[i] = XOR(x[i], run->delta);
            tweaks[i] = XOR(LOAD(run->numbers + at + i * LANES), j);
        }
        NAME(hash_twice)(&run->key, x, tweaks);
        for (int i = 0; i < IN_FLIGHT; i++)
            STORE(hashed + at + i * LANES, x[i]);
    }
    for (size_t lane = 0; lane < count; lane++)
        for (size_t e = 0; e < run->count; e++) {
            uint64_t half = run->edges->wide ? (lane ? hashed[e].high : hashed[e].low)
                                             : (lane / 2 ? hashed[e].high : hashed[e].low) >>
                                                   32 * (lane % 2);
            pads[(size_t)numbers[lane] * EDGES_TOGETHER + e] = half;
        }
}

TARGET static void NAME(all_pads)(const NAME(gates) * run, int garbles)
{
    uint64_t hash = 2 * run->circuit->ands;
    size_t lanes = run->edges->wide ? 2 : 4;
    for (size_t i = 0; i < run->circuit->wires_count; i++) {
        const output_wire *wire = run->circuit->wires + i;
        const block *labels = NAME(label)(run, wire->place);
        for (size_t at = 0; at < (size_t)wire->count; at += lanes, hash++) {
            const int64_t *numbers = run->circuit->numbers + wire->first + at;
            size_t count = least(lanes, (size_t)wire->count - at);
            NAME(pads)(run, labels, garbles, hash, numbers, count, run->pads);
            if (garbles)
                NAME(pads)(run, labels, 2, hash, numbers, count, run->others);
        }
    }
}

/* A ring element of edge e in a row of elements, or shares. */
TARGET static inline uint64_t NAME(element)(const NAME(gates) * run, const uint8_t *from,
                                            size_t row, size_t e)
{
    size_t place = row * run->edges->count + run->start + e;
    return run->edges->wide ? ((const word64 *)from)[place] : ((const word32 *)from)[place];
}

TARGET static inline void NAME(set_element)(const NAME(gates) * run, uint8_t *to, size_t row,
                                            size_t e, uint64_t value)
{
    size_t place = row * run->edges->count + run->start + e;
    if (run->edges->wide)
        ((word64 *)to)[place] = value;
    else
        ((word32 *)to)[place] = (uint32_t)value;
}

/* share -= value, or += for the evaluator */
TARGET static inline void NAME(add_share)(const NAME(gates) * run, uint64_t row, size_t e,
                                          uint64_t value)
{
    uint64_t share = NAME(element)(run, run->edges->shares, (size_t)row, e);
    NAME(set_element)(run, run->edges->shares, (size_t)row, e, share + value);
}

/* Sums of weights times pads: of a switch's products, and of its summands. */
TARGET static inline void NAME(switched)(const NAME(gates) * run, const output_element *element,
                                         size_t e, uint64_t *products, uint64_t *units)
{
    *products = *units = 0;
    for (int64_t i = 0; i < element->count; i++) {
        const output_term *term = run->circuit->terms + element->first + i;
        *products += term->weight * run->pads[term->one * EDGES_TOGETHER + e];
        *units += term->weight * run->pads[term->other * EDGES_TOGETHER + e];
    }
}

/* The elements, and both parties' shares. pads become rho, or the evaluator's values. */
TARGET static void NAME(share_elements)(const NAME(gates) * run, int garbles)
{
    for (size_t number = 0; number < run->circuit->elements_count; number++) {
        const output_element *element = run->circuit->elements + number;
        const block *labels = NAME(label)(run, element->place);
        uint64_t *rho = run->pads + number * EDGES_TOGETHER;
        uint64_t *others = run->others + number * EDGES_TOGETHER, products, units;
        for (size_t e = 0; e < run->count; e++) {
            uint64_t color = labels[e].low & 1, made = 0;
            if (garbles)
                made = rho[e] - others[e];
            else
                rho[e] += color * NAME(element)(run, run->edges->elements, number, e);
            if (element->kind == SWITCH) {
                NAME(switched)(run, element, e, &products, &units);
                if (garbles) {
                    made += 2 * products - units;
                    NAME(add_share)(run, (uint64_t)element->other, e, 0 - products - rho[e]);
                } else {
                    uint64_t turned = color * (units - 2 * products);
                    NAME(add_share)(run, (uint64_t)element->other, e, rho[e] + products + turned);
                }
            } else {
                uint64_t factor = 1;
                if (element->kind == PRODUCT)
                    factor = NAME(label)(run, element->other)[e].low & 1;
                if (garbles) {
                    rho[e] -= factor * color;
                    made += factor * (1 - 2 * color);
                }
                for (int64_t i = 0; element->kind == UNIT && i < element->count; i++) {
                    const output_term *term = run->circuit->terms + element->first + i;
                    uint64_t share = term->weight * rho[e];
                    NAME(add_share)(run, term->one, e, garbles ? 0 - share : share);
                }
            }
            if (garbles)
                NAME(set_element)(run, run->edges->elements, number, e, made);
        }
    }
}

/* Returns 0, or -2 where there is no memory. */
TARGET static int NAME(run_circuit)(const block *expanded, const circuit *circuit,
                                    const edges *edges, int garbles)
{
    size_t words = EDGES_TOGETHER * circuit->elements_count;
    block delta = {0, 0}; /* the evaluator has none */
    NAME(gates) run = {.circuit = circuit, .edges = edges};
    NAME(load_fixed_key)(&run.key, expanded);
    if (garbles)
        memcpy(&delta, edges->delta, sizeof delta);
    run.delta = PAIR(delta.low, delta.high);
    run.labels = calloc(EDGES_TOGETHER * circuit->places + 1, sizeof *run.labels);
    run.pads = calloc(2 * words + 1, sizeof *run.pads);
    run.others = run.pads + words;
    if (run.labels == NULL || run.pads == NULL) {
        free(run.labels), free(run.pads);
        return -2;
    }
    for (run.start = 0; run.start < edges->count; run.start += EDGES_TOGETHER) {
        run.count = least(EDGES_TOGETHER, edges->count - run.start);
        for (size_t e = 0; e < EDGES_TOGETHER; e++)
            run.numbers[e] = (block){edges->first_edge + run.start + e, 0};
        for (size_t input = 0; input < circuit->inputs; input++)
            memcpy(NAME(label)(&run, (int64_t)input),
                   edges->labels + 16 * (input * edges->count + run.start), 16 * run.count);
        NAME(run_gates)(&run, garbles);
        NAME(all_pads)(&run, garbles);
        NAME(share_elements)(&run, garbles);
    }
    free(run.labels), free(run.pads);
    return 0;
}

TARGET static int NAME(garble)(const block *expanded, const circuit *circuit, const edges *edges)
{
    return NAME(run_circuit)(expanded, circuit, edges, 1);
}

TARGET static int NAME(evaluate_circuit)(const block *expanded, const circuit *circuit,
                                         const edges *edges)
{
    return NAME(run_circuit)(expanded, circuit, edges, 0);
}
