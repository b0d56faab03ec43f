/* make_npy.c: writes a .npy file for the shell tests, sharing no code with the library.
 * usage: make_npy FILE f4|f8|i4|b1|O8 SHAPE [VALUE...]     SHAPE as 3,2; missing values are 0; with no_data after SHAPE none.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(FILE *f, const char *type, double value)
{
    float single = (float)value;
    int32_t whole = type[0] == 'i' ? (int32_t)value : 0;
    unsigned char byte = value != 0;
    if (!strcmp(type, "f4")) fwrite(&single, 4, 1, f);
    else if (!strcmp(type, "i4")) fwrite(&whole, 4, 1, f);
    else if (!strcmp(type, "b1")) fwrite(&byte, 1, 1, f);
    else fwrite(&value, 8, 1, f);
}

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    FILE *f = fopen(argv[1], "wb");
    if (!f) return 3;
    const char *type = argv[2], *order = type[0] == 'b' || type[0] == 'O' ? "|" : "<";
    char header[119];
    int length = snprintf(header, sizeof header, "{'descr': '%s%s', 'fortran_order': False, 'shape': (%s,), }", order,
                          type[0] == 'O' ? "O" : type, argv[3]);
    fwrite("\x93NUMPY\x01\x00\x76\x00", 1, 10, f); /* the header's 118 bytes make 128 */
    fprintf(f, "%-117s\n", header);
    long long count = 1;
    for (char *at = argv[3]; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) count *= atoll(at);
    if (argc > 4 && !strcmp(argv[4], "no_data")) count = 0;
    for (long long i = 0; i < count; i++) put(f, type, i + 4 < argc ? strtod(argv[i + 4], NULL) : 0);
    return fclose(f) || length > 117 ? 3 : 0;
}
