// Temporary folders for the tests of a file or of a `describe` block.
import { mkdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { newName } from './names.ts'

const pathOf = (name: string): string => join(tmpdir(), newName(`accord-${name}`))
const create = (path: string) => () => void mkdirSync(path, { mode: 0o700 })
const remove = (path: string) => () => rmSync(path, { recursive: true, force: true })

/** Returns the path of a folder that exists during all tests. */
export function useFolder(name: string): string {
  const path = pathOf(name)
  beforeAll(create(path))
  afterAll(remove(path))
  return path
}

/** Returns the path of a folder that is empty at the start of each test. */
export function useNewFolder(name: string): string {
  const path = pathOf(name)
  beforeEach(create(path))
  afterEach(remove(path))
  return path
}
