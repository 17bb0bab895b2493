// Attaches and releases the files in custom attributes. Such a file belongs to its
// record and is deleted when the record is deleted for good.
import { type SqlBool, sql } from 'kysely'
import type { Context } from '../../kernel/context.ts'
import { relationsOf } from '../../kernel/history/archive.ts'
import { attachFile, releaseFiles } from '../files/attach.ts'
import { type Attribute, customAttributes, type EntityType } from './attribute-set.ts'
import { valuesOf } from './record-values.ts'
import { holdsFile } from './types.ts'
import { parseStored } from './validate-values.ts'

/**
 * Attaches the files in the record's attributes and releases files that the attributes no longer
 * contain. A file of another record is copied, and the attribute gets the id of the copy.
 */
export async function attachValueFiles(ctx: Context, entity: EntityType, id: number): Promise<void> {
  const attributes = (await customAttributes(ctx, entity)).filter(holdsFile)
  if (attributes.length === 0) return
  const row = ctx.db.selectFrom(entity).select('custom_attributes').where('id', '=', id)
  const stored = { ...parseStored((await row.executeTakeFirstOrThrow()).custom_attributes) }
  const owner = { type: entity, id }
  const named = new Set<number>()
  let hasCopies = false
  for (const { code } of attributes) {
    const sent = stored[code]
    if (typeof sent !== 'number') continue
    const own = await attachFile(ctx, sent, owner)
    named.add(own)
    hasCopies ||= own !== sent
    stored[code] = own
  }
  if (hasCopies)
    await ctx.db
      .updateTable(entity)
      .set({ custom_attributes: JSON.stringify(stored) })
      .where('id', '=', id)
      .execute()
  let present = ctx.db.selectFrom('files').select('id').where('owner_type', '=', entity).where('owner_id', '=', id)
  // A file that a row refers to, such as the PDF of a quote, is not the file of an attribute.
  for (const { table, column } of (await relationsOf(ctx)).foreignKeys.filter(({ parent }) => parent === 'files'))
    present = present.where(
      sql<SqlBool>`not exists (select 1 from ${sql.table(table)} where ${sql.ref(column)} = files.id)`,
    )
  const free = (await present.execute()).map((file) => file.id)
  await releaseFiles(
    ctx,
    owner,
    free.filter((each) => !named.has(each)),
  )
}

/**
 * Releases the files of an attribute that is being deleted. A file that is also in another
 * attribute of the record stays.
 */
export async function releaseAttributeFiles(ctx: Context, attribute: Attribute): Promise<void> {
  if (!holdsFile(attribute)) return
  const { id: gone, entity } = attribute
  const kept = new Set<unknown>()
  for (const other of (await customAttributes(ctx, entity)).filter(holdsFile))
    if (other.id !== gone) for (const file of (await valuesOf(ctx, other)).values()) kept.add(file)
  for (const [id, file] of await valuesOf(ctx, attribute))
    if (!kept.has(file)) await releaseFiles(ctx, { type: entity, id }, [file as number])
}
