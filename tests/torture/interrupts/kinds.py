"""kinds.py: what is interrupted: lines of Lua that work for long, by what holds the thread meanwhile.

A kind is (name, setup, work). The setup is evaluated first and must end by itself; the work is a line that
runs until it is stopped, or for a few seconds at least. HELD are kinds that only the end of the process stops,
since they lie in C code of Lua's own.
"""


def _loop(expression):
    return f"while true do local r = {expression} end"


BIG = "x = tide.rand(1 << 24)"
MATRIX = "x = tide.rand(4096, 4096)"
INTEGERS = "x = tide.randint(0, 1000, {1 << 23})"


def _family(prefix, setup, expressions):
    return [(f"{prefix}: {e}", setup, _loop(e)) for e in expressions]


OPERATORS = (
    _family("pointwise", BIG, ["x + x", "x:exp()", "x:sin():cos():tanh()", "x:erf()", "x ^ 1.5", "x:gelu()",
                               "x:double()", "x:lt(0.5)", "x:clone()", "tide.where(x:gt(0.5), x, 0)"])
    + _family("strided", MATRIX, ["x:t() + x", "x:t():contiguous()", "x:flip(1)", "x:roll(5, 2)", "x[{{}, '1::3'}]:exp()"])
    + _family("reduction", MATRIX, ["x:sum()", "x:sum(1)", "x:sum(2)", "x:t():std(1)", "x:logsumexp(1)", "x:argmax()",
                                    "x:max(1)", "x:cumsum(1)", "x:norm()", "x:any()", "x:softmax(2)", "x:log_softmax(1)"])
    + _family("expanded", "x = tide.ones(1)", ["x:expand(1 << 33):sum()", "x:expand(1 << 33):max()",
                                              "x:expand(1 << 33):argmax()", "x:expand(1 << 16, 1 << 16):sum(1)",
                                              "x:expand(1 << 16, 1 << 16):logsumexp(2)", "x:expand(1 << 33):any()"])
    + _family("integers", "x = tide.randint(0, 9, {1500, 1500})", ["x:matmul(x)", "x:byte():matmul(x:byte())"])
    + _family("floats", "x = tide.rand(3000, 3000)", ["x:matmul(x)", "x:double():matmul(x:double())",
                                                      "x:bfloat16():matmul(x:bfloat16())", "x:half():matmul(x:half())"])
    + _family("batches", "x = tide.rand(20000, 64, 64)", ["x:bmm(x)"])
    + _family("images", "x, w = tide.rand(16, 32, 128, 128), tide.rand(64, 32, 5, 5)",
              ["tide.conv2d(x, w)", "tide.conv2d(x:double(), w:double())", "tide.max_pool2d(x, 3)", "tide.avg_pool2d(x, 5, 1)",
               "tide.interpolate(x, {size = {256, 256}})"])
    + _family("random", "n = 3e7 // 1 | 0", ["tide.randn(n)", "tide.rand(n)", "tide.randperm(n)", "tide.randint(0, 5, {n})",
                                            "tide.rand(n):bernoulli()", "tide.dropout(tide.ones(n), 0.5)"])
    + _family("indices", "x = tide.rand(1 << 23) i = tide.randint(1, 1 << 23, {1 << 23})",
              ["x[i]", "x:gather(1, i)", "x:scatter(1, i, x)", "x:scatter_add(1, i, x)", "x:index_select(1, i)",
               "x:index_add(1, i, x)", "x:masked_select(x:gt(0.5))", "x:gt(0.5):nonzero()", "x:take(i)", "tide.one_hot(i[{'1:300'}] % 5 + 1)"])
    + _family("joining", BIG, ["tide.cat({x, x, x})", "tide.stack({x, x})", "x:reshape(4096, 4096):tril()", "x:tile(4)",
                               "tide.outer(x['1:10000'], x['1:10000'])", "tide.linspace(0, 1, 1 << 26)", "tide.eye(20000)"])
    + _family("losses", "x, y = tide.randn(20000, 1000), tide.randint(1, 1000, {20000})",
              ["tide.cross_entropy(x, y)", "tide.mse_loss(x, x)", "tide.huber_loss(x, x * 2)"])
)

WRITES = [
    ("writes: in place", BIG, "while true do x:add_(1):mul_(0.5):sqrt_() end"),
    ("writes: views", MATRIX, "while true do x[{'1:4000', '1::2'}] = 0.5 x:t():copy_(x) end" if False else
     "while true do x[{'1:4000', '1::2'}] = 0.5 end"),
    ("writes: out", BIG, "local y = tide.empty(1 << 24) while true do tide.exp(x, {out = y}) end"),
    ("writes: fill", BIG, "while true do x:fill_(0.25) x:uniform_() end" if False else "while true do x:fill_(0.25) end"),
    ("writes: set one", "x = tide.zeros(1000)", "while true do for k = 1, 1000 do x[k] = k end end"),
]

BINDINGS = [
    ("bindings: tolist", BIG, "while true do local t = x:tolist() end"),
    ("bindings: tolist of an expanded tensor", "x = tide.ones(1)", "return x:expand(1 << 40):tolist()"),
    ("bindings: tolist of many rows", "x = tide.ones(1)", "return x:expand(1 << 30, 0):tolist()"),
    ("bindings: tensor from a table", "t = {} for k = 1, 3e7 do t[k] = k end", "while true do local x = tide.tensor(t) end"),
    ("bindings: tensor from rows", "t = {} for k = 1, 3e6 do t[k] = {k, k} end", "while true do local x = tide.tensor(t) end"),
    ("bindings: tensor from one table seen often", "t = {1, 2, 3} for k = 1, 6 do local u = {} for j = 1, 60 do u[j] = t end t = u end",
     "return tide.tensor(t)"),
    ("bindings: a tensor's text", "x = tide.rand(1000, 1000)", "while true do local s = tostring(x) end"),
    ("bindings: unbind", "x = tide.rand(1000000, 2)", "while true do local t = table.pack(x:narrow(1, 1, 100000):unbind()) end"),
    ("bindings: iteration", "x = tide.rand(1000000)", "while true do for k, v in ipairs(x) do end end"),
    ("bindings: elements", "x = tide.rand(1000)", "while true do for k = 1, 1000 do local v = x[k]:item() end end"),
    ("bindings: tiny calls", "x = tide.ones(1)", "while true do x = x + 1 end"),
    ("bindings: cat of many", "t = {} for k = 1, 100000 do t[k] = tide.ones(3) end", "while true do local y = tide.cat(t) end"),
    ("bindings: split", BIG, "while true do local t = x:split(100) end"),
    ("bindings: sleep", "", "tide.sleep(100)"),
    ("bindings: csv", "do local f = io.open('big.csv', 'w') for k = 1, 2e6 do f:write('1,2.5,-3e7\\n') end f:close() end",
     "while true do local x = tide.io.read_csv('big.csv') end"),
    ("bindings: checkpoints", "x = tide.rand(1000000)", "while true do tide.save({x}, 'saved'); tide.load('saved', {map = false}) end"),
    ("bindings: csv of a pipe", "os.execute('rm -f fifo; mkfifo fifo')", "return tide.io.read_csv('fifo')"),
    ("bindings: equal", BIG, "local y = x:clone() while true do local same = x:equal(y) end"),
]

AUTOGRAD = [
    ("autograd: backward", "w = tide.rand(2000, 2000, {requires_grad = true})",
     "while true do (w:matmul(w):tanh():matmul(w)):sum():backward() end"),
    ("autograd: a deep graph", "w = tide.ones(1, {requires_grad = true})",
     "while true do local y = w for k = 1, 200000 do y = y * 1 end y:backward() end"),
    ("autograd: gradients of gradients", "w = tide.rand(300, 300, {requires_grad = true})",
     "while true do local g = tide.autograd.grad({(w:exp():sin()):sum()}, {w}, {create_graph = true}) g[1]:sum():backward() end"),
    ("autograd: gradcheck", "w = tide.rand(40, 40, {dtype = 'float64', requires_grad = true})",
     "while true do tide.autograd.gradcheck(function(x) return x:exp():sum() end, {w}) end"),
    ("autograd: training",
     "local nn = tide.nn model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 26 * 26, 10)) "
     "sgd = tide.optim.SGD(model:parameters(), {lr = 1e-4, momentum = 0.9}) images = tide.rand(64, 1, 28, 28) "
     "labels = tide.randint(1, 10, {64})",
     "while true do sgd:zero_grad() tide.cross_entropy(model(images), labels):backward() sgd:step() end"),
    ("autograd: under no_grad", "w = tide.rand(1000, 1000, {requires_grad = true})",
     "while true do local _ <close> = tide.no_grad() local y = w:matmul(w) end"),
]

PROFILER = [
    ("profiler: recording", "x = tide.ones(10)", "while true do tide.profiler.profile(function() for k = 1, 20000 do local y = x + 1 end end) end"),
    ("profiler: events", "p = tide.profiler.profile(function() local x = tide.ones(1) for k = 1, 500000 do x = x + 1 end end)",
     "while true do local e = p:events() end"),
    ("profiler: table", "p = tide.profiler.profile(function() local x = tide.ones(1) for k = 1, 500000 do x = x + 1 end end)",
     "while true do local e = p:table() end"),
    ("profiler: export", "p = tide.profiler.profile(function() local x = tide.ones(1) for k = 1, 500000 do x = x + 1 end end)",
     "while true do p:export_chrome_trace('trace.json') end"),
    ("profiler: stopping", "", "while true do local p = tide.profiler.profile(function() local x = tide.ones(1) for k = 1, 300000 do x = x + 1 end end) end"),
]

LUA = [
    ("lua: a loop", "", "while true do end"),
    ("lua: repeat", "", "repeat until false"),
    ("lua: for", "", "for k = 1, 1e18 do end"),
    ("lua: goto", "", "::again:: goto again"),
    ("lua: recursion", "function f(n) return f(n + 1) end", "f(1)"),
    ("lua: pcall", "", "while true do pcall(error) end"),
    ("lua: pcall of loops", "function f() for k = 1, 1e5 do end error('x') end", "while true do pcall(f) end"),
    ("lua: pcall of pcalls", "function g() while true do pcall(g2) end end function g2() while true do pcall(error) end end", "while true do pcall(g) end"),
    ("lua: xpcall", "", "while true do xpcall(error, debug.traceback) end"),
    ("lua: a message handler", "", "xpcall(error, function() while true do end end)"),
    ("lua: handlers in handlers", "", "local function h() while true do xpcall(error, h) end end xpcall(error, h)"),
    ("lua: an endless message handler of a loop", "", "xpcall(function() while true do end end, function() while true do end end)"),
    ("lua: coroutines", "", "coroutine.wrap(function() while true do end end)()"),
    ("lua: yields", "", "local c = coroutine.wrap(function() while true do coroutine.yield() end end) while true do c() end"),
    ("lua: coroutines in coroutines", "function deep(n) if n == 0 then while true do end end return coroutine.wrap(deep)(n - 1) end", "deep(50)"),
    ("lua: pcall in coroutines", "", "while true do coroutine.wrap(function() while true do pcall(coroutine.wrap(function() while true do pcall(error) end end)) end end)() end"),
    ("lua: a handler in a coroutine", "", "coroutine.wrap(function() xpcall(error, function() while true do end end) end)()"),
    ("lua: resume", "", "while true do coroutine.resume(coroutine.create(function() for k = 1, 1e6 do end error('x') end)) end"),
    ("lua: close", "", "while true do local c = coroutine.create(function() local x <close> = setmetatable({}, {__close = function() for k = 1, 1e5 do end end}) coroutine.yield() end) coroutine.resume(c) coroutine.close(c) end"),
    ("lua: a __close that loops", "", "do local x <close> = setmetatable({}, {__close = function() while true do end end}) end"),
    ("lua: closes that loop", "", "while true do local x <close> = setmetatable({}, {__close = function() for k = 1, 1e6 do end end}) end"),
    ("lua: a reader of load", "", "load(function() while true do end end)"),
    ("lua: readers of load", "", "while true do load(function() for k = 1, 1e5 do end end) end"),
    ("lua: load", "", "while true do load('x = 1') end"),
    ("lua: load of much", "s = ('local x = {1, 2, f(3)} '):rep(100):gsub('local', 'x') s = ('do ' .. s .. ' end '):rep(2000)", "while true do load(s) end"),
    ("lua: metamethods", "m = setmetatable({}, {__index = function(t, k) return t[k + 1] end})", "while true do pcall(function() return m[1] end) end"),
    ("lua: tostring", "m = setmetatable({}, {__tostring = function() while true do end end})", "return tostring(m)"),
    ("lua: tables", "", "while true do local t = {} for k = 1, 1e6 do t[k] = {} end end"),
    ("lua: garbage", "t = {} for k = 1, 3e6 do t[k] = {} end", "while true do local u = {} end"),
    ("lua: strings", "", "local s = '' while true do s = s .. 'x' end"),
    ("lua: gsub with functions", "s = ('x'):rep(1e6)", "while true do s:gsub('x', string.upper) end"),
    ("lua: sort with functions", "t = {} for k = 1, 1e6 do t[k] = math.random() end", "while true do table.sort(t, function(a, b) return a < b end) table.sort(t, function(a, b) return b < a end) end"),
    ("lua: sort with C functions", "t = {} for k = 1, 1e5 do t[k] = tostring(math.random()) end", "while true do table.sort(t, rawequal) end"),
    ("lua: a finalizer that allocates", "", "setmetatable({}, {__gc = function() while true do local t = {} end end}) collectgarbage()"),
    ("lua: hooks", "", "while true do debug.sethook() end"),
    ("lua: hooks of one's own", "", "while true do debug.sethook(print, '', 1 << 30) end"),
    ("lua: require", "package.preload.slow = function() while true do end end", "require 'slow'"),
    ("lua: errors with objects", "e = setmetatable({}, {__tostring = function() while true do end end})", "error(e)"),
    ("lua: display of values", "v = setmetatable({}, {__tostring = function() while true do end end})", "v"),
    ("lua: display of great tables", "v = {} for k = 1, 1e6 do v[k] = {k} end", "while true do tide.display(v) end"),
    ("lua: reading", "", "io.read()"),
    ("lua: reading all", "", "io.read('a')"),
    ("lua: a program", "", "os.execute('sleep 100') while true do end"),
    ("lua: programs", "", "while true do os.execute('sleep 0.01') end"),
    ("lua: a pipe", "", "io.popen('sleep 100'):read() while true do end"),
    ("lua: printing", "", "while true do print('a line of text', 12, true) end"),
    ("lua: printing tensors", "x = tide.rand(100, 100)", "while true do print(x) end"),
    ("lua: writing", "", "while true do io.write('text text text\\n') end"),
    ("lua: writing much", "s = ('text text text\\n'):rep(1e6)", "while true do io.write(s) end"),
    ("lua: a value of many lines", "", "return ('text\\n'):rep(3e6)"),
    ("lua: concat", "t = {} for k = 1, 3e6 do t[k] = 'text' end", "while true do local s = table.concat(t, ',') end"),
    ("lua: concat of numbers", "t = {} for k = 1, 3e6 do t[k] = k end", "while true do local s = table.concat(t, ',') end"),
    ("lua: rep", "", "while true do local s = ('x'):rep(1e8) end"),
    ("lua: rep with separators", "", "while true do local s = ('x'):rep(3e7, ',') end"),
    ("lua: gsub", "s = ('text '):rep(1e6)", "while true do local r = s:gsub('t', 'T') end"),
    ("lua: unpack", "t = {} for k = 1, 2e5 do t[k] = k end", "while true do local r = select('#', table.unpack(t)) end"),
    ("lua: insert", "t = {} for k = 1, 1e5 do t[k] = k end", "while true do table.insert(t, 1, 0) end"),
    ("lua: move", "t = {} for k = 1, 1e6 do t[k] = k end", "while true do table.move(t, 1, 1e6, 2) end"),
    ("lua: sort", "function t() local t = {} for k = 1, 2e5 do t[k] = math.random() end return t end", "while true do table.sort(t()) end"),
    ("lua: upper", "s = ('x'):rep(1e7)", "while true do local r = s:upper() end"),
    ("lua: utf8", "s = ('x'):rep(1e7)", "while true do local r = utf8.len(s) end"),
]

MAGICS = [
    ("magics: timeit", "x = tide.ones(1)", "%timeit -r 1000 x + 1"),
    ("magics: timeit of a slow line", "", "%timeit for k = 1, 1e8 do end"),
    ("magics: timeit of a short line", "", "%timeit -n 1000000000 math.sin(1)"),
    ("magics: time", "", "%time while true do end"),
]

KINDS = OPERATORS + WRITES + BINDINGS + AUTOGRAD + PROFILER + LUA + MAGICS

HELD = [
    ("held: find", "", "('a'):rep(40):find(('a*'):rep(30) .. 'b')", "string.find"),
    ("held: match", "", "('a'):rep(40):match(('a-'):rep(30) .. 'b')", "string.match"),
    ("held: gsub", "", "string.gsub(('a'):rep(40), ('a*'):rep(30) .. 'b', 'x')", "string.gsub"),
    ("held: a finalizer", "", "setmetatable({}, {__gc = function() while true do end end}) collectgarbage()", "finalizer"),
    ("held: a hook", "", "debug.sethook(function() while true do end end, '', 1) for k = 1, 10 do end", "hook"),
]
