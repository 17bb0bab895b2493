// Placeholders that mean nothing are refused when they are saved: else people would read them in a mail (DOMAIN 18.4).
import { didYouMean } from '../../contract/input/validation-errors.ts'
import type { Context } from '../../kernel/context.ts'
import { attributeSet, type EntityType } from '../attributes/set.ts'
import { plainFields } from './fields.ts'
import { shown, type Told } from './shown.ts'

const anything = /\{%([^%]*)%\}/g
const maxTold = 20

const others = ['users.name', 'users.email', 'app.name', 'app.url']

/** What can be said where records of these types are told of. */
async function namesOf(ctx: Context, entities: readonly Told[]): Promise<Set<string>> {
  const { system, own } = await attributeSet(ctx)
  const names = new Set(others)
  for (const entity of entities) {
    const attributes = [system, own].flatMap((set) => set.get(entity as EntityType) ?? [])
    const codes = [...plainFields(ctx.services.contract, shown[entity]), ...attributes.map(({ code }) => code)]
    if (entity === 'activities') codes.push('participants')
    for (const code of codes) names.add(`${entity}.${code}`)
  }
  return names
}

const everything = Object.keys(shown) as Told[]
/** What is told besides a record: of its person and organization. Activities have several of them. */
const besides: Record<string, readonly Told[]> = {
  leads: ['leads', 'persons', 'organizations'],
  persons: ['persons', 'organizations'],
  quotes: ['quotes', 'persons', 'organizations'],
  activities: ['activities'],
}

const inText = (text: string): string[] => [
  ...new Set([...text.matchAll(anything)].map(([, name = '']) => name.trim())),
]

/** Sentences about the placeholders of a text that mean nothing. `before` is what stood there, which stays allowed. */
export async function unknownIn(
  ctx: Context,
  text: string | null | undefined,
  { entity, before = '', more = [] }: { entity?: string; before?: string; more?: readonly string[] } = {},
): Promise<string[]> {
  const asked = inText(text ?? '')
  if (asked.length === 0) return []
  const known = await namesOf(ctx, entity === undefined ? everything : (besides[entity] ?? everything))
  for (const name of more) known.add(name)
  const kept = new Set(inText(before))
  return asked
    .filter((name) => !known.has(name) && !kept.has(name))
    .slice(0, maxTold)
    .map((name) => {
      const told = name.length > 60 ? `${name.slice(0, 60)}…` : name
      return `Nothing is called {%${told}%}.${didYouMean(name, known)}`
    })
}
