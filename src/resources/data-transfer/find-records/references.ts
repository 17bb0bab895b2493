// Finds the records that a row names instead of their ids: users by name or e-mail address,
// pipelines, stages, sources and types by name, and the person of a lead by e-mail address, then by
// name. An unknown name is an error with a code of its own, because a setting decides about it.
import type { Context } from '../../../kernel/context.ts'
import { nameHint } from '../../../kernel/resource/named-references.ts'
import { addressKey, fold } from '../../../kernel/values/format.ts'
import { namedLike, searchFold } from '../../../kernel/values/names.ts'
import { closingFaults } from '../../leads/change-stage.ts'
import { stagesNamed } from '../../pipelines/stages.ts'
import { type RowDraft, rowRefused, toRowErrors } from '../draft-rows/row-drafts.ts'
import type { RowError } from '../errors.ts'
import { addressIn, firstIn, nameIn } from '../read-cells/list-cells.ts'
import type { ImportPlan } from '../settings.ts'
import type { Directory, Lookups, Named, NamedStage } from './lookups.ts'
import { addressesOf, personNameOf } from './lookups.ts'
import { isDeletedStatus, outcomeIn } from './outcomes.ts'

/** The error code of a name that no record has, and of a value that the named record excludes. */
export const unknownCode = 'unknown_reference'

export interface NewPerson {
  name: string
  emails: { value: string }[]
  organization_name?: string
  contact_numbers?: { value: string }[]
}

export interface RelatedIds {
  user_id?: number
  lead_pipeline_id?: number
  lead_pipeline_stage_id?: number
  lead_source_id?: number
  lead_type_id?: number
  person_id?: number | null
  person?: NewPerson
}

/** Returns the ids of the records that the row names. Throws the first error. */
export function findReferences(plan: ImportPlan, draft: RowDraft, known: Lookups): RelatedIds {
  const found: RelatedIds = {}
  for (const find of finders(plan, draft, known)) Object.assign(found, find(found))
  return found
}

/** Returns the records that the row names, and the errors of all other names. */
export function checkNames(
  plan: ImportPlan,
  draft: RowDraft,
  known: Lookups,
): { found: RelatedIds; errors: RowError[] } {
  const errors: RowError[] = []
  const found: RelatedIds = {}
  for (const find of finders(plan, draft, known))
    try {
      Object.assign(found, find(found))
    } catch (error) {
      errors.push(...toRowErrors(draft, error))
    }
  return { found, errors }
}

type Finder = (found: RelatedIds) => RelatedIds

function finders(plan: ImportPlan, draft: RowDraft, known: Lookups): Finder[] {
  const { body, names } = draft
  const { directory } = known
  /** Names the record only if no column has its id, because an export has both. */
  const byName = (field: string, id: string, find: (name: string, found: RelatedIds) => RelatedIds): Finder[] => {
    const name = names[field]
    return name === undefined || body[id] !== undefined ? [] : [(found) => find(name, found)]
  }
  if (plan.type !== 'leads') return byName('user', 'user_id', (name) => ({ user_id: userOf(draft, name, directory) }))
  return [
    ...byName('user', 'user_id', (name) => ({ user_id: userOf(draft, name, directory) })),
    ...byName('source', 'lead_source_id', (name) => ({
      lead_source_id: namedIn(draft, 'source', name, directory.sources).id,
    })),
    ...byName('type', 'lead_type_id', (name) => ({ lead_type_id: namedIn(draft, 'type', name, directory.types).id })),
    ...byName('pipeline', 'lead_pipeline_id', (name) => ({
      lead_pipeline_id: namedIn(draft, 'pipeline', name, directory.pipelines).id,
    })),
    ...(body.lead_pipeline_stage_id === undefined ? [(found: RelatedIds) => stageOf(draft, found, directory)] : []),
    (found) => closingOf(draft, found, directory),
    () => personOf(plan, draft, known),
  ]
}

function unknown(draft: RowDraft, field: string, noun: string, name: string, known: readonly string[]): never {
  const sentence = `No ${noun} has the name ${name.slice(0, maxTold)}.${nameHint(name, known)}`
  throw rowRefused(draft, field, sentence, unknownCode)
}

const maxTold = 100

function namedIn<Record extends Named>(
  draft: RowDraft,
  field: string,
  name: string,
  records: readonly Record[],
): Record {
  const [found] = namedLike(records, name)
  return found ?? unknown(draft, field, field, name.trim(), [...new Set(records.map((each) => each.name))])
}

function userOf(draft: RowDraft, text: string, { users }: Directory): number {
  const address = fold(addressIn(text))
  const byAddress = users.find(({ email }) => fold(email) === address)
  if (byAddress) return byAddress.id
  const name = nameIn(text) || text.trim()
  const named = namedLike(users, name)
  if (named.length > 1)
    throw rowRefused(draft, 'user', `Several users have the name ${name}; write the e-mail address.`, unknownCode)
  const known = users.flatMap((each) => [each.name, each.email])
  return named[0]?.id ?? unknown(draft, 'user', 'user', text.trim(), known)
}

/** Returns the stage that the row names by stage and status. A won or lost lead is never open. */
function stageOf(draft: RowDraft, found: RelatedIds, directory: Directory): RelatedIds {
  const { stages, pipelineOfLead } = directory
  const { stage: name, status } = draft.names
  if (name === undefined && status === undefined) return {}
  const sent = draft.body.lead_pipeline_id
  const pipeline = found.lead_pipeline_id ?? (typeof sent === 'number' ? sent : undefined)
  const usual = pipelineOfLead.get(Number(draft.id)) ?? directory.defaultPipeline
  const own = stages.filter((each) => each.lead_pipeline_id === (pipeline ?? usual))
  const exact = (of: readonly NamedStage[]): NamedStage | undefined => stagesNamed(of, name ?? '')[0]
  // The stage may be that of another pipeline if the row names none.
  const named = name === undefined ? undefined : (exact(own) ?? (pipeline === undefined ? exact(stages) : undefined))
  const byStatus = status === undefined ? undefined : outcomeIn(status)
  if (status !== undefined && isDeletedStatus(status))
    throw rowRefused(draft, null, `The deal has the status ${status.trim()}, and is left out.`)
  const around = named ? stages.filter((each) => each.lead_pipeline_id === named.lead_pipeline_id) : own
  const outcome =
    byStatus === 'open' ? undefined : (byStatus ?? (named || name === undefined ? undefined : outcomeIn(name)))
  const closed = outcome && around.find(({ code }) => code === outcome)
  const chosen = closed ?? named
  if (status !== undefined && byStatus === undefined) return unknown(draft, 'status', 'status', status, statuses)
  if (chosen && name !== undefined && !exact([chosen])) {
    const column = draft.columns.find((each) => each.name === 'stage')?.header ?? 'stage'
    draft.named.set('stage', { column, from: name.trim(), to: chosen.name })
  }
  if (chosen) return { lead_pipeline_id: chosen.lead_pipeline_id, lead_pipeline_stage_id: chosen.id }
  return name === undefined
    ? {}
    : unknown(
        draft,
        'stage',
        'stage',
        name.trim(),
        own.map((each) => each.name),
      )
}

const statuses = ['open', 'won', 'lost']

/** Throws for a closing time or a lost reason that the named stage or status excludes. */
function closingOf(draft: RowDraft, found: RelatedIds, { stages, now }: Directory): RelatedIds {
  const { body, columns, id } = draft
  const stage = found.lead_pipeline_stage_id
  const isNamed = columns.some(({ name }) => name === 'stage' || name === 'status')
  // A stored lead may be closed already.
  if (!isNamed || body.lead_pipeline_stage_id !== undefined || (stage === undefined && id !== undefined)) return {}
  const code = stages.find((each) => each.id === stage)?.code
  const { lost_reason: reason, closed_at: closedAt } = body
  if (code !== 'lost' && reason) throw rowRefused(draft, 'lost_reason', closingFaults.hasReason, unknownCode)
  const isShared = columns.some(({ name, header }) => name === 'closed_at' && isExpected(columns, header))
  if (typeof closedAt !== 'string' || isShared) return {}
  if (code !== 'won' && code !== 'lost') throw rowRefused(draft, 'closed_at', closingFaults.isOpen, unknownCode)
  if (closedAt.slice(0, 16).replace(' ', 'T') > now.slice(0, 16))
    throw rowRefused(draft, 'closed_at', closingFaults.isInFuture, unknownCode)
  return {}
}

/** Returns whether the column also has the expected closing date. */
const isExpected = (columns: RowDraft['columns'], header: string): boolean =>
  columns.some((column) => column.name === 'expected_close_date' && column.header === header)

/**
 * Returns the body without a closing time that only a closed lead has, if the column of the closing
 * time is also that of the expected date.
 */
export function withoutOpenClosing(body: object, draft: RowDraft, { directory }: Lookups): object {
  const { closed_at: closedAt, lead_pipeline_stage_id: stage } = body as {
    closed_at?: string
    lead_pipeline_stage_id?: number
  }
  if (!closedAt) return body
  const column = draft.columns.find(({ name }) => name === 'closed_at')
  if (!column || !isExpected(draft.columns, column.header)) return body
  const code = directory.stages.find(({ id }) => id === stage)?.code
  if ((code === 'won' || code === 'lost') && closedAt <= directory.now) return body
  const { closed_at: _none, ...open } = body as { closed_at?: string }
  return open
}

/** Returns the person of a lead: by e-mail address, then by a name that only one person has. */
function personOf({ unknown: treatment }: ImportPlan, draft: RowDraft, known: Lookups): RelatedIds {
  const { names, body, personEmail, personNumbers = [] } = draft
  const called = personNameOf(draft, treatment)
  if (personEmail === null) return { person_id: null }
  if (personEmail === undefined && called === undefined) {
    if (names.organization_name !== undefined && body.person_id === undefined)
      throw rowRefused(
        draft,
        'organization_name',
        'A lead has the organization of its person, and has no person.',
        unknownCode,
      )
    if (personNumbers.length > 0 && body.person_id === undefined)
      throw rowRefused(draft, 'person_phone', 'A number belongs to the person of a lead, and it has none.', unknownCode)
    return {}
  }
  if (personEmail === undefined && body.person_id !== undefined) return {}
  const field = personEmail === undefined ? 'person' : 'person_email'
  const addresses = addressesOf(draft)
  const name = nameIn(firstIn(called ?? ''))
  const ids = addresses.flatMap((address) => known.persons.get(addressKey(address)) ?? [])
  const named = addresses.length === 0 ? (known.personNames.get(searchFold(name)) ?? []) : []
  const id = ids[0] ?? (named.length === 1 ? named[0] : undefined)
  if (id !== undefined) {
    noteOthers(draft, 'person', called ?? '')
    const { person_id: other } = body
    if (other !== undefined && other !== id) throw rowRefused(draft, field, 'person_id names another person.')
    noteOrganization(draft, known.organizationNames.get(id) ?? null)
    noteNumbers(draft)
    return { person_id: id }
  }
  if (named.length > 1)
    throw rowRefused(draft, field, `Several persons have the name ${name}; add an e-mail address.`, unknownCode)
  if (treatment !== 'create' || called === undefined)
    return personEmail === undefined
      ? unknown(draft, field, 'person', name, [...known.personNames.keys()])
      : refuseAddress(draft)
  const organization = names.organization_name
  const person = {
    name: name || (addresses[0] ?? ''),
    emails: addresses.map((value) => ({ value })),
    ...(organization !== undefined && { organization_name: firstIn(organization) }),
    ...(personNumbers.length > 0 && { contact_numbers: [...personNumbers] }),
  }
  if (names.person === undefined) draft.named.set('person', { column: 'person', from: null, to: person.name })
  else noteOthers(draft, 'person', names.person)
  if (organization !== undefined) noteOthers(draft, 'organization_name', organization)
  return { person }
}

/** Notes that a cell such as `Ann; Bob` names several records, of which the first one counts. */
function noteOthers(draft: RowDraft, field: string, text: string): void {
  const first = firstIn(text)
  if (first === text.trim()) return
  const column = draft.columns.find(({ name }) => name === field)?.header ?? field
  draft.named.set(field, { column, from: text.trim(), to: first })
}

/** Notes that a known person keeps the own numbers. */
function noteNumbers({ personNumbers = [], columns, named }: RowDraft): void {
  if (personNumbers.length === 0) return
  const column = columns.find(({ name }) => name === 'person_phone')?.header ?? 'person_phone'
  named.set('person_phone', { column, from: personNumbers.map(({ value }) => value).join(', '), to: null })
}

/** Notes that a lead has the organization of its person, and not the one that the row names. */
function noteOrganization(draft: RowDraft, actual: string | null): void {
  const from = draft.names.organization_name?.trim()
  if (from === undefined || searchFold(from) === searchFold(actual ?? '')) return
  const column = draft.columns.find(({ name }) => name === 'organization_name')?.header ?? 'organization_name'
  draft.named.set('organization_name', { column, from, to: actual })
}

function refuseAddress(draft: RowDraft): never {
  const code = draft.names.person === undefined ? 'validation_failed' : unknownCode
  throw rowRefused(draft, 'person_email', 'No person has this e-mail address.', code)
}

/** Lets later rows of the batch find the person that a lead has created. */
export async function rememberPerson(
  ctx: Context,
  lead: number,
  { name, emails }: NewPerson,
  { persons, personNames }: Lookups,
): Promise<void> {
  const row = await ctx.db.selectFrom('leads').select('person_id').where('id', '=', lead).executeTakeFirst()
  const id = row?.person_id ?? null
  if (id === null) return
  for (const { value } of emails) persons.set(addressKey(value), id)
  personNames.set(searchFold(name), [...(personNames.get(searchFold(name)) ?? []), id])
}
