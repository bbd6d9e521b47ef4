-- test_minilm.lua: the points of sentences against those of transformers 5.3 on PyTorch 2.15: every 48th number of each, and likenesses.
local t = require "harness"

local found, minilm = pcall(function() return dofile(os.getenv "TIDE_SOURCE" .. "/notebooks/models/minilm.lua").load() end)
if not found then
    t.skip("MiniLM", tostring(minilm))
    t.finish()
end

local SENTENCES = { "A man is eating food.", "Someone has a meal.", "Ünïcode — naïve café; Straße, ΑΒΓ Жук 中文 test!", "",
    ("long words "):rep(300) }
local POINTS = {
    { 0.0332416, 0.0394072, 0.0067068, 0.0179861, -0.0011526, -0.0152274, 0.0084211, 0.0337139 },
    { -0.0027870, 0.0358485, -0.0397525, 0.0060198, 0.0189403, 0.0282872, 0.0269958, 0.0505366 },
    { -0.0049820, -0.0805418, 0.0889889, 0.0552310, -0.0799042, 0.0992585, -0.0491913, -0.0297398 },
    { -0.1188384, 0.0633241, 0.0290423, 0.0079641, -0.0864778, 0.0696885, -0.0227467, -0.1047209 },
    { -0.0175925, 0.0240103, 0.0859333, -0.0426670, -0.0101814, 0.0290956, 0.1140512, 0.0481441 },
}
local LIKENESS = {
    { 1.000000, 0.679542, -0.054315, 0.025340, -0.109358 },
    { 0.679542, 1.000000, -0.019721, 0.054992, -0.058889 },
    { -0.054315, -0.019721, 1.000000, 0.201761, 0.176952 },
    { 0.025340, 0.054992, 0.201761, 1.000000, 0.067814 },
    { -0.109358, -0.058889, 0.176952, 0.067814, 1.000000 },
}

local function furthest(a, b) return (a - b):abs():max():item() end

t.test("points_are_those_of_pytorch", function()
    local points = minilm:encode(SENTENCES)
    t.eq({ table.unpack(points.shape) }, { #SENTENCES, 384 })
    t.is_true(furthest(points["..., ::48"], tide.tensor(POINTS)) < 1e-5)
    t.is_true(furthest(points:mm(points:t()), tide.tensor(LIKENESS)) < 1e-5)
end)

t.test("a_sentence_is_the_same_in_any_company", function()
    local alone, together = minilm:encode { SENTENCES[3] }, minilm:encode(SENTENCES)
    t.is_true(furthest(alone[1], together[3]) < 1e-6)
end)

t.test("in_bfloat16_by_autocast", function()
    local points = minilm:encode(SENTENCES)
    local _ <close> = tide.autocast("cpu", { dtype = tide.bfloat16 })
    local half = minilm:encode(SENTENCES):float()
    t.is_true((points * half):sum(2):min():item() > 0.99)
end)

t.test("in_8_and_4_bits", function()
    local usual = { "A man plays guitar.", "He had pasta for lunch.", "The sky is blue.", "Models are small.", "A cat sleeps on the sofa." }
    local function likeness(sentences, options)
        return (minilm:encode(sentences) * minilm:quantize_weights(options):encode(sentences)):sum(2)
    end
    t.is_true(likeness(SENTENCES, { dtype = "int8" }):amin():item() > 0.99)
    t.is_true(likeness(usual, { dtype = "int4" }):mean():item() > 0.97)
end)

t.test("search_finds_what_means_alike", function()
    local found = minilm:search("what do people eat?", { "A man plays guitar.", "He had pasta for lunch.", "The sky is blue.", "Bread and cheese." }, 2)
    t.eq({ found[1].place, found[2].place, #found }, { 4, 2, 2 })
end)

t.finish()
