// The records that the conditions of a view of persons name. A campaign must not run when one of
// them was deleted: conditions that exclude a deleted tag select every person.
import type { Context } from '../../kernel/context.ts'
import type { StoredReference } from '../../kernel/history/stored-references.ts'
import { withoutVisibility } from '../../kernel/query/visibility.ts'
import type { Where } from '../../kernel/resource/where.ts'
import { customAttributes } from '../attributes/attribute-set.ts'
import { referencesInValue } from '../attributes/references.ts'
import { valueTypeOf } from '../attributes/types.ts'
import { imports } from '../data-transfer/resource.ts'
import { organizations } from '../organizations/resource.ts'
import { tags } from '../tags/resource.ts'
import { users } from '../users/resource.ts'

/** The fields that contain ids. Deleted persons get no e-mail, so ids of persons are left out. */
const fields = {
  persons: { organization_id: organizations, user_id: users, tag_id: tags, import_id: imports },
  organizations: { id: organizations, user_id: users, tag_id: tags, import_id: imports },
} as const

const groups = ['and', 'or', 'not']

/** Returns a sentence that names a deleted record of the conditions, or null. */
export async function deletedInConditions(ctx: Context, where: Where): Promise<string | null> {
  const named = await namedIn(ctx, 'persons', where, 'where')
  for (const entity of new Set(named.map((each) => each.entity))) {
    const ids = named.flatMap((each) => (each.entity === entity ? [each.id] : []))
    const present = await presentIds(ctx, entity, ids)
    const dead = named.find((each) => each.entity === entity && !present.has(each.id))
    const noun = ctx.services.resources.get(entity)?.noun ?? 'option'
    if (dead) return `${dead.field}: No ${noun} has id ${dead.id}.`
  }
  return null
}

async function presentIds(ctx: Context, entity: string, ids: readonly number[]): Promise<ReadonlySet<number>> {
  const resource = ctx.services.resources.get(entity)
  if (resource) return resource.visibleIds(withoutVisibility(ctx), ids)
  const options = await ctx.db.selectFrom('attribute_options').select('id').where('id', 'in', ids).execute()
  return new Set(options.map(({ id }) => id))
}

async function namedIn(
  ctx: Context,
  entity: 'persons' | 'organizations',
  where: Where,
  path: string,
): Promise<StoredReference[]> {
  const found: StoredReference[] = []
  const known: Readonly<Record<string, { entity: string }>> = fields[entity]
  for (const [name, value] of Object.entries(where)) {
    const at = `${path}.${name}`
    const target = Object.hasOwn(known, name) ? known[name] : undefined
    if (groups.includes(name))
      for (const [index, each] of (value as Where[]).entries())
        found.push(...(await namedIn(ctx, entity, each, `${at}.${index}`)))
    else if (name === 'organization') found.push(...(await namedIn(ctx, 'organizations', value as Where, at)))
    else if (name === 'custom_attributes') found.push(...(await namedInValues(ctx, entity, value as Where, at)))
    else if (target)
      for (const id of valuesIn(value)) if (typeof id === 'number') found.push({ field: at, entity: target.entity, id })
  }
  return found
}

async function namedInValues(
  ctx: Context,
  entity: 'persons' | 'organizations',
  values: Where,
  path: string,
): Promise<StoredReference[]> {
  const { timezone } = ctx.services.config
  return (await customAttributes(ctx, entity)).flatMap((attribute) => {
    if (!Object.hasOwn(values, attribute.code)) return []
    const ids = valuesIn(values[attribute.code]).map((each) => valueTypeOf(attribute)?.read?.(String(each), timezone))
    return referencesInValue(`${path}.${attribute.code}`, attribute, ids)
  })
}

/** Returns the values of a condition: of a value, a list, or an object with operators. */
const valuesIn = (condition: unknown): unknown[] =>
  typeof condition === 'object' && condition !== null ? Object.values(condition).flat() : [condition]
