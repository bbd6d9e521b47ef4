/* answers.h: what the session says to the editor's questions. */
#ifndef TIDE_ANSWERS_H
#define TIDE_ANSWERS_H

#include "repl/edit/host.h"
#include "repl/session/session.h"

/* A host whose ctx is the session, which has to outlive it. */
edit_host answers_host(tide_session *s);

#endif
