/* qkv/qkv.h: all of libqkv. */
#ifndef QKV_QKV_H
#define QKV_QKV_H

#include <qkv/attend.h>
#include <qkv/base.h>
#include <qkv/chat.h>
#include <qkv/decode.h>
#include <qkv/dist.h>
#include <qkv/jinja.h>
#include <qkv/model.h>
#include <qkv/nn.h>
#include <qkv/op.h>
#include <qkv/score.h>
#include <qkv/task.h>
#include <qkv/tensor.h>
#include <qkv/text.h>
#include <qkv/touch.h>
#include <qkv/train.h>

#endif
