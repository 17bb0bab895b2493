// Inserts the rows that every installation starts with. Their ids are part of the API, so they are
// fixed. A database with a role is not seeded again, because users may have renamed or deleted
// rows.

import type { Kysely, Selectable } from 'kysely'
import { caseFold } from './schema/case-folding.ts'
import { textKey } from './schema/search-folding.ts'
import type { Db, Store } from './store.ts'
import type { AttributesTable } from './tables.gen.ts'

export interface Seeds {
  readonly adminName: string
  readonly adminEmail: string
  readonly adminPasswordHash: string
  /** The ISO timestamp of every seeded row. */
  readonly now: string
}

/** A system attribute: its code, display name, type and further columns. */
type AttributeSeed = readonly [
  code: string,
  name: string,
  type: Selectable<AttributesTable>['type'],
  more?: AttributeMore,
]

interface AttributeMore {
  readonly lookup?: AttributesTable['lookup_type']
  readonly validation?: AttributesTable['validation']
  readonly required?: true
  readonly unique?: true
}

const required = { required: true } as const

const systemAttributes: Readonly<Record<AttributesTable['entity_type'], readonly AttributeSeed[]>> = {
  leads: [
    ['title', 'Title', 'text', required],
    ['description', 'Description', 'textarea'],
    ['lead_value', 'Lead Value', 'price', { validation: 'decimal', ...required }],
    ['lead_source_id', 'Source', 'select', { lookup: 'lead_sources', ...required }],
    ['lead_type_id', 'Type', 'select', { lookup: 'lead_types', ...required }],
    ['user_id', 'Sales Owner', 'select', { lookup: 'users' }],
    ['expected_close_date', 'Expected Close Date', 'date'],
    ['lead_pipeline_id', 'Pipeline', 'lookup', { lookup: 'lead_pipelines', ...required }],
    ['lead_pipeline_stage_id', 'Stage', 'lookup', { lookup: 'lead_pipeline_stages', ...required }],
  ],
  persons: [
    ['name', 'Name', 'text', required],
    ['emails', 'Emails', 'email', { unique: true }],
    ['contact_numbers', 'Contact Numbers', 'phone'],
    ['job_title', 'Job Title', 'text'],
    ['user_id', 'Sales Owner', 'lookup', { lookup: 'users' }],
    ['organization_id', 'Organization', 'lookup', { lookup: 'organizations' }],
  ],
  organizations: [
    ['name', 'Name', 'text', { unique: true, ...required }],
    ['address', 'Address', 'address'],
    ['user_id', 'Sales Owner', 'lookup', { lookup: 'users' }],
  ],
  products: [
    ['name', 'Name', 'text', required],
    ['description', 'Description', 'textarea'],
    ['sku', 'SKU', 'text', { unique: true, ...required }],
    ['quantity', 'Quantity', 'text', { validation: 'numeric', ...required }],
    ['price', 'Price', 'price', { validation: 'decimal', ...required }],
  ],
  quotes: [
    ['user_id', 'Sales Owner', 'select', { lookup: 'users', ...required }],
    ['subject', 'Subject', 'text', required],
    ['description', 'Description', 'textarea'],
    ['billing_address', 'Billing Address', 'address', required],
    ['shipping_address', 'Shipping Address', 'address'],
    ['discount_percent', 'Discount Percent', 'text', { validation: 'decimal' }],
    ['discount_amount', 'Discount Amount', 'price', { validation: 'decimal' }],
    ['tax_amount', 'Tax Amount', 'price', { validation: 'decimal' }],
    ['adjustment_amount', 'Adjustment Amount', 'price', { validation: 'decimal' }],
    ['subtotal', 'Subtotal', 'price', { validation: 'decimal', ...required }],
    ['grand_total', 'Grand Total', 'price', { validation: 'decimal', ...required }],
    ['expiry_date', 'Expiry Date', 'date', required],
    ['person_id', 'Person', 'lookup', { lookup: 'persons', ...required }],
  ],
  warehouses: [
    ['name', 'Name', 'text', required],
    ['description', 'Description', 'textarea'],
    ['contact_name', 'Contact Name', 'text', required],
    ['contact_emails', 'Contact Emails', 'email', { unique: true, ...required }],
    ['contact_numbers', 'Contact Numbers', 'phone'],
    ['contact_address', 'Contact Address', 'address', required],
  ],
}

/**
 * System attributes that later versions added. Their ids follow those of `systemAttributes`,
 * because the ids of the first version must not change.
 */
const laterAttributes: readonly (readonly [
  entity: AttributesTable['entity_type'],
  seed: AttributeSeed,
  sortOrder: number,
])[] = [['persons', ['subscribed', 'Subscribed', 'boolean'], 7]]

const stages = [
  ['new', 'New', 10],
  ['follow-up', 'Follow Up', 25],
  ['prospect', 'Prospect', 50],
  ['negotiation', 'Negotiation', 75],
  ['won', 'Won', 100],
  ['lost', 'Lost', 0],
] as const

const fixedStages: readonly string[] = ['new', 'won', 'lost']

const invitable = [
  { attribute: 'type', operator: '{}', value: ['call', 'meeting', 'lunch'] },
  { attribute: 'notify', operator: '==', value: true },
  { attribute: 'schedule_to', operator: '>=', value: '{{today}}' },
]

/** The invitations that participants of an activity with `notify` get. */
const notices = [
  {
    template: 'Activity created',
    prefix: '',
    workflow: 'Tell participants of a created activity',
    event: 'activity.create.after',
    conditions: invitable,
    // A restored activity was cancelled when it was deleted, so participants are invited again.
    run_on_restore: 1,
  },
  {
    template: 'Activity modified',
    prefix: '{%texts.changed%}: ',
    workflow: 'Tell participants of a modified activity',
    event: 'activity.update.after',
    conditions: [...invitable, { attribute: 'is_rescheduled', operator: '==', value: true }],
    run_on_restore: 0,
  },
  {
    template: 'Activity cancelled',
    prefix: '{%texts.cancelled%}: ',
    workflow: 'Tell participants of a cancelled activity',
    event: 'activity.delete.before',
    conditions: invitable,
    run_on_restore: 0,
  },
] as const

/** The id of the first user, who is the administrator. */
const administrator = 1

export async function seed(store: Store, seeds: Seeds): Promise<void> {
  await store.transaction(async (db) => {
    const role = await db.selectFrom('roles').select('id').limit(1).executeTakeFirst()
    if (role !== undefined) return
    const stamps = { created_at: seeds.now, updated_at: seeds.now }
    await seedAdministrator(db, seeds, stamps)
    await seedVocabulary(db, stamps)
    await seedAttributes(db, stamps)
    await seedAutomation(db, stamps)
    await store.dialect.resetSequences(db as unknown as Kysely<unknown>)
  })
}

interface Stamps {
  created_at: string
  updated_at: string
}

async function seedAdministrator(db: Db, seeds: Seeds, stamps: Stamps): Promise<void> {
  await db
    .insertInto('roles')
    .values({ id: 1, ...named('Administrator'), permission_type: 'all', permissions: null, ...stamps })
    .execute()
  await db
    .insertInto('users')
    .values({
      id: administrator,
      ...named(seeds.adminName),
      email: seeds.adminEmail,
      email_key: caseFold(seeds.adminEmail),
      password_hash: seeds.adminPasswordHash,
      is_active: 1,
      view_permission: 'global',
      role_id: 1,
      ...stamps,
    })
    .execute()
}

async function seedVocabulary(db: Db, stamps: Stamps): Promise<void> {
  await db
    .insertInto('lead_pipelines')
    .values({ id: 1, ...named('Default Pipeline'), is_default: 1, rotten_days: 30, ...stamps })
    .execute()
  await db
    .insertInto('lead_pipeline_stages')
    .values(
      stages.map(([code, name, probability], index) => ({
        id: index + 1,
        lead_pipeline_id: 1,
        code,
        ...named(name),
        probability,
        sort_order: index + 1,
        is_user_defined: fixedStages.includes(code) ? 0 : 1,
        ...stamps,
      })),
    )
    .execute()
  await db
    .insertInto('lead_sources')
    .values(
      ['Email', 'Web', 'Web Form', 'Phone', 'Direct'].map((name, i) => ({ id: i + 1, ...named(name), ...stamps })),
    )
    .execute()
  await db
    .insertInto('lead_types')
    .values(['New Business', 'Existing Business'].map((name, i) => ({ id: i + 1, ...named(name), ...stamps })))
    .execute()
}

async function seedAttributes(db: Db, stamps: Stamps): Promise<void> {
  const first = (Object.keys(systemAttributes) as AttributesTable['entity_type'][]).flatMap((entity) =>
    systemAttributes[entity].map((seed, index) => [entity, seed, index + 1] as const),
  )
  const rows = [...first, ...laterAttributes].map(([entityType, [code, name, type, more], sortOrder]) => ({
    code,
    ...named(name),
    type,
    entity_type: entityType,
    lookup_type: more?.lookup ?? null,
    validation: more?.validation ?? null,
    sort_order: sortOrder,
    is_required: more?.required ? 1 : 0,
    is_unique: more?.unique ? 1 : 0,
    quick_add: 1,
    is_user_defined: 0,
    ...stamps,
  }))
  await db
    .insertInto('attributes')
    .values(rows.map((row, index) => ({ id: index + 1, ...row })))
    .execute()
}

async function seedAutomation(db: Db, stamps: Stamps): Promise<void> {
  await db
    .insertInto('email_templates')
    .values(
      notices.map(({ template, prefix }, index) => ({
        id: index + 1,
        ...named(template),
        subject: `${prefix}{%activities.title%}, {%activities.short_time%}`,
        content: invitationText(prefix),
        ...stamps,
      })),
    )
    .execute()
  await db
    .insertInto('workflows')
    .values(
      notices.map(({ workflow, event, conditions, run_on_restore }, index) => ({
        id: index + 1,
        ...named(workflow),
        entity_type: 'activities' as const,
        event,
        condition_type: 'and',
        conditions: JSON.stringify(conditions),
        run_on_restore,
        actions: JSON.stringify([{ id: 'send_email_to_participants', attribute: null, value: index + 1 }]),
        is_active: 1,
        sort_order: index + 1,
        changed_by_id: administrator,
        ...stamps,
      })),
    )
    .execute()
  await db
    .insertInto('stored_references')
    .values(
      notices.map((_, index) => ({
        from_type: 'workflows',
        from_id: index + 1,
        field: 'actions',
        to_type: 'email-templates',
        to_id: index + 1,
      })),
    )
    .execute()
}

/** Returns the text of an invitation. `prefix` says what happened to it. */
function invitationText(prefix: string): string {
  const rows = [
    ['when', 'activities.time'],
    ['place', 'activities.location|–'],
    ['organizer', 'users.name|–'],
    ['participants', 'activities.participants|–'],
  ].map(([label, field]) => {
    const cell = 'align="left" valign="top" style="padding:4px 16px 4px 0"'
    return `<tr><th ${cell}>{%texts.${label}%}:</th><td ${cell}>{%${field}%}</td></tr>`
  })
  return `<p><b>${prefix}{%activities.title%}</b></p><table cellspacing="0">${rows.join('')}</table>`
}

function named(name: string): { name: string; name_key: string } {
  return { name, name_key: textKey(name) }
}
