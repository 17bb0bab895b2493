// Creates names that no other test uses. They are not random, because the differential run replaces
// the random functions of Node.js.
import { threadId } from 'node:worker_threads'

let count = 0
const since = Date.now().toString(36)

/** Returns a name of letters, digits and `_`, which is valid for folders, databases and schemas. */
export const newName = (prefix: string): string => `${prefix}_${since}_${process.pid}_${threadId}_${++count}`
