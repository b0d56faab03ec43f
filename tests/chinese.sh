#!/bin/sh
# chinese.sh: what people read is there in Chinese, and what programs read stays as it is. usage: chinese.sh QKV MAKE_MODEL ROOT
. "$(dirname "$0")/cases.sh"
qkv=$(realpath "$1") make_model=$(realpath "$2") root=$(realpath "$3")
cd "$folder" || exit 1
unset LANGUAGE
zh() { "$qkv" "$@" --lang zh; }
# wide LINES: those of more than 80 columns. GB18030 has one byte for a Latin letter and two for a Chinese one, as a terminal does.
wide() { sed 's/[“”]/"/g' | iconv -f UTF-8 -t GB18030 | LC_ALL=C awk 'length($0) > 80'; }

# ---- help ----
contains "the list of commands" "$("$qkv" --lang zh --help)" "用法：qkv COMMAND [选项]" "使用模型：" "translate         翻译文本"
same "it fits 80x24" "" "$(zh --help | awk 'NR > 23')$(zh --help | wide)"
"$qkv" help all | sed -n 's/^  \([a-z]\+\( [a-z]\+\)\?\)  .*/\1/p' >commands
check "there are commands" test "$(wc -l <commands)" -gt 30
option='^  \(-., \|    \)--'
while read -r command; do
    # shellcheck disable=SC2086
    zh help $command --all >help
    same "$command: no line is wider than 80 columns" "" "$(wide <help)"
    contains "$command: usage, options and example" "$(cat help)" "用法：qkv $command" "选项：" "示例："
    # shellcheck disable=SC2086
    same "$command: as many options" "$("$qkv" help $command --all | grep -c "$option")" "$(grep -c "$option" help)"
done <commands
contains "a help in Chinese" "$(zh attend --help)" "显示其注意力权重" "-m, --model DIR        模型目录"
contains "names of a choice" "$(zh attend --help)" "encoder、decoder 或 cross（默认：翻译模型为 cross）"
same "the help of a command" "$(zh score --help)" "$("$qkv" help score --lang zh)"
same "before the command" "$(zh score --help)" "$("$qkv" --lang=zh score --help)"
same "by the locale" "$(zh score --help)" "$(LC_ALL=zh_CN.UTF-8 "$qkv" score --help)"
same "--lang goes before the locale" "$("$qkv" score --help)" "$(LC_ALL=zh_CN.UTF-8 "$qkv" --lang en score --help)"
fails "another language" 2 'is not one of locale, en, zh' --lang fr info
fails "none" 2 'is not one of locale, en, zh' --lang

# ---- errors: the commonest are in Chinese, also those of the library; the status is the same ----
fails "an option that is missing" 2 '缺少 --ref' score --lang zh
fails "what was meant" 2 '是不是想用“--beam”？' translate --num-beams 3 --lang zh
fails "what there is not" 2 'qkv 在 CPU 上运行' translate --gpu --lang zh
fails "a command that there is not" 2 '没有命令“foo”' --lang zh foo
fails "a number" 2 '应为不小于 1 的整数' line --steps x --lang zh
fails "no such folder" 3 'info: no-such-folder：没有这个目录' info no-such-folder --lang zh
same "by the locale" "$(zh info no-such-folder 2>&1)" "$(LC_ALL=zh_CN.UTF-8 "$qkv" info no-such-folder 2>&1)"
fails "no training" 3 'training.json：没有那个文件或目录：不是训练目录' runs . --lang zh
fails "no such file" 3 'train translate: missing：无法打开：没有那个文件或目录' train translate --train missing missing --out x --lang zh
fails "of the command's own" 3 'score: missing：无法打开：没有那个文件或目录' score --ref missing --hyp missing --lang zh

# ---- tables for people; what programs read is the same in both languages ----
printf 'the cat sat on the mat\nI love you\nyou love the cat\n我爱你\n猫坐在垫子上\n' >corpus
for kind in pair encoder decoder; do check "a model: $kind" "$make_model" $kind $kind corpus; done
echo 'no tab' >no-tab.tsv
printf 'pos\tgood\n\tbad\n' >no-label.tsv
for i in 1 2 3 4 5 6; do printf 'pos\tgood %d\nneg\tbad %d\n' $i $i; done >texts.tsv
printf 'a\nb\n' >two
printf 'a\n' >one
: >nothing.tsv
for folder_name in cut short unknown; do cp -r pair $folder_name; done
head -c 1000 pair/model.safetensors >cut/model.safetensors
echo short >short/model.safetensors
printf 'PK\003\004' >workbook.xlsx
printf '{"topic": "a", "body": "b"}\n' >topics.jsonl
echo '{"model_type": "fnet"}' >unknown/config.json
mkdir empty-folder bare gguf onnx peft
touch gguf/model.gguf onnx/model.onnx
echo '{}' >peft/adapter_config.json
cp pair/config.json pair/model.safetensors bare
printf 'Text,Art\n"a\nb",c\n' >wide.csv
train="train classify --out out --lang zh --train"
while read -r status sentence; do
    read -r arguments
    # shellcheck disable=SC2086
    fails "in Chinese: $sentence" "$status" "$sentence" $arguments --lang zh
done <<END
3 empty-folder 中没有 config.json
info empty-folder
4 cut/model.safetensors：文件头不完整：992 字节
info cut
4 short/model.safetensors：不是 safetensors 文件：只有 6 字节
info short
5 unknown/config.json：不支持架构“fnet”：支持的有 marian
info unknown
5 gguf/model.gguf：不能读取 GGUF：请使用转换前的模型
info gguf
5 onnx/model.onnx：不能读取 ONNX
info onnx
5 peft/adapter_config.json：PEFT 适配器只是对另一个模型的改动
info peft
5 decoder 没有对话模板
chat -m decoder
5 workbook.xlsx：这是 Excel 工作簿（.xlsx），不是 UTF-8 文本
$train workbook.xlsx
5 decoder：模型没有用于“translate”的输出层：它可用于 generate
translate -m decoder hi
2 bare 中没有分词器：需要 tokenizer.json
translate -m bare hi
2 束宽 100000、结果数 1：束宽须在 1 到 1000 之间
translate -m pair hi --beam 100000
2 没有第 9 层：cross 注意力有第 0 到 1 层
attend -m pair hi --layer 9 --quiet
2 没有注意力头 9：每层有 0 到 1
attend -m pair hi --head 9 --quiet
4 topics.jsonl：第 1 行：没有成员“text”，只有：topic, body；用 --label-column 和 --text-column
$train topics.jsonl
4 no-tab.tsv：第 1 行的标签与文本之间没有 TAB
$train no-tab.tsv
4 no-label.tsv：第 2 行：标签为空
$train no-label.tsv --strict
4 nothing.tsv：没有文本
$train nothing.tsv
2 --layers：应为不小于 1 的整数，而不是“0”
$train texts.tsv --layers 0
2 --preset：“huge”不在以下取值之中：tiny
$train texts.tsv --preset huge
2 --dropout：应为有限的数，而不是“x”
$train texts.tsv --dropout x
2 --split：2 不在 0 到 0.5 之间
$train texts.tsv --split 2
2 --lr：-1 必须大于 0
$train texts.tsv --lr -1 --split 0
2 dropout 须不小于 0 且小于 1
$train texts.tsv --dropout 2 --split 0
2 --epochs 0 什么也不训练
$train texts.tsv --epochs 0 --split 0
2 --dim 33 不能被 --heads 4 整除：各头的宽度相同
$train texts.tsv --dim 33 --heads 4 --split 0
2 --heads 4 不能被 --kv-heads 3 整除：每个键值头服务同样多的头
$train texts.tsv --dim 32 --heads 4 --kv-heads 3 --split 0
2 pair 中已有一个模型：请换一个目录
train classify --train texts.tsv --split 0 --out pair
4 one 到第 1 行为止，two 却还有更多行：第 2 行没有对应的译文
train translate --train one two --out out
4 one：第 1 行的源文与译文之间没有 TAB：请给出两个文件
train translate --train one --out out
2 out 中没有可以继续的训练
train translate --train two two --out out --resume
3 /proc/none/out：无法创建目录：没有那个文件或目录
train translate --train two two --tokens words --out /proc/none/out
3 texts.tsv 不是目录：模型是含有 config.json、model.safetensors 和 tokenizer.json 的目录
info texts.tsv
3 pair/config.json 不是目录，而模型是一个目录：请给出“pair”
info pair/config.json
2 attend: 文本为空，没有可以关注的词元
attend -m pair --input nothing.tsv --quiet
2 --without-head 3：格式应为 “层.头”，例如 1.3，从 0 数起
attend -m pair hi --without-head 3 --quiet
2 --token “love”：查询有 </s>，请给出其中之一
explain -m pair hi --token love
5 a.jpg：图片的文件名须以 .png、.svg 或 .pdf 结尾
show flow -o a.jpg
2 why: 位置 99 没有输出：输出在 0 到
why -m pair hi --at 99
5 没有预设“bsae”，可用的有 tiny
show model --preset bsae
4 --x："1,0;0,a"：第 2 行第 2 列：“a”不是数
explain --x 1,0;0,a --wq 1 --wk 1 --wv 1
4 --x："[]"：没有数
explain --x [] --wq 1 --wk 1 --wv 1
4 --x："1,0;0"：第 2 行有 1 个数，第一行有 2 个
explain --x 1,0;0 --wq 1 --wk 1 --wv 1
4 --x："[[1,0],[0,1]"：第 3 行：方括号没有闭合
explain --x [[1,0],[0,1] --wq 1 --wk 1 --wv 1
4 --x："[1,0]1"：最后一个方括号之后还有“1”
explain --x [1,0]1 --wq 1 --wk 1 --wv 1
2 X 的列数（2）与 W_Q 的行数（1）必须相等
explain --x 1,0;0,1 --wq 1 --wk 1 --wv 1
4 wide.csv：第 1 行：表头中没有“art”列：是不是想用“Art”？
$train wide.csv --label-column art
4 wide.csv：第 1 行：表头中没有“label”列，只有：Text,Art；用 --label-column
$train wide.csv
4 wide.csv：第 2 行：标签中有制表符、换行或 NUL：这是标签列吗？
$train wide.csv --label-column Text --text-column Art
END
"$qkv" $train texts.tsv --out far --lr 1e30 --split 0.5 --steps 9 >/dev/null 2>err
contains "in Chinese: a rate that is too high" "$(cat err)" '步的损失不是有限数：请调低学习率'
fails "in Chinese: a training is there" 2 'far 中已有一次训练：请用 --resume 继续，或换一个目录' $train texts.tsv --out far
fails "a rare one stays English" 4 "encoder/config.json is not the same as pair/config.json" average -m pair encoder -o out --lang zh
contains "a model's table" "$(zh info pair)" "架构            qkv" "注意力头        2" "词表" "可用于          translate"
contains "the build's table" "$(unset QKV_ISA; zh info -t 3)" "指令集" "3（来自 --threads）" "QKV_ISA                （无）"
contains "full-width commas between names" "$(zh explain --x "1 2；3 4" --wq "1 0; 0 1" --wk "1 0; 0 1" --wv "1 0; 0 1" --tokens "我，爱")" "“我”的注意力："
contains "sentences have no blank between them" "$(zh explain | tr -d '\n')" "即嵌入表的行号。每个编号对应"
contains "perplexity" "$(zh perplexity -m decoder corpus)" "困惑度       " "nats/词元    "
contains "attend" "$(zh attend -m pair "I love you" 2>said)" "交叉注意力，第 1 层，注意力头的平均" "空白到 █"
contains "and what it tells" "$(cat said)" "译文是"
contains "attributions" "$(zh why -m pair "I love you")" "词元                       梯度       积分梯度         值置零     注意力展开"
contains "ranks" "$(zh attend -m pair "I love you" --rank --quiet)" "   层    头           熵     对角程度" "主要关注" "词元"
contains "flow" "$(zh show flow)" "自注意力，8 个注意力头" "拼接"
same "the shapes of flow line up" 54 "$(zh show flow | sed 1,2d | iconv -f UTF-8 -t GB18030 | LC_ALL=C sed 's/[0-9]\+\( x [0-9]\+\)\+$//' | LC_ALL=C awk '{ print length($0) }' | sort -u)"
# as_it_is COMMAND...: the same bytes in both languages
as_it_is() {
    "$qkv" "$@" --lang en >en.out 2>/dev/null
    zh "$@" >zh.out 2>/dev/null
    check "as it is: $*" cmp en.out zh.out
    check "and something: $*" test -s zh.out
}
as_it_is info --json
as_it_is info pair --json
as_it_is translate -m pair "I love you" "you love"
as_it_is translate -m pair "I love you" --json --alignment
as_it_is translate -m pair "I love you" --json --max-source 1
as_it_is tokenize -m pair "I love you"
as_it_is perplexity -m decoder corpus --json
as_it_is attend -m pair "I love you" --json
as_it_is attend -m pair "I love you" --rank --json
as_it_is score --ref corpus --hyp corpus
as_it_is --version

# ---- a training ----
awk 'BEGIN { for (i = 10; i < 70; i++) print "a b c " i "\td e f " i }' >pairs
train() {
    "$qkv" train translate --paper --train pairs --valid pairs --tokens characters --layers 1 --dim 8 --heads 2 --inner 8 --max-tokens 64 \
        --steps 4 --log-every 2 --out "$1" --lang "$1" 2>"$1.said"
}
check "a training in Chinese" train zh
check "and in English" train en
contains "what it tells" "$(cat zh.said)" "句对        60" "词表" "参数量" "更新次数" "步 2/4" "损失" "词元/秒" "验证损失" "迄今最佳" \
    "4 次更新后停止" "已达到 --steps" "模型在 zh 中"
same "no line of it is English" "" "$(grep -vP '\p{Han}' zh.said | grep -v '^选定\|^ ')"
check "the model is the same" cmp zh/model.safetensors en/model.safetensors
same "and so is its record" "$(sed 's/"\(en\|zh\)"//; /second\|minutes\|created/d' en/training.json)" \
    "$(sed 's/"\(en\|zh\)"//; /second\|minutes\|created/d' zh/training.json)"
contains "trainings side by side" "$(zh runs zh en)" "目录" "步数" "已达到 --steps"

# ---- pictures ----
check "a map" zh attend -m pair "I love you" -o map.svg --quiet
contains "its words" "$(cat map.svg)" "查询（关注者）" "键（被关注者）" "交叉注意力"
check "a flow" zh show flow --heads 2 --d-model 8 -o flow.svg
contains "its words" "$(cat flow.svg)" "缩放：除以 √d_k" "拼接：2 个注意力头并排" "输出"
check "curves" zh show curve zh -o curve.svg
contains "their words" "$(cat curve.svg)" "训练损失" "步"
check "positions" zh show positions --d 8 --n 4 -o positions.svg
contains "their words" "$(cat positions.svg)" "正弦位置编码" "维度"

# ---- the manual ----
"$qkv" --lang zh --man >qkv.1
contains "the manual" "$(sed 's/\\[-:]//g' qkv.1)" ".SH 名称" ".SH 退出状态" "用两个逐行对应的文本文件" ".SH 环境变量"
if command -v groff >groff.path; then
    same "groff finds nothing wrong" "" "$(groff -K utf8 -man -Tutf8 -ww -z qkv.1 2>&1)"
    check "no line of it is wider than 80 columns" test "$(groff -K utf8 -man -Tutf8 -P-cbou -rLL=78n qkv.1 | wc -L)" -le 80
else skipped "groff is not installed"; fi

# ---- the pages: every word of them is in the catalogue, and every word of the catalogue is in them ----
cd "$root" || exit 1
words_of() { sed -n "s/^    '\(.*\)': '.*',\$/\1/p" "$@" | sort; }
used_in() { # PAGE SCRIPT..: what they show
    page=$1
    shift
    tr '\n' ' ' <"$page" | sed 's/<head>.*<\/head>//; s/<script.*<\/script>//; s/<noscript>.*<\/noscript>//; s/  */ /g' >"$folder/page"
    {
        grep -oE '(title|aria-label)="[^"]*"' "$folder/page" | sed 's/^[^"]*"//; s/"$//'
        sed 's/<[^>]*>/\n/g; s/&nbsp;//g' "$folder/page" | sed 's/^ *//; s/ *$//' | grep '[a-z]' | grep -v '^qkv$'
        grep -ohP "\btr\('\K[^']*" "$@"
    } | sort -u
}
words_of web/strings.js >"$folder/words"
used_in web/explorer.html web/explorer.js >"$folder/used"
check "there are words" test "$(wc -l <"$folder/used")" -gt 80
same "every word of the explorer has its Chinese" "" "$(comm -13 "$folder/words" "$folder/used")"
same "none is left over" "" "$(comm -23 "$folder/words" "$folder/used")"
words_of web/live-strings.js >"$folder/more"
words_of web/strings.js web/live-strings.js >"$folder/words"
used_in web/live.html web/live.js web/views/*.js >"$folder/used"
check "the live page has words" test "$(wc -l <"$folder/used")" -gt 150
same "every word of it has its Chinese" "" "$(comm -13 "$folder/words" "$folder/used")"
same "none is left over there" "" "$(comm -23 "$folder/more" "$folder/used")"
same "none is there twice" "" "$(uniq -d "$folder/words")"

# The lessons of the page say what those of the command say, in both languages; numbers are {0} in the one and %.3f in the other.
sed -n "1,/those of the command/d; s/^    '\(.*\)': '\(.*\)',\$/\1|\2/p" web/live-strings.js | sed 's/{[0-9]}/{}/g' | sort >"$folder/lessons"
sed -n '/^msgid "./{N; s/^msgid "\(.*\)"\nmsgstr "\(.*\)"$/\1|\2/p}' po/zh_CN.po | sed 's/%[0-9]*\$*[-+ #0-9.]*l*[a-z]/{}/g' | sort >"$folder/commands"
check "the page has lessons" test "$(wc -l <"$folder/lessons")" -gt 40
same "their words are the command's" "" "$(comm -23 "$folder/lessons" "$folder/commands")"

# ---- one word for one thing ----
for wrong in 标记 令牌 头部 遮罩 屏蔽 补齐 残差链接 剩余连接 图层归一化 位置嵌入 集束搜索 波束搜索 定向搜索 标签光滑 热身 学习速率 检查站 \
    混乱度 词汇表 长度罚分 存档点 关注头 多少百万 "[0-9] 百万" "百分之 [0-9]" 文件夹 抽样; do
    same "no $wrong" "" "$(grep -n "^msgstr.*$wrong\|^\".*$wrong" po/zh_CN.po; grep -n "$wrong" README.zh-CN.md web/strings.js web/live-strings.js)"
done
finish
