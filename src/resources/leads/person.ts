// The person of a lead. A request names an existing person by id, or contains a new
// person that is created together with the lead.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Dialect } from '../../../db/dialect.ts'
import type { Schema } from '../../contract/types.ts'
import { assertCanCall, type Context, canCall } from '../../kernel/context.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import { checkReference } from '../../kernel/resource/references.ts'
import { checkPerson, persons } from '../persons/resource.ts'

type Body = Pick<Schema<'LeadUpdate'>, 'person' | 'person_id'>

/**
 * Returns the condition that an e-mail address of the lead's person matches the word. The first
 * address always counts, because every reference to a person shows it. All other addresses count
 * only when the caller may read persons.
 */
export function matchesPersonAddress(word: string, dialect: Dialect, ctx: Context): RawBuilder<SqlBool> {
  return dialect.jsonPointMatches('persons.emails', canCall(ctx, persons.getOperation) ? 'contains' : 'first', word)
}

/**
 * Returns the ids of leads whose person has an address that the caller may not read. The search
 * index contains these addresses, but a search must not find a lead by such an address.
 */
export async function leadsWithUnreadableAddresses(ctx: Context, ids: readonly number[]): Promise<number[]> {
  if (ids.length === 0 || canCall(ctx, persons.getOperation)) return []
  const point = ctx.services.store.dialect.jsonTexts('persons.emails', 'point')
  const rows = await ctx.db
    .selectFrom('leads')
    .innerJoin('persons', 'persons.id', 'leads.person_id')
    .select('leads.id')
    .where('leads.id', 'in', [...ids])
    .where(sql<SqlBool>`exists (select 1 from ${point} where point.key > 0)`)
    .execute()
  return rows.map(({ id }) => id)
}

/**
 * Returns the `person_id` to store, or undefined when the stored id does not change. Errors of a
 * new person are added to fields that begin with `person.`.
 */
export async function resolvePersonId(
  writing: Writing<{ person_id: number | null }>,
  { person, person_id }: Body,
): Promise<number | null | undefined> {
  const { current, errors } = writing
  if (person === undefined) {
    if (person_id !== current?.person_id) await checkReference(writing, 'person_id', person_id, persons)
    return person_id
  }
  const inlineId = person === null ? null : person.id
  if (inlineId === undefined || (person !== null && inlineId === null)) return create(writing, person, person_id)
  // A client may send back a fetched lead after changing only `person` or only `person_id`. The
  // changed field wins over the unchanged field.
  if (person_id !== undefined && person_id !== inlineId) {
    if (current && inlineId === current.person_id) return resolvePersonId(writing, { person_id })
    if (!current || person_id !== current.person_id) errors.invalid('person_id', 'person.id names another person.')
  }
  if (inlineId !== current?.person_id) await checkReference(writing, 'person.id', inlineId, persons)
  return inlineId
}

async function create(
  { ctx, errors }: Writing<unknown>,
  person: Schema<'LeadPersonInput'>,
  personId: number | null | undefined,
): Promise<number | undefined> {
  if (!person) return undefined
  if (personId !== undefined && personId !== null) errors.invalid('person_id', 'Send either person_id or a new person.')
  assertCanCall(ctx, 'createPerson')
  const { id: _none, ...body } = person
  await checkPerson(ctx, body, errors.nested('person'))
  return errors.any ? undefined : (await persons.create({ ...ctx, ifMatch: null }, body)).id
}
