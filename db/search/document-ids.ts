// The ids of search documents. An id contains the entity and the id of its record, so that the
// full-text index alone tells which records match: no row of `search_index` is read for a hit.

import { type Expression, type RawBuilder, sql } from 'kysely'

/** The number of each entity. A new entity gets a new number, because ids contain the numbers. */
const numbers: Readonly<Record<string, number>> = {
  activities: 1,
  emails: 2,
  leads: 3,
  organizations: 4,
  persons: 5,
  products: 6,
  quotes: 7,
}

/** The entities whose records have documents. */
export const entities: readonly string[] = Object.keys(numbers)

/** The number of bits of an id that contain the number of the entity. */
export const entityBits = 4

export function entityNumber(entity: string): number {
  const number = numbers[entity]
  if (number === undefined) throw new Error(`The entity ${entity} has no number for its search documents.`)
  return number
}

/** Returns the id of the document of a record. */
export const documentId = (entity: string, id: number): number => id * 2 ** entityBits + entityNumber(entity)

/** Returns the id of the document of a record whose id is an SQL expression. */
export const documentIdOf = (entity: string, id: Expression<unknown>): RawBuilder<number> =>
  sql<number>`(${id} * ${sql.lit(2 ** entityBits)} + ${sql.lit(entityNumber(entity))})`
