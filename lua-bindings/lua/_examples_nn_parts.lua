-- _examples_nn_parts.lua: examples of tide.nn.functional, init and utils; _examples.lua says how they stand here.
return [==[
## nn.functional.ctc_loss
> log_probs = tide.zeros(10, 1, 4):log_softmax(3)
> tide.nn.functional.ctc_loss(log_probs, tide.tensor{{1, 2}}, tide.tensor{10}, tide.tensor{2}, 4)
3.829193  float32 () cpu

## nn.functional.alpha_dropout
> tide.nn.functional.alpha_dropout(tide.ones(3))
[1., 1., 1.]
float32 (3) cpu

## nn.functional.feature_alpha_dropout
> tide.nn.functional.feature_alpha_dropout(tide.ones(1, 2))
[[1., 1.]]
float32 (1, 2) cpu

## nn.functional.dropout1d
> tide.nn.functional.dropout1d(tide.ones(1, 3, 2), 0.5, false).shape
(1, 3, 2)

## nn.functional.dropout2d
> tide.nn.functional.dropout2d(tide.ones(1, 3, 2, 2), 0.5, false).shape
(1, 3, 2, 2)

## nn.functional.dropout3d
> tide.nn.functional.dropout3d(tide.ones(1, 3, 2, 2, 2), 0.5, false).shape
(1, 3, 2, 2, 2)

## nn.functional.embedding
> weight = tide.tensor{{0.1, 0.2}, {0.3, 0.4}}
> tide.nn.functional.embedding(tide.tensor{2, 1}, weight)
[[0.3000, 0.4000],
 [0.1000, 0.2000]]
float32 (2, 2) cpu

## nn.functional.embedding_bag
> weight = tide.tensor{{1.0, 2}, {3, 4}}
> tide.nn.functional.embedding_bag(tide.tensor{{1, 2}}, weight)
[[2., 3.]]
float32 (1, 2) cpu

## nn.functional.gumbel_softmax
> tide.manual_seed(1)
> tide.nn.functional.gumbel_softmax(tide.tensor{{1.0, 2, 3}}, {hard = true}):sum()
1  float32 () cpu

## nn.functional.pdist
> tide.nn.functional.pdist(tide.tensor{{0.0, 0}, {3, 4}, {6, 8}})
[ 5., 10.,  5.]
float32 (3) cpu

## nn.functional.softmin
> tide.nn.functional.softmin(tide.tensor{1.0, 2, 3}, 1)
[0.6652, 0.2447, 0.0900]
float32 (3) cpu

## nn.functional.triplet_margin_with_distance_loss
> tide.nn.functional.triplet_margin_with_distance_loss(tide.tensor{{0.0, 0}}, tide.tensor{{0.0, 1}}, tide.tensor{{0.0, 3}}, {margin = 3})
1  float32 () cpu

## nn.init.calculate_gain
> tide.nn.init.calculate_gain("relu")
1.4142135623731

## nn.init.constant_
> tide.nn.init.constant_(tide.empty(3), 0.5)
[0.5000, 0.5000, 0.5000]
float32 (3) cpu

## nn.init.dirac_
> tide.nn.init.dirac_(tide.empty(2, 2, 3))[1]
[[0., 1., 0.],
 [0., 0., 0.]]
float32 (2, 3) cpu

## nn.init.eye_
> tide.nn.init.eye_(tide.empty(2, 3))
[[1., 0., 0.],
 [0., 1., 0.]]
float32 (2, 3) cpu

## nn.init.kaiming_normal_
> tide.manual_seed(1)
> tide.nn.init.kaiming_normal_(tide.empty(50, 1000)):std()
0.04484293  float32 () cpu

## nn.init.kaiming_uniform_
> layer = tide.nn.Linear(24, 5)
> tide.nn.init.kaiming_uniform_(layer.weight, {nonlinearity = "relu"}):abs():amax():le(0.5)
true  bool () cpu

## nn.init.normal_
> tide.manual_seed(1)
> tide.nn.init.normal_(tide.empty(3), 0, 0.02)
[ 0.0332, -0.0258, -0.0064]
float32 (3) cpu

## nn.init.ones_
> tide.nn.init.ones_(tide.empty(3))
[1., 1., 1.]
float32 (3) cpu

## nn.init.orthogonal_
> Q = tide.nn.init.orthogonal_(tide.empty(3, 3))
> tide.allclose(Q:mm(Q:t()), tide.eye(3), 1e-4, 1e-4)
true

## nn.init.sparse_
> tide.nn.init.sparse_(tide.empty(10, 2), 0.5):count_nonzero()
10  int64 () cpu

## nn.init.trunc_normal_
> tide.nn.init.trunc_normal_(tide.empty(1000)):abs():amax():le(2)
true  bool () cpu

## nn.init.uniform_
> tide.manual_seed(1)
> tide.nn.init.uniform_(tide.empty(3), -0.1, 0.1)
[0.0781, 0.0789, 0.0171]
float32 (3) cpu

## nn.init.xavier_normal_
> tide.nn.init.xavier_normal_(tide.empty(4, 3)).shape
(4, 3)

## nn.init.xavier_uniform_
> tide.nn.init.xavier_uniform_(tide.empty(3, 3)):abs():amax():le(1)
true  bool () cpu

## nn.init.zeros_
> layer = tide.nn.Linear(2, 3)
> tide.nn.init.zeros_(layer.bias)
[0., 0., 0.]
float32 (3) cpu requires_grad

## nn.utils.clip_grad_norm_
> p = tide.ones(2, {requires_grad = true})
> (p * tide.tensor{3, 4}):sum():backward()
> tide.nn.utils.clip_grad_norm_(p, 1)
5  float32 () cpu
> p.grad
[0.6000, 0.8000]
float32 (2) cpu

## nn.utils.clip_grad_value_
> p = tide.ones(2, {requires_grad = true})
> (p * tide.tensor{3, -4}):sum():backward()
> tide.nn.utils.clip_grad_value_(p, 1)
> p.grad
[ 1., -1.]
float32 (2) cpu

## nn.utils.clip_grads_with_norm_
> p = tide.ones(2, {requires_grad = true})
> (p * tide.tensor{3, 4}):sum():backward()
> tide.nn.utils.clip_grads_with_norm_(p, 1, tide.tensor(5.0))
> p.grad
[0.6000, 0.8000]
float32 (2) cpu

## nn.utils.fuse_conv_bn_eval
> conv, norm = tide.nn.Conv2d(3, 8, 3):eval(), tide.nn.BatchNorm2d(8):eval()
> tide.nn.utils.fuse_conv_bn_eval(conv, norm)(tide.zeros(1, 3, 8, 8)).shape
(1, 8, 6, 6)

## nn.utils.fuse_linear_bn_eval
> linear, norm = tide.nn.Linear(3, 8):eval(), tide.nn.BatchNorm1d(8):eval()
> tide.nn.utils.fuse_linear_bn_eval(linear, norm)(tide.zeros(2, 3)).shape
(2, 8)

## nn.utils.get_total_norm
> tide.nn.utils.get_total_norm{tide.tensor{3.0}, tide.tensor{4.0}}
5  float32 () cpu

## nn.utils.parameters_to_vector
> tide.nn.utils.parameters_to_vector{tide.ones(2), tide.zeros(1, 3)}
[1., 1., 0., 0., 0.]
float32 (5) cpu

## nn.utils.remove_spectral_norm
> layer = tide.nn.utils.spectral_norm(tide.nn.Linear(2, 3))
> tide.nn.utils.remove_spectral_norm(layer).weight.shape
(3, 2)

## nn.utils.remove_weight_norm
> layer = tide.nn.utils.weight_norm(tide.nn.Linear(2, 3))
> tide.nn.utils.remove_weight_norm(layer).weight.shape
(3, 2)

## nn.utils.rnn.pad_sequence
> tide.nn.utils.rnn.pad_sequence({tide.tensor{1, 2, 3}, tide.tensor{4}}, {batch_first = true})
[[1, 2, 3],
 [4, 0, 0]]
int64 (2, 3) cpu

## nn.utils.rnn.unpad_sequence
> padded = tide.tensor{{1, 2, 3}, {4, 0, 0}}
> tide.nn.utils.rnn.unpad_sequence(padded, tide.tensor{3, 1}, {batch_first = true})[2]
[4]
int64 (1) cpu

## nn.utils.spectral_norm
> layer = tide.nn.utils.spectral_norm(tide.nn.Linear(2, 3))
> layer(tide.ones(1, 2)).shape
(1, 3)

## nn.utils.vector_to_parameters
> model = tide.nn.Linear(2, 1)
> tide.nn.utils.vector_to_parameters(tide.tensor{1.0, 2, 3}, model:parameters())
> model.bias
[3.]
float32 (1) cpu requires_grad

## nn.utils.weight_norm
> layer = tide.nn.utils.weight_norm(tide.nn.Linear(2, 3))
> layer.weight_g.shape
(3, 1)
]==]
