// Mass assignment: every create and update gets a body with all columns of its table, all
// properties of its reply, and internal names. Reply properties are ignored, all
// others are refused, and the stored row is the same as without them.
import { sql } from 'kysely'
import { beforeAll, describe, it } from 'vitest'
import { bodySchema, document, facts, follow, type SchemaObject, takesFormOnly } from '../support/schema.ts'
import { type Cells, isFull, keep, untouched } from './matrix.ts'
import { request, send, type World } from './support.ts'

/** The tables of records that are not resources, by the last segment of a path. */
const tables: Record<string, string> = {
  account: 'users',
  tokens: 'tokens',
  suppressions: 'suppressions',
  configuration: 'core_config',
}
/** Names that servers use internally. */
const internal = [
  ...['id', 'version', 'created_at', 'updated_at', 'deleted_at', 'owner_id', 'created_by', 'is_admin', 'admin'],
  ...[
    'password_hash',
    'secret_hash',
    'secret_sealed',
    'remember_token',
    'permission_type',
    'permissions',
    'role',
    'role_id',
  ],
  ...['is_user_defined', 'sha256', 'owner_type', 'status', 'name_key', 'email_key', 'token_id', 'user', 'user_id'],
  ...['__proto__', 'constructor', 'prototype', 'toString'],
]
/** Columns with random values. */
const random = ['form_id', 'secret_hash', 'secret_sealed', 'message_id', 'message_id_key', 'password_hash']

export const writing = facts.filter(
  ([id, { method, path, location, public: isPublic }]) =>
    !isPublic &&
    !takesFormOnly(id) &&
    bodySchema(id) !== undefined &&
    ((method === 'post' && location) || (method === 'put' && (/\/\{id\}$/.test(path) || /account$/.test(path)))),
)

/** Returns the properties of the record in a reply. */
function shownBy(id: string): string[] {
  const fact = facts.find(([name]) => name === id)?.[1]
  const operation = document.paths?.[fact?.path ?? '']?.[fact?.method ?? ''] as {
    responses: Record<string, SchemaObject>
  }
  const reply = follow(operation.responses[String(fact?.status)]) as {
    content?: Record<string, { schema: SchemaObject }>
  }
  const schema = follow(follow(Object.values(reply.content ?? {})[0]?.schema).properties?.data)
  return propertiesOf(schema)
}

const propertiesOf = (schema: SchemaObject): string[] => [
  ...Object.keys(schema.properties ?? {}),
  ...[...(schema.allOf ?? []), ...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap((each) =>
    propertiesOf(follow(each)),
  ),
]

export function assignmentCells(of: () => World, cells: Cells): void {
  beforeAll(async () => {
    await of().server.rewind()
    await keep(of())
  })

  const tableOf = (id: string): string => {
    const entity =
      (facts.find(([name]) => name === id)?.[1].path ?? '')
        .replace(/\/\{id\}$/, '')
        .split('/')
        .at(-1) ?? ''
    return of().server.app.services.resources.get(entity)?.table ?? tables[entity] ?? entity
  }

  /** Returns all rows of the table and of the tables for permissions. */
  async function rowsOf(table: string): Promise<string> {
    const { store } = of().server
    const found: unknown[] = []
    for (const name of new Set([table, 'users', 'roles', 'tokens']))
      found.push((await sql`select * from ${sql.table(name)}`.execute(store.db)).rows)
    return JSON.stringify(found, (key, value: unknown) => (random.includes(key) ? undefined : value))
  }

  const readOnlyOf = (id: string): string[] => {
    const taken = propertiesOf(bodySchema(id) ?? {})
    return shownBy(id).filter((key) => !taken.includes(key))
  }

  describe.each(writing.filter(([, { method }]) => method === 'post'))('%s', (id) => {
    it('refuses what a reply shows and a body does not have, and does nothing', async () => {
      const world = of()
      const shown = readOnlyOf(id)
      await untouched(cells, id, world, async () => {
        const wanted = request(world, id)
        const hostile = Object.fromEntries(shown.map((key) => [key, 77]))
        const answer = await send(world, id, { ...wanted, body: { ...hostile, ...wanted.body } })
        for (const key of shown)
          cells.check(
            `${id}, ${key}`,
            [answer.status, String(answer.body?.errors?.[key]).slice(0, 10)],
            [422, 'Read-only:'],
          )
      })
      cells.settle()
    })
  })

  describe.each(writing.filter(([, { method }]) => method === 'put'))('%s', (id) => {
    it('ignores what a reply shows and a body does not have', async () => {
      const world = of()
      const shown = readOnlyOf(id)
      const wanted = request(world, id)
      const plain = await send(world, id, wanted)
      const expected = await rowsOf(tableOf(id))
      await world.server.rewind()
      const values = [
        ['a number', 77],
        ['a text', 'all'],
        ['an object', { id: 77 }],
        ['a time', '2001-01-01T00:00:00.000Z'],
      ] as const
      for (const [name, value] of isFull ? values : values.slice(0, 2)) {
        const hostile = Object.fromEntries(shown.map((key) => [key, value]))
        const answer = await send(world, id, { ...wanted, body: { ...hostile, ...wanted.body } })
        cells.check(
          `${id}, status with ${name} in ${shown}`,
          answer.status === plain.status ? plain.status : answer.text,
          plain.status,
        )
        cells.check(`${id}, rows with ${name} in ${shown}`, (await rowsOf(tableOf(id))) === expected, true)
        await world.server.rewind()
      }
      cells.settle()
    })
  })

  describe.each(writing)('%s', (id) => {
    it('refuses every other name, column or not, and does nothing', async () => {
      const world = of()
      const { rows } = await sql<{ name: string }>`select name from pragma_table_info(${tableOf(id)})`.execute(
        world.server.store.db,
      )
      const known = new Set([...propertiesOf(bodySchema(id) ?? {}), ...shownBy(id)])
      const names = [...new Set([...rows.map(({ name }) => name), ...internal])].filter((name) => !known.has(name))
      await untouched(cells, id, world, async () => {
        const wanted = request(world, id)
        const pairs = [...Object.entries(wanted.body ?? {}), ...names.map((name) => [name, 1] as const)]
        // The body is built as text, because `__proto__` is an ordinary key there.
        const body = `{${pairs.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join()}}`
        const answer = await send(world, id, { ...wanted, body })
        for (const name of names)
          cells.check(
            `${id}, ${name}`,
            [answer.status, String(answer.body?.errors?.[name]).slice(0, 14)],
            [422, 'Unknown field.'],
          )
      })
      cells.settle()
    })
  })
}
