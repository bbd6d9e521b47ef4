-- _examples_neural.lua: examples of what networks are made of, as functions; _examples.lua says how they stand here.
return [==[
## adaptive_avg_pool1d
> tide.tensor{{{1.0, 2, 3, 4}}}:adaptive_avg_pool1d(2)
[[[1.5000, 3.5000]]]
float32 (1, 1, 2) cpu

## adaptive_avg_pool2d
> tide.randn(1, 8, 13, 9):adaptive_avg_pool2d(1).shape
(1, 8, 1, 1)

## adaptive_avg_pool3d
> tide.randn(1, 2, 4, 6, 8):adaptive_avg_pool3d(2).shape
(1, 2, 2, 2, 2)

## adaptive_max_pool1d
> tide.tensor{{{1.0, 2, 3, 4}}}:adaptive_max_pool1d(2)
[[[2., 4.]]]
float32 (1, 1, 2) cpu

## adaptive_max_pool2d
> tide.randn(1, 8, 13, 9):adaptive_max_pool2d{7, 7}.shape
(1, 8, 7, 7)

## adaptive_max_pool3d
> tide.randn(1, 2, 4, 6, 8):adaptive_max_pool3d(2).shape
(1, 2, 2, 2, 2)

## affine_grid
> turn = tide.tensor{{{0.0, -1, 0}, {1, 0, 0}}}
> tide.affine_grid(turn, {1, 1, 2, 2}, {align_corners = true})
[[[[ 1., -1.],
   [ 1.,  1.]],

  [[-1., -1.],
   [-1.,  1.]]]]
float32 (1, 2, 2, 2) cpu

## avg_pool1d
> tide.tensor{{{1.0, 2, 3, 4}}}:avg_pool1d(2)
[[[1.5000, 3.5000]]]
float32 (1, 1, 2) cpu

## avg_pool2d
> tide.randn(1, 3, 8, 8):avg_pool2d(2).shape
(1, 3, 4, 4)

## avg_pool3d
> tide.randn(1, 3, 4, 4, 4):avg_pool3d(2).shape
(1, 3, 2, 2, 2)

## batch_norm
> x = tide.randn(8, 3)
> tide.batch_norm(x, {training = true}).shape
(8, 3)

## binary_cross_entropy
> tide.binary_cross_entropy(tide.tensor{0.9, 0.2}, tide.tensor{1.0, 0})
0.1642521  float32 () cpu

## binary_cross_entropy_with_logits
> tide.binary_cross_entropy_with_logits(tide.tensor{2.0, -1}, tide.tensor{1.0, 0})
0.2200949  float32 () cpu

## col2im
> columns = tide.im2col(tide.ones(1, 1, 3, 3), {2, 2})
> tide.col2im(columns, {3, 3}, {2, 2})
[[[[1., 2., 1.],
   [2., 4., 2.],
   [1., 2., 1.]]]]
float32 (1, 1, 3, 3) cpu

## conv1d
> tide.conv1d(tide.tensor{{{1.0, 2, 3, 4}}}, tide.tensor{{{1.0, 1}}})
[[[3., 5., 7.]]]
float32 (1, 1, 3) cpu

## conv2d
> image, kernels = tide.randn(1, 3, 8, 8), tide.randn(16, 3, 3, 3)
> tide.conv2d(image, kernels, {padding = 1, stride = 2}).shape
(1, 16, 4, 4)

## conv3d
> tide.conv3d(tide.randn(1, 2, 4, 4, 4), tide.randn(3, 2, 3, 3, 3)).shape
(1, 3, 2, 2, 2)

## conv_transpose1d
> tide.conv_transpose1d(tide.tensor{{{1.0, 2}}}, tide.tensor{{{1.0, 1}}}, {stride = 2})
[[[1., 1., 2., 2.]]]
float32 (1, 1, 4) cpu

## conv_transpose2d
> tide.conv_transpose2d(tide.randn(1, 3, 4, 4), tide.randn(3, 5, 2, 2), {stride = 2}).shape
(1, 5, 8, 8)

## conv_transpose3d
> tide.conv_transpose3d(tide.randn(1, 2, 3, 3, 3), tide.randn(2, 4, 2, 2, 2)).shape
(1, 4, 4, 4, 4)

## cosine_embedding_loss
> tide.cosine_embedding_loss(tide.tensor{{1.0, 0}}, tide.tensor{{0.0, 1}}, tide.tensor{1.0})
1  float32 () cpu

## cosine_similarity
> tide.cosine_similarity(tide.tensor{{1.0, 0}, {1, 1}}, tide.tensor{{2.0, 0}, {1, -1}})
[1., 0.]
float32 (2) cpu

## cross_entropy
> logits = tide.tensor{{2.0, 0, 0}, {0, 0, 2}}
> tide.cross_entropy(logits, tide.tensor{1, 3})
0.2395449  float32 () cpu

## ctc_loss
> log_probs = tide.zeros(10, 1, 4):log_softmax(3)
> tide.ctc_loss(log_probs, tide.tensor{{2, 3}}, tide.tensor{10}, tide.tensor{2})
3.829193  float32 () cpu

## gaussian_nll_loss
> tide.gaussian_nll_loss(tide.tensor{0.0}, tide.tensor{1.0}, tide.tensor{2.0})
0.5965736  float32 () cpu

## grid_sample
> identity = tide.tensor{{{1.0, 0, 0}, {0, 1, 0}}}
> grid = tide.affine_grid(identity, {1, 1, 2, 2}, {align_corners = false})
> tide.grid_sample(tide.tensor{{{{1.0, 2}, {3, 4}}}}, grid, {align_corners = false})
[[[[1., 2.],
   [3., 4.]]]]
float32 (1, 1, 2, 2) cpu

## group_norm
> tide.group_norm(tide.randn(2, 6, 4), 3).shape
(2, 6, 4)

## gru
> x, h = tide.randn(5, 1, 3), tide.zeros(1, 1, 4)
> params = {tide.randn(12, 3), tide.randn(12, 4), tide.zeros(12), tide.zeros(12)}
> output, h = tide.gru(x, h, params)
> output.shape
(5, 1, 4)

## gru_cell
> x, h = tide.randn(2, 3), tide.zeros(2, 4)
> tide.gru_cell(x, h, tide.randn(12, 3), tide.randn(12, 4)).shape
(2, 4)

## hinge_embedding_loss
> tide.hinge_embedding_loss(tide.tensor{0.2, 0.3}, tide.tensor{1.0, -1})
0.45  float32 () cpu

## huber_loss
> tide.huber_loss(tide.tensor{0.5, 3}, tide.tensor{0.0, 0})
1.3125  float32 () cpu

## im2col
> tide.im2col(tide.randn(1, 3, 4, 4), {2, 2}).shape
(1, 12, 9)

## instance_norm
> tide.instance_norm(tide.tensor{{{1.0, 2, 3}}})
[[[-1.2247,  0.0000,  1.2247]]]
float32 (1, 1, 3) cpu

## interpolate
> tide.interpolate(tide.tensor{{{{1.0, 2}, {3, 4}}}}, {scale_factor = {2}, mode = "nearest"})
[[[[1., 1., 2., 2.],
   [1., 1., 2., 2.],
   [3., 3., 4., 4.],
   [3., 3., 4., 4.]]]]
float32 (1, 1, 4, 4) cpu

## kl_div
> p, q = tide.tensor{0.5, 0.5}, tide.tensor{0.25, 0.75}
> tide.kl_div(q:log(), p, {reduction = "sum"})
0.143841  float32 () cpu

## l1_loss
> tide.l1_loss(tide.tensor{1.0, 2}, tide.tensor{0.0, 4})
1.5  float32 () cpu

## layer_norm
> tide.layer_norm(tide.tensor{{1.0, 2, 3}}, {3})
[[-1.2247,  0.0000,  1.2247]]
float32 (1, 3) cpu

## local_response_norm
> tide.local_response_norm(tide.ones(1, 3, 2), 2).shape
(1, 3, 2)

## log_softmax
> tide.tensor{1.0, 2, 3}:log_softmax(1)
[-2.4076, -1.4076, -0.4076]
float32 (3) cpu

## lp_pool1d
> tide.tensor{{{3.0, 4, 6, 8}}}:lp_pool1d(2, 2)
[[[ 5., 10.]]]
float32 (1, 1, 2) cpu

## lp_pool2d
> tide.randn(1, 3, 8, 8):lp_pool2d(2, 2).shape
(1, 3, 4, 4)

## lp_pool3d
> tide.randn(1, 3, 4, 4, 4):lp_pool3d(2, 2).shape
(1, 3, 2, 2, 2)

## lstm
> x, h, c = tide.randn(5, 1, 3), tide.zeros(1, 1, 4), tide.zeros(1, 1, 4)
> params = {tide.randn(16, 3), tide.randn(16, 4), tide.zeros(16), tide.zeros(16)}
> output, h, c = tide.lstm(x, {h, c}, params)
> output.shape
(5, 1, 4)

## lstm_cell
> x, h, c = tide.randn(2, 3), tide.zeros(2, 4), tide.zeros(2, 4)
> h, c = tide.lstm_cell(x, {h, c}, tide.randn(16, 3), tide.randn(16, 4))
> c.shape
(2, 4)

## margin_ranking_loss
> tide.margin_ranking_loss(tide.tensor{1.0}, tide.tensor{3.0}, tide.tensor{1.0})
2  float32 () cpu

## max_pool1d
> tide.tensor{{{1.0, 5, 3, 4}}}:max_pool1d(2)
[[[5., 4.]]]
float32 (1, 1, 2) cpu

## max_pool2d
> tide.tensor{{{{1.0, 2}, {3, 4}}}}:max_pool2d(2)
[[[[4.]]]]
float32 (1, 1, 1, 1) cpu

## max_pool3d
> tide.randn(1, 3, 4, 4, 4):max_pool3d(2).shape
(1, 3, 2, 2, 2)

## max_unpool1d
> y, places = tide.tensor{{{1.0, 5, 3, 4}}}:max_pool1d(2, {return_indices = true})
> y:max_unpool1d(places, 2)
[[[0., 5., 0., 4.]]]
float32 (1, 1, 4) cpu

## max_unpool2d
> y, places = tide.tensor{{{{1.0, 2}, {3, 4}}}}:max_pool2d(2, {return_indices = true})
> y:max_unpool2d(places, 2)
[[[[0., 0.],
   [0., 4.]]]]
float32 (1, 1, 2, 2) cpu

## max_unpool3d
> y, places = tide.ones(1, 1, 2, 2, 2):max_pool3d(2, {return_indices = true})
> y:max_unpool3d(places, 2).shape
(1, 1, 2, 2, 2)

## mse_loss
> tide.mse_loss(tide.tensor{1.0, 2}, tide.tensor{0.0, 4})
2.5  float32 () cpu

## multi_margin_loss
> tide.multi_margin_loss(tide.tensor{{0.1, 0.2, 0.4}}, tide.tensor{3})
0.5  float32 () cpu

## multilabel_margin_loss
> tide.multilabel_margin_loss(tide.tensor{{0.1, 0.2, 0.4}}, tide.tensor{{3, -1, -1}})
0.5  float32 () cpu

## multilabel_soft_margin_loss
> tide.multilabel_soft_margin_loss(tide.tensor{{2.0, -2}}, tide.tensor{{1.0, 0}})
0.126928  float32 () cpu

## nll_loss
> tide.nll_loss(tide.tensor{{2.0, 0, 0}}:log_softmax(2), tide.tensor{1})
0.2395448  float32 () cpu

## normalize
> tide.normalize(tide.tensor{{3.0, 4}})
[[0.6000, 0.8000]]
float32 (1, 2) cpu

## pairwise_distance
> tide.pairwise_distance(tide.tensor{{0.0, 0}}, tide.tensor{{3.0, 4}})
[5.0000]
float32 (1) cpu

## poisson_nll_loss
> tide.poisson_nll_loss(tide.tensor{0.0, 1}, tide.tensor{1.0, 2})
0.8591409  float32 () cpu

## rms_norm
> tide.rms_norm(tide.tensor{{3.0, 4}}, {2})
[[0.8485, 1.1314]]
float32 (1, 2) cpu

## rnn_relu
> x, h = tide.randn(5, 1, 3), tide.zeros(1, 1, 4)
> params = {tide.randn(4, 3), tide.randn(4, 4), tide.zeros(4), tide.zeros(4)}
> output, h = tide.rnn_relu(x, h, params)
> h.shape
(1, 1, 4)

## rnn_relu_cell
> x, h = tide.randn(2, 3), tide.zeros(2, 4)
> tide.rnn_relu_cell(x, h, tide.randn(4, 3), tide.randn(4, 4)).shape
(2, 4)

## rnn_tanh
> x, h = tide.randn(5, 1, 3), tide.zeros(1, 1, 4)
> params = {tide.randn(4, 3), tide.randn(4, 4), tide.zeros(4), tide.zeros(4)}
> output, h = tide.rnn_tanh(x, h, params)
> output.shape
(5, 1, 4)

## rnn_tanh_cell
> x, h = tide.randn(2, 3), tide.zeros(2, 4)
> tide.rnn_tanh_cell(x, h, tide.randn(4, 3), tide.randn(4, 4)).shape
(2, 4)

## scaled_dot_product_attention
> q, k, v = tide.randn(1, 2, 5, 8), tide.randn(1, 2, 7, 8), tide.randn(1, 2, 7, 8)
> tide.scaled_dot_product_attention(q, k, v).shape
(1, 2, 5, 8)

## smooth_l1_loss
> tide.smooth_l1_loss(tide.tensor{0.5, 3}, tide.tensor{0.0, 0})
1.3125  float32 () cpu

## soft_margin_loss
> tide.soft_margin_loss(tide.tensor{2.0, -1}, tide.tensor{1.0, 1})
0.7200949  float32 () cpu

## softmax
> tide.tensor{{1.0, 2, 3}, {0, 0, 0}}:softmax(2)
[[0.0900, 0.2447, 0.6652],
 [0.3333, 0.3333, 0.3333]]
float32 (2, 3) cpu

## triplet_margin_loss
> tide.triplet_margin_loss(tide.tensor{{0.0, 0}}, tide.tensor{{0.0, 1}}, tide.tensor{{0.0, 3}})
0  float32 () cpu
]==]
