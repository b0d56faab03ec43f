/* no_pictures.c: the calls that draw, for a command without cairo and pango. */
#include "view.h"

#include "../../src/base/status.h"

static qkv_status refuse(void)
{
    return qkv__fail(QKV_UNSUPPORTED, "this qkv was built without cairo and pango: it draws no pictures");
}

qkv_status qkv_picture_heatmaps(const char *path, const qkv_heatmap *maps, int64_t n, const qkv_heatmap_opts *opts)
{
    return (void)path, (void)maps, (void)n, (void)opts, refuse();
}

qkv_status qkv_picture_curves(const char *path, const qkv_curve *curves, int64_t n, const qkv_curve_opts *opts)
{
    return (void)path, (void)curves, (void)n, (void)opts, refuse();
}

qkv_status qkv_picture_flow(const char *path, const qkv_flow *flow) { return (void)path, (void)flow, refuse(); }

qkv_status qkv_picture_flows(const char *path, const qkv_flow *flows, int64_t n, const qkv_flow_opts *opts)
{
    return (void)path, (void)flows, (void)n, (void)opts, refuse();
}

qkv_status qkv_picture_model(const char *path, const qkv_config *model, const qkv_model_drawing_opts *opts)
{
    return (void)path, (void)model, (void)opts, refuse();
}
