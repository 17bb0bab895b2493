// The visibility of events of each type, in the feed, a stream, the history, own webhooks, webhook
// deliveries and workflow runs: callers see events of records that their list of this type shows. A
// type of the contract without a case fails.
import { beforeAll, describe, expect, it } from 'vitest'
import { permissionKeys } from '../../src/contract/operations.gen.ts'
import { parseEvent } from '../../src/jobs/event-consumers.ts'
import { knownAbilities } from '../../src/kernel/auth/abilities.ts'
import { systemContext } from '../../src/kernel/context.ts'
import { transaction } from '../../src/kernel/write/write.ts'
import { subscriptions } from '../../src/resources/webhooks/subscriptions.ts'
import { start } from '../support/app.ts'
import { unique } from '../support/given.ts'
import { document, fact, facts, follow, type SchemaObject } from '../support/schema.ts'
import { readStream } from '../support/sse.ts'
import { until } from '../support/until.ts'
import { addUser } from '../support/viewers.ts'
import { caseOf } from './matrix.events.cases.ts'
import { asHadBy, give, giveSome, type Owner, owners, type People, people, type View, views } from './matrix.scope.ts'
import { type Cells, keep, token } from './matrix.ts'
import { send, type World } from './support.ts'

/** The types whose events name no record. */
const recordless = ['configuration', 'exports']

const schemas = (document.components?.schemas ?? {}) as Record<string, SchemaObject>
const types = (follow(schemas.EventEntity).enum ?? []) as string[]
const watched = ['leads', 'persons', 'quotes', 'activities']
/** Types whose snapshots contain the owner of the record. */
const withOwner = [
  'leads',
  'persons',
  'organizations',
  'quotes',
  'activities',
  'emails',
  'tokens',
  'sessions',
  'files',
  'views',
]
/**
 * Events that are not sent to webhooks, because they could reveal a secret or a delivery causes
 * them.
 */
const untold = ['tokens, gone', 'webhooks, gone']
const linked = ['leads', 'persons', 'organizations', 'quotes', 'activities', 'emails']
/** The id of a deleted record. */
const lost = 900_000

const inWords = (type: string, isGone: boolean): string => (isGone ? `${type}, gone` : type)
const linkTo = (type: string): string => `link to ${type}`

/** Returns the event of the deletion of a record of this type. */
const deletionOf = (type: string): string | undefined => {
  const path = facts.find(([id]) => id === caseOf(type).list)?.[1].path.replace(/\/\{id\}$/, '')
  return facts.find(([, each]) => each.method === 'delete' && each.path === `${path}/{id}`)?.[1].events[0]
}
const historyOf = (type: string): string | undefined => {
  const path = fact(caseOf(type).list).path.replace(/\/\{id\}$/, '')
  return facts.find(([, each]) => [`${path}/{id}/history`, `${path}/history`].includes(each.path))?.[0]
}

export function eventCells(of: () => World, cells: Cells): void {
  let who: People
  let own: World
  let before = 0
  let told = 0
  let address: string

  beforeAll(async () => {
    await of().server.rewind()
    who = await people(of())
    own = asHadBy(of(), who)
    before = await newest(own)
    await tell(own)
    told = await newest(own)
    await keep(own)
    address = await own.server.app.http.listen({ host: '127.0.0.1', port: 0 })
  })

  describe.each(views.flatMap((view) => owners.map((owner) => ({ view, owner }))))(
    '$view view, events about records of $owner',
    ({ view, owner }) => {
      let text: string
      beforeAll(async () => {
        await stageOwner(owner)
        text = await who.seeing(view)
      })

      it.each(['the feed', 'a stream', 'a webhook', 'deliveries', 'runs'] as const)('in %s', async (channel) => {
        const known = await channels[channel](text)
        for (const name of namesIn(channel))
          cells.check(
            `${name} of ${owner} in ${channel}, ${view} view`,
            known.has(name),
            wanted(name, view, owner) && !(channel === 'a webhook' && untold.includes(name)),
          )
        cells.settle()
      })

      it('in the history', async () => {
        for (const type of types) {
          const id = historyOf(type)
          if (id === undefined || recordless.includes(type)) continue
          for (const isGone of [false, true]) {
            if (isGone && deletionOf(type) === undefined) continue
            const { status } = await send(own, id, { method: 'GET', url: pathOf(id, type, owner, isGone), token: text })
            const isSeen = wanted(inWords(type, isGone), view, owner)
            cells.check(`${inWords(type, isGone)} of ${owner} in the history, ${view} view`, status, isSeen ? 200 : 404)
          }
        }
        cells.settle()
      })
    },
  )

  describe.each(types)('events about %s', (type) => {
    it('reach no caller without the permission or ability, in any channel', async () => {
      await stageOwner('caller')
      const { permission, ability } = fact(caseOf(type).list)
      const holders: [what: string, token: string, channels: readonly (keyof typeof channels)[]][] = []
      const read = ['the feed', 'a stream', 'deliveries', 'runs'] as const
      // A webhook has the permissions of a user but no abilities.
      if (permission !== null)
        holders.push([`without ${permission}`, await lacking(permission), [...read, 'a webhook']])
      if (ability !== null) holders.push([`without ${ability}`, await unable(ability), read])
      expect(holders.length).toBeGreaterThan(0)
      for (const [what, text, asked] of holders)
        for (const channel of asked) {
          const known = await channels[channel](text)
          const mine = namesIn(channel).filter((name) => [type, inWords(type, true), linkTo(type)].includes(name))
          cells.check(
            `${type} in ${channel} ${what}`,
            mine.filter((name) => known.has(name)),
            [],
          )
        }
      cells.settle()
    })
  })

  /** Changes the owner of the caller's records, including their snapshots in the log. */
  async function stageOwner(owner: Owner): Promise<void> {
    await own.server.rewind()
    await give(own, owner === 'none' ? null : who[owner])
    await giveSome(own, { files: who.upload }, who.caller)
    const { db } = own.server.store
    await db.updateTable('events').set({ owner_id: null }).where('entity_type', 'not in', withOwner).execute()
    await db
      .updateTable('events')
      .set({ entity_id: userOf(owner) })
      .where('request_id', '=', 'users')
      .execute()
    await db
      .updateTable('webhook_deliveries')
      .set({ entity_id: userOf(owner) })
      .where('dedupe_key', '=', 'matrix:users')
      .execute()
  }

  const userOf = (owner: Owner): number => (owner === 'none' ? 1 : who[owner])

  function wanted(name: string, view: View, owner: Owner): boolean {
    const type = name.replace(/^link to |, gone$/g, '')
    const { seen, gone } = caseOf(type)
    return (name.endsWith(', gone') ? gone : seen)(view, owner)
  }

  /** Returns the names of the events that a channel can show. */
  function namesIn(channel: string): string[] {
    if (channel === 'runs') return watched.flatMap((type) => [type, inWords(type, true)])
    const links = channel === 'deliveries' ? [] : linked.map(linkTo)
    return [...types, ...types.filter((type) => deletionOf(type)).map((type) => inWords(type, true)), ...links]
  }

  const channels = {
    'the feed': async (token: string): Promise<Set<string>> => {
      const { body } = await send(own, 'listEvents', {
        method: 'GET',
        url: `/api/admin/events?after=${before}&per_page=100`,
        token,
      })
      return new Set((body?.data ?? []).map((each: { request_id: string }) => each.request_id))
    },
    'a stream': async (token: string): Promise<Set<string>> => {
      const reader = await readStream(`${address}/api/admin/events`, token)
      cells.check('a stream is open', reader.status, 200)
      await happenAgain()
      // Two events through the API, of which every caller sees at least one, mark the end.
      const last = ['settings.tag.create.after', 'product.create.after']
      const name = `Last ${unique()}`
      await own.server.admin.post('/tags', { name })
      await own.server.admin.post('/products', { name, sku: name, price: 1 })
      await until(() => reader.told.some(({ event }) => last.includes(event)))
      reader.cut()
      await reader.ended
      return new Set(reader.told.map(({ data }) => data.request_id))
    },
    'a webhook': async (token: string): Promise<Set<string>> => {
      const { db } = own.server.store
      const { body } = await send(own, 'getAccount', { method: 'GET', url: '/api/admin/account', token })
      const hook = {
        changed_by_id: body?.data.id,
        events: '["*"]',
        changed: '[]',
        entity_type: null,
        events_after: before,
      }
      await db.updateTable('webhooks').set(hook).execute()
      await db.deleteFrom('webhook_deliveries').where('dedupe_key', 'like', 'event:%').execute()
      const rows = await happened()
      await transaction(systemContext(own.server.app.services, 'api'), (ctx) =>
        subscriptions.consume(ctx, rows.map(parseEvent)),
      )
      const sent = db.selectFrom('webhook_deliveries').innerJoin('events', 'events.id', 'event_id').select('request_id')
      const names = await sent.where('dedupe_key', 'like', 'event:%').execute()
      return new Set(names.map(({ request_id: name }) => name ?? ''))
    },
    deliveries: (token: string) => about('listWebhookDeliveries', 'webhooks', token),
    runs: (token: string) => about('listWorkflowRuns', 'workflows', token),
  }

  const happened = () => {
    const events = own.server.store.db.selectFrom('events').selectAll()
    return events.where('id', '>', before).where('id', '<=', told).execute()
  }

  /** Inserts the same events again, while a stream is open. */
  async function happenAgain(): Promise<void> {
    const rows = (await happened()).map(({ id: _id, ...row }) => row)
    await own.server.store.db.insertInto('events').values(rows).execute()
  }

  async function about(id: string, parent: string, token: string): Promise<Set<string>> {
    const url = `/${fact(id).path.replace('{id}', String(own.main[parent]))}`.replace('//', '/')
    const { body } = await send(own, id, { method: 'GET', url: `${url}?per_page=100`, token })
    const rows = (body?.data ?? []) as { event_id: number; entity_type: string; entity_id: number | null }[]
    return new Set(rows.map(({ entity_type: type, entity_id: record }) => inWords(type, (record ?? 0) >= lost)))
  }

  function pathOf(id: string, type: string, owner: Owner, isGone: boolean): string {
    const record = isGone ? lost + types.indexOf(type) : type === 'users' ? userOf(owner) : own.main[type]
    return fact(id).path.replace('{id}', String(record))
  }

  /** Returns a token of a user with the global view and all permissions except one. */
  async function lacking(key: string): Promise<string> {
    const permissions = permissionKeys.filter((each) => each !== key && !each.startsWith(`${key}.`))
    const { id } = await addUser(own.server, `Lacking ${key}`, { permissions })
    return token(own, { userId: id })
  }

  const unable = (ability: string): Promise<string> =>
    token(own, { userId: 1, abilities: knownAbilities.filter((each) => !each.includes('*') && each !== ability) })
}

async function newest({ server: { store } }: World): Promise<number> {
  const id = store.db.selectFrom('events').select((eb) => eb.fn.max<number>('id').as('last'))
  return (await id.executeTakeFirstOrThrow()).last
}

/**
 * Inserts an event, a delivery and a run for each type, both for an existing and for a deleted
 * record.
 */
async function tell({ server: { store }, main }: World): Promise<void> {
  const { db } = store
  await db.deleteFrom('webhook_deliveries').execute()
  const { id: send } = await db
    .insertInto('campaign_sends')
    .values({
      campaign_id: main.campaigns ?? 0,
      occurrence: 'matrix',
      person_id: main.persons ?? 0,
      address: 'matrix@example.com',
      state: 'sent',
      message_id: 'matrix@example.com',
      created_at: start,
      updated_at: start,
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  const ids: Record<string, number | undefined> = { ...main, sends: send, users: 1 }
  for (const [index, type] of types.entries()) {
    const deletion = deletionOf(type)
    const record = recordless.includes(type) ? null : (ids[type] ?? null)
    if (record === null && !recordless.includes(type)) throw new Error(`The world has none of ${type}.`)
    await happened(db, type, { name: 'matrix.test.after', entity_type: type, entity_id: record })
    if (deletion)
      await happened(db, inWords(type, true), {
        name: `${deletion}.after`,
        entity_type: type,
        entity_id: lost + index,
      })
  }
  for (const type of linked)
    await happened(db, linkTo(type), {
      name: 'matrix.test.after',
      entity_type: 'tags',
      entity_id: main.tags ?? 0,
      related_type: type,
      related_id: main[type] ?? 0,
    })

  async function happened(
    db: World['server']['store']['db'],
    name: string,
    about: { name: string; entity_type: string; entity_id: number | null; related_type?: string; related_id?: number },
  ): Promise<void> {
    const snapshot = JSON.stringify({
      id: about.entity_id,
      ...(withOwner.includes(about.entity_type) && { user_id: 1 }),
      ...(about.entity_type === 'emails' && { folders: ['inbox'] }),
    })
    const { id } = await db
      .insertInto('events')
      .values({
        ...about,
        actor_type: 'system',
        request_id: name,
        origin: 'api',
        before: snapshot,
        after: null,
        changed: '[]',
        restored: 0,
        owner_id: null,
        created_at: start,
      })
      .returning('id')
      .executeTakeFirstOrThrow()
    if (about.related_type !== undefined) return
    await db
      .insertInto('webhook_deliveries')
      .values({
        webhook_id: main.webhooks ?? 0,
        dedupe_key: `matrix:${name}`,
        message_id: `matrix ${name}`,
        event_id: id,
        event: about.name,
        entity_type: about.entity_type,
        entity_id: about.entity_id,
        state: 'failed',
        finished_at: start,
        created_at: start,
        updated_at: start,
      })
      .execute()
    if (!watched.includes(about.entity_type) || about.entity_id === null) return
    await db
      .insertInto('workflow_runs')
      .values({
        workflow_id: main.workflows ?? 0,
        event_id: id,
        event: about.name,
        entity_type: about.entity_type,
        entity_id: about.entity_id,
        state: 'skipped',
        created_at: start,
        updated_at: start,
      })
      .execute()
  }
}
