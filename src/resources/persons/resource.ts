// Persons, the contacts of the CRM.
import { sql } from 'kysely'
import type { Schema } from '../../contract/types.ts'
import { assertCanCall, type Context, canCall } from '../../kernel/context.ts'
import { inUse, ValidationErrors } from '../../kernel/errors.ts'
import { flagField, importedField, linkedField, textField, valueField } from '../../kernel/query/filter.ts'
import { idsInSight, visible } from '../../kernel/query/visibility.ts'
import { defineResource, type Writing } from '../../kernel/resource/define-resource.ts'
import { nameKey } from '../../kernel/resource/named-references.ts'
import { checkReference, expandReferences } from '../../kernel/resource/references.ts'
import { readAddress } from '../../kernel/values/address.ts'
import { textKey } from '../../kernel/values/names.ts'
import { checkValues, withAttributes } from '../attributes/with-attributes.ts'
import { noteDomains } from '../organizations/merging.ts'
import { organizations, organizationsLike } from '../organizations/resource.ts'
import { checkTagIds, readTags, setTags, tagsIn } from '../tags/tag-links.ts'
import { resolveOwnerId, userRef } from '../users/owner.ts'
import { pictureUrl } from '../users/picture.ts'
import { users } from '../users/resource.ts'
import { consentColumns } from './consent.ts'
import {
  checkUniquePoints,
  cleanContactPoints,
  contactFilter,
  personsByEmail,
  repairPerson,
  saveUniquePoints,
} from './contacts.ts'
import { checkEmail, linkEmail } from './emails.ts'
import { checkErased } from './erase/suppression.ts'
import { languageColumn } from './language.ts'
import { personMerging } from './merging.ts'
import { hasPhoneNumberLike, savePhoneNumbers } from './phone-numbers.ts'
import { searchDocument } from './search-document.ts'
import { loadUnsubscribedAt } from './unsubscribed.ts'

type Row = { id: number; organization_id: number | null; user_id: number | null; subscribed: number | null }

type NamedOrganization = number | null | undefined | { name: string }

type Body = Schema<'PersonUpdate'> & Pick<Schema<'PersonCreate'>, 'email_id'>

/**
 * Returns the organization to store: an id, or the name of an organization to create. The name of
 * an existing organization is resolved to its id. An unchanged `organization_id` is ignored, so a
 * client can send a fetched person back with a different `organization_name`.
 */
async function organizationOf(writing: Writing<Row>, body: Body): Promise<NamedOrganization> {
  const { ctx, current, errors } = writing
  const id = current && body.organization_id === current.organization_id ? undefined : body.organization_id
  const name = body.organization_name
  await checkReference(writing, 'organization_id', id, organizations)
  if (name === undefined || name === null) return id
  const [known, other] = await organizationsLike(ctx, textKey(name))
  if (other) errors.invalid('organization_name', 'Several organizations have such a name. Send organization_id.')
  if (id !== undefined && id !== known?.id) {
    errors.invalid('organization_name', 'organization_id names another organization.')
    return id
  }
  if (known) return known.id
  assertCanCall(ctx, 'createOrganization')
  const inner = new ValidationErrors()
  await checkValues(ctx, 'organizations', { name }, inner)
  for (const [field, sentences] of Object.entries(inner.all))
    for (const sentence of sentences)
      errors.invalid('organization_name', `There is no such organization, and a new one needs ${field}: ${sentence}`)
  return { name }
}

/** Returns the id of the organization to store. Creates a new one if there are no errors. */
async function organizationId(
  { ctx, errors }: Writing<Row>,
  organization: NamedOrganization,
): Promise<number | null | undefined> {
  if (typeof organization !== 'object' || organization === null) return organization
  return errors.any ? undefined : (await organizations.create(ctx, organization)).id
}

/**
 * Returns the columns of a person and the organization to store or create. Adds all errors to
 * `writing.errors` and writes nothing.
 */
async function planPerson(body: Body, writing: Writing<Row>) {
  const { ctx, current, errors } = writing
  const emails = cleanContactPoints('emails', body.emails, errors)
  const numbers = cleanContactPoints('contact_numbers', body.contact_numbers, errors)
  await checkUniquePoints(ctx, 'persons', 'emails', body.emails, current?.id ?? null, errors)
  await checkUniquePoints(ctx, 'persons', 'contact_numbers', body.contact_numbers, current?.id ?? null, errors)
  await checkErased(ctx, body, errors)
  await checkTagIds(ctx, errors, body.tag_ids)
  await checkEmail(writing, body.email_id)
  const user_id = await resolveOwnerId(writing, body.user_id)
  const language = languageColumn(body.language, errors)
  const columns = {
    name: body.name,
    name_key: body.name === undefined ? undefined : textKey(body.name),
    emails: current ? emails && JSON.stringify(emails) : JSON.stringify(emails ?? []),
    contact_numbers: current ? numbers && JSON.stringify(numbers) : JSON.stringify(numbers ?? []),
    job_title: body.job_title,
    job_title_key: body.job_title === undefined ? undefined : body.job_title === null ? null : textKey(body.job_title),
    language,
    language_key: language && textKey(language),
    user_id,
    ...consentColumns(ctx, body.subscribed, current),
  }
  return { columns, organization: await organizationOf(writing, body) }
}

export const persons = defineResource(
  withAttributes('persons', {
    noun: 'person',
    table: 'persons',
    externalIds: { table: 'person_external_ids', column: 'person_id', former: 'person_former_ids' },
    merging: personMerging,
    namedBy: { keys: { name: nameKey, email: personsByEmail } },
    operations: {
      list: 'listPersons',
      get: 'getPerson',
      create: 'createPerson',
      update: 'updatePerson',
      delete: 'deletePerson',
    },
    rows: (ctx, db) =>
      db
        .selectFrom('persons')
        .leftJoin('organizations', 'organizations.id', 'persons.organization_id')
        .leftJoin('users', 'users.id', 'persons.user_id')
        .selectAll('persons')
        .select(tagsIn(ctx, db, 'persons'))
        .select([
          'organizations.name as organization_name',
          'organizations.address as organization_address',
          'users.name as user_name',
          'users.email as user_email',
          'users.image_file_id as user_image',
        ])
        .select(sql<number | boolean | null>`${visible(ctx, 'organizations.user_id')}`.as('organization_is_seen'))
        .select([
          sql<number>`(select count(*) from leads where leads.person_id = persons.id and ${visible(ctx, 'leads.user_id')})`.as(
            'leads_count',
          ),
          sql<number>`(select count(*) from quotes where quotes.person_id = persons.id and ${visible(ctx, 'quotes.user_id')})`.as(
            'quotes_count',
          ),
          // Counts all linked activities without a visibility check, because an activity linked to
          // a visible person is visible.
          sql<number>`(select count(*) from person_activities as link where link.person_id = persons.id)`.as(
            'activities_count',
          ),
        ])
        .where(visible(ctx, 'persons.user_id')),
    idsInSight: (caller) => idsInSight(caller, 'persons'),
    sort: {
      id: 'persons.id',
      name: 'persons.name_key',
      job_title: 'persons.job_title_key',
      language: 'persons.language_key',
      organization_name: 'organizations.name_key',
      created_at: 'persons.created_at',
      updated_at: 'persons.updated_at',
    },
    filter: {
      name: textField('persons.name_key'),
      email: contactFilter('emails'),
      phone: contactFilter('contact_numbers'),
      job_title: textField('persons.job_title_key'),
      language: textField('persons.language_key'),
      organization_id: valueField('persons.organization_id'),
      user_id: valueField('persons.user_id'),
      tag_id: linkedField('person_tags', 'persons.id', 'person_id', 'tag_id'),
      import_id: importedField('persons', 'person'),
      subscribed: flagField('persons.subscribed'),
    },
    related: { organization: { entity: 'organizations', column: 'persons.organization_id' } },
    searchDocument,
    search: [
      { indexed: 'persons' },
      { key: 'persons.name_key' },
      { key: 'persons.job_title_key' },
      { key: 'organizations.name_key' },
      { where: (word, dialect) => dialect.jsonPointMatches('persons.emails', 'contains', word) },
      { where: (word, dialect) => dialect.jsonPointMatches('persons.contact_numbers', 'contains', word) },
      { whole: hasPhoneNumberLike },
    ],
    withoutColumn: { organization_name: 'other columns', tag_ids: 'links', email_id: 'links' },
    toRow: async (body: Body, writing) => {
      const { columns, organization } = await planPerson(body, writing)
      return {
        columns: { ...columns, organization_id: await organizationId(writing, organization) },
        save: async (ctx, id) => {
          await saveUniquePoints(ctx, 'persons', id, 'emails', body.emails)
          await saveUniquePoints(ctx, 'persons', id, 'contact_numbers', body.contact_numbers)
          await savePhoneNumbers(ctx, id, body.contact_numbers)
        },
      }
    },
    toReply: (row, ctx): Schema<'Person'> => {
      const isAddressShown = Boolean(row.organization_is_seen) && canCall(ctx, organizations.getOperation)
      const owner = userRef(row.user_id, row.user_name, row.user_email, pictureUrl(ctx, row.user_image))
      return {
        id: row.id,
        name: row.name,
        emails: JSON.parse(row.emails) as Schema<'ContactPoint'>[],
        contact_numbers: JSON.parse(row.contact_numbers) as Schema<'ContactPoint'>[],
        job_title: row.job_title,
        language: row.language,
        organization_id: row.organization_id,
        organization:
          row.organization_id === null
            ? null
            : {
                id: row.organization_id,
                name: row.organization_name ?? '',
                // An organization that the caller may not read is shown only with its id and name.
                address: isAddressShown ? readAddress(row.organization_address) : null,
              },
        user_id: row.user_id,
        user: owner,
        tags: readTags(row.tags),
        subscribed: row.subscribed === null ? null : row.subscribed === 1,
        subscribed_source: row.subscribed_source,
        subscribed_at: row.subscribed_at,
        unsubscribed_at: null,
        leads_count: Number(row.leads_count),
        quotes_count: Number(row.quotes_count),
        activities_count: Number(row.activities_count),
        custom_attributes: {},
        external_ids: {},
        created_at: row.created_at,
        updated_at: row.updated_at,
        version: row.version,
      }
    },
    loadRelated: async (ctx, replies, include) => {
      await loadUnsubscribedAt(ctx, replies)
      await expandReferences(ctx, replies, include, { organization: () => organizations, user: () => users })
    },
    saveLinks: async (ctx, id, body: Body, isNew) => {
      await setTags(ctx, 'persons', id, body.tag_ids, isNew)
      await linkEmail(ctx, body.email_id, { person_id: id })
    },
    beforeDelete: async (ctx, row) => {
      const [leads, quotes] = [await usersOf(ctx, 'leads', row.id), await usersOf(ctx, 'quotes', row.id)]
      const conflicts = [...leads, ...quotes].slice(0, 20)
      const who = leads.length === 0 ? 'Quotes' : quotes.length === 0 ? 'Leads' : 'Leads and quotes'
      if (conflicts.length > 0) throw inUse(`${who} refer to ${row.name}.`, conflicts)
    },
    onRestore: repairPerson,
    onChange: async (ctx, _id, { after }) => {
      if (after) await noteDomains(ctx, after)
    },
  }),
)

/**
 * Returns the first 20 leads or quotes that refer to a person. The id is null when the caller may
 * not see the record.
 */
async function usersOf(ctx: Context, entity: 'leads' | 'quotes', id: number) {
  const rows = await ctx.db
    .selectFrom(entity)
    .select(['id', sql<number | boolean>`${visible(ctx, `${entity}.user_id`)}`.as('is_seen')])
    .where('person_id', '=', id)
    .orderBy('id')
    .limit(20)
    .execute()
  return rows.map((row) => ({ entity_type: entity, id: row.is_seen ? row.id : null, field: 'person_id' }))
}

/**
 * Adds the errors of a new person that is nested in the body of another record. The schema of a
 * nested person has no required fields, so this function requires the name.
 */
export async function checkPerson(ctx: Context, body: Body, errors: ValidationErrors): Promise<void> {
  if (body.name === undefined) errors.invalid('name', 'The field is required.')
  await checkValues(ctx, 'persons', body, errors)
  await planPerson(body, { ctx, current: null, errors })
}
