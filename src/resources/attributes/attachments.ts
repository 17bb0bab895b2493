// Files that custom attributes name: they belong to their record, come with it and go when it is gone for good (DOMAIN 16).
import type { Context } from '../../kernel/context.ts'
import { attachFile, releaseFiles } from '../files/attach.ts'
import { valuesOf } from './carriers.ts'
import { readStored } from './plan.ts'
import { type Attribute, type EntityType, ownAttributes } from './set.ts'
import { holdsFile } from './types.ts'

/** Attaches what the record names and lets go of what it names no more. A file of another record is copied. */
export async function keepFiles(ctx: Context, entity: EntityType, id: number): Promise<void> {
  const attributes = (await ownAttributes(ctx, entity)).filter(holdsFile)
  if (attributes.length === 0) return
  const row = ctx.db.selectFrom(entity).select('custom_attributes').where('id', '=', id)
  const stored = { ...readStored((await row.executeTakeFirstOrThrow()).custom_attributes) }
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
  const present = await ctx.db
    .selectFrom('files')
    .select('id')
    .where('owner_type', '=', entity)
    .where('owner_id', '=', id)
    .execute()
  await releaseFiles(
    ctx,
    owner,
    present.map((file) => file.id).filter((each) => !named.has(each)),
  )
}

/** Lets go of the files of an attribute that is about to go, but for those another attribute of the record names as well. */
export async function releaseFilesOf(ctx: Context, attribute: Attribute): Promise<void> {
  if (!holdsFile(attribute)) return
  const { id: gone, entity } = attribute
  const kept = new Set<unknown>()
  for (const other of (await ownAttributes(ctx, entity)).filter(holdsFile))
    if (other.id !== gone) for (const file of (await valuesOf(ctx, other)).values()) kept.add(file)
  for (const [id, file] of await valuesOf(ctx, attribute))
    if (!kept.has(file)) await releaseFiles(ctx, { type: entity, id }, [file as number])
}
