// The authorisation matrix: every operation of the contract against everything a caller can lack, and every record against who may
// see it. One world for all parts; the last line says how many cells there are and how many are wrong.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { facts } from '../support/schema.ts'
import { assignmentCells } from './matrix.assignment.ts'
import { credentialCells } from './matrix.credentials.ts'
import { listCells } from './matrix.lists.ts'
import { permissionCells } from './matrix.permissions.ts'
import { recordCells } from './matrix.records.ts'
import { referenceCells } from './matrix.references.ts'
import { secretCells } from './matrix.secrets.ts'
import { sessionCells } from './matrix.sessions.ts'
import { tokenCells } from './matrix.tokens.ts'
import { counted, summary } from './matrix.ts'
import { startWorld, type World } from './support.ts'

let world: World
beforeAll(async () => {
  world = await startWorld({ config: { tokenIdleDays: 30 } })
})
afterAll(async () => {
  await world.server.close()
  console.info(summary())
})

const of = (): World => world

describe('credentials', () => credentialCells(of))
describe('permissions and abilities', () => permissionCells(of))
describe('records', () => recordCells(of))
describe('references', () => referenceCells(of))
describe('lists', () => listCells(of))
describe('bodies', () => assignmentCells(of))
describe('sessions', () => sessionCells(of))
describe('ceilings', () => tokenCells(of))
describe('secrets', () => secretCells(of))

describe('the matrix', () => {
  it('has a cell for every operation in every column', () => {
    expect(counted().cells).toBeGreaterThan(facts.length * 15)
  })
})
