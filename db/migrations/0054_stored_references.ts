// Creates the table of references inside stored rules, and fills it from the workflows, campaigns,
// web forms, templates, webhooks and imports that exist. The encrypted values of webhooks cannot be
// read here; their references are added by the next save of the webhook.

import { type Kysely, sql } from 'kysely'
import type { Dialect } from '../dialect.ts'
import { createTable, integer, text } from '../schema/columns.ts'

interface Attribute {
  id: number
  code: string
  type: string
  entity_type: string
  lookup_type: string | null
  is_user_defined: number
}

interface Reference {
  from_type: string
  from_id: number
  field: string
  to_type: string
  to_id: number
}

type Add = (field: string, entity: string, id: number) => void

const entityOfLookup: Record<string, string> = {
  lead_sources: 'sources',
  lead_types: 'types',
  lead_pipelines: 'pipelines',
  lead_pipeline_stages: 'stages',
}
const targetOfAction: Record<string, string> = {
  update_lead: 'leads',
  update_related_leads: 'leads',
  update_person: 'persons',
  update_quote: 'quotes',
}

export async function up(db: Kysely<unknown>, dialect: Dialect): Promise<void> {
  await createTable(
    db,
    dialect,
    'stored_references',
    {
      /** The entity and id of the record that names another one. */
      from_type: text(),
      from_id: integer(),
      field: text(),
      /** The entity and id of the named record. */
      to_type: text(),
      to_id: integer(),
    },
    { primaryKey: ['from_type', 'from_id', 'field', 'to_type', 'to_id'], indexes: [['to_type', 'to_id']] },
  )
  const found = new Map<string, Reference>()
  const adderOf =
    (from_type: string, from_id: number): Add =>
    (field, to_type, to_id) => {
      const row = { from_type, from_id, field, to_type, to_id }
      found.set(JSON.stringify(row), row)
    }
  const attributes = await all<Attribute>(db, 'attributes')
  await readWorkflows(db, attributes, adderOf)
  await readCampaigns(db, attributes, adderOf)
  await readForms(db, attributes, adderOf)
  await readTexts(db, attributes, adderOf)
  await readImports(db, attributes, adderOf)
  for (const row of found.values())
    await sql`insert into stored_references (from_type, from_id, field, to_type, to_id)
      values (${row.from_type}, ${row.from_id}, ${row.field}, ${row.to_type}, ${row.to_id})`.execute(db)
}

type AdderOf = (entity: string, id: number) => Add

const all = async <Row>(db: Kysely<unknown>, table: string): Promise<Row[]> =>
  (await sql<Row>`select * from ${sql.table(table)} order by id`.execute(db)).rows

const named = (attributes: readonly Attribute[], entity: string, code: string | null): Attribute | undefined =>
  attributes.find((each) => each.entity_type === entity && each.code === code)

/** Adds the attribute, and the records or options that its value names. */
function addValue(add: Add, field: string, attribute: Attribute, value: unknown): void {
  if (attribute.is_user_defined === 1) add(field, 'attributes', attribute.id)
  const hasOptions = ['select', 'multiselect', 'checkbox'].includes(attribute.type)
  const { lookup_type: lookup } = attribute
  if (lookup === null && !hasOptions) return
  const entity = lookup === null ? 'options' : (entityOfLookup[lookup] ?? lookup)
  const texts = typeof value === 'string' ? value.split(',') : [value].flat()
  for (const id of texts.map((each) => (each === null || each === '' ? 0 : Number(each))))
    if (Number.isSafeInteger(id) && id > 0) add(field, entity, id)
}

function addPlaceholders(add: Add, field: string, attributes: readonly Attribute[], value: string): void {
  for (const [, entity = '', code = ''] of value.matchAll(/\{%\s*([a-z_]+)\.([a-z0-9_]+)\s*%\}/g)) {
    const attribute = named(attributes, entity, code)
    if (attribute?.is_user_defined === 1) add(field, 'attributes', attribute.id)
  }
}

async function readWorkflows(db: Kysely<unknown>, attributes: readonly Attribute[], adderOf: AdderOf): Promise<void> {
  type Rule = { attribute: string | null; value: unknown }
  const rows = await all<{ id: number; entity_type: string; conditions: string; actions: string }>(db, 'workflows')
  for (const { id, entity_type, conditions, actions } of rows) {
    const add = adderOf('workflows', id)
    for (const { attribute: code, value } of JSON.parse(conditions) as Rule[]) {
      const attribute = named(attributes, entity_type, code)
      const fixed = entity_type === 'leads' && code === 'tag_ids' ? 'tags' : 'users'
      if (attribute) addValue(add, 'conditions', attribute, value)
      else if (fixed === 'tags' || (entity_type === 'activities' && code === 'user_id'))
        for (const each of [value].flat()) if (typeof each === 'number') add('conditions', fixed, each)
    }
    for (const action of JSON.parse(actions) as (Rule & { id: string })[]) {
      const target = targetOfAction[action.id]
      const attribute = target === undefined ? undefined : named(attributes, target, action.attribute)
      if (attribute) addValue(add, 'actions', attribute, action.value)
      if (typeof action.value === 'number' && action.id.startsWith('send_email_'))
        add('actions', 'email-templates', action.value)
      if (typeof action.value === 'number' && action.id === 'trigger_webhook') add('actions', 'webhooks', action.value)
      if (typeof action.value === 'string' && action.id === 'add_note_as_activity')
        addPlaceholders(add, 'actions', attributes, action.value)
    }
  }
}

async function readCampaigns(db: Kysely<unknown>, attributes: readonly Attribute[], adderOf: AdderOf): Promise<void> {
  const rows = await all<{ id: number; subject: string; audience_filter: string | null }>(db, 'marketing_campaigns')
  const keys = { organization_id: 'organizations', user_id: 'users', tag_id: 'tags' }
  for (const { id, subject, audience_filter } of rows) {
    const add = adderOf('campaigns', id)
    addPlaceholders(add, 'subject', attributes, subject)
    const filter = JSON.parse(audience_filter ?? '{}') as Record<string, number[]>
    for (const [key, entity] of Object.entries(keys))
      for (const each of [...(filter[key] ?? []), ...(filter[`${key}[not]`] ?? [])])
        add('audience.filter', entity, each)
    for (const [code, value] of Object.entries(filter.custom_attributes ?? {})) {
      const attribute = named(attributes, 'persons', code)
      if (attribute?.is_user_defined === 1) addValue(add, 'audience.filter', attribute, value)
    }
  }
}

async function readForms(db: Kysely<unknown>, attributes: readonly Attribute[], adderOf: AdderOf): Promise<void> {
  type Field = { web_form_id: number; attribute_id: number; default_value: string | null }
  for (const { web_form_id, attribute_id, default_value } of await all<Field>(db, 'web_form_attributes')) {
    const attribute = attributes.find(({ id }) => id === attribute_id)
    // The attribute itself has a foreign key.
    if (attribute && default_value !== null)
      addValue(
        adderOf('web-forms', web_form_id),
        'attributes',
        { ...attribute, is_user_defined: 0 },
        JSON.parse(default_value),
      )
  }
}

async function readTexts(db: Kysely<unknown>, attributes: readonly Attribute[], adderOf: AdderOf): Promise<void> {
  for (const row of await all<{ id: number; subject: string; content: string }>(db, 'email_templates'))
    for (const field of ['subject', 'content'] as const)
      addPlaceholders(adderOf('email-templates', row.id), field, attributes, row[field])
  for (const row of await all<{ id: number; url: string; payload: string | null }>(db, 'webhooks'))
    for (const field of ['url', 'payload'] as const)
      addPlaceholders(adderOf('webhooks', row.id), field, attributes, row[field] ?? '')
}

async function readImports(db: Kysely<unknown>, attributes: readonly Attribute[], adderOf: AdderOf): Promise<void> {
  const rows = await all<{ id: number; type: string; state: string; mapping: string | null }>(db, 'imports')
  for (const { id, type, state, mapping } of rows) {
    if (state === 'completed' || mapping === null) continue
    for (const name of Object.values(JSON.parse(mapping) as Record<string, string | null>)) {
      const attribute = named(attributes, type, name?.split('.')[0] ?? null)
      if (attribute?.is_user_defined === 1) adderOf('imports', id)('mapping', 'attributes', attribute.id)
    }
  }
}
