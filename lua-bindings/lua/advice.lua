-- advice.lua: tide.advice: a page of help for each kind of advice that p:advice() and `tide --advise` give.
local tide = ...
local advice = {}

local PAGES = {
    foreach = { "One operator over a list of tensors, a call each.",
        "Every call costs some 300 ns before its kernel works, which small tensors never make up for. tide.foreach runs one operator "
        .. "over whole lists: all are looked at together, and the kernel works through them in one parallel loop.",
        "for k = 1, #params do params[k]:add_(grads[k]) end", "tide.foreach.add_(params, grads)" },
    batch = { "The same operators over the rows of a tensor, a row at a time.",
        "Rows, slices or pairs of points in a loop of Lua are so many small calls. Operators take all rows at once: a dim of sums "
        .. "(sum(2)), broadcasting (x[\":, nil\"] - y), tide.cdist for distances, bmm for products.",
        "for i = 1, #x do d[i] = (x[i] - y):square():sum() end", "local d = (x - y):square():sum(2)" },
    elementwise_loop = { "Elements read or written one by one from Lua.",
        "x[i] is a tensor, and x[i]:item() two calls; a number of a Lua table costs some nanoseconds. Use one operator over all "
        .. "elements, or x:tolist() and tide.tensor(table) around the loop.",
        "for i = 1, #x do s = s + x[i]:item() end", "local s = x:sum():item()" },
    sync = { "The script waits for elements in a loop.",
        "item(), tolist(), printing and masks whose elements have to be counted stop until all that was asked for is done; on a device "
        .. "nothing else is handed to it meanwhile. Keep tensors in the loop, look at them every 100th time; masks: tide.where.",
        "total = total + x[mask]:sum()", "total = total + tide.where(mask, x, 0):sum()" },
    layout = { "Copies that change nothing but the layout.",
        "Operators take any strides, and products of a transposed matrix cost no more: contiguous() is wanted by view() alone. Convert "
        .. "images to channels_last once, model and input, and leave them so.",
        "local y = w:t():contiguous():mv(x)", "local y = w:t():mv(x)" },
    cast = { "One tensor cast again and again; a float64 that crept in.",
        "Cast once in front of the loop. One float64 tensor with dims makes all that meets it float64, which takes twice the memory and "
        .. "half the speed: give {dtype = tide.float32} where it is made.",
        "for … do local x = pixels:float() … end", "local x = pixels:float(); for … do … end" },
    fuse = { "Pointwise chains over memory larger than the cache.",
        "Each call of a chain reads and writes all of the memory. Operators that are the whole chain make one pass: addcmul, addcdiv, lerp, "
        .. "silu, gelu, softmax, log_softmax, logsumexp, layer_norm, mse_loss. Where none does, write in place: x:mul(a):add_(b):relu_().",
        "local y = x * tide.sigmoid(x)", "local y = tide.silu(x)" },
    script = { "Pointwise operators that follow one another, again and again.",
        "Each call costs its dispatch, and a pass over memory. tide.jit.script makes a graph of a function, in which such operators are "
        .. "one kernel; results are the same bits. Make it once, in front of the loop, and call it as the function.",
        "for … do y = (x * a + b):tanh() * c end", "local f = tide.jit.script(function(x, a, b, c) return (x * a + b):tanh() * c end); for … do y = f(x, a, b, c) end" },
    no_grad = { "A graph recorded for nothing.",
        "Calls on tensors that require grad record a graph and keep what it needs. Where no backward comes (validation, updates by hand), "
        .. "run them within no_grad. A loss that is summed with its history keeps the graphs of all steps.",
        "total = total + loss", "total = total + loss:item()" },
    hoist = { "The same operator on the same unchanged tensors, in every iteration.",
        "What does not change can be computed once in front of the loop.",
        "for … do x = tide.exp(a):mv(x) end", "local e = tide.exp(a); for … do x = e:mv(x) end" },
    grow = { "cat or stack in a loop.",
        "Each one copies all that is there: n pieces cost n² copies. Keep the pieces in a table and join them once, or write into rows of "
        .. "a tensor of the final size.",
        "for … do all = tide.cat{all, piece} end", "for … do list[#list + 1] = piece end; local all = tide.cat(list)" },
    allocate = { "The same big temporary made anew in each iteration.",
        "New memory has to be found, and is in no cache. Where nobody reads the old values any more write over them (x:mul_(a)), or into "
        .. "memory that stays (tide.mul(x, a, {out = y})).",
        "for … do x = x * 0.99 end", "for … do x:mul_(0.99) end" },
    small_batch = { "Products with the same matrix, one row at a time.",
        "The matrix is read from memory for every row. All rows in one product read it once, and their products reach the speed of the "
        .. "machine.",
        "for k = 1, n do y[k] = w:mv(x[k]) end", "local y = x:mm(w:t())" },
    chain_order = { "A product of several matrices in an order with needless multiplications.",
        "(A B) v multiplies matrices, A (B v) only matrices with vectors. tide.linalg.multi_dot finds the best order by itself.",
        "a:mm(b):mv(v)", "a:mv(b:mv(v))" },
    precision = { "Products and convolutions of float32 that bfloat16 would cut.",
        "Told only where this machine multiplies bfloat16 faster, as it was measured on your shapes. autocast casts what may be cast, and "
        .. "sums stay float32; 8 bits of precision are enough for most training.",
        "local loss = criterion(model(x), y)", "local _ <close> = tide.autocast{dtype = tide.bfloat16}" },
    threads = { "Work shared among threads that would be done sooner by fewer.",
        "Handing out parts and waiting for them takes microseconds, and more threads than processors wait for each other. "
        .. "tide.set_num_threads(n) says how many there are.",
        "tide.set_num_threads(64)", "tide.set_num_threads(2)" },
    data = { "Steps that wait for data.",
        "Files read and parsed between steps leave the machine idle. Read once in front of the loop and take rows; keep what was parsed "
        .. "with tide.save, which tide.load maps without reading.",
        "for … do local rows = tide.io.read_csv(path) … end", "local rows = tide.io.read_csv(path); for … do … end" },
    gc = { "The collector's share.",
        "Tide collects when tensors need the memory. collectgarbage() in a loop walks all that the script holds each time. Let go of big "
        .. "temporaries at once with <close>, write in place, and hold fewer small tables.",
        "for … do … collectgarbage() end", "for … do local t <close> = f(x) … end" },
    scalar = { "Chains of operators on tensors of one element that are plain numbers.",
        "Lua multiplies two numbers in some nanoseconds, an operator in some hundred. Rates, counters and averages are numbers; "
        .. "x:item() makes one of a tensor.",
        "rate = rate * factor -- tensors", "rate = rate * 0.99 -- numbers" },
    optimizer = { "Parameters that are updated one at a time.",
        "tide.optim makes the step of all parameters in one program: one call, one pass over each. Leave out foreach = false.",
        "for _, p in ipairs(params) do p:sub_(p.grad * lr) end",
        "local optimizer = tide.optim.SGD(params, {lr = lr}); optimizer:step()" },
}

local Page = { __name = "AdvicePage" }
tide._class("AdvicePage", Page)
function Page.__tostring(self)
    return string.format("%s: %s\n\n%s\n\nslow:   %s\nmended: %s", self.kind, self.title, self.text, self.slow, self.mended)
end

for _, kind in ipairs(tide._require("advice.collect").kinds) do
    local title, text, slow, mended = table.unpack(PAGES[kind])
    advice[kind] = setmetatable({ kind = kind, title = title, text = text, slow = slow, mended = mended }, Page)
    tide._document(advice[kind], kind, "advice." .. kind, tostring(advice[kind]))
end

tide._document(advice, "advice", "tide.advice",
    "The kinds of advice that p:advice() and `tide --advise script.lua` give, a page each: ?advice.foreach.")

return advice
