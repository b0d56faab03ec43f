/* no_server.c: the server's calls, for a command without libmicrohttpd. */
#include "serve.h"

#include "../../src/base/status.h"

static qkv_status refuse(void)
{
    return qkv__fail(QKV_UNSUPPORTED, "this qkv was built without libmicrohttpd: it has no server");
}

qkv_server *qkv_server_new(const qkv_model *m, const qkv_server_opts *opts) { return (void)m, (void)opts, refuse(), NULL; }
int qkv_server_port(const qkv_server *s) { return (void)s, 0; }
qkv_status qkv_server_address(const qkv_server *s, qkv_buffer *out) { return (void)s, (void)out, refuse(); }
void qkv_server_reload(qkv_server *s) { (void)s; }
void qkv_server_free(qkv_server *s) { (void)s; }
qkv_status qkv_access_text(const qkv_access *a, int64_t when, qkv_buffer *out)
{
    return (void)a, (void)when, (void)out, refuse();
}
