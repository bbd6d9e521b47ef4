/* draft.h: files that appear whole: written beside their place under another name, synced, and
 * renamed. Whatever happens meanwhile (a full disk, a kill, a power cut), the old file or the new
 * one is there. What a kill leaves of a draft the next draft for the same file takes over. */
#ifndef TD_CORE_DRAFT_H
#define TD_CORE_DRAFT_H

#include "engine/core/status.h"

typedef struct td_draft td_draft;

/* New draft of a regular file, there or to be; where the path is a link, of the file it leads to.
 * Waits while another process or thread writes one of the same file. EIO, ENOMEM, EINTR; messages
 * name the path. */
td_status td_draft_open(const char *path, td_draft **out) TD_MUST_CHECK;
/* Append bytes. EIO, EINTR. */
td_status td_draft_write(td_draft *draft, const void *bytes, size_t n) TD_MUST_CHECK;
/* Let the draft take its place, for good when this returns. EIO; the old file is there then. */
td_status td_draft_commit(td_draft *draft) TD_MUST_CHECK;
/* The same for what can be made again: after a power cut the file may be there without its bytes.
 */
td_status td_draft_replace(td_draft *draft) TD_MUST_CHECK;
/* Free the draft; unless it was committed nothing remains of it. NULL is fine. */
void td_draft_close(td_draft *draft);

#endif
