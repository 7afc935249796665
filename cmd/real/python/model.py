"""Writes a Llama with random weights: model.py FOLDER HIDDEN INNER LAYERS HEADS TEXT...

HIDDEN and INNER are widths. 128 256 2 4 makes a few MB. The tokenizer is trained on the texts
given. Same texts, same versions, same bytes: the weights come from a seed.
"""

import json
import os
import sys

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 2048
POSITIONS = 8192
SPECIAL = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header|>", "<|end_header|>", "<|eot|>"]
BOS, EOS, EOT = 0, 1, 4

TEMPLATE = (
    "{{ '<|begin_of_text|>' }}"
    "{%- if tools %}<|start_header|>tools<|end_header|>\n"
    "{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}<|eot|>{% endif -%}"
    "{%- for message in messages %}"
    "<|start_header|>{{ message['role'] }}<|end_header|>\n"
    "{{ message['content'] if message['content'] is string else '' }}"
    "{%- if message['content'] is not string and message['content'] %}"
    "{% for part in message['content'] %}{{ part['text'] }}{% endfor %}{% endif -%}"
    "{%- if message.get('tool_calls') %}{% for call in message['tool_calls'] %}"
    "{{ call['function'] | tojson }}\n{% endfor %}{% endif -%}"
    "<|eot|>{% endfor -%}"
    "{%- if add_generation_prompt %}<|start_header|>assistant<|end_header|>\n{% endif -%}"
)


def write(folder, name, value):
    with open(os.path.join(folder, name), "w") as f:
        json.dump(value, f, indent=2)


def tokenizer(folder, texts):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.train(texts, trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=SPECIAL, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.save(os.path.join(folder, "tokenizer.json"))
    write(folder, "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": SPECIAL[BOS], "eos_token": SPECIAL[EOT],
        "model_max_length": POSITIONS, "clean_up_tokenization_spaces": False, "chat_template": TEMPLATE})


def weights(folder, hidden, inner, layers):
    torch.manual_seed(1)
    kv = hidden // 2

    def normal(*shape):
        return torch.randn(*shape) * 0.05

    w = {"model.embed_tokens.weight": normal(VOCABULARY, hidden), "model.norm.weight": torch.ones(hidden),
         "lm_head.weight": normal(VOCABULARY, hidden)}
    for i in range(layers):
        layer = f"model.layers.{i}."
        for name, shape in {
            "self_attn.q_proj": (hidden, hidden), "self_attn.k_proj": (kv, hidden),
            "self_attn.v_proj": (kv, hidden), "self_attn.o_proj": (hidden, hidden),
            "mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden), "mlp.down_proj": (hidden, inner),
        }.items():
            w[layer + name + ".weight"] = normal(*shape)
        w[layer + "input_layernorm.weight"] = torch.ones(hidden)
        w[layer + "post_attention_layernorm.weight"] = torch.ones(hidden)
    # No special token and no lone byte is ever the likeliest, so that replies are
    # text and end where they are told to.
    w["lm_head.weight"][:len(SPECIAL) + 256] = 0
    save_file({k: v.to(torch.float32).contiguous() for k, v in w.items()},
              os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})


def main(folder, hidden, inner, layers, heads, *texts):
    hidden, inner, layers, heads = int(hidden), int(inner), int(layers), int(heads)
    os.makedirs(folder, exist_ok=True)
    tokenizer(folder, list(texts))
    weights(folder, hidden, inner, layers)
    write(folder, "generation_config.json", {"bos_token_id": BOS, "eos_token_id": [EOS, EOT]})
    write(folder, "config.json", {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "float32",
        "vocab_size": VOCABULARY, "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers,
        "num_attention_heads": heads, "num_key_value_heads": heads // 2, "head_dim": hidden // heads,
        "max_position_embeddings": POSITIONS, "hidden_act": "silu", "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
        "attention_bias": False, "mlp_bias": False, "tie_word_embeddings": False,
        "bos_token_id": BOS, "eos_token_id": [EOS, EOT]})


if __name__ == "__main__":
    main(*sys.argv[1:])
