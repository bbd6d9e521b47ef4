"""golden_networks.py: what PyTorch's own networks make of parameters that are formulas, for test_networks.lua: golden_networks.py >
golden_networks.lua

Needs torch, torchvision (ResNet), transformers (GPT-2) and torchaudio (Tacotron 2)."""
import warnings

import torch
import torchaudio
import torchvision
from transformers import GPT2Config, GPT2LMHeadModel

warnings.simplefilter("ignore")


def wave(shape, phase):
    n = int(torch.tensor(shape).prod()) if shape else 1
    return torch.sin(torch.arange(n, dtype=torch.float64) * 0.7 + phase).reshape(shape)


def fill(net):
    """Parameters and buffers by name: the same formula as in the test."""
    state = net.state_dict()
    names = sorted(name for name in state if not name.endswith("num_batches_tracked") and not name.endswith(".attn.bias")
                   and not name.endswith("masked_bias") and name != "lm_head.weight")
    for phase, name in enumerate(names):
        x = state[name]
        y = wave(tuple(x.shape), phase)
        if x.dim() >= 2:
            y *= (x.shape[0] / x.numel()) ** 0.5
        elif name.endswith("weight") or name.endswith("running_var"):
            y = 1 + y * 0.1
        else:
            y *= 0.1
        x.copy_(y)
    return net.eval()


def show(name, x):
    print(f"    {name} = {{ {', '.join(f'{v:.7g}' for v in x.flatten().tolist())} }},")


def main():
    print(f"-- By golden_networks.py, PyTorch {torch.__version__.split('+')[0]}.\nreturn {{")
    with torch.no_grad():
        x = wave((2, 3, 64, 64), 0).float()
        show("resnet18", fill(torchvision.models.resnet18())(x)[:, ::100])
        show("resnet50", fill(torchvision.models.resnet50())(x)[:, ::100])
        gpt = fill(GPT2LMHeadModel(GPT2Config(vocab_size=50, n_positions=32, n_embd=48, n_layer=3, n_head=4)))
        tokens = torch.arange(24).reshape(2, 12) * 7 % 50
        show("gpt", gpt(tokens).logits[:, ::5, ::10])
        torch.nn.functional.dropout = lambda x, *_, **__: x  # the prenet drops at random, also in evaluation
        net = fill(torchaudio.models.Tacotron2(
            mask_padding=True, n_mels=10, symbol_embedding_dim=16, encoder_embedding_dim=16, n_symbol=20, attention_rnn_dim=24, decoder_rnn_dim=24,
            attention_hidden_dim=12, attention_location_n_filter=4, attention_location_kernel_size=7, prenet_dim=12,
            postnet_embedding_dim=16, postnet_n_convolution=4))
        letters = torch.arange(14).reshape(2, 7) * 3 % 20
        made, better, gates, weights = net(letters, torch.tensor([7, 5]), wave((2, 10, 9), 1).float(), torch.tensor([9, 6]))
        for name, value in (("made", made[:, ::3, ::2]), ("better", better[:, ::3, ::2]), ("gates", gates), ("weights", weights[:, ::4])):
            show(name, value)
    print("}")


main()
