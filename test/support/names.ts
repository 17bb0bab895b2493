// Names that no other test uses. Not from the randomness of Node.js, which the differential run
// replaces.
import { threadId } from 'node:worker_threads'

let count = 0
const since = Date.now().toString(36)

/** Of letters, digits and `_`, so that it can name a folder, a database or a schema. */
export const newName = (prefix: string): string => `${prefix}_${since}_${process.pid}_${threadId}_${++count}`
