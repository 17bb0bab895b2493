// Actions that set one attribute (DOMAIN 18.3): of the record itself, of its person, or of all leads that have to do with it. The
// value is read and checked as if the API had got it.
import type { Context } from '../../kernel/context.ts'
import { invalid } from '../../kernel/errors.ts'
import { type Attribute, attributesOf } from '../attributes/set.ts'
import { textOf } from '../email-templates/facts.ts'
import { leads } from '../leads/resource.ts'
import { persons } from '../persons/resource.ts'
import { quotes } from '../quotes/resource.ts'
import type { Action } from './actions.ts'
import { type Effect, type Occasion, personIdOf, refuse, requireRecord, resources } from './occasion.ts'
import { readSetting, type Target } from './values.ts'

const targets = { leads, persons, quotes }

async function attributeOf(ctx: Context, target: Target, code: string | null): Promise<Attribute> {
  const attribute = (await attributesOf(ctx, target)).find((each) => each.code === code)
  if (!attribute) throw refuse(`The attribute ${code ?? ''} is gone.`)
  return attribute
}

async function set(
  ctx: Context,
  target: Target,
  ids: readonly number[],
  { attribute: code, value }: Action,
): Promise<void> {
  const { body, errors } = readSetting(ctx, target, await attributeOf(ctx, target, code), value)
  if (Object.keys(errors).length > 0) throw invalid(errors)
  for (const id of ids) await targets[target].update(ctx, id, body)
}

/** "Set Sales Owner of the lead to Ina." */
async function sentence(
  ctx: Context,
  target: Target,
  { attribute: code, value: sent }: Action,
  of: string,
): Promise<string> {
  const attribute = await attributeOf(ctx, target, code)
  if (sent === null) return `Clear ${attribute.name} of ${of}.`
  const { value, errors } = readSetting(ctx, target, attribute, sent)
  if (Object.keys(errors).length > 0) throw invalid(errors)
  return `Set ${attribute.name} of ${of} to ${(await textOf(ctx, attribute, value)).slice(0, 200)}.`
}

/** Updates the record that the workflow ran for. */
const itself = (target: Target, key: string): Effect => ({
  async act(ctx, about, action) {
    requireRecord(about)
    await set(ctx, target, [about.id], action)
    return { [key]: about.id }
  },
  async would(ctx, about, action) {
    requireRecord(about)
    return sentence(ctx, target, action, `the ${targets[target].noun}`)
  },
})

const ofPerson: Effect = {
  async act(ctx, about, action) {
    const id = personIdOf(about)
    if (about.entity === 'persons') requireRecord(about)
    await set(ctx, 'persons', [id], action)
    return { person_id: id }
  },
  async would(ctx, about, action) {
    personIdOf(about)
    if (about.entity === 'persons') requireRecord(about)
    return sentence(ctx, 'persons', action, 'the person')
  },
}

const ofLeads: Effect = {
  async act(ctx, about, action) {
    const ids = await relatedLeads(ctx, about)
    await set(ctx, 'leads', ids, action)
    return { lead_ids: ids }
  },
  would: (ctx, { entity }, action) => sentence(ctx, 'leads', action, `every lead of the ${resources[entity].noun}`),
}

/** The leads of a person, or those that an activity or a quote is linked to, or was until it was deleted. */
async function relatedLeads(ctx: Context, { entity, id, record }: Occasion): Promise<number[]> {
  if (entity === 'persons') {
    const rows = await ctx.db.selectFrom('leads').select('id').where('person_id', '=', id).orderBy('id').execute()
    return rows.map((row) => row.id)
  }
  const linked =
    entity === 'activities' ? (record.lead_ids as number[]) : (record.leads as { id: number }[]).map((lead) => lead.id)
  const there = await leads.seen(ctx, linked)
  return linked.filter((each) => there.has(each))
}

export const updates = {
  update_lead: itself('leads', 'lead_id'),
  update_person: ofPerson,
  update_quote: itself('quotes', 'quote_id'),
  update_related_leads: ofLeads,
} satisfies Record<string, Effect>
