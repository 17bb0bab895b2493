// Malformed requests to every operation: bodies that are not a JSON object, invalid ids, wrong
// methods and invalid encoding. Each gets its documented problem, never a 5xx, and nothing is
// written.
import { describe, expect, it } from 'vitest'
import { bodySchema, creatorOfUpsert, fact, facts, parametersOf, takesFormOnly, takesLines } from '../support/schema.ts'
import { unknownId } from './breakages.ts'
import { changesNothing, request, send, short, urlOf } from './support.ts'
import { useWorld } from './use-world.ts'

const world = useWorld()

const ids = facts.filter(([, each]) => each.servedBy === 'handler').map(([id]) => id)
const tooLarge = JSON.stringify({ a: 'x'.repeat(1024 * 1024) })
const tooMany = `{"a":[${'[],'.repeat(10_001)}[]]}`

const ofJson = (id: string): boolean => bodySchema(id) !== undefined && !takesFormOnly(id) && !takesLines(id)

describe.each(ids.filter(ofJson))('%s', (id) => {
  it('answers 400 to a body that is no JSON object, 415 to another media type, 413 to more than a mebibyte or 10,000 values', async () => {
    const valid = { ...request(world, id) }
    const answer = async (body: unknown, headers: Record<string, string> = {}): Promise<string> => {
      const { status, body: problem } = await send(world, id, { ...valid, body, headers })
      return `${status} ${problem?.code}`
    }
    const findings = await changesNothing(world, async () => {
      for (const text of [
        '{"a":',
        '[]',
        '"text"',
        'null',
        '42',
        '{"a":1}{}',
        "{'a':1}",
        Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]),
      ]) {
        expect.soft(await answer(text), short(String(text))).toBe('400 malformed_json')
      }
      const nested = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
      for (const levels of [40, 900]) expect.soft(await answer(nested(levels))).toBe('400 malformed_json')
      expect.soft(await answer(nested(20_000))).toBe('413 payload_too_large')
      for (const type of [
        'text/plain',
        'application/xml',
        'multipart/form-data; boundary=x',
        'application/jsonx',
        'nonsense',
      ].filter((each) => !fact(id).consumes.includes(each.split(';')[0] ?? ''))) {
        expect.soft(await answer('{}', { 'content-type': type }), type).toBe('415 unsupported_media_type')
      }
      expect.soft(await answer(tooLarge)).toBe('413 payload_too_large')
      expect.soft(await answer(tooMany)).toBe('413 payload_too_large')
      if (fact(id).bodyRequired) expect.soft(await answer('')).toBe('400 malformed_json')
    })
    expect(findings).toEqual([])
  })
})

describe.each(ids.filter((id) => fact(id).consumes.includes('multipart/form-data')))('%s', (id) => {
  it('answers 400 to a form that cannot be read, and 413 to one that is too long', async () => {
    const type = 'multipart/form-data; boundary=x'
    const part = '--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'
    const answer = async (body: string | Buffer, headers: Record<string, string>): Promise<string> => {
      const { status, body: problem } = await send(world, id, { ...request(world, id), body, headers })
      return `${status} ${problem?.code}`
    }
    const findings = await changesNothing(world, async () => {
      for (const text of ['{}', part, `${part}cut off`, '--x\r\n\r\n\r\n--x', '--x'])
        expect.soft(await answer(text, { 'content-type': type }), text).toBe('400 malformed_request')
      expect.soft(await answer('{}', { 'content-type': 'multipart/form-data' })).toBe('400 malformed_request')
      const large = Buffer.alloc((fact(id).maxFormBytes ?? 0) + 1)
      expect.soft(await answer(large, { 'content-type': type })).toBe('413 payload_too_large')
      if (takesFormOnly(id))
        if (!fact(id).consumes.includes('*/*'))
          expect.soft(await answer('{}', { 'content-type': 'application/json' })).toBe('415 unsupported_media_type')
    })
    expect(findings).toEqual([])
  })
})

describe.each(ids.filter((id) => parametersOf(id, 'path').length > 0 && creatorOfUpsert(id) === undefined))(
  '%s',
  (id) => {
    it('answers 404 to a malformed id and to an unknown one', async () => {
      const findings = await changesNothing(world, async () => {
        for (const { name } of parametersOf(id, 'path')) {
          for (const text of [
            '0',
            '-1',
            'abc',
            '1.5',
            '1e20',
            '9007199254740993',
            '99999999999999999999',
            '0x1',
            '%20',
            'null',
            String(unknownId),
          ]) {
            const { status, body } = await send(world, id, {
              ...request(world, id),
              url: urlOf(world, id, world.main, { [name]: text }),
            })
            expect.soft([status, body?.code], `{${name}} = ${text}`).toEqual([404, 'not_found'])
          }
        }
      })
      expect(findings).toEqual([])
    })

    it('is not refused where an id is left out: every caller gets 404 as at any unknown path', async () => {
      const { method } = fact(id)
      const { token } = world.server.admin
      for (const { name } of parametersOf(id, 'path')) {
        // Two slashes at the end, of which only one is ignored.
        const url = `${urlOf(world, id, world.main, { [name]: '' })}/`
        for (const headers of [{}, { authorization: `Bearer ${token}` }]) {
          const { statusCode, body } = await world.server.inject({
            method: method.toUpperCase() as 'GET',
            url,
            headers,
          })
          const { code, detail } = JSON.parse(body)
          expect.soft([statusCode, code, detail], url).toEqual([404, 'not_found', 'There is nothing at this path.'])
        }
      }
    })
  },
)

const paths = [...new Map(facts.map(([id, { path }]) => [path, id]))]

describe.each(paths)('%s', (path, id) => {
  it('answers 405 with Allow to every other method', async () => {
    const known = facts.filter(([, each]) => each.path === path).map(([, { method }]) => method.toUpperCase())
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH'].filter((each) => !known.includes(each))) {
      const { status, body, headers } = await send(world, id, { method, url: urlOf(world, id), token: null })
      expect.soft([method, status, body?.code]).toEqual([method, 405, 'method_not_allowed'])
      expect
        .soft(headers.allow?.split(', ').sort())
        .toEqual([...known, ...(known.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].sort())
    }
  })

  it('answers 400 or 404 to broken percent-encoding, or does not look at it', async () => {
    const { method, servedBy } = fact(id)
    const isDocs = servedBy === 'docs'
    for (const query of ['q=%zz', '%ff=1']) {
      const { status } = await send(world, id, { method: method.toUpperCase(), url: `${urlOf(world, id)}?${query}` })
      expect.soft(isDocs ? [200, 400, 404] : [400], query).toContain(status)
    }
    // A path with invalid encoding matches no operation, so the reply is not checked against one.
    for (const { name } of parametersOf(id, 'path')) {
      const url = urlOf(world, id, world.main, { [name]: '%zz' })
      const { statusCode } = await world.server.inject({ method: method.toUpperCase() as 'GET', url })
      // For a path of the documentation, the router returns 404.
      expect.soft(isDocs ? [400, 404] : [400], url).toContain(statusCode)
    }
  })
})

describe('a mass operation', () => {
  it.each(ids.filter((id) => /\/mass-\w+$/.test(fact(id).path)))(
    '%s says of every unknown record that there is none, and answers 422',
    async (id) => {
      const findings = await changesNothing(world, async () => {
        const wanted = request(world, id)
        const { status, body } = await send(world, id, {
          ...wanted,
          body: { ...wanted.body, ids: [unknownId, unknownId] },
        })
        expect.soft([status, body.code]).toEqual([422, 'mass_failed'])
        expect.soft(body.failed).toMatchObject([{ id: unknownId, status: 404, code: 'not_found' }])
      })
      expect(findings).toEqual([])
    },
  )
})

describe('a query string', () => {
  it('of more than 8 KiB answers 400', async () => {
    const { status, body } = await send(world, 'listSources', {
      method: 'GET',
      url: `/api/admin/sources?q=${'x'.repeat(9000)}`,
    })
    expect([status, body.code]).toEqual([400, 'malformed_request'])
  })
})
