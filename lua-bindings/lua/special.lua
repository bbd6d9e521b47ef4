-- special.lua: tide.special: special functions under the names that PyTorch has for them.
local tide = ...
local special = {}

for name in string.gmatch([[digamma entr erf erfc erfcx erfinv exp2 expm1 i0 i0e i1 i1e log1p log_ndtr log_softmax logit logsumexp
    ndtr ndtri polygamma round sinc softmax xlog1py xlogy zeta]], "%S+") do
    special[name] = tide[name]
end
special.expit, special.gammaln, special.multigammaln, special.psi = tide.sigmoid, tide.lgamma, tide.mvlgamma, tide.digamma
special.gammainc, special.gammaincc = tide.igamma, tide.igammac

tide._document(special, "special", "tide.special", "Special functions, under the names that PyTorch has for them.")

return special
