"""Writing speed at GPT-2's shape against transformers, CTranslate2 and llama.cpp, with the same weights.

A folder as Hugging Face has it (124M random weights, a made-up tokenizer of 50,257 pieces) becomes one of
ours, one of CTranslate2 in int8 and a GGUF file in q8_0. Every measurement is a process of its own, the
ways take turns, medians count: 128 tokens after a prompt of 32, one text at a time, the likeliest token
each; and a prompt of 512 with one token after it. Ours goes from text to text, the others from ids to ids.
llama.cpp is the package llama-cpp-python, its file is written with gguf; where one is missing, that is said
and llama.cpp is left out.

    python benchmarks/generate.py [--rounds 5] [--work runs/generate-speed]
"""

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from report import write_report

THREADS, PROMPT, NEW, LONG = 2, 32, 128, 512
OURS = ("regard int8", "regard bf16", "regard fp32")  # the first is in the ratios
TRANSFORMERS = ("transformers fp32", "transformers bf16")
LLAMA = "llama.cpp q8_0"
WAYS = (*OURS, *TRANSFORMERS, "ctranslate2 int8", LLAMA)
Write = Callable[[list[int], int], int]  # a prompt, tokens after it -> tokens that came


# The folders -------------------------------------------------------------------------------------


def prepare(work: Path, ways: list[str]) -> None:
    """The model in the form that each way reads."""
    source = work / "huggingface"
    if not (source / "model.safetensors").exists():
        make_source(source)
    if not (work / "regard" / "config.json").exists():
        call(sys.executable, "-m", "regard", "import", str(source), "-o", str(work / "regard"))
    if not (work / "ctranslate2" / "model.bin").exists():
        from ctranslate2.converters import TransformersConverter

        TransformersConverter(str(source)).convert(str(work / "ctranslate2"), quantization="int8", force=True)
    if LLAMA in ways and not (work / "model.gguf").exists():
        write_gguf(source, work / "model.gguf")


def make_source(folder: Path) -> None:
    """GPT-2 124M with random weights, and pieces of one and of two bytes."""
    from transformers import GPT2Config, GPT2LMHeadModel
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    model = GPT2LMHeadModel(GPT2Config())
    with torch.no_grad():
        for parameter in model.parameters():  # so that it does not write one token for ever
            parameter.add_(torch.randn_like(parameter) * 0.02)
    model.save_pretrained(folder)
    letters = list(bytes_to_unicode().values())
    pairs = [(a, b) for a in letters for b in letters][: 50257 - 257]
    pieces = [*letters, *(a + b for a, b in pairs), "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({piece: i for i, piece in enumerate(pieces)}))
    (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in pairs))


def write_gguf(source: Path, path: Path) -> None:
    """The weights as llama.cpp quantises them: matrices in q8_0, the rest as it is."""
    import gguf
    from safetensors.torch import load_file

    vocab = json.loads((source / "vocab.json").read_text())
    writer = gguf.GGUFWriter(path, "gpt2")
    writer.add_block_count(12)
    writer.add_context_length(1024)
    writer.add_embedding_length(768)
    writer.add_feed_forward_length(3072)
    writer.add_head_count(12)
    writer.add_layer_norm_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(list(vocab))
    writer.add_token_types([gguf.TokenType.NORMAL] * (len(vocab) - 1) + [gguf.TokenType.CONTROL])
    writer.add_token_merges((source / "merges.txt").read_text().splitlines()[1:])
    names = {"wte.weight": "token_embd.weight", "wpe.weight": "position_embd.weight"}
    names |= {f"ln_f.{kind}": f"output_norm.{kind}" for kind in ("weight", "bias")}
    parts = {"ln_1": "attn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output"}
    parts |= {"ln_2": "ffn_norm", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
    for name, tensor in load_file(source / "model.safetensors").items():
        name = name.removeprefix("transformer.")
        if name.startswith("h."):
            _, layer, *part, kind = name.split(".")
            if (part_name := ".".join(part)) not in parts:
                continue  # masks of older versions
            given = f"blk.{layer}.{parts[part_name]}.{kind}"
        elif name in names:
            given = names[name]
        else:
            continue
        matrix = tensor.dim() == 2 and name != "wpe.weight"
        data = (tensor.T if matrix and name != "wte.weight" else tensor).contiguous().numpy()
        if matrix:
            kind_of = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(given, gguf.quants.quantize(data, kind_of), raw_dtype=kind_of)
        else:
            writer.add_tensor(given, data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# One process -------------------------------------------------------------------------------------


def with_regard(work: Path, precision: str) -> Write:
    """Ours, as `regard.load` gives it, from text to text."""
    import regard
    from regard.tasks.language.writer import Wish

    writer: Any = regard.load(work / "regard", precision=precision, engine="native")
    bytes_of = writer.tokenizer.spell

    def write(ids: list[int], new: int) -> int:
        (text,) = writer.generate([bytes_of(ids).decode()], Wish(tokens=new))
        return len(text.ids)

    return write


def with_transformers(work: Path, precision: str) -> Write:
    """`generate`, with its cache."""
    from transformers import GPT2LMHeadModel

    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    model = GPT2LMHeadModel.from_pretrained(work / "huggingface", dtype=kind).eval()

    def write(ids: list[int], new: int) -> int:
        given = torch.tensor([ids])
        rules = {"max_new_tokens": new, "min_new_tokens": new, "do_sample": False, "pad_token_id": 0}
        with torch.inference_mode():
            found = model.generate(given, attention_mask=torch.ones_like(given), **rules)
        return int(found.shape[1]) - len(ids)

    return write


def with_ctranslate2(work: Path, precision: str) -> Write:
    """`generate_batch` on one row."""
    import ctranslate2

    pieces = list(json.loads((work / "huggingface" / "vocab.json").read_text()))
    generator = ctranslate2.Generator(
        str(work / "ctranslate2"), compute_type=precision, inter_threads=1, intra_threads=THREADS
    )

    def write(ids: list[int], new: int) -> int:
        rules = {"max_length": new, "min_length": new, "sampling_topk": 1, "include_prompt_in_result": False}
        (found,) = generator.generate_batch([[pieces[i] for i in ids]], **rules)
        return len(found.sequences_ids[0])

    return write


def with_llama(work: Path, precision: str) -> Write:
    """llama.cpp's own calls, without what the package puts around them for text."""
    import llama_cpp
    import numpy as np

    options = {"n_ctx": 1024, "n_batch": LONG, "n_threads": THREADS, "n_threads_batch": THREADS}
    model = llama_cpp.Llama(str(work / "model.gguf"), verbose=False, **options)
    size = model.n_vocab()

    def read(ids: list[int]) -> int:
        tokens = (llama_cpp.llama_token * len(ids))(*ids)
        if llama_cpp.llama_decode(model.ctx, llama_cpp.llama_batch_get_one(tokens, len(ids))) != 0:
            sys.exit("llama.cpp could not read the tokens")
        return int(np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(model.ctx, -1), (size,)).argmax())

    def write(ids: list[int], new: int) -> int:
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(model.ctx), True)
        token = read(ids)
        for _ in range(new - 1):
            token = read([token])
        return new

    return write


def measure(work: Path, way: str) -> dict[str, float]:
    """Tokens a second of writing, with its prompt; of a long prompt; and megabytes."""
    from regard.compare.trial import peak_megabytes

    torch.set_num_threads(THREADS)
    makers = {"regard": with_regard, "transformers": with_transformers}
    makers |= {"ctranslate2": with_ctranslate2, "llama.cpp": with_llama}
    name, precision = way.split()
    write = makers[name](work, precision)
    ids = prompt(work)
    write(ids[:PROMPT], 8)
    began = time.perf_counter()
    came = write(ids[:PROMPT], NEW)
    middle = time.perf_counter()
    write(ids, 1)
    ended = time.perf_counter()
    if came != NEW:
        sys.exit(f"{way} wrote {came} tokens, not {NEW}")
    return {"write": NEW / (middle - began), "read": LONG / (ended - middle), "memory": peak_megabytes()}


def prompt(work: Path) -> list[int]:
    """Pieces of two letters, which every tokenizer takes apart as they are."""
    vocab = json.loads((work / "huggingface" / "vocab.json").read_text())
    letters = "etaoinshrdlu"
    generator = torch.Generator().manual_seed(3)
    drawn = torch.randint(0, len(letters), (LONG, 2), generator=generator).tolist()
    return [vocab[letters[a] + letters[b]] for a, b in drawn]


# All of them -------------------------------------------------------------------------------------


def call(*words: str) -> str:
    """Another program; its output."""
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr}")
    return done.stdout


def child(arguments: argparse.Namespace, way: str) -> dict[str, float]:
    """One measurement in a process of its own."""
    line = (
        call(sys.executable, __file__, "--work", str(arguments.work), "--way", way).strip().splitlines()[-1]
    )
    print(way, line, file=sys.stderr, flush=True)
    found: dict[str, float] = json.loads(line)
    return found


def missing() -> list[str]:
    """What llama.cpp would need and is not there."""
    packages = {"llama_cpp": "llama-cpp-python", "gguf": "gguf"}
    return [name for module, name in packages.items() if importlib.util.find_spec(module) is None]


def report(rounds: list[dict[str, dict[str, float]]]) -> None:
    """The table: medians over the rounds."""
    found = {
        way: {name: statistics.median(each[way][name] for each in rounds) for name in rounds[0][way]}
        for way in rounds[0]
    }
    header = [
        "",
        "written, tokens/s",
        "regard int8 is faster by",
        "prompt of 512, tokens/s",
        "peak memory, MB",
    ]
    first = found[OURS[0]]["write"]
    rows = [
        [way, f"{x['write']:.1f}", f"{first / x['write']:.2f}", f"{x['read']:.0f}", f"{x['memory']:.0f}"]
        for way, x in found.items()
    ]
    text = (
        f"{NEW} tokens after a prompt of {PROMPT}, the prompt's time counted, {THREADS} threads, one text at "
    )
    text += f"a time; then a prompt of {LONG} with one token. Medians of {len(rounds)} rounds."
    write_report("generate", "Writing speed", header, rows, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", type=Path, default=Path("runs/generate-speed"))
    parser.add_argument("--prepare", action="store_true", help="make the folders, measure nothing")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        print(json.dumps(measure(arguments.work, arguments.way)))
        return
    ways = list(WAYS)
    if lacking := missing():
        print(f"llama.cpp is left out: pip install {' '.join(lacking)}", file=sys.stderr)
        ways.remove(LLAMA)
    prepare(arguments.work, ways)
    if arguments.prepare:
        return
    report([{way: child(arguments, way) for way in ways} for _ in range(arguments.rounds)])


if __name__ == "__main__":
    main()
