// The authorization matrix: every operation with every missing right, and every record with callers
// who may and may not see it. All parts share one world.
import { afterAll, describe, expect, it } from 'vitest'
import { facts } from '../support/schema.ts'
import { assignmentCells, writing } from './matrix.assignment.ts'
import { credentialCells } from './matrix.credentials.ts'
import { eventCells } from './matrix.events.ts'
import { listCells } from './matrix.lists.ts'
import { nestedCells } from './matrix.nested.ts'
import { permissionCells } from './matrix.permissions.ts'
import { recordCells } from './matrix.records.ts'
import { referenceCells } from './matrix.references.ts'
import { owners, scopeOf, scopes } from './matrix.scope.ts'
import { secretCells } from './matrix.secrets.ts'
import { sessionCells } from './matrix.sessions.ts'
import { tokenCells } from './matrix.tokens.ts'
import { Cells } from './matrix.ts'
import type { World } from './support.ts'
import { useWorld } from './use-world.ts'

const cells = new Cells()
const world = useWorld({ config: { tokenIdleDays: 30 } })
afterAll(() => console.info(cells.summary()))

const of = (): World => world

describe('credentials', () => credentialCells(of, cells))
describe('permissions and abilities', () => permissionCells(of, cells))
describe('records', () => recordCells(of, cells))
describe('references', () => referenceCells(of, cells))
describe('lists', () => listCells(of, cells))
describe('events', () => eventCells(of, cells))
describe('records of other types', () => nestedCells(of, cells))
describe('bodies', () => assignmentCells(of, cells))
describe('sessions', () => sessionCells(of, cells))
describe('ceilings', () => tokenCells(of, cells))
describe('secrets', () => secretCells(of, cells))

/** Returns the columns in which an operation must have a cell, by its facts in the contract. */
function columnsOf(id: string, fact: (typeof facts)[number][1]): string[] {
  const { permission, ability, method } = fact
  if (fact.public) return [' is public', ', without a token and with a bad one']
  const entity = scopeOf(id)
  return [
    ' is public',
    ...badTokens.map((name) => `, ${name}`),
    ...['text/html', '*/*', ''].map((accept) => `, Accept: ${accept}`),
    ...(permission === null
      ? [' is for any user', ', no key at all']
      : [`, every key but ${permission}`, ', no key at all', `, ${permission} and ${ability} alone`]),
    ...(ability === null ? [] : [`, without the ability ${ability}`]),
    ...[', a session that is ended', ', a session from elsewhere'],
    ...(method === 'get' ? [] : [', a session with the value of another']),
    ...(entity === undefined
      ? []
      : owners
          .filter((owner) => owner !== 'none' || scopes[entity]?.isAlwaysOwned !== true)
          .map((owner) => ` of ${owner}, individual view`)),
    ...(writing.some(([name]) => name === id) ? [', __proto__'] : []),
    ' does nothing',
  ]
}
const badTokens = [
  ...['no token', 'garbage', 'an unknown id', 'a wrong secret', 'revoked', 'expired', 'idle for too long'],
  ...['from another address', 'of an inactive user'],
]

describe('the matrix', () => {
  it('has a cell for every operation in every column', () => {
    const wanted = facts.flatMap(([id, fact]) => columnsOf(id, fact).map((column) => `${id}${column}`))
    expect(wanted.length).toBeGreaterThan(facts.length * 15)
    expect(wanted.filter((name) => !cells.has(name))).toEqual([])
  })
})
