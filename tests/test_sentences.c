/* test_sentences.c: where sentences end. */
#include <qkv/qkv.h>
#include <qkv/unstable/util.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Sentences are written with | between them, as they are found. */
static void is_cut(const char *text, size_t length, const char *wanted)
{
    char found[1024] = "";
    size_t n = 0, before = 0;
    for (qkv_span s = { 0, 0 }; qkv_sentence_next(text, length, &s); before = s.end) {
        assert_true(s.begin >= before && s.end > s.begin && s.end <= length);
        n += (size_t)snprintf(found + n, sizeof found - n, "%s%.*s", n ? "|" : "", (int)(s.end - s.begin), text + s.begin);
        assert_true(n < sizeof found);
    }
    assert_string_equal(found, wanted);
}

static const struct {
    const char *text, *wanted;
} cases[] = {
    /* nothing, one, two */
    { "", "" },
    { " \n\t\r\n ", "" },
    { "I love you", "I love you" },
    { "  I love you  ", "I love you" },
    { "I love you. The cat sat.", "I love you.|The cat sat." },
    { "I love you.\nThe cat sat.", "I love you.|The cat sat." },
    { "I love you\r\n\r\nthe cat sat", "I love you|the cat sat" },
    { "One! Two? Three.", "One!|Two?|Three." },
    { "Really?! Yes. 5 of them.", "Really?!|Yes.|5 of them." },
    /* quotation marks and brackets */
    { "He said \"Go.\" She went.", "He said \"Go.\"|She went." },
    { "\"Stop!\" he said. \"No.\"", "\"Stop!\" he said.|\"No.\"" },
    { "It ended (at last.) (So it did.)", "It ended (at last.)|(So it did.)" },
    { "„Geh.“ Er ging.", "„Geh.“|Er ging." },
    { "¿Qué? ¡Nada! Él.", "¿Qué?|¡Nada!|Él." },
    /* a dot is not always an end */
    { "It is 3.14 or so. See a.b for it.", "It is 3.14 or so.|See a.b for it." },
    { "Dr. Smith met Mr. Jones. They spoke.", "Dr. Smith met Mr. Jones.|They spoke." },
    { "J. S. Bach wrote it. He did.", "J. S. Bach wrote it.|He did." },
    { "Pets, e.g. Cats, i.e. Felines. Nice.", "Pets, e.g. Cats, i.e. Felines.|Nice." },
    { "Das ist z.B. Wasser. Gut.", "Das ist z.B. Wasser.|Gut." },
    { "The U.S. Senate met. It sat.", "The U.S. Senate met.|It sat." },
    { "See Fig. 3 and No. 7. I said no. Then I left.", "See Fig. 3 and No. 7.|I said no.|Then I left." },
    { "1. Introduction\n2. Method", "1. Introduction|2. Method" },
    { "It was 1999. The end.", "It was 1999.|The end." },
    { "Wait... what? Wait... What?", "Wait... what?|Wait...|What?" },
    { "Wait… und dann. Ärger.", "Wait… und dann.|Ärger." },
    { "cats, dogs etc. are pets. Birds etc. Fish too.", "cats, dogs etc. are pets.|Birds etc.|Fish too." },
    /* Chinese and Japanese have no space */
    { "我爱你。猫坐在垫子上！真的？", "我爱你。|猫坐在垫子上！|真的？" },
    { "他说：“走吧。”她走了。", "他说：“走吧。”|她走了。" },
    { "「はい。」と言った。本当？！うん。", "「はい。」|と言った。|本当？！|うん。" },
    { "真的吗?是的!圆周率是3.14。", "真的吗?|是的!|圆周率是3.14。" },
    { "他用 Dr. Smith 的书。好。", "他用 Dr. Smith 的书。|好。" },
    /* others */
    { "هل أنت هنا؟ نعم.", "هل أنت هنا؟|نعم." },
    { "यह एक है। यह दो है।", "यह एक है।|यह दो है।" },
    { "Это кот. Да? да. Нет", "Это кот.|Да? да.|Нет" },
    { "...", "..." },
    { ". . .", ".|.|." },
    { "Yes.\xC2\xA0No.\xE3\x80\x80Yes.", "Yes.|No.|Yes." },
};

static void sentences_end_where_a_reader_ends_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) is_cut(cases[i].text, strlen(cases[i].text), cases[i].wanted);
}

/* Any bytes, in any order: every byte that is no white space is in one sentence, and nothing is read behind the end. */
static void any_bytes_are_cut(void **state)
{
    static const char *const pieces[] = { ".", " ", "\n", "!", "?",    "\xE3\x80\x82", "\xE3\x80", "\xFF", "a",
                                          "A", "1", "\"", ")", "\xC2", "\0",           "Dr",       "e.g",  "\xE6\x88\x91" };
    uint32_t random = 1;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        char text[64];
        size_t length = 0, seen = 0, inside = 0;
        for (int i = 0; i < 12; i++) {
            random = random * 1664525u + 1013904223u;
            const char *piece = pieces[(random >> 16) % (sizeof pieces / sizeof *pieces)];
            size_t size = *piece ? strlen(piece) : 1;
            memcpy(text + length, piece, size);
            length += size;
        }
        char *exact = memcpy(test_malloc(length), text, length);
        for (qkv_span s = { 0, 0 }; qkv_sentence_next(exact, length, &s); seen = s.end) {
            assert_true(s.begin >= seen && s.end > s.begin && s.end <= length);
            for (size_t i = s.begin; i < s.end; i++) inside += exact[i] != ' ' && exact[i] != '\n';
        }
        for (size_t i = 0; i < length; i++) inside -= exact[i] != ' ' && exact[i] != '\n';
        assert_int_equal(inside, 0);
        test_free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(sentences_end_where_a_reader_ends_them),
                                        cmocka_unit_test(any_bytes_are_cut) };
    return cmocka_run_group_tests_name("sentences", tests, NULL, NULL);
}
