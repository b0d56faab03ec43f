/* qkv/qkv.h: all of the stable interface. */
#ifndef QKV_QKV_H
#define QKV_QKV_H

#include <qkv/chat.h>
#include <qkv/score.h>
#include <qkv/train.h>

#endif
