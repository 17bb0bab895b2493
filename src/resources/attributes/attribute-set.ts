// Loads all attributes of the installation with their options, by entity. The result is cached
// until an attribute changes. After each commit, one cheap query detects a change.
import { cachedQuery } from '../../../db/cached-query.ts'
import type { Db, Store } from '../../../db/store.ts'
import type { Context, Services } from '../../kernel/context.ts'
import { perOwner } from '../../kernel/runtime/per-owner.ts'
import type { UnitOfWork } from '../../kernel/write/write.ts'
import type { LookupType } from './lookups.ts'

export const entityTypes = ['leads', 'persons', 'organizations', 'products', 'quotes', 'warehouses'] as const
/** The entities that can have custom attributes. */
export type EntityType = (typeof entityTypes)[number]

export type TypeName =
  | 'text'
  | 'textarea'
  | 'number'
  | 'price'
  | 'boolean'
  | 'select'
  | 'multiselect'
  | 'checkbox'
  | 'email'
  | 'address'
  | 'phone'
  | 'url'
  | 'lookup'
  | 'datetime'
  | 'date'
  | 'image'
  | 'file'
  | 'subheading'

export type Validation = 'numeric' | 'email' | 'decimal' | 'url'

export interface AttributeOption {
  id: number
  name: string
  sort_order: number
}

export interface Attribute {
  id: number
  code: string
  name: string
  type: TypeName
  entity: EntityType
  lookup: LookupType | null
  validation: Validation | null
  isRequired: boolean
  isUnique: boolean
  /** The default value in stored form; null when there is no default. */
  initial: unknown
  isOwn: boolean
  options: readonly AttributeOption[]
}

export interface AttributeSet {
  /** Identifies the version of the set. Every change of an attribute changes the mark. */
  mark: string
  /** Custom attributes of each entity, in their sort order. */
  own: ReadonlyMap<EntityType, readonly Attribute[]>
  system: ReadonlyMap<EntityType, readonly Attribute[]>
}

/** The cache: the last committed set of each store, and the commit after which it was checked. */
const cacheOf = perOwner((_db: Db): { set?: AttributeSet; checked?: number } => ({}))
/** The set of each transaction; null for a transaction that changes attributes. */
const setsOfUnits = new WeakMap<UnitOfWork, Promise<AttributeSet> | null>()

/**
 * Marks the transaction as one that changes attributes: it reads uncommitted rows, which must not
 * be cached. Every write of an attribute must call this function in its transaction.
 */
export function markAttributesChanged({ unit }: Context): void {
  if (unit) setsOfUnits.set(unit, null)
}

export function attributeSet(ctx: Context): Promise<AttributeSet> {
  const set = storedSet(ctx)
  const extended = proposals.get(ctx.services)
  return extended === undefined ? set : set.then(extended)
}

/** The sets with attributes that a trial proposes, by the services of the trial. */
const proposals = new WeakMap<Services, (set: AttributeSet) => AttributeSet>()

/**
 * Returns services that know these attributes too, although they are not stored. For trials of
 * writes, which are rolled back. The ids are negative.
 */
export function withProposedAttributes(
  services: Services,
  proposed: readonly Pick<Attribute, 'code' | 'name' | 'type' | 'entity'>[],
): Services {
  const all = proposed.map((each, index): Attribute => {
    const plain = { lookup: null, validation: null, initial: null, options: [] }
    return { ...each, ...plain, id: -1 - index, isRequired: false, isUnique: false, isOwn: true }
  })
  const trial = { ...services }
  proposals.set(
    trial,
    perOwner((set: AttributeSet): AttributeSet => {
      const own = new Map(set.own)
      for (const entity of entityTypes)
        own.set(entity, [...(set.own.get(entity) ?? []), ...all.filter((each) => each.entity === entity)])
      return { ...set, own }
    }),
  )
  return trial
}

function storedSet({ db, unit, services: { store } }: Context): Promise<AttributeSet> {
  if (!unit) return committedAttributeSet(store, db)
  const known = setsOfUnits.get(unit)
  if (known === null) return load(db, '')
  const set = known ?? committedAttributeSet(store, db)
  setsOfUnits.set(unit, set)
  return set
}

/** Returns the committed attribute set, as a transaction or snapshot `db` sees it. */
export async function committedAttributeSet(
  store: Pick<Store, 'db' | 'commitGeneration'>,
  db: Db = store.db,
): Promise<AttributeSet> {
  const cache = cacheOf(store.db)
  const generation = store.commitGeneration()
  const isLatest = db === store.db
  if (cache.set && isLatest && cache.checked === generation) return cache.set
  const mark = await markOf(db)
  const set = cache.set?.mark === mark ? cache.set : await load(db, mark)
  if (isLatest) Object.assign(cache, { set, checked: generation })
  // A set that a transaction has read is not cached, because the transaction may roll back.
  else if (set !== cache.set) void committedAttributeSet(store).catch(() => undefined)
  return set
}

const marks = cachedQuery((db: Db) =>
  db
    .selectFrom('attributes')
    .select((eb) => [
      eb.fn.countAll<number>().as('count'),
      eb.fn.max('id').as('last'),
      eb.fn.sum<number>('version').as('versions'),
    ]),
)

/**
 * Returns a text that changes whenever an attribute changes. Ids are never reused and every change
 * raises a version, so equal marks mean equal sets.
 */
async function markOf(db: Db): Promise<string> {
  const [{ count, last, versions } = { count: 0, last: null, versions: null }] = await marks(db)
  return `${count}.${last}.${versions}`
}

async function load(db: Db, mark: string): Promise<AttributeSet> {
  const rows = await db.selectFrom('attributes').selectAll().orderBy('sort_order').orderBy('id').execute()
  const options = await db
    .selectFrom('attribute_options')
    .select(['id', 'attribute_id', 'name', 'sort_order'])
    .orderBy('sort_order')
    .orderBy('id')
    .execute()
  const byAttribute = new Map<number, AttributeOption[]>(rows.map(({ id }) => [id, []]))
  for (const { attribute_id, ...option } of options) byAttribute.get(attribute_id)?.push(option)
  const all = rows.map((row) => toAttribute(row, byAttribute.get(row.id) ?? []))
  const of = (isOwn: boolean) =>
    new Map(entityTypes.map((entity) => [entity, all.filter((each) => each.entity === entity && each.isOwn === isOwn)]))
  return { mark, own: of(true), system: of(false) }
}

export interface AttributeRow {
  id: number
  code: string
  name: string
  type: string
  entity_type: string
  lookup_type: string | null
  validation: string | null
  is_required: number
  is_unique: number
  default_value: string | null
  is_user_defined: number
}

/**
 * Converts a database row to an `Attribute`. The table's constraints guarantee that the casts are
 * correct.
 */
export const toAttribute = (row: AttributeRow, options: readonly AttributeOption[]): Attribute => ({
  id: row.id,
  code: row.code,
  name: row.name,
  type: row.type as TypeName,
  entity: row.entity_type as EntityType,
  lookup: row.lookup_type as LookupType | null,
  validation: row.validation as Validation | null,
  isRequired: row.is_required === 1,
  isUnique: row.is_unique === 1,
  initial: row.default_value === null ? null : JSON.parse(row.default_value),
  isOwn: row.is_user_defined === 1,
  options,
})

export const customAttributes = async (ctx: Context, entity: EntityType): Promise<readonly Attribute[]> =>
  (await attributeSet(ctx)).own.get(entity) ?? []

/** Returns all attributes of an entity: built-in attributes first, then custom ones. */
export async function attributesOf(ctx: Context, entity: EntityType): Promise<readonly Attribute[]> {
  const { system, own } = await attributeSet(ctx)
  return [...(system.get(entity) ?? []), ...(own.get(entity) ?? [])]
}
