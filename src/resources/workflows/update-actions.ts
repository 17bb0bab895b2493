// Workflow actions that set one attribute of the record, of its person, or of all related leads.
// The value is parsed and validated like a value in an API request.
import type { Context } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import { visible } from '../../kernel/query/visibility.ts'
import type { Snapshot } from '../../kernel/write/events.ts'
import type { Attribute } from '../attributes/attribute-set.ts'
import { readableText } from '../email-templates/placeholder-values.ts'
import { leads } from '../leads/resource.ts'
import { persons } from '../persons/resource.ts'
import { quotes } from '../quotes/resource.ts'
import {
  type ActionEffect,
  type ActionResult,
  type ActionSubject,
  actionRefused,
  personIdOf,
  requireRecord,
  workflowResources,
} from './action-subject.ts'
import type { Action } from './actions.ts'
import { attributeToSet, readUpdateValue, type Target } from './update-values.ts'

const targets = { leads, persons, quotes }

async function attributeOf(ctx: Context, target: Target, code: string | null): Promise<Attribute> {
  const attribute = await attributeToSet(ctx, target, code)
  if (!attribute) throw actionRefused(`The attribute ${code ?? ''} no longer exists.`)
  return attribute
}

async function set(
  ctx: Context,
  target: Target,
  ids: readonly number[],
  { attribute: code, value, only_if_empty: isForEmpty }: Action,
): Promise<void> {
  const attribute = await attributeOf(ctx, target, code)
  const { body, errors } = readUpdateValue(ctx, target, attribute, value)
  if (Object.keys(errors).length > 0) throw invalid(errors)
  const present = isForEmpty ? await targets[target].getMany(ctx, ids) : null
  for (const id of ids) if (isEmpty(present?.get(id), attribute)) await targets[target].update(ctx, id, body)
}

/** Returns whether the attribute has no value. A record that was not read counts as empty. */
function isEmpty(record: object | undefined, { code, isOwn }: Attribute): boolean {
  const values = (isOwn ? (record as Snapshot | undefined)?.custom_attributes : record) as Snapshot | undefined
  const value = values?.[code] ?? null
  return value === null || value === '' || (Array.isArray(value) && value.length === 0)
}

/** Returns a description such as "Set Sales Owner of the lead to Ina." */
async function sentence(
  ctx: Context,
  target: Target,
  { attribute: code, value: sent, only_if_empty: isForEmpty }: Action,
  of: string,
): Promise<string> {
  const attribute = await attributeOf(ctx, target, code)
  if (sent === null) return `Clear ${attribute.name} of ${of}.`
  const { value, errors } = readUpdateValue(ctx, target, attribute, sent)
  if (Object.keys(errors).length > 0) throw invalid(errors)
  return `Set ${attribute.name} of ${of} to ${(await readableText(ctx, attribute, value, { texts: await ctx.services.textsFor(ctx) })).slice(0, 200)}${isForEmpty ? ', where it is empty' : ''}.`
}

/** Creates the action that sets an attribute of the record itself. */
const updateRecord = (target: Target, key: string): ActionEffect => ({
  async act(ctx, about, action) {
    requireRecord(about)
    await set(ctx, target, [about.id], action)
    return { [key]: about.id }
  },
  async describe(ctx, about, action) {
    requireRecord(about)
    return sentence(ctx, target, action, `the ${targets[target].noun}`)
  },
})

const updatePerson: ActionEffect = {
  async act(ctx, about, action) {
    const id = personIdOf(about)
    if (about.entity === 'persons') requireRecord(about)
    await set(ctx, 'persons', [id], action)
    return { person_id: id }
  },
  async describe(ctx, about, action) {
    personIdOf(about)
    if (about.entity === 'persons') requireRecord(about)
    return sentence(ctx, 'persons', action, 'the person')
  },
}

/**
 * The maximum number of leads per transaction, so that a person with thousands of leads does not
 * block other writers.
 */
const leadsAtOnce = 25

const leadsIn = (result: ActionResult | null): number[] => (result?.lead_ids ?? []) as number[]

const updateRelatedLeads: ActionEffect = {
  async act(ctx, about, action, _cause, soFar) {
    const ids = await relatedLeads(ctx, about, leadsIn(soFar), leadsAtOnce)
    await set(ctx, 'leads', ids, action)
    return { lead_ids: [...leadsIn(soFar), ...ids] }
  },
  isPart: async (ctx, about, result) => (await relatedLeads(ctx, about, leadsIn(result), 1)).length > 0,
  describe: (ctx, { entity }, action) =>
    sentence(ctx, 'leads', action, `every lead of the ${workflowResources[entity].noun}`),
}

/**
 * Returns the ids of at most `most` further leads, in ascending order and after the ids in `done`.
 * For a person, these are all visible leads of the person. For an activity or quote, these are the
 * visible linked leads; if the record is deleted, the leads that were linked before the deletion.
 */
async function relatedLeads(
  ctx: Context,
  { entity, id, record }: ActionSubject,
  done: readonly number[],
  most: number,
): Promise<number[]> {
  const last = done.at(-1) ?? 0
  if (entity === 'persons') {
    const ofPerson = ctx.db
      .selectFrom('leads')
      .select('id')
      .where('person_id', '=', id)
      .where(visible(ctx, 'leads.user_id'))
    const rows = await ofPerson.where('id', '>', last).orderBy('id').limit(most).execute()
    return rows.map((row) => row.id)
  }
  const linked =
    entity === 'activities' ? (record.lead_ids as number[]) : (record.leads as { id: number }[]).map((lead) => lead.id)
  const there = await leads.visibleIds(ctx, linked)
  const left = linked.filter((each) => each > last && there.has(each))
  return left.sort((a, b) => a - b).slice(0, most)
}

export const updateActions = {
  update_lead: updateRecord('leads', 'lead_id'),
  update_person: updatePerson,
  update_quote: updateRecord('quotes', 'quote_id'),
  update_related_leads: updateRelatedLeads,
} satisfies Record<string, ActionEffect>
