/* elements.h: code that looks at elements to choose the way that a call goes.
 *
 * Tensors of the device meta have no elements: there it takes a way that gives the right shapes.
 * Whoever runs calls on stand-ins to learn what they are made of must know that with elements it
 * might have been another way.
 */
#ifndef TD_CORE_ELEMENTS_H
#define TD_CORE_ELEMENTS_H

#include "engine/core/tensor.h"

/* td_has_elements, asked before elements choose a way; a "no" is counted. (What is only checked is
 * the same with and without elements: that asks td_has_elements.) */
bool td_may_look(const td_tensor *x);
/* How often the thread was told no; and back to a former count, behind calls that will be made
 * again when there are elements. */
unsigned td_looks_missed(void);
void td_looks_forget(unsigned missed);

#endif
