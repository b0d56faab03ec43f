/* no_folder.h: why a path is not the folder of a model. */
#ifndef QKV_SRC_NO_FOLDER_H
#define QKV_SRC_NO_FOLDER_H

#include "../base/status.h"

/* Called when config.json of a folder could not be opened. Makes the error say what the path is instead of a model's folder:
 * nothing, the name of a model that is published somewhere, a file, or a folder with other things in it. Where it is none of
 * these the error stays. Gives the status of the error. */
qkv_status qkv__explain_no_folder(const char *path);

#endif
