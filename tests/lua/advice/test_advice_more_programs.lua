-- test_advice_more_programs.lua: the other kinds of advice, each on its two programs.
require "advice_programs" (11, 100)
