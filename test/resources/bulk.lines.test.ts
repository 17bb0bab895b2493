// The lines of a bulk write: what they do, what refuses them, and how a body is read.
import { describe, expect, it } from 'vitest'
import { operations } from '../../src/contract/operations.gen.ts'
import type { OperationFact, Schema } from '../../src/contract/types.ts'
import { resources } from '../../src/operations.ts'
import { operationsByType } from '../../src/resources/bulk/read-line.ts'
import type { Caller } from '../support/app.ts'
import { given, validBody } from '../support/given.ts'
import { newName } from '../support/names.ts'
import { document } from '../support/schema.ts'
import { useServer } from '../support/using.ts'
import { addUser } from '../support/viewers.ts'

const server = useServer()
const { admin } = server
const make = given(admin)

type Answer = Schema<'BulkAnswer'>
interface Sending {
  caller?: Caller
  headers?: Record<string, string>
  query?: Record<string, string>
}

const linesType = { 'content-type': 'application/x-ndjson' }

/** Sends a body of lines, and returns the whole reply. */
const sendText = (text: string | Buffer, { caller = admin, headers, query }: Sending = {}) =>
  caller.post('/bulk', text, { headers: { ...linesType, ...headers }, ...(query && { query }) })

const answersOf = (text: string): Answer[] =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Answer)

async function send(lines: readonly unknown[], sending?: Sending): Promise<Answer[]> {
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
  const reply = await sendText(text, sending)
  if (reply.status !== 200) throw new Error(reply.text)
  return answersOf(reply.text)
}

const person = (externalId: string, more: object = {}) => ({
  op: 'upsert',
  type: 'persons',
  external_id: externalId,
  fields: { name: 'Ada Lovelace', emails: [{ value: `${newName('ada')}@example.com`, label: 'work' }], ...more },
})
const lead = (fields: object = {}, more: object = {}) => ({
  op: 'create',
  type: 'leads',
  fields: { title: newName('Deal'), lead_value: 10, ...fields },
  ...more,
})

const did = (answers: readonly Answer[]) => answers.map((each) => each.did ?? each.problem?.code)
const errorsOf = (answer: Answer | undefined) => answer?.problem?.errors
const count = async (): Promise<number> =>
  Number(
    (
      await server.store.db
        .selectFrom('leads')
        .select(({ fn }) => fn.countAll().as('n'))
        .executeTakeFirst()
    )?.n,
  )
const events = async () => server.store.db.selectFrom('events').select(['name', 'entity_id']).orderBy('id').execute()

describe('bulkWrite', () => {
  it('creates, updates and deletes records of any types, and answers each line in order', async () => {
    const from = (await events()).length
    const id = newName('id')
    const answers = await send([
      person(`hubspot:${id}`),
      lead({ person_id: { external_id: `hubspot:${id}` } }, { external_id: `shop:${id}` }),
      { op: 'update', type: 'leads', external_id: `shop:${id}`, fields: { lead_value: 20 } },
      { op: 'upsert', type: 'leads', external_id: `shop:${id}`, fields: { lead_value: 20 } },
      { op: 'create', type: 'tags', fields: { name: newName('Tag') } },
      { op: 'delete', type: 'leads', external_id: `shop:${id}` },
    ])
    expect(did(answers)).toEqual(['created', 'created', 'updated', 'unchanged', 'created', 'deleted'])
    expect(answers.map(({ line }) => line)).toEqual([1, 2, 3, 4, 5, 6])
    expect(answers.map(({ status }) => status)).toEqual([201, 201, 200, 200, 201, 200])
    expect(answers[2]).toEqual({ line: 3, status: 200, did: 'updated', id: answers[1]?.id, version: 2 })
    const logged = (await events()).slice(from)
    expect(logged.map(({ name }) => name)).toEqual([
      'contacts.person.create.after',
      'lead.create.after',
      'lead.update.after',
      'settings.tag.create.after',
      'lead.delete.after',
    ])
    const shown = await admin.get(`/contacts/persons/${answers[0]?.id}`)
    expect(shown.body.data).toMatchObject({ name: 'Ada Lovelace', external_ids: { hubspot: id } })
  })

  it('writes nothing and logs nothing for lines that were sent before', async () => {
    const lines = Array.from({ length: 250 }, () => person(`hubspot:${newName('again')}`))
    expect(new Set(did(await send(lines)))).toEqual(new Set(['created']))
    const before = (await events()).length
    expect(new Set(did(await send(lines)))).toEqual(new Set(['unchanged']))
    expect((await events()).length).toBe(before)
  })

  it('carries a line out whole or not at all, and goes on after a refused one', async () => {
    const [leads, logged] = [await count(), (await events()).length]
    const answers = await send([
      lead(),
      lead({ title: '', person_id: 999_999 }),
      lead({ lead_valu: 5 }),
      'nonsense',
      lead({ person: { name: 'New' }, tag_ids: [999_999] }),
      lead(),
    ])
    expect(did(answers)).toEqual([
      'created',
      'validation_failed',
      'validation_failed',
      'malformed_json',
      'validation_failed',
      'created',
    ])
    expect(errorsOf(answers[1])).toMatchObject({ title: [expect.any(String)], person_id: [expect.any(String)] })
    expect(errorsOf(answers[2])).toEqual({ lead_valu: ['Unknown field. Did you mean `lead_value`?'] })
    expect(await count()).toBe(leads + 2)
    expect((await events()).length).toBe(logged + 2)
  })

  it('stops at the first refused line with on_error=stop', async () => {
    const leads = await count()
    const answers = await send([lead(), lead({ title: '' }), lead()], { query: { on_error: 'stop' } })
    expect(did(answers)).toEqual(['created', 'validation_failed'])
    expect(await count()).toBe(leads + 1)
  })

  it('says what is wrong with a line', async () => {
    const errors = async (line: unknown) => errorsOf((await send([line]))[0])
    expect(await errors({})).toEqual({ op: ['The field is required.'], type: ['The field is required.'] })
    expect(await errors({ op: 'insert', type: 'lead' })).toEqual({
      op: ['Must be one of create, upsert, update, delete. Did you mean `upsert`?'],
      type: [expect.stringContaining('Did you mean `leads`?')],
    })
    expect(await errors({ ...lead(), feilds: {} })).toEqual({ feilds: ['Unknown field. Did you mean `fields`?'] })
    expect(await errors({ op: 'update', type: 'leads' })).toEqual({ id: ['Send either id or external_id.'] })
    expect(await errors({ op: 'update', type: 'leads', id: 1, external_id: 'a:1' })).toHaveProperty('external_id')
    expect(await errors({ op: 'upsert', type: 'leads', fields: {} })).toHaveProperty('external_id')
    expect(await errors({ op: 'upsert', type: 'tags', external_id: 'a:1', fields: {} })).toHaveProperty('name')
    expect(await errors({ op: 'delete', type: 'leads', id: 1, fields: {} })).toHaveProperty('fields')
    expect(await errors(lead({}, { id: 5 }))).toHaveProperty('id')
    expect(await errors(lead({ external_ids: { shop: '2' } }, { external_id: 'shop:1' }))).toHaveProperty([
      'external_ids.shop',
    ])
    for (const id of ['a', 'a:', ':1', 'A:1', `${'a'.repeat(51)}:1`, `a:${'1'.repeat(256)}`, 'a:1,2'])
      expect(await errors({ op: 'upsert', type: 'leads', external_id: id, fields: {} })).toHaveProperty('external_id')
    expect(await errors('{"op":"create","op":"create","type":"leads"}')).toEqual({ op: ['The key is sent twice.'] })
    expect(await errors('{"op":"create","type":"leads","fields":{"title":"A","title":"B"}}')).toHaveProperty('title')
    expect(
      await errors('{"op":"create","type":"leads","fields":{"title":"A","lead_value":1.00000000000000001}}'),
    ).toEqual({
      lead_value: ['Must be a number with at most 15 significant digits.'],
    })
    for (const id of [0, -1, 1.5, '1', null, 2 ** 60])
      expect(await errors({ op: 'update', type: 'leads', id, fields: {} })).toHaveProperty('id')
    for (const text of ['[]', '1', 'null', '"x"', '{', '{"op":'.repeat(50)])
      expect(did(await send([text]))).toEqual(['malformed_json'])
  })

  it('answers 404 for a record that does not exist or that the caller may not see', async () => {
    const { id } = await make.lead({ external_ids: { shop: newName('x') } })
    const other = await addUser(server, newName('individual'), { view: 'individual' })
    const lines = [
      { op: 'update', type: 'leads', id, fields: { title: 'Mine' } },
      { op: 'delete', type: 'leads', id },
      { op: 'update', type: 'leads', id: 999_999, fields: { title: 'Mine' } },
      { op: 'update', type: 'leads', id: 999_999, fields: { title: '' } },
      { op: 'delete', type: 'leads', external_id: 'shop:none' },
    ]
    expect(did(await send(lines, { caller: other }))).toEqual(Array(5).fill('not_found'))
  })

  it('checks the permission and the ability of each line', async () => {
    const lines = [
      lead(),
      person(`hubspot:${newName('y')}`),
      { op: 'create', type: 'tags', fields: { name: newName('T') } },
    ]
    const token = await server.as(1, ['leads:write'])
    const answers = await send(lines, { caller: token })
    expect(did(answers)).toEqual(['created', 'forbidden', 'forbidden'])
    expect(answers[1]?.problem?.required).toBe('persons:write')
    const user = await addUser(server, newName('some'), { permissions: ['leads', 'leads.create'] })
    expect(did(await send(lines, { caller: user }))).toEqual(['created', 'forbidden', 'forbidden'])
    const reader = await server.as(1, ['leads:read'])
    expect((await sendText('', { caller: reader })).status).toBe(403)
    expect((await sendText('', { caller: server.anonymous })).status).toBe(401)
  })

  it('tries lines without writing, and lets later ones refer to earlier ones', async () => {
    const [leads, logged] = [await count(), (await events()).length]
    const id = newName('dry')
    const lines = [
      person(`hubspot:${id}`),
      lead({ person_id: { external_id: `hubspot:${id}` } }),
      lead({ title: '' }),
      { op: 'upsert', type: 'persons', external_id: `hubspot:${id}`, fields: { name: 'Ada Lovelace' } },
    ]
    const headers = { 'accord-dry-run': 'true', 'idempotency-key': newName('key') }
    const reply = await sendText(lines.map((line) => JSON.stringify(line)).join('\n'), { headers })
    expect(reply.headers['accord-dry-run']).toBe('true')
    const answers = answersOf(reply.text)
    expect(did(answers)).toEqual(['created', 'created', 'validation_failed', 'unchanged'])
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 422, 200])
    expect([await count(), (await events()).length]).toEqual([leads, logged])
    const many = await send(Array(1002).fill({}), { headers })
    expect([many.length, many.at(-1)?.problem?.code]).toEqual([1001, 'payload_too_large'])
  })

  it('warns of a value that was ignored', async () => {
    const { id } = await make.lead()
    const [answer] = await send([
      { op: 'update', type: 'leads', id, fields: { title: 'New', created_at: '2001-01-01' } },
    ])
    expect(answer).toMatchObject({ did: 'updated', warnings: [{ field: 'created_at' }] })
  })
})

describe('a body of lines', () => {
  it('may have blank lines, carriage returns, a byte order mark and no line break at its end', async () => {
    const line = JSON.stringify(lead())
    const { text } = await sendText(`\ufeff${line}\r\n\r\n \t\n  ${line}  \n\n${line}`)
    expect(answersOf(text).map(({ line, did }) => [line, did])).toEqual([
      [1, 'created'],
      [4, 'created'],
      [6, 'created'],
    ])
    expect(await send([])).toEqual([])
    expect((await sendText('\n\n')).text).toBe('')
  })

  it('may have bytes that are not UTF-8 and lines that are too long, which are refused alone', async () => {
    const line = Buffer.from(JSON.stringify(lead({ title: 'Zoë 😀' })))
    const bad = Buffer.from(line)
    bad[bad.indexOf(0xf0)] = 0xff
    const long = Buffer.from(JSON.stringify(lead({ description: 'x'.repeat(1024 * 1024) })))
    const newline = Buffer.from('\n')
    const answers = answersOf((await sendText(Buffer.concat([bad, newline, long, newline, line]))).text)
    expect(did(answers)).toEqual(['malformed_json', 'payload_too_large', 'created'])
    const shown = await admin.get(`/leads/${answers[2]?.id}`)
    expect(shown.body.data.title).toBe('Zoë 😀')
  })

  it('refuses a line that is too deep or has too many values', async () => {
    const deep = `{"op":"create","type":"leads","fields":${'{"a":'.repeat(40)}1${'}'.repeat(41)}`
    const wide = JSON.stringify(lead({ tag_ids: Array(10_001).fill(1) }))
    expect(did(await send([deep, wide]))).toEqual(['malformed_json', 'payload_too_large'])
  })

  it('may be a JSON list of up to 1,000 entries', async () => {
    const list = async (body: unknown) => admin.post('/bulk', body)
    const { status, text } = await list([lead(), 5, lead({ title: '"],[' })])
    expect([status, did(answersOf(text))]).toEqual([200, ['created', 'malformed_json', 'created']])
    expect((await list([])).text).toBe('')
    expect((await list(Array(1001).fill({}))).body).toMatchObject({
      status: 422,
      errors: { body: ['Must not have more than 1000 entries; send more as application/x-ndjson.'] },
    })
    for (const body of ['', '{}', '[', '[1', '[{]', 'null', '[]]', '[[]'])
      expect((await admin.post('/bulk', body, { headers: { 'content-type': 'application/json' } })).status).toBe(400)
    const other = await admin.post('/bulk', 'a=b', { headers: { 'content-type': 'text/csv' } })
    expect(other.status).toBe(415)
    expect((await admin.post('/bulk?on_error=never', [])).status).toBe(422)
  })
})

describe('the types of lines', () => {
  const schema = document.components?.schemas?.BulkType as { enum: string[] }

  it('have the operations of the contract, each of which can be tried and takes JSON', () => {
    for (const type of schema.enum) {
      const found = operationsByType(server.app.services).get(type) ?? {}
      for (const op of ['create', 'update', 'delete'] as const) {
        const fact = operations[found[op] as keyof typeof operations] as OperationFact
        expect([type, op, fact.dryRun, fact.public]).toEqual([type, op, true, false])
      }
      expect(found.upsert !== undefined, type).toBe(
        Object.values(operations).some(({ path }) => path.includes(`/${type}/external/`)),
      )
    }
  })

  it('create, change and delete a record of each type', async () => {
    await make.person()
    await admin.post(
      '/settings/warehouses',
      validBody('createWarehouse', () => undefined),
    )
    for (const type of schema.enum) {
      const create = operationsByType(server.app.services).get(type)?.create
      if (!create) throw new Error(type)
      const known = (entity: string): number | undefined =>
        ['users', 'persons', 'warehouses', 'roles', 'email-templates'].includes(entity) ? 1 : undefined
      const fields = { ...(validBody(create, known, 'required') as object), ...special[type] }
      const answers = await send([{ op: 'create', type, fields }])
      expect([type, answers[0]?.problem?.errors, answers[0]]).toMatchObject([type, undefined, { did: 'created' }])
      const id = answers[0]?.id
      const after = await send([
        { op: 'update', type, id, fields: {} },
        { op: 'delete', type, id },
      ])
      expect([type, did(after)]).toEqual([type, ['unchanged', type === 'emails' ? 'updated' : 'deleted']])
    }
    expect(resources.size).toBeGreaterThan(schema.enum.length)
  })

  const special: Record<string, object> = {
    activities: { type: 'note', comment: 'Called' },
    products: { sku: newName('sku') },
  }
})
