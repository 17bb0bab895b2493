// Generates the URL of a request: the path and query of an operation with ids and values, valid or
// invalid.

import { signatureOf } from '../../src/resources/files/signed-links.ts'
import { badTexts } from '../contract/breakages.ts'
import type { TestServer } from '../support/app.ts'
import { entityOf, fact, follow, parametersOf, type SchemaObject, sample, typesOf } from '../support/schema.ts'
import { escaped } from './bodies.ts'
import { moments, numerals } from './ends.ts'
import { hostileText, letters, mark } from './hostile.ts'
import { idOf, type Pool } from './pool.ts'
import type { Random } from './random.ts'
import type { Wanted } from './requests.ts'
import { valid } from './values.ts'

const methods = [
  'GET',
  'POST',
  'PUT',
  'DELETE',
  'PATCH',
  'HEAD',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'SEARCH',
  'LOCK',
  'REPORT',
]

export function atTheDoor(random: Random, wanted: Wanted): Wanted {
  const [path = '', ...rest] = wanted.url.split('?')
  const query = rest.length > 0 ? `?${rest.join('?')}` : ''
  const kind = random.weighted({ method: 30, suffix: 30, inside: 20, unknown: 10, query: 10 })
  if (kind === 'method') return { ...wanted, method: random.pick(methods) }
  if (kind === 'suffix')
    return {
      ...wanted,
      url: `${path}${random.pick(['/', '//', '/.', '/..', '/%2e%2e', '%00', '%zz', '%', ';x=1', '.json', '/x', '%20', '/%2f', '\\', '#a', `/${'a'.repeat(9_000)}`, '%c0%ae', '/1'])}${query}`,
    }
  if (kind === 'inside') {
    const parts = path.split('/')
    parts.splice(
      random.whole(1, parts.length),
      random.whole(0, 1),
      random.pick([
        '',
        '..',
        '.',
        '%2e%2e',
        '%00',
        '%zz',
        '%ff',
        'ADMIN',
        'a'.repeat(300),
        '{id}',
        ':id',
        '*',
        '%E2%80%AE',
      ]),
    )
    return { ...wanted, url: `${parts.join('/') || '/'}${query}` }
  }
  if (kind === 'unknown')
    return {
      ...wanted,
      operation: null,
      url: random.pick([
        '/',
        '*',
        '//',
        '/.env',
        '/api',
        '/api/admin',
        '/api/admin/',
        '/admin/../api/admin/leads',
        `/${'x/'.repeat(500)}`,
        '/favicon.ico',
        '/api/admin/documentation/static/../../package.json',
        '/api/admin/documentation/%2e%2e/x',
        '/u',
        '/u/',
        `/u/${'t'.repeat(20_000)}`,
        '/web-forms/forms/x',
        '/?',
        '/%',
        `/${mark}`,
      ]),
    }
  return {
    ...wanted,
    url: `${path}?${random.pick(['&&&', '=', '?', '[]=1', 'a[b][c]=1', 'id[gt]=1&id[gt]=2', 'a=%', 'x='.repeat(1_000), `q=${'x'.repeat(8_180)}`, `q=${'x'.repeat(8_190)}`, `q=${'%F0%9F%98%80'.repeat(1_000)}`, 'per_page=1&per_page=2', '__proto__[x]=1', 'constructor=1', 'page=1;per_page=2', 'PAGE=1', '%70age=1', 'page%5B%5D=1', 'sort=-id,-id,id,x', 'fields=', 'fields=id,id,,x'])}`,
  }
}

const oddIds = [
  '0',
  '-1',
  '1.5',
  '1e3',
  '0x1',
  '007',
  '+1',
  ' 1',
  '%31',
  '9007199254740993',
  '99999999999999999999',
  'NaN',
  'null',
  'undefined',
  "1'",
  '1%00',
  '1%2f2',
  '..',
  '%2e%2e',
  '١',
  '%D9%A1',
  'a'.repeat(200),
  '1,2',
  '%ff',
  'new',
  'kanban',
  'export',
]

export function pathOf(random: Random, pool: Pool, id: string, share: number): string {
  const { path } = fact(id)
  const parts = pool.parts.get(path.replace(/\/\{\w+\}$/, ''))
  if (parts !== undefined && random.chance(0.7)) return random.pick(parts)
  const isGone = /\/(restore|untrash)$/.test(path)
  let before = ''
  return path
    .split('/')
    .map((part) => {
      const name = /^\{(\w+)\}$/.exec(part)?.[1]
      const entity = name === undefined || name === 'id' ? before : (entityOf(name) ?? before)
      before = part
      if (name === undefined) return part
      if (random.chance(share))
        return random.chance(0.7)
          ? random.pick(oddIds)
          : encodeURIComponent(hostileText(random).replaceAll(/[\ud800-\udfff]/gu, '')).slice(0, 17_000) || '0'
      const choices = parametersOf(id, 'path').flatMap((each) => (each.name === name ? (each.schema.enum ?? []) : []))
      if (choices.length > 0) return String(random.pick(choices as unknown[]))
      const texts = pool.texts.get(name)
      if (texts !== undefined) return random.pick(texts)
      return String(idOf(pool, random, entity, isGone))
    })
    .join('/')
}

export function queryOf(
  random: Random,
  pool: Pool,
  server: TestServer,
  id: string,
  path: string,
  share: number,
): string {
  const known = parametersOf(id, 'query')
  const chosen = known.filter(({ required }) => required && !random.chance(share / 3))
  for (let count = known.length > 0 ? random.few(6) : 0; count > 0; count--) chosen.push(random.pick(known))
  const expires = Math.floor(server.clock.now().getTime() / 1000) + random.pick([60, 60, 60, -1, 0])
  const pairs = chosen.map(({ name, schema }) => {
    const isSigned = name === 'signature' && random.chance(0.7)
    const text = isSigned
      ? signatureOf(server.app.services, Number(/\/(\d+)\//.exec(path)?.[1] ?? 0), expires)
      : name === 'expires' && random.chance(0.9)
        ? String(expires)
        : parameterText(random, pool, name, schema, random.chance(share))
    const key = random.chance(0.5) ? name.replaceAll('[', '%5B').replaceAll(']', '%5D') : name
    return `${key}=${escaped(random, text)}`
  })
  if (random.chance(share / 4))
    pairs.push(
      `${escaped(random, hostileText(random, 30).slice(0, 5_000))}=${escaped(random, hostileText(random, 30).slice(0, 5_000))}`,
    )
  if (pairs.length > 0 && random.chance(share / 4)) pairs.push(random.pick(pairs))
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

function parameterText(random: Random, pool: Pool, name: string, schema: SchemaObject, isBad: boolean): string {
  if (isBad) {
    const kind = random.weighted({ listed: 40, hostile: 30, number: 15, moment: 10, cursor: 5 })
    if (kind === 'listed') return random.pick([...badTexts(schema), ''])
    if (kind === 'number') return random.pick(numerals)
    if (kind === 'moment') return random.pick(moments)
    if (kind === 'cursor') return Buffer.from(JSON.stringify({ id: 1, after: null })).toString('base64url')
    return hostileText(random, 255).slice(0, 7_000)
  }
  if (name === 'q' || name === 'search')
    return random.chance(0.5) ? letters(random, random.whole(1, 12)) : hostileText(random, 60).slice(0, 200)
  const ids = (entity: string): number => idOf(pool, random, entity)
  const types = typesOf(schema)
  const value = types.includes('array')
    ? Array.from({ length: random.whole(1, 3) }, () => valid(random, follow(schema.items), ids, name))
    : valid(random, schema, ids, name)
  if (random.chance(0.15) && Array.isArray(schema.examples)) return String(sample(schema))
  return [value]
    .flat()
    .map((each) => (each === null ? '' : typeof each === 'object' ? JSON.stringify(each) : String(each)))
    .join(',')
}
