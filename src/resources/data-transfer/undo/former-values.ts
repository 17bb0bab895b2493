// Computes the body that gives a record the values that it had before an import, without the fields
// that were changed since.
import { bodyKeys, bodyReader } from '../../../contract/input/body-reader.ts'
import type { OperationId, Schema } from '../../../contract/types.ts'
import type { Context } from '../../../kernel/context.ts'
import type { Snapshot } from '../../../kernel/write/events.ts'
import { changedPlaces, valueAt } from '../report/preview.ts'

/** A change in the event log, with snapshots and changed keys as JSON. */
export interface LoggedChange {
  name: string
  before: string | null
  after: string | null
  changed: string
  related_id: number | null
}

type Body = Record<string, unknown>
export type Remainder = Pick<Schema<'ImportRemainder'>, 'field' | 'reason' | 'message'>

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

export function formerValues(
  ctx: Context,
  operation: OperationId,
  changes: readonly LoggedChange[],
  current: object,
): { body: Body; remainders: Remainder[] } {
  const now = current as Snapshot
  const own = changes.filter(({ related_id: other }) => other === null)
  const before = JSON.parse(own[0]?.before ?? '{}') as Snapshot
  const after = JSON.parse(own.at(-1)?.after ?? '{}') as Snapshot
  const writable = bodyKeys(ctx.services.contract, operation)
  const keys = new Set(own.flatMap(({ changed }) => JSON.parse(changed) as string[]))
  const remainders: Remainder[] = []
  const sent: Body = {}
  for (const key of changedPlaces([...keys], before, after)) {
    const [field = key] = key.split('.')
    const part = key.slice(field.length + 1)
    // The id of a reference is written, and not the reference.
    if (!writable.has(field) || `${key}_id` in now) continue
    const [former, imported, present] = [before, after, now].map((each) => valueAt(each, key))
    if (isSame(former, present)) continue
    if (!isSame(imported, present))
      remainders.push({ field: key, reason: 'edited', message: 'The field was changed since the import.' })
    else if (part !== '') sent[field] = { ...(sent[field] as object | undefined), [part]: former ?? null }
    else sent[key] = key === 'products' ? productLines(former, present) : former
  }
  const tags = formerTags(changes, now)
  if (tags) sent.tag_ids = tags
  const { contract, config } = ctx.services
  const { value, errors } = bodyReader(contract, operation)(sent, { zone: config.timezone, strict: config.strict })
  const body = { ...value } as Body
  for (const [path, [message = '']] of Object.entries(errors)) {
    remainders.push({ field: path, reason: 'refused', message })
    delete body[path.split('.')[0] ?? path]
  }
  return { body, remainders }
}

/** Returns the tags without those that the import has added, and with those that it has removed. */
function formerTags(changes: readonly LoggedChange[], { tags }: Snapshot): number[] | undefined {
  const present = new Set((tags as { id: number }[] | undefined)?.map(({ id }) => id))
  const former = new Set(present)
  for (const { name, related_id: tag } of changes) {
    if (tag === null) continue
    if (/\.tag\.create\b/.test(name)) former.delete(tag)
    else former.add(tag)
  }
  return former.size === present.size && [...former].every((tag) => present.has(tag)) ? undefined : [...former]
}

/** Returns the lines in the form of a body. A line that is gone is added again. */
function productLines(former: unknown, present: unknown): unknown {
  const ids = new Set((present as { id: number }[]).map(({ id }) => id))
  return (former as { id: number; product_id: number | null; quantity: number; price: number }[]).map(
    ({ id, product_id, quantity, price }) => ({ ...(ids.has(id) && { id }), product_id, quantity, price }),
  )
}
