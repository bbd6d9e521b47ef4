-- test_wordpiece.lua: pieces of words as the BertTokenizer of transformers 5.3 cuts them, with the vocabulary below.
local t = require "harness"
local wordpiece = dofile(os.getenv "TIDE_SOURCE" .. "/notebooks/models/wordpiece.lua")

local PIECES = "[PAD] [UNK] [CLS] [SEP] un ##aff ##able ##e the cafe strasse stra ##ße ß ##l o ##odz lodz , . ! ? - ( ) 中 文 чай ##ник αβγ "
    .. "##σ σ i ##stanbul 1 ##2 ##3 naive su ##a"
local tokenize = wordpiece.new((PIECES:gsub(" ", "\n")))

local cases = {
    ["Unaffable, the CAFÉ!"] = { 2, 4, 5, 6, 18, 8, 9, 3 }, ["Łódź lódź"] = { 2, 1, 17, 3 }, ["(中文?)"] = { 2, 23, 25, 26, 21, 24, 3 },
    ["ЧАЙНИК чайник"] = { 2, 1, 1, 3 }, ["ΑΒΓΣ αβγ"] = { 2, 29, 30, 29, 3 }, ["İstanbul 123"] = { 2, 32, 33, 34, 35, 36, 3 },
    ["naïve\u{A0}na\u{308}ive \u{200B}the\tthe"] = { 2, 37, 37, 8, 8, 3 }, ["STRASSE Straße"] = { 2, 10, 11, 12, 3 }, [""] = { 2, 3 },
    [("the "):rep(12)] = { 2, 8, 8, 8, 8, 8, 8, 3 }, ["sửa SƯA"] = { 2, 38, 39, 38, 39, 3 }, [("a"):rep(120)] = { 2, 1, 3 },
    ["the-un."] = { 2, 8, 22, 4, 19, 3 }, unx = { 2, 1, 3 },
}

t.test("pieces_are_those_of_transformers", function()
    for text, ids in pairs(cases) do
        t.eq(tokenize(text, 8), ids, text)
    end
end)

t.test("what_is_no_text_is_refused", function()
    t.error_has(function() tokenize("\xFF", 8) end, "UTF-8")
    t.error_has(function() wordpiece.new "a\nb" end, "[CLS]")
end)

t.finish()
