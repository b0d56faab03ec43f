/* library_error.c: the commonest errors of the library in the reader's language, and with the options that help. The library's own sentences are English, since
 * programs read them; here a sentence is matched against the format that made it, each %s standing for any text. A sentence
 * that no format matches stays as it is. tests/chinese.sh provokes each of them. */
#include "errors.h"
#include "language.h"

#include <stdio.h>
#include <string.h>

enum { MAX_PARTS = 4, MAX_BYTES = 2048 };

static const char *const formats[] = {
    /* what the system says, which is a part of other sentences */
    N_("No such file or directory"),
    N_("Permission denied"),
    N_("Is a directory"),
    N_("Not a directory"),
    N_("File exists"),
    N_("No space left on device"),
    N_("Read-only file system"),
    /* files and folders */
    N_("%s: cannot open: %s"),
    N_("%s: cannot read: %s"),
    N_("%s: cannot write there: %s"),
    N_("%s: cannot make the folder: %s"),
    N_("%s: there is no such folder: a model is a folder that \"qkv train\" wrote, or that its authors publish"),
    N_("%s holds no config.json: a model's folder has one, with model.safetensors and tokenizer.json; this one holds nothing"),
    N_("%s holds no config.json: a model's folder has one, with model.safetensors and tokenizer.json; this one holds %s"),
    N_("%s is not a folder, as a model is: give \"%s\""),
    N_("%s is not a folder, as a model is, with config.json, model.safetensors and tokenizer.json"),
    N_("%s holds no config.json, so no model; but \"%s\" does"),
    N_("there is no training in %s to resume"),
    N_("%s: %s: it is no training's folder"),
    N_("%s: not a safetensors file: it has %s bytes"),
    N_("%s: not a safetensors file: a header of %s bytes, at most %s are allowed"),
    N_("%s: cut in its header: %s of %s bytes"),
    N_("%s: GGUF is not read: take the model that the file was made of, a folder with config.json and model.safetensors"),
    N_("%s: ONNX is not read: fetch the model's model.safetensors"),
    N_("%s: a PEFT adapter changes another model: merge it into its base model first, in Python with merge_and_unload() and "
       "save_pretrained(), and give the merged folder"),
    N_("%s: unsupported architecture \"%s\": supported are %s"),
    N_("%s: line %s, byte %s: not JSON: %s"),
    /* models */
    N_("the model has no head for \"%s\": it can %s"),
    N_("%s holds no tokenizer: expected tokenizer.json, vocab.txt, tokenizer.model, or vocab.json with merges.txt"),
    N_("%s has no chat template (chat_template.jinja, or \"chat_template\" in tokenizer_config.json)"),
    N_("the model has no tokenizer: it knows ids, not text"),
    N_("%s: the model has no tokenizer: it knows ids, not text"),
    N_("attention: there is no layer %s: %s attention has layers 0 to %s"),
    N_("attention: there is no head %s: every layer has heads 0 to %s"),
    N_("%s: there is no layer %s: %s has 0 to %s"),
    N_("attend: the text is empty: there is nothing to attend to"),
    N_("%s %s: expected %s, from 0, with encoder:, decoder: or cross: before it where wanted"),
    N_("LAYER.HEAD, such as 1.3"),
    N_("LAYER, such as 2"),
    N_("PLACE, such as 2"),
    N_("why: there is no output at %s: they are at 0 to %s"),
    N_("%s: the name of a picture ends with .png, .svg or .pdf"),
    N_("there is no preset \"%s\": the presets are %s"),
    N_("training: the loss of step %s is not finite: try a lower learning rate"),
    /* typed arrays */
    N_("%s: row %s, column %s: \"%s\" is not a number"),
    N_("%s: row %s, column %s: there is no number"),
    N_("%s: row %s: %s numbers here, %s in the first"),
    N_("%s: row %s: a bracket is not closed"),
    N_("%s: row %s: a number where a list is expected"),
    N_("%s: row %s: a list where a number is expected"),
    N_("%s: \"%s\" follows the last bracket"),
    N_("%s: there are no numbers"),
    N_("search: beam %s and %s results: expected a beam of 1 to 1000 and at most as many results"),
    /* training data */
    N_("%s: there are no texts"),
    N_("%s: line %s: the label is empty"),
    N_("%s: line %s: the label has a TAB, a newline or a NUL in it: is that the label column?"),
    N_("%s: line %s: the header has no column \"%s\": did you mean \"%s\"?"),
    N_("%s: line %s: the header has no column \"%s\", it has: %s; --label-column and --text-column choose columns, by name or "
       "number"),
    N_("%s: line %s: the header has no column \"%s\", it has: %s"),
    N_("%s: line %s: there is no member \"%s\", it has: %s; --label-column and --text-column choose columns, by name or "
       "number"),
    N_("%s: it is %s, not text in UTF-8: %s"),
    N_("an Excel workbook (.xlsx)"),
    N_("save it as CSV, in UTF-8 (in a spreadsheet: Save As)"),
    N_("%s: line %s has no TAB between label and text"),
    N_("%s: line %s has no TAB between label and text; --label-column and --text-column choose columns, by name or number"),
    N_("%s: line %s has no TAB between source and target"),
    N_("%s: line %s has no TAB between source and target: give two files, or one with \"source TAB target\" on each line"),
    N_("%s ends at line %s, but %s goes on: line %s has no translation"),
    /* values of options */
    N_("--%s: \"%s\" is not a whole number from 1"),
    N_("--%s: \"%s\" is not a whole number from 0"),
    N_("--%s: \"%s\" is not a finite number"),
    N_("--%s: \"%s\" is not one of %s"),
    N_("--%s: %s is not above 0"),
    N_("--%s: %s is not from %s to %s"),
    N_("--%s 0 trains nothing: give a number from 1, or leave it out"),
    N_("--dim %s is not divisible by --heads %s: each head has the same width"),
    N_("--heads %s is not divisible by --kv-heads %s: each of these serves the same number of heads"),
    N_("transformer: dropout must be at least 0 and below 1"),
    N_("this qkv was built without cairo and pango: it draws no pictures"),
    N_("this qkv was built without libmicrohttpd: it has no server"),
    N_("out of memory"),
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

/* Sentences of the library that the command ends in its own way: with the option that helps. */
static const char *const with_option[][2] = {
    { "%s its classifier has no naive Bayes (ngrams)%s", N_("%s its classifier has no naive Bayes: train with --ngrams 0%s") },
    { "%s holds a model already: give another folder",
      N_("%s holds a model already: give another folder (--from it starts with its weights)") },
    { "%s holds a training already: resume it, or give another folder",
      N_("%s holds a training already: continue it with --resume, or give another folder") },
    { "%s to train longer, start another training from its model",
      N_("%s to train longer, start another training with --from") },
    { "%s; a model that is trained in the shape of %s or %s can be saved as that",
      N_("%s; a training with --like %s or --like %s makes one that can be saved as that") },
    { "%s; a model that is trained in the shape of %s can", N_("%s; a training with --like %s makes one that can") },
};

typedef struct text_part {
    const char *start;
    size_t length;
} text_part;

/* Whether the format made the text; part i is then what its i-th %s stands for. */
static bool take_apart(const char *format, const char *text, size_t length, text_part parts[MAX_PARTS])
{
    const char *end = text + length;
    for (int n = 0;;) {
        const char *gap = strstr(format, "%s");
        size_t fixed = gap ? (size_t)(gap - format) : strlen(format);
        if ((size_t)(end - text) < fixed || memcmp(text, format, fixed)) return false;
        text += fixed;
        if (!gap) return text == end;
        if (n == MAX_PARTS) return false;
        format = gap + 2;
        const char *next = strstr(format, "%s");
        size_t needed = next ? (size_t)(next - format) : strlen(format);
        if ((size_t)(end - text) < needed) return false;
        const char *found = needed && next ? memmem(text, (size_t)(end - text), format, needed) : end - needed;
        if (!found) return false;
        parts[n++] = (text_part){ text, (size_t)(found - text) };
        text = found;
    }
}

static const char *system_words(text_part part)
{
    for (int i = 0; i < N_FORMATS; i++)
        if (strlen(formats[i]) == part.length && !memcmp(formats[i], part.start, part.length)) return translated(formats[i]);
    return NULL;
}

/* Fills in the translation of a format: its %s, or %2$s, are the parts. */
static void fill_in(const char *format, const text_part *parts, char out[MAX_BYTES])
{
    size_t used = 0;
    for (int n = 0; *format && used < MAX_BYTES - 1;) {
        bool has_place = format[0] == '%' && format[1] >= '1' && format[1] <= '0' + MAX_PARTS && format[2] == '$';
        if (*format != '%') {
            out[used++] = *format++;
            continue;
        }
        text_part part = parts[has_place ? format[1] - '1' : n++];
        const char *words = system_words(part);
        used += (size_t)snprintf(out + used, MAX_BYTES - used, "%.*s", words ? (int)strlen(words) : (int)part.length,
                                 words ? words : part.start);
        format += has_place ? 4 : 2;
    }
    out[used < MAX_BYTES ? used : MAX_BYTES - 1] = '\0';
}

const char *library_error(void)
{
    static char sentence[MAX_BYTES];
    text_part parts[MAX_PARTS] = { 0 };
    const char *english = qkv_error();
    for (size_t i = 0; i < sizeof with_option / sizeof *with_option; i++) {
        if (!take_apart(with_option[i][0], english, strlen(english), parts)) continue;
        fill_in(translated(with_option[i][1]), parts, sentence);
        return sentence;
    }
    for (int i = 0; speaks_chinese() && i < N_FORMATS; i++) {
        if (!take_apart(formats[i], english, strlen(english), parts)) continue;
        fill_in(translated(formats[i]), parts, sentence);
        return sentence;
    }
    return english;
}
