-- test_advice_programs.lua: the first ten kinds of advice, each on its two programs.
require "advice_programs" (1, 10)
