/* alphabet.h: two ways to spell bytes. GPT-2's: one visible character for each. Printable bytes of Latin-1 are themselves, the
 * others follow from U+0100 on in the order of their values. SentencePiece's: <0x0A>. */
#ifndef QKV_SRC_ALPHABET_H
#define QKV_SRC_ALPHABET_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { QKV__SPELLED_MAX = 2 }; /* bytes of UTF-8 that one byte is spelled with */

static inline int32_t qkv__byte_to_character(int byte)
{
    if (byte <= 32) return 256 + byte;
    if (byte >= 127 && byte <= 160) return 256 + 33 + (byte - 127);
    return byte == 173 ? 256 + 67 : byte;
}

/* -1 for a character that stands for no byte. */
static inline int qkv__character_to_byte(int32_t c)
{
    if (c >= 256 && c <= 288) return c - 256;
    if (c >= 289 && c <= 322) return c - 289 + 127;
    if (c == 323) return 173;
    return (c >= 33 && c <= 126) || (c >= 161 && c <= 255 && c != 173) ? c : -1;
}

/* The i-th byte, i = 0..255, in the order of their characters: the order of ids in a new vocabulary. */
static inline int qkv__byte_in_order(int i)
{
    if (i < 94) return 33 + i;
    if (i < 106) return 161 + (i - 94);
    if (i < 188) return 174 + (i - 106);
    return qkv__character_to_byte(256 + (i - 188));
}

/* Writes the character of a byte as UTF-8; gives how many bytes that took. */
static inline size_t qkv__spell_byte(int byte, char out[QKV__SPELLED_MAX])
{
    int32_t c = qkv__byte_to_character(byte);
    if (c < 0x80) return out[0] = (char)c, 1;
    out[0] = (char)(0xC0 | c >> 6);
    out[1] = (char)(0x80 | (c & 0x3F));
    return 2;
}

/* SentencePiece's: <0x and two digits, and > behind them. */
#define QKV__BYTE_OPENS "<0x"
#define QKV__BYTE_CLOSES ">"
enum { QKV__BYTE_LENGTH = 6 };

static inline void qkv__spell_byte_token(int byte, char out[QKV__BYTE_LENGTH + 1])
{
    snprintf(out, QKV__BYTE_LENGTH + 1, QKV__BYTE_OPENS "%02X" QKV__BYTE_CLOSES, (unsigned)byte & 0xFF);
}

/* The byte that a text starts with the token of, with digits of either case; -1 for other text. */
static inline int qkv__byte_of_token(const char *text, size_t length)
{
    static const char digits[] = "0123456789ABCDEFabcdef";
    int byte = 0;
    if (length < QKV__BYTE_LENGTH || memcmp(text, QKV__BYTE_OPENS, 3) || text[5] != *QKV__BYTE_CLOSES) return -1;
    for (int i = 3; i < 5; i++) {
        const char *found = text[i] ? strchr(digits, text[i]) : NULL;
        if (!found) return -1;
        byte = byte * 16 + (int)(found - digits > 15 ? found - digits - 6 : found - digits);
    }
    return byte;
}

#endif
