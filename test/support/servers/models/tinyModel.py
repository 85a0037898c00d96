"""Writes a tiny model with random weights as GGUF: python3 tinyModel.py model.gguf"""
import sys
import numpy as np
from gguf import GGUFWriter, TokenType

EMBEDDING, FEED_FORWARD, HEADS, LAYERS, CONTEXT = 64, 128, 4, 2, 2048
tokens = [b"<unk>", b"<s>", b"</s>", *(f"<0x{byte:02X}>".encode() for byte in range(256)), "▁".encode()]
types = [TokenType.UNKNOWN, TokenType.CONTROL, TokenType.CONTROL, *[TokenType.BYTE] * 256, TokenType.NORMAL]
writer = GGUFWriter(sys.argv[1], "llama")
writer.add_context_length(CONTEXT)
writer.add_embedding_length(EMBEDDING)
writer.add_block_count(LAYERS)
writer.add_feed_forward_length(FEED_FORWARD)
writer.add_head_count(HEADS)
writer.add_head_count_kv(HEADS)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_rope_dimension_count(EMBEDDING // HEADS)
writer.add_tokenizer_model("llama")
writer.add_token_list(tokens)
writer.add_token_scores([0.0] * len(tokens))
writer.add_token_types(types)
writer.add_unk_token_id(0)
writer.add_bos_token_id(1)
writer.add_eos_token_id(2)
random = np.random.default_rng(1)


def weights(*shape):
    return (random.standard_normal(shape) * 0.1).astype(np.float32)


def add(name, *shape):
    writer.add_tensor(name, weights(*shape))


def norm(name):
    writer.add_tensor(name, np.ones(EMBEDDING, dtype=np.float32))


# The first dimension is the same for each token, so that a weight on it makes a token likely or not:
# the model writes printable ASCII, and seldom ends.
embedding, output = weights(len(tokens), EMBEDDING), weights(len(tokens), EMBEDDING)
embedding[:, 0] = 2
output[:, 0] = -2
output[3 + 0x20 : 3 + 0x7F, 0] = 0
output[2, 0] = -0.3
writer.add_tensor("token_embd.weight", embedding)
writer.add_tensor("output.weight", output)
norm("output_norm.weight")
for layer in range(LAYERS):
    block = f"blk.{layer}"
    norm(f"{block}.attn_norm.weight")
    norm(f"{block}.ffn_norm.weight")
    for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
        add(f"{block}.{part}.weight", EMBEDDING, EMBEDDING)
    add(f"{block}.ffn_gate.weight", FEED_FORWARD, EMBEDDING)
    add(f"{block}.ffn_up.weight", FEED_FORWARD, EMBEDDING)
    add(f"{block}.ffn_down.weight", EMBEDDING, FEED_FORWARD)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
