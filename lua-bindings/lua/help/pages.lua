-- help/pages.lua: what help shows of what is no function, by name: a page is text for a person, with inputs (> ...) as one
-- types them at the prompt, and what these show up to the next blank line; a test types them all.
local tide = ...

local TEXTS = [==[
## nn.Module
A network of your own is a class: nn.class(name) makes it, init makes its
parts, forward computes. Tensors that require grad (nn.Parameter) and modules
become parameters and children when they are assigned to a field.

> nn = tide.nn
> Net = nn.class("Net")
> function Net:init(hidden) self.first = nn.Linear(2, hidden); self.last = nn.Linear(hidden, 1) end
> function Net:forward(x) return self.last(self.first(x):relu()) end
> net = Net(8)
> net
Net(
  (first): Linear(in_features=2, out_features=8, bias=true)
  (last): Linear(in_features=8, out_features=1, bias=true)
)

Parts are counted in the order in which they are assigned; of several in one
statement, self.a, self.b = A(), B(), Lua assigns the last one first, so that
parameters come in another order: a statement each is better. A layer's class is
asked by tide.nn.is(layer, tide.nn.Linear).

A module is called as a function; `model:train()` and `model:eval()` say which
way dropout and norms work.

> net(tide.zeros(5, 2)).shape
(5, 1)

A layer with numbers of its own:

> Scale = nn.class("Scale")
> function Scale:init() self.factor = nn.Parameter(tide.ones(1)) end
> function Scale:forward(x) return x * self.factor end
> Scale():state_dict().factor
[1.]
float32 (1) cpu

Training, here of y = x1 * x2:

> x = tide.rand(256, 2)
> y = x[":, 1:1"] * x[":, 2:2"]
> opt = tide.optim.Adam(net:parameters(), {lr = 0.02})
> function step() opt:zero_grad(); loss = nn.functional.mse_loss(net(x), y); loss:backward(); opt:step() end
> for n = 1, 200 do step() end
> loss:item() < 0.01
true

Saving and loading: tide.save(net:state_dict(), "net.safetensors");
net:load_state_dict(tide.load("net.safetensors")). Parts in a list:
nn.Sequential(a, b), nn.ModuleList{a, b}, nn.ModuleDict{name = a}. What a
module has: net:parameters(), net:named_parameters(), net:children(),
net:summary(x), net:to("cuda"), net:apply(fn), net:register_buffer(name,
tensor), net:register_forward_hook(fn). See also ?loops, ?tide.optim,
?tide.nn.functional.
## indexing
Everything counts from 1; -1 is the last. A key is a number, a range, a list
of these in a table, or the same as a string.

> x = tide.arange(12):view(3, 4)
> x[1]
[0, 1, 2, 3]
int64 (4) cpu

> x[{2, -1}]:item()
7

Ranges {first, last, step} have both ends; {} is all:

> x[{{1, 2}, {2, 4, 2}}]
[[1, 3],
 [5, 7]]
int64 (2, 2) cpu

Python's x[:-1], which leaves its end out, is x[":-2"], and x[::2] is
x["::2"]:

> tide.arange(6)[":-2"]
[0, 1, 2, 3, 4]
int64 (5) cpu

The same as strings, "..." for all dims between:

> x["1:2, 2:4:2"] == x[{{1, 2}, {2, 4, 2}}]
true

> x["..., -1"]
[ 3,  7, 11]
int64 (3) cpu

A mask takes what it marks, an index tensor what it names:

> x[x:gt(8)]
[ 9, 10, 11]
int64 (3) cpu

> x[tide.tensor{3, 1}][":, 1"]
[8, 0]
int64 (2) cpu

An integer without dims on the CPU is a number: x[i] is a view, and
x[i]:add_(1) changes x. On a device, and in a script, x[i] is a copy.

A new axis is tide.newaxis in a list, nil in a string (?newaxis):

> x[":, nil, :"].shape
(3, 1, 4)

Each stands on the left of = too; a part read before is a view and changes
along:

> x["1, :"] = 0
> x[x:gt(8)] = -1
> x
[[ 0,  0,  0,  0],
 [ 4,  5,  6,  7],
 [ 8, -1, -1, -1]]
int64 (3, 4) cpu

One number of a tensor is x[{2, 3}]:item(); many are better read at once:
x:tolist(). By tensors of indices along a dim: x:gather(dim, index),
x:index_select(dim, index), x:take_along_dim(index, dim),
x:masked_select(mask), tide.where(mask, x, 0).
## broadcasting
Operators take shapes that fit: dims are compared from the last, and one of
size 1, or that one side has not, is repeated for the other.

> (tide.ones(3, 1) + tide.ones(4)).shape
(3, 4)

> x = tide.tensor{{1.0, 2, 3}, {4, 5, 6}}
> x - x:mean({dim = 2, keepdim = true})
[[-1.,  0.,  1.],
 [-1.,  0.,  1.]]
float32 (2, 3) cpu

What does not fit is an error that names the dims. A dim of size 1 is made by
x:unsqueeze(dim), x[":, nil"] or keepdim (?newaxis), a repeated view by
x:expand(3, 4), tide.broadcast_to and tide.broadcast_tensors.
## channels_last
A memory format says how the elements of images (N, C, H, W) lie in memory, not
what they are: "channels_last" puts the channels of a pixel side by side, which
convolutions may like better. tide.channels_last is that string.

> x = tide.randn(2, 3, 4, 4):contiguous({memory_format = "channels_last"})
> x.shape, x:is_contiguous({memory_format = "channels_last"})
(2, 3, 4, 4)
true

A model takes it along: model:to({memory_format = "channels_last"}); results of
operators keep the format of what they are given. The others are
"contiguous_format", "channels_last_3d" and "preserve_format".
## newaxis
tide.newaxis in a list of indices is a new dim of one element; in a string it
is nil (None and newaxis are read too). A nil in a list would be a hole, which
Lua can't tell from its end.

> x = tide.ones(2, 3)
> x[{{}, tide.newaxis, {}}].shape
(2, 1, 3)

> x["nil, ..."].shape
(1, 2, 3)

> x["..., nil"].shape
(2, 3, 1)

The same by dim, from 1: x:unsqueeze(2); the other way round x:squeeze(2).
Differences of all pairs of rows:

> (x[":, nil, :"] - x["nil, :, :"]).shape
(2, 2, 3)
## shapes
What help says of shapes: operands and what comes of them, a line for each way.

  input (..., I), weight (O, I), bias (O) -> (..., O)

A name in parentheses is a size: I is the same wherever it stands.
  ...          any dims, the same wherever they stand; name... the same by a name
  *            any dims, which are broadcast between the operands (?broadcasting)
  N?           may be missing, in all places at once
  x to (...)   x is broadcast to this shape
  {(...)}      of each tensor in a list
  (...) without dim          a dim less, or of size 1 with keepdim; () without any
  (...) with n at dim        of another size there; `inserted at`: a dim more
  ... if reduction == 'none' when this is said, otherwise the next line

Sizes may be formulas of sizes and arguments, // rounds down, x[dim] is a size
of x, #x how many dims it has. Lines below say what a name in a formula is.
The first way that fits is taken.

> weight, bias = tide.randn(3, 5), tide.zeros(3)
> tide.linear(tide.ones(2, 4, 5), weight, bias).shape
(2, 4, 3)

Dtypes: what the tensors may be; `promoted`: of different ones the wider comes
out; `one dtype`: different ones are an error (x:to(dtype) converts).
## options
Options go into the last table by name; what is named may stand for what has a
position.

> tide.zeros(2, 2, {dtype = tide.float64}).dtype
tide.float64

> tide.ones(2, 3):sum({dim = 1}) == tide.ones(2, 3):sum(1)
true

A table's list part is data or what has a position, its named part options, so
that both may share one:

> tide.nn.Conv2d{3, 8, 3, padding = 1}
Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))

> tide.cat{tide.ones(1), tide.zeros(1), dim = 1}
[1., 0.]
float32 (2) cpu

Functions that call a function take them behind it, with it in one table, or,
where the function itself takes what follows, before it: tide.autocast("cpu",
fn, {dtype = tide.float16}), tide.profiler.profile{fn, with_stack = true},
tide.utils.checkpoint({preserve_rng_state = false}, fn, x); as a context local
_ <close> = tide.autocast({dtype = tide.float16}). What a function takes:
?name shows its options between braces; Tab within the braces offers them.
NumPy's axis and keepdims stand for dim and keepdim. An option that a function
has not is an error which names the nearest.
## dtype
Dtypes are tide.float32, float64, float16, bfloat16, int64, int32, int16,
int8, uint8 and bool. Numbers with a point become float32, whole ones int64,
unless an option says otherwise.

> tide.tensor{1.5, 2}.dtype, tide.tensor{1, 2}.dtype
tide.float32
tide.int64

> tide.tensor({1, 2}, {dtype = tide.float64}).dtype
tide.float64

x:to(dtype), x:double(), x:float(), x:long(), x:type_as(y) convert;
model:double() converts a module's parameters. Float64 everywhere:

> tide.set_default_dtype(tide.float64)
> tide.rand(2).dtype, tide.tensor{0.5}.dtype, tide.nn.Linear(1, 1).weight.dtype
tide.float64
tide.float64
tide.float64

> tide.set_default_dtype(tide.float32)

Of two dtypes the wider comes out; of a tensor and a number the tensor's,
unless the number is of a higher kind:

> (tide.ones(2, {dtype = tide.int64}) + 0.5).dtype
tide.float32

What a dtype holds: ?tide.float16, tide.finfo(tide.float16).max,
tide.iinfo(tide.int8).min. Low precision in training: ?tide.autocast,
?tide.amp.GradScaler.
## loops
Batches are rows in a random order: tide.randperm gives it, split cuts it.

> x = tide.randn(100, 3)
> y = x:sum(2, {keepdim = true})
> model = tide.nn.Linear(3, 1)
> opt = tide.optim.SGD(model:parameters(), {lr = 0.1})
> function epoch() for _, rows in ipairs(tide.randperm(100):split(32)) do step(x[rows], y[rows]) end end
> mse = tide.nn.functional.mse_loss
> function step(a, b) opt:zero_grad(); loss = mse(model(a), b); loss:backward(); opt:step() end
> for n = 1, 50 do epoch() end
> loss:item() < 0.01
true

Measuring without gradients:

> tide.no_grad(function() return mse(model(x), y):item() < 0.01 end)
true

A loader makes the batches, of rows or of whatever has get(self, i) and
len(self), in threads ahead of the loop where num_workers says so; their number
changes no batch. loader:state() is for a checkpoint; see ?tide.data.

> rows = tide.data.TensorDataset(x, y)
> loader = tide.data.DataLoader(rows, {batch_size = 32, shuffle = true, num_workers = 2})
> for a, b in loader do step(a, b) end
> #loader
4

A bar: for i in tide.progress(100) do ... end, a picture:
tide.plot.line(losses); losses kept in a list as numbers, loss:item(). A
scheduler's step comes behind the epoch:
tide.optim.lr_scheduler.CosineAnnealingLR(opt, 50). Loops over single numbers
are slow in any language: for i = 1, n do x[i] = ... end is better one
operator over all, and tide --advise FILE says where.
## tables
A CSV or TSV file becomes a table: columns by name, each of integers, numbers,
true and false, or texts. Header, delimiter and decimal mark are found; an empty
cell, NA and the like are missing: NaN, or no text. ?tide.io.read_table has the
options, for files packed by gzip, with comments, larger than memory (chunk).

> path = os.tmpname()
> f = io.open(path, "w") f:write("area,kind,price\n50,flat,100\n80,house,\n65,flat,140\n") f:close();
> t = tide.data.table(path)
> t
    area  kind     price
   int64  text   float64
1     50  flat       100
2     80  house        -
3     65  flat       140
3 rows, 3 columns
> t.area:max():item()
80
> t[2].kind
"house"

Rows by a mask, by numbers or as a range are tables again; so are sort, select,
head, describe and groups. A new column is assigned, nil takes one away.

> #t[t.kind:eq("flat")], #t[{1, 2}]
2  2
> t.per_area = t.price / t.area
> t:groupby("kind"):mean().price:tolist()
{120.0, nan}
> t:to_tensor({"area", "price"}).shape
(3, 2)
> t:sort("area"):write_csv(path)

A loader takes a table, and its batches are tables of columns:
for batch in tide.data.DataLoader(t, {batch_size = 2}) do ... batch.area ... end.
JSON lines (tide.io.read_jsonl) and columns of a host program in C
(tide.io.from_arrow) become tables too; tide.data.tar reads samples from
archives.
## print
A script's print is Lua's: of a table it shows the address. tide.print shows
what tables hold, and so does print at the prompt. A number of a tensor has a
format by x:item(): ("%.4f"):format(loss:item()).

> tide.print({0.005, 0.0005})
{0.005, 0.0005}
> tide.print("rates", {first = 0.1})
rates	{first = 0.1}

## matplotlib
A plot is a value, shown where it is the last of a cell or an input, or by
p:show(); tide.plot has line, points (scatter), band (fill_between), hist, bar,
heatmap (imshow of numbers), confusion, image and grid (subplots). What pyplot
is told afterwards is an option here: title, xlabel, ylabel, xlim, ylim,
xscale = "log", yscale = "log", label; legends draw themselves where labels are.

> x = tide.linspace(0, 6, 50)
> mean, std = x:sin(), 0.3
> p = tide.plot.band(x, mean - std, mean + std, {label = "std", title = "A wave"})
> p = p + tide.plot.line(x, mean, {label = "mean", linestyle = "--"})
> p = p + tide.plot.points({1, 3, 5}, {0.8, 0.1, -0.9}, {color = "red", marker = "s", yerr = 0.2})

+ lays plots over each other, a grid puts them side by side, save writes SVG,
PNG, PDF, Vega-Lite (.json) or text by the ending of the name.

> g = tide.plot.grid{p, tide.plot.hist(tide.randn(1000)), columns = 2, title = "Both"}
> path = os.tmpname() .. ".pdf"
> g:save(path)
> os.remove(path)
true

Classes in colours: tide.plot.points(x, y, {color = labels}), a number or a text
for each point. Colours are names, "#4c78a8", or C0 to C9; a table of counts is
tide.plot.confusion(targets, predictions, {names = {...}}). See also
tide.display, tide.interact, tide.progress.
## files
tide.load(path) reads a file by what is in it, whatever its name ends in, and
runs nothing that lies in it. Elements are mapped where they can be.

  format                                  gives                                     written by
  safetensors, Tide's checkpoints         tensors by name; what was saved           tide.save
  model.safetensors.index.json, a folder  tensors by name, of all its shards
  .npy, .npz (NumPy)                      a tensor; tensors by name                 tide.save, tide.io.save_npy, save_npz
  .pt, .pth (PyTorch, both forms)         tables, tensors, plain values
  .gguf                                   tensors by name, and the metadata         tide.io.write_gguf
  .t7 (Torch7, binary and ASCII)          tables, tensors, plain values
  .csv, .tsv, .jsonl                      a tide.data.table (?tables)               write_csv
  .png, .jpg                              uint8, (channels, height, width)          tide.io.write_png, write_jpeg
  .wav                                    samples (channels, frames), and the rate  tide.io.write_wav
  IDX (MNIST), CIFAR's batches            tensors
  .tar                                    bytes by name                             tide.data.write_tar
  a matrix of numbers in text: tide.io.read_csv

> path = os.tmpname()
> tide.io.write_gguf(path, {w = tide.eye(32)}, {types = "Q4_0", metadata = {layers = 2}})
> tensors, notes = tide.load(path)
> tensors.w.dtype, notes.layers
tide.float32
2

Of .pt: a dict is a table, and pairs() of an OrderedDict go in its order; lists
and tuples count from 1, in the file's order; None is nil, and a list with one
in it has its length as n. Tensors of one storage share it. Classes, functions
and dtypes that Tide has not are left out, named by a warning and in the third
result, by their places. net:load_state_dict takes PyTorch's names, whose
numbers count from 0.

Of .gguf: packed tensors (Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q2_K to Q6_K) become
float32, or the dtype of tide.load(path, {dtype = tide.bfloat16}). Of .t7: an
object is the table of its fields, with its class as torch_typename.

tide --doctor FILE says what a file is and what is wrong with it.
## pytorch
PyTorch's names hold in Tide with torch. read as tide.; ?torch.name tells of
one what it is here. What differs:

  PyTorch                                 Tide
  x[0], x[:, -1], x[None]                 x[1], x[":, -1"], x["nil"]       counted from 1
  x[1:3]                                  x["2:3"]                         both ends belong to a range
  x[:-1], x[::2]                          x[":-2"], x["::2"]
  isinstance(m, nn.Linear)                tide.nn.is(m, tide.nn.Linear)
  x.sum(dim=0, keepdim=True)              x:sum(1, {keepdim = true})       methods by a colon, options in a table
  x > 0, x == y                           x:gt(0), x:eq(y)                 Lua compares to one boolean
  x += 1                                  x:add_(1)
  x @ y, x ** 2, not x                    x:matmul(y), x ^ 2, x:logical_not()
  if loss < 1:                            if loss:item() < 1 then
  with torch.no_grad():                   tide.no_grad(function() ... end), or local _ <close> = tide.no_grad()
  class Net(nn.Module)                    Net = nn.class("Net")            ?nn.Module
  for x, y in DataLoader(...)             for x, y in tide.data.DataLoader(...)  ?loops
  torch.from_numpy, x.numpy()             tide.load("x.npy"), tide.save(x, "x.npy")
  torch.save(m.state_dict(), f)           tide.save(m:state_dict(), f)     safetensors
  torch.load(f)                           tide.load(f)                     ?files
  torch.autograd.Function                 tide.autograd.Function
  torch._foreach_mul_(a, b)               tide.foreach.mul_(a, b)
  torch.autocast("cuda"), GradScaler      tide.autocast("cuda"), tide.amp.GradScaler
  torch.profiler.profile(...) as p        p = tide.profiler.profile{fn, with_stack = true}
  p.key_averages().table(row_limit=10)    p:table({limit = 10}), p:key_averages():table{...}
  for e in p.key_averages(): e.key        for _, e in ipairs(p:key_averages()) do e.key
  record_function("name")                 tide.profiler.record("name", fn)
  torch.utils.benchmark.Timer             tide.benchmark.Timer
  torch.utils.checkpoint.checkpoint       tide.utils.checkpoint
  SummaryWriter                           tide.utils.tensorboard.SummaryWriter
  torch.set_default_dtype                 tide.set_default_dtype
  with torch.device("meta"):              tide.set_default_device("meta", fn)
  print(x.shape), len(x)                  x.shape, #x
  B, T = x.shape                          B, T = x.shape:unpack()
  x.max(1).values, a, b = x.split(2)      values, places = x:max(2), a, b = table.unpack(x:split(2))
  out, (h, c) = lstm(x)                   out, state = lstm(x); h, c = state[1], state[2]
  copy.deepcopy(net)                      net:clone()
  cross_entropy's classes from 0          classes from 1

Deliberately absent: complex numbers and torch.fft, torch.compile and
torch.export (graphs are tide.jit's), nested tensors, layouts but dense, COO
and quantized, worker processes (workers are threads:
?tide.workers), lazy modules, devices but "cpu" and "cuda", float8 and
unsigned integers but uint8.
]==]

local pages = {}

-- Puts the pages of a text, each under a line "## NAME", under their names, and returns these in their order.
local function add_pages(text)
    local order, lines = {}, nil
    for line in string.gmatch(text, "([^\n]*)\n") do
        local name = string.match(line, "^## (%S+)$")
        if name then
            lines = {}
            pages[name], order[#order + 1] = lines, name
        else
            lines[#lines + 1] = line
        end
    end
    for _, name in ipairs(order) do
        pages[name] = table.concat(pages[name], "\n")
    end
    return order
end

-- The page that lists the questions of the cookbook.
local function contents(order)
    local lines = {}
    for k, name in ipairs(order) do
        lines[k] = string.format("  ?%-26s %s", name, string.match(pages[name], "^[^\n]*"))
    end
    return "What people ask, each with an answer that can be typed; /words finds them too.\n\n" .. table.concat(lines, "\n") .. "\n"
end

add_pages(TEXTS)
pages.cookbook = contents(add_pages(tide._require "help/cookbook.txt"))

return pages
