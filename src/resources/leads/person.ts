// The person of a lead: by id, or given inline and created on the way (DOMAIN 9.4).
import type { Schema } from '../../contract/types.ts'
import { holds } from '../../kernel/context.ts'
import { forbidden, Problem } from '../../kernel/errors.ts'
import { refer } from '../../kernel/references.ts'
import type { Writing } from '../../kernel/resource.ts'
import { persons, requirePersonFields } from '../persons/resource.ts'

type Body = Pick<Schema<'LeadUpdate'>, 'person' | 'person_id'>

/** The `person_id` to store; undefined for "unchanged". Errors of the inline person are found below `person.`. */
export async function personOf(
  writing: Writing<{ person_id: number | null }>,
  { person, person_id }: Body,
): Promise<number | null | undefined> {
  const { current, found } = writing
  if (person === undefined) {
    if (person_id !== current?.person_id) await refer(writing, 'person_id', person_id, persons)
    return person_id
  }
  const inlineId = person === null ? null : person.id
  if (inlineId === undefined || (person !== null && inlineId === null)) return create(writing, person, person_id)
  // A PUT of what was read carries the old reference beside a new id, or the other way round: what changed counts.
  if (person_id !== undefined && person_id !== inlineId) {
    if (current && inlineId === current.person_id) return personOf(writing, { person_id })
    if (!current || person_id !== current.person_id) found.invalid('person_id', 'person.id names another person.')
  }
  if (inlineId !== current?.person_id) await refer(writing, 'person.id', inlineId, persons)
  return inlineId
}

async function create(
  { ctx, found }: Writing<unknown>,
  person: Schema<'LeadPersonInput'>,
  personId: number | null | undefined,
): Promise<number | undefined> {
  if (!person) return undefined
  if (personId !== undefined && personId !== null) found.invalid('person_id', 'Send either person_id or a new person.')
  const key = 'contacts.persons.create'
  if (!holds(ctx, key)) throw forbidden(key)
  requirePersonFields(person, found.below('person'))
  if (found.any) return undefined
  const { id: _none, ...body } = person
  try {
    return (await persons.create({ ...ctx, ifMatch: null }, body)).id
  } catch (error) {
    if (!(error instanceof Problem) || !error.more.errors) throw error
    const errors = Object.fromEntries(
      Object.entries(error.more.errors).map(([field, sentences]) => [`person.${field}`, sentences]),
    )
    const conflicts = error.more.conflicts?.map((conflict) => ({ ...conflict, field: `person.${conflict.field}` }))
    throw new Problem(error.code, error.message, { ...error.more, errors, ...(conflicts && { conflicts }) })
  }
}
