-- plot/letters.lua: letters as strokes, for pictures that are drawn dot by dot. Letters that aren't here are drawn as a
-- box. The Hershey Fonts were originally created by Dr. A. V. Hershey while working at the U. S. National Bureau of
-- Standards. The format of the font data was originally created by James Hurt, Cognition, Inc., 900 Technology Park
-- Drive, Billerica, MA 01821 (mit-eddie!ci-dandelion!hurt).
local letters = {}

-- One line for each letter: its left and right edge, then points, two characters each by their distance from R; " R"
-- lifts the pen.
local LATIN = [==[
JZ
MWRFRT RRYQZR[SZRY
JZNFNM RVFVM
H]SBLb RYBRb RLOZO RKUYU
H\PBP_ RTBT_ RYIWGTFPFMGKIKKLMMNOOUQWRXSYUYXWZT[P[MZKX
F^[FI[ RNFPHPJOLMMKMIKIIJGLFNFPGSHVHYG[F RWTUUTWTYV[X[ZZ[X[VYTWT
E_\O\N[MZMYNXPVUTXRZP[L[JZIYHWHUISJRQNRMSKSIRGPFNGMIMKNNPQUXWZY[[[\Z\Y
MWRHQGRFSGSIRKQL
KYVBTDRGPKOPOTPYR]T`Vb
KYNBPDRGTKUPUTTYR]P`Nb
JZRLRX RMOWU RWOMU
E_RIR[ RIR[R
NVSWRXQWRVSWSYQ[
E_IR[R
NVRVQWRXSWRV
G][BIb
H\QFNGLJKOKRLWNZQ[S[VZXWYRYOXJVGSFQF
H\NJPISFS[
H\LKLJMHNGPFTFVGWHXJXLWNUQK[Y[
H\MFXFRNUNWOXPYSYUXXVZS[P[MZLYKW
H\UFKTZT RUFU[
H\WFMFLOMNPMSMVNXPYSYUXXVZS[P[MZLYKW
H\XIWGTFRFOGMJLOLTMXOZR[S[VZXXYUYTXQVOSNRNOOMQLT
H\YFO[ RKFYF
H\PFMGLILKMMONSOVPXRYTYWXYWZT[P[MZLYKWKTLRNPQOUNWMXKXIWGTFPF
H\XMWPURRSQSNRLPKMKLLINGQFRFUGWIXMXRWWUZR[P[MZLX
NVROQPRQSPRO RRVQWRXSWRV
NVROQPRQSPRO RSWRXQWRVSWSYQ[
F^ZIJRZ[
E_IO[O RIU[U
F^JIZRJ[
I[LKLJMHNGPFTFVGWHXJXLWNVORQRT RRYQZR[SZRY
E`WNVLTKQKOLNMMPMSNUPVSVUUVS RQKOMNPNSOUPV RWKVSVUXVZV\T]Q]O\L[JYHWGTFQFNGLHJJILHOHRIUJWLYNZQ[T[WZYYZX RXKWSWUXV
I[RFJ[ RRFZ[ RMTWT
G\KFK[ RKFTFWGXHYJYLXNWOTP RKPTPWQXRYTYWXYWZT[K[
H]ZKYIWGUFQFOGMILKKNKSLVMXOZQ[U[WZYXZV
G\KFK[ RKFRFUGWIXKYNYSXVWXUZR[K[
H[LFL[ RLFYF RLPTP RL[Y[
HZLFL[ RLFYF RLPTP
H]ZKYIWGUFQFOGMILKKNKSLVMXOZQ[U[WZYXZVZS RUSZS
G]KFK[ RYFY[ RKPYP
NVRFR[
JZVFVVUYTZR[P[NZMYLVLT
G\KFK[ RYFKT RPOY[
HYLFL[ RL[X[
F^JFJ[ RJFR[ RZFR[ RZFZ[
G]KFK[ RKFY[ RYFY[
G]PFNGLIKKJNJSKVLXNZP[T[VZXXYVZSZNYKXIVGTFPF
G\KFK[ RKFTFWGXHYJYMXOWPTQKQ
G]PFNGLIKKJNJSKVLXNZP[T[VZXXYVZSZNYKXIVGTFPF RSWY]
G\KFK[ RKFTFWGXHYJYLXNWOTPKP RRPY[
H\YIWGTFPFMGKIKKLMMNOOUQWRXSYUYXWZT[P[MZKX
JZRFR[ RKFYF
G]KFKULXNZQ[S[VZXXYUYF
I[JFR[ RZFR[
F^HFM[ RRFM[ RRFW[ R\FW[
H\KFY[ RYFK[
I[JFRPR[ RZFRP
H\YFK[ RKFYF RK[Y[
KYOBOb RPBPb ROBVB RObVb
KYKFY^
KYTBTb RUBUb RNBUB RNbUb
JZRDJR RRDZR
I[Ib[b
NVSKQMQORPSORNQO
I\XMX[ RXPVNTMQMONMPLSLUMXOZQ[T[VZXX
H[LFL[ RLPNNPMSMUNWPXSXUWXUZS[P[NZLX
I[XPVNTMQMONMPLSLUMXOZQ[T[VZXX
I\XFX[ RXPVNTMQMONMPLSLUMXOZQ[T[VZXX
I[LSXSXQWOVNTMQMONMPLSLUMXOZQ[T[VZXX
MYWFUFSGRJR[ ROMVM
I\XMX]W`VaTbQbOa RXPVNTMQMONMPLSLUMXOZQ[T[VZXX
I\MFM[ RMQPNRMUMWNXQX[
NVQFRGSFREQF RRMR[
MWRFSGTFSERF RSMS^RaPbNb
IZMFM[ RWMMW RQSX[
NVRFR[
CaGMG[ RGQJNLMOMQNRQR[ RRQUNWMZM\N]Q][
I\MMM[ RMQPNRMUMWNXQX[
I\QMONMPLSLUMXOZQ[T[VZXXYUYSXPVNTMQM
H[LMLb RLPNNPMSMUNWPXSXUWXUZS[P[NZLX
I\XMXb RXPVNTMQMONMPLSLUMXOZQ[T[VZXX
KXOMO[ ROSPPRNTMWM
J[XPWNTMQMNNMPNRPSUTWUXWXXWZT[Q[NZMX
MYRFRWSZU[W[ ROMVM
I\MMMWNZP[S[UZXW RXMX[
JZLMR[ RXMR[
G]JMN[ RRMN[ RRMV[ RZMV[
J[MMX[ RXMM[
JZLMR[ RXMR[P_NaLbKb
J[XMM[ RMMXM RM[X[
KYTBRCQDPFPHQJRKSMSOQQ RRCQEQGRISJTLTNSPORSTTVTXSZR[Q]Q_Ra RQSSUSWRYQZP\P^Q`RaTb
NVRBRb
KYPBRCSDTFTHSJRKQMQOSQ RRCSESGRIQJPLPNQPURQTPVPXQZR[S]S_Ra RSSQUQWRYSZT\T^S`RaPb
F^IUISJPLONOPPTSVTXTZS[Q RISJQLPNPPQTTVUXUZT[Q[O
]==]

local GREEK_SMALL = [==[
H]QMONMPLRKUKXLZN[P[RZUWWTYPZM RQMSMTNUPWXXZY[Z[
I\UFSGQIOMNPMTLZKb RUFWFYHYKXMWNUORO RROTPVRWTWWVYUZS[Q[OZNYMV
I\JPLNNMOMQNROSRSVR[ RZMYPXRR[P_Ob
I[TMQMONMPLSLVMYNZP[R[TZVXWUWRVOTMRKQIQGRFTFVGXI
JZWOVNTMQMONOPPRSS RSSOTMVMXNZP[S[UZWX
JYTFRGQHQIRJUKXK RXKTMQONRMUMWNYP[S]T_TaSbQbP`
H\IQJOLMNMONOPNTL[ RNTPPRNTMVMXOXRWWTb
G\HQIOKMMMNNNPMUMXNZO[Q[SZUWVUWRXMXJWGUFSFRHRJSMUPWRZT
LWRMPTOXOZP[R[TYUW
I[OMK[ RYNXMWMUNQROSNS RNSPTQUSZT[U[VZ
JZKFMFOGPHX[ RRML[
H]OMIb RNQMVMYO[Q[SZUXWT RYMWTVXVZW[Y[[Y\W
I[LMOMNSMXL[ RYMXPWRUURXOZL[
JZTFRGQHQIRJUKXK RUKRLPMOOOQQSTTVT RTTPUNVMXMZO\S^T_TaRbPb
J[RMPNNPMSMVNYOZQ[S[UZWXXUXRWOVNTMRM
G]PML[ RUMVSWXX[ RIPKNNM[M
I[MSMVNYOZQ[S[UZWXXUXRWOVNTMRMPNNPMSIb
I][MQMONMPLSLVMYNZP[R[TZVXWUWRVOUNSM
H\SMP[ RJPLNOMZM
H\IQJOLMNMONOPMVMYO[Q[TZVXXTYPYM
G]ONMOKQJTJWKYLZN[Q[TZWXYUZRZOXMVMTORSPXMb
I[KMMMOOU`WbYb RZMYOWRM]K`Jb
F]VFNb RGQHOJMLMMNMPLULXMZO[Q[TZVXXUZP[M
F]NMLNJQITIWJZK[M[OZQW RRSQWRZS[U[WZYWZTZQYNXM
]==]

local GREEK_CAPITAL = [==[
I[RFJ[ RRFZ[ RMTWT
G\KFK[ RKFTFWGXHYJYLXNWOTP RKPTPWQXRYTYWXYWZT[K[
HYLFL[ RLFXF
I[RFJ[ RRFZ[ RJ[Z[
H[LFL[ RLFYF RLPTP RL[Y[
H\YFK[ RKFYF RK[Y[
G]KFK[ RYFY[ RKPYP
G]PFNGLIKKJNJSKVLXNZP[T[VZXXYVZSZNYKXIVGTFPF ROPUP
NVRFR[
G\KFK[ RYFKT RPOY[
I[RFJ[ RRFZ[
F^JFJ[ RJFR[ RZFR[ RZFZ[
G]KFK[ RKFY[ RYFY[
I[KFYF ROPUP RK[Y[
G]PFNGLIKKJNJSKVLXNZP[T[VZXXYVZSZNYKXIVGTFPF
G]KFK[ RYFY[ RKFYF
G\KFK[ RKFTFWGXHYJYMXOWPTQKQ
I[KFRPK[ RKFYF RK[Y[
JZRFR[ RKFYF
I[KKKILGMFOFPGQIRMR[ RYKYIXGWFUFTGSIRM
H\RFR[ RPKMLLMKOKRLTMUPVTVWUXTYRYOXMWLTKPK
H\KFY[ RK[YF
G]RFR[ RILJLKMLQMSNTQUSUVTWSXQYMZL[L
H\K[O[LTKPKLLINGQFSFVGXIYLYPXTU[Y[
]==]

local ORIGIN, CAPITAL, BASE = string.byte("R"), 21, 9 -- the height of capitals, and how far below R they stand

-- Letters with marks: the letter without, and the mark's strokes above it.
local MARKS = { ["'"] = "QHTE", ["`"] = "SHPE", ['"'] = "OGOF RUGUF", ["^"] = "OHRESH", ["~"] = "NHPFTHVF", ["."] = "QGRFSGRHQG",
    [","] = "R[S^Q`" }
local MARKED = "àa` áa' âa^ ãa~ äa\" åa. çc, èe` ée' êe^ ëe\" ìi` íi' îi^ ïi\" ñn~ òo` óo' ôo^ õo~ öo\" ùu` úu' ûu^ üu\" ýy' ÿy\" "
    .. "ÀA` ÁA' ÂA^ ÃA~ ÄA\" ÅA. ÇC, ÈE` ÉE' ÊE^ ËE\" ÌI` ÍI' ÎI^ ÏI\" ÑN~ ÒO` ÓO' ÔO^ ÕO~ ÖO\" ÙU` ÚU' ÛU^ ÜU\" ÝY'"
local ALIKE = { ["–"] = "-", ["—"] = "-", ["−"] = "-", ["×"] = "x", ["·"] = ".", ["µ"] = "μ", ["’"] = "'", ["‘"] = "'", ["“"] = '"',
    ["”"] = '"', ["ß"] = "β", ["ς"] = "σ", ["\u{a0}"] = " " }
local MORE = { ["±"] = "H\\RJRV RLPXP RLZXZ", ["°"] = "KYQFOGNIOKQLSKTISGQF", ["²"] = "LXOGPFSFTGTIOLTL",
    ["³"] = "LXOFTFQHSHTITKSLPLOK", ["…"] = "JZLZKYLXMYLZ RRZQYRXSYRZ RXZWYXXYYXZ" }
local BOX = "JZLFXFX[L[LF"

local glyphs

local function read_glyphs()
    glyphs = {}
    local function read(lines, name_of)
        local k = 0
        for line in string.gmatch(lines, "[^\n]+") do
            glyphs[name_of(k)], k = line, k + 1
        end
    end
    read(LATIN, function(k) return string.char(32 + k) end)
    -- the final sigma lies between rho and sigma and is none of them
    read(GREEK_SMALL, function(k) return utf8.char(0x3b1 + k + (k >= 17 and 1 or 0)) end)
    read(GREEK_CAPITAL, function(k) return utf8.char(0x391 + k + (k >= 17 and 1 or 0)) end)
    for name, line in pairs(MORE) do
        glyphs[name] = line
    end
    for name, base, mark in string.gmatch(MARKED, "([\xc3][\x80-\xbf])(.)(.)") do
        local above = MARKS[mark]
        if string.find(base, "%u") and mark ~= "," then -- higher: by four steps
            above = string.gsub(above, "([^ ])(.)", function(x, y) return x .. string.char(string.byte(y) - 4) end)
        end
        glyphs[name] = glyphs[base] .. " R" .. above
    end
    for name, other in pairs(ALIKE) do
        glyphs[name] = glyphs[other]
    end
end

local function glyph_of(code)
    if not glyphs then
        read_glyphs()
    end
    return glyphs[utf8.char(code)] or BOX
end

--- strokes(text, height): lists of points {x1, y1, x2, y2, ...} with the text's base at y = 0, and how wide it is.
--- height: that of capital letters.
function letters.strokes(text, height)
    local strokes, x, unit = {}, 0, height / CAPITAL
    for _, code in utf8.codes(text) do
        local line = glyph_of(code)
        local left, right = string.byte(line, 1) - ORIGIN, string.byte(line, 2) - ORIGIN
        local stroke = {}
        for at = 3, #line - 1, 2 do
            if string.sub(line, at, at + 1) == " R" then
                strokes[#strokes + 1], stroke = stroke, {}
            else
                stroke[#stroke + 1] = x + (string.byte(line, at) - ORIGIN - left) * unit
                stroke[#stroke + 1] = (string.byte(line, at + 1) - ORIGIN - BASE) * unit
            end
        end
        strokes[#strokes + 1] = stroke
        x = x + (right - left) * unit
    end
    return strokes, x
end

return letters
