/* Ends the definitions of floats.h or pairs.h. */
#undef NAME
#undef ELEMENT
#undef WIDE
#undef UNIT
#undef SPAN
#undef TARGET
#undef VECTORS
#undef FACTOR
#undef EVERYWHERE
#undef LOAD
#undef MULTIPLY_ADD
#undef JOINED
#undef COLUMNS
