"""networks.py: the networks of networks.lua in PyTorch, in the same ways; scripted is torch.jit.trace, int8 the x86 engine's. `learn`
begins with the weights that networks.lua wrote to TIDE_BENCH_DATA, and takes the same steps on the same data. TIDE_BENCH_DEVICE as there."""
import math
import os
import resource
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F

import bench
import torchvision

warnings.simplefilter("ignore")
DEVICE = os.environ.get("TIDE_BENCH_DEVICE", "cpu")


# ---- networks: a module, its inputs, the target, and the loss of it and what the module returns; how it learns, and its score ----


class Case:
    def __init__(self, net, inputs, target, loss, score=None, learn=(0, 0), images=False):
        self.net, self.inputs, self.target, self.loss = net, inputs, target, loss
        self.score, (self.steps, self.rate), self.images = score or loss, learn, images


def mean_square(wanted, y):
    return F.mse_loss(y, wanted)


def classes(labels, y):
    return F.cross_entropy(y, labels)


def rights(labels, y):
    return 100 * (y.argmax(1) == labels).float().mean()


def tutorial(_):
    net = nn.Sequential(nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
    n = bench.size(32, 4)
    return Case(net, [bench.uniform((n, 3, 32, 32))], bench.ints((n,), 0, 10), classes, rights, (600, 0.02), images=True)


BLOCKS = {"resnet18": [2, 2, 2, 2], "resnet50": [3, 4, 6, 3], "resnet101": [3, 4, 23, 3]}  # of the stages


def resnet(name, batch, pixels, count, small=False):
    def build(what):
        if what == "int8":
            models = torchvision.models.quantization.resnet
            block = models.QuantizableBasicBlock if name == "resnet18" else models.QuantizableBottleneck
            net = models.QuantizableResNet(block, BLOCKS[name], num_classes=count)
        else:
            net = getattr(torchvision.models, name)(num_classes=count)
        if small:
            net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity()
        n, side = bench.size(batch, 2), bench.size(pixels, 32)
        return Case(net, [bench.uniform((n, 3, side, side))], bench.ints((n,), 0, count), classes, rights, (150, 0.02), images=True)
    return build


class Tanh(nn.Module):
    def __init__(self, inputs, width, outputs):
        super().__init__()
        self.width = width
        self.from_input = nn.Linear(inputs, width)
        self.from_state = nn.Linear(width, width, bias=False)
        self.to_output = nn.Linear(width, outputs)

    def forward(self, x):
        h = torch.zeros(x.shape[0], self.width, device=x.device)
        ahead, outputs = self.from_input(x), []
        for t in range(x.shape[1]):
            h = (ahead[:, t] + self.from_state(h)).tanh()
            outputs.append(h)
        return self.to_output(torch.stack(outputs, 1))


def tanh_rnn(what):
    n, length = bench.size(16, 2), bench.size(32, 4)
    net = Tanh(28, 128, 28) if what == "learn" else Tanh(64, 128, 16)
    return Case(net, [bench.uniform((n, length, 64))], bench.uniform((n, length, 16)), mean_square, learn=(400, 0.05))


class Letters(nn.Module):
    def __init__(self, tokens, width, layers, kind=nn.LSTM):
        super().__init__()
        self.embed = nn.Embedding(tokens, width)
        self.lstm = kind(width, width, layers, batch_first=True)
        self.out = nn.Linear(width, tokens)

    def forward(self, tokens):
        return self.out(self.lstm(self.embed(tokens))[0])


def letter_loss(tokens, y):
    return F.cross_entropy(y.flatten(0, 1), tokens.flatten())


def language(net, batch, steps, rate):
    def build(_):
        tokens = bench.ints((bench.size(batch, 2), bench.size(64, 4) + 1), 0, 65)
        return Case(net(), [tokens[:, :-1]], tokens[:, 1:], letter_loss, lambda *both: letter_loss(*both) / math.log(2), (steps, rate))
    return build


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.c_attn, self.c_proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, length, width = x.shape
        q, k, v = (y.view(n, length, self.heads, width // self.heads).transpose(1, 2) for y in self.c_attn(x).chunk(3, 2))
        return self.c_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, length, width))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = nn.LayerNorm(width), Attention(width, heads), nn.LayerNorm(width), Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self, tokens, width, heads, layers, context):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(tokens, width), nn.Embedding(context, width)
        self.h = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
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


def vae(_):
    def loss(truth, result):
        scores, mean, logarithm = result
        pixels = F.binary_cross_entropy_with_logits(scores, truth, reduction="sum")
        return (pixels + (mean.pow(2) + logarithm.exp() - 1 - logarithm).sum() / 2) / len(truth)
    x = bench.uniform((bench.size(64, 2), 784), 0, 1)
    return Case(Vae(784, 256, 16), [x], x, loss, learn=(400, 0.02))


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
        angles = t[:, None] * torch.linspace(0, math.log(1000), self.waves, device=t.device).exp()
        time = self.time(torch.cat((angles.sin(), angles.cos()), 1))
        large = self.down(x, time)
        small = self.middle(F.avg_pool2d(large, 2), time)
        return self.out(self.up(torch.cat((large, F.interpolate(small, scale_factor=2.0)), 1), time))


def diffusion(_):
    n = bench.size(16, 2)
    x, t = bench.uniform((n, 1, 16, 16)), bench.uniform((n,), 0, 1)
    return Case(Denoising(1, 32), [x, t], x, mean_square, learn=(300, 0.05), images=True)


def tacotron2(_):
    torch.version.cuda = "13.0"  # torchaudio wants its own, though nothing here runs on a device
    import torchaudio
    n, length = bench.size(4, 2), bench.size(40, 6)
    text, truth = bench.ints((n, bench.size(20, 4)), 0, 40), bench.uniform((n, 80, length))
    frames = torch.full((n,), length)
    net = torchaudio.models.Tacotron2(
        mask_padding=False, n_symbol=40, symbol_embedding_dim=128, encoder_embedding_dim=128, attention_rnn_dim=256, decoder_rnn_dim=256, prenet_dim=64,
        postnet_embedding_dim=128)

    def loss(wanted, result):
        made, better, gates, _ = result
        last = (torch.arange(1, length + 1, device=wanted.device)[None] >= frames.to(wanted.device)[:, None]).float()
        return F.mse_loss(made, wanted) + F.mse_loss(better, wanted) + F.binary_cross_entropy_with_logits(gates, last)
    return Case(net, [text, torch.full((n,), text.shape[1]), truth, frames], truth, loss)


class WaveNet(nn.Module):
    def __init__(self, into, spectrum, out, width, layers):
        super().__init__()
        self.layers = layers
        self.start, self.condition = nn.Conv1d(into, width, 1), nn.Conv1d(spectrum, 2 * width * layers, 1)
        self.dilated = nn.ModuleList(nn.Conv1d(width, 2 * width, 3, dilation=1 << k, padding=1 << k) for k in range(layers))
        self.mixed = nn.ModuleList(nn.Conv1d(width, 2 * width if k < layers - 1 else width, 1) for k in range(layers))
        self.finish = nn.Conv1d(width, out, 1)
        nn.init.zeros_(self.finish.weight)
        nn.init.zeros_(self.finish.bias)

    def forward(self, x, spectrum):
        x, told = self.start(x), 0
        for k, condition in enumerate(self.condition(spectrum).chunk(self.layers, 1)):
            gate, value = (self.dilated[k](x) + condition).chunk(2, 1)
            y = self.mixed[k](value.tanh() * gate.sigmoid())
            if k < self.layers - 1:
                further, y = y.chunk(2, 1)
                x = x + further
            told = told + y
        return self.finish(told)


class WaveGlow(nn.Module):
    def __init__(self, bands=80, hop=256, window=1024, groups=8, steps=6, width=64, layers=4):
        super().__init__()
        self.groups, self.upsample = groups, nn.ConvTranspose1d(bands, bands, window, stride=hop)
        self.mixes, self.nets, channels = nn.ParameterList(), nn.ModuleList(), groups
        for k in range(steps):
            if k > 0 and k % 4 == 0:
                channels -= 2
            self.mixes.append(torch.linalg.qr(torch.randn(channels, channels))[0].contiguous())
            self.nets.append(WaveNet(channels // 2, bands * groups, 2 * (channels - channels // 2), width, layers))

    def forward(self, sound, spectrum):
        n, length = sound.shape
        condition = self.upsample(spectrum)[:, :, :length // self.groups * self.groups]
        condition = condition.view(n, condition.shape[1], -1, self.groups).permute(0, 1, 3, 2).reshape(n, condition.shape[1] * self.groups, -1)
        x, out, volume = sound.view(n, -1, self.groups).transpose(1, 2), [], 0
        for k, (mix, net) in enumerate(zip(self.mixes, self.nets)):
            if k > 0 and k % 4 == 0:
                out.append(x[:, :2])
                x = x[:, 2:]
            grown = torch.linalg.slogdet(mix.float())[1] * (n * x.shape[2])
            kept, changed = F.conv1d(x, mix[:, :, None]).tensor_split((x.shape[1] // 2,), 1)
            logarithm, shift = net(kept, condition).chunk(2, 1)
            x = torch.cat((kept, changed * logarithm.exp() + shift), 1)
            volume = volume + grown + logarithm.sum()
        return torch.cat((*out, x), 1), volume


def waveglow(_):
    n, frames = bench.size(2, 1), bench.size(16, 4)

    def loss(_, result):
        noise, volume = result
        return (noise.float().pow(2).sum() / 2 - volume) / noise.numel()
    return Case(WaveGlow(), [bench.uniform((n, frames * 256)), bench.uniform((n, 80, frames))], torch.zeros(1), loss)


def dqn(_):
    actions = bench.ints((64, 1), 0, 2)
    net = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    return Case(net, [bench.uniform((64, 4))], bench.uniform((64,)), lambda worth, y: F.smooth_l1_loss(y.gather(1, actions.to(y.device)).squeeze(1), worth))


NETWORKS = {
    "tutorial": tutorial, "resnet18": resnet("resnet18", 8, 32, 10, True), "resnet50": resnet("resnet50", 4, 96, 1000),
    "resnet101": resnet("resnet101", 2, 96, 1000), "tanh_rnn": tanh_rnn, "letters": language(lambda: Letters(65, 128, 2), 16, 300, 1),
    "gru_letters": language(lambda: Letters(65, 128, 2, nn.GRU), 16, 300, 1),
    "gpt": language(lambda: Gpt(65, 128, 4, 4, 64), 8, 300, 0.3), "vae": vae, "diffusion": diffusion, "tacotron2": tacotron2,
    "waveglow": waveglow, "dqn": dqn}
NO_BYTES = ("diffusion", "tacotron2", "waveglow", "dqn")

# ---- ways ----


def in_bytes(case, weights=None):
    """The network in bytes, calibrated with the case's inputs; weights are loaded before."""
    net = case.net.eval()
    if weights is not None:
        net.load_state_dict(weights)
    if not case.images:
        return torch.ao.quantization.quantize_dynamic(net, {nn.Linear, nn.LSTM, nn.GRU}, dtype=torch.qint8)
    if hasattr(net, "fuse_model"):
        net.fuse_model()
    else:
        net = torch.ao.quantization.QuantWrapper(net)
    net.qconfig = torch.ao.quantization.get_default_qconfig("x86")
    net = torch.ao.quantization.prepare(net)
    with torch.no_grad():
        net(*case.inputs)
    return torch.ao.quantization.convert(net)


def in_order(x, way):
    return x.to(memory_format=torch.channels_last) if "channels_last" in way and x.dim() == 4 else x


def loss_of(case, net, way, function=None):
    with torch.autocast(DEVICE, torch.bfloat16, enabled="amp" in way):
        return (function or case.loss)(case.target, net(*case.inputs))


def traced(case, way):
    return torch.jit.trace(case.net, tuple(case.inputs), check_trace=False) if way == "scripted" else case.net


def timed(build, what, way):
    torch.manual_seed(0)
    case = build(way if way == "int8" else what)
    case.net.train(what == "train")
    if "channels_last" in way:
        case.net = case.net.to(memory_format=torch.channels_last)
    case.inputs[0] = in_order(case.inputs[0], way)
    if way == "int8":
        case.net = in_bytes(case)
    case.net, case.target, case.inputs = case.net.to(DEVICE), case.target.to(DEVICE), [x.to(DEVICE) for x in case.inputs]
    net = traced(case, way)
    wait = torch.cuda.synchronize if DEVICE == "cuda" else int
    if what == "run":
        def run():
            with torch.inference_mode(), torch.autocast(DEVICE, torch.bfloat16, enabled="amp" in way):
                net(*case.inputs)
            wait()
        return run
    optimizer = torch.optim.SGD(case.net.parameters(), lr=1e-4, momentum=0.9)

    def step():
        optimizer.zero_grad()
        loss_of(case, net, way).backward()
        optimizer.step()
        wait()
    return step


def learn(name, build, way):
    """The network's score after its steps, or None without data of it."""
    from safetensors.torch import load_file
    path = f"{os.environ.get('TIDE_BENCH_DATA', '')}/{name}.safetensors"
    if not os.path.exists(path):
        return None
    torch.manual_seed(0)
    case, data = build("learn"), load_file(path)
    turned = ("c_attn.weight", "c_fc.weight", "c_proj.weight")  # of GPT-2's layout, which is not Linear's
    case.net.load_state_dict({key[4:]: x.T if key.endswith(turned) else x for key, x in data.items() if key.startswith("net.")})
    first = 0 if data["target"].is_floating_point() else 1  # Tide counts classes and tokens from 1

    def take(prefix, begin, end):
        case.inputs = []
        while f"{prefix}input.{len(case.inputs)}" in data:
            x = data[f"{prefix}input.{len(case.inputs)}"][begin:end]
            case.inputs.append(in_order(x if x.is_floating_point() else x - 1, way))
        case.target = data[f"{prefix}target"][begin:end] - first

    batch = len(case.target)
    steps = len(data["target"]) // batch
    case.net = case.net.to(memory_format=torch.channels_last) if "channels_last" in way else case.net
    optimizer = torch.optim.SGD(case.net.parameters(), lr=case.rate, momentum=0.9)
    case.net.train()
    take("", 0, batch)
    net = traced(case, way)
    for step in range(steps):
        take("", step * batch, (step + 1) * batch)
        optimizer.zero_grad()
        loss_of(case, net, way).backward()
        nn.utils.clip_grad_norm_(case.net.parameters(), 1)
        optimizer.step()
    if way == "int8":
        quantizable = build("int8")
        quantizable.inputs = case.inputs
        net = in_bytes(quantizable if case.images else case, case.net.state_dict())
    case.net.eval()
    take("test_", 0, None)
    with torch.no_grad():
        return loss_of(case, net if way == "int8" else traced(case, way), way, case.score).item()


def main():
    for network, build in NETWORKS.items():
        images = network.startswith("resnet") or network in ("tutorial", "diffusion")
        for what in ("train", "run", "learn"):
            for way in ("f32", "amp", "channels_last", "amp+channels_last", "scripted", "int8"):
                name = f"{network}_{what}_{way}"
                bytes_there = DEVICE == "cpu" and what != "train" and network not in NO_BYTES  # PyTorch has none on a device
                if not bench.chosen(name) or "channels_last" in way and not images or way == "int8" and not bytes_there:
                    continue
                try:
                    if what == "learn":
                        score = learn(network, build, way)
                        if score is not None:
                            print(f'{{"case": "{name}", "score": {score:.6g}}}', flush=True)
                        continue
                    step = timed(build, what, way)
                    step()
                except Exception as problem:  # pylint: disable=broad-except
                    print(f"{name}: {problem}".split("\n", maxsplit=1)[0], file=sys.stderr)
                    continue
                bench.case(name, step, result=lambda: None)
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                print(f'{{"case": "{name}", "peak_mb": {peak}}}', flush=True)


if __name__ == "__main__":
    main()
