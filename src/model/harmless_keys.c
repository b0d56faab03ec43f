/* harmless_keys.c: keys of a published config.json that change nothing that is computed here. A key that no family reads and no
 * row has is refused by name. */
#include "family.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL NULL
#define ANY NULL
#define TRANSLATORS "marian pegasus bart mbart m2m_100 "
#define T5S "t5 mt5 umt5 "
#define BERTS "bert roberta xlm-roberta camembert distilbert mpnet electra albert "
#define ENCODERS BERTS "modernbert "
#define GEMMAS "gemma gemma2 gemma3_text "
#define LLAMAS "llama mistral qwen2 qwen3 phi3 " GEMMAS
#define DECODERS "gpt2 opt gpt_neox " LLAMAS

/* Words are separated by spaces. A value is true, false, {}, a number, a word, or =KEY, the value of another key. ANY accepts every
 * value. null is harmless for every key: it sets nothing. "rope:" marks keys within rope_scaling and rope_parameters. */
static const struct row {
    const char *families, *keys, *values, *why;
} rows[] = {
    /* ---- any family ---- */
    { ALL,
      "_name_or_path name_or_path _commit_hash transformers_version auto_map _auto_class custom_pipelines tokenizer_class "
      "processor_class name model_name language finetuning_task line_by_line unsloth_version unsloth_fixed "
      "transformers.js_config is_llama_config __version__ _from_model_config",
      ANY, "where the files come from, and which program wrote or reads them" },
    { ALL, "torch_dtype dtype use_bfloat16 torchscript tf_legacy_loss", ANY, "tensors say what type they have" },
    { ALL,
      "use_cache cache_implementation cache_config chunk_size_feed_forward pretraining_tp reorder_and_upcast_attn xla_device "
      "attn_implementation _attn_implementation _attn_implementation_autoset _attn_implementation_internal "
      "_experts_implementation _flash_attn_2_enabled deterministic_flash_attn reference_compile repad_logits_with_grad",
      ANY, "how another program computes the same numbers" },
    { ALL,
      "return_dict output_attentions _output_attentions output_hidden_states output_past output_scores output_logits "
      "return_dict_in_generate",
      ANY, "what another program returns" },
    { ALL,
      "initializer_range initializer_factor initializer_cutoff_factor init_std gradient_checkpointing sparse_prediction "
      "sparse_pred_ignore_index save_step",
      ANY, "counts while training in another program" },
    { ALL,
      "dropout activation_dropout attention_dropout hidden_dropout hidden_dropout_prob attention_probs_dropout_prob "
      "resid_pdrop attn_pdrop embd_pdrop embedding_dropout mlp_dropout classifier_dropout classifier_dropout_prob "
      "classif_dropout seq_classif_dropout qa_dropout pooler_dropout summary_first_dropout summary_last_dropout layerdrop "
      "encoder_layerdrop decoder_layerdrop",
      ANY, "counts while training, where a family does not read it" },
    { ALL, "id2label label2id num_labels _num_labels problem_type label_separator", ANY, "read where the model has classes" },
    { ALL, "sentence_transformers sbert_ce_default_activation_function", ANY, "read where the model has one class" },
    { ALL, "bos_token_id eos_token_id eos_token_ids pad_token_id sep_token_id cls_token_id mask_token_id unk_token_id", ANY,
      "read where the tokenizer's files do not say it" },
    { ALL,
      "max_length min_length max_new_tokens min_new_tokens max_time do_sample early_stopping num_beams num_beam_groups "
      "diversity_penalty temperature top_k top_p min_p top_h typical_p epsilon_cutoff eta_cutoff repetition_penalty "
      "encoder_repetition_penalty length_penalty no_repeat_ngram_size encoder_no_repeat_ngram_size bad_words_ids "
      "num_return_sequences forced_bos_token_id forced_eos_token_id forced_decoder_ids force_words_ids suppress_tokens "
      "begin_suppress_tokens sequence_bias remove_invalid_values renormalize_logits exponential_decay_length_penalty "
      "penalty_alpha guidance_scale decoder_start_token_id task_specific_params prefix force_bos_token_to_be_generated "
      "constraints low_memory token_healing stop_strings is_assistant assistant_early_exit num_assistant_tokens "
      "num_assistant_tokens_schedule prompt_lookup_num_tokens watermarking_config dola_layers",
      ANY, "how tokens are chosen, which is no part of the model: docs/published.md lists what counts" },
    { ALL, "max_seq_length max_seq_len max_sequence_length seq_length seq_len model_max_length tokenizer_model_max_length", ANY,
      "a length that another program cuts texts to" },
    { ALL, "pruned_heads", "{}", "no heads were removed" },
    { ALL, "is_decoder add_cross_attention tie_encoder_decoder use_bidirectional_attention", "false", "not used" },
    { ALL, "attention_bias mlp_bias qkv_bias lm_head_bias rope_interleaved use_mrope use_qk_norm", "false", "not used" },
    { ALL, "rope_scaling rope_parameters", "{}", "positions are not scaled" },

    /* ---- an encoder with a decoder ---- */
    { TRANSLATORS T5S, "is_encoder_decoder", "true", "the family has both" },
    { T5S, "is_encoder_decoder", "false", "an encoder alone" },
    { TRANSLATORS T5S, "num_hidden_layers", ANY, "each stack has a key of its own" },
    { TRANSLATORS T5S, "hidden_size", "=d_model", "another name" },
    { TRANSLATORS, "num_attention_heads", "=encoder_attention_heads", "another name" },
    { TRANSLATORS, "extra_pos_embeddings add_bias_logits", ANY, "tensors say it" },
    { "marian", "decoder_vocab_size", ANY, "read where share_encoder_decoder_embeddings is false" },
    { T5S, "num_attention_heads", "=num_heads", "another name" },
    { T5S, "head_dim", "=d_kv", "another name" },
    { T5S, "n_positions", ANY, "there are no positions" },

    /* ---- encoders ---- */
    { ENCODERS DECODERS, "is_encoder_decoder", "false", "the family has one stack" },
    { ENCODERS, "tie_word_embeddings tie_weights_", ANY, "read where the model has an output layer" },
    { ENCODERS, "is_causal", "false", "it sees both sides" },
    { ENCODERS, "position_embedding_type", "absolute", "what a table of positions is called" },
    { BERTS, "directionality", "bidi", "it sees both sides" },
    { BERTS, "pooler_type pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head", ANY,
      "of an older program; nothing reads it" },
    { "bert roberta xlm-roberta camembert mpnet", "embedding_size", "=hidden_size", "tables are as wide as layers" },
    { "albert", "net_structure_type gap_size num_memory_blocks down_scale_factor", ANY,
      "of an older program; nothing reads it" },
    { "electra", "summary_type summary_use_proj summary_activation", ANY, "of a head for multiple choice" },
    { "distilbert", "sinusoidal_pos_embds", ANY, "what the table of positions was filled with" },
    { "distilbert", "hidden_size", "=dim", "another name" },
    { "distilbert", "num_attention_heads", "=n_heads", "another name" },
    { "distilbert", "num_hidden_layers", "=n_layers", "another name" },
    { "modernbert", "decoder_bias classifier_bias classifier_activation", ANY, "read where the model has such a head" },
    { "modernbert", "layer_norm_eps", "=norm_eps", "another name" },

    /* ---- decoders ---- */
    { DECODERS, "is_decoder is_causal", "true", "it sees what comes before" },
    { DECODERS, "bos_token eos_token pad_token", ANY, "the tokenizer's files count" },
    { "gpt2", "n_ctx n_special predict_special_tokens", ANY, "of an older program; nothing reads it" },
    { "gpt2", "summary_type summary_use_proj summary_activation summary_proj_to_labels", ANY, "of a head for multiple choice" },
    { "gpt2", "n_vocab", "=vocab_size", "another name" },
    { "gpt2", "hidden_size", "=n_embd", "another name" },
    { "gpt2", "num_attention_heads", "=n_head", "another name" },
    { "gpt2", "num_hidden_layers", "=n_layer", "another name" },
    { "gpt_neox", "rope_theta", "=rotary_emb_base", "another name" },
    { "gpt_neox", "partial_rotary_factor", "=rotary_pct", "another name" },
    { "qwen2 qwen3", "sliding_window max_window_layers layer_types", ANY, "read where use_sliding_window is true" },
    { "qwen2", "attention_bias", ANY, "queries, keys and values always have biases" },
    { "qwen2 qwen3", "dual_chunk_attention_config", ANY, "another program's rule for texts beyond 256k tokens" },
    { GEMMAS, "hidden_act", "gelu gelu_pytorch_tanh", "hidden_activation counts, whose default this means" },
    { "phi3", "original_max_position_embeddings", ANY, "read with longrope" },
    { "phi3", "full_attn_mod interpolate_factor", "1", "not used" },

    /* ---- within rope_scaling and rope_parameters ---- */
    { ALL,
      "rope:type rope:rope_type rope:rope_theta rope:factor rope:low_freq_factor rope:high_freq_factor rope:beta_fast "
      "rope:beta_slow rope:original_max_position_embeddings rope:attention_factor rope:mscale rope:mscale_all_dim "
      "rope:short_factor rope:long_factor rope:truncate",
      ANY, "read as the type needs it" },
    { ALL, "rope:finetuned", ANY, "how the scaling came about" },
    { "gpt_neox phi3", "rope:partial_rotary_factor", ANY, "read" },
    { ALL, "rope:partial_rotary_factor", "1", "all numbers turn" },
};

static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = list; at && (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (!at[n] || at[n] == ' ')) return true;
    return false;
}

/* A word or number of a row. */
static bool is_value(const qkv__published *p, const qkv__json_value *value, const char *said, size_t length)
{
    char text[64], *end;
    snprintf(text, sizeof text, "%.*s", (int)length, said);
    const qkv__json_value *other = *text == '=' ? qkv__json_get(p->config, text + 1) : NULL;
    if (*text == '=') return qkv__json_is_number(value) && qkv__json_number(value) == qkv__json_number(other);
    if (qkv__json_is_bool(value)) return !strcmp(text, qkv__json_is_true(value) ? "true" : "false");
    if (qkv__json_is_object(value)) return !strcmp(text, "{}") && !qkv__json_size(value);
    if (qkv__json_is_string(value)) return !strcmp(text, qkv__json_text(value));
    double number = strtod(text, &end);
    return end > text && !*end && qkv__json_is_number(value) && qkv__json_number(value) == number;
}

static bool is_one_of(const qkv__published *p, const qkv__json_value *value, const char *values)
{
    for (size_t n; *values; values += n + (values[n] == ' '))
        if (n = strcspn(values, " "), is_value(p, value, values, n)) return true;
    return false;
}

/* Whether a row lets the value pass; *supported: what would have passed, NULL: no row has the key. */
static bool is_harmless(const qkv__family *f, const qkv__published *p, const char *key, const qkv__json_value *value,
                        const char **supported)
{
    *supported = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if ((rows[i].families && !has_word(rows[i].families, f->type)) || !has_word(rows[i].keys, key)) continue;
        if (!rows[i].values || is_one_of(p, value, rows[i].values)) return true;
        *supported = rows[i].values;
    }
    return false;
}

static qkv_status refuse_key(const qkv__published *p, const char *key, const qkv__json_value *value, const char *supported)
{
    char other[80];
    if (supported && *supported == '=') {
        snprintf(other, sizeof other, "the value of %s", supported + 1);
        return qkv__unsupported(p, key, other);
    }
    if (supported) return qkv__unsupported(p, key, supported);
    qkv__json_writer w = { 0 };
    qkv__json_put_value(&w, NULL, value);
    qkv_status status =
        w.status ? w.status
                 : qkv__fail(QKV_UNSUPPORTED,
                             "%s: key \"%.60s\" is %.60s: it is unknown here, and may change what the model computes; if it "
                             "does not, remove it from the file",
                             p->path, key, w.text);
    qkv__json_writer_free(&w);
    return status;
}

/* Keys within "rope_scaling", which may have an object for each kind of layers. */
static qkv_status check_rope_keys(const qkv__family *f, const qkv__published *p, const qkv__json_value *object)
{
    const char *key, *supported;
    for (size_t i = 0; (key = qkv__json_key(object, i)); i++) {
        const qkv__json_value *value = qkv__json_at(object, i);
        char name[80];
        qkv_status status = QKV_OK;
        snprintf(name, sizeof name, "rope:%.60s", key);
        if (qkv__json_is_object(value)) status = check_rope_keys(f, p, value);
        else if (!qkv__json_is_null(value) && !is_harmless(f, p, name, value, &supported))
            status = refuse_key(p, key, value, supported);
        if (status) return status;
    }
    return QKV_OK;
}

qkv_status qkv__family_check_keys(const qkv__family *f, const qkv__published *p)
{
    const char *key, *supported;
    for (size_t i = 0; p->is_read && (key = qkv__json_key(p->config, i)); i++) {
        const qkv__json_value *value = qkv__json_at(p->config, i);
        if (!p->is_read[i] && !qkv__json_is_null(value) && !is_harmless(f, p, key, value, &supported))
            return refuse_key(p, key, value, supported);
    }
    qkv_status status = check_rope_keys(f, p, qkv__json_get(p->config, "rope_scaling"));
    return status ? status : check_rope_keys(f, p, qkv__json_get(p->config, "rope_parameters"));
}
