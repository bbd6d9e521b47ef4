-- _help.lua: what `?name` says of everything that is no operator (those carry their own). One row each:
-- path, signature, doc. Returns a function from a value to { name, signature, doc } or nil.
local tide = ...

local rows = {
    -- tide
    { "tensor", "tensor(values, {dtype, device, requires_grad}) -> Tensor",
        "A tensor of a number, a (nested) table of numbers, or a copy of a tensor. Integers give int64, floats float32." },
    { "is_tensor", "is_tensor(value) -> boolean", "Is the value a tensor?" },
    { "no_grad", "no_grad([fn, ...])",
        "Run fn without recording for backward; or `local _ <close> = tide.no_grad()` to the end of the block." },
    { "enable_grad", "enable_grad([fn, ...])", "Record again, inside a no_grad." },
    { "set_grad_enabled", "set_grad_enabled(enabled [, fn, ...])", "no_grad or enable_grad, as the flag says." },
    { "is_grad_enabled", "is_grad_enabled() -> boolean", "Are operators recorded for backward?" },
    { "manual_seed", "manual_seed(seed)", "Start the default random generator anew." },
    { "initial_seed", "initial_seed() -> integer", "The default generator's seed." },
    { "Generator", "Generator([seed]) -> Generator",
        "Random numbers of one's own: tide.rand(3, {generator = g}); g:manual_seed(seed)." },
    { "set_num_threads", "set_num_threads(n)", "Threads that kernels may use." },
    { "get_num_threads", "get_num_threads() -> integer", "Threads that kernels may use." },
    { "time", "time() -> number", "Seconds on a clock that never goes back." },
    { "sleep", "sleep(seconds)", "Wait; Ctrl-C ends it." },
    { "memory_allocated", "memory_allocated() -> integer", "Bytes in use by tensors." },
    { "memory_stats", "memory_stats() -> table",
        "Bytes allocated, peak and cached; allocations, and how many of them the cache could not serve." },
    { "reset_peak_memory_stats", "reset_peak_memory_stats()", "Let the peak start from what is in use now." },
    { "empty_cache", "empty_cache()", "Give cached memory back to the system." },
    { "progress", "progress(n [, text]) -> progress",
        "A progress bar over n steps: p:step([message]) after each, p:close() at the end." },
    { "display", "display(value [, {id, update}])",
        "Show a value as that of an input is shown; with an id it can be replaced later." },
    { "clear_output", "clear_output([wait])", "Empty the output of a notebook's cell." },
    -- tensors
    { "_methods.item", "item() -> number", "The value of a tensor of one element." },
    { "_methods.tolist", "tolist() -> table", "The elements as nested tables." },
    { "_methods.size", "size([dim]) -> shape or integer", "The shape, or the size of one dim." },
    { "_methods.stride", "stride([dim]) -> table or integer", "Elements between neighbours along each dim, or one." },
    { "_methods.dim", "dim() -> integer", "The number of dims." },
    { "_methods.numel", "numel() -> integer", "The number of elements." },
    { "_methods.element_size", "element_size() -> integer", "Bytes of an element." },
    { "_methods.is_contiguous", "is_contiguous() -> boolean", "Do the elements lie row-major without gaps?" },
    { "_methods.is_floating_point", "is_floating_point() -> boolean", "Is the dtype a floating one?" },
    { "_methods.data_ptr", "data_ptr() -> integer", "Address of the first element." },
    { "_methods.requires_grad_", "requires_grad_([flag]) -> Tensor", "Ask for gradients of a leaf, or (false) no longer." },
    { "_methods.retain_grad", "retain_grad() -> Tensor", "Keep the gradient of a result of operators in .grad too." },
    { "_methods.backward", "backward([gradient,] {retain_graph, create_graph})",
        "Add the gradients of this tensor to the .grad of the leaves it depends on." },
    { "_methods.free", "free()", "Let go of the memory now; the tensor can't be used any more." },
    -- autograd
    { "autograd.grad", "grad(outputs, inputs, {grad_outputs, retain_graph, create_graph, allow_unused}) -> list",
        "Gradients of the sum of the outputs with respect to each input; leaves' .grad stays as it is." },
    { "autograd.backward", "backward(tensors [, gradients] [, options])", "backward of several tensors at once." },
    { "autograd.gradcheck", "gradcheck(fn, inputs, {eps, atol, rtol}) -> true",
        "Compare fn's gradients with central differences in float64; an error names the element where they differ." },
    { "autograd.gradgradcheck", "gradgradcheck(fn, inputs, {eps, atol, rtol}) -> true",
        "The same of the gradients of gradients." },
    -- io, profiler
    { "io.read_csv", "read_csv(path, {dtype, header, delimiter}) -> Tensor", "A file of numbers as a matrix." },
    { "profiler.profile", "profile([fn, ...]) -> profile, results...",
        "Record every operator, kernel and backward node while fn runs, or to the end of the block with "
        .. "`local p <close> = tide.profiler.profile()`. print(p), p:table({sort, limit}), p:events(), "
        .. "p:export_chrome_trace(path)." },
    { "profiler.record", "record(name [, fn, ...]) -> results...", "A named range in the recording." },
    -- optim
    { "optim.SGD", "SGD(params, {lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=false, maximize=false})",
        "Stochastic gradient descent. params: a list of tensors, or of groups {params = ..., lr = ...}; step(), zero_grad()." },
    -- nn
    { "nn.Module", "Module", "What every module is: parameters(), named_parameters(), children(), train(), eval(), "
        .. "zero_grad(), to(), state_dict(), apply(fn)." },
    { "nn.class", "class(name [, parent]) -> class",
        "A class of modules: give it init(self, ...) and forward(self, ...); Class(...) makes one." },
    { "nn.Parameter", "Parameter(x) -> Tensor", "A leaf of x's values that requires grad." },
    { "nn.Sequential", "Sequential(a, b, ...)", "Calls its modules one after the other; they count from 1." },
    { "nn.ModuleList", "ModuleList(a, b, ...)", "Modules in a list, for a forward that you write." },
    { "nn.Linear", "Linear(in_features, out_features, {bias=true})", "y = x W^T + b." },
    { "nn.Conv2d", "Conv2d(in_channels, out_channels, kernel_size, {stride=1, padding=0, dilation=1, groups=1, bias=true})",
        "Convolution of images (N, C, H, W)." },
    { "nn.MaxPool2d", "MaxPool2d(kernel_size, {stride=kernel_size, padding=0, dilation=1, ceil_mode=false})",
        "Largest element of each window." },
    { "nn.AvgPool2d", "AvgPool2d(kernel_size, {stride=kernel_size, padding=0, ceil_mode=false, count_include_pad=true})",
        "Mean of each window." },
    { "nn.AdaptiveAvgPool2d", "AdaptiveAvgPool2d(output_size)", "Means of windows that divide each plane." },
    { "nn.Flatten", "Flatten({start_dim=2, end_dim=-1})", "Joins dims into one." },
    { "nn.Unflatten", "Unflatten(dim, sizes)", "Divides one dim into several." },
    { "nn.Dropout", "Dropout(p=0.5, {inplace=false})", "In training zeroes elements with probability p." },
    { "nn.Embedding", "Embedding(num_embeddings, embedding_dim)", "A table of rows that indices choose." },
    { "nn.Identity", "Identity()", "Gives back what it gets." },
    { "nn.ReLU", "ReLU()", "max(x, 0)." },
    { "nn.Tanh", "Tanh()", "Hyperbolic tangent." },
    { "nn.Sigmoid", "Sigmoid()", "1 / (1 + exp(-x))." },
    { "nn.GELU", "GELU()", "x times the normal distribution function of x." },
    { "nn.SiLU", "SiLU()", "x sigmoid(x)." },
    { "nn.Softmax", "Softmax(dim)", "exp(x) over its sum along a dim." },
    { "nn.LogSoftmax", "LogSoftmax(dim)", "Logarithm of softmax." },
    { "nn.CrossEntropyLoss", "CrossEntropyLoss({weight, ignore_index, label_smoothing=0, reduction=\"mean\"})",
        "Cross entropy of scores (N, C, ...) with classes that count from 1, or probabilities." },
    { "nn.NLLLoss", "NLLLoss({weight, ignore_index, reduction=\"mean\"})", "Negative log likelihood of classes." },
    { "nn.MSELoss", "MSELoss({reduction=\"mean\"})", "Squared error." },
    { "nn.L1Loss", "L1Loss({reduction=\"mean\"})", "Absolute error." },
    { "nn.SmoothL1Loss", "SmoothL1Loss({beta=1, reduction=\"mean\"})", "Absolute error, squared where it is small." },
    { "nn.BCELoss", "BCELoss({weight, reduction=\"mean\"})", "Cross entropy of probabilities." },
    { "nn.BCEWithLogitsLoss", "BCEWithLogitsLoss({weight, pos_weight, reduction=\"mean\"})",
        "Cross entropy of sigmoid(x)." },
    -- modules
    { "nn", "tide.nn", "Modules: layers, losses, containers; nn.class makes your own, nn.init fills parameters." },
    { "optim", "tide.optim", "Optimizers: SGD." },
    { "autograd", "tide.autograd", "grad, backward, gradcheck, gradgradcheck." },
    { "profiler", "tide.profiler", "profile(fn) records what runs; record(name, fn) names a part of it." },
    { "io", "tide.io", "read_csv." },
    { "nn.init", "tide.nn.init", "Starting values, in place: uniform_, normal_, constant_, zeros_, ones_, "
        .. "kaiming_uniform_, kaiming_normal_, xavier_uniform_, xavier_normal_." },
}

for _, alias in ipairs { "bool", "byte", "int", "long", "float", "double" } do
    rows[#rows + 1] = { "_methods." .. alias, alias .. "() -> Tensor",
        "The same values in " .. tostring(tide[alias]) .. "; the tensor itself where it is that already." }
end

-- The value at a path, without loading modules that nobody has touched: their values can't be asked for.
local function value_at(path)
    local value = tide
    for part in path:gmatch("[^.]+") do
        value = type(value) == "table" and rawget(value, part) or nil
    end
    return value
end

return function(wanted)
    if wanted == nil or type(wanted) == "string" or type(wanted) == "number" then
        return nil
    end
    for _, row in ipairs(rows) do
        if rawequal(value_at(row[1]), wanted) then
            return { name = row[1]:match("[^.]+$"), signature = row[2], doc = row[3] }
        end
    end
    return nil
end
