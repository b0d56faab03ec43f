/* options.h: commands and their options. One table a command gives the parsing, the --help and the manual page. */
#ifndef QKV_CLI_OPTIONS_H
#define QKV_CLI_OPTIONS_H

#include "../term/errors.h"
#include "../term/language.h"

#include <qkv/qkv.h>

#include <stdbool.h>

/* Values one after the other among the arguments. */
typedef struct value_list {
    char **at;
    int n;
} value_list;

/* The headings of a long help, in the order that they come. Options without one come last. */
#define OPTION_GROUPS(X)                         \
    X(INPUT_GROUP, "input")                      \
    X(DATA_GROUP, "data")                        \
    X(MODEL_GROUP, "model")                      \
    X(OPTIMIZER_GROUP, "optimizer and schedule") \
    X(REGULAR_GROUP, "regularization")           \
    X(STOPPING_GROUP, "validation and stopping") \
    X(SAVING_GROUP, "output and checkpoints")    \
    X(SEARCH_GROUP, "search")                    \
    X(SAMPLING_GROUP, "sampling")                \
    X(TOUCH_GROUP, "interventions; separate several of one kind with ;") \
    X(RESULT_GROUP, "results")
typedef enum option_group {
    NO_GROUP,
#define OPTION_GROUP_NAME(name, heading) name,
    OPTION_GROUPS(OPTION_GROUP_NAME)
#undef OPTION_GROUP_NAME
} option_group;

/* One option; the one pointer that is set says what it takes and where it goes. */
typedef struct option {
    const char *name; /* without the dashes; NULL ends a table */
    char letter;      /* 0: none */
    bool required;
    const bool *optional_with; /* a flag without which it is required */
    bool plain;        /* may come without its name: "qkv learn 4" is "qkv learn --lesson 4" */
    const char *value; /* what the help calls the value; NULL for a flag */
    const char *help;  /* of a choice, where it is empty or begins with a space, what follows the names */
    bool is_rare;      /* only "--help --all" and the manual have it */
    option_group group;
    bool *flag;
    bool can_be_off; /* the flag, by --no- before its name */
    const char **text;
    bool may_be_empty;        /* the text, or one of the list */
    value_list *list;         /* one value or more, up to the next option; without a name anywhere */
    int *count;               /* a whole number from 1 */
    int64_t *whole;           /* a whole number from 0 */
    float *number;            /* a finite number */
    int *choice;              /* the place of one of the names */
    const char *const *names; /* of a choice, or of a text for the help; NULL after the last */
    int without_value;        /* above 0: the choice may come without a value, which means this one */
} option;

typedef struct command {
    const char *name;    /* a word, or a word and its job: "train translate" */
    const char *summary; /* one line */
    const char *about;   /* paragraphs, an empty line between them; where their lines end does not matter */
    const char *example; /* lines to type, after two spaces, at most 75 wide: the manual indents them */
    const option *options;
    qkv_status (*run)(void); /* prints results; has reported its error when it gives one */
    bool is_shared;          /* by the ranks that mpirun started; another command runs in each of them */
} command;

/* The job of the training that "--resume --out DIR" goes on with; NULL where the arguments are others. */
const char *find_resumed_job(char **arguments);

extern const command show_model_command, show_positions_command, show_flow_command, show_curve_command, show_array_command;
extern const command example_translate_command, example_summarize_command, example_classify_command, example_generate_command,
    attend_command, summarize_command, attention_command, average_command, chat_command, explain_command, line_command,
    score_command, tokenize_command, detokenize_command, tokenizer_command, info_command, learn_command, classify_command,
    embed_command, similar_command, perplexity_command, train_classify_command, train_generate_command, train_mask_command,
    train_translate_command, translate_command, forward_command, generate_command, serve_command, export_command, fill_command,
    page_command, quantize_command, runs_command, quiz_command, exercise_command, bench_command, shortlist_command, tag_command,
    answer_command, rank_command, lens_command, why_command;

/* The commands, NULL after the last; the headings above some of them; and the options that every command has. */
typedef struct command_heading {
    const command *first; /* of those under it; NULL after the last heading */
    const char *text;
} command_heading;
extern const command *const commands[];
extern const command *const common_commands[]; /* those of the short list, in the same order */
extern const command_heading command_headings[];
extern const option common_options[];
typedef struct common_values {
    bool help, all; /* --help; --help --all */
    int threads;
    int language;
    int signal; /* that ended a command early, after it saved its work, or a closed pipe; 0: none */
} common_values;
extern common_values common;

/* Chooses the language of --lang, wherever it stands, before anything is read: what is wrong with the others is told in it too.
 * Gives the arguments from the command on; NULL, reported, for a language before it that is none. */
char **choose_language(char **arguments);

/* Fills in what the options of the command point to. USAGE, reported, for anything else than its options. */
qkv_status parse_options(const command *c, char **arguments);

/* Whether the arguments had this option; and what an option holds now, as text ("" for a flag that is off or a text that is not
 * given). */
bool was_given(const char *name);
void option_text(const option *o, char *text, size_t room);

void print_help(bool all);
void print_command_help(const command *c, bool all);
void print_jobs_help(const char *name); /* the commands whose first word is name */
void print_manual(void); /* qkv(1), as roff */
void list_texts(void);   /* what help and manual take from the tables, to be translated: as C, a text a line */

/* From now on a mapped file that is cut ends the command with a sentence and QKV_IO. */
void catch_cut_files(void);

#endif
