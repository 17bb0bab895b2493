// A PUT of a whole reply warns when it is of an older version and changes something.
import { describe, expect, it } from 'vitest'
import { facts } from '../support/schema.ts'
import { request, send } from './support.ts'
import { useWorld } from './use-world.ts'

const world = useWorld()

const ids = facts
  .filter(
    ([, { method, ignorable, path }]) =>
      method === 'put' && path.endsWith('{id}') && ignorable?.keys.includes('version'),
  )
  .map(([id]) => id)

describe('a body with the version of a reply', () => {
  let changed = 0
  it.each(ids)('warns in %s if the record has a newer one', async (id) => {
    const { body, ...rest } = request(world, id)
    const put = (version: number, headers: Record<string, string> = {}) =>
      send(world, id, { ...rest, body: { ...body, version }, headers: { 'accord-dry-run': 'true', ...headers } })
    const stale = await put(0)
    expect(stale.status, stale.text).toBe(200)
    const { version } = stale.body.data
    const warnings = ({ body: reply }: typeof stale): string[] =>
      (reply.meta?.warnings ?? []).flatMap(({ field, message }: { field: string; message: string }) =>
        field === 'version' ? message : [],
      )
    if (warnings(stale).length === 0) {
      // The example of the contract changes nothing here.
      expect(warnings(await put(version))).toEqual([])
      return
    }
    changed++
    expect(warnings(stale)).toEqual([
      `The record had version ${version - 1}, so this body of version 0 may have replaced newer values. With If-Match, such a change is refused.`,
    ])
    expect(warnings(await put(version - 1))).toEqual([])
    expect(warnings(await put(0, { 'if-match': `"${version - 1}"` }))).toEqual([])
  })

  it('changes most records', () => {
    expect(changed).toBeGreaterThanOrEqual(20)
  })
})
