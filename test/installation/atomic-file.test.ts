// Files of the data folder are written atomically, and temporary files of a crash are removed.
import { readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { removeStaleDrafts, writeFileAtomic } from '../../src/installation/atomic-file.ts'
import { useNewFolder } from '../support/folders.ts'

const folder = useNewFolder('whole')

describe('a file of the data folder', () => {
  it('is the first or none, with the rights it was to have, and leaves no draft', () => {
    const path = join(folder, 'secret')
    expect(writeFileAtomic(path, 'first', { mode: 0o600, isFirst: true })).toBe(true)
    expect(writeFileAtomic(path, 'second', { mode: 0o600, isFirst: true })).toBe(false)
    expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o777, readdirSync(folder)]).toEqual([
      'first',
      0o600,
      ['secret'],
    ])
    expect(writeFileAtomic(path, 'third')).toBe(true)
    expect([readFileSync(path, 'utf8'), readdirSync(folder)]).toEqual(['third', ['secret']])
  })

  it('whose writing was cut off is swept once it is old, and nothing else is', () => {
    const draft = (name: string): string => `.${name}.0198c0de-0000-4000-8000-000000000000.new`
    for (const name of [draft('secret'), draft('openapi.json'), 'secret', 'notes.new'])
      writeFileSync(join(folder, name), '')
    for (const name of [draft('secret'), 'secret', 'notes.new']) utimesSync(join(folder, name), 0, 0)
    removeStaleDrafts(folder, new Date(Date.now() - 3_600_000))
    expect(readdirSync(folder).sort()).toEqual([draft('openapi.json'), 'notes.new', 'secret'])
  })
})
