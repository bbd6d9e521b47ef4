-- _examples_nn_utils.lua: examples of packed sequences, parametrizations and newer layers; _examples.lua says how they
-- stand here.
return [==[
## nn.CrossMapLRN2d
> lrn = tide.nn.CrossMapLRN2d(3)
> lrn(tide.ones(1, 4, 1, 1)):flatten()
[1.0000, 0.9999, 0.9999, 1.0000]
float32 (4) cpu

## nn.FractionalMaxPool2d
> tide.nn.FractionalMaxPool2d(2, {output_ratio = 0.5})(tide.rand(1, 1, 8, 8)).shape
(1, 1, 4, 4)

## nn.FractionalMaxPool3d
> tide.nn.FractionalMaxPool3d(2, {output_size = 3})(tide.rand(1, 1, 8, 8, 8)).shape
(1, 1, 3, 3, 3)

## nn.functional.fractional_max_pool2d
> tide.nn.functional.fractional_max_pool2d(tide.rand(1, 1, 8, 8), 2, {output_size = 3}).shape
(1, 1, 3, 3)

## nn.functional.fractional_max_pool3d
> tide.nn.functional.fractional_max_pool3d(tide.rand(1, 1, 8, 8, 8), 2, {output_size = 3}).shape
(1, 1, 3, 3, 3)

## nn.utils.parametrizations.orthogonal
> m = tide.nn.utils.parametrizations.orthogonal(tide.nn.Linear(3, 3))
> (m.weight:matmul(m.weight:t()) - tide.eye(3)):abs():max():item() < 1e-5
true

## nn.utils.parametrizations.spectral_norm
> m = tide.nn.utils.parametrizations.spectral_norm(tide.nn.Linear(4, 4), {n_power_iterations = 50})
> tide.linalg.norm(m.weight, 2):item() < 1.001
true

## nn.utils.parametrizations.weight_norm
> m = tide.nn.utils.parametrizations.weight_norm(tide.nn.Linear(3, 2))
> m.weight.shape
(2, 3)

## nn.utils.parametrize.ParametrizationList
> m = tide.nn.utils.parametrizations.weight_norm(tide.nn.Linear(3, 2))
> m.parametrizations.weight
ParametrizationList(
  (1): _WeightNorm()
)

## nn.utils.parametrize.cached
> m = tide.nn.utils.parametrizations.orthogonal(tide.nn.Linear(3, 3))
> do local _ <close> = tide.nn.utils.parametrize.cached() same = m.weight == m.weight end
> same
true

## nn.utils.parametrize.is_parametrized
> tide.nn.utils.parametrize.is_parametrized(tide.nn.Linear(3, 2), "weight")
false

## nn.utils.parametrize.register_parametrization
> m, squares = tide.nn.Linear(3, 2), tide.nn.Module()
> function squares:forward(x) return x * x end
> tide.nn.utils.parametrize.register_parametrization(m, "weight", squares);
> m.weight:ge(0):all():item()
true

## nn.utils.parametrize.remove_parametrizations
> m = tide.nn.utils.parametrizations.weight_norm(tide.nn.Linear(3, 2))
> tide.nn.utils.parametrize.remove_parametrizations(m, "weight")
Linear(in_features=3, out_features=2, bias=true)

## nn.utils.parametrize.type_before_parametrizations
> m = tide.nn.utils.parametrizations.weight_norm(tide.nn.Linear(3, 2))
> tide.nn.utils.parametrize.type_before_parametrizations(m) == tide.nn.Linear
true

## nn.utils.rnn.pack_padded_sequence
> padded, lengths = tide.tensor{{1., 2., 3.}, {4., 5., 0.}}, tide.tensor{3, 2}
> tide.nn.utils.rnn.pack_padded_sequence(padded, lengths, {batch_first = true}).data
[1., 4., 2., 5., 3.]
float32 (5) cpu

## nn.utils.rnn.pack_sequence
> p = tide.nn.utils.rnn.pack_sequence({tide.tensor{1., 2., 3.}, tide.tensor{4., 5.}})
> p.batch_sizes
[2, 2, 1]
int64 (3) cpu

## nn.utils.rnn.pad_packed_sequence
> p = tide.nn.utils.rnn.pack_sequence({tide.tensor{1., 2., 3.}, tide.tensor{4., 5.}})
> padded, lengths = tide.nn.utils.rnn.pad_packed_sequence(p, {batch_first = true})
> padded
[[1., 2., 3.],
 [4., 5., 0.]]
float32 (2, 3) cpu

## nn.utils.rnn.unpack_sequence
> p = tide.nn.utils.rnn.pack_sequence({tide.tensor{1., 2., 3.}, tide.tensor{4., 5.}})
> tide.nn.utils.rnn.unpack_sequence(p)[2]
[4., 5.]
float32 (2) cpu

## benchmark.FuzzedParameter
> n = tide.benchmark.FuzzedParameter("n", {min = 1, max = 100, distribution = "loguniform"})

## benchmark.FuzzedTensor
> x = tide.benchmark.FuzzedTensor("x", {size = {"n", 4}, probability_contiguous = 0.5})

## benchmark.Fuzzer
> n = tide.benchmark.FuzzedParameter("n", {min = 1, max = 100})
> x = tide.benchmark.FuzzedTensor("x", {size = {"n", 4}})
> f = tide.benchmark.Fuzzer{parameters = {n}, tensors = {x}, seed = 1}
> for tensors in f:take(2) do print(tensors.x.shape[2]) end
4
4

## benchmark.compare_versions
> function faster(before, after) return tide.benchmark.compare_versions{before = before, after = after, stmt = "tide.ones(9):sum()"}.faster end

## benchmark.save
> m = tide.benchmark.Timer{stmt = "x = 1 + 1"}:timeit(100)
> tide.benchmark.save({m}, "times.json")
> #tide.benchmark.load("times.json")
1

## benchmark.load
> tide.benchmark.save({tide.benchmark.Timer{stmt = "x = 1 + 1"}:timeit(100)}, "times.json")
> tide.benchmark.load("times.json")[1].number_per_run
100
]==]
