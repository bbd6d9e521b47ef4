-- _examples_nn_m.lua: examples of layers and losses, m to z; _examples.lua says how they stand here.
return [==[
## nn.MarginRankingLoss
> tide.nn.MarginRankingLoss()(tide.tensor{1.0}, tide.tensor{3.0}, tide.tensor{1.0})
2  float32 () cpu

## nn.MaxPool1d
> tide.nn.MaxPool1d(2)(tide.tensor{{{1.0, 5, 3, 4}}})
[[[5., 4.]]]
float32 (1, 1, 2) cpu

## nn.MaxPool2d
> tide.nn.MaxPool2d(2)(tide.zeros(1, 3, 8, 8)).shape
(1, 3, 4, 4)

## nn.MaxPool3d
> tide.nn.MaxPool3d(2)(tide.zeros(1, 3, 4, 4, 4)).shape
(1, 3, 2, 2, 2)

## nn.MaxUnpool1d
> y, places = tide.nn.MaxPool1d(2, {return_indices = true})(tide.tensor{{{1.0, 5, 3, 4}}})
> tide.nn.MaxUnpool1d(2)(y, places)
[[[0., 5., 0., 4.]]]
float32 (1, 1, 4) cpu

## nn.MaxUnpool2d
> y, places = tide.nn.MaxPool2d(2, {return_indices = true})(tide.ones(1, 1, 4, 4))
> tide.nn.MaxUnpool2d(2)(y, places).shape
(1, 1, 4, 4)

## nn.MaxUnpool3d
> y, places = tide.nn.MaxPool3d(2, {return_indices = true})(tide.ones(1, 1, 2, 2, 2))
> tide.nn.MaxUnpool3d(2)(y, places).shape
(1, 1, 2, 2, 2)

## nn.Mish
> tide.nn.Mish()(tide.tensor{-1.0, 0, 1})
[-0.3034,  0.0000,  0.8651]
float32 (3) cpu

## nn.Module
> model = tide.nn.Linear(2, 3)
> for name, p in model:named_parameters() do print(name, p.shape) end
weight	(3, 2)
bias	(3)

## nn.ModuleDict
> heads = tide.nn.ModuleDict{a = tide.nn.Linear(2, 1), b = tide.nn.Linear(2, 5)}
> heads.b(tide.ones(1, 2)).shape
(1, 5)

## nn.ModuleList
> layers = tide.nn.ModuleList{tide.nn.Linear(2, 2), tide.nn.Linear(2, 2)}
> x = tide.ones(1, 2)
> for _, layer in ipairs(layers) do x = layer(x) end
> x.shape
(1, 2)

## nn.MSELoss
> tide.nn.MSELoss()(tide.tensor{1.0, 2}, tide.tensor{0.0, 4})
2.5  float32 () cpu

## nn.MultiheadAttention
> attention = tide.nn.MultiheadAttention(8, 2, {batch_first = true})
> x = tide.zeros(3, 5, 8)
> y = attention(x, x, x)
> y.shape
(3, 5, 8)

## nn.MultiLabelMarginLoss
> tide.nn.MultiLabelMarginLoss()(tide.tensor{{0.1, 0.2, 0.4}}, tide.tensor{{3, -1, -1}})
0.5  float32 () cpu

## nn.MultiLabelSoftMarginLoss
> tide.nn.MultiLabelSoftMarginLoss()(tide.tensor{{2.0, -2}}, tide.tensor{{1.0, 0}})
0.126928  float32 () cpu

## nn.MultiMarginLoss
> tide.nn.MultiMarginLoss()(tide.tensor{{0.1, 0.2, 0.4}}, tide.tensor{3})
0.5  float32 () cpu

## nn.NLLLoss
> tide.nn.NLLLoss()(tide.tensor{{2.0, 0, 0}}:log_softmax(2), tide.tensor{1})
0.2395448  float32 () cpu

## nn.PairwiseDistance
> tide.nn.PairwiseDistance()(tide.tensor{{0.0, 0}}, tide.tensor{{3.0, 4}})
[5.0000]
float32 (1) cpu

## nn.Parameter
> tide.nn.Parameter(tide.ones(2)).requires_grad
true

## nn.ParameterDict
> dict = tide.nn.ParameterDict{scale = tide.ones(2)}
> dict.scale.requires_grad
true

## nn.ParameterList
> list = tide.nn.ParameterList{tide.ones(2), tide.zeros(3)}
> #list
2

## nn.PixelShuffle
> tide.nn.PixelShuffle(2)(tide.zeros(1, 4, 3, 3)).shape
(1, 1, 6, 6)

## nn.PixelUnshuffle
> tide.nn.PixelUnshuffle(2)(tide.zeros(1, 1, 6, 6)).shape
(1, 4, 3, 3)

## nn.PoissonNLLLoss
> tide.nn.PoissonNLLLoss()(tide.tensor{0.0, 1}, tide.tensor{1.0, 2})
0.8591409  float32 () cpu

## nn.PReLU
> tide.nn.PReLU()(tide.tensor{-2.0, 3})
[-0.5000,  3.0000]
float32 (2) cpu grad_fn=<PreluSlopeBackward>

## nn.ReflectionPad1d
> tide.nn.ReflectionPad1d(2)(tide.tensor{{{1.0, 2, 3}}})
[[[3., 2., 1., 2., 3., 2., 1.]]]
float32 (1, 1, 7) cpu

## nn.ReflectionPad2d
> tide.nn.ReflectionPad2d(1)(tide.ones(1, 1, 3, 3)).shape
(1, 1, 5, 5)

## nn.ReflectionPad3d
> tide.nn.ReflectionPad3d(1)(tide.ones(1, 1, 3, 3, 3)).shape
(1, 1, 5, 5, 5)

## nn.ReLU
> tide.nn.ReLU()(tide.tensor{-2.0, 3})
[0., 3.]
float32 (2) cpu

## nn.ReLU6
> tide.nn.ReLU6()(tide.tensor{-1.0, 3, 9})
[0., 3., 6.]
float32 (3) cpu

## nn.ReplicationPad1d
> tide.nn.ReplicationPad1d(2)(tide.tensor{{{1.0, 2, 3}}})
[[[1., 1., 1., 2., 3., 3., 3.]]]
float32 (1, 1, 7) cpu

## nn.ReplicationPad2d
> tide.nn.ReplicationPad2d(1)(tide.ones(1, 1, 3, 3)).shape
(1, 1, 5, 5)

## nn.ReplicationPad3d
> tide.nn.ReplicationPad3d(1)(tide.ones(1, 1, 3, 3, 3)).shape
(1, 1, 5, 5, 5)

## nn.RMSNorm
> tide.nn.RMSNorm(2)(tide.tensor{{3.0, 4}})
[[0.8485, 1.1314]]
float32 (1, 2) cpu grad_fn=<NormRowsBackward>

## nn.RNN
> output, h = tide.nn.RNN(3, 4)(tide.zeros(5, 1, 3))
> output.shape
(5, 1, 4)

## nn.RNNCell
> tide.nn.RNNCell(3, 4)(tide.zeros(2, 3)).shape
(2, 4)

## nn.RReLU
> tide.nn.RReLU():eval()(tide.tensor{-3.0, 2})
[-0.6875,  2.0000]
float32 (2) cpu

## nn.SELU
> tide.nn.SELU()(tide.tensor{-1.0, 0, 1})
[-1.1113,  0.0000,  1.0507]
float32 (3) cpu

## nn.Sequential
> model = tide.nn.Sequential(tide.nn.Linear(4, 8), tide.nn.ReLU(), tide.nn.Linear(8, 1))
> model
Sequential(
  (1): Linear(in_features=4, out_features=8, bias=true)
  (2): ReLU()
  (3): Linear(in_features=8, out_features=1, bias=true)
)
> model(tide.ones(5, 4)).shape
(5, 1)

## nn.Sigmoid
> tide.nn.Sigmoid()(tide.tensor{-2.0, 0, 2})
[0.1192, 0.5000, 0.8808]
float32 (3) cpu

## nn.SiLU
> tide.nn.SiLU()(tide.tensor{-1.0, 0, 1})
[-0.2689,  0.0000,  0.7311]
float32 (3) cpu

## nn.SmoothL1Loss
> tide.nn.SmoothL1Loss()(tide.tensor{0.5, 3}, tide.tensor{0.0, 0})
1.3125  float32 () cpu

## nn.SoftMarginLoss
> tide.nn.SoftMarginLoss()(tide.tensor{2.0, -1}, tide.tensor{1.0, 1})
0.7200949  float32 () cpu

## nn.Softmax
> tide.nn.Softmax(2)(tide.tensor{{1.0, 2, 3}})
[[0.0900, 0.2447, 0.6652]]
float32 (1, 3) cpu

## nn.Softmax2d
> tide.nn.Softmax2d()(tide.zeros(1, 4, 1, 1)):flatten()
[0.2500, 0.2500, 0.2500, 0.2500]
float32 (4) cpu

## nn.Softmin
> tide.nn.Softmin(1)(tide.tensor{1.0, 2, 3})
[0.6652, 0.2447, 0.0900]
float32 (3) cpu

## nn.Softplus
> tide.nn.Softplus()(tide.tensor{-1.0, 0, 30})
[ 0.3133,  0.6931, 30.0000]
float32 (3) cpu

## nn.Softshrink
> tide.nn.Softshrink()(tide.tensor{-1.0, 0.2, 2})
[-0.5000,  0.0000,  1.5000]
float32 (3) cpu

## nn.Softsign
> tide.nn.Softsign()(tide.tensor{-1.0, 0, 3})
[-0.5000,  0.0000,  0.7500]
float32 (3) cpu

## nn.Tanh
> tide.nn.Tanh()(tide.tensor{-1.0, 0, 1})
[-0.7616,  0.0000,  0.7616]
float32 (3) cpu

## nn.Tanhshrink
> tide.nn.Tanhshrink()(tide.tensor{0.0, 2})
[0.0000, 1.0360]
float32 (2) cpu

## nn.Threshold
> tide.nn.Threshold(1, 0)(tide.tensor{0.5, 2})
[0., 2.]
float32 (2) cpu

## nn.Transformer
> model = tide.nn.Transformer{d_model = 8, nhead = 2, num_encoder_layers = 1, num_decoder_layers = 1, dim_feedforward = 16}
> model(tide.zeros(5, 1, 8), tide.zeros(3, 1, 8)).shape
(3, 1, 8)

## nn.TransformerDecoder
> layer = tide.nn.TransformerDecoderLayer(8, 2, 16)
> tide.nn.TransformerDecoder(layer, 2)(tide.zeros(3, 1, 8), tide.zeros(5, 1, 8)).shape
(3, 1, 8)

## nn.TransformerDecoderLayer
> tide.nn.TransformerDecoderLayer(8, 2, 16)(tide.zeros(3, 1, 8), tide.zeros(5, 1, 8)).shape
(3, 1, 8)

## nn.TransformerEncoder
> layer = tide.nn.TransformerEncoderLayer(8, 2, 16)
> tide.nn.TransformerEncoder(layer, 2)(tide.zeros(5, 1, 8)).shape
(5, 1, 8)

## nn.TransformerEncoderLayer
> tide.nn.TransformerEncoderLayer(8, 2, 16)(tide.zeros(5, 1, 8)).shape
(5, 1, 8)

## nn.TripletMarginLoss
> tide.nn.TripletMarginLoss()(tide.tensor{{0.0, 0}}, tide.tensor{{0.0, 1}}, tide.tensor{{0.0, 3}})
0  float32 () cpu

## nn.TripletMarginWithDistanceLoss
> tide.nn.TripletMarginWithDistanceLoss{margin = 3}(tide.tensor{{0.0, 0}}, tide.tensor{{0.0, 1}}, tide.tensor{{0.0, 3}})
1  float32 () cpu

## nn.Unflatten
> tide.nn.Unflatten(2, {3, 4})(tide.zeros(2, 12)).shape
(2, 3, 4)

## nn.Unfold
> tide.nn.Unfold({2, 2})(tide.ones(1, 3, 4, 4)).shape
(1, 12, 9)

## nn.Upsample
> tide.nn.Upsample{scale_factor = {2}, mode = "nearest"}(tide.zeros(1, 3, 4, 4)).shape
(1, 3, 8, 8)

## nn.UpsamplingBilinear2d
> tide.nn.UpsamplingBilinear2d{scale_factor = {2}}(tide.zeros(1, 3, 4, 4)).shape
(1, 3, 8, 8)

## nn.UpsamplingNearest2d
> tide.nn.UpsamplingNearest2d{scale_factor = {2}}(tide.zeros(1, 3, 4, 4)).shape
(1, 3, 8, 8)

## nn.ZeroPad1d
> tide.nn.ZeroPad1d(1)(tide.tensor{{{1.0, 2}}})
[[[0., 1., 2., 0.]]]
float32 (1, 1, 4) cpu

## nn.ZeroPad2d
> tide.nn.ZeroPad2d(1)(tide.ones(1, 1, 2, 2)).shape
(1, 1, 4, 4)

## nn.ZeroPad3d
> tide.nn.ZeroPad3d(1)(tide.ones(1, 1, 2, 2, 2)).shape
(1, 1, 4, 4, 4)
]==]
