"""The four symbols that every dragoman vocabulary starts with, at the same ids."""

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIAL_SYMBOLS = ("<pad>", "<s>", "</s>", "<unk>")
