// Writing as the limit server does it: one prepared transaction for each request, with all rows that somebody could find afterwards:
// the record, its tags and product lines, the events of the log, the text for search.
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { verify } from 'argon2'
import type { Database } from 'better-sqlite3'
import { scale } from './limit.lead.ts'
import type { Lead, Reader } from './limit.read.ts'

const own = new Set([
  'id',
  'title',
  'lead_value',
  'person_id',
  'lead_source_id',
  'lead_type_id',
  'tag_ids',
  'custom_attributes',
])
const derived = new Set(['updated_at', 'version', 'tags', 'rotten_days', 'is_rotten'])
const mostTokens = 50

interface Create {
  title: string
  lead_value: number
  person_id: number
  lead_source_id: number
  lead_type_id: number
  tag_ids: number[]
  custom_attributes: { region: string; seats: number }
}

interface EventRow {
  name: string
  entity_type: string
  entity_id: number
  related_type?: string
  related_id?: number
  token_id: number | null
  before?: string
  after: string | null
  changed: string[]
  owner_id: number | null
  first_event_id?: number
}

export class Refused extends Error {}

export function createWriter(database: Database, reader: Reader, { tokenId }: { tokenId: number }) {
  const one = (text: string) => database.prepare<unknown[]>(text)
  const insertLead =
    one(`insert into leads (title, title_key, lead_value, status, stage_changed_at, user_id, person_id, lead_source_id,
    lead_type_id, lead_pipeline_id, lead_pipeline_stage_id, custom_attributes, created_at, updated_at)
    values (?, ?, ?, 1, ?, 1, ?, ?, ?, 1, ?, ?, ?, ?)`)
  const insertTag = one('insert into lead_tags (lead_id, tag_id) values (?, ?)')
  const insertEvent =
    one(`insert into events (name, entity_type, entity_id, related_type, related_id, actor_type, actor_id, actor_name,
    token_id, request_id, origin, ip, before, after, changed, owner_id, first_event_id, created_at)
    values (?, ?, ?, ?, ?, 'user', 1, 'Example Admin', ?, ?, 'api', ?, ?, ?, ?, ?, ?, ?)`)
  const insertSearch = one(
    `insert into search_index (entity_type, entity_id, title, subtitle, body) values ('leads', ?, ?, ?, ?)`,
  )
  const updateSearch = one(`update search_index set title = ? where entity_type = 'leads' and entity_id = ?`)
  const updateLead = one(
    'update leads set title = ?, title_key = ?, lead_value = ?, updated_at = ?, version = version + 1 where id = ?',
  )
  const tagById = one('select id, name, color from tags where id = ?')
  const personOf = one(
    `select p.name, p.emails, o.name from persons p left join organizations o on o.id = p.organization_id where p.id = ?`,
  ).raw()
  const stageOf = one(
    'select id from lead_pipeline_stages where lead_pipeline_id = 1 order by sort_order limit 1',
  ).pluck()
  const sourceOf = one('select id from lead_sources where id = ?').pluck()
  const typeOf = one('select id from lead_types where id = ?').pluck()
  const accountOf = one('select id, name, email, password_hash from users where email_key = ? and status = 1')
  const insertToken =
    one(`insert into tokens (user_id, name, kind, abilities, secret_hash, expires_at, created_at, updated_at)
    values (?, ?, 'login', '["*"]', ?, ?, ?, ?)`)
  const oldTokens =
    one(`select id, name, expires_at, last_used_at, last_used_ip, created_at from tokens where user_id = ?
    and kind = 'login' and id <> ? order by coalesce(last_used_at, created_at), id`)
  const aliveTokens = one('select count(*) from tokens where user_id = ?').pluck()
  const deleteToken = one('delete from tokens where id = ?')

  function log(event: EventRow, requestId: string, ip: string, at: string): number {
    const { name, entity_type, entity_id, related_type = null, related_id = null, token_id, before = null } = event
    const about = [name, entity_type, entity_id, related_type, related_id, token_id, requestId, ip, before, event.after]
    const { lastInsertRowid } = insertEvent.run(
      ...about,
      JSON.stringify(event.changed),
      event.owner_id,
      event.first_event_id ?? null,
      at,
    )
    return Number(lastInsertRowid)
  }

  const create = database.transaction((body: Create, ip: string): Lead => {
    checkLead(body)
    const person = personOf.get(body.person_id) as [string, string, string | null] | undefined
    if (!person) throw new Refused(`No person has id ${body.person_id}.`)
    if (sourceOf.get(body.lead_source_id) === undefined) throw new Refused('No such source.')
    if (typeOf.get(body.lead_type_id) === undefined) throw new Refused('No such type.')
    const tags = [...new Set(body.tag_ids)].map((id) => tagById.get(id) as Lead['tags'][number] | undefined)
    if (tags.some((tag) => !tag)) throw new Refused('No such tag.')
    const at = new Date().toISOString()
    const { region, seats } = body.custom_attributes
    const custom = JSON.stringify({ region, seats: Math.round(seats * scale) })
    const value = Math.round(body.lead_value * scale)
    const refers = [body.person_id, body.lead_source_id, body.lead_type_id, stageOf.get()]
    const made = insertLead.run(body.title, foldText(body.title), value, at, ...refers, custom, at, at)
    const id = Number(made.lastInsertRowid)
    const lead = reader.show(id, Date.parse(at)) as Lead
    const requestId = randomUUID()
    const changed = Object.keys(lead).filter((key) => !derived.has(key))
    const about = { entity_type: 'leads', entity_id: id, token_id: tokenId }
    const first_event_id = log(
      { ...about, name: 'lead.create.after', after: JSON.stringify(lead), changed, owner_id: 1 },
      requestId,
      ip,
      at,
    )
    for (const tag of tags as Lead['tags']) {
      insertTag.run(id, tag.id)
      log(
        {
          ...about,
          name: 'leads.tag.create.after',
          related_type: 'tags',
          related_id: tag.id,
          after: JSON.stringify({ lead_id: id, tag_id: tag.id, tag }),
          changed: ['lead_id', 'tag_id', 'tag'],
          owner_id: null,
          first_event_id,
        },
        requestId,
        ip,
        at,
      )
    }
    const emails = (JSON.parse(person[1]) as { value: string }[]).map(({ value }) => value)
    const named = [person[0], person[2]].filter(Boolean)
    insertSearch.run(id, body.title, named.join(' · '), [...named, ...emails].join('\n'))
    lead.tags = (tags as Lead['tags']).sort((one, other) => (foldText(one.name) < foldText(other.name) ? -1 : 1))
    return lead
  })

  const update = database.transaction((id: number, body: { title: string; lead_value: number }, ip: string): Lead => {
    if (!isTitle(body.title) || !isAmount(body.lead_value)) throw new Refused('Not valid.')
    const at = new Date().toISOString()
    const before = reader.show(id, Date.parse(at))
    if (!before) throw new Refused(`No lead has id ${id}.`)
    updateLead.run(body.title, foldText(body.title), Math.round(body.lead_value * scale), at, id)
    const after = {
      ...before,
      title: body.title,
      lead_value: body.lead_value,
      updated_at: at,
      version: before.version + 1,
    }
    const changed = [
      ...(before.title === body.title ? [] : ['title']),
      ...(before.lead_value === body.lead_value ? [] : ['lead_value']),
    ]
    const shown = {
      before: JSON.stringify(before),
      after: JSON.stringify(after),
      owner_id: before.user_id as number | null,
    }
    log(
      { ...shown, name: 'lead.update.after', entity_type: 'leads', entity_id: id, token_id: tokenId, changed },
      randomUUID(),
      ip,
      at,
    )
    if (before.title !== body.title) updateSearch.run(body.title, id)
    return after
  })

  type Account = { id: number; name: string; email: string; password_hash: string }
  const signIn = database.transaction((user: Account, name: string, ip: string) => {
    const at = new Date().toISOString()
    const expires_at = new Date(Date.now() + 365 * 24 * 60 * 60 * 1000).toISOString()
    const secret = randomBytes(32).toString('base64url')
    const hash = createHash('sha256').update(secret).digest('hex')
    const id = Number(insertToken.run(user.id, name, hash, expires_at, at, at).lastInsertRowid)
    const requestId = randomUUID()
    const rest = { allowed_ips: [], user_id: user.id }
    const shown = {
      id,
      name,
      kind: 'login',
      abilities: ['*'],
      expires_at,
      last_used_at: null,
      last_used_ip: null,
      ...rest,
      created_at: at,
    }
    const about = { entity_type: 'tokens', entity_id: id, token_id: null, owner_id: user.id }
    log(
      { ...about, name: 'user.token.create.after', after: JSON.stringify(shown), changed: Object.keys(shown) },
      requestId,
      ip,
      at,
    )
    const beyond = (aliveTokens.get(user.id) as number) - mostTokens
    for (const old of beyond > 0
      ? (oldTokens.all(user.id, id) as { id: number; created_at: string }[]).slice(0, beyond)
      : []) {
      deleteToken.run(old.id)
      const { created_at, ...was } = old
      const before = JSON.stringify({ ...was, kind: 'login', abilities: ['*'], ...rest, created_at })
      log(
        { ...about, entity_id: old.id, name: 'user.token.delete.after', before, after: null, changed: [] },
        requestId,
        ip,
        at,
      )
    }
    return { id, secret, expires_at }
  })

  async function login(body: { email: string; password: string; device_name: string }, ip: string) {
    const user = accountOf.get(foldText(body.email)) as Account | undefined
    if (!user || !(await verify(user.password_hash, body.password))) throw new Refused('Wrong credentials.')
    const { id, secret, expires_at } = signIn.immediate(user, body.device_name, ip)
    return {
      data: { id: user.id, name: user.name, email: user.email, token: `${id}|${secret}` },
      meta: { token_id: id, abilities: ['*'], expires_at },
      message: 'Signed in.',
    }
  }

  return { create: create.immediate, update: update.immediate, login }
}

const foldText = (text: string): string => text.normalize('NFC').toLowerCase()
const isTitle = (title: unknown): boolean => typeof title === 'string' && title.trim() !== '' && title.length <= 255
const isAmount = (value: unknown): boolean =>
  typeof value === 'number' && value >= 0 && Math.round(value * scale) / scale === value

function checkLead(body: Create): void {
  const { custom_attributes: custom, tag_ids: tags } = body
  const isKnown = Object.keys(body).every((key) => own.has(key))
  const ids = [body.person_id, body.lead_source_id, body.lead_type_id, ...(Array.isArray(tags) ? tags : [0])]
  const hasIds = ids.every((id) => Number.isSafeInteger(id) && id > 0)
  const hasCustom = typeof custom?.region === 'string' && isAmount(custom.seats)
  if (!isKnown || !hasIds || !hasCustom || !isTitle(body.title) || !isAmount(body.lead_value))
    throw new Refused('Not valid.')
}
