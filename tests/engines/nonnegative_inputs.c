/* Prints the largest error of an int8 product whose inputs are at least 0 and whose weights have exact codes, relative to
   the largest input: without and with the information that no input is negative. */
#include <stdio.h>

#include "engine.c"

enum { INPUTS = 64, ROWS = 7 };

static float largest_error(int nonnegative) {
    float weights[PANEL * INPUTS], bias[PANEL] = {0}, x[ROWS * INPUTS], y[ROWS * PANEL], error = 0;
    for (int i = 0; i < PANEL * INPUTS; i++) weights[i] = i / INPUTS == i % INPUTS ? 1.0f : 0.0f; /* y is the start of x */
    for (int i = 0; i < ROWS * INPUTS; i++) x[i] = i % INPUTS == INPUTS - 1 ? 1.0f : (float)(i * 37 % 1000) / 1000;
    Matrix matrix;
    Team team = {.size = 1};
    QuantizedRows quantized = {0};
    MatrixSource source = {weights, bias, PANEL, INPUTS, PANEL};
    if (!matrix_pack(&matrix, &source, INT8, nonnegative)) return INFINITY;
    if (!matmul(&team, &quantized, &matrix, x, INPUTS, y, PANEL, ROWS, STORE)) return INFINITY;
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < PANEL; i++) error = fmaxf(error, fabsf(y[row * PANEL + i] - x[row * INPUTS + i]));
    return error;
}

int main(void) {
    printf("%d %f %f\n", dragoman_code_bits(), largest_error(0), largest_error(1));
    return 0;
}
