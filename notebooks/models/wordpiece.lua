-- wordpiece.lua: BERT's tokenizer for lower-case models: texts become numbers of a vocabulary's pieces.
--
-- Letters become small and lose their accents, punctuation and Chinese letters stand alone, and each word is cut into the
-- longest pieces that the vocabulary has, of which all but the first begin with ##. A word that can't be cut is [UNK].
local wordpiece = {}

local LONGEST_WORD <const> = 100

-- ---- letters ----

-- Letters that become another one, by that one: what they are when small and without their accents.
local BECOME <const> = {
    ["a"] = "ÀÁÂÃÄÅàáâãäåĀāĂăĄąǍǎǞǟǠǡǺǻȀȁȂȃȦȧḀḁẠạẢảẤấẦầẨẩẪẫẬậẮắẰằẲẳẴẵẶặ", ["b"] = "ḂḃḄḅḆḇ", ["c"] = "ÇçĆćĈĉĊċČčḈḉ",
    ["d"] = "ĎďḊḋḌḍḎḏḐḑḒḓ", ["e"] = "ÈÉÊËèéêëĒēĔĕĖėĘęĚěȄȅȆȇȨȩḔḕḖḗḘḙḚḛḜḝẸẹẺẻẼẽẾếỀềỂểỄễỆệ", ["f"] = "Ḟḟ",
    ["g"] = "ĜĝĞğĠġĢģǦǧǴǵḠḡ", ["h"] = "ĤĥȞȟḢḣḤḥḦḧḨḩḪḫẖ", ["i"] = "ÌÍÎÏìíîïĨĩĪīĬĭĮįİǏǐȈȉȊȋḬḭḮḯỈỉỊị", ["j"] = "Ĵĵǰ",
    ["k"] = "ĶķǨǩḰḱḲḳḴḵ", ["l"] = "ĹĺĻļĽľḶḷḸḹḺḻḼḽ", ["m"] = "ḾḿṀṁṂṃ", ["n"] = "ÑñŃńŅņŇňǸǹṄṅṆṇṈṉṊṋ",
    ["o"] = "ÒÓÔÕÖòóôõöŌōŎŏŐőƠơǑǒǪǫǬǭȌȍȎȏȪȫȬȭȮȯȰȱṌṍṎṏṐṑṒṓỌọỎỏỐốỒồỔổỖỗỘộỚớỜờỞởỠỡỢợ", ["p"] = "ṔṕṖṗ",
    ["r"] = "ŔŕŖŗŘřȐȑȒȓṘṙṚṛṜṝṞṟ", ["s"] = "ŚśŜŝŞşŠšȘșṠṡṢṣṤṥṦṧṨṩ", ["t"] = "ŢţŤťȚțṪṫṬṭṮṯṰṱẗ",
    ["u"] = "ÙÚÛÜùúûüŨũŪūŬŭŮůŰűŲųƯưǓǔǕǖǗǘǙǚǛǜȔȕȖȗṲṳṴṵṶṷṸṹṺṻỤụỦủỨứỪừỬửỮữỰự", ["v"] = "ṼṽṾṿ", ["w"] = "ŴŵẀẁẂẃẄẅẆẇẈẉẘ",
    ["x"] = "ẊẋẌẍ", ["y"] = "ÝýÿŶŷŸȲȳẎẏẙỲỳỴỵỶỷỸỹ", ["z"] = "ŹźŻżŽžẐẑẒẓẔẕ", ["¨"] = "΅῁῭΅", ["æ"] = "ÆǢǣǼǽ", ["ø"] = "ØǾǿ",
    ["ǆ"] = "Ǆǅ", ["ǉ"] = "Ǉǈ", ["ǌ"] = "Ǌǋ", ["ǳ"] = "Ǳǲ", ["ʒ"] = "ƷǮǯ",
    ["α"] = "ΆΑάἀἁἂἃἄἅἆἇἈἉἊἋἌἍἎἏὰάᾀᾁᾂᾃᾄᾅᾆᾇᾈᾉᾊᾋᾌᾍᾎᾏᾰᾱᾲᾳᾴᾶᾷᾸᾹᾺΆᾼ", ["ε"] = "ΈΕέἐἑἒἓἔἕἘἙἚἛἜἝὲέῈΈ",
    ["η"] = "ΉΗήἠἡἢἣἤἥἦἧἨἩἪἫἬἭἮἯὴήᾐᾑᾒᾓᾔᾕᾖᾗᾘᾙᾚᾛᾜᾝᾞᾟῂῃῄῆῇῊΉῌ", ["θ"] = "Θϴ", ["ι"] = "ΊΐΙΪίϊἰἱἲἳἴἵἶἷἸἹἺἻἼἽἾἿὶίιῐῑῒΐῖῗῘῙῚΊ",
    ["ο"] = "ΌΟόὀὁὂὃὄὅὈὉὊὋὌὍὸόῸΌ", ["ρ"] = "ΡῤῥῬ", ["υ"] = "ΎΥΫΰϋύὐὑὒὓὔὕὖὗὙὛὝὟὺύῠῡῢΰῦῧῨῩῪΎ",
    ["ω"] = "ΏΩώὠὡὢὣὤὥὦὧὨὩὪὫὬὭὮὯὼώᾠᾡᾢᾣᾤᾥᾦᾧᾨᾩᾪᾫᾬᾭᾮᾯῲῳῴῶῷῺΏῼ", ["ϒ"] = "ϓϔ", ["а"] = "АӐӑӒӓ", ["г"] = "ЃГѓ", ["е"] = "ЀЁЕѐёӖӗ",
    ["ж"] = "ЖӁӂӜӝ", ["з"] = "ЗӞӟ", ["и"] = "ЍИЙйѝӢӣӤӥ", ["к"] = "ЌКќ", ["о"] = "ОӦӧ", ["у"] = "ЎУўӮӯӰӱӲӳ", ["ч"] = "ЧӴӵ",
    ["ы"] = "ЫӸӹ", ["э"] = "ЭӬӭ", ["і"] = "ІЇї", ["ѵ"] = "ѴѶѷ", ["ә"] = "ӘӚӛ", ["ө"] = "ӨӪӫ", ["᾿"] = "῍῎῏", ["῾"] = "῝῞῟",
}
-- Others, each of which becomes the letter at the same place of the second text.
local LARGE <const> = ";`´·ẞÐÞĐĦĲĿŁŊŒŦẛɃƂƄƇƋƑǶƘȽȠƢƤƧƬƳƵƸƼǷƎǤȜȢȤȻɁɆɈɊɌɎƁƆƉƊƏƐƓƔƗƖƜƝƟƦƩƮɄƱƲɅʹͰͲͶϽϾϿΒΓΔΖΚΛΜΝΞΠΣΤΦΧΨϏϘϚϜϞϠϢϤϦϨϪϬϮϹͿϷϺБВДЛМНПРСТ"
    .. "ФХЦШЩЪЬЮЯЂЄЅЈЉЊЋЏѠѢѤѦѨѪѬѮѰѲѸѺѼѾҀҊҌҎҐҒҔҖҘҚҜҞҠҢҤҦҨҪҬҮҰҲҴҶҸҺҼҾӃӅӇӉӋӍӀӔӠӶӺӼӾԀԂԄԆԈԊԌԎԐԒԔԖԘԚԜԞԠԢԤԦԨԪԬԮỺỼỾȺȾ"
local SMALL <const> = ";`´·ßðþđħĳŀłŋœŧſƀƃƅƈƌƒƕƙƚƞƣƥƨƭƴƶƹƽƿǝǥȝȣȥȼɂɇɉɋɍɏɓɔɖɗəɛɠɣɨɩɯɲɵʀʃʈʉʊʋʌʹͱͳͷͻͼͽβγδζκλμνξπστφχψϗϙϛϝϟϡϣϥϧϩϫϭϯϲϳϸϻбвдлмнпрст"
    .. "фхцшщъьюяђєѕјљњћџѡѣѥѧѩѫѭѯѱѳѹѻѽѿҁҋҍҏґғҕҗҙқҝҟҡңҥҧҩҫҭүұҳҵҷҹһҽҿӄӆӈӊӌӎӏӕӡӷӻӽӿԁԃԅԇԉԋԍԏԑԓԕԗԙԛԝԟԡԣԥԧԩԫԭԯỻỽỿⱥⱦ"

local plain_letters = {}
for letter, others in pairs(BECOME) do
    for _, c in utf8.codes(others) do
        plain_letters[c] = letter
    end
end
for place, c in utf8.codes(LARGE) do
    local k = utf8.len(LARGE, 1, place)
    plain_letters[c] = utf8.char(utf8.codepoint(SMALL, utf8.offset(SMALL, k)))
end

-- A letter as the vocabulary has it; nil for an accent by itself, which goes.
local function plain(c)
    if c >= 65 and c <= 90 then
        return string.char(c + 32)
    elseif c >= 0x300 and c < 0x370 or c >= 0x483 and c <= 0x487 then
        return nil
    end
    return plain_letters[c] or utf8.char(c)
end

local function is_chinese(c)
    return c >= 0x4E00 and c <= 0x9FFF or c >= 0x3400 and c <= 0x4DBF or c >= 0xF900 and c <= 0xFAFF or c >= 0x20000 and c <= 0x2CEAF
        or c >= 0x2F800 and c <= 0x2FA1F
end

local function is_punctuation(c)
    return c >= 33 and c <= 47 or c >= 58 and c <= 64 or c >= 91 and c <= 96 or c >= 123 and c <= 126
        or c == 0xA1 or c == 0xA7 or c == 0xAB or c == 0xB6 or c == 0xB7 or c == 0xBB or c == 0xBF
        or c >= 0x2010 and c <= 0x2027 or c >= 0x2030 and c <= 0x205E and c ~= 0x2044 and c ~= 0x2052
        or c == 0x37E or c == 0x387 or c >= 0x3001 and c <= 0x3003 or c >= 0x3008 and c <= 0x3011 or c >= 0x3014 and c <= 0x301F or c >= 0xFF01 and c <= 0xFF0F and c ~= 0xFF04 and c ~= 0xFF0B
        or c == 0xFF1A or c == 0xFF1B or c == 0xFF1F or c == 0xFF20
end

local function is_space(c)
    return c == 32 or c == 9 or c == 10 or c == 13 or c == 0xA0 or c == 0x1680 or c >= 0x2000 and c <= 0x200A or c == 0x2028
        or c == 0x2029 or c == 0x202F or c == 0x205F or c == 0x3000
end

local function is_control(c)
    return c < 32 or c >= 0x7F and c <= 0x9F or c == 0xAD or c >= 0x200B and c <= 0x200F or c >= 0x202A and c <= 0x202E
        or c >= 0x2060 and c <= 0x206F or c == 0xFEFF or c == 0xFFFD
end

-- ---- words and pieces ----

-- Words of a text in UTF-8, as lists of letters.
local function words_of(text)
    local words, word = {}, {}
    local function finish()
        if #word > 0 then
            words[#words + 1], word = word, {}
        end
    end
    for _, c in utf8.codes(text) do
        if is_space(c) then
            finish()
        elseif is_punctuation(c) or is_chinese(c) then
            finish()
            words[#words + 1] = { utf8.char(c) }
        elseif not is_control(c) then
            word[#word + 1] = plain(c)
        end
    end
    finish()
    return words
end

-- Numbers of a word's pieces, put behind `ids`.
local function cut(vocabulary, word, ids)
    local first, start = #ids, 1
    while start <= #word and #word <= LONGEST_WORD do
        local stop, id = #word, nil
        while stop >= start do
            id = vocabulary[(start > 1 and "##" or "") .. table.concat(word, "", start, stop)]
            if id then
                break
            end
            stop = stop - 1
        end
        if not id then
            break
        end
        ids[#ids + 1], start = id, stop + 1
    end
    if start <= #word then
        for k = #ids, first + 1, -1 do
            ids[k] = nil
        end
        ids[first + 1] = vocabulary["[UNK]"]
    end
end

--- new(text): the tokenizer of a vocabulary, a piece a line, which count from 0. Its call with a text in UTF-8 and a greatest
--- number of pieces gives the numbers, [CLS] and [SEP] around them.
function wordpiece.new(text)
    local vocabulary, n = {}, 0
    for piece in string.gmatch(text, "[^\r\n]+") do
        vocabulary[piece], n = n, n + 1
    end
    for _, piece in ipairs { "[CLS]", "[SEP]", "[UNK]", "[PAD]" } do
        assert(vocabulary[piece], "the vocabulary has no " .. piece)
    end
    return function(sentence, most)
        assert(utf8.len(sentence), "a text in UTF-8 is expected")
        local ids = { vocabulary["[CLS]"] }
        for _, word in ipairs(words_of(sentence)) do
            cut(vocabulary, word, ids)
        end
        for k = #ids, most, -1 do -- what is too long is cut off
            ids[k] = nil
        end
        ids[#ids + 1] = vocabulary["[SEP]"]
        return ids
    end
end

return wordpiece
