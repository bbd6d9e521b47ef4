"""networks.py: the networks of networks.lua in PyTorch, in the same ways; scripted is torch.jit.trace."""
import math
import resource
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F

import bench
import torchvision

warnings.simplefilter("ignore")


# ---- networks: a module, its inputs, and the loss of what it gives ----


def tutorial():
    net = nn.Sequential(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
    labels = bench.ints((bench.size(32, 4),), 0, 10)
    return net, [bench.uniform((len(labels), 3, 32, 32))], lambda y: F.cross_entropy(y, labels)


def resnet(make, batch, pixels, classes, small=False):
    def build():
        net = make(num_classes=classes)
        if small:
            net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity()
        labels = bench.ints((bench.size(batch, 2),), 0, classes)
        side = bench.size(pixels, 32)
        return net, [bench.uniform((len(labels), 3, side, side))], lambda y: F.cross_entropy(y, labels)
    return build


class Tanh(nn.Module):
    def __init__(self, inputs, width, outputs):
        super().__init__()
        self.from_input = nn.Linear(inputs, width)
        self.from_state = nn.Linear(width, width, bias=False)
        self.to_output = nn.Linear(width, outputs)

    def forward(self, x):
        h = torch.zeros(x.shape[0], self.from_state.weight.shape[0])
        ahead, outputs = self.from_input(x), []
        for t in range(x.shape[1]):
            h = (ahead[:, t] + self.from_state(h)).tanh()
            outputs.append(h)
        return self.to_output(torch.stack(outputs, 1))


def tanh_rnn():
    x, wanted = bench.uniform((bench.size(16, 2), bench.size(32, 4), 64)), bench.uniform((bench.size(16, 2), bench.size(32, 4), 16))
    return Tanh(64, 128, 16), [x], lambda y: F.mse_loss(y, wanted)


class Letters(nn.Module):
    def __init__(self, tokens, width, layers):
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.out = nn.Linear(width, tokens)

    def forward(self, tokens):
        return self.out(self.lstm(self.embed(tokens))[0])


def language(net, batch, length):
    def build():
        tokens = bench.ints((bench.size(batch, 2), bench.size(length, 4) + 1), 0, 65)
        return net(), [tokens[:, :-1]], lambda y: F.cross_entropy(y.flatten(0, 1), tokens[:, 1:].flatten())
    return build


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.c_attn, self.c_proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = (y.view(n, length, self.heads, width // self.heads).transpose(1, 2) for y in self.c_attn(x).chunk(3, 2))
        return self.c_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, length, width))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.attn, self.ln_2 = nn.LayerNorm(width), Attention(width, heads), nn.LayerNorm(width)
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, tokens, width, heads, layers, context):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(tokens, width), nn.Embedding(context, width)
        self.h = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        for layer in self.h:
            x = layer(x)
        return F.linear(self.ln_f(x), self.wte.weight)


class Vae(nn.Module):
    def __init__(self, pixels, width, points):
        super().__init__()
        self.first, self.mean, self.spread = nn.Linear(pixels, width), nn.Linear(width, points), nn.Linear(width, points)
        self.back, self.last = nn.Linear(points, width), nn.Linear(width, pixels)

    def forward(self, x):
        h = F.relu(self.first(x))
        mean, logarithm = self.mean(h), self.spread(h)
        z = mean + torch.randn_like(mean) * (logarithm / 2).exp()
        return self.last(F.relu(self.back(z))), mean, logarithm


def vae():
    x = bench.uniform((bench.size(64, 2), 784), 0, 1)

    def loss(result):
        scores, mean, logarithm = result
        pixels = F.binary_cross_entropy_with_logits(scores, x, reduction="sum")
        return (pixels + (mean.pow(2) + logarithm.exp() - 1 - logarithm).sum() / 2) / len(x)
    return Vae(784, 256, 16), [x], loss


class Block(nn.Module):
    def __init__(self, into, out, time):
        super().__init__()
        self.first, self.norm = nn.Conv2d(into, out, 3, padding=1), nn.GroupNorm(4, out)
        self.time, self.second = nn.Linear(time, out), nn.Conv2d(out, out, 3, padding=1)
        self.beside = nn.Conv2d(into, out, 1) if into != out else nn.Identity()

    def forward(self, x, time):
        y = F.silu(self.norm(self.first(x))) + self.time(time)[:, :, None, None]
        return F.silu(self.second(y)) + self.beside(x)


class Denoising(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.waves, self.time = width, nn.Sequential(nn.Linear(2 * width, 2 * width), nn.SiLU())
        self.down, self.middle = Block(channels, width, 2 * width), Block(width, 2 * width, 2 * width)
        self.up, self.out = Block(3 * width, width, 2 * width), nn.Conv2d(width, channels, 1)

    def forward(self, x, t):
        angles = t[:, None] * torch.linspace(0, math.log(1000), self.waves).exp()
        time = self.time(torch.cat((angles.sin(), angles.cos()), 1))
        large = self.down(x, time)
        small = self.middle(F.avg_pool2d(large, 2), time)
        return self.out(self.up(torch.cat((large, F.interpolate(small, scale_factor=2.0)), 1), time))


def diffusion():
    x, t = bench.uniform((bench.size(16, 2), 1, 16, 16)), bench.uniform((bench.size(16, 2),), 0, 1)
    return Denoising(1, 32), [x, t], lambda y: F.mse_loss(y, x)


def tacotron2():
    torch.version.cuda = "13.0"  # torchaudio wants its own, though nothing here runs on a device
    import torchaudio
    n, length = bench.size(4, 2), bench.size(40, 6)
    text, truth = bench.ints((n, bench.size(20, 4)), 0, 40), bench.uniform((n, 80, length))
    frames = torch.full((n,), length)
    net = torchaudio.models.Tacotron2(
        mask_padding=False, n_symbol=40, symbol_embedding_dim=128, encoder_embedding_dim=128, attention_rnn_dim=256, decoder_rnn_dim=256, prenet_dim=64,
        postnet_embedding_dim=128)

    def loss(result):
        made, better, gates, _ = result
        last = (torch.arange(1, length + 1)[None] >= frames[:, None]).float()
        return F.mse_loss(made, truth) + F.mse_loss(better, truth) + F.binary_cross_entropy_with_logits(gates, last)
    return net, [text, torch.full((n,), text.shape[1]), truth, frames], loss


NETWORKS = {
    "tutorial": tutorial, "resnet18": resnet(torchvision.models.resnet18, 8, 32, 10, True), "resnet50": resnet(torchvision.models.resnet50, 4, 96, 1000),
    "resnet101": resnet(torchvision.models.resnet101, 2, 96, 1000), "tanh_rnn": tanh_rnn, "letters": language(lambda: Letters(65, 128, 2), 16, 64),
    "gpt": language(lambda: Gpt(65, 128, 4, 4, 64), 8, 64), "vae": vae, "diffusion": diffusion, "tacotron2": tacotron2}

# ---- ways ----


def make(build, what, way):
    torch.manual_seed(0)
    net, inputs, loss = build()
    net.train(what == "train")
    if "channels_last" in way:
        net = net.to(memory_format=torch.channels_last)
        inputs[0] = inputs[0].to(memory_format=torch.channels_last)
    if "scripted" in way:
        net = torch.jit.trace(net, tuple(inputs), check_trace=False)

    def forward():
        with torch.autocast("cpu", torch.bfloat16, enabled="amp" in way):
            return net(*inputs)

    if what == "run":
        def run():
            with torch.inference_mode():
                forward()
        return run
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9)

    def step():
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled="amp" in way):
            value = loss(net(*inputs))
        value.backward()
        optimizer.step()
    return step


def main():
    for network, build in NETWORKS.items():
        for what in ("train", "run"):
            for way in ("f32", "amp", "channels_last", "amp+channels_last", "scripted"):
                name = f"{network}_{what}_{way}"
                images = network.startswith("resnet") or network in ("tutorial", "diffusion")
                if bench.chosen(name) and (images or "channels_last" not in way):
                    try:
                        step = make(build, what, way)
                        step()
                    except Exception as problem:  # pylint: disable=broad-except
                        print(f"{name}: {problem}".split("\n", maxsplit=1)[0], file=sys.stderr)
                        continue
                    bench.case(name, step, result=lambda: None)
                    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                    print(f'{{"case": "{name}", "peak_mb": {peak}}}', flush=True)


main()
