// Extension modules with event listeners: the shipped example works, and an invalid module stops
// the start with an error that names it.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { loadExtensions } from '../src/extensions.ts'
import { startServer } from './support/app.ts'
import { useNewFolder } from './support/folders.ts'

const folder = useNewFolder('listeners')

const write = (name: string, text: string): void => writeFileSync(join(folder, name), text)

describe('ACCORD_LISTENERS', () => {
  it('loads the example, which refuses a source called Test and tells of others', async () => {
    const told = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    const server = await startServer({ extensions: await loadExtensions(['./src/extensions.example.mjs']) })
    const refused = await server.admin.post('/sources', { name: 'test' })
    expect([refused.status, refused.body.code, refused.body.detail]).toEqual([
      403,
      'event_vetoed',
      'Sources must not be called "Test".',
    ])
    expect(told).not.toHaveBeenCalled()
    expect((await server.admin.post('/sources', { name: 'Trade fair' })).status).toBe(201)
    expect(told.mock.calls).toEqual([['settings.source.create.after: Trade fair, by Example Admin\n']])
    await server.close()
  })

  it('takes files, a folder in the order of its names, and packages, in the order they are listed', async () => {
    const order: string[] = []
    ;(globalThis as { order?: string[] }).order = order
    mkdirSync(join(folder, 'many'))
    write('many/b.mjs', "export default () => globalThis.order.push('b')")
    write('many/a.mjs', "export default () => globalThis.order.push('a')")
    write('one.mjs', "export default () => globalThis.order.push('one')")
    mkdirSync(join(folder, 'node_modules', 'accord-plugin'), { recursive: true })
    write('node_modules/accord-plugin/package.json', '{"name":"accord-plugin","type":"module","main":"main.js"}')
    write('node_modules/accord-plugin/main.js', "export default () => globalThis.order.push('package')")
    const loaded = await loadExtensions(['accord-plugin', 'many', 'one.mjs'], folder)
    for (const extend of loaded) extend({} as never)
    expect(order).toEqual(['package', 'a', 'b', 'one'])
  })

  it.each([
    ['gone.mjs', '', 'does not exist'],
    ['no-such-package', '', 'cannot be loaded'],
    ['broken.mjs', 'export default {', 'cannot be loaded'],
    ['shapeless.mjs', 'export const register = () => {}', 'default export is not a function'],
    ['failing.mjs', "export default () => { throw new Error('no key') }", 'which failed: no key'],
    ['waiting.mjs', 'export default async () => {}', 'default export is async'],
  ])('refuses %s and says why', async (name, text, reason) => {
    if (text !== '') write(name, text)
    const start = async (): Promise<void> => {
      for (const extend of await loadExtensions([name], folder)) extend({} as never)
    }
    await expect(start()).rejects.toThrow(`ACCORD_LISTENERS names "${name}", `)
    await expect(start()).rejects.toThrow(reason)
  })
})
