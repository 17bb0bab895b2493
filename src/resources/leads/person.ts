// The person of a lead (DOMAIN 9.4): given by id, or inline and created with the lead.
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Dialect } from '../../../db/dialect.ts'
import type { Schema } from '../../contract/types.ts'
import { assertCanCall, type Context, canCall } from '../../kernel/context.ts'
import { visible } from '../../kernel/query/visibility.ts'
import type { Writing } from '../../kernel/resource/define-resource.ts'
import { checkReference } from '../../kernel/resource/references.ts'
import { checkPerson, persons } from '../persons/resource.ts'

type Body = Pick<Schema<'LeadUpdate'>, 'person' | 'person_id'>

/**
 * Returns the condition that the word matches an e-mail address the caller may read. The first
 * address is in every reference; the others count only when the caller sees the person.
 */
export function matchesPersonAddress(word: string, dialect: Dialect, ctx: Context): RawBuilder<SqlBool> {
  const first = dialect.jsonPointMatches('persons.emails', 'first', word)
  if (!canCall(ctx, persons.getOperation)) return first
  const any = dialect.jsonPointMatches('persons.emails', 'contains', word)
  if ((ctx.user?.visibleOwners ?? null) === null) return any
  return sql<SqlBool>`(${first} or (${visible(ctx, 'persons.user_id')} and ${any}))`
}

/**
 * Returns the leads whose person has an address that the caller may not read. The search index
 * contains these addresses, too.
 */
export async function leadsWithUnreadableAddresses(ctx: Context, ids: readonly number[]): Promise<number[]> {
  const isOpen = canCall(ctx, persons.getOperation)
  if (ids.length === 0 || (isOpen && (ctx.user?.visibleOwners ?? null) === null)) return []
  const point = ctx.services.store.dialect.jsonTexts('persons.emails', 'point')
  let rows = ctx.db
    .selectFrom('leads')
    .innerJoin('persons', 'persons.id', 'leads.person_id')
    .select('leads.id')
    .where('leads.id', 'in', [...ids])
    .where(sql<SqlBool>`exists (select 1 from ${point} where point.key > 0)`)
  if (isOpen) rows = rows.where(sql<SqlBool>`${visible(ctx, 'persons.user_id')} is not true`)
  return (await rows.execute()).map(({ id }) => id)
}

/**
 * Returns the `person_id` to store, or undefined when it stays. Errors of an inline person are
 * reported below `person.`.
 */
export async function resolvePersonId(
  writing: Writing<{ person_id: number | null }>,
  { person, person_id }: Body,
): Promise<number | null | undefined> {
  const { current, found } = writing
  if (person === undefined) {
    if (person_id !== current?.person_id) await checkReference(writing, 'person_id', person_id, persons)
    return person_id
  }
  const inlineId = person === null ? null : person.id
  if (inlineId === undefined || (person !== null && inlineId === null)) return create(writing, person, person_id)
  // A client that sends back a fetched lead sends the old reference beside the changed one; the
  // changed one wins.
  if (person_id !== undefined && person_id !== inlineId) {
    if (current && inlineId === current.person_id) return resolvePersonId(writing, { person_id })
    if (!current || person_id !== current.person_id) found.invalid('person_id', 'person.id names another person.')
  }
  if (inlineId !== current?.person_id) await checkReference(writing, 'person.id', inlineId, persons)
  return inlineId
}

async function create(
  { ctx, found }: Writing<unknown>,
  person: Schema<'LeadPersonInput'>,
  personId: number | null | undefined,
): Promise<number | undefined> {
  if (!person) return undefined
  if (personId !== undefined && personId !== null) found.invalid('person_id', 'Send either person_id or a new person.')
  assertCanCall(ctx, 'createPerson')
  const { id: _none, ...body } = person
  await checkPerson(ctx, body, found.nested('person'))
  return found.any ? undefined : (await persons.create({ ...ctx, ifMatch: null }, body)).id
}
