"""Names that other toolkits use for settings: fairseq, OpenNMT-py, Marian, Sockeye, Joey NMT and Hugging Face."""

from collections.abc import Collection

NAMES = {
    "train.schedule.peak": "lr learning_rate learningrate learn_rate max_lr peak_lr initial_learning_rate base_lr",
    "train.schedule.warmup": "warmup warmup_steps warmup_updates num_warmup_steps lr_warmup learning_rate_warmup "
    "warmup_ratio",
    "train.schedule.kind": "lr_scheduler lr_scheduler_type scheduler scheduling decay_method "
    "learning_rate_scheduler_type learning_rate_scheduler lr_decay",
    "train.max_epochs": "epoch epochs num_epochs n_epochs nb_epochs num_train_epochs max_epoch after_epochs "
    "max_num_epochs",
    "train.max_steps": "steps num_steps n_steps train_steps max_update max_updates updates after_batches after "
    "total_steps training_steps max_iter iterations",
    "train.max_minutes": "minutes hours max_time time_limit max_hours stop_min_hours stop_time_hours max_seconds "
    "max_train_minutes",
    "train.patience": "early_stopping early_stopping_patience max_num_checkpoint_not_improved early_stop",
    "train.validate_every": "eval_steps eval_every eval_interval eval_freq valid_steps valid_freq valid_interval "
    "validate_interval validate_interval_updates validation_freq validation_interval validate_freq eval_frequency",
    "train.checkpoint_every": "save_steps save_every save_interval save_interval_updates save_checkpoint_steps "
    "save_freq checkpoint_interval checkpoint_freq checkpoint_steps",
    "train.log_every": "logging_steps log_interval report_every disp_freq logging_freq log_freq log_steps",
    "train.average.count": "save_total_limit keep_checkpoint keep_last_epochs keep_last_checkpoints "
    "keep_last_params average_checkpoints",
    "train.metric": "metric_for_best_model best_checkpoint_metric early_stopping_metric early_stopping_criteria "
    "valid_metrics optimized_metric eval_metric",
    "train.ema": "exponential_smoothing average_decay ema_decay moving_average",
    "train.seed": "seed random_seed manual_seed rng_seed",
    "train.accumulate": "gradient_accumulation gradient_accumulation_steps accum_count accum_steps update_freq "
    "optimizer_delay update_interval grad_accum batch_multiplier",
    "train.clip": "clip_norm max_grad_norm clip_grad_norm grad_clip gradient_clipping gradient_clipping_threshold",
    "train.precision": "fp16 bf16 fp32 amp mixed_precision dtype model_dtype half_precision",
    "train.device": "gpu gpus gpu_id gpu_ids gpu_ranks device device_ids devices cuda use_cuda no_cuda cpu use_cpu",
    "train.threads": "cpu_threads num_threads n_threads num_cpu intra_op_parallelism_threads",
    "train.compile": "torch_compile compile_model",
    "train.start": "finetune finetune_from_model pretrained pretrained_model pretrained_model_path init_from "
    "initialize_from model_name_or_path load_model",
    "train.freeze": "fixed_param_names freeze_layers freeze_encoder freeze_params",
    "train.optimiser.kind": "optimizer optim optimiser optimizer_type",
    "train.optimiser.beta1": "adam_beta1 adam_betas betas",
    "train.optimiser.beta2": "adam_beta2",
    "train.optimiser.epsilon": "adam_eps adam_epsilon eps",
    "train.optimiser.weight_decay": "weight_decay wd l2",
    "train.objective.label_smoothing": "label_smoothing label_smoothing_factor",
    "train.objective.kind": "loss criterion objective",
    "data.batch.tokens": "max_tokens mini_batch_words batch_tokens tokens_per_batch max_tokens_per_batch",
    "data.batch.sentences": "batch batchsize batch_size bs mini_batch train_batch_size max_sentences "
    "sentences_per_batch per_device_train_batch_size per_gpu_train_batch_size",
    "data.train.source": "src source train_src path_src source_file train_source src_train train_file trainpref "
    "src_file corpus train_data training_data",
    "data.train.target": "tgt trg target train_tgt path_tgt target_file train_target tgt_train train_trg tgt_file",
    "data.valid.source": "valid_src validation_source val_src valid_source dev_src dev_source src_valid validpref "
    "validation_file dev_file valid_sets val_source",
    "data.valid.target": "valid_tgt validation_target val_tgt valid_target dev_tgt dev_target tgt_valid val_target",
    "data.train.pairs": "pairs tsv train_tsv csv tmx xliff jsonl po",
    "data.valid.pairs": "valid_pairs valid_tsv dev_tsv val_tsv",
    "data.train.weight": "data_weights",
    "data.temperature": "sampling_temperature mixing_temperature",
    "data.source_language": "source_lang src_lang source_language src_language sl",
    "data.target_language": "target_lang tgt_lang target_language tgt_language tl trg_lang",
    "data.cleaning.max_tokens": "max_length max_len max_seq_length max_seq_len max_sequence_length src_seq_length "
    "tgt_seq_length max_source_length max_target_length max_source_positions max_sent_length",
    "data.cleaning.max_ratio": "max_length_ratio length_ratio max_ratio",
    "text.subword.size": "vocab_size vocabulary_size src_vocab_size tgt_vocab_size num_merge_ops n_merges "
    "num_merges merges bpe_size bpe_codes dim_vocabs nwordssrc num_words vocab num_symbols bpe_operations",
    "text.subword.kind": "bpe subword subword_type tokenizer tokenizer_type tokeniser spm sentencepiece pieces "
    "src_subword_type",
    "text.subword.dropout": "bpe_dropout subword_regularization",
    "text.subword.lowercase": "lowercase lower do_lower_case",
    "text.shared": "share_vocab shared_vocab shared_vocabulary joined_dictionary joint_vocab joint_bpe",
    "model.preset": "arch architecture model_size model_type",
    "model.width": "hidden hidden_size hidden_dim d_model dim model_dim rnn_size embed_dim encoder_embed_dim "
    "decoder_embed_dim embedding_dim embedding_size emb_size emb_dim word_vec_size dim_emb dim_rnn "
    "transformer_model_size num_hidden num_embed n_embd",
    "model.dropout": "dropout dropout_rate hidden_dropout attention_dropout activation_dropout transformer_dropout "
    "residual_dropout relu_dropout hidden_dropout_prob transformer_dropout_attention embed_dropout",
    "model.encoder.kind": "encoder_type",
    "model.decoder.kind": "decoder_type",
    "model.encoder.layers": "layers num_layers n_layers enc_layers encoder_layers num_encoder_layers enc_depth depth "
    "num_hidden_layers n_layer",
    "model.decoder.layers": "dec_layers decoder_layers num_decoder_layers dec_depth",
    "model.encoder.heads": "heads num_heads nhead n_heads n_head attention_heads encoder_attention_heads "
    "num_attention_heads transformer_heads transformer_attention_heads",
    "model.decoder.heads": "decoder_attention_heads",
    "model.encoder.feedforward": "ffn ff feedforward feed_forward ffn_dim encoder_ffn_dim encoder_ffn_embed_dim "
    "dim_feedforward d_ff ff_size intermediate_size transformer_ff transformer_dim_ffn ffn_size "
    "transformer_feed_forward_num_hidden",
    "model.decoder.feedforward": "decoder_ffn_dim decoder_ffn_embed_dim",
    "model.encoder.norm": "normalize_before encoder_normalize_before pre_norm prenorm",
    "model.positions.kind": "position_encoding positional_encoding pos_embed position_embeddings rope rotary alibi",
    "model.tie_embeddings": "share_embeddings share_all_embeddings tied_embeddings_all tie_word_embeddings "
    "tie_embeddings tie_weights weight_tying_type",
    "model.tie_projection": "share_decoder_embeddings share_decoder_input_output_embed tied_embeddings tied_softmax",
    "search.beam": "beam beam_size num_beams beamsize beam_width",
    "search.length_penalty": "lenpen length_penalty len_pen normalize length_penalty_alpha",
    "search.nbest": "n_best num_return_sequences n_best_size",
    "search.no_repeat_ngram": "no_repeat_ngram_size block_ngram_repeat",
    "search.maximum_length": "max_new_tokens max_output_length max_length_factor",
    "out": "output output_dir out_dir save_dir save_model save_path model_dir model_path run_dir exp_dir workdir "
    "checkpoint_dir output_folder",
    "seeds": "num_seeds n_seeds",
}
"""Names in other toolkits, separated by spaces, by the setting that they stand for."""
_ALTERNATIVES = {
    "data.batch.tokens": "data.batch.sentences",
    "data.batch.sentences": "data.batch.tokens",
    "model.encoder.layers": "model.decoder.layers",
    "model.encoder.heads": "model.decoder.heads",
    "model.encoder.feedforward": "model.decoder.feedforward",
}
"""A second setting that the same name may stand for."""

_SETTINGS = {name: setting for setting, names in NAMES.items() for name in names.split()}


def normalise(name: str) -> str:
    """Return a name in lower case with underscores and without leading dashes, as in `NAMES`."""
    return name.strip().lstrip("-").lower().replace("-", "_")


def find_synonyms(name: str, known: Collection[str] | None = None) -> list[str]:
    """Return the settings that a dotted name of another toolkit stands for, or an empty list.

    known: names of the existing settings, to which the result is limited; None for no limit.
    """
    parts = [normalise(part) for part in name.split(".")]
    setting = _SETTINGS.get("_".join(parts[-2:])) or _SETTINGS.get(parts[-1])
    if setting is None:
        return []
    settings = [setting, _ALTERNATIVES.get(setting)]
    return [each for each in settings if each is not None and (known is None or each in known)]
