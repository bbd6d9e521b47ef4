-- nn/parametrizations.lua: nn.utils.parametrizations: weights of a given length, orthogonal ones, and ones whose
-- largest singular value is 1.
local tide = ...
local fail, declare = tide._fail, tide._function
local matrix = tide._require "nn.matrix"

-- ---- length and direction ----

local function weight_norm_class(nn)
    local WeightNorm = nn.class("_WeightNorm")
    function WeightNorm:init(dim) rawset(self, "dim", dim) end
    function WeightNorm:forward(g, v) return v * (g / matrix.norms(v, self.dim)) end
    function WeightNorm:right_inverse(weight) return matrix.norms(weight, self.dim), weight end
    return WeightNorm
end

-- ---- the largest singular value ----

local function power_steps(self, weight, count)
    local _ <close> = tide.no_grad()
    for _ = 1, count do
        self._u:copy_(matrix.unit(weight:mv(self._v), self.eps))
        self._v:copy_(matrix.unit(weight:t():mv(self._u), self.eps))
    end
end

local function spectral_norm_class(nn)
    local SpectralNorm = nn.class("_SpectralNorm")
    function SpectralNorm:init(weight, count, dim, eps)
        rawset(self, "dim", dim)
        rawset(self, "eps", eps)
        rawset(self, "n_power_iterations", count)
        if weight:dim() == 1 then
            return
        end
        local rows, options = matrix.rows_of(weight:detach(), dim), { dtype = weight.dtype, device = weight.device }
        self:register_buffer("_u", matrix.unit(tide.randn(rows.shape[1], options), eps))
        self:register_buffer("_v", matrix.unit(tide.randn(rows.shape[2], options), eps))
        power_steps(self, rows, 15)
    end
    function SpectralNorm:forward(weight)
        if weight:dim() == 1 then
            return matrix.unit(weight, self.eps)
        end
        local rows = matrix.rows_of(weight, self.dim)
        if self.training then
            power_steps(self, rows, self.n_power_iterations)
        end
        return weight / tide.dot(self._u:clone(), rows:mv(self._v:clone()))
    end
    function SpectralNorm:right_inverse(value) return value end
    return SpectralNorm
end

-- ---- orthogonal matrices ----

-- The product of reflections I - tau v v', whose vectors are the columns of A below its diagonal of ones: its first
-- k columns.
local function reflections(A, tau)
    local n, k = A.shape[-2], A.shape[-1]
    local options = { dtype = A.dtype, device = A.device }
    local vectors = A:tril(-1) + tide.eye(n, k, options)
    local Q = tide.eye(n, k, options):expand(A.shape)
    for j = k, 1, -1 do
        local v = vectors:narrow(-1, j, 1)
        Q = Q - tau:narrow(-1, j, 1):unsqueeze(-1) * v:matmul(v:transpose(-1, -2):matmul(Q))
    end
    return Q
end

-- The vectors (below the diagonal) and signs (on it) whose reflections give the orthogonal factor of Q.
local function reflectors(Q)
    local n, k = Q.shape[-2], Q.shape[-1]
    local rest, columns, sizes = Q:clone(), {}, { table.unpack(Q.shape) }
    local options = { dtype = Q.dtype, device = Q.device }
    for j = 1, k do
        local x = rest:narrow(-1, j, 1):narrow(-2, j, n - j + 1)
        local first, tail = x:narrow(-2, 1, 1), x:narrow(-2, 2, n - j)
        local length = tide.linalg.vector_norm(x, 2, -2, { keepdim = true })
        local still = tide.linalg.vector_norm(tail, 2, -2, { keepdim = true }):eq(0)
        local beta = tide.where(still, first, -length * tide.where(first:ge(0), 1.0, -1.0))
        local v = tide.cat({ tide.ones_like(first), tide.where(still, tide.zeros_like(tail), tail / (first - beta)) }, -2)
        local tau = tide.where(still, tide.zeros_like(beta), (beta - first) / beta)
        local below = rest:narrow(-2, j, n - j + 1)
        below:sub_(tau * v:matmul(v:transpose(-1, -2):matmul(below)))
        local sign = beta:sign() * tide.where(still, -1.0, 1.0)
        sizes[#sizes - 1], sizes[#sizes] = j - 1, 1
        columns[j] = tide.cat({ tide.zeros(sizes, options), sign, v:narrow(-2, 2, n - j) }, -2)
    end
    return tide.cat(columns, -1)
end

-- Q with the signs that make R's diagonal positive.
local function make_orthogonal(A)
    local Q, R = tide.linalg.qr(A)
    return Q * R:diagonal(0, -2, -1):sign():unsqueeze(-2)
end

local function is_orthogonal(Q)
    local k = Q.shape[-1]
    local eps = 10 * k * tide.finfo(Q.dtype).eps
    local product = Q:transpose(-1, -2):matmul(Q)
    return tide.allclose(product, tide.eye(k, { dtype = Q.dtype, device = Q.device }):expand_as(product), { rtol = 1e-5, atol = eps })
end

-- Tall, and whether it was turned for it.
local function tall(x)
    local turned = x.shape[-2] < x.shape[-1]
    return turned and x:transpose(-1, -2) or x, turned
end

local function by_skew_matrix(map, x)
    local n, k = x.shape[-2], x.shape[-1]
    local options = { dtype = x.dtype, device = x.device }
    x = x:tril()
    if n ~= k then
        local sizes = { table.unpack(x.shape) }
        sizes[#sizes] = n - k
        x = tide.cat({ x, tide.zeros(sizes, options) }, -1)
    end
    local A = x - x:transpose(-1, -2)
    local unit = tide.eye(n, options)
    local Q = map == "matrix_exp" and tide.matrix_exp(A) or tide.linalg.solve(unit - A * 0.5, unit + A * 0.5)
    return Q:narrow(-1, 1, k)
end

local function by_reflections(x)
    local A = x:tril(-1)
    return reflections(A, 2 / (1 + (A * A):sum(-2))) * x:detach():diagonal(0, -2, -1):trunc():unsqueeze(-2)
end

local function orthogonal_class(nn)
    local Orthogonal = nn.class("_Orthogonal")
    function Orthogonal:init(weight, map, from_base)
        rawset(self, "shape", weight.shape)
        rawset(self, "orthogonal_map", map)
        rawset(self, "from_base", from_base)
        if from_base then
            self:register_buffer("base", nil)
        end
    end
    function Orthogonal:forward(x)
        local upright, turned = tall(x)
        local Q = self.orthogonal_map == "householder" and by_reflections(upright)
            or by_skew_matrix(self.orthogonal_map, upright)
        Q = self.from_base and self.base:matmul(Q) or Q
        return turned and Q:transpose(-1, -2) or Q
    end
    function Orthogonal:right_inverse(given)
        if given.shape ~= self.shape then
            fail("orthogonal: a weight of shape %s expected, got %s", tostring(self.shape), tostring(given.shape))
        end
        local Q, turned = tall(given)
        local n, k = Q.shape[-2], Q.shape[-1]
        if not self.from_base then
            if self.orthogonal_map ~= "householder" then
                return nil
            end
            local A = reflectors(Q)
            return turned and A:transpose(-1, -2) or A
        end
        if n ~= k then
            local sizes = { table.unpack(Q.shape) }
            sizes[#sizes] = n - k
            Q = make_orthogonal(tide.cat({ Q, tide.randn(sizes, { dtype = Q.dtype, device = Q.device }) }, -1))
        else
            Q = is_orthogonal(Q) and Q:clone() or make_orthogonal(Q)
        end
        self.base = Q
        return -tide.eye(given.shape[-2], given.shape[-1], { dtype = Q.dtype, device = Q.device }):expand_as(given)
    end
    return Orthogonal
end

-- ---- tide.nn.utils.parametrizations ----

return function(nn)
    local register = nn.utils.parametrize.register_parametrization
    local WeightNorm, SpectralNorm, Orthogonal = weight_norm_class(nn), spectral_norm_class(nn), orthogonal_class(nn)
    local parametrizations = {}

    local function weight_of(fname, module, name)
        local known, weight = pcall(function() return module[name] end)
        if not known or not tide.is_tensor(weight) then
            fail("%s: %s has no parameter or buffer '%s'", fname, getmetatable(module).__name, name)
        end
        return weight
    end

    local function dim_of(fname, weight, dim)
        if dim == 0 or math.abs(dim) > weight:dim() then
            fail("%s: dim %d is out of range for shape %s", fname, dim, tostring(weight.shape))
        end
        return dim < 0 and dim + weight:dim() + 1 or dim
    end

    parametrizations.weight_norm = declare('weight_norm(Module module, str name="weight", int(0..) dim=1) -> Module',
        "Let length (original0) and direction (original1) of a parameter be parameters instead of it: one length for each "
        .. "place along dim, one for all at dim 0.", function(module, name, dim)
            local weight = weight_of("weight_norm", module, name)
            return register(module, name, WeightNorm(dim ~= 0 and dim_of("weight_norm", weight, dim) or nil),
                { unsafe = true })
        end)

    parametrizations.spectral_norm = declare('spectral_norm(Module module, str name="weight", '
        .. "int(1..) n_power_iterations=1, number eps=1e-12, int? dim=nil) -> Module",
        "A parameter divided by its largest singular value, found step by step in training.",
        function(module, name, count, eps, dim)
            local weight = weight_of("spectral_norm", module, name)
            dim = dim_of("spectral_norm", weight, dim or (weight:dim() > 1 and matrix.output_dim(module) or 1))
            return register(module, name, SpectralNorm(weight, count, dim, eps))
        end)

    parametrizations.orthogonal = declare('orthogonal(Module module, str name="weight", '
        .. '"matrix_exp"|"cayley"|"householder"? orthogonal_map=nil, *, bool use_trivialization=true) -> Module',
        "A matrix, or batch of them, with orthonormal columns, or rows where it is wide.",
        function(module, name, map, from_base)
            local weight = weight_of("orthogonal", module, name)
            if weight:dim() < 2 then
                fail("orthogonal: a matrix or a batch of them expected, got shape %s", tostring(weight.shape))
            end
            map = map or (weight.shape[-2] == weight.shape[-1] and "matrix_exp" or "householder")
            return register(module, name, Orthogonal(weight, map, from_base), { unsafe = true })
        end)

    tide._document(parametrizations, "parametrizations", "tide.nn.utils.parametrizations",
        "Weights of a kind: weight_norm, spectral_norm, orthogonal.")
    nn.utils.parametrizations = parametrizations
end
