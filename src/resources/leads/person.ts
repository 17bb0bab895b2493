// The person of a lead: by id, or given inline and created on the way (DOMAIN 9.4).
import type { Schema } from '../../contract/types.ts'
import { requireCall } from '../../kernel/context.ts'
import { refer } from '../../kernel/references.ts'
import type { Writing } from '../../kernel/resource.ts'
import { checkPerson, persons } from '../persons/resource.ts'

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
  requireCall(ctx, 'createPerson')
  const { id: _none, ...body } = person
  await checkPerson(ctx, body, found.below('person'))
  return found.any ? undefined : (await persons.create({ ...ctx, ifMatch: null }, body)).id
}
