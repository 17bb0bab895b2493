// Composes random questions from the fields that the oracle knows.
import { bounds, customs, type Known, known, related } from './oracle.ts'
import type { Json, Random, Type } from './random.ts'
import { attributed, type World } from './world.ts'

type Form = () => any

/** Returns functions that compose a condition of each form that a field has. */
function formsOf(random: Random, { kind, values, isNeverEmpty }: Omit<Known, 'of'>, isCustom = false): Form[] {
  const plain = (): any => random.of(values)
  const among = (): any => ({ in: [random.of(values), random.of(values)] })
  if (kind === 'flag' && !isCustom) return [plain]
  if (kind === 'ids' && !isCustom) return [plain, among]
  const forms: Form[] = isNeverEmpty ? [] : [() => ({ is_empty: random.chance(0.5) })]
  if (kind !== 'time') forms.push(plain, among)
  if (kind === 'text' && !isCustom) {
    const piece = (): string => random.of(values).slice(0, 1 + random.below(4))
    forms.push(
      () => ({ contains: random.of(['ss', 'R', '%', '_', 'x', 'O', piece()]) }),
      () => ({ starts_with: piece() }),
    )
  }
  if (['number', 'day', 'time'].includes(kind))
    forms.push(
      () => ({ [random.of(Object.keys(bounds))]: random.of(values) }),
      () => ({ gte: random.of(values), lt: random.of(values) }),
    )
  return forms
}

/** Returns questions with one condition, of each field and form, half of them below `not`. */
export function simpleQuestions(random: Random, world: World, type: Type): Json[] {
  const own = attributed.includes(type) ? Object.entries(customs(world, type)) : []
  const conditions = [
    ...[...known[type]].flatMap(([name, about]) => formsOf(random, about).map((form) => () => ({ [name]: form() }))),
    ...own.flatMap(([code, [kind, values]]) =>
      formsOf(random, { kind, values }, true).map((form) => () => ({ custom_attributes: { [code]: form() } })),
    ),
  ]
  return [...conditions, ...conditions].map((each, n) => (n % 2 === 0 ? each() : { not: [each()] }))
}

/** Returns a question of at most three levels; the fourth is that of a related record. */
export function question(random: Random, world: World, type: Type, level = 1): Json {
  const where: Json = {}
  const names = [...known[type].keys()]
  for (let n = random.below(level === 3 ? 2 : 3) + (level === 3 ? 1 : 0); n > 0; n--) {
    const name = random.of(names)
    where[name] = random.of(formsOf(random, known[type].get(name) as Known))()
  }
  if (level < 5)
    for (const [name, [to]] of Object.entries(related[type]))
      if (random.chance(level === 4 ? 0.1 : 0.15)) where[name] = question(random, world, to, level === 4 ? 5 : 4)
  if (attributed.includes(type) && random.chance(0.3)) {
    const own = customs(world, type)
    const code = random.of(Object.keys(own))
    const [kind, values] = own[code] as [Known['kind'], readonly any[]]
    where.custom_attributes = { [code]: random.of(formsOf(random, { kind, values }, true))() }
  }
  if (level < 3)
    for (const word of ['and', 'or', 'not'])
      if (random.chance(0.35))
        where[word] = Array.from({ length: 1 + random.below(3) }, () => question(random, world, type, level + 1))
  return where
}
