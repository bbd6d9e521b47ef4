-- waveglow.lua: WaveGlow, which makes sound of a spectrogram by a chain of invertible steps, so that its likelihood is known.
--
-- Sound is cut into groups of samples, which are channels. A step mixes the channels by an invertible 1 by 1 convolution, and
-- shifts and scales one half of them by numbers that a gated, dilated WaveNet makes of the other half and of the spectrogram.
-- Run backwards from noise it makes sound. «WaveGlow: a Flow-based Generative Network for Speech Synthesis», Prenger, Valle and
-- Catanzaro, 2018.
local tide = require "tide"
local nn, F = tide.nn, tide.nn.functional

-- ---- mixing ----

local Mix = nn.class "InvertibleConvolution"

function Mix:init(channels)
    local q = tide.linalg.qr(tide.randn(channels, channels)) -- a rotation, whose determinant is 1
    if tide.linalg.det(q):item() < 0 then
        q[":, 1"] = -q[":, 1"]
    end
    self.weight = nn.Parameter(q:contiguous())
end

--- forward(x): the mixed channels of (n, channels, length), and the logarithm of the volume by which that grows.
function Mix:forward(x)
    local n, _, length = x.shape:unpack()
    local _, logarithm = tide.linalg.slogdet(self.weight:float())
    return F.conv1d(x, self.weight:unsqueeze(3)), logarithm * (n * length)
end

function Mix:inverse(x)
    return F.conv1d(x, tide.linalg.inv(self.weight:float()):to(x.dtype):unsqueeze(3))
end

-- ---- the WaveNet beside it ----

local WaveNet = nn.class "GatedWaveNet"

function WaveNet:init(from, spectrum, to, width, layers)
    self.width, self.layers = width, layers
    self.start = nn.Conv1d(from, width, 1)
    self.condition = nn.Conv1d(spectrum, 2 * width * layers, 1)
    local dilated, mixed = {}, {}
    for k = 1, layers do
        local dilation = 1 << (k - 1)
        dilated[k] = nn.Conv1d(width, 2 * width, 3, { dilation = dilation, padding = dilation })
        mixed[k] = nn.Conv1d(width, k < layers and 2 * width or width, 1) -- what goes on, and what is told; the last tells alone
    end
    self.dilated, self.mixed = nn.ModuleList(dilated), nn.ModuleList(mixed)
    self.finish = nn.Conv1d(width, to, 1)
    nn.init.zeros_(self.finish.weight) -- the step begins as the identity
    nn.init.zeros_(self.finish.bias)
end

function WaveNet:forward(x, spectrum)
    x = self.start(x)
    local conditions, told = self.condition(spectrum):chunk(self.layers, 2), nil
    for k = 1, self.layers do
        local gate, filter = table.unpack((self.dilated[k](x) + conditions[k]):chunk(2, 2))
        local y = self.mixed[k](filter:tanh() * gate:sigmoid())
        if k < self.layers then
            local further
            further, y = table.unpack(y:chunk(2, 2))
            x = x + further
        end
        told = told and told + y or y
    end
    return self.finish(told)
end

-- ---- the chain ----

local WaveGlow = nn.class "WaveGlow"

function WaveGlow:init(options)
    self.groups, self.hop = options.groups or 8, options.hop or 256
    self.early_every, self.early = options.early_every or 4, options.early or 2
    self.upsample = nn.ConvTranspose1d(options.bands or 80, options.bands or 80, options.window or 1024, { stride = self.hop })
    local mixes, nets, channels = {}, {}, self.groups
    for k = 1, options.steps or 12 do
        if k > 1 and (k - 1) % self.early_every == 0 then
            channels = channels - self.early -- some channels leave early
        end
        mixes[k] = Mix(channels)
        nets[k] = WaveNet(channels // 2, (options.bands or 80) * self.groups, 2 * (channels - channels // 2),
            options.width or 256, options.layers or 8)
    end
    self.mixes, self.nets, self.left = nn.ModuleList(mixes), nn.ModuleList(nets), channels
end

-- The spectrogram (n, bands, frames) at the places of the groups: (n, bands * groups, length / groups).
function WaveGlow:spread(spectrum, length)
    local x = self.upsample(spectrum)
    if x:size(3) < length then
        error(("%d samples of sound are more than the %d of the spectrogram"):format(length, x:size(3)), 3)
    end
    x = x[{ {}, {}, { 1, length // self.groups * self.groups } }]
    local n, bands = x.shape:unpack()
    return x:view(n, bands, -1, self.groups):permute(1, 2, 4, 3):reshape(n, bands * self.groups, -1)
end

local function halves(x)
    local half = x:size(2) // 2
    return x[{ {}, { 1, half } }], x[{ {}, { half + 1, -1 } }]
end

--- forward(sound, spectrum): the noise (n, groups, length / groups) that sound (n, length) is, and the logarithm of the volume.
function WaveGlow:forward(sound, spectrum)
    local condition = self:spread(spectrum, sound:size(2))
    local n = sound:size(1)
    local x = sound[{ {}, { 1, sound:size(2) // self.groups * self.groups } }]:view(n, -1, self.groups):transpose(2, 3)
    local out, volume = {}, 0
    for k, mix in ipairs(self.mixes) do
        if k > 1 and (k - 1) % self.early_every == 0 then
            out[#out + 1] = x[{ {}, { 1, self.early } }]
            x = x[{ {}, { self.early + 1, -1 } }]
        end
        local mixed, grown = mix(x)
        local kept, changed = halves(mixed)
        local logarithm, shift = table.unpack(self.nets[k](kept, condition):chunk(2, 2))
        x = tide.cat({ kept, changed * logarithm:exp() + shift }, 2)
        volume = volume + grown + logarithm:sum()
    end
    out[#out + 1] = x
    return tide.cat(out, 2), volume
end

--- inverse(noise, spectrum): the sound (n, length) that noise (n, groups, length / groups) is.
function WaveGlow:inverse(noise, spectrum)
    local _ <close> = tide.no_grad()
    local condition = self:spread(spectrum, noise:size(3) * self.groups)
    local first = noise:size(2) - self.left + 1
    local x = noise[{ {}, { first, -1 } }]
    for k = #self.mixes, 1, -1 do
        local kept, changed = halves(x)
        local logarithm, shift = table.unpack(self.nets[k](kept, condition):chunk(2, 2))
        x = self.mixes[k]:inverse(tide.cat({ kept, (changed - shift) * (-logarithm):exp() }, 2))
        if k > 1 and (k - 1) % self.early_every == 0 then
            first = first - self.early
            x = tide.cat({ noise[{ {}, { first, first + self.early - 1 } }], x }, 2)
        end
    end
    return x:transpose(2, 3):flatten(2)
end

local waveglow = {}

--- new{bands = 80, hop = 256, window = 1024, groups = 8, steps = 12, width = 256, layers = 8}: a network with random weights.
function waveglow.new(options)
    return WaveGlow(options or {})
end

--- loss(noise, volume, deviation): the negative logarithm of the likelihood for each number, but for a constant.
function waveglow.loss(noise, volume, deviation)
    return (noise:float():pow(2):sum() / (2 * (deviation or 1) ^ 2) - volume) / noise:numel()
end

return waveglow
