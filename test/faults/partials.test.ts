// A backup removes only incomplete backups of the same installation whose process has ended.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { installationOf } from '../../db/installation.ts'
import { openCopy } from '../../db/store.ts'
import { nameOf, newOwnerId, self } from '../../src/kernel/runtime/process-identity.ts'
import { accord } from '../support/accord.ts'
import { useNewFolder } from '../support/folders.ts'

const settings = { ACCORD_PORT: '0', ACCORD_ADMIN_PASSWORD: 'correct horse battery', ACCORD_LOG_LEVEL: 'error' }

const folder = useNewFolder('start')

const inData = (...names: string[]): string => join(folder, 'data', ...names)

describe('a partial backup', () => {
  it('goes with the next backup when its process is gone, and stays while it is made or belongs to others', async () => {
    expect((await accord(folder, ['install'], settings)).code).toBe(0)
    const copy = openCopy(inData('accord.db'))
    const own = await installationOf(copy)
    await copy.close()
    const gone = nameOf({ ...self, pid: 4_194_303, began: '' }, 'x')
    const partials: [name: string, owner: string][] = [
      ['killed', `${gone}\n${own}\n`],
      ['being-made', `${newOwnerId()}\n${own}\n`],
      ['of-others', `${gone}\nanother\n`],
    ]
    for (const [name, owner] of partials) {
      mkdirSync(join(folder, 'to', `.${name}-Z.partial`), { recursive: true })
      writeFileSync(join(folder, 'to', `.${name}-Z.partial`, 'owner'), owner)
    }
    const { code } = await accord(folder, ['backup', '--to', join(folder, 'to')], settings)
    expect(code).toBe(0)
    const left = readdirSync(join(folder, 'to'))
    expect(left.filter((name) => name.endsWith('.partial')).sort()).toEqual([
      '.being-made-Z.partial',
      '.of-others-Z.partial',
    ])
    const made = left.find((name) => !name.startsWith('.')) ?? ''
    expect(readdirSync(join(folder, 'to', made))).not.toContain('owner')
  })
})
