/* The best binary tree over a sentence, by the algorithm of Cocke, Kasami and Younger (CKY), for scores of labelled
   spans (Stern et al. 2017, section 2.3). The Python declarations are in native/chart.py.

   Spans [i, j) of n words are numbered by their start, then by their end: [0, 1), [0, 2), …, [0, n), [1, 2), …  */

#include <stdint.h>
#include <stdlib.h>

static int64_t span_number(int64_t start, int64_t end, int64_t words) {
    return start * words - start * (start - 1) / 2 + end - start - 1;
}

/* Finds the tree with the largest sum of scores. The whole sentence is a constituent, unless its correct label is 0.

   scores: (spans, labels). Label 0 is that of a span which is not a constituent; all its scores are usually 0. gold:
   (spans,) the correct label of each span, for which `margin` is not added to the score, in contrast to all other labels
   (loss-augmented inference); NULL without a margin. tree: (spans,) receives the label of each span of the tree, and −1
   for all other spans. total: receives the sum, which is NaN if a score of the tree is. Ties: the first label, then the
   first split. Returns 0, or 1 if there is not enough memory. */
int32_t dragoman_chart_best(
    const float *scores, int32_t words, int32_t labels, double margin, const int32_t *gold, int32_t *tree, double *total
) {
    int64_t n = words, spans = n * (n + 1) / 2;
    /* best[i][j] and its transpose, so that both loops over the splits read consecutive memory */
    double *best = malloc(sizeof(double) * (size_t)((n + 1) * (n + 1)));
    double *transposed = malloc(sizeof(double) * (size_t)((n + 1) * (n + 1)));
    int32_t *label = malloc(sizeof(int32_t) * (size_t)spans);
    int32_t *split = malloc(sizeof(int32_t) * (size_t)spans);
    int32_t *stack = malloc(sizeof(int32_t) * (size_t)(2 * (n + 1)));
    int32_t failed = 1;
    if (best == NULL || transposed == NULL || label == NULL || split == NULL || stack == NULL) {
        goto done;
    }
    for (int64_t length = 1; length <= n; length++) {
        for (int64_t start = 0; start + length <= n; start++) {
            int64_t end = start + length, number = span_number(start, end, n);
            const float *row = scores + number * labels;
            int32_t correct = gold == NULL ? -1 : gold[number];
            int32_t first = length == n && labels > 1 && correct != 0 ? 1 : 0, chosen = first;
            double highest = 0.0;
            for (int32_t each = first; each < labels; each++) {
                double score = row[each] + (gold != NULL && each != correct ? margin : 0.0);
                if (each == first || score > highest) {
                    highest = score;
                    chosen = each;
                }
            }
            label[number] = chosen;
            split[number] = (int32_t)end;
            if (length > 1) {
                const double *left = best + start * (n + 1), *right = transposed + end * (n + 1);
                int64_t at = start + 1;
                double sum = left[at] + right[at];
                for (int64_t middle = start + 2; middle < end; middle++) {
                    if (left[middle] + right[middle] > sum) {
                        sum = left[middle] + right[middle];
                        at = middle;
                    }
                }
                highest += sum;
                split[number] = (int32_t)at;
            }
            best[start * (n + 1) + end] = transposed[end * (n + 1) + start] = highest;
        }
    }
    for (int64_t number = 0; number < spans; number++) {
        tree[number] = -1;
    }
    int64_t depth = 0;
    stack[depth++] = 0;
    stack[depth++] = (int32_t)n;
    while (depth > 0) {
        int32_t end = stack[--depth], start = stack[--depth];
        int64_t number = span_number(start, end, n);
        tree[number] = label[number];
        if (end - start > 1) {
            stack[depth++] = start;
            stack[depth++] = split[number];
            stack[depth++] = split[number];
            stack[depth++] = end;
        }
    }
    *total = best[n];
    failed = 0;
done:
    free(best);
    free(transposed);
    free(label);
    free(split);
    free(stack);
    return failed;
}
