// What is wrong with the place where the data is, told from an error: of the database, or of a file beside it. Nobody's fault
// who asked, and over by itself once there is room again, so whoever meets it tries again later.

import type { StorageFault } from './dialect.ts'
import { sqliteDialect } from './sqlite/dialect.ts'

export type { StorageFault as Trouble } from './dialect.ts'

const dialects = [sqliteDialect]

const ofFiles: Readonly<Record<string, StorageFault>> = {
  ENOSPC: 'full',
  EDQUOT: 'full',
  EFBIG: 'full',
  EROFS: 'readonly',
  EIO: 'failing',
}
/** What sockets say as well, of others than us: these count only with the path of a file. */
const ofPaths: Readonly<Record<string, StorageFault>> = {
  EACCES: 'readonly',
  EPERM: 'readonly',
  EMFILE: 'failing',
  ENFILE: 'failing',
}
/** One error in another, at most. */
const deepest = 5

/** Null when the error tells of something else. Looks into causes as well. */
export function storageFaultOf(error: unknown): StorageFault | null {
  for (let [each, depth] = [error, 0]; each instanceof Error && depth < deepest; depth++) {
    const found = dialects.map((dialect) => dialect.storageFault(each)).find((trouble) => trouble !== null)
    const trouble = found ?? ofFile(each)
    if (trouble !== null) return trouble
    each = each.cause
  }
  return null
}

function ofFile({ code, path }: NodeJS.ErrnoException): StorageFault | null {
  if (code === undefined) return null
  return ofFiles[code] ?? (path === undefined ? null : (ofPaths[code] ?? null))
}
