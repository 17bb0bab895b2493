// The examples of the contract are valid, and every operation replies to its example request with
// its success status. uncovered.txt lists the exceptions and may only shrink.
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { type Operation, resolve } from '../../codegen/read.ts'
import { type ProblemCode, problemCodes, titles } from '../../src/contract/output/problem-codes.ts'
import { document, fact, facts, follow, type SchemaObject } from '../support/schema.ts'
import { request, schemaFindings, send } from './support.ts'
import { useWorld } from './use-world.ts'

const uncovered = readFileSync(new URL('uncovered.txt', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))

const world = useWorld()

describe('the world of the walkers', () => {
  it('holds one of everything the contract can create, with every link', () => {
    expect(world.missing).toEqual([])
  })
})

const examples = Object.entries((document.components?.schemas ?? {}) as Record<string, SchemaObject>).flatMap(
  ([name, { examples = [] }]) => examples.map((example, index) => ({ name, index, example })),
)

describe.each(examples)('example $index of $name', ({ name, example }) => {
  it('is valid, without a key the schema lacks', () => {
    expect(schemaFindings(name, example)).toEqual([])
  })
})

describe('a code of a problem', () => {
  it('is one of those the server knows', () => {
    expect(follow({ $ref: '#/components/schemas/ProblemCode' }).enum).toEqual(Object.keys(problemCodes))
  })
})

describe.each(facts)('%s', (_id, { path, method }) => {
  const operation = document.paths?.[path]?.[method] as Operation
  const refusals = Object.entries(operation.responses ?? {}).filter(([status]) => Number(status) >= 400)

  it('shows for each refusal a problem of that status, and refuses in no other form', () => {
    for (const [status, reply] of refusals) {
      const { content = {} } = resolve(document, reply) ?? {}
      expect(Object.keys(content)).toEqual(['application/problem+json'])
      const { schema, example } = content['application/problem+json'] ?? {}
      expect(schema).toEqual({ $ref: '#/components/schemas/Problem' })
      const { code, title, ...problem } = example as { code: ProblemCode; title: string; status: number }
      expect([problem.status, problemCodes[code][0], title]).toEqual([
        Number(status),
        Number(status),
        titles[Number(status)],
      ])
      expect(schemaFindings('Problem', example)).toEqual([])
    }
  })
})

describe.each(facts.filter(([id]) => !uncovered.includes(id)))('%s', (id, { status }) => {
  it(`answers ${status} to the request its examples describe`, async () => {
    const answer = await send(world, id, request(world, id))
    expect(answer.status === status ? status : answer.text).toBe(status)
    if (fact(id).method !== 'get') await world.server.rewind()
  })
})

/** An example must not name a date that has to be in the future. */
describe('five years later', () => {
  const later = useWorld({ at: '2031-03-01T09:30:00.000Z' })

  const tried = facts.filter(([id, { method }]) => method !== 'get' && !uncovered.includes(id))
  it.each(tried)('%s still accepts the request that its examples describe', async (id, { status, dryRun }) => {
    const headers: Record<string, string> = dryRun ? { 'accord-dry-run': 'true' } : {}
    const answer = await send(later, id, { ...request(later, id), headers })
    const expected = dryRun ? 200 : status
    expect(answer.status === expected ? expected : answer.text).toBe(expected)
    if (!dryRun) await later.server.rewind()
  })
})

describe('uncovered.txt', () => {
  it('names only operations the contract has and the walkers cannot reach', async () => {
    const reached: string[] = []
    for (const id of uncovered) {
      expect(facts.map(([known]) => known)).toContain(id)
      const answer = await send(world, id, request(world, id)).catch(() => undefined)
      if (answer?.status === fact(id).status) reached.push(id)
      await world.server.rewind()
    }
    expect(reached, 'These are reached by now: take them out of uncovered.txt.').toEqual([])
  })
})
