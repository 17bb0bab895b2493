// Clients of the last release against today's server: each request that the released contract
// allows is accepted, and each reply satisfies the released schemas. Keys and enum values may be
// added.
import { readFileSync } from 'node:fs'
import type { ErrorObject, ValidateFunction } from 'ajv'
import { describe, expect, it } from 'vitest'
import { type Operation, resolve } from '../../codegen/read.ts'
import { newAjv } from '../../src/contract/ajv.ts'

process.env.ACCORD_TEST_CLIENTS = 'released'
const { document, fact, facts, follow, parametersOf, sample } = await import('../support/schema.ts')
const { request, send } = await import('./support.ts')
const { useWorld } = await import('./use-world.ts')

const read = (name: string): string[] =>
  readFileSync(new URL(name, import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))

/** Returns the names of the schemas that a part of the contract uses. */
function schemasIn(part: unknown, found = new Set<string>()): Set<string> {
  for (const [, kind = '', name = ''] of JSON.stringify(part).matchAll(/#\/components\/(\w+)\/([\w-]+)/g)) {
    if (found.has(name)) continue
    found.add(name)
    schemasIn(document.components?.[kind]?.[name] ?? {}, found)
  }
  return found
}

/** Operations and schemas that breaking.txt names: the next major version may break them. */
const broken = new Set(read('breaking.txt').map((line) => line.split(/[ .]/)[0] ?? ''))
const isKept = (id: string): boolean => {
  const { path, method } = fact(id)
  return !broken.has(id) && [...schemasIn(document.paths?.[path]?.[method])].every((name) => !broken.has(name))
}

const ajv = newAjv().addSchema(document, 'released')
const compiled = new Map<string, ValidateFunction>()
const pointer = (part: string): string => part.replaceAll('~', '~0').replaceAll('/', '~1')

/** Returns the violations of the released schema of a reply. New values of enums are none. */
function violations(id: string, status: number, body: unknown): string[] {
  const { path, method } = fact(id)
  const { responses = {} } = (document.paths?.[path]?.[method] ?? {}) as Operation
  const reply = responses[status]
  const [type] = Object.keys(resolve(document, reply)?.content ?? {}).filter((each) => each.includes('json'))
  if (type === undefined) return []
  const place = reply?.$ref ?? `#/paths/${pointer(path)}/${method}/responses/${status}`
  const $ref = encodeURI(`released${place}/content/${pointer(type)}/schema`)
  const check = compiled.get($ref) ?? ajv.compile({ $ref })
  compiled.set($ref, check)
  if (check(body)) return []
  const isNewValue = ({ keyword }: ErrorObject): boolean => ['enum', 'anyOf', 'oneOf'].includes(keyword)
  return (check.errors ?? [])
    .filter((each) => !isNewValue(each))
    .map(({ instancePath, message }) => `${instancePath} ${message}`)
}

const world = useWorld()
const uncovered = read('uncovered.txt')
const asked = facts.filter(([id]) => !uncovered.includes(id) && isKept(id))

describe.each(asked)('%s of the last release', (id, { status, method }) => {
  it.each(['example', 'required'] as const)('is answered as then (body: %s)', async (part) => {
    const wanted = request(world, id, part)
    const answer = await send(world, id, wanted)
    // Some records need more values than their schema requires.
    if (part === 'example') expect(answer.status === status ? status : answer.text).toBe(status)
    if (answer.body !== undefined) expect(violations(id, answer.status, answer.body)).toEqual([])
    if (method !== 'get') await world.server.rewind()
  })
})

const lists = asked.filter(([id, { method }]) => method === 'get' && parametersOf(id, 'query').length > 0)

describe.each(lists)('%s of the last release', (id, { status }) => {
  it('takes each of its parameters, with every sort key and other listed value', async () => {
    const refused: string[] = []
    for (const { name, schema } of parametersOf(id, 'query').filter((each) => each.name !== 'cursor')) {
      const listed = schema.enum ?? follow(schema.items).enum
      const values = /_id$/.test(name) ? [1] : ((listed as unknown[] | undefined) ?? [sample(schema)].flat())
      for (const value of values.filter((each) => typeof each !== 'object')) {
        const { url, ...rest } = request(world, id)
        const query = `${encodeURIComponent(name)}=${encodeURIComponent(String(value).replace('2026-03-31', '2026-02-01'))}`
        const answer = await send(world, id, { ...rest, url: `${url}?${query}` })
        if (answer.body?.errors?.[`query.${name}`]) refused.push(`${query}: ${answer.text}`)
        // With `fields`, a client gets only the keys that it names.
        if (answer.status === status && name !== 'fields' && answer.body !== undefined)
          refused.push(...violations(id, status, answer.body).map((each) => `${query}: ${each}`))
      }
    }
    expect(refused).toEqual([])
  })
})
