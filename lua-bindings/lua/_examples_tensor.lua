-- _examples_tensor.lua: examples of methods of tensors that are no operators; _examples.lua says how they stand here.
return [==[
## Tensor.backward
> x = tide.tensor{1.0, 2}:requires_grad_()
> (x * x):sum():backward()
> x.grad
[2., 4.]
float32 (2) cpu

## Tensor.cpu
> tide.tensor{1, 2}:cpu()
[1, 2]
int64 (2) cpu

## Tensor.data_ptr
> x = tide.tensor{1, 2}
> x:data_ptr() == x:view(2):data_ptr()
true

## Tensor.detach_
> x = tide.tensor{1.0}:requires_grad_()
> y = x * 2
> y:detach_().requires_grad
false

## Tensor.dim
> tide.zeros(2, 3):dim()
2

## Tensor.element_size
> tide.zeros(2, {dtype = tide.float16}):element_size()
2

## Tensor.free
> x = tide.zeros(1000)
> x:free()

## Tensor.is_contiguous
> tide.zeros(2, 3):t():is_contiguous()
false

## Tensor.is_floating_point
> tide.tensor{1, 2}:is_floating_point()
false

## Tensor.is_inference
> tide.inference_mode(function() return tide.ones(1) end):is_inference()
true

## Tensor.item
> tide.tensor{2.5}:item()
2.5

## Tensor.ndimension
> tide.zeros(2, 3):ndimension()
2

## Tensor.nelement
> tide.zeros(2, 3):nelement()
6

## Tensor.new_tensor
> tide.tensor{1.5}:new_tensor{1, 2}
[1., 2.]
float32 (2) cpu

## Tensor.numel
> tide.zeros(2, 3):numel()
6

## Tensor.requires_grad_
> x = tide.tensor{1.0, 2}:requires_grad_()
> x.requires_grad
true

## Tensor.retain_grad
> x = tide.tensor{1.0, 2}:requires_grad_()
> y = x * 2
> y:retain_grad()
[2., 4.]
float32 (2) cpu grad_fn=<MulBackward>
> (y * y):sum():backward()
> y.grad
[4., 8.]
float32 (2) cpu

## Tensor.size
> x = tide.zeros(2, 3)
> x:size()
(2, 3)
> x:size(1)
2

## Tensor.storage_offset
> tide.tensor{1, 2, 3}["2:3"]:storage_offset()
1

## Tensor.stride
> tide.zeros(2, 3):stride()
(3, 1)

## Tensor.tolist
> tide.tensor{{1, 2}, {3, 4}}:tolist()
{{1, 2}, {3, 4}}

## Tensor.type_as
> tide.tensor{1, 2}:type_as(tide.tensor{0.5})
[1., 2.]
float32 (2) cpu

## Tensor.where
> x = tide.tensor{-1, 2}
> x:where(x:gt(0), 0)
[0, 2]
int64 (2) cpu
]==]
