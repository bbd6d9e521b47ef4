-- _examples_nn_a.lua: examples of layers and losses, a to l; _examples.lua says how they stand here.
return [==[
## nn.AdaptiveAvgPool1d
> tide.nn.AdaptiveAvgPool1d(2)(tide.tensor{{{1.0, 2, 3, 4}}})
[[[1.5000, 3.5000]]]
float32 (1, 1, 2) cpu

## nn.AdaptiveAvgPool2d
> tide.nn.AdaptiveAvgPool2d(1)(tide.zeros(1, 8, 13, 9)).shape
(1, 8, 1, 1)

## nn.AdaptiveAvgPool3d
> tide.nn.AdaptiveAvgPool3d(2)(tide.zeros(1, 2, 4, 6, 8)).shape
(1, 2, 2, 2, 2)

## nn.AdaptiveLogSoftmaxWithLoss
> layer = tide.nn.AdaptiveLogSoftmaxWithLoss(64, 100, {10, 50})
> output, loss = layer(tide.randn(4, 64), tide.tensor{1, 20, 60, 100})
> output.shape
(4)

## nn.AdaptiveMaxPool1d
> tide.nn.AdaptiveMaxPool1d(2)(tide.tensor{{{1.0, 2, 3, 4}}})
[[[2., 4.]]]
float32 (1, 1, 2) cpu

## nn.AdaptiveMaxPool2d
> tide.nn.AdaptiveMaxPool2d({7, 7})(tide.zeros(1, 8, 13, 9)).shape
(1, 8, 7, 7)

## nn.AdaptiveMaxPool3d
> tide.nn.AdaptiveMaxPool3d(2)(tide.zeros(1, 2, 4, 6, 8)).shape
(1, 2, 2, 2, 2)

## nn.AlphaDropout
> tide.nn.AlphaDropout(0.5):eval()(tide.tensor{1.0, 2})
[1., 2.]
float32 (2) cpu

## nn.AvgPool1d
> tide.nn.AvgPool1d(2)(tide.tensor{{{1.0, 5, 3, 4}}})
[[[3.0000, 3.5000]]]
float32 (1, 1, 2) cpu

## nn.AvgPool2d
> tide.nn.AvgPool2d(2)(tide.zeros(1, 3, 8, 8)).shape
(1, 3, 4, 4)

## nn.AvgPool3d
> tide.nn.AvgPool3d(2)(tide.zeros(1, 3, 4, 4, 4)).shape
(1, 3, 2, 2, 2)

## nn.BatchNorm1d
> tide.nn.BatchNorm1d(3)(tide.randn(8, 3)).shape
(8, 3)

## nn.BatchNorm2d
> layer = tide.nn.BatchNorm2d(3)
> layer(tide.ones(8, 3, 4, 4)).shape
(8, 3, 4, 4)
> layer.running_mean
[0.1000, 0.1000, 0.1000]
float32 (3) cpu

## nn.BatchNorm3d
> tide.nn.BatchNorm3d(3)(tide.randn(2, 3, 4, 4, 4)).shape
(2, 3, 4, 4, 4)

## nn.BCELoss
> tide.nn.BCELoss()(tide.tensor{0.9, 0.2}, tide.tensor{1.0, 0})
0.1642521  float32 () cpu

## nn.BCEWithLogitsLoss
> tide.nn.BCEWithLogitsLoss()(tide.tensor{2.0, -1}, tide.tensor{1.0, 0})
0.2200949  float32 () cpu

## nn.Bilinear
> tide.nn.Bilinear(2, 3, 4)(tide.ones(5, 2), tide.ones(5, 3)).shape
(5, 4)

## nn.CELU
> tide.nn.CELU(2)(tide.tensor{-1.0, 0, 2})
[-0.7869,  0.0000,  2.0000]
float32 (3) cpu

## nn.ChannelShuffle
> tide.nn.ChannelShuffle(2)(tide.arange(4):reshape(1, 4, 1, 1)):flatten()
[0, 2, 1, 3]
int64 (4) cpu

## nn.CircularPad1d
> tide.nn.CircularPad1d(2)(tide.tensor{{{1.0, 2, 3}}})
[[[2., 3., 1., 2., 3., 1., 2.]]]
float32 (1, 1, 7) cpu

## nn.CircularPad2d
> tide.nn.CircularPad2d(1)(tide.ones(1, 1, 3, 3)).shape
(1, 1, 5, 5)

## nn.CircularPad3d
> tide.nn.CircularPad3d(1)(tide.ones(1, 1, 3, 3, 3)).shape
(1, 1, 5, 5, 5)

## nn.class
> Scale = tide.nn.class("Scale")
> function Scale:init(k) self.k = tide.nn.Parameter(tide.full({}, k)) end
> function Scale:forward(x) return x * self.k end
> Scale(3.0)(tide.tensor{1, 2})
[3., 6.]
float32 (2) cpu grad_fn=<MulBackward>

## nn.ConstantPad1d
> tide.nn.ConstantPad1d({1, 2}, 9)(tide.tensor{{{1.0, 2}}})
[[[9., 1., 2., 9., 9.]]]
float32 (1, 1, 5) cpu

## nn.ConstantPad2d
> tide.nn.ConstantPad2d(1, 9)(tide.ones(1, 1, 2, 2)).shape
(1, 1, 4, 4)

## nn.ConstantPad3d
> tide.nn.ConstantPad3d(1, 9)(tide.ones(1, 1, 2, 2, 2)).shape
(1, 1, 4, 4, 4)

## nn.Conv1d
> tide.nn.Conv1d(3, 8, 5)(tide.zeros(1, 3, 20)).shape
(1, 8, 16)

## nn.Conv2d
> layer = tide.nn.Conv2d(3, 8, 3, {padding = 1})
> layer(tide.zeros(1, 3, 32, 32)).shape
(1, 8, 32, 32)

## nn.Conv3d
> tide.nn.Conv3d(1, 2, 3)(tide.zeros(1, 1, 5, 5, 5)).shape
(1, 2, 3, 3, 3)

## nn.ConvTranspose1d
> tide.nn.ConvTranspose1d(3, 2, 4, {stride = 2})(tide.zeros(1, 3, 5)).shape
(1, 2, 12)

## nn.ConvTranspose2d
> tide.nn.ConvTranspose2d(8, 3, 2, {stride = 2})(tide.zeros(1, 8, 16, 16)).shape
(1, 3, 32, 32)

## nn.ConvTranspose3d
> tide.nn.ConvTranspose3d(2, 1, 2)(tide.zeros(1, 2, 3, 3, 3)).shape
(1, 1, 4, 4, 4)

## nn.CosineEmbeddingLoss
> tide.nn.CosineEmbeddingLoss()(tide.tensor{{1.0, 0}}, tide.tensor{{0.0, 1}}, tide.tensor{1.0})
1  float32 () cpu

## nn.CosineSimilarity
> tide.nn.CosineSimilarity()(tide.tensor{{1.0, 0}}, tide.tensor{{2.0, 0}})
[1.]
float32 (1) cpu

## nn.CrossEntropyLoss
> loss = tide.nn.CrossEntropyLoss()
> loss(tide.tensor{{2.0, 0, 0}, {0, 0, 2}}, tide.tensor{1, 3})
0.2395449  float32 () cpu

## nn.CTCLoss
> log_probs = tide.zeros(10, 1, 4):log_softmax(3)
> tide.nn.CTCLoss(4)(log_probs, tide.tensor{{1, 2}}, tide.tensor{10}, tide.tensor{2})
3.829193  float32 () cpu

## nn.Dropout
> layer = tide.nn.Dropout(0.5)
> layer:eval()
Dropout(p=0.5, inplace=false)
> layer(tide.tensor{1.0, 2})
[1., 2.]
float32 (2) cpu

## nn.Dropout1d
> tide.nn.Dropout1d(0.5):eval()(tide.ones(1, 3, 2)).shape
(1, 3, 2)

## nn.Dropout2d
> tide.nn.Dropout2d(0.5):eval()(tide.ones(1, 3, 2, 2)).shape
(1, 3, 2, 2)

## nn.Dropout3d
> tide.nn.Dropout3d(0.5):eval()(tide.ones(1, 3, 2, 2, 2)).shape
(1, 3, 2, 2, 2)

## nn.ELU
> tide.nn.ELU()(tide.tensor{-1.0, 0, 2})
[-0.6321,  0.0000,  2.0000]
float32 (3) cpu

## nn.Embedding
> embedding = tide.nn.Embedding(10, 4)
> embedding(tide.tensor{{1, 5, 10}}).shape
(1, 3, 4)

## nn.EmbeddingBag
> tide.nn.EmbeddingBag(10, 4)(tide.tensor{{1, 5}, {2, 2}}).shape
(2, 4)

## nn.FeatureAlphaDropout
> tide.nn.FeatureAlphaDropout(0.5):eval()(tide.ones(1, 2, 3)).shape
(1, 2, 3)

## nn.Flatten
> tide.nn.Flatten()(tide.zeros(2, 3, 4)).shape
(2, 12)

## nn.Fold
> tide.nn.Fold({3, 3}, {2, 2})(tide.ones(1, 4, 4)).shape
(1, 1, 3, 3)

## nn.GaussianNLLLoss
> tide.nn.GaussianNLLLoss()(tide.tensor{0.0}, tide.tensor{1.0}, tide.tensor{2.0})
0.5965736  float32 () cpu

## nn.GELU
> tide.nn.GELU()(tide.tensor{-1.0, 0, 1})
[-0.1587,  0.0000,  0.8413]
float32 (3) cpu

## nn.GLU
> tide.nn.GLU()(tide.tensor{1.0, 2, 0, 100})
[0.5000, 2.0000]
float32 (2) cpu

## nn.GroupNorm
> tide.nn.GroupNorm(3, 6)(tide.randn(2, 6, 4)).shape
(2, 6, 4)

## nn.GRU
> output, h = tide.nn.GRU(3, 4, {bidirectional = true})(tide.zeros(5, 1, 3))
> output.shape
(5, 1, 8)

## nn.GRUCell
> tide.nn.GRUCell(3, 4)(tide.zeros(2, 3)).shape
(2, 4)

## nn.Hardshrink
> tide.nn.Hardshrink()(tide.tensor{-1.0, 0.2, 2})
[-1.,  0.,  2.]
float32 (3) cpu

## nn.Hardsigmoid
> tide.nn.Hardsigmoid()(tide.tensor{-4.0, 0, 4})
[0.0000, 0.5000, 1.0000]
float32 (3) cpu

## nn.Hardswish
> tide.nn.Hardswish()(tide.tensor{-4.0, 1, 4})
[-0.0000,  0.6667,  4.0000]
float32 (3) cpu

## nn.Hardtanh
> tide.nn.Hardtanh()(tide.tensor{-3.0, 0.5, 3})
[-1.0000,  0.5000,  1.0000]
float32 (3) cpu

## nn.HingeEmbeddingLoss
> tide.nn.HingeEmbeddingLoss()(tide.tensor{0.2, 0.3}, tide.tensor{1.0, -1})
0.45  float32 () cpu

## nn.HuberLoss
> tide.nn.HuberLoss()(tide.tensor{0.5, 3}, tide.tensor{0.0, 0})
1.3125  float32 () cpu

## nn.Identity
> tide.nn.Identity()(tide.tensor{1, 2})
[1, 2]
int64 (2) cpu

## nn.InstanceNorm1d
> tide.nn.InstanceNorm1d(1)(tide.tensor{{{1.0, 2, 3}}})
[[[-1.2247,  0.0000,  1.2247]]]
float32 (1, 1, 3) cpu

## nn.InstanceNorm2d
> tide.nn.InstanceNorm2d(3)(tide.randn(2, 3, 4, 4)).shape
(2, 3, 4, 4)

## nn.InstanceNorm3d
> tide.nn.InstanceNorm3d(3)(tide.randn(2, 3, 4, 4, 4)).shape
(2, 3, 4, 4, 4)

## nn.is_module
> tide.nn.is_module(tide.nn.ReLU())
true

## nn.KLDivLoss
> tide.nn.KLDivLoss{reduction = "sum"}(tide.tensor{0.25, 0.75}:log(), tide.tensor{0.5, 0.5})
0.143841  float32 () cpu

## nn.L1Loss
> tide.nn.L1Loss()(tide.tensor{1.0, 2}, tide.tensor{0.0, 4})
1.5  float32 () cpu

## nn.LayerNorm
> tide.nn.LayerNorm(3)(tide.tensor{{1.0, 2, 3}})
[[-1.2247,  0.0000,  1.2247]]
float32 (1, 3) cpu grad_fn=<NormRowsBackward>

## nn.LeakyReLU
> tide.nn.LeakyReLU(0.1)(tide.tensor{-2.0, 3})
[-0.2000,  3.0000]
float32 (2) cpu

## nn.Linear
> layer = tide.nn.Linear(3, 2)
> layer
Linear(in_features=3, out_features=2, bias=true)
> layer(tide.ones(5, 3)).shape
(5, 2)

## nn.LocalResponseNorm
> tide.nn.LocalResponseNorm(2)(tide.ones(1, 3, 4, 4)).shape
(1, 3, 4, 4)

## nn.LogSigmoid
> tide.nn.LogSigmoid()(tide.tensor{-100.0, 0})
[-100.0000,   -0.6931]
float32 (2) cpu

## nn.LogSoftmax
> tide.nn.LogSoftmax(2)(tide.tensor{{1.0, 2, 3}})
[[-2.4076, -1.4076, -0.4076]]
float32 (1, 3) cpu

## nn.LPPool1d
> tide.nn.LPPool1d(2, 2)(tide.tensor{{{3.0, 4, 6, 8}}})
[[[ 5., 10.]]]
float32 (1, 1, 2) cpu

## nn.LPPool2d
> tide.nn.LPPool2d(2, 2)(tide.zeros(1, 3, 8, 8)).shape
(1, 3, 4, 4)

## nn.LPPool3d
> tide.nn.LPPool3d(2, 2)(tide.zeros(1, 3, 4, 4, 4)).shape
(1, 3, 2, 2, 2)

## nn.LSTM
> lstm = tide.nn.LSTM(3, 4, {num_layers = 2, batch_first = true})
> output, state = lstm(tide.zeros(8, 5, 3))
> output.shape
(8, 5, 4)
> state[1].shape
(2, 8, 4)

## nn.LSTMCell
> h, c = tide.nn.LSTMCell(3, 4)(tide.zeros(2, 3))
> h.shape
(2, 4)
]==]
