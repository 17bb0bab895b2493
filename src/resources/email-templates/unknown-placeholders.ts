// Finds unknown placeholders in a text that is being saved, so that no recipient gets an e-mail
// with an unfilled placeholder.
import { didYouMean } from '../../contract/input/validation-errors.ts'
import type { Context } from '../../kernel/context.ts'
import { attributeSet, type EntityType } from '../attributes/attribute-set.ts'
import { type PlaceholderEntity, placeholderSchemas } from './placeholder-schemas.ts'
import { invitationTexts } from './placeholder-values.ts'
import { rawSuffix } from './placeholders.ts'
import { plainFields } from './plain-fields.ts'

const anything = /\{%([^%]*)%\}/g
const maxReported = 20

const ofApp = ['app.name', 'app.url']
const others = ['users.name', 'users.email', ...ofApp]

async function namesOf(ctx: Context, entities: readonly PlaceholderEntity[]): Promise<Set<string>> {
  const { system, own } = await attributeSet(ctx)
  // A record without placeholders of its own has none of its owner.
  const names = new Set(entities.length === 0 ? ofApp : others)
  for (const entity of entities) {
    const attributes = [system, own].flatMap((set) => set.get(entity as EntityType) ?? [])
    const codes = [
      ...plainFields(ctx.services.contract, placeholderSchemas[entity]),
      ...attributes.map(({ code }) => code),
    ]
    if (entity === 'activities') {
      codes.push('participants', 'time', 'short_time')
      for (const [name] of await invitationTexts()) names.add(name)
    }
    for (const code of codes) names.add(`${entity}.${code}`)
  }
  return names
}

const allEntities = Object.keys(placeholderSchemas) as PlaceholderEntity[]
/**
 * The entities whose placeholders a text may contain, by the entity of the record. A text about an
 * activity has no person placeholders, because an activity can have several persons.
 */
const availableEntities: Record<string, readonly PlaceholderEntity[]> = {
  leads: ['leads', 'persons', 'organizations'],
  persons: ['persons', 'organizations'],
  quotes: ['quotes', 'persons', 'organizations'],
  activities: ['activities'],
  organizations: ['organizations'],
}

/** Returns the names of the placeholders in a text, without duplicates and without fallbacks. */
export const placeholdersIn = (text: string): string[] => [
  ...new Set(
    [...text.matchAll(anything)].map(([, all = '']) => (rawSuffix.test(all.trim()) ? all : nameIn(all)).trim()),
  ),
]

const nameIn = (text: string): string => text.split('|', 1)[0] ?? ''

interface TextContext {
  /** The entity of the record that the text is about; any entity if undefined. */
  entity?: string | undefined
  before?: string
  more?: readonly string[]
  /** Whether the text is part of a webhook, which may have raw values. */
  isWebhook?: boolean
}

/**
 * Returns an error sentence for each unknown placeholder in a text. Placeholders that already occur
 * in the old text `before` are allowed.
 */
export async function findUnknownPlaceholders(
  ctx: Context,
  text: string | null | undefined,
  { entity, before = '', more = [], isWebhook = false }: TextContext = {},
): Promise<string[]> {
  const asked = placeholdersIn(text ?? '')
  if (asked.length === 0) return []
  const usual = isWebhook ? [] : allEntities
  const known = await namesOf(ctx, entity === undefined ? allEntities : (availableEntities[entity] ?? usual))
  for (const name of more) known.add(name)
  const kept = new Set(placeholdersIn(before))
  return asked
    .filter((name) => !known.has(isWebhook ? name.replace(rawSuffix, '') : name) && !kept.has(name))
    .slice(0, maxReported)
    .map((name) => {
      const shown = name.length > 60 ? `${name.slice(0, 60)}…` : name
      return `Unknown placeholder {%${shown}%}.${didYouMean(name.replace(rawSuffix, ''), known)}`
    })
}
