"""pretrained.py: the peers of pretrained.lua: the cases by PyTorch's eager mode with networks of the same sizes (transformers; EfficientNet has
none there), those called _scripted by onnxruntime, from the models that pretrained.lua wrote into TIDE_BENCH_MODELS."""
import os
import sys

import torch

import bench

torch.version.cuda = "13.0"  # torchaudio, which transformers loads, wants its own, though nothing here runs on a device
FOLDER = os.environ.get("TIDE_BENCH_MODELS")


def eager(name):
    import transformers
    if name.startswith("minilm"):
        rows = int(name.split("_")[1])
        config = transformers.BertConfig(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536)
        net, ids = transformers.BertModel(config, add_pooling_layer=False).eval(), bench.ints((rows, 16), 1000, 20000)
    else:
        config = transformers.GPT2Config(vocab_size=5000, n_embd=384, n_head=6, n_layer=6, n_positions=128, use_cache=False)
        net, ids = transformers.GPT2LMHeadModel(config).eval(), bench.ints((1, 64), 0, 5000)

    def run():
        with torch.inference_mode():
            net(ids)
    return run


def in_onnxruntime(name):
    import onnxruntime
    import safetensors.numpy
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(f"{FOLDER}/{name}.onnx", options)
    inputs = safetensors.numpy.load_file(f"{FOLDER}/{name}.safetensors")
    return (lambda: session.run(None, inputs)), (lambda: torch.from_numpy(session.run(None, inputs)[0]))


for case in ("minilm_1", "minilm_32", "efficientnet_1", "gpt_1"):
    if case != "efficientnet_1":
        bench.made(case, lambda name=case: (eager(name), lambda: None), 1)
    if FOLDER and os.path.exists(f"{FOLDER}/{case}.onnx"):
        bench.made(case + "_scripted", lambda name=case: in_onnxruntime(name), 1)
    elif not FOLDER:
        print("TIDE_BENCH_MODELS names no folder: nothing of onnxruntime", file=sys.stderr)
