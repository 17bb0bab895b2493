// Secrets: replies have no properties for secret columns, and stored secrets and their hashes do
// not appear in replies, headers, events, or data derived from events.
import { sql } from 'kysely'
import { beforeAll, describe, it } from 'vitest'
import { document, facts, follow, type SchemaObject } from '../support/schema.ts'
import { type Cells, keep } from './matrix.ts'
import { request, send, type World } from './support.ts'

/** Returns whether a column contains secrets, by its name. */
const isSecretColumn = (name: string): boolean => /(_hash|_sealed)$|^(password|secret)/.test(name)

/** Allowed properties with such a name, and their reasons. */
const shownOnce: Record<string, string> = {
  'createWebhook secret': 'shown once, when it is made',
  'rotateWebhookSecret secret': 'shown once, when it is made',
  'upsertWebhook secret': 'shown once, when it is made',
}
/** Property names of secrets. */
const secretNames =
  /^(secret|secret_hash|password|password_hash|password_confirmation|current_password|csrf|seal|sealed|session_id|session)$/

const words = {
  password: 'hush password of a user',
  imap: 'hush password of a mailbox',
  idempotency: 'hush answer under a key',
  reset: 'hush reset of a password',
  header: 'hush header of a webhook',
  parameter: 'hush parameter of a webhook',
}

function propertiesOf(schema: SchemaObject | undefined, seen = new Set<SchemaObject>()): string[] {
  const found = follow(schema)
  if (seen.has(found)) return []
  seen.add(found)
  const inner = [...Object.values(found.properties ?? {}), found.items, found.additionalProperties]
  const parts = [...(found.allOf ?? []), ...(found.anyOf ?? []), ...(found.oneOf ?? []), ...inner]
  const schemas = parts.filter((each): each is SchemaObject => typeof each === 'object')
  return [...Object.keys(found.properties ?? {}), ...schemas.flatMap((each) => propertiesOf(each, seen))]
}

export function secretCells(of: () => World, cells: Cells): void {
  let marks: [name: string, text: string][] = []

  beforeAll(async () => {
    const world = of()
    const { server } = world
    const { admin, store } = server
    await server.rewind()
    const made = async (path: string, body: object | undefined, method: 'post' | 'put' = 'post'): Promise<any> => {
      const { status, body: answer, text } = await admin[method](path, body)
      if (status >= 300) throw new Error(text)
      return answer.data
    }
    const user = { name: 'Hush', email: 'hush@example.com', role_id: 1, is_active: true }
    await made('/settings/users', { ...user, password: words.password, password_confirmation: words.password })
    const { token } = await made('/tokens', { name: 'hush' })
    const hook = { name: 'Hush', url: 'https://hooks.example.com/x', entity_type: 'leads', method: 'post' }
    const webhook = await made('/settings/webhooks', {
      ...hook,
      payload_type: 'default',
      headers: [{ key: 'Authorization', value: words.header }],
      query_params: [{ key: 'key', value: words.parameter }],
      events: ['lead.update.after'],
    })
    const rotated = await made(`/settings/webhooks/${webhook.id}/rotate-secret`, undefined)
    await made('/settings/configuration', { values: { 'email.imap.account.password': words.imap } }, 'put')
    await server.anonymous.post('/forgot-password', { email: 'hush@example.com' })
    await admin.post(
      '/sources',
      { name: words.idempotency },
      { headers: { 'idempotency-key': 'hush key of a request' } },
    )
    await store.db
      .updateTable('idempotency_keys')
      .set({ body: words.idempotency, request_hash: 'hush hash of a request' })
      .execute()
    await store.db.deleteFrom('lead_sources').where('name', '=', words.idempotency).execute()
    server.events()
    marks = [
      ...Object.entries(words).filter(([name]) => name !== 'idempotency'),
      ['idempotency key', 'hush key of a request'],
      ['idempotency hash', 'hush hash of a request'],
      ['token', token.split('|')[1]],
      ['webhook', webhook.secret],
      ['webhook, the new one', rotated.secret],
      ...(await valuesOfSecretColumns(world)),
    ]
    await keep(world)
  })

  describe('a reply', () => {
    it('has no property for a secret, but where it is shown once', () => {
      for (const [id, { path, method }] of facts) {
        const { responses } = (document.paths?.[path]?.[method] ?? {}) as { responses: Record<string, SchemaObject> }
        for (const [status, response] of Object.entries(responses)) {
          const { content = {} } = follow(response) as { content?: Record<string, { schema?: SchemaObject }> }
          const names = Object.values(content).flatMap(({ schema }) => propertiesOf(schema))
          const found = names.filter(
            (name) => (secretNames.test(name) || isSecretColumn(name)) && !shownOnce[`${id} ${name}`],
          )
          cells.check(`${id}, ${status}`, found, [])
        }
      }
      cells.settle()
    })

    it('has no secret that is stored, whichever operation reads', async () => {
      const world = of()
      for (const [id, { method, query }] of facts.filter(
        ([, each]) => each.method === 'get' && each.servedBy === 'handler',
      )) {
        const wanted = request(world, id)
        const url = 'per_page' in query && id !== 'searchRecords' ? `${wanted.url}?per_page=100` : wanted.url
        const { text, headers } = await send(world, id, { ...wanted, method: method.toUpperCase(), url })
        const said = `${text}${JSON.stringify(headers)}`
        cells.check(
          id,
          marks.filter(([, mark]) => said.includes(mark)).map(([name]) => name),
          [],
        )
      }
      cells.settle()
    }, 180_000)

    it('does not repeat what was sent as a secret, when it is refused', async () => {
      const world = of()
      const secret = 'hush, sent and refused'
      const fields = {
        password: secret,
        password_confirmation: `${secret}!`,
        current_password: secret,
        token: secret,
        nonsense: 1,
      }
      for (const id of ['login', 'createSession', 'updateAccount', 'createUser', 'updateUser', 'resetPassword']) {
        const wanted = request(world, id)
        const { text } = await send(world, id, { ...wanted, body: { email: 'unknown@example.com', ...fields } })
        cells.check(`${id}, refused`, text.includes(secret), false)
      }
      cells.settle()
    })
  })

  describe('what is kept of what happened', () => {
    it('has no secret: events, and the searches, runs, deliveries and jobs that follow from them', async () => {
      const { store } = of().server
      for (const table of ['events', 'search_index', 'workflow_runs', 'webhook_deliveries', 'jobs']) {
        const { rows } = await sql`select * from ${sql.table(table)}`.execute(store.db)
        const said = JSON.stringify(rows)
        cells.check(
          table,
          marks.filter(([, mark]) => said.includes(mark)).map(([name]) => name),
          [],
        )
      }
      cells.settle()
    })
  })
}

/** Returns the values of secret columns that are long enough to be unique. */
async function valuesOfSecretColumns({ server: { store } }: World): Promise<[string, string][]> {
  const found: [string, string][] = []
  for (const { name: table, columns } of await store.db.introspection.getTables()) {
    for (const { name } of columns.filter((column) => isSecretColumn(column.name))) {
      const { rows } = await sql<{ value: unknown }>`select ${sql.ref(name)} as value from ${sql.table(table)}`.execute(
        store.db,
      )
      for (const { value } of rows)
        if (typeof value === 'string' && value.length > 15) found.push([`${table}.${name}`, value])
    }
  }
  return found
}
