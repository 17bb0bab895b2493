// The writes of the limit server: one transaction per request with all rows that a later request
// could read: the record, its tags and product lines, the events, and the search document.
import { randomUUID } from 'node:crypto'
import type { Database } from 'better-sqlite3'
import { eventLog, foldText, Refused } from './limit.events.ts'
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

interface Create {
  title: string
  lead_value: number
  person_id: number
  lead_source_id: number
  lead_type_id: number
  tag_ids: number[]
  custom_attributes: { region: string; seats: number }
}

interface Move {
  lead_pipeline_stage_id: number
}

export function createWriter(database: Database, reader: Reader, { tokenId }: { tokenId: number }) {
  const one = (text: string) => database.prepare<unknown[]>(text)
  const log = eventLog(database)
  const insertLead =
    one(`insert into leads (title, title_key, lead_value, status, stage_changed_at, user_id, person_id, lead_source_id,
    lead_type_id, lead_pipeline_id, lead_pipeline_stage_id, custom_attributes, created_at, updated_at)
    values (?, ?, ?, 1, ?, 1, ?, ?, ?, 1, ?, ?, ?, ?)`)
  const insertTag = one('insert into lead_tags (lead_id, tag_id) values (?, ?)')
  const insertSearch = one(
    `insert into search_index (id, entity_type, entity_id, title, subtitle, body) values (? * 16 + 3, 'leads', ?, ?, ?, ?)`,
  )
  const updateSearch = one(`update search_index set title = ? where entity_type = 'leads' and entity_id = ?`)
  const updateLead = one(
    'update leads set title = ?, title_key = ?, lead_value = ?, updated_at = ?, version = version + 1 where id = ?',
  )
  const openStage = one(
    `select 1 from lead_pipeline_stages where id = ? and lead_pipeline_id = 1 and code not in ('won', 'lost')`,
  )
  const updateStage = one(
    `update leads set lead_pipeline_stage_id = ?, status = 1, closed_at = null, lost_reason = null,
    stage_changed_at = ?, updated_at = ?, version = version + 1 where id = ?`,
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
    insertSearch.run(id, id, body.title, named.join(' · '), [...named, ...emails].join('\n'))
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

  const moveToStage = database.transaction((id: number, { lead_pipeline_stage_id: stage }: Move, ip: string): Lead => {
    const at = new Date().toISOString()
    const before = reader.show(id, Date.parse(at))
    if (!before) throw new Refused(`No lead has id ${id}.`)
    if (!Number.isSafeInteger(stage) || openStage.get(stage) === undefined) throw new Refused('No such stage.')
    if (before.lead_pipeline_stage_id === stage) return before
    updateStage.run(stage, at, at, id)
    const after = reader.show(id, Date.parse(at)) as Lead
    const isOther = (key: string): boolean =>
      JSON.stringify(before[key as keyof Lead]) !== JSON.stringify(after[key as keyof Lead])
    const moved = {
      before: JSON.stringify(before),
      after: JSON.stringify(after),
      owner_id: before.user_id as number | null,
      entity_type: 'leads',
      entity_id: id,
      token_id: tokenId,
      changed: Object.keys(after).filter((key) => !derived.has(key) && isOther(key)),
    }
    const requestId = randomUUID()
    const first_event_id = log({ ...moved, name: 'lead.update.after' }, requestId, ip, at)
    if (before.status !== 1) log({ ...moved, name: 'lead.reopened', first_event_id }, requestId, ip, at)
    return after
  })

  return { create: create.immediate, update: update.immediate, moveToStage: moveToStage.immediate }
}

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
