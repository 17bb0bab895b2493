// Recognizes storage faults in errors of the database and of files. The caller of the API has not
// caused such a fault and may retry later.

import type { StorageFault } from './dialect.ts'
import { postgresDialect } from './postgres/dialect.ts'
import { sqliteDialect } from './sqlite/dialect.ts'

const dialects = [sqliteDialect, postgresDialect]

const fileCodes: Readonly<Record<string, StorageFault>> = {
  ENOSPC: 'full',
  EDQUOT: 'full',
  EFBIG: 'full',
  EROFS: 'readonly',
  EIO: 'failing',
  ERR_FILE_STORAGE: 'filestorage',
}
/** Sockets report these codes, too, so they are storage faults only in errors with a path. */
const pathCodes: Readonly<Record<string, StorageFault>> = {
  EACCES: 'readonly',
  EPERM: 'readonly',
  EMFILE: 'failing',
  ENFILE: 'failing',
}
/** The maximum number of errors to check in a chain of causes. */
const maxDepth = 5

/** Returns the storage fault that the error or a cause of the error reports, or null. */
export function storageFaultOf(error: unknown): StorageFault | null {
  for (let [each, depth] = [error, 0]; each instanceof Error && depth < maxDepth; depth++) {
    const found = dialects.map((dialect) => dialect.storageFault(each)).find((fault) => fault !== null)
    const fault = found ?? fileFaultOf(each)
    if (fault !== null) return fault
    each = each.cause
  }
  return null
}

function fileFaultOf({ code, path }: NodeJS.ErrnoException): StorageFault | null {
  if (code === undefined) return null
  return fileCodes[code] ?? (path === undefined ? null : (pathCodes[code] ?? null))
}
