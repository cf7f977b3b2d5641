/* The constants of a step of Muon. W ← keep · W − rate · orthogonal((1 − momentum) · G + momentum · M). */
#pragma once

typedef struct {
    float linear, cubic, quintic;
} Quintic;

typedef struct {
    float momentum, keep, rate, margin;
    Quintic steps[3];
} MuonStep;
